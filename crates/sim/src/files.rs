//! The files of a workload as known before a run: what layouts place and workloads address.

use iowhy_core::rng::Rng;

/// The files, as known before the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Many small files in directories; which size a file has, [`size_of`] says.
    Tree {
        /// Sizes in bytes.
        sizes: Vec<u64>,
        /// Directories.
        directories: u64,
        /// Files in all.
        files: u64,
    },
    /// A few files of one size.
    Files {
        /// How many.
        count: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// A trace: whatever comes.
    Unknown,
}

/// The size of a file of a tree: the sizes are mixed evenly, in an order without a period. (Sizes strictly in turn would
/// beat against the stripe, and some interleaves would look bad for no reason but that.)
pub fn size_of(file: u64, sizes: &[u64]) -> u64 {
    if sizes.is_empty() {
        return 0;
    }
    sizes[Rng::new(file).below(sizes.len() as u64) as usize]
}
