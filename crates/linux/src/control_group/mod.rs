//! The control groups that a process is in, versions 1 and 2: limits and throttling of CPU, memory and devices.
//!
//! Invariant: a limit counts when the process's group or any group above it, as far as they are visible, sets it.

mod counters;
pub mod text;
mod tree;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};

use crate::control_group::text::{
    V1_THROTTLES, cpu_throttled_ns, devices, groups, parse, sentence, v1_cpu_limit, v1_limit, v2_cpu_limit,
    v2_limits,
};
use crate::mounts::{self, Mount};
use crate::reader::Reader;
pub use counters::GroupCounters;
pub use tree::all;
pub use watch::{GroupSeen, GroupWatch, limits_of};

use iowhy_core::profile::{GroupLimit, Limited, LimitedGroup};

/// The groups of a process as paths below the root of each hierarchy, each path once, without the root. `None`: it is gone.
pub fn paths_of(reader: &mut Reader, pid: u32) -> Option<Vec<String>> {
    let mut paths: Vec<String> = Vec::new();
    for membership in parse(reader.text(format_args!("/proc/{pid}/cgroup"))?) {
        let path = membership.group.to_string_lossy().trim_start_matches('/').to_owned();
        if !path.is_empty() && !paths.contains(&path) {
            paths.push(path);
        }
    }
    Some(paths)
}

/// Directories of the groups, innermost first. They stay readable when the process has ended, as long as nobody removes
/// them; a process that moves to another group later is not followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroups {
    unified: Vec<PathBuf>,
    cpu: Vec<PathBuf>,
    memory: Vec<PathBuf>,
    block: Vec<PathBuf>,
}

impl ControlGroups {
    /// Those of a process (`None`: of this one); none when it is gone or no control groups are mounted here.
    pub fn of_process(pid: Option<u32>) -> ControlGroups {
        let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        ControlGroups::parse(&fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default())
    }

    /// Those that a text of `/proc/PID/cgroup` names.
    pub fn parse(memberships: &str) -> ControlGroups {
        ControlGroups::new(Path::new("/"), memberships, &mounts::read())
    }

    /// Those of the group of this path in each hierarchy that has it.
    pub fn named(group: &Path) -> ControlGroups {
        let group = group.display();
        let memberships =
            format!("0::/{group}\n1:cpu,cpuacct:/{group}\n2:memory:/{group}\n3:blkio:/{group}\n");
        ControlGroups::parse(&memberships)
    }

    /// Those of this process, seen below a root where `proc` and the control groups are.
    pub fn below(root: &Path) -> ControlGroups {
        let text = |file| fs::read(root.join(file)).unwrap_or_default();
        let mounts = mounts::parse(&String::from_utf8_lossy(&text("proc/self/mountinfo")));
        ControlGroups::new(root, &String::from_utf8_lossy(&text("proc/self/cgroup")), &mounts)
    }

    fn new(root: &Path, memberships: &str, mounts: &[Mount]) -> ControlGroups {
        let memberships = parse(memberships);
        let below = |dir: PathBuf| root.join(dir.strip_prefix("/").unwrap_or(&dir));
        let dirs = |controller| groups(mounts, &memberships, controller).into_iter().map(below).collect();
        ControlGroups {
            unified: dirs(None),
            cpu: dirs(Some("cpu")),
            memory: dirs(Some("memory")),
            block: dirs(Some("blkio")),
        }
    }

    /// The directories in each hierarchy, innermost first; a hierarchy without any has an empty list.
    pub fn hierarchies(&self) -> [&[PathBuf]; 4] {
        [&self.unified, &self.memory, &self.block, &self.cpu]
    }

    /// Whether any group can be seen.
    pub fn are_visible(&self) -> bool {
        self.hierarchies().into_iter().any(|dirs| !dirs.is_empty())
    }

