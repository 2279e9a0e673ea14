//! A replay plan: the calls of a part of a program's run, repeated in passes. Plain data, without I/O and without causes.
//!
//! Each pass shifts its offsets, so that page cache and device see new data, as they did from the program.

mod tree;

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

pub use self::tree::{OnFile, PlanTree, Touch};
use crate::profile::{FileIdentity, GroupLimit};

/// What a replay carries out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Files that actions refer to by index.
    pub files: Vec<PlanFile>,
    /// Actions of each thread, one pass.
    pub threads: Vec<Vec<Action>>,
    /// Passes, at least 1.
    pub passes: u32,
    /// Queue depth of direct reads of one thread on a ring; below 2: one after the other.
    pub depth: u32,
    /// Control groups of its threads; `None`: those of iowhy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<Placed>,
    /// The tree that [`Op::SmallFile`] works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<PlanTree>,
    /// Pages of mappings that stay are touched once before the time begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touched_before: bool,
}

/// Control groups in which a plan is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placed {
    /// Groups to join, at most one of each hierarchy.
    pub inside: Vec<PlacedGroup>,
    /// Groups to stay out of, with all groups below them: the plan runs without their limits.
    pub outside: Vec<String>,
}

/// Free space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its device number.
    pub file_system: u64,
    /// Bytes that may still be written.
    pub free_bytes: u64,
    /// Replays whose scratch files are there at the same time.
    pub replays: u64,
}

/// One of the groups of [`Placed::inside`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedGroup {
    /// Its directory.
    pub directory: String,
    /// Its limits, including those of its parents.
    pub limits: Vec<GroupLimit>,
}

/// How a file takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The user's file, opened read-only.
    User,
    /// An unnamed scratch file in the directory of the user's file, empty at first.
    ScratchEmpty,
    /// As [`Role::ScratchEmpty`], filled to the file's size.
    ScratchFull,
    /// /dev/null and other devices that discard data.
    Sink,
}

/// Page cache of a file when a replay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No page cached.
    Cold,
    /// All pages cached, as far as memory allows.
    Warm,
}

/// Access order announced to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// No advice.
    #[default]
    Normal,
    /// POSIX_FADV_RANDOM, MADV_RANDOM.
    Random,
    /// POSIX_FADV_SEQUENTIAL, MADV_SEQUENTIAL.
    Sequential,
}

/// A file that takes part in a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanFile {
    /// Path of the user's file, also where a scratch file replaces it.
    pub path: String,
    /// How it takes part.
    pub role: Role,
    /// `st_dev` of the file; a scratch file must be on the same file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<u64>,
    /// Identity that it must still have; only for [`Role::User`].
    pub identity: Option<FileIdentity>,
    /// Size in bytes. Offsets wrap around at it, unless the file grows.
    pub size_bytes: u64,
    /// O_DIRECT.
    pub direct: bool,
    /// O_DSYNC.
    pub durable: bool,
    /// Page cache when the replay begins.
    pub state: State,
    /// Ranges of a cold file that are in the page cache all the same: offset and length, in bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cached: Vec<[u64; 2]>,
    /// Advice given after opening.
    pub advice: Advice,
    /// Distance between the offsets of one pass and the next.
    pub shift_bytes: u64,
    /// Offset of the buffer into a page. Buffers of requests on a ring are page-aligned.
    #[serde(default)]
    pub buffer_offset: u16,
}

impl PlanFile {
    /// An empty cached file: buffered, no advice, same offsets in each pass.
    pub fn new(path: impl Into<String>, role: Role) -> PlanFile {
        PlanFile {
            path: path.into(),
            role,
            file_system: None,
            identity: None,
            size_bytes: 0,
            direct: false,
            durable: false,
            state: State::Warm,
            cached: Vec::new(),
            advice: Advice::Normal,
            shift_bytes: 0,
            buffer_offset: 0,
        }
    }

    /// Where a call on it begins, that many passes behind its offset in the plan. Wrapped offsets are those of whole blocks, so that
    /// direct requests stay aligned.
    pub fn place(&self, offset: u64, bytes: u64, passes: u64) -> u64 {
        let offset = offset.wrapping_add(passes.wrapping_mul(self.shift_bytes));
        if self.role == Role::ScratchEmpty || offset.saturating_add(bytes) <= self.size_bytes {
            return offset;
        }
        let whole = (self.size_bytes / 4096 * 4096).max(1);
        let wrapped = offset % whole;
        if wrapped.saturating_add(bytes) > self.size_bytes { 0 } else { wrapped }
    }
}

