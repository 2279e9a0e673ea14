//! What splitting alone makes of a list of requests on a stripe: exact counts, and whether they account for a measured ratio.

use iowhy_core::estimate::Estimate;
use iowhy_core::stripe::Stripe;

/// A list of requests on one stripe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Requests before splitting.
    pub requests: u64,
    /// Of which cross a border.
    pub split: u64,
    /// Requests that the members get, all together.
    pub parts: u64,
    /// Of which the busiest member gets.
    pub busiest: u64,
}

impl Spread {
    /// Counts requests, given by first byte and bytes.
    pub fn count(map: &Stripe, requests: impl IntoIterator<Item = (u64, u64)>) -> Spread {
        let mut spread = Spread::default();
        let mut members = vec![0u64; map.members()];
        for (start, bytes) in requests {
            let mut parts = 0;
            for part in map.parts(start, bytes) {
                members[part.member] += 1;
                parts += 1;
            }
            spread.requests += 1;
            spread.split += u64::from(parts > 1);
            spread.parts += parts;
        }
        spread.busiest = members.into_iter().max().unwrap_or(0);
        spread
    }

    /// Share of the requests that are split.
    pub fn split_share(&self) -> f64 {
        self.split as f64 / self.requests.max(1) as f64
    }

    /// Time over that of another spread of the same readers, were every part to cost the same: where one disk serves all
    /// members, all parts count; where each member is a disk, those of the busiest do. `None` without requests.
    pub fn time_over(&self, other: &Spread, one_disk: bool) -> Option<f64> {
        let cost = |spread: &Spread| if one_disk { spread.parts } else { spread.busiest };
        let ratio = cost(self) as f64 / cost(other) as f64;
        ratio.is_finite().then_some(ratio)
    }
}

/// Whether a prediction is what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fits {
    /// Within the interval, or next to it.
    Yes,
    /// Outside.
    No,
    /// The interval is too wide to tell it from its opposite.
    Inconclusive,
}

/// A prediction that misses the interval by less still counts.
const NEAR: f64 = 0.05;
/// An interval whose longer arm is more than this says little.
const WIDE: f64 = 0.25;

/// Holds a predicted ratio against a measured one.
pub fn fits(measured: &Estimate, predicted: f64) -> Fits {
    let inside = measured.low * (1.0 - NEAR) <= predicted && predicted <= measured.high * (1.0 + NEAR);
    match inside {
        false => Fits::No,
        true if measured.relative_arm() > WIDE => Fits::Inconclusive,
        true => Fits::Yes,
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::Unit;

    use super::*;

    const SECTOR: u64 = 512;

    /// Blocks of 8 KiB: each is two at 8 sectors; at 126 a border falls into seven of 63; at 128 and 2048 into none.
    #[test]
    fn splits_are_counted_exactly() {
        let blocks = || (0..6300u64).map(|block| (block * 8192, 8192));
        let at = |sectors: u64| Spread::count(&Stripe::new(sectors * SECTOR, 3).unwrap(), blocks());
        assert_eq!((at(8).split, at(8).parts, at(8).busiest), (6300, 12_600, 4200));
        assert_eq!((at(126).split, at(126).parts), (700, 7000));
        assert_eq!((at(128).split, at(128).parts, at(128).busiest), (0, 6300, 2104));
        assert_eq!(at(128).time_over(&at(2048), true), Some(1.0));
        assert_eq!(at(8).time_over(&at(128), true), Some(2.0));
        assert!((at(126).split_share() - 1.0 / 9.0).abs() < 1e-12);
        assert_eq!(Spread::default().time_over(&Spread::default(), true), None);
    }

    /// All requests to one member of three: three times the time of an even spread, though nothing is split.
    #[test]
    fn where_members_are_disks_the_busiest_decides() {
        let even = Spread::count(&Stripe::new(8192, 3).unwrap(), (0..300u64).map(|b| (b * 8192, 8192)));
        let uneven = Spread::count(&Stripe::new(8192, 3).unwrap(), (0..300u64).map(|b| (b * 3 * 8192, 8192)));
        assert_eq!(uneven.time_over(&even, false), Some(3.0));
        assert_eq!(uneven.time_over(&even, true), Some(1.0));
    }

    #[test]
    fn a_prediction_is_held_against_the_interval() {
        let measured = |low, value, high| Estimate { value, low, high, unit: Unit::Ratio, n: 5 };
        assert_eq!(fits(&measured(1.05, 1.1, 1.15), 1.11), Fits::Yes);
        assert_eq!(fits(&measured(1.05, 1.1, 1.15), 1.01), Fits::Yes, "within 5 % of the interval");
        assert_eq!(fits(&measured(1.05, 1.1, 1.15), 0.9), Fits::No);
        assert_eq!(fits(&measured(0.5, 1.0, 2.0), 1.1), Fits::Inconclusive);
    }
}
