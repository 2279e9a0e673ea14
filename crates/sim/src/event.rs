//! The event queue, by time and then by the order of planning: the result is deterministic.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Events that lie in the future, and those of this instant. `E` is small: a kind and a number.
///
/// Many events take no time. They were planned after everything that the heap holds for this instant, so they need no place
/// in it: a plain queue keeps the same order.
#[derive(Debug)]
pub(crate) struct Events<E> {
    heap: BinaryHeap<Reverse<Planned<E>>>,
    /// Planned at this instant for this instant, in the order of planning.
    at_once: VecDeque<E>,
    now_ns: u64,
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
        Events { heap: BinaryHeap::new(), at_once: VecDeque::new(), now_ns: 0, sequence: 0 }
    }

    /// Plans an event, at the present instant at the earliest.
    #[inline]
    pub(crate) fn push(&mut self, time_ns: u64, event: E) {
        if time_ns <= self.now_ns {
            self.at_once.push_back(event);
            return;
        }
        self.sequence += 1;
        self.heap.push(Reverse(Planned { time_ns, sequence: self.sequence, event }));
    }

    /// The next event and its time, which is the present instant from then on.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        if !self.at_once.is_empty() {
            // What the heap holds for this instant was planned before.
            let planned = self.heap.peek().is_some_and(|Reverse(next)| next.time_ns <= self.now_ns);
            if !planned {
                return self.at_once.pop_front().map(|event| (self.now_ns, event));
            }
        }
        let Reverse(planned) = self.heap.pop()?;
        self.now_ns = planned.time_ns;
        Some((planned.time_ns, planned.event))
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

    #[test]
    fn what_is_planned_at_an_instant_for_it_comes_behind_what_was_planned_before() {
        let mut events = Events::new();
        for (time, name) in [(7, 'a'), (7, 'b'), (9, 'e')] {
            events.push(time, name);
        }
        assert_eq!(events.pop(), Some((7, 'a')));
        events.push(7, 'c');
        events.push(8, 'd');
        events.push(7, 'f');
        let order: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        assert_eq!(order, [(7, 'b'), (7, 'c'), (7, 'f'), (8, 'd'), (9, 'e')]);
    }
}