/// One kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ReplayOp")]
pub enum Op {
    /// pread.
    Read {
        /// Into memory that is mapped for the call and unmapped after it.
        fresh: bool,
    },
    /// pwrite.
    Write,
    /// lseek.
    Seek,
    /// fsync, or fdatasync without `metadata`.
    Fsync {
        /// Whether metadata is written too.
        metadata: bool,
    },
    /// fsync of the directory in which [`Op::MakeFile`] makes the file.
    SyncDirectory,
    /// fallocate of a range: blocks without data.
    Allocate {
        /// FALLOC_FL_KEEP_SIZE.
        keep_size: bool,
    },
    /// posix_fadvise(POSIX_FADV_DONTNEED) of a range.
    FadviseDontNeed,
    /// posix_fadvise(POSIX_FADV_WILLNEED) of a range.
    FadviseWillNeed,
    /// sync_file_range(SYNC_FILE_RANGE_WRITE) of a range: starts write-back without waiting.
    SyncFileRange,
    /// Empties a written scratch file, so that nothing in it stays dirty. Its time does not count.
    Truncate,
    /// Makes a scratch file under a name. Only for [`Role::ScratchEmpty`]; later calls on the file go to the new one.
    MakeFile {
        /// Whether the one before stays until the end of the run, as files do that are renamed into place; else it is removed
        /// first, as journals are.
        stays: bool,
    },
    /// mmap of the range, read of one byte per page, munmap.
    MapReadUnmap {
        /// MAP_POPULATE.
        populate: bool,
    },
    /// Reads one byte per page of the range. The thread maps the file once for the whole replay.
    TouchPages,
    /// As [`Op::TouchPages`], one byte per cache line of 64 bytes.
    TouchLines,
    /// mmap and munmap of anonymous memory; file and offset are ignored.
    MmapAnon {
        /// MAP_POPULATE; otherwise one byte per page is written.
        populate: bool,
    },
    /// All calls on one file of [`Plan::tree`]. The offset is the number of the file; no file of [`Plan::files`] takes
    /// part.
    SmallFile,
}

impl Op {
    /// Whether it makes something durable that was written before.
    pub fn is_sync(self) -> bool {
        matches!(self, Op::Fsync { .. } | Op::SyncDirectory)
    }

    /// Whether it makes a file under a name.
    pub fn makes_file(self) -> bool {
        matches!(self, Op::MakeFile { .. })
    }
}

/// Calls of one thread on one file, evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// Kind of call.
    pub op: Op,
    /// Index into [`Plan::files`].
    pub file: u32,
    /// Offset of the first call.
    pub offset: u64,
    /// Bytes per call.
    pub bytes: u64,
    /// Number of calls.
    pub count: u32,
    /// Distance from one offset to the next.
    pub stride: i64,
    /// CPU time of the program before each call.
    pub think_ns: f64,
}

impl Action {
    /// One call.
    pub fn one(op: Op, file: u32, offset: u64, bytes: u64, think_ns: f64) -> Action {
        Action { op, file, offset, bytes, count: 1, stride: 0, think_ns }
    }

    /// Offset of the `i`-th call.
    pub fn at(&self, i: u32) -> u64 {
        self.offset.saturating_add_signed(self.stride.saturating_mul(i64::from(i)))
    }
}

impl Plan {
    /// Calls per pass.
    pub fn calls(&self) -> u64 {
        let each = self.tree.as_ref().map_or(1.0, PlanTree::calls_each);
        let of = |a: &Action| match a.op {
            Op::SmallFile => (f64::from(a.count) * each).round() as u64,
            _ => u64::from(a.count),
        };
        self.actions().map(of).sum()
    }

    /// System calls per pass: a page that is touched in a mapping that stays takes none, a mapping that comes and goes takes two.
    pub fn system_calls(&self) -> u64 {
        let of = |a: &Action| match a.op {
            Op::TouchPages | Op::TouchLines => 0,
            Op::MapReadUnmap { .. } | Op::MmapAnon { .. } => 2 * u64::from(a.count),
            _ => u64::from(a.count),
        };
        match self.tree {
            Some(_) => self.calls(),
            None => self.actions().map(of).sum(),
        }
    }

    /// Bytes per pass in calls that `pick` selects.
    pub fn bytes(&self, pick: impl Fn(Op) -> bool) -> u64 {
        let of = |a: &Action| a.bytes.saturating_mul(u64::from(a.count));
        self.actions().filter(|a| pick(a.op)).fold(0, |sum, a| sum.saturating_add(of(a)))
    }

    /// Whether an action moves data of a file by a call: what goes to or comes from a sink is none.
    pub fn moves_data(&self, action: &Action) -> bool {
        let sink = self.files.get(action.file as usize).is_some_and(|file| file.role == Role::Sink);
        matches!(action.op, Op::Read { .. } | Op::Write) && !sink
    }

    /// Calls per pass that move data of a file, of the thread with the fewest; `None` without a thread.
    pub fn moving_calls(&self) -> Option<u64> {
        let of = |thread: &Vec<Action>| {
            thread.iter().filter(|a| self.moves_data(a)).map(|a| u64::from(a.count)).sum()
        };
        self.threads.iter().map(of).min()
    }

    /// CPU time of the program per pass, all threads together.
    pub fn think_ns(&self) -> f64 {
        self.actions().map(|a| a.think_ns * f64::from(a.count)).sum()
    }

    /// Actions of all threads.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.threads.iter().flatten()
    }

    /// Whether `pick` selects an action.
    pub fn any(&self, pick: impl Fn(&Action) -> bool) -> bool {
        self.actions().any(pick)
    }
}
