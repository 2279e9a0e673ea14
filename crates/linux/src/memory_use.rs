//! What the kernel counts of memory that is short: of the control group whose limit is the smallest above a process, else of
//! the whole machine.

use std::fs;
use std::path::Path;

use iowhy_core::profile::MemoryUse;

use crate::control_group::ControlGroups;

/// The counters now, since the group or the machine was started. `physical_bytes`: a limit beyond it limits nothing.
pub fn now(groups: &ControlGroups, physical_bytes: Option<u64>) -> MemoryUse {
    let vmstat = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let swapped_in_pages = number(&vmstat, "pswpin");
    let [unified, v1, ..] = groups.hierarchies();
    let limits = [(unified, "memory.max"), (v1, "memory.limit_in_bytes")];
    let all = limits.iter().flat_map(|(dirs, file)| dirs.iter().filter_map(|dir| limit(dir, file)));
    match all.filter(|(bytes, _)| physical_bytes.is_none_or(|most| *bytes < most)).min_by_key(|l| l.0) {
        Some((bytes, dir)) => MemoryUse { swapped_in_pages, ..of_group(dir, bytes) },
        None => MemoryUse { swapped_in_pages, ..pages(&vmstat) },
    }
}

/// What was counted between two looks; nothing where they are of different groups.
pub fn since(now: &MemoryUse, before: &MemoryUse) -> Option<MemoryUse> {
    let less = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
    (now.group == before.group).then(|| MemoryUse {
        group: now.group.clone(),
        limit_bytes: now.limit_bytes,
        at_limit: less(now.at_limit, before.at_limit),
        killed: less(now.killed, before.killed),
        refaulted_file_pages: less(now.refaulted_file_pages, before.refaulted_file_pages),
        refaulted_anon_pages: less(now.refaulted_anon_pages, before.refaulted_anon_pages),
        freed_pages: less(now.freed_pages, before.freed_pages),
        swapped_in_pages: less(now.swapped_in_pages, before.swapped_in_pages),
    })
}

/// The limit that a group sets.
fn limit<'a>(dir: &'a Path, file: &str) -> Option<(u64, &'a Path)> {
    let bytes = fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()?;
    Some((bytes, dir))
}

fn of_group(dir: &Path, limit_bytes: u64) -> MemoryUse {
    let text = |file| fs::read_to_string(dir.join(file)).unwrap_or_default();
    let (events, stat) = (text("memory.events"), text("memory.stat"));
    MemoryUse {
        group: Some(dir.display().to_string()),
        limit_bytes: Some(limit_bytes),
        at_limit: number(&events, "max").or_else(|| text("memory.failcnt").trim().parse().ok()),
        killed: number(&events, "oom_kill").or_else(|| number(&text("memory.oom_control"), "oom_kill")),
        ..pages(&stat)
    }
}

/// In `memory.stat` of both versions (the older one adds up the groups below under `total_`) and in `/proc/vmstat`. Before
/// Linux 5.9 there was one counter, of files. What is freed on request (`pgsteal_proactive`, DAMON) is no shortage; groups tell who freed
/// since Linux 6.0.
fn pages(text: &str) -> MemoryUse {
    let either = |key: &str| number(text, &format!("total_{key}")).or_else(|| number(text, key));
    MemoryUse {
        refaulted_file_pages: either("workingset_refault_file").or_else(|| either("workingset_refault")),
        refaulted_anon_pages: either("workingset_refault_anon"),
        freed_pages: either("pgsteal_kswapd")
            .zip(either("pgsteal_direct"))
            .map(|(kswapd, direct)| kswapd.saturating_add(direct)),
        ..MemoryUse::default()
    }
}

/// The number of a line `key number`.
fn number(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, file: &str, text: &str) {
        fs::write(dir.join(file), text).unwrap();
    }

    #[test]
    fn a_group_of_version_2_tells_how_often_it_was_at_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "memory.events", "low 0\nhigh 3\nmax 17\noom 1\noom_kill 2\n");
        write(
            dir.path(),
            "memory.stat",
            "anon 4096\nworkingset_refault_anon 5\nworkingset_refault_file 900\npgsteal 90\npgsteal_kswapd 30\npgsteal_direct 40\n",
        );
        let told = of_group(dir.path(), 1 << 20);
        assert_eq!((told.at_limit, told.killed, told.limit_bytes), (Some(17), Some(2), Some(1 << 20)));
        assert_eq!((told.refaulted_file_pages, told.refaulted_anon_pages), (Some(900), Some(5)));
        assert_eq!(told.freed_pages, Some(70), "not what was freed on request");
    }

    #[test]
    fn a_group_of_version_1_adds_up_those_below_it() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "memory.failcnt", "12\n");
        write(dir.path(), "memory.stat", "workingset_refault 1\ntotal_workingset_refault 40\n");
        let told = of_group(dir.path(), 1 << 20);
        assert_eq!((told.at_limit, told.killed), (Some(12), None));
        assert_eq!((told.refaulted_file_pages, told.refaulted_anon_pages), (Some(40), None));
        assert_eq!(told.freed_pages, None);
    }

    #[test]
    fn counters_of_different_groups_are_not_compared() {
        let of = |group: &str, n| MemoryUse {
            group: Some(group.to_owned()),
            at_limit: Some(n),
            refaulted_file_pages: (n > 5).then_some(n),
            ..MemoryUse::default()
        };
        let told = since(&of("a", 9), &of("a", 4)).unwrap();
        assert_eq!((told.at_limit, told.refaulted_file_pages), (Some(5), None));
        assert_eq!(since(&of("a", 9), &of("b", 4)), None);
        let here = now(&ControlGroups::default(), None);
        assert_eq!(here.group, None, "without groups it is the machine");
    }
}
