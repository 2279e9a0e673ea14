//! Which costs the measured rungs and sizes can tell apart, in which order, and a note for each one that they cannot.
//!
//! The order is that of the storeys: a stage solves for its own costs with those of the stages before it fixed, so
//! that what a higher rung does against the linear form cannot bend a lower one. Without a rung at the end of the
//! file, only memory and cached file together tell file system from cache, and all rungs are solved as one stage.

use std::collections::BTreeSet;

use super::equation::{Table, Term};
use crate::calibration::{CalibrationCell, CalibrationRun};
use crate::per_request::mean_pages;

/// Costs that are solved together, from these rungs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stage {
    pub(super) rungs: Vec<CalibrationCell>,
    pub(super) terms: Vec<Term>,
}

/// The order of solving, and what the equations depend on.
#[derive(Clone, Debug)]
pub(super) struct Stages {
    pub(super) table: Table,
    pub(super) stages: Vec<Stage>,
}

/// Which terms the measured rungs and sizes can tell apart. Notes what cannot be.
pub(super) fn identified(runs: &[&CalibrationRun<'_>], page_bytes: u64, notes: &mut Vec<String>) -> Stages {
    let measured = Measured { runs, page_bytes };
    let end_of_file = measured.has(CalibrationCell::EndOfFile);
    let mut storeys =
        vec![measured.below(notes), measured.cached(notes), measured.mapped(), measured.direct(notes)];
    if !end_of_file {
        let mut joint = Stage { rungs: Vec::new(), terms: Vec::new() };
        for storey in storeys.drain(..) {
            joint.rungs.extend(storey.rungs);
            joint.terms.extend(storey.terms);
        }
        storeys.push(joint);
    }
    storeys.extend([measured.zero(), measured.memory(), measured.ring(notes), measured.deep(notes)]);
    storeys.retain(|stage| !stage.terms.is_empty());
    Stages { table: Table { page_bytes, memory_apart: end_of_file }, stages: storeys }
}

/// The rungs and sizes at hand.
struct Measured<'a> {
    runs: &'a [&'a CalibrationRun<'a>],
    page_bytes: u64,
}

impl Measured<'_> {
    fn has(&self, rung: CalibrationCell) -> bool {
        self.runs.iter().any(|r| r.cell == rung)
    }

    fn sizes(&self, rungs: &[CalibrationCell]) -> BTreeSet<u64> {
        self.runs.iter().filter(|r| rungs.contains(&r.cell)).map(|r| r.run.workload.block_bytes).collect()
    }

    /// Pages and bytes are proportional for every size: nothing tells the two costs apart.
    fn proportional(&self, sizes: &BTreeSet<u64>) -> bool {
        sizes
            .iter()
            .all(|&b| (mean_pages(b, self.page_bytes) * self.page_bytes as f64 - b as f64).abs() < 0.5)
    }

    /// The call, and what is paid before any page is looked up.
    fn below(&self, notes: &mut Vec<String>) -> Stage {
        let mut terms = Vec::new();
        let mut rungs =
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
            rungs.push(CalibrationCell::ZeroDevice);
            terms.extend([Term::Vfs, Term::Zero]);
        } else if self.has(CalibrationCell::EndOfFile) {
            note(notes, "no /dev/null rung: the VFS is not separated from the rest of `filesystem`");
        } else {
            note(notes, "no /dev/null rung: the VFS is not separated from `cache` and `block`");
        }
        if self.has(CalibrationCell::EndOfFile) {
            terms.push(Term::FileCall);
        }
        Stage { rungs, terms }
    }

    /// Look-up of pages and copy: of the cached file alone where the end of the file tells what the file system
    /// costs, else of cached and memory file together.
    fn cached(&self, notes: &mut Vec<String>) -> Stage {
        let end_of_file = self.has(CalibrationCell::EndOfFile);
        let mut rungs = vec![CalibrationCell::CachedFile];
        if !end_of_file {
            rungs.push(CalibrationCell::Memory);
        }
        let sizes = self.sizes(&rungs);
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
            } else if sizes.len() > 1 && self.has(CalibrationCell::Copy) {
                terms.push(Term::CachePage);
                note(notes, "no cached size below the page: `copy` is taken from a copy in user memory");
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
                    note(notes, "no memory-file rung: the file system's own cost is booked under `cache`")
                }
                _ => {}
            }
        }
        rungs.push(CalibrationCell::Copy);
        Stage { rungs, terms }
    }

    fn mapped(&self) -> Stage {
        let rungs = vec![CalibrationCell::MappedFile];
        let sizes = self.sizes(&rungs);
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
        Stage { rungs, terms }
    }

    fn direct(&self, notes: &mut Vec<String>) -> Stage {
        let rungs = vec![CalibrationCell::DirectFile, CalibrationCell::RawDevice];
        let sizes = self.sizes(&rungs);
        let mut terms = Vec::new();
        if sizes.is_empty() {
            note(notes, "no direct rung: `block` and `device` are not in the model");
            return Stage { rungs, terms };
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
        Stage { rungs, terms }
    }

    /// Zeroing, where `/dev/null` has told what stands below it.
    fn zero(&self) -> Stage {
        let known_below =
            self.has(CalibrationCell::NullDevice) || self.sizes(&[CalibrationCell::ZeroDevice]).len() < 2;
        let terms =
            if known_below && self.has(CalibrationCell::ZeroDevice) { vec![Term::Zero] } else { Vec::new() };
        Stage { rungs: vec![CalibrationCell::ZeroDevice], terms }
    }

    /// A memory file on its own, where it was not needed to explain the cached file.
    fn memory(&self) -> Stage {
        let rungs = vec![CalibrationCell::Memory];
        let sizes = self.sizes(&rungs);
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
        Stage { rungs, terms }
    }

    /// What a ring costs instead of a call: only where the call is known apart from what stands above it.
    fn ring(&self, notes: &mut Vec<String>) -> Stage {
        let known = self.has(CalibrationCell::Syscall) && self.has(CalibrationCell::CachedFile);
        let mut terms = Vec::new();
        if self.has(CalibrationCell::RingMemory) {
            if known {
                terms.push(Term::Ring);
            } else {
                note(notes, "no cached file or no bare system call: what a ring costs is not known apart");
            }
        }
        Stage { rungs: vec![CalibrationCell::RingMemory], terms }
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
                note(notes, "one deep queue: what a batch costs is booked per request, as at that depth");
            }
            if !self.has(CalibrationCell::RingMemory) {
                note(notes, "no ring rung: what a ring costs is booked under `block` for deep queues");
            }
        }
        Stage { rungs: vec![CalibrationCell::DirectDeep], terms }
    }
}

fn note(notes: &mut Vec<String>, text: &str) {
    notes.push(text.to_owned());
}