    /// The smallest memory limit in bytes. Where version 1 sets none it is a number beyond any memory.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        let v1 = smallest(&self.memory, "memory.limit_in_bytes");
        smallest(&self.unified, "memory.max").into_iter().chain(v1).min()
    }

    /// The smallest `memory.high`, from which on the kernel slows the group down; version 2 only.
    pub fn memory_high_bytes(&self) -> Option<u64> {
        smallest(&self.unified, "memory.high")
    }

    /// The smallest CPU limit, in CPUs.
    pub fn cpu_limit(&self) -> Option<f64> {
        let v2 = self.unified.iter().filter_map(|dir| v2_cpu_limit(&text(&dir.join("cpu.max"))?));
        let v1 = self.cpu.iter().filter_map(|dir| {
            v1_cpu_limit(&text(&dir.join("cpu.cfs_quota_us"))?, &text(&dir.join("cpu.cfs_period_us"))?)
        });
        v2.chain(v1).min_by(f64::total_cmp)
    }

    /// Time since their making for which the groups were throttled, summed over groups and CPUs; `None` where none of
    /// them counts it.
    pub fn cpu_throttled_ns(&self) -> Option<u64> {
        let all = self.unified.iter().chain(&self.cpu);
        all.filter_map(|dir| cpu_throttled_ns(&text(&dir.join("cpu.stat"))?)).reduce(u64::saturating_add)
    }

    /// Limits on any of these devices (kernel name and `major:minor`), in words.
    pub fn throttles(&self, devices: &[(String, String)]) -> Vec<String> {
        let mut found = Vec::new();
        for dir in &self.unified {
            let limits = text(&dir.join("io.max")).unwrap_or_default();
            found.extend(devices.iter().flat_map(|(name, number)| v2_limits(&limits, name, number)));
        }
        for dir in &self.block {
            for (file, meaning, unit) in V1_THROTTLES {
                let limits = text(&dir.join(file)).unwrap_or_default();
                found.extend(devices.iter().filter_map(|(name, number)| {
                    v1_limit(&limits, number).map(|limit| sentence(name, meaning, limit, unit, file))
                }));
            }
        }
        found
    }

    /// The groups that something limits, one for each hierarchy. `memory_bytes`: what the machine has; `name` finds the
    /// kernel name of a device (`major:minor`).
    pub fn limited(&self, memory_bytes: u64, name: &dyn Fn(&str) -> Option<String>) -> Vec<LimitedGroup> {
        let both = |file| move |dir: &Path| memory_limit(dir, file, memory_bytes);
        let (memory2, memory1) = (both("memory.max"), both("memory.limit_in_bytes"));
        let cpu2 = |dir: &Path| cpu_words(v2_cpu_limit(&text(&dir.join("cpu.max"))?)?, "cpu.max");
        let cpu1 = |dir: &Path| {
            let of = |file| text(&dir.join(file));
            cpu_words(v1_cpu_limit(&of("cpu.cfs_quota_us")?, &of("cpu.cfs_period_us")?)?, "cpu.cfs_quota_us")
        };
        let disk2 = |dir: &Path| throttles(dir, &["io.max"], name);
        let disk1 = |dir: &Path| throttles(dir, &V1_THROTTLES.map(|(file, ..)| file), name);
        let mut found: Vec<LimitedGroup> = Vec::new();
        for dirs in [&self.unified, &self.cpu, &self.memory, &self.block] {
            let Some(own) = dirs.first() else { continue };
            let mut limits = Vec::new();
            for dir in dirs {
                let mut note = |of, words: String| {
                    limits.push(GroupLimit { of, set_by: shown(dir), words });
                };
                [disk2(dir), disk1(dir)].into_iter().flatten().for_each(|words| note(Limited::Disk, words));
                [cpu2(dir), cpu1(dir)].into_iter().flatten().for_each(|words| note(Limited::Cpu, words));
                let memory = [memory2(dir), memory1(dir)];
                memory.into_iter().flatten().for_each(|words| note(Limited::Memory, words));
            }
            // Controllers of version 1 may share a hierarchy.
            if !limits.is_empty() && found.iter().all(|group| group.directory != shown(own)) {
                found.push(LimitedGroup { directory: shown(own), limits });
            }
        }
        found
    }
}

/// The smallest number in a file of these groups.
fn smallest(dirs: &[PathBuf], file: &str) -> Option<u64> {
    dirs.iter().filter_map(|dir| text(&dir.join(file))?.trim().parse().ok()).min()
}

/// A directory in words; the top of a hierarchy is joined with nothing, which leaves a slash behind.
fn shown(dir: &Path) -> String {
    dir.display().to_string().trim_end_matches('/').to_owned()
}

/// Where version 1 sets none it is a number beyond any memory.
fn memory_limit(dir: &Path, file: &str, memory_bytes: u64) -> Option<String> {
    let limit: u64 = text(&dir.join(file))?.trim().parse().ok()?;
    (limit < memory_bytes).then(|| format!("memory is limited to {limit} bytes ({file})"))
}

fn cpu_words(cpus: f64, file: &str) -> Option<String> {
    Some(format!("time on CPUs is limited to {cpus:.2} CPUs ({file})"))
}

