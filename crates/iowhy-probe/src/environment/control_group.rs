//! Limits that this process' control groups set, versions 1 and 2: memory, and throttles of block devices.
//!
//! Invariant: a limit counts when this group or any group above it, as far as they are visible, sets it.

use std::fs;
use std::path::{Path, PathBuf};

use super::mounts::Mount;

/// One line of `/proc/self/cgroup`: the controllers (none in version 2) and the group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Membership {
    controllers: Vec<String>,
    group: PathBuf,
}

/// The smallest memory limit; `None` when there is none below `memory_bytes`.
pub(super) fn memory_limit_bytes(mounts: &[Mount], memory_bytes: u64) -> Option<u64> {
    let memberships = memberships();
    let v2 = groups(mounts, &memberships, None).into_iter().map(|dir| dir.join("memory.max"));
    let v1 =
        groups(mounts, &memberships, Some("memory")).into_iter().map(|dir| dir.join("memory.limit_in_bytes"));
    let limits = v2.chain(v1).filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    limits.min().filter(|&limit| limit < memory_bytes)
}

/// Throttles on any of the devices (kernel name and `major:minor`), in words.
pub(super) fn throttle(mounts: &[Mount], devices: &[(String, String)]) -> Option<String> {
    let memberships = memberships();
    let mut found = Vec::new();
    for dir in groups(mounts, &memberships, None) {
        let text = fs::read_to_string(dir.join("io.max")).unwrap_or_default();
        found.extend(devices.iter().flat_map(|(name, number)| v2_limits(&text, name, number)));
    }
    for dir in groups(mounts, &memberships, Some("blkio")) {
        for (file, meaning, unit) in V1_THROTTLES {
            let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
            found.extend(devices.iter().filter_map(|(name, number)| {
                v1_limit(&text, number).map(|limit| sentence(name, meaning, limit, unit, file))
            }));
        }
    }
    (!found.is_empty()).then(|| found.join("; "))
}

/// File, what it limits, unit.
const V1_THROTTLES: [(&str, &str, &str); 4] = [
    ("blkio.throttle.read_bps_device", "reads", "bytes/s"),
    ("blkio.throttle.write_bps_device", "writes", "bytes/s"),
    ("blkio.throttle.read_iops_device", "reads", "requests/s"),
    ("blkio.throttle.write_iops_device", "writes", "requests/s"),
];

fn sentence(name: &str, meaning: &str, limit: u64, unit: &str, file: &str) -> String {
    format!("{meaning} on {name} are limited to {limit} {unit} ({file})")
}

/// `254:0 rbps=1048576 wbps=max riops=max wiops=max`
fn v2_limits(text: &str, name: &str, number: &str) -> Vec<String> {
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

/// `254:0 1048576`
fn v1_limit(text: &str, number: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(number)?.strip_prefix(' ')?.trim().parse().ok())
}

fn memberships() -> Vec<Membership> {
    fs::read_to_string("/proc/self/cgroup").map(|text| parse(&text)).unwrap_or_default()
}

fn parse(text: &str) -> Vec<Membership> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_hierarchy, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
            let controllers = controllers.split(',').filter(|c| !c.is_empty()).map(str::to_owned).collect();
            Some(Membership { controllers, group: group.into() })
        })
        .collect()
}

/// The directories of our group and all above it, innermost first, in version 2 (no controller) or in the version 1
/// hierarchy of a controller.
fn groups(mounts: &[Mount], memberships: &[Membership], controller: Option<&str>) -> Vec<PathBuf> {
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
    below.ancestors().map(|group| mount.point.join(group)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::mounts;
    use super::*;

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
    }
}
