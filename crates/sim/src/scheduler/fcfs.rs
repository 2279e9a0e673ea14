//! First come, first served.

use std::collections::VecDeque;

use super::{Scheduler, Waiting};

/// A plain queue.
#[derive(Debug, Default)]
pub(super) struct Fcfs(VecDeque<Waiting>);

impl Scheduler for Fcfs {
    fn push(&mut self, _: u64, waiting: Waiting) {
        self.0.push_back(waiting);
    }

    fn pop(&mut self, _: u64, _: u64) -> Option<Waiting> {
        self.0.pop_front()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
