//! Which block leaves a full cache. One policy a file, all behind [`BlockCache`].
//!
//! What may not enter: time, what a miss costs, dirty state.

/// A cache of numbered blocks, all of one size. The numbers are the caller's.
pub trait BlockCache {
    /// Looks a block up, as a use of it. True: it is there.
    fn lookup(&mut self, block: u64) -> bool;

    /// Puts a block in that is not there; the blocks that had to leave for it are handed to `evicted`.
    fn insert(&mut self, block: u64, evicted: &mut dyn FnMut(u64));

    /// Whether a block is there, without counting as a use.
    fn contains(&self, block: u64) -> bool;

    /// Takes a block out. True: it was there.
    fn remove(&mut self, block: u64) -> bool;

    /// How many blocks are there.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many blocks there is room for.
    fn capacity(&self) -> usize;
}
