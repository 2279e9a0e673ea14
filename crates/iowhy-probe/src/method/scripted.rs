//! The false machine: a stack model in virtual time. Every later stage is exactly testable against it, because the
//! true costs are the model's.

use std::sync::Arc;

use iowhy_core::model::StackModel;
use iowhy_core::problem::Problem;
use iowhy_core::workload::Workload;

use crate::access::{Access, Completion, Failure, Request};
use crate::clock::Clock;

/// What a scripted target does.
#[derive(Debug)]
pub struct Script {
    /// The true costs.
    pub model: StackModel,
    /// Relative standard deviation of every cost, drawn from the seed; 0 is exact.
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// Size of the scripted target.
    pub size_bytes: u64,
    /// The request with this number (from 0, per thread) fails with EIO.
    pub fail_at: Option<u64>,
}

impl Script {
    /// Placeholder with the signature that `target::resolve` calls; the method's own branch has the real one.
    pub fn from_spec(spec: &str) -> Result<Script, Problem> {
        Err(Problem::refused(format!("`{spec}`: scripted targets are not there yet")))
    }
}

/// A thread's access to the scripted machine.
pub struct Scripted {}

impl Scripted {
    /// Binds the script to a workload and a virtual clock.
    pub fn new(_script: &Arc<Script>, _workload: &Workload, _clock: &Clock) -> Self {
        Scripted {}
    }
}

impl Access for Scripted {
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
