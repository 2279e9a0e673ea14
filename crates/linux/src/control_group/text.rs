//! Control groups, versions 1 and 2: where a process's groups are, and the texts of their limits.
//!
//! Invariant: a group is listed with all above it, as far as they are visible: a limit counts wherever it is set.

use std::path::{Component, Path, PathBuf};

use crate::mounts::Mount;

/// One line of `/proc/PID/cgroup`: the controllers (none in version 2) and the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Names of the controllers; none in version 2.
    pub controllers: Vec<String>,
    /// The group, from the root of what is visible.
    pub group: PathBuf,
}

/// The files of version 1 throttles: file, what it limits, unit.
pub const V1_THROTTLES: [(&str, &str, &str); 4] = [
    ("blkio.throttle.read_bps_device", "reads", "bytes/s"),
    ("blkio.throttle.write_bps_device", "writes", "bytes/s"),
    ("blkio.throttle.read_iops_device", "reads", "requests/s"),
    ("blkio.throttle.write_iops_device", "writes", "requests/s"),
];

/// A throttle in words.
pub fn sentence(name: &str, meaning: &str, limit: u64, unit: &str, file: &str) -> String {
    format!("{meaning} on {name} are limited to {limit} {unit} ({file})")
}

/// The limits of one device (`name` for the words, `number` to find it) in the text of `io.max`:
/// `254:0 rbps=1048576 wbps=max riops=max wiops=max`
pub fn v2_limits(text: &str, name: &str, number: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(number)?.strip_prefix(' '));
    let limits = line.unwrap_or_default().split(' ').filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let (meaning, unit) = match key {
            "rbps" => ("reads", "bytes/s"),
            "wbps" => ("writes", "bytes/s"),
            "riops" => ("reads", "requests/s"),
            "wiops" => ("writes", "requests/s"),
            _ => return None,
        };
        Some(sentence(name, meaning, value.parse().ok()?, unit, "io.max"))
    });
    limits.collect()
}

/// The limit of one device in a version 1 throttle file: `254:0 1048576`.
pub fn v1_limit(text: &str, number: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(number)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The devices (`major:minor`) that a throttle file of either version names.
pub fn devices(text: &str) -> impl Iterator<Item = &str> {
    let number = |word: &&str| word.split_once(':').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
    text.lines().filter_map(|line| line.split(' ').next()).filter(number)
}

/// Reads `/proc/PID/cgroup`; lines of an unknown shape are left out.
pub fn parse(text: &str) -> Vec<Membership> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_hierarchy, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
            let controllers = controllers.split(',').filter(|c| !c.is_empty()).map(str::to_owned).collect();
            Some(Membership { controllers, group: group.into() })
        })
        .collect()
}

/// The directories of a group and all above it, innermost first, in version 2 (no controller) or in the version 1
/// hierarchy of a controller.
pub fn groups(mounts: &[Mount], memberships: &[Membership], controller: Option<&str>) -> Vec<PathBuf> {
    let membership = memberships.iter().find(|m| match controller {
        None => m.controllers.is_empty(),
        Some(wanted) => m.controllers.iter().any(|c| c == wanted),
    });
    let mount = mounts.iter().find(|m| match controller {
        None => m.file_system == "cgroup2",
        Some(wanted) => m.file_system == "cgroup" && m.super_options.split(',').any(|o| o == wanted),
    });
    let (Some(membership), Some(mount)) = (membership, mount) else { return Vec::new() };
    // Seen from a container the group may lie outside what is mounted; then the mount's top is all that is seen.
    let below = membership.group.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let outside = below.components().any(|part| part == Component::ParentDir);
    let below = if outside { Path::new("") } else { below };
    below.ancestors().map(|group| mount.point.join(group)).collect()
}

/// The CPU limit in the text of `cpu.max` (`MAX PERIOD` in microseconds), in CPUs; `None` without one.
pub fn v2_cpu_limit(text: &str) -> Option<f64> {
    let mut fields = text.split_ascii_whitespace();
    cpu_limit(fields.next()?, fields.next()?)
}

