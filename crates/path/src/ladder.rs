//! The ladder by subtraction: the same requests answered by one storey more each time, and what each storey adds.
//!
//! The method of the 1989 Minix posting: `/dev/null`, a null block device, the raw disk, the block disk, the file.
//! Goal: differences within rounds, with intervals, for every block size. Non-goal: a model (see [`crate::fit`]).
//! Invariant: only neighbours are subtracted, and only samples of the same round.

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::{Estimate, Unit};

use crate::per_request::paired_estimate;

/// One rung: what answers the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// The cheapest system call: entry, descriptor look-up, exit.
    Syscall,
    /// `pread` from `/dev/null`: the call and the dispatch through the VFS; no byte moves.
    NullDevice,
    /// `pread` at the end of the file: call, VFS and file system; no page is looked up and no byte moves.
    EndOfFile,
    /// `pread` from `/dev/zero`: and user memory is zeroed.
    ZeroDevice,
    /// `pread` from a memory file: page cache and copy, no file system with a disk layout, no device.
    Memory,
    /// `pread` from a file that is wholly in the cache.
    CachedFile,
    /// One byte of each page loaded from a mapping of a cached file.
    MappedFile,
    /// `pread` from a file that is not in the cache.
    ColdFile,
    /// `pread` with O_DIRECT from the block device under the file (root only).
    RawDevice,
    /// `pread` with O_DIRECT from the file.
    DirectFile,
    /// A page of a cached file through io_uring, many in flight: the call is shared by a batch.
    RingMemory,
    /// A page of the file with O_DIRECT through io_uring, many in flight; the depth is the workload's.
    DirectDeep,
    /// A copy from user memory to user memory, without the kernel.
    Copy,
}

impl Rung {
    /// The stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            Rung::Syscall => "syscall",
            Rung::NullDevice => "null-device",
            Rung::EndOfFile => "end-of-file",
            Rung::ZeroDevice => "zero-device",
            Rung::Memory => "memory",
            Rung::CachedFile => "cached-file",
            Rung::MappedFile => "mapped-file",
            Rung::ColdFile => "cold-file",
            Rung::RawDevice => "raw-device",
            Rung::DirectFile => "direct-file",
            Rung::RingMemory => "ring-memory",
            Rung::DirectDeep => "direct-deep",
            Rung::Copy => "copy",
        }
    }

    /// Whether the cost does not depend on the block size, so that one cell serves every size.
    fn sizeless(self) -> bool {
        matches!(self, Rung::Syscall | Rung::NullDevice | Rung::EndOfFile)
    }

    /// Whether the rung is measured over block sizes. Those that are not say what a call or a queue costs; to hold
    /// their only size out of a fit would say nothing.
    pub(crate) fn spans_sizes(self) -> bool {
        !self.sizeless() && !matches!(self, Rung::RingMemory | Rung::DirectDeep)
    }

    /// The rungs this one stands on, best first: the first that was measured is subtracted.
    fn neighbours(self) -> &'static [Rung] {
        match self {
            Rung::Syscall | Rung::Copy => &[],
            Rung::NullDevice => &[Rung::Syscall],
            Rung::EndOfFile => &[Rung::NullDevice, Rung::Syscall],
            Rung::ZeroDevice => &[Rung::NullDevice],
            Rung::Memory => &[Rung::NullDevice, Rung::Syscall],
            Rung::CachedFile => &[Rung::EndOfFile, Rung::Memory, Rung::NullDevice, Rung::Syscall],
            Rung::MappedFile => &[Rung::CachedFile],
            Rung::ColdFile => &[Rung::CachedFile],
            Rung::RawDevice => &[Rung::NullDevice, Rung::Syscall],
            Rung::DirectFile => &[Rung::RawDevice, Rung::NullDevice, Rung::Syscall],
            Rung::RingMemory => &[Rung::CachedFile],
            Rung::DirectDeep => &[Rung::DirectFile],
        }
    }
}

/// A measured rung.
#[derive(Clone, Copy, Debug)]
pub struct RungRun<'a> {
    /// Which rung.
    pub rung: Rung,
    /// Its cell; the block size is the workload's.
    pub run: &'a CellRun,
}

