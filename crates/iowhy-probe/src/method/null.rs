//! The false method that answers at once: whatever it costs is ours.
use crate::access::{Access, Completion, Failure, Request};

/// Answers at once.
pub struct Null {}

impl Null {
    /// A null method of this depth.
    pub fn new(_depth: usize) -> Self {
        Null {}
    }
}

impl Access for Null {
    fn capacity(&self) -> usize {
        1
    }
    fn submit(&mut self, _slot: usize, _request: Request) -> Result<(), Failure> {
        Ok(())
    }
    fn reap(&mut self, _at_least: usize, _done: &mut Vec<Completion>) -> Result<(), Failure> {
        Ok(())
    }
    fn data(&self, _slot: usize) -> Option<&[u8]> {
        None
    }
}
