//! What a cell's threads do and on what: handed from the campaign through the runner to the hot loop.

use iowhy_core::workload::Workload;

use crate::listed::RequestLists;
use crate::target::Target;

/// Workload and target of one cell in a slice.
#[derive(Clone, Copy, Debug)]
pub struct Arm<'a> {
    /// Workload.
    pub workload: &'a Workload,
    /// Of whom.
    pub target: &'a Target,
    /// The requests, where the workload's pattern does not say them.
    pub listed: Option<&'a RequestLists>,
    /// Bytes of each request at the workload's offsets, where they are fewer than a block.
    pub request_bytes: Option<u64>,
}
