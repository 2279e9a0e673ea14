//! Which costs the measured cells and sizes identify, in which order, and a note for each cost that they do not.
//!
//! A stage solves for its costs with those of the stages before it fixed: a deviation of a higher cell from the linear form
//! cannot bend a lower one. Without a cell at the end of the file, only memory and cached file together separate file system
//! from cache, and these cells are solved as one stage.

use std::collections::BTreeSet;

use super::equation::{Table, Term};
use crate::calibration::{CalibrationCell, CalibrationRun};
use crate::per_request::mean_pages;

/// Costs that are solved together, from these calibration cells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stage {
    pub(super) cells: Vec<CalibrationCell>,
    pub(super) terms: Vec<Term>,
}

/// The order of solving, and what the equations depend on.
#[derive(Clone, Debug)]
pub(super) struct Stages {
    pub(super) table: Table,
    pub(super) stages: Vec<Stage>,
}

/// Which terms the measured cells and sizes identify, with a note for each that they do not.
pub(super) fn identified(runs: &[&CalibrationRun<'_>], page_bytes: u64, notes: &mut Vec<String>) -> Stages {
    let measured = Measured { runs, page_bytes };
    let end_of_file = measured.has(CalibrationCell::EndOfFile);
    let mut stages =
        vec![measured.below(notes), measured.cached(notes), measured.mapped(), measured.direct(notes)];
    if !end_of_file {
        let mut joint = Stage { cells: Vec::new(), terms: Vec::new() };
        for stage in stages.drain(..) {
            joint.cells.extend(stage.cells);
            joint.terms.extend(stage.terms);
        }
        stages.push(joint);
    }
    stages.extend([measured.zero(), measured.memory(), measured.ring(notes), measured.deep(notes)]);
    stages.retain(|stage| !stage.terms.is_empty());
    Stages { table: Table { page_bytes, memory_apart: end_of_file }, stages }
}

/// The calibration cells and sizes at hand.
struct Measured<'a> {
    runs: &'a [&'a CalibrationRun<'a>],
    page_bytes: u64,
}