/// What one rung costs more than the one it stands on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The lower rung.
    pub from: Rung,
    /// The higher rung.
    pub to: Rung,
    /// Size of one request.
    pub block_bytes: u64,
    /// Requests in flight on the higher rung.
    pub depth: usize,
    /// Thread time per request of `to` less that of `from`, paired within rounds, in nanoseconds. Negative when the
    /// storey saves time (a mapping).
    pub difference: Estimate,
}

impl Step {
    /// What the difference pays for, in words.
    pub fn meaning(&self) -> &'static str {
        match (self.from, self.to) {
            (Rung::Syscall, Rung::NullDevice) => "dispatch through the VFS",
            (Rung::NullDevice, Rung::EndOfFile) => "this file system's entry, before any page",
            (_, Rung::EndOfFile) => "VFS and file system, before any page",
            (Rung::EndOfFile, Rung::CachedFile) => "page cache and copy",
            (_, Rung::ZeroDevice) => "zeroing user memory",
            (Rung::NullDevice, Rung::Memory) => "page cache and copy",
            (Rung::Memory, Rung::CachedFile) => "this file system beyond a memory file",
            (_, Rung::MappedFile) => "mapping instead of copying",
            (_, Rung::ColdFile) => "not being in the cache: insertion, block layer and device",
            (_, Rung::RawDevice) => "block layer and device",
            (Rung::RawDevice, Rung::DirectFile) => "file system under direct reads",
            (_, Rung::DirectFile) => "file system, block layer and device",
            (_, Rung::RingMemory) => "a ring with many requests instead of a call for each",
            (_, Rung::DirectDeep) => "many requests in flight instead of one",
            (_, Rung::Memory) => "VFS, page cache and copy",
            (_, Rung::CachedFile) => "file system, page cache and copy",
            _ => "everything between the two",
        }
    }
}

