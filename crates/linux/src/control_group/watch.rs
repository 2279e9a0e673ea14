//! A control group as the subject of a watch: its limits, and what its own counters say of the time between two readings.

use std::fs;
use std::path::{Component, Path, PathBuf};

use iowhy_core::profile::GroupLimit;

use super::ControlGroups;
use super::counters::GroupCounters;
use super::text::cpu_throttled_ns;
use crate::meminfo;
use crate::mounts;
use crate::psi::Totals;
use crate::reader::Reader;

/// A group whose counters were read at the beginning.
#[derive(Debug)]
pub struct GroupWatch {
    path: PathBuf,
    directories: Vec<PathBuf>,
    before: Counters,
}

/// What a group's counters say of the time in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSeen {
    /// The group, below the root of its hierarchy.
    pub path: String,
    /// Its limits, and those of the groups above it.
    pub limits: Vec<GroupLimit>,
    /// Time for which its CPU limit held tasks back.
    pub cpu_throttled_ns: Option<u64>,
    /// Times that it was made to free memory because it reached `memory.high`.
    pub memory_high_events: Option<u64>,
    /// Times that it reached its memory limit (`memory.max`, or version 1: `memory.failcnt`).
    pub memory_limit_events: Option<u64>,
    /// Its own pressure figures (version 2).
    pub counted: Option<Totals>,
    /// It was removed.
    pub is_gone: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    throttled_ns: Option<u64>,
    high: Option<u64>,
    max: Option<u64>,
    psi: Option<Totals>,
}

impl GroupWatch {
    /// Reads the counters. A path is a directory of a mounted hierarchy, or what `/proc/PID/cgroup` names. `None`: there is no such group.
    pub fn begin(path: &Path) -> Option<GroupWatch> {
        let mounts = mounts::read();
        let points: Vec<PathBuf> = mounts
            .into_iter()
            .filter(|mount| mount.file_system == "cgroup" || mount.file_system == "cgroup2")
            .map(|mount| mount.point)
            .collect();
        let below = points.iter().filter_map(|point| path.strip_prefix(point).ok());
        let named = below.min_by_key(|rest| rest.components().count()).map(Path::to_path_buf);
        let named = named.unwrap_or_else(|| path.strip_prefix("/").unwrap_or(path).to_path_buf());
        if named.as_os_str().is_empty()
            || named.components().any(|part| !matches!(part, Component::Normal(_)))
        {
            return None;
        }
        let directories: Vec<PathBuf> =
            points.iter().map(|point| point.join(&named)).filter(|group| group.is_dir()).collect();
        (!directories.is_empty()).then(|| {
            let before = Counters::read(&directories);
            GroupWatch { path: named, directories, before }
        })
    }

    /// The group, below the root of its hierarchy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its counters, to be read again and again. `None`: the kernel counts nothing of it.
    pub fn counters(&self, reader: &mut Reader) -> Option<GroupCounters> {
        GroupCounters::open(reader, &self.path, &self.directories)
    }

    /// What the counters say since the last time, or since the beginning. `name` tells the name of a device by its number as text.
    pub fn seen(&mut self, name: &dyn Fn(&str) -> Option<String>) -> GroupSeen {
        let now = Counters::read(&self.directories);
        let before = std::mem::replace(&mut self.before, now);
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        GroupSeen {
            limits: limits(&ControlGroups::named(&self.path), name),
            path: self.path.to_string_lossy().into_owned(),
            cpu_throttled_ns: since(now.throttled_ns, before.throttled_ns),
            memory_high_events: since(now.high, before.high),
            memory_limit_events: since(now.max, before.max),
            counted: now.psi.zip(before.psi).map(|(now, before)| now.since(&before)),
            is_gone: !self.directories.iter().any(|group| group.is_dir()),
        }
    }
}

/// Limits of the groups that a process is in, and of those above them; none where it has ended. `name` tells the name of a device by its
/// number as text.
pub fn limits_of(pid: u32, name: &dyn Fn(&str) -> Option<String>) -> Vec<GroupLimit> {
    if pid == 0 { Vec::new() } else { limits(&ControlGroups::of_process(Some(pid)), name) }
}

fn limits(groups: &ControlGroups, name: &dyn Fn(&str) -> Option<String>) -> Vec<GroupLimit> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = meminfo::bytes(&text, "MemTotal").unwrap_or(u64::MAX);
    let mut limits: Vec<GroupLimit> = Vec::new();
    for limit in groups.limited(memory, name).into_iter().flat_map(|group| group.limits) {
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    limits
}

impl Counters {
    fn read(directories: &[PathBuf]) -> Counters {
        let text =
            |file: &str| directories.iter().find_map(|group| fs::read_to_string(group.join(file)).ok());
        let event = |name: &str| {
            let text = text("memory.events")?;
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
        };
        Counters {
            throttled_ns: text("cpu.stat").as_deref().and_then(cpu_throttled_ns),
            high: event("high"),
            max: event("max").or_else(|| text("memory.failcnt")?.trim().parse().ok()),
            psi: directories.iter().find_map(|group| Totals::of_group(group)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_that_is_there_can_be_watched() {
        for path in ["/no/such/group", "/", "", "../..", "/sys/fs/cgroup"] {
            assert!(GroupWatch::begin(Path::new(path)).is_none(), "{path}");
        }
    }
}
