//! The test method that returns at once: its cost is iowhy's overhead.
//!
//! Goal: to be so cheap that a run with it measures the harness. Non-goal: resembling any real method.

use crate::access::{Access, Completion, Failure, Request};

/// Returns at once, with the requested number of bytes and none in memory.
#[derive(Debug)]
pub struct Null {
    ended: Vec<Completion>,
    capacity: usize,
}

impl Null {
    /// A null method that takes `depth` requests at once (at least one).
    pub fn new(depth: usize) -> Self {
        let capacity = depth.max(1);
        Null { ended: Vec::with_capacity(capacity), capacity }
    }
}

impl Access for Null {
    fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    fn submit(&mut self, slot: usize, request: Request) -> Result<(), Failure> {
        self.ended.push(Completion { slot, bytes: request.bytes });
        Ok(())
    }

    #[inline]
    fn reap(&mut self, _at_least: usize, done: &mut Vec<Completion>) -> Result<(), Failure> {
        done.append(&mut self.ended);
        Ok(())
    }

    fn data(&self, _slot: usize) -> Option<&[u8]> {
        None
    }

    #[inline]
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        Ok(request.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_ends_once_with_its_bytes_in_order() {
        let mut null = Null::new(8);
        assert_eq!(null.capacity(), 8);
        let mut done = Vec::new();
        for slot in 0..8 {
            null.submit(slot, Request { offset: 0, bytes: 100 + slot, write: slot % 2 == 0 }).unwrap();
        }
        null.reap(1, &mut done).unwrap();
        assert_eq!(done, (0..8).map(|slot| Completion { slot, bytes: 100 + slot }).collect::<Vec<_>>());
        null.reap(0, &mut done).unwrap();
        assert_eq!(done.len(), 8, "nothing ends twice");
        assert_eq!(null.perform(Request { offset: 0, bytes: 7, write: false }), Ok(7));
        assert_eq!(Null::new(0).capacity(), 1);
    }
}
