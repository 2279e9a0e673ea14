//! The union of byte intervals, with a bound on its memory: which bytes of a file were moved before.

/// Disjoint runs of bytes in ascending order. Runs that touch are one run, so that a sequential stream needs one.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    /// `(start, end)`, end exclusive.
    runs: Vec<(u64, u64)>,
    limit: usize,
}

impl Intervals {
    /// An empty union of at most `limit` runs.
    pub(super) fn new(limit: usize) -> Self {
        Intervals { runs: Vec::new(), limit }
    }

    /// Adds `length` bytes from `start`. Returns how many of them were new; `None` when one more run would be needed
    /// than the limit allows: then nothing was added and nothing can be said.
    pub(super) fn insert(&mut self, start: u64, length: u64) -> Option<u64> {
        let end = start.saturating_add(length);
        if end == start {
            return Some(0);
        }
        // The runs in `first..last` overlap or touch the new one.
        let first = self.runs.partition_point(|run| run.1 < start);
        let last = self.runs.partition_point(|run| run.0 <= end);
        if first == last {
            if self.runs.len() >= self.limit {
                return None;
            }
            self.runs.insert(first, (start, end));
            return Some(end - start);
        }
        let known: u64 =
            self.runs[first..last].iter().map(|run| run.1.min(end).saturating_sub(run.0.max(start))).sum();
        self.runs[first] = (self.runs[first].0.min(start), self.runs[last - 1].1.max(end));
        self.runs.drain(first + 1..last);
        Some(end - start - known)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn overlaps_touches_and_gaps_by_hand() {
        let mut seen = Intervals::new(8);
        assert_eq!(seen.insert(0, 10), Some(10));
        assert_eq!(seen.insert(20, 10), Some(10));
        assert_eq!(seen.insert(10, 10), Some(10), "it fills the gap exactly");
        assert_eq!(seen.runs, [(0, 30)]);
        assert_eq!(seen.insert(5, 30), Some(5));
        assert_eq!(seen.insert(0, 35), Some(0));
        assert_eq!(seen.insert(7, 0), Some(0));
        assert_eq!(seen.insert(u64::MAX - 1, 100), Some(1), "the end of the number line is the end");
    }

    #[test]
    fn a_full_union_still_grows_what_it_has_but_takes_no_new_run() {
        let mut seen = Intervals::new(2);
        assert_eq!(seen.insert(0, 1), Some(1));
        assert_eq!(seen.insert(10, 1), Some(1));
        assert_eq!(seen.insert(20, 1), None);
        assert_eq!(seen.insert(1, 4), Some(4));
        assert_eq!(seen.insert(5, 5), Some(5));
        assert_eq!(seen.runs, [(0, 11)]);
        assert_eq!(seen.insert(20, 1), Some(1));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_bitmap(steps in prop::collection::vec((0_u64..200, 0_u64..40), 0..120)) {
            let mut seen = Intervals::new(usize::MAX);
            let mut bitmap = [false; 256];
            for (start, length) in steps {
                let bits = &mut bitmap[start as usize..(start + length) as usize];
                let fresh = bits.iter().filter(|bit| !**bit).count() as u64;
                bits.fill(true);
                prop_assert_eq!(seen.insert(start, length), Some(fresh));
                prop_assert!(seen.runs.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
            let covered: u64 = seen.runs.iter().map(|run| run.1 - run.0).sum();
            prop_assert_eq!(covered, bitmap.iter().filter(|bit| **bit).count() as u64);
        }
    }
}
