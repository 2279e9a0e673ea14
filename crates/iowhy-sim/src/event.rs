//! The queue of what happens next, by time and then by the order in which it was planned: nothing depends on luck.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events that lie in the future. `E` is small: a kind and a number.
#[derive(Debug)]
pub(crate) struct Events<E> {
    heap: BinaryHeap<Reverse<Planned<E>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Planned<E> {
    time_ns: u64,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.time_ns, self.sequence) == (other.time_ns, other.sequence)
    }
}

impl<E> Eq for Planned<E> {}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Planned<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time_ns, self.sequence).cmp(&(other.time_ns, other.sequence))
    }
}

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Events { heap: BinaryHeap::new(), sequence: 0 }
    }

    /// Plans an event.
    #[inline]
    pub(crate) fn push(&mut self, time_ns: u64, event: E) {
        self.sequence += 1;
        self.heap.push(Reverse(Planned { time_ns, sequence: self.sequence, event }));
    }

    /// The next event and its time.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        self.heap.pop().map(|Reverse(planned)| (planned.time_ns, planned.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_first_then_the_order_of_planning() {
        let mut events = Events::new();
        for (time, name) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (0, 'e')] {
            events.push(time, name);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        assert_eq!(order, [(0, 'e'), (3, 'b'), (3, 'd'), (5, 'a'), (5, 'c')]);
    }
}
