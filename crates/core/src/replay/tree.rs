//! Many small files in a replay plan: a scratch tree of the same shape, and the calls on each of its files.
//!
//! The program's files are not named: no path is seen of files that are open for a moment only.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

use super::State;

/// A scratch tree and the calls on its files. Files have numbers from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanTree {
    /// The directory of the tree.
    pub parent: String,
    /// `st_dev` of the program's files; the tree must be on the same file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<u64>,
    /// Number of files.
    pub files: u64,
    /// Number of folders.
    pub folders: u64,
    /// Bytes of each file.
    pub bytes: u64,
    /// Page cache of existing files when the replay begins.
    pub state: State,
    /// statx(2) instead of stat(2).
    pub statx: bool,
    /// Calls on each file, in order.
    pub life: Vec<Touch>,
}

/// A call on each file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Touch {
    /// Kind of call.
    pub what: OnFile,
    /// Bytes requested; 0 for calls without.
    #[serde(default)]
    pub bytes: u64,
    /// Mean calls per file: 0.5 is every second file.
    pub each: f64,
}

/// Kind of call on a file of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFile {
    /// Directory listing: open, getdents64 to the end, close.
    List,
    /// stat of the file.
    Examine,
    /// stat of a missing name.
    Miss,
    /// open for reading.
    Open,
    /// open with O_CREAT for writing.
    Make,
    /// fstat of the file opened last.
    ExamineOpen,
    /// posix_fadvise(POSIX_FADV_SEQUENTIAL) of the file opened last.
    Advise,
    /// ioctl that asks for a terminal; fails on files.
    Ask,
    /// lseek by 0.
    Seek,
    /// Sequential read of the file opened for reading.
    Read,
    /// write to the created file.
    Write,
    /// copy_file_range from the read file to the created one.
    Copy,
    /// close of the file opened last.
    Close,
    /// unlink of the created file.
    Remove,
}

impl OnFile {
    /// System calls per call of this kind.
    pub fn calls(self) -> u64 {
        match self {
            OnFile::List => 4,
            _ => 1,
        }
    }
}

impl Touch {
    /// Calls on this file, chosen so that sums over files stay within one call of the mean.
    pub fn times(&self, file: u64) -> u64 {
        let until = |files: u64| (files as f64 * self.each + 1e-6).floor().max(0.0) as u64;
        until(file + 1).saturating_sub(until(file))
    }
}

impl PlanTree {
    /// Whether a call of this kind is made.
    pub fn does(&self, what: OnFile) -> bool {
        self.life.iter().any(|touch| touch.what == what && touch.each > 0.0)
    }

    /// Whether files exist when the replay begins.
    pub fn is_read(&self) -> bool {
        [OnFile::Open, OnFile::Examine].iter().any(|what| self.does(*what))
    }

    /// Whether files are created.
    pub fn is_made(&self) -> bool {
        self.does(OnFile::Make)
    }

    /// Mean system calls per file.
    pub fn calls_each(&self) -> f64 {
        self.life.iter().map(|touch| touch.each * touch.what.calls() as f64).sum()
    }

    /// Size of all files together.
    pub fn all_bytes(&self) -> u64 {
        self.files.saturating_mul(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_spread_evenly_and_none_is_lost() {
        for each in [0.01, 0.5, 1.0, 1.7, 2.0] {
            let touch = Touch { what: OnFile::Read, bytes: 1, each };
            let times: Vec<u64> = (0..1000).map(|file| touch.times(file)).collect();
            assert_eq!(times.iter().sum::<u64>(), (1000.0 * each) as u64, "{each}");
            let (least, most) = (each.floor() as u64, each.ceil() as u64);
            assert!(times.iter().all(|n| (least..=most).contains(n)), "{each}");
        }
    }
}
