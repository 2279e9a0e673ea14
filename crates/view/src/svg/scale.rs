//! From values to positions, with ticks at round values.

use super::{element, label};

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm, ticks at decades (and between them where there are few).
    Log10,
    /// By their logarithm, ticks at powers of two.
    Log2,
}

/// So near to an end of the chart a text is set inwards.
const EDGE: f64 = 14.0;

/// Values beyond these are damage, and their ratios would overflow.
const MAX_VALUE: f64 = 1e150;
const MIN_LOG_VALUE: f64 = 1e-150;
/// A logarithmic axis reaches at least this factor beyond its values, so that a single one does not fill it.
const MIN_ROOM: f64 = 1.12;

/// One axis: values from `low` to `high` onto places from `from` to `to`.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that holds all finite values (for a logarithm: all above 0), with a little room at both ends. Without any
    /// such value it runs from 1 to 2.
    pub fn new(scale: Scale, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let fits = |v: &f64| v.abs() < MAX_VALUE && (scale == Scale::Linear || *v > MIN_LOG_VALUE);
        let (mut low, mut high) =
            values.filter(fits).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        match scale {
            Scale::Linear => {
                low = low.min(0.0);
                if high <= low {
                    high = low + 1.0;
                }
                high += (high - low) * 0.03;
            }
            Scale::Log10 | Scale::Log2 => {
                let room = (high / low).powf(0.04).max(MIN_ROOM);
                (low, high) = (low / room, high * room);
            }
        }
        Axis { scale, low, high, from, to }
    }

    /// An axis from 0 to this value, without room.
    pub(super) fn exact(high: f64, from: f64, to: f64) -> Axis {
        let fits = high > 0.0 && high < MAX_VALUE;
        Axis { scale: Scale::Linear, low: 0.0, high: if fits { high } else { 1.0 }, from, to }
    }

    /// The place of a value; one beyond the axis stands at its end.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            // Differences of logarithms: a ratio of the ends may be more than a number holds.
            Scale::Log10 | Scale::Log2 => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values worth a tick, at most `most` of them.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let within = |v: &f64| *v >= self.low && *v <= self.high;
        let most = most.max(2);
        match self.scale {
            Scale::Linear => {
                let raw = (self.high - self.low) / most as f64;
                let decade = 10f64.powf(raw.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * decade).into_iter().find(|s| *s >= raw);
                let step = step.unwrap_or(decade * 10.0);
                let first = (self.low / step).ceil();
                (0..=most + 1).map(|n| (first + n as f64) * step).filter(within).collect()
            }
            Scale::Log2 => powers(2.0, self.low, self.high, most),
            Scale::Log10 => {
                let decades = powers(10.0, self.low, self.high, most);
                if decades.len() >= 3 {
                    return decades;
                }
                let first = self.low.log10().floor() as i32;
                let last = self.high.log10().ceil() as i32;
                let between = |n: i32| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(n));
                let all: Vec<f64> = (first..=last).flat_map(between).filter(within).collect();
                if all.len() <= most { all } else { decades }
            }
        }
    }

    /// Ticks, grid lines and texts below a chart that reaches from `top` to `bottom`.
    pub fn below(&self, top: f64, bottom: f64, most: usize, words: &dyn Fn(f64) -> String) -> String {
        let mut text = String::new();
        for value in self.ticks(most) {
            let x = self.at(value);
            text.push_str(&format!(
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>"
            ));
            // A text at an end of the chart must not be cut off there.
            let anchor = match x {
                x if x > self.to - EDGE => "end",
                x if x < self.from + EDGE => "start",
                _ => "middle",
            };
            text.push_str(&label(x, bottom + 15.0, anchor, "dim", &words(value)));
        }
        text
    }

    /// Ticks, grid lines and texts to the left of a chart that reaches from `left` to `right`.
    pub fn beside(&self, left: f64, right: f64, most: usize, words: &dyn Fn(f64) -> String) -> String {
        let mut text = String::new();
        for value in self.ticks(most) {
            let y = self.at(value);
            text.push_str(&format!(
                "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>"
            ));
            text.push_str(&label(left - 6.0, y + 4.0, "end", "dim", &words(value)));
        }
        text
    }
}

/// Powers of a base within an interval of finite values above 0, every second (third, ...) of them where there would be too many.
fn powers(base: f64, low: f64, high: f64, most: usize) -> Vec<f64> {
    if !(low.is_normal() && high.is_normal()) {
        return Vec::new();
    }
    let first = (low.ln() / base.ln() - 1e-9).ceil() as i32;
    let last = (high.ln() / base.ln() + 1e-9).floor() as i32;
    if last < first {
        return Vec::new();
    }
    let count = (last - first + 1) as usize;
    let step = count.div_ceil(most).max(1);
    (first..=last).step_by(step).map(|n| base.powi(n)).collect()
}

/// An empty chart that says why.
pub(crate) fn nothing(width: f64, alt: &str) -> String {
    element(width, 40.0, "", alt, &label(8.0, 24.0, "start", "dim", "nothing to draw"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_the_order_and_the_ends() {
        for scale in [Scale::Linear, Scale::Log10, Scale::Log2] {
            let axis = Axis::new(scale, [3.0, 700.0, f64::NAN, f64::INFINITY].into_iter(), 10.0, 110.0);
            assert!(axis.at(3.0) < axis.at(50.0) && axis.at(50.0) < axis.at(700.0));
            assert!(axis.at(3.0) >= 10.0 && axis.at(700.0) <= 110.0);
            assert_eq!(axis.at(1e12), 110.0);
        }
    }

    #[test]
    fn ticks_are_round_and_few() {
        let linear = Axis::new(Scale::Linear, [0.0, 97.0].into_iter(), 0.0, 1.0);
        assert_eq!(linear.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        let sizes = Axis::new(Scale::Log2, [512.0, 1048576.0].into_iter(), 0.0, 1.0);
        assert_eq!(sizes.ticks(6), [512.0, 2048.0, 8192.0, 32768.0, 131_072.0, 524_288.0]);
        let narrow = Axis::new(Scale::Log10, [90.0, 400.0].into_iter(), 0.0, 1.0);
        assert_eq!(narrow.ticks(6), [100.0, 200.0]);
        let decades = Axis::new(Scale::Log10, [1.0, 1e6].into_iter(), 0.0, 1.0);
        assert_eq!(decades.ticks(9), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
    }

    #[test]
    fn odd_values_never_break_it() {
        for values in [
            vec![],
            vec![0.0],
            vec![-5.0, 0.0],
            vec![7.0],
            vec![f64::NAN],
            vec![f64::MAX, 1e-290],
            vec![1e-320, 1.0],
            vec![5e-324],
            vec![1e-320, f64::MAX],
            vec![1e149, 1e-149],
            vec![-1e149, 1e149],
        ] {
            for scale in [Scale::Linear, Scale::Log10, Scale::Log2] {
                let axis = Axis::new(scale, values.iter().copied(), 0.0, 100.0);
                for value in values.iter().copied().filter(|v| v.is_finite()).chain(axis.ticks(8)) {
                    assert!((0.0..=100.0).contains(&axis.at(value)), "{values:?} {scale:?} {value}");
                }
                assert!(axis.ticks(8).len() <= 12);
                assert!(axis.ticks(8).iter().all(|tick| tick.is_finite()), "{values:?} {scale:?}");
            }
        }
    }
}
