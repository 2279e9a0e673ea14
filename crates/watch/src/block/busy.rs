//! The length of the union of time intervals that arrive in the order of their ends.

use std::collections::VecDeque;

/// Intervals kept open to be joined with later ones that began earlier.
const KEPT: usize = 4096;

/// Time in which at least one of the intervals lay.
#[derive(Debug, Default)]
pub(crate) struct BusyTime {
    /// Disjoint, in order; the last ones, which a later interval may still join.
    recent: VecDeque<(u64, u64)>,
    /// Length of those before.
    settled_ns: u64,
    /// End of those before: what lies below was counted, or is given up.
    settled_until: u64,
}

impl BusyTime {
    /// Adds an interval. Ends should not go down; an interval whose end does is cut to what still can be told.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        let mut start = start.max(self.settled_until);
        let mut end = end.max(start);
        while let Some(&(before_start, before_end)) = self.recent.back() {
            if before_end < start {
                break;
            }
            start = start.min(before_start);
            end = end.max(before_end);
            self.recent.pop_back();
        }
        self.recent.push_back((start, end));
        if self.recent.len() > KEPT
            && let Some((start, end)) = self.recent.pop_front()
        {
            self.settled_ns += end - start;
            self.settled_until = end;
        }
    }

    /// The length of the union.
    pub(crate) fn total_ns(&self) -> u64 {
        self.settled_ns + self.recent.iter().map(|(start, end)| end - start).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_bitmap(mut intervals in prop::collection::vec((0_u64..500, 0_u64..60), 0..200)) {
            intervals.sort_by_key(|(start, length)| start + length);
            let mut busy = BusyTime::default();
            let mut bitmap = [false; 600];
            for (start, length) in intervals {
                busy.add(start, start + length);
                bitmap[start as usize..(start + length) as usize].fill(true);
            }
            prop_assert_eq!(busy.total_ns(), bitmap.iter().filter(|bit| **bit).count() as u64);
        }

        #[test]
        fn disorder_keeps_the_intervals_apart(intervals in prop::collection::vec((any::<u64>(), any::<u64>()), 1..200)) {
            let mut busy = BusyTime::default();
            intervals.iter().for_each(|(start, end)| busy.add(*start, *end));
            // Disjoint intervals cannot add up to more than the number line.
            prop_assert!(busy.total_ns() <= u64::MAX - busy.recent[0].0);
            prop_assert!(busy.recent.iter().zip(busy.recent.iter().skip(1)).all(|(a, b)| a.1 < b.0));
        }
    }

    #[test]
    fn far_apart_intervals_are_settled_and_still_counted() {
        let mut busy = BusyTime::default();
        (0..10_000).for_each(|i| busy.add(i * 10, i * 10 + 3));
        assert_eq!(busy.total_ns(), 30_000);
        assert_eq!(busy.recent.len(), KEPT);
    }
}
