//! Counting in blocks, pages or turns of a stripe: division by a number that is fixed for a run and is nearly always a
//! power of two, when a shift does.

/// A unit of one or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    size: u64,
    /// The power of two that it is; [`NONE`] for other numbers.
    shift: u32,
}

const NONE: u32 = 64;

impl Unit {
    /// A unit of this size; 0 counts as 1.
    pub(crate) fn new(size: u64) -> Unit {
        let size = size.max(1);
        Unit { size, shift: if size.is_power_of_two() { size.trailing_zeros() } else { NONE } }
    }

    /// How large it is.
    #[inline]
    pub(crate) fn size(self) -> u64 {
        self.size
    }

    /// Whole units in `n`.
    #[inline]
    pub(crate) fn floor(self, n: u64) -> u64 {
        if self.shift < NONE { n >> self.shift } else { n / self.size }
    }

    /// Whole units in `n`, and the remainder.
    #[inline]
    pub(crate) fn split(self, n: u64) -> (u64, u64) {
        let whole = self.floor(n);
        (whole, n - whole * self.size)
    }

    /// Units that hold `n`.
    #[inline]
    pub(crate) fn ceil(self, n: u64) -> u64 {
        let (whole, left) = self.split(n);
        whole + u64::from(left > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_divides(size in prop_oneof![Just(0), 1..100u64, (0..64u32).prop_map(|bit| 1 << bit), any::<u64>()], n: u64) {
            let unit = Unit::new(size);
            let by = size.max(1);
            prop_assert_eq!((unit.floor(n), unit.ceil(n), unit.split(n)), (n / by, n.div_ceil(by), (n / by, n % by)));
        }
    }
}
