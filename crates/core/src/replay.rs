//! What is to be replayed: a plan of calls, made by those who know what they mean and carried out by those who make them.
//!
//! Plain data. A plan is the calls of a stretch of a program's run, repeated over several passes with their places moved on,
//! so that the page cache and the device see new places as they did from the program. What may not enter: I/O, a clock,
//! causes.

mod tree;

use serde::{Deserialize, Serialize};

pub use self::tree::{OnFile, PlanTree, Touch};
use crate::profile::{FileIdentity, GroupLimit};

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Files that actions refer to by index.
    pub files: Vec<PlanFile>,
    /// Actions of each thread, one pass.
    pub threads: Vec<Vec<Action>>,
    /// Passes, at least 1.
    pub passes: u32,
    /// Direct reads that one thread keeps in flight on a ring; below 2: one after the other.
    pub depth: u32,
    /// Where its threads run; `None`: where we do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<Placed>,
    /// Many small files, where they are what is replayed ([`Do::Handle`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<PlanTree>,
}

/// Control groups in which a plan is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Groups to be in, at most one of each hierarchy, with what is limited there.
    pub inside: Vec<PlacedGroup>,
    /// Groups not to be in, nor in any below them: the plan is to run without their limits.
    pub outside: Vec<String>,
}

/// What a file system has free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Which file system, by its device number.
    pub file_system: u64,
    /// Bytes that may still be written.
    pub free_bytes: u64,
}

/// One of the groups of [`Placed::inside`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedGroup {
    /// Its directory.
    pub directory: String,
    /// Its limits, those that groups above it set included.
    pub limits: Vec<GroupLimit>,
}

/// How a file takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The user's own file, opened read-only.
    Own,
    /// A nameless file of ours in the directory of the user's file: it is empty at first.
    ScratchEmpty,
    /// As [`Role::ScratchEmpty`], filled to the file's size.
    ScratchFull,
    /// /dev/null and the like: it keeps nothing.
    Sink,
}

/// What of a file is in the page cache when a replay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing.
    Cold,
    /// All of it, as far as memory allows.
    Warm,
}

/// What the kernel is told of the order of accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Nothing.
    #[default]
    Normal,
    /// POSIX_FADV_RANDOM, MADV_RANDOM.
    Random,
    /// POSIX_FADV_SEQUENTIAL, MADV_SEQUENTIAL.
    Sequential,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanFile {
    /// The user's file; of a scratch file, that whose place it takes.
    pub path: String,
    /// How it takes part.
    pub role: Role,
    /// `st_dev` of the file: a scratch file stands for it only on that file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<u64>,
    /// What it must still be; only for [`Role::Own`].
    pub identity: Option<FileIdentity>,
    /// Bytes that are there: places are taken modulo this, unless it grows.
    pub size_bytes: u64,
    /// O_DIRECT.
    pub direct: bool,
    /// O_DSYNC.
    pub durable: bool,
    /// Page cache at the start.
    pub state: State,
    /// What is said of it after opening.
    pub advice: Advice,
    /// Places of each pass lie so far from those of the pass before.
    pub shift_bytes: u64,
    /// Memory that its bytes come into or go from begins so many bytes into a page. Requests on a ring begin
    /// where their page does.
    #[serde(default)]
    pub buffer_offset: u16,
}

impl PlanFile {
    /// A file of no bytes, through the page cache and in it, of which nothing is said and every pass is at the same places.
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
            advice: Advice::Normal,
            shift_bytes: 0,
            buffer_offset: 0,
        }
    }
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Do {
    /// pread; `fresh`: into memory that is taken for the call and given back after it.
    Read {
        /// See above.
        fresh: bool,
    },
    /// pwrite.
    Write,
    /// lseek.
    Seek,
    /// fdatasync, or fsync.
    Sync {
        /// fsync.
        whole: bool,
    },
    /// fdatasync after so many passes, and after the last: what is made durable together is longer than a pass.
    SyncAfter {
        /// See above, at least 1.
        passes: u32,
    },
    /// POSIX_FADV_DONTNEED for a range: the program lets the kernel forget.
    Forget,
    /// POSIX_FADV_WILLNEED for a range: the kernel is told what comes next.
    Announce,
    /// sync_file_range(SYNC_FILE_RANGE_WRITE) for a range: its write-back begins, and is not waited for.
    WriteBack,
    /// A scratch file that was written is emptied, so that nothing in it is dirty; this takes no part in the time.
    ThrowAway,
    /// A file of ours is made anew under a name, and the one before is removed: what programs do with their journals. Only
    /// for [`Role::ScratchEmpty`]; from then on calls on the file go to the new one.
    Renew,
    /// The range is mapped, read a byte a page, and unmapped. `populate`: MAP_POPULATE.
    Window {
        /// See above.
        populate: bool,
    },
    /// The file is mapped once for the whole replay of the thread; a byte a page of the range is read.
    Look,
    /// As [`Do::Look`]; a byte of every 64 is read.
    Scan,
    /// Anonymous memory of so many bytes is taken and given back; its file and place mean nothing. `populate`:
    /// MAP_POPULATE; without it a byte a page is written.
    Take {
        /// See above.
        populate: bool,
    },
    /// All that is done with one file of [`Plan::tree`]; the place is the number of the file, and no file of
    /// [`Plan::files`] takes part.
    Handle,
}

/// Calls of one thread on one file, evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What.
    pub what: Do,
    /// Index into [`Plan::files`].
    pub file: u32,
    /// Where the first one begins.
    pub place: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// How many.
    pub count: u32,
    /// From the place of one to that of the next.
    pub stride: i64,
    /// CPU time of the program before each.
    pub think_ns: f64,
}

impl Action {
    /// One call.
    pub fn one(what: Do, file: u32, place: u64, bytes: u64, think_ns: f64) -> Action {
        Action { what, file, place, bytes, count: 1, stride: 0, think_ns }
    }

    /// Where its `i`-th call begins.
    pub fn at(&self, i: u32) -> u64 {
        self.place.saturating_add_signed(self.stride.saturating_mul(i64::from(i)))
    }
}

impl Plan {
    /// Calls of one pass.
    pub fn calls(&self) -> u64 {
        let each = self.tree.as_ref().map_or(1.0, PlanTree::calls_each);
        let of = |a: &Action| match a.what {
            Do::Handle => (f64::from(a.count) * each).round() as u64,
            _ => u64::from(a.count),
        };
        self.actions().map(of).sum()
    }

    /// Bytes that one pass moves in calls that `pick` picks.
    pub fn bytes(&self, pick: impl Fn(Do) -> bool) -> u64 {
        let of = |a: &Action| a.bytes.saturating_mul(u64::from(a.count));
        self.actions().filter(|a| pick(a.what)).fold(0, |sum, a| sum.saturating_add(of(a)))
    }

    /// The program's own CPU time in one pass, all threads together.
    pub fn think_ns(&self) -> f64 {
        self.actions().map(|a| a.think_ns * f64::from(a.count)).sum()
    }

    /// All actions.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.threads.iter().flatten()
    }

    /// Whether the actions on a file are such that `pick` picks one.
    pub fn any(&self, pick: impl Fn(&Action) -> bool) -> bool {
        self.actions().any(pick)
    }
}
