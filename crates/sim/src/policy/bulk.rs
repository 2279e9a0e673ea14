//! Caches that are only counted: many references in, the number of misses out. This is what curves are made of.
//!
//! The evicted blocks are not reported; see [`BlockCache`](super::BlockCache) for that.

use std::fmt::Debug;

use iowhy_core::problem::Problem;

use super::engine::{IdOf, Policy};
use super::index::Known;
use super::logs::Logs;
use super::{OfAny, PolicyId, cache_of, check_capacity, needs_the_future, with_policies, with_policy};

/// A cache under a stream of references to blocks with numbers of type `Id`.
pub trait Bulk<Id>: Debug + Send {
    /// References in order; returns the number of misses.
    fn references(&mut self, blocks: &[Id]) -> u64;

    /// One reference: true is a hit.
    fn reference(&mut self, block: Id) -> bool;

    /// Bytes of memory that the cache itself holds, ghosts and index included.
    fn memory_bytes(&self) -> u64;
}

/// A policy, hidden behind the trait.
#[derive(Debug)]
struct Counted<P>(P);

impl<P: Policy> Bulk<IdOf<P>> for Counted<P> {
    fn references(&mut self, blocks: &[IdOf<P>]) -> u64 {
        self.0.references(blocks)
    }

    fn reference(&mut self, block: IdOf<P>) -> bool {
        self.0.reference(block)
    }

    fn memory_bytes(&self) -> u64 {
        self.0.blocks().memory_bytes() + self.0.beside_bytes()
    }
}

fn boxed<P: Policy + 'static>(policy: P) -> Box<dyn Bulk<IdOf<P>>> {
    Box::new(Counted(policy))
}

/// A cache of blocks with dense numbers from 0 up: the fastest; 4 bytes for each number up to the highest, beside the blocks
/// in the cache.
///
/// # Errors
/// As [`new`](super::new).
pub fn bulk(policy: PolicyId, capacity: usize) -> Result<Box<dyn Bulk<u32>>, Problem> {
    check_capacity(policy, capacity)?;
    with_policy!(policy, Logs, capacity, boxed).ok_or_else(needs_the_future)
}

/// A cache of blocks with any numbers; memory grows with the blocks held only.
///
/// # Errors
/// As [`new`](super::new).
pub fn bulk_of_any(policy: PolicyId, capacity: usize) -> Result<Box<dyn Bulk<u64>>, Problem> {
    check_capacity(policy, capacity)?;
    with_policy!(policy, OfAny, capacity, boxed).ok_or_else(needs_the_future)
}