/// The CPU limit of version 1, from `cpu.cfs_quota_us` and `cpu.cfs_period_us`, in CPUs; `None` without one.
pub fn v1_cpu_limit(quota: &str, period: &str) -> Option<f64> {
    cpu_limit(quota.trim(), period.trim())
}

/// `max` (version 2) and `-1` (version 1) are no numbers of microseconds: no limit.
fn cpu_limit(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// Time for which the group was throttled, summed over CPUs, from the text of `cpu.stat`: `throttled_usec` in version
/// 2, `throttled_time` (nanoseconds) in version 1. `None` where the group counts none.
pub fn cpu_throttled_ns(text: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        let value: u64 = value.trim().parse().ok()?;
        match key {
            "throttled_usec" => Some(value.saturating_mul(1000)),
            "throttled_time" => Some(value),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts;

    const MOUNTS: &str = "\
30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate
35 31 0:31 /docker/1 /cg/memory rw - cgroup cgroup rw,memory
38 31 0:35 / /cg/blkio rw - cgroup cgroup rw,blkio,net_cls
";

    #[test]
    fn groups_of_both_versions_are_found_with_all_above_them() {
        let mounts = mounts::parse(MOUNTS);
        let memberships =
            parse("9:name=systemd:/x\n7:net_cls,blkio:/a:b\n4:memory:/docker/1/job\n0::/user.slice/u1\n");
        let paths = |controller| groups(&mounts, &memberships, controller);
        let expect = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            paths(None),
            expect(&["/sys/fs/cgroup/user.slice/u1", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/"])
        );
        assert_eq!(paths(Some("memory")), expect(&["/cg/memory/job", "/cg/memory/"]));
        assert_eq!(paths(Some("blkio")), expect(&["/cg/blkio/a:b", "/cg/blkio/"]));
        assert!(paths(Some("cpu")).is_empty());
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_gives_the_top() {
        let mounts = mounts::parse(MOUNTS);
        let memberships = parse("4:memory:/other/place\n");
        assert_eq!(groups(&mounts, &memberships, Some("memory")), [PathBuf::from("/cg/memory/")]);
    }

    #[test]
    fn throttles_of_both_forms_are_read_for_the_device_asked_for() {
        let text = "8:0 rbps=100 wbps=max riops=max wiops=7\n254:01 rbps=5\n254:0 rbps=max wbps=1048576 riops=9 wiops=max\n";
        assert_eq!(
            v2_limits(text, "vda", "254:0"),
            [
                "writes on vda are limited to 1048576 bytes/s (io.max)",
                "reads on vda are limited to 9 requests/s (io.max)"
            ]
        );
        assert!(v2_limits(text, "sdb", "8:16").is_empty());
        assert_eq!(v1_limit("8:0 100\n254:0 2097152\n", "254:0"), Some(2_097_152));
        assert_eq!(v1_limit("254:01 5\n", "254:0"), None);
        assert_eq!(devices(text).collect::<Vec<_>>(), ["8:0", "254:01", "254:0"]);
        assert_eq!(devices("Total 7\n\n254:0 9").collect::<Vec<_>>(), ["254:0"]);
    }

    #[test]
    fn a_group_seen_from_inside_another_name_space_gives_the_top() {
        let mounts = mounts::parse(MOUNTS);
        assert_eq!(groups(&mounts, &parse("0::/../other\n"), None), [PathBuf::from("/sys/fs/cgroup/")]);
    }

    #[test]
    fn cpu_limits_and_throttled_times_of_both_versions() {
        assert_eq!(
            (v2_cpu_limit("150000 100000\n"), v1_cpu_limit("50000\n", "100000\n")),
            (Some(1.5), Some(0.5))
        );
        for none in ["max 100000\n", "", "1", "1 0", "-1 100000"] {
            assert_eq!(v2_cpu_limit(none), None, "{none:?}");
        }
        assert_eq!(cpu_throttled_ns("usage_usec 9\nnr_throttled 2\nthrottled_usec 7\n"), Some(7000));
        assert_eq!(cpu_throttled_ns("nr_periods 0\nnr_throttled 0\nthrottled_time 12\n"), Some(12));
        assert_eq!(cpu_throttled_ns("usage_usec 9\n"), None);
    }
}
