//! The layers of the I/O path, top to bottom, and time split over them.
//!
//! Invariant: a [`Ledger`] built with [`Ledger::close`] sums to the whole it was closed with; time that the named
//! layers do not explain is [`Layer::Unexplained`], and may be negative when they explain too much.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// A layer of the path between a program's request and the disk. Waiting belongs to the layer that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The program's own user-mode code.
    Program,
    /// Entering and leaving the kernel, descriptor look-up, ring handling.
    Call,
    /// VFS and file system: path walk, open and stat, extent mapping, time stamps, inode work.
    Filesystem,
    /// Page cache: look-up, allocation, insertion, eviction, dirty accounting, read-ahead decisions.
    Cache,
    /// Moving bytes between kernel and user memory.
    Copy,
    /// Page faults, mapping, unmapping, TLB shoot-down, zeroing, reclaim; waiting for free memory.
    Memory,
    /// Building, merging, scheduling, queueing and throttling of block requests.
    Block,
    /// The driver, and the device's service of reads, writes and flushes, whoever waits for it, also inside an fsync.
    Device,
    /// Waiting for a commit of the journal or log, or for room in it, beyond the device's own share.
    Journal,
    /// Waiting because too much is dirty, or for a write-back that somebody else asked for.
    Writeback,
    /// Waiting for the server of a file system: NFS, SMB, Ceph, Lustre, 9p, FUSE, virtiofs. Client queue, wire and server
    /// together.
    Server,
    /// Waiting for a kernel lock: inode, address space, journal handle.
    Lock,
    /// Runnable, but no CPU was free.
    CpuQueue,
    /// Asleep on something off the path.
    Elsewhere,
    /// What counting and recording cost, inside the program's time.
    Observer,
    /// The honest remainder.
    Unexplained,
}

impl Layer {
    /// All layers, top to bottom.
    pub const ALL: [Layer; 16] = [
        Layer::Program,
        Layer::Call,
        Layer::Filesystem,
        Layer::Cache,
        Layer::Copy,
        Layer::Memory,
        Layer::Block,
        Layer::Device,
        Layer::Journal,
        Layer::Writeback,
        Layer::Server,
        Layer::Lock,
        Layer::CpuQueue,
        Layer::Elsewhere,
        Layer::Observer,
        Layer::Unexplained,
    ];

    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Layer::Program => "program",
            Layer::Call => "call",
            Layer::Filesystem => "filesystem",
            Layer::Cache => "cache",
            Layer::Copy => "copy",
            Layer::Memory => "memory",
            Layer::Block => "block",
            Layer::Device => "device",
            Layer::Journal => "journal",
            Layer::Writeback => "writeback",
            Layer::Server => "server",
            Layer::Lock => "lock",
            Layer::CpuQueue => "cpu-queue",
            Layer::Elsewhere => "elsewhere",
            Layer::Observer => "observer",
            Layer::Unexplained => "unexplained",
        }
    }
}

/// Time of one layer, for one request unless said otherwise, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerTime {
    /// Which layer.
    pub id: Layer,
    /// CPU time spent in it.
    pub busy_ns: f64,
    /// Time spent off the CPU, waiting in it.
    pub wait_ns: f64,
}

impl LayerTime {
    /// Busy and waiting time together.
    pub fn total_ns(&self) -> f64 {
        self.busy_ns + self.wait_ns
    }
}

/// Time of one layer for one request, with intervals: of each part alone, so that those of the parts do not add up to that
/// of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerEstimate {
    /// Which layer.
    pub id: Layer,
    /// CPU time spent in it.
    pub busy: Estimate,
    /// Time spent off the CPU, waiting in it.
    pub wait: Estimate,
    /// Both together.
    pub time: Estimate,
}

/// Time split over layers, in the order of [`Layer::ALL`]; layers that no time was added to are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ledger {
    entries: Vec<LayerTime>,
}

impl Ledger {
    /// Adds time to one layer.
    pub fn add(&mut self, id: Layer, busy_ns: f64, wait_ns: f64) {
        if busy_ns == 0.0 && wait_ns == 0.0 {
            return;
        }
        match self.entries.binary_search_by_key(&id, |e| e.id) {
            Ok(i) => {
                self.entries[i].busy_ns += busy_ns;
                self.entries[i].wait_ns += wait_ns;
            }
            Err(i) => self.entries.insert(i, LayerTime { id, busy_ns, wait_ns }),
        }
    }

    /// Adds the remainder of `busy_ns` and `wait_ns` to [`Layer::Unexplained`].
    pub fn close(&mut self, busy_ns: f64, wait_ns: f64) {
        let (busy, wait) = self.entries.iter().fold((0.0, 0.0), |(b, w), e| (b + e.busy_ns, w + e.wait_ns));
        self.add(Layer::Unexplained, busy_ns - busy, wait_ns - wait);
    }

    /// The entries, top to bottom.
    pub fn entries(&self) -> &[LayerTime] {
        &self.entries
    }

    /// The time of one layer, zero when it has none.
    pub fn get(&self, id: Layer) -> LayerTime {
        self.entries.iter().copied().find(|e| e.id == id).unwrap_or(LayerTime {
            id,
            busy_ns: 0.0,
            wait_ns: 0.0,
        })
    }

    /// The sum over all layers, in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.entries.iter().map(LayerTime::total_ns).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_ledger_sums_to_the_whole_whatever_was_booked() {
        for (call, wait) in [(100.0, 0.0), (900.0, 5000.0), (0.0, 0.0)] {
            let mut ledger = Ledger::default();
            ledger.add(Layer::Device, 0.0, wait);
            ledger.add(Layer::Call, call, 0.0);
            ledger.add(Layer::Call, 1.0, 0.0);
            ledger.close(500.0, 4000.0);
            assert!((ledger.total_ns() - 4500.0).abs() < 1e-9);
            assert!(ledger.entries().windows(2).all(|w| w[0].id < w[1].id), "ordered and unique");
        }
    }

    #[test]
    fn ids_are_what_json_says() {
        for layer in Layer::ALL {
            assert_eq!(serde_json::to_string(&layer).unwrap(), format!("\"{}\"", layer.id()));
        }
    }
}
