//! Many small files in a plan: a tree of ours of the same shape, and what is done with each of its files.
//!
//! The program's own files are not named: of files that are open for a moment nobody sees the paths. What may not enter:
//! I/O, names.

use serde::{Deserialize, Serialize};

use super::State;

/// A tree, and what is done with its files. Files have numbers from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanTree {
    /// The tree is made in this directory, and removed.
    pub parent: String,
    /// `st_dev` of the program's files: the tree stands for them only on that file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<u64>,
    /// Files.
    pub files: u64,
    /// Folders that they are spread over.
    pub folders: u64,
    /// Bytes of each file.
    pub bytes: u64,
    /// Page cache at the start, of files that are there.
    pub state: State,
    /// Whether files are examined by statx(2) rather than by stat(2).
    pub statx: bool,
    /// What is done with each file, in this order.
    pub life: Vec<Touch>,
}

/// A call that is made with each file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Touch {
    /// Which.
    pub what: OnFile,
    /// Bytes that are asked for; 0 where the call has none.
    #[serde(default)]
    pub bytes: u64,
    /// How often for each file, the mean: 0.5 is every second file.
    pub each: f64,
}

/// What is done with a file of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFile {
    /// A folder is listed: open, getdents64 to the end, close.
    List,
    /// stat of its name.
    Examine,
    /// stat of a name that is not there.
    Miss,
    /// open for reading.
    Open,
    /// open that makes it, for writing.
    Make,
    /// fstat of what was opened last.
    ExamineOpen,
    /// posix_fadvise of what was opened last: it will be read in order.
    Advise,
    /// A question to a terminal, which no file answers (ioctl).
    Ask,
    /// lseek by nothing.
    Seek,
    /// read of the file that was opened for reading, where the one before ended.
    Read,
    /// write to the file that was made.
    Write,
    /// copy_file_range from the one to the other.
    Copy,
    /// close of what was opened last.
    Close,
    /// unlink of the file that was made.
    Remove,
}

impl OnFile {
    /// System calls that it takes.
    pub fn calls(self) -> u64 {
        match self {
            OnFile::List => 4,
            _ => 1,
        }
    }
}

impl Touch {
    /// How often the call is made with this file, so that the sum over files is as near to the mean as it can be.
    pub fn times(&self, file: u64) -> u64 {
        let until = |files: u64| (files as f64 * self.each + 1e-6).floor().max(0.0) as u64;
        until(file + 1).saturating_sub(until(file))
    }
}

impl PlanTree {
    /// Whether a call of this kind is made at all.
    pub fn does(&self, what: OnFile) -> bool {
        self.life.iter().any(|touch| touch.what == what && touch.each > 0.0)
    }

    /// Whether files are there at the start.
    pub fn is_read(&self) -> bool {
        [OnFile::Open, OnFile::Examine].iter().any(|what| self.does(*what))
    }

    /// Whether files are made.
    pub fn is_made(&self) -> bool {
        self.does(OnFile::Make)
    }

    /// System calls with each file, the mean.
    pub fn calls_each(&self) -> f64 {
        self.life.iter().map(|touch| touch.each * touch.what.calls() as f64).sum()
    }

    /// Bytes of all files.
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