impl Measured<'_> {
    fn has(&self, cell: CalibrationCell) -> bool {
        self.runs.iter().any(|r| r.cell == cell)
    }

    fn sizes(&self, cells: &[CalibrationCell]) -> BTreeSet<u64> {
        self.runs.iter().filter(|r| cells.contains(&r.cell)).map(|r| r.run.workload.block_bytes).collect()
    }

    /// Pages and bytes are proportional for every size: the two costs cannot be separated.
    fn proportional(&self, sizes: &BTreeSet<u64>) -> bool {
        sizes
            .iter()
            .all(|&b| (mean_pages(b, self.page_bytes) * self.page_bytes as f64 - b as f64).abs() < 0.5)
    }

    /// The call, and what is paid before any page is looked up.
    fn below(&self, notes: &mut Vec<String>) -> Stage {
        let mut terms = Vec::new();
        let mut cells =
            vec![CalibrationCell::Syscall, CalibrationCell::NullDevice, CalibrationCell::EndOfFile];
        if self.has(CalibrationCell::Syscall) {
            terms.push(Term::Call);
        } else {
            note(
                notes,
                "no bare system call was measured: `call` is booked under the next layer above the gap",
            );
        }
        if self.has(CalibrationCell::NullDevice) {
            terms.push(Term::Vfs);
        } else if self.sizes(&[CalibrationCell::ZeroDevice]).len() > 1 {
            cells.push(CalibrationCell::ZeroDevice);
            terms.extend([Term::Vfs, Term::Zero]);
        } else if self.has(CalibrationCell::EndOfFile) {
            note(notes, "no /dev/null cell: the VFS is not separated from the rest of `filesystem`");
        } else {
            note(notes, "no /dev/null cell: the VFS is not separated from `cache` and `block`");
        }
        if self.has(CalibrationCell::EndOfFile) {
            terms.push(Term::FileCall);
        }
        Stage { cells, terms }
    }

    /// Look-up of pages and copy: of the cached file alone where the end of the file shows the cost of the file
    /// system, else of cached and memory file together.
    fn cached(&self, notes: &mut Vec<String>) -> Stage {
        let end_of_file = self.has(CalibrationCell::EndOfFile);
        let mut cells = vec![CalibrationCell::CachedFile];
        if !end_of_file {
            cells.push(CalibrationCell::Memory);
        }
        let sizes = self.sizes(&cells);
        let mut terms = Vec::new();
        if !sizes.is_empty() {
            terms.push(Term::CacheCall);
            if sizes.len() > 1 {
                terms.push(Term::Copy);
            } else {
                note(notes, "one cached block size: `copy` is not separated from `cache`");
            }
            if sizes.len() > 2 && !self.proportional(&sizes) {
                terms.push(Term::CachePage);
            } else if sizes.len() > 1 {
                note(
                    notes,
                    "no cached size below the page: the cache's cost per page is booked under `copy`",
                );
            }
        }
        if !end_of_file {
            match (self.has(CalibrationCell::Memory), self.has(CalibrationCell::CachedFile)) {
                (true, true) => {
                    terms.push(Term::FileCall);
                    let memory = self.sizes(&[CalibrationCell::Memory]);
                    if self.sizes(&[CalibrationCell::CachedFile]).intersection(&memory).count() > 1 {
                        terms.push(Term::FilePage);
                    }
                }
                (false, true) => {
                    note(notes, "no memory-file cell: the file system's own cost is booked under `cache`")
                }
                _ => {}
            }
        }
        Stage { cells, terms }
    }

    fn mapped(&self) -> Stage {
        let cells = vec![CalibrationCell::MappedFile];
        let sizes = self.sizes(&cells);
        let mut terms = Vec::new();
        if !sizes.is_empty() {
            terms.push(Term::MapPage);
            if sizes.len() > 1 {
                terms.push(Term::MapCall);
            }
            if sizes.len() > 2 && !self.proportional(&sizes) {
                terms.push(Term::MapByte);
            }
        }
        Stage { cells, terms }
    }

    fn direct(&self, notes: &mut Vec<String>) -> Stage {
        let cells = vec![CalibrationCell::DirectFile, CalibrationCell::RawDevice];
        let sizes = self.sizes(&cells);
        let mut terms = Vec::new();
        if sizes.is_empty() {
            note(notes, "no direct cell: `block` and `device` are not in the model");
            return Stage { cells, terms };
        }
        terms.extend([Term::BlockCall, Term::DeviceCall]);
        if sizes.len() > 1 {
            terms.extend([Term::BlockPage, Term::DeviceByte]);
        } else {
            note(
                notes,
                "one direct block size: costs per page and byte of `block` and `device` are booked per call",
            );
        }
        if sizes.len() > 2 && !self.proportional(&sizes) {
            terms.push(Term::BlockByte);
        } else if sizes.len() > 1 {
            note(notes, "no direct size below the page: the block layer's cost per byte is booked per page");
        }
        Stage { cells, terms }
    }

    /// Zeroing, where `/dev/null` has the cost below it.
    fn zero(&self) -> Stage {
        let known_below =
            self.has(CalibrationCell::NullDevice) || self.sizes(&[CalibrationCell::ZeroDevice]).len() < 2;
        let terms =
            if known_below && self.has(CalibrationCell::ZeroDevice) { vec![Term::Zero] } else { Vec::new() };
        Stage { cells: vec![CalibrationCell::ZeroDevice], terms }
    }

    /// A memory file on its own, where it was not needed to explain the cached file.
    fn memory(&self) -> Stage {
        let cells = vec![CalibrationCell::Memory];
        let sizes = self.sizes(&cells);
        let mut terms = Vec::new();
        if self.has(CalibrationCell::EndOfFile) && !sizes.is_empty() {
            terms.push(Term::MemoryCall);
            if sizes.len() > 1 {
                terms.push(Term::MemoryByte);
            }
            if sizes.len() > 2 && !self.proportional(&sizes) {
                terms.push(Term::MemoryPage);
            }
        }
        Stage { cells, terms }
    }

    /// What a ring costs instead of a call: only where the cost of the call is known.
    fn ring(&self, notes: &mut Vec<String>) -> Stage {
        let known = self.has(CalibrationCell::Syscall) && self.has(CalibrationCell::CachedFile);
        let mut terms = Vec::new();
        if self.has(CalibrationCell::RingMemory) {
            if known {
                terms.push(Term::Ring);
            } else {
                note(notes, "no cached file or no bare system call: the cost of a ring is not separated");
            }
        }
        Stage { cells: vec![CalibrationCell::RingMemory], terms }
    }

    fn deep(&self, notes: &mut Vec<String>) -> Stage {
        let depths: BTreeSet<usize> = self
            .runs
            .iter()
            .filter(|r| r.cell == CalibrationCell::DirectDeep)
            .map(|r| r.run.workload.depth)
            .collect();
        let mut terms = Vec::new();
        if !depths.is_empty() {
            terms.push(Term::DeepCall);
            if depths.len() > 1 {
                terms.push(Term::DeepBatch);
            } else {
                note(notes, "one deep queue: the cost of a batch is booked per request, as at that depth");
            }
            if !self.has(CalibrationCell::RingMemory) {
                note(notes, "no ring cell: the cost of a ring is booked under `block` for deep queues");
            }
        }
        Stage { cells: vec![CalibrationCell::DirectDeep], terms }
    }
}

fn note(notes: &mut Vec<String>, text: &str) {
    notes.push(text.to_owned());
}
