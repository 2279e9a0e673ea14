//! Limits that this process' control groups set, versions 1 and 2: memory, CPU, and throttles of block devices.
//!
//! Invariant: a limit counts when this group or any group above it, as far as they are visible, sets it.

use std::fs;
use std::path::{Path, PathBuf};

use iowhy_linux::control_group::text::{
    Membership, V1_THROTTLES, groups, parse, sentence, v1_cpu_limit, v1_limit, v2_cpu_limit, v2_limits,
};
use iowhy_linux::mounts::Mount;

/// The control groups of this process. The root that files are read below may be a made-up one.
pub(crate) struct Groups<'a> {
    root: &'a Path,
    mounts: &'a [Mount],
    memberships: Vec<Membership>,
}

impl<'a> Groups<'a> {
    /// Those of this process.
    pub(crate) fn here(mounts: &'a [Mount]) -> Groups<'a> {
        Groups::below(Path::new("/"), mounts)
    }

    /// Those that `proc/self/cgroup` below a root names.
    pub(crate) fn below(root: &'a Path, mounts: &'a [Mount]) -> Groups<'a> {
        let text = fs::read_to_string(root.join("proc/self/cgroup"));
        Groups { root, mounts, memberships: text.map(|text| parse(&text)).unwrap_or_default() }
    }

    /// Whether any group of this process can be seen.
    pub(crate) fn visible(&self) -> bool {
        [None, Some("memory"), Some("blkio"), Some("cpu")].into_iter().any(|c| !self.dirs(c).is_empty())
    }

    /// The directories of this process in each hierarchy, innermost first.
    pub(crate) fn hierarchies(&self) -> Vec<Vec<PathBuf>> {
        [None, Some("memory"), Some("blkio"), Some("cpu")].into_iter().map(|c| self.dirs(c)).collect()
    }

    /// The smallest memory limit; `None` when there is none below `memory_bytes`.
    pub(crate) fn memory_limit_bytes(&self, memory_bytes: u64) -> Option<u64> {
        let v1 = self.smallest(Some("memory"), "memory.limit_in_bytes");
        let limit = self.smallest(None, "memory.max").into_iter().chain(v1).min();
        limit.filter(|&limit| limit < memory_bytes)
    }

    /// The smallest `memory.high`, from which on the kernel slows the group down; version 2 only.
    pub(crate) fn memory_high_bytes(&self) -> Option<u64> {
        self.smallest(None, "memory.high")
    }

    /// The smallest limit of CPU time, in CPUs.
    pub(crate) fn cpu_limit(&self) -> Option<f64> {
        let text = |dir: &Path, file: &str| fs::read_to_string(dir.join(file)).ok();
        let v2 = self.dirs(None).into_iter().filter_map(|dir| v2_cpu_limit(&text(&dir, "cpu.max")?));
        let v1 = self.dirs(Some("cpu")).into_iter().filter_map(|dir| {
            v1_cpu_limit(&text(&dir, "cpu.cfs_quota_us")?, &text(&dir, "cpu.cfs_period_us")?)
        });
        v2.chain(v1).min_by(f64::total_cmp)
    }

    /// Throttles on any of the devices (kernel name and `major:minor`), in words.
    pub(crate) fn throttles(&self, devices: &[(String, String)]) -> Vec<String> {
        let mut found = Vec::new();
        for dir in self.dirs(None) {
            let text = fs::read_to_string(dir.join("io.max")).unwrap_or_default();
            found.extend(devices.iter().flat_map(|(name, number)| v2_limits(&text, name, number)));
        }
        for dir in self.dirs(Some("blkio")) {
            for (file, meaning, unit) in V1_THROTTLES {
                let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
                found.extend(devices.iter().filter_map(|(name, number)| {
                    v1_limit(&text, number).map(|limit| sentence(name, meaning, limit, unit, file))
                }));
            }
        }
        found
    }

    fn smallest(&self, controller: Option<&str>, file: &str) -> Option<u64> {
        let texts = self.dirs(controller).into_iter().map(|dir| fs::read_to_string(dir.join(file)));
        texts.filter_map(|text| text.ok()?.trim().parse::<u64>().ok()).min()
    }

    fn dirs(&self, controller: Option<&str>) -> Vec<PathBuf> {
        let below = |dir: PathBuf| self.root.join(dir.strip_prefix("/").unwrap_or(&dir));
        groups(self.mounts, &self.memberships, controller).into_iter().map(below).collect()
    }
}
