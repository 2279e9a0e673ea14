//! Puts things that overlap on as few lanes as possible, so that on each lane none overlaps another.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The lane of each thing. `times`: begin and end, in the order of the begins.
pub(super) fn lanes(times: impl Iterator<Item = (u64, u64)>) -> Vec<usize> {
    let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut free: BTreeSet<usize> = BTreeSet::new();
    let mut count = 0;
    let mut of = Vec::new();
    for (begin, end) in times {
        while let Some(Reverse((until, lane))) = busy.peek().copied() {
            if until > begin {
                break;
            }
            busy.pop();
            free.insert(lane);
        }
        let lane = free.pop_first().unwrap_or_else(|| {
            count += 1;
            count - 1
        });
        busy.push(Reverse((end, lane)));
        of.push(lane);
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_gets_a_lane_of_its_own_and_lanes_are_used_again() {
        assert_eq!(lanes([(0, 10), (5, 8), (8, 20), (10, 11), (10, 12)].into_iter()), [0, 1, 1, 0, 2]);
        assert_eq!(lanes([(0, 0), (0, 0)].into_iter()), [0, 0]);
    }
}