/// Limits on any device, in words; a device that is not known by name keeps its number.
fn throttles(dir: &Path, files: &[&str], name: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let limits = text(&dir.join(file)).unwrap_or_default();
        for number in devices(&limits) {
            let name = name(number).unwrap_or_else(|| number.to_owned());
            match V1_THROTTLES.iter().find(|(v1, ..)| v1 == file) {
                Some((_, meaning, unit)) => {
                    let limit = v1_limit(&limits, number);
                    found.extend(limit.map(|limit| sentence(&name, meaning, limit, unit, file)));
                }
                None => found.extend(v2_limits(&limits, &name, number)),
            }
        }
    }
    found
}

fn text(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both versions, made up in a directory: job below top, in version 2 and in the version 1 hierarchies.
    fn made_up() -> (tempfile::TempDir, ControlGroups) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().display();
        let write = |file: &str, text: &str| {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("two/top/memory.max", "max\n");
        write("two/top/job/memory.max", "4096\n");
        write("two/top/cpu.max", "200000 100000\n");
        write("two/top/job/cpu.max", "max 100000\n");
        write("two/top/cpu.stat", "usage_usec 1\nthrottled_usec 5\n");
        write("two/top/job/io.max", "8:0 rbps=7 wbps=max riops=max wiops=max\n");
        write("cpu/job/cpu.cfs_quota_us", "150000\n");
        write("cpu/job/cpu.cfs_period_us", "100000\n");
        write("cpu/job/cpu.stat", "throttled_time 11\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("blkio/blkio.throttle.read_iops_device", "8:0 9\n");
        let table = format!(
            "1 0 0:1 / {top}/two rw - cgroup2 cgroup2 rw\n2 0 0:2 / {top}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             3 0 0:3 / {top}/memory rw - cgroup cgroup rw,memory\n4 0 0:4 / {top}/blkio rw - cgroup cgroup rw,blkio\n"
        );
        let memberships = "4:blkio:/\n3:memory:/job\n2:cpu,cpuacct:/job\n0::/top/job\n";
        (folder, ControlGroups::new(Path::new("/"), memberships, &mounts::parse(&table)))
    }

    #[test]
    fn the_smallest_limit_of_any_level_and_version_counts() {
        let (_folder, groups) = made_up();
        assert_eq!(groups.memory_limit_bytes(), Some(4096));
        assert_eq!(groups.cpu_limit(), Some(1.5));
        assert_eq!(groups.cpu_throttled_ns(), Some(5011));
        let words = groups.throttles(&[("sda".into(), "8:0".into())]).join("; ");
        assert!(words.contains("reads on sda are limited to 7 bytes/s"), "{words}");
        assert!(words.contains("reads on sda are limited to 9 requests/s"), "{words}");
        assert!(groups.throttles(&[("sdb".into(), "8:16".into())]).is_empty());
    }

    #[test]
    fn groups_with_limits_are_told_with_who_sets_them() {
        let (folder, groups) = made_up();
        let found = groups.limited(1 << 30, &|number| (number == "8:0").then(|| "sda".to_owned()));
        let at = |path: &str| folder.path().join(path).display().to_string();
        let told: Vec<(String, Vec<(Limited, String)>)> = found
            .iter()
            .map(|g| {
                (g.directory.clone(), g.limits.iter().map(|l| (l.of, l.set_by.clone())).collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(
            told,
            [
                (
                    at("two/top/job"),
                    vec![
                        (Limited::Disk, at("two/top/job")),
                        (Limited::Memory, at("two/top/job")),
                        (Limited::Cpu, at("two/top")),
                    ]
                ),
                (at("cpu/job"), vec![(Limited::Cpu, at("cpu/job"))]),
                (at("blkio"), vec![(Limited::Disk, at("blkio"))]),
            ],
            "a number beyond all memory is no limit"
        );
        assert_eq!(found[0].limits[0].words, "reads on sda are limited to 7 bytes/s (io.max)");
        assert_eq!(found[0].limits[1].words, "memory is limited to 4096 bytes (memory.max)");
        assert_eq!(found[0].limits[2].words, "time on CPUs is limited to 2.00 CPUs (cpu.max)");
        assert_eq!(ControlGroups::default().limited(1, &|_| None), []);
    }

    #[test]
    fn no_groups_limit_nothing() {
        let none = ControlGroups::new(Path::new("/"), "", &[]);
        assert_eq!(none, ControlGroups::default());
        assert_eq!(
            (none.memory_limit_bytes(), none.cpu_limit(), none.cpu_throttled_ns()),
            (None, None, None)
        );
        assert_eq!(ControlGroups::of_process(Some(u32::MAX)), ControlGroups::default());
        let _ = ControlGroups::of_process(None).cpu_throttled_ns();
    }
}
