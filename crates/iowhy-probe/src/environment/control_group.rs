//! Limits that this process' control groups set, versions 1 and 2: memory, and throttles of block devices.
//!
//! Invariant: a limit counts when this group or any group above it, as far as they are visible, sets it.

use std::fs;

use iowhy_core::kernel_text::control_group::{
    Membership, V1_THROTTLES, groups, parse, sentence, v1_limit, v2_limits,
};
use iowhy_core::kernel_text::mountinfo::Mount;

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

fn memberships() -> Vec<Membership> {
    fs::read_to_string("/proc/self/cgroup").map(|text| parse(&text)).unwrap_or_default()
}
