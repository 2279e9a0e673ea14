//! Memory that processes mapped while their calls were recorded, and the file behind it. What was mapped before is not known, nor are pieces
//! that mremap(2) moved.

use std::collections::HashMap;

use iowhy_core::profile::{Step, StepKind};

use super::CallRecord;

/// Less anonymous memory than this is the small change of an allocator.
const MIN_TAKEN_BYTES: u64 = 64 << 10;
/// MADV_NORMAL, _RANDOM, _SEQUENTIAL: each takes the place of the one before.
const ORDERS: [u32; 3] = [0, 1, 2];
/// Pieces of memory that are remembered of one process.
const MAX_PIECES: usize = 1024;

/// A place in a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    /// Its serial number.
    pub(super) file: u32,
    pub(super) offset: u64,
    /// What madvise(2) said last of the order of accesses here.
    pub(super) advice: u32,
}

/// Memory that was mapped in this stretch.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    bytes: u64,
    /// `None`: anonymous.
    file: Option<Mapped>,
    /// Anonymous, and nothing was read into it yet.
    unused: bool,
}

impl Piece {
    fn holds(&self, at: u64) -> bool {
        at.checked_sub(self.start).is_some_and(|into| into < self.bytes)
    }

    /// The place in the file at an address that it holds.
    fn file_at(&self, at: u64) -> Option<Mapped> {
        let Mapped { file, offset, advice } = self.file?;
        Some(Mapped { file, offset: offset.saturating_add(at.saturating_sub(self.start)), advice })
    }
}

/// The pieces of all processes.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    by_process: HashMap<u32, Vec<Piece>>,
    /// Who a process was forked by: it begins with what that one has mapped.
    parents: HashMap<u32, u32>,
}

impl Pieces {
    pub(super) fn clear(&mut self) {
        self.by_process.clear();
    }

    /// Follows processes that come, and programs that they execute. Of threads that are born an entry is made, and used by nobody.
    pub(super) fn follow(&mut self, record: &CallRecord) {
        if executes(record.number) {
            // Known, with nothing in it.
            self.by_process.insert(record.pid, Vec::new());
        } else if forks(record.number)
            && let Ok(child) = u32::try_from(record.value)
        {
            self.parents.insert(child, record.pid);
        }
    }

    fn of(&mut self, pid: u32) -> &mut Vec<Piece> {
        if !self.by_process.contains_key(&pid) {
            let parent = self.parents.get(&pid).and_then(|parent| self.by_process.get(parent));
            let inherited = parent.cloned().unwrap_or_default();
            self.by_process.insert(pid, inherited);
        }
        self.by_process.entry(pid).or_default()
    }

    /// The file that is mapped at an address. What was mapped last is there.
    pub(super) fn file_at(&mut self, pid: u32, at: u64) -> Option<Mapped> {
        self.of(pid).iter().rev().find(|piece| piece.holds(at))?.file_at(at)
    }

    /// Follows memory that comes and goes. `memory`: its address. Returns whether the step is the first to use its memory; `None` where it
    /// concerns memory that is none of the program's files or buffers.
    pub(super) fn take(&mut self, pid: u32, step: &Step, memory: Option<u64>) -> Option<bool> {
        let pieces = self.of(pid);
        match (step.kind, memory) {
            (StepKind::MmapAnon, _) if step.bytes < MIN_TAKEN_BYTES => None,
            (StepKind::MmapAnon | StepKind::Map, Some(start)) => {
                let unused = step.kind == StepKind::MmapAnon;
                let file = step.file.zip(step.place).filter(|_| !unused);
                let file = file.map(|(file, offset)| Mapped { file, offset, advice: 0 });
                push(pieces, Piece { start, bytes: step.bytes, file, unused });
                Some(false)
            }
            (StepKind::Munmap, Some(start)) => {
                let at = pieces.iter().rposition(|piece| piece.holds(start))?;
                // The rest of a file stays mapped.
                if pieces[at].file.is_none() || step.bytes >= pieces[at].bytes {
                    pieces.remove(at);
                }
                Some(false)
            }
            (StepKind::AdviseMap, Some(at)) => {
                pieces.iter().any(|piece| piece.holds(at)).then_some(())?;
                if ORDERS.contains(&step.argument) {
                    advise(pieces, at, step.bytes, step.argument);
                }
                Some(false)
            }
            (StepKind::Read | StepKind::Write, Some(at)) => {
                let piece = pieces.iter_mut().rev().find(|piece| piece.holds(at));
                Some(piece.is_some_and(|piece| std::mem::take(&mut piece.unused)))
            }
            _ => Some(false),
        }
    }
}

fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    if pieces.len() >= MAX_PIECES {
        // Files are few, and stay.
        let oldest = pieces.iter().position(|piece| piece.file.is_none()).unwrap_or(0);
        pieces.remove(oldest);
    }
    pieces.push(piece);
}

/// Advice on a part of a piece makes that part a piece of its own.
fn advise(pieces: &mut Vec<Piece>, at: u64, bytes: u64, advice: u32) {
    let Some(piece) = pieces.iter_mut().rev().find(|piece| piece.holds(at)) else { return };
    let Some(mapped) = piece.file_at(at) else { return };
    let bytes = bytes.min(piece.bytes - (at - piece.start));
    let file = Some(Mapped { advice, ..mapped });
    if (at, bytes) == (piece.start, piece.bytes) {
        piece.file = file;
        return;
    }
    let part = Piece { start: at, bytes, file, unused: false };
    push(pieces, part);
}

fn executes(number: u32) -> bool {
    matches!(libc::c_long::from(number), libc::SYS_execve | libc::SYS_execveat)
}

fn forks(number: u32) -> bool {
    let number = libc::c_long::from(number);
    matches!(number, libc::SYS_clone | libc::SYS_clone3) || is_old_fork(number)
}

/// Calls that newer architectures left out.
#[cfg(target_arch = "x86_64")]
fn is_old_fork(number: libc::c_long) -> bool {
    matches!(number, libc::SYS_fork | libc::SYS_vfork)
}

/// Calls that newer architectures left out.
#[cfg(not(target_arch = "x86_64"))]
fn is_old_fork(_number: libc::c_long) -> bool {
    false
}
