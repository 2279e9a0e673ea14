//! Shares, counts and factors with their intervals, as screens and pages write them.

use iowhy_core::estimate::Estimate;
use iowhy_core::units::{Bytes, per_cent};
pub(crate) use iowhy_core::units::{count, counted as plural};
use iowhy_view::document::Detail;

use crate::record::watch::{CallSite, LayerShare, OperationRecord};

/// An estimate with its n.
pub(crate) fn written(estimate: &Estimate) -> String {
    Detail::Page.estimate(estimate)
}

/// A share below this does not earn its place on a screen; the record holds it.
const VISIBLE: f64 = 0.005;

/// Whether a share is large enough to be shown.
pub(crate) fn visible(share: f64) -> bool {
    share >= VISIBLE
}

/// What has a share with an interval.
pub(crate) trait Share {
    /// Value, lower and upper end.
    fn ends(&self) -> (f64, f64, f64);
}

/// What has a part of the wall clock.
pub(crate) trait OnTheClock: Share {
    /// Seconds.
    fn wall_s(&self) -> f64;

    /// Its part of the wall clock as a share of `whole_s`. Samples split the wall time of a thread as they split its time:
    /// the interval is as wide, relative to the value.
    fn of_wall(&self, whole_s: f64) -> WallShare {
        let (share, low, high) = self.ends();
        let value = if whole_s > 0.0 { self.wall_s() / whole_s } else { 0.0 };
        let scaled = |end: f64| if share > 0.0 { value * end / share } else { value };
        WallShare(value, scaled(low), scaled(high).min(value.max(1.0)))
    }
}

/// A share of the wall time: value, lower and upper end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallShare(f64, f64, f64);

impl WallShare {
    /// The value.
    pub(crate) fn value(self) -> f64 {
        self.0
    }
}

impl Share for WallShare {
    fn ends(&self) -> (f64, f64, f64) {
        (self.0, self.1, self.2)
    }
}

macro_rules! shares {
    ($($kind:ty),+) => {
        $(impl Share for $kind {
            fn ends(&self) -> (f64, f64, f64) {
                (self.share, self.share_low, self.share_high)
            }
        }
        impl OnTheClock for $kind {
            fn wall_s(&self) -> f64 {
                self.wall_s
            }
        })+
    };
}
shares!(LayerShare, OperationRecord, CallSite);

/// A share in per cent: `62 %` when it was measured, `62 ±3 %` when it was sampled; tenths below 10. The arm is the
/// longer one, in per cent of the whole and rounded up, so that certainty is never overstated.
pub(crate) fn share(of: &impl Share) -> String {
    let (value, ..) = of.ends();
    let (percent, arm) = (value * 100.0, arm(of) * 100.0 - 1e-9);
    if arm <= 0.0 || !arm.is_finite() {
        percent_of(value)
    } else if percent >= WHOLE_FROM {
        format!("{percent:.0} ±{:.0} %", arm.ceil())
    } else {
        format!("{:.1} ±{:.1} %", (percent * 10.0).round() / 10.0 + 0.0, (arm * 10.0).ceil() / 10.0)
    }
}

/// The longer arm of the interval of a share.
pub(crate) fn arm(of: &impl Share) -> f64 {
    let (value, low, high) = of.ends();
    (value - low).max(high - value)
}

/// Percentages from here on are written whole.
const WHOLE_FROM: f64 = 9.95;

/// An exact share in per cent: whole from 10 on, tenths below.
pub(crate) fn percent_of(share: f64) -> String {
    let percent = share * 100.0;
    per_cent(percent, usize::from(percent.abs() < WHOLE_FROM))
}

/// A size of three digits or so, to one decimal where that is not 0.
pub(crate) fn bytes(n: u64) -> String {
    const STEPS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return Bytes(n).to_string();
    }
    let mut value = n as f64 / 1024.0;
    let mut step = 0;
    while value >= 999.5 && step + 1 < STEPS.len() {
        value /= 1024.0;
        step += 1;
    }
    let tenths = (value * 10.0).round() / 10.0;
    if tenths.fract() == 0.0 || value >= 99.95 {
        format!("{value:.0} {}", STEPS[step])
    } else {
        format!("{tenths:.1} {}", STEPS[step])
    }
}

/// A factor to the digits that matter: `11x`, `2.3x`, `1.08x`.
pub(crate) fn factor(x: f64) -> String {
    let decimals = if x >= 9.95 {
        0
    } else if x >= 1.995 {
        1
    } else {
        2
    };
    format!("{x:.decimals$}")
}
