//! A number that is known within limits: a count that was scaled up, a share that was sampled, a fraction that a
//! repair saves. Invariant: `0 <= low <= likely <= high`, all finite. What may not enter: units other than the caller's.

/// A number with the ends of its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Most likely value.
    pub likely: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    /// From three numbers in any order of size: what is negative or not finite becomes 0, and the ends are moved so that
    /// the likely value lies between them.
    pub fn new(low: f64, likely: f64, high: f64) -> Range {
        let clean = |x: f64| if x.is_finite() { x.max(0.0) } else { 0.0 };
        let likely = clean(likely);
        Range { low: clean(low).min(likely), likely, high: clean(high).max(likely) }
    }

    /// A number that is known exactly.
    pub fn exact(value: f64) -> Range {
        Range::new(value, value, value)
    }

    /// The product, end by end.
    pub fn times(self, other: Range) -> Range {
        Range::new(self.low * other.low, self.likely * other.likely, self.high * other.high)
    }

    /// A share of it that is not known to be exact: `1 - self`, the ends exchanged, never below 0.
    pub fn rest(self) -> Range {
        Range::new(1.0 - self.high, 1.0 - self.likely, 1.0 - self.low)
    }

    /// None of the three above `most`.
    pub fn at_most(self, most: f64) -> Range {
        Range::new(self.low.min(most), self.likely.min(most), self.high.min(most))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_number() -> impl Strategy<Value = f64> {
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), -1e12..1e12f64]
    }

    fn holds(r: Range) -> bool {
        0.0 <= r.low && r.low <= r.likely && r.likely <= r.high && r.high.is_finite()
    }

    proptest! {
        #[test]
        fn whatever_goes_in_the_ends_enclose_the_value(a in any_number(), b in any_number(), c in any_number()) {
            let r = Range::new(a, b, c);
            prop_assert!(holds(r), "{r:?}");
            prop_assert!(holds(r.rest()) && holds(r.times(r)) && holds(r.at_most(a.abs())));
        }
    }

    #[test]
    fn the_rest_of_a_share_exchanges_the_ends() {
        let rest = Range::new(0.25, 0.5, 1.0).rest();
        assert_eq!(rest, Range { low: 0.0, likely: 0.5, high: 0.75 });
    }
}