/// Subtracts from every rung the nearest measured rung that it stands on, for every block size of the higher rung.
/// Steps come in the order of rungs, then of sizes, then of depths. Rungs with no measured neighbour, or too few rounds in
/// common with it for an interval (three), give no step.
pub fn steps(runs: &[RungRun<'_>]) -> Vec<Step> {
    let mut higher: Vec<&RungRun<'_>> = runs.iter().collect();
    higher.sort_by_key(|r| (r.rung, r.run.workload.block_bytes, r.run.workload.depth));
    higher.into_iter().filter_map(|to| step(runs, to)).collect()
}

fn step(runs: &[RungRun<'_>], to: &RungRun<'_>) -> Option<Step> {
    let block_bytes = to.run.workload.block_bytes;
    let from = to.rung.neighbours().iter().find_map(|&rung| lower(runs, rung, block_bytes))?;
    let difference = paired_estimate(from.run, to.run, Unit::Nanoseconds, |below, above| {
        above.ns_per_request() - below.ns_per_request()
    })?;
    Some(Step { from: from.rung, to: to.rung, block_bytes, depth: to.run.workload.depth, difference })
}

/// The cell of a rung at this size; for a rung whose cost does not depend on the size, any cell.
fn lower<'a, 'b>(runs: &'b [RungRun<'a>], rung: Rung, block_bytes: u64) -> Option<&'b RungRun<'a>> {
    let mut of_rung = runs.iter().filter(|r| r.rung == rung);
    let exact = of_rung.clone().find(|r| r.run.workload.block_bytes == block_bytes);
    exact.or_else(|| if rung.sizeless() { of_rung.next() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Truth;

    fn cells(rungs: &[Rung], sizes: &[u64]) -> Vec<(Rung, CellRun)> {
        rungs
            .iter()
            .flat_map(|&r| sizes.iter().map(move |&s| (r, Truth::EXAMPLE.cell(r, s, 0.0, 1))))
            .collect()
    }

    fn runs(cells: &[(Rung, CellRun)]) -> Vec<RungRun<'_>> {
        cells.iter().map(|(rung, run)| RungRun { rung: *rung, run }).collect()
    }

    #[test]
    fn neighbours_differ_by_exactly_the_storey_between_them() {
        use Rung::*;
        let cells =
            cells(&[Syscall, NullDevice, ZeroDevice, Memory, CachedFile, MappedFile, DirectFile], &[4096]);
        let t = Truth::EXAMPLE;
        let expected = [
            (Syscall, NullDevice, t.vfs),
            (NullDevice, ZeroDevice, t.zero * 4096.0),
            (NullDevice, Memory, t.cache.0 + t.cache.1 + t.copy * 4096.0),
            (Memory, CachedFile, t.file),
            (CachedFile, MappedFile, t.rung_ns(MappedFile, 4096).0 - t.rung_ns(CachedFile, 4096).0),
            (
                NullDevice,
                DirectFile,
                t.file + t.block.0 + t.block.1 + t.block.2 * 4096.0 + t.device.0 + t.device.1 * 4096.0,
            ),
        ];
        let steps = steps(&runs(&cells));
        assert_eq!(steps.len(), expected.len());
        for (step, (from, to, ns)) in steps.iter().zip(expected) {
            assert_eq!((step.from, step.to, step.difference.n), (from, to, 15));
            assert!((step.difference.value - ns).abs() < 1e-5 * ns.abs().max(1.0), "{step:?} against {ns}");
        }
    }

    #[test]
    fn a_missing_rung_is_stepped_over_and_one_syscall_cell_serves_all_sizes() {
        let mut cells = cells(&[Rung::CachedFile], &[512, 65_536]);
        cells.push((Rung::Syscall, Truth::EXAMPLE.cell(Rung::Syscall, 4096, 0.0, 1)));
        let steps = steps(&runs(&cells));
        let found: Vec<_> = steps.iter().map(|s| (s.from, s.to, s.block_bytes)).collect();
        assert_eq!(
            found,
            [(Rung::Syscall, Rung::CachedFile, 512), (Rung::Syscall, Rung::CachedFile, 65_536)]
        );
        assert_eq!(steps[0].meaning(), "file system, page cache and copy");
    }

    #[test]
    fn the_end_of_the_file_stands_between_the_null_device_and_the_page_cache() {
        use Rung::*;
        let mut cells = cells(&[CachedFile], &[4096, 65_536]);
        for rung in [NullDevice, EndOfFile] {
            cells.push((rung, Truth::EXAMPLE.cell(rung, 4096, 0.0, 1)));
        }
        let t = Truth::EXAMPLE;
        let found: Vec<_> = steps(&runs(&cells))
            .iter()
            .map(|s| (s.from, s.to, s.block_bytes, s.meaning(), (s.difference.value * 1e3).round() / 1e3))
            .collect();
        let above = |bytes: f64| t.cache.0 + t.cache.1 * bytes / 4096.0 + t.copy * bytes;
        assert_eq!(
            found,
            [
                (NullDevice, EndOfFile, 4096, "this file system's entry, before any page", t.file),
                (EndOfFile, CachedFile, 4096, "page cache and copy", above(4096.0)),
                (EndOfFile, CachedFile, 65_536, "page cache and copy", above(65_536.0)),
            ]
        );
    }

    #[test]
    fn every_deep_queue_is_held_against_one_request_in_flight() {
        let t = Truth::EXAMPLE;
        let cells = [
            (Rung::DirectDeep, t.deep_cell(64, 0.0, 1)),
            (Rung::DirectDeep, t.deep_cell(16, 0.0, 1)),
            (Rung::DirectFile, t.cell(Rung::DirectFile, 4096, 0.0, 1)),
        ];
        let steps = steps(&runs(&cells));
        assert_eq!(
            steps.iter().map(|s| (s.from, s.to, s.depth)).collect::<Vec<_>>(),
            [(Rung::DirectFile, Rung::DirectDeep, 16), (Rung::DirectFile, Rung::DirectDeep, 64),]
        );
        assert!(steps.iter().all(|s| s.difference.value < 0.0));
    }

    #[test]
    fn rungs_of_different_sizes_are_never_subtracted() {
        let cells = [
            (Rung::Memory, Truth::EXAMPLE.cell(Rung::Memory, 4096, 0.0, 1)),
            (Rung::CachedFile, Truth::EXAMPLE.cell(Rung::CachedFile, 8192, 0.0, 1)),
        ];
        assert!(steps(&runs(&cells)).is_empty());
    }
}
