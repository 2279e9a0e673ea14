//! The control groups of the program's processes, looked at while it runs: a program may move itself or be moved, and a group
//! may be gone when the program has ended.
//!
//! Goal: the groups that most looks found, with the limits that held there at the first look. Non-goal: which process was in
//! which group when.

use iowhy_core::profile::{LimitedGroup, MemoryUse};
use iowhy_linux::{meminfo, memory_use};

use super::files::after_looks;
use iowhy_linux::block::sysfs::Sysfs;
use iowhy_linux::control_group::ControlGroups;
use iowhy_linux::process::task::process_stat;
use iowhy_linux::reader::Reader;

/// Processes that are looked at each time.
const MAX_PROCESSES: usize = 8;
/// Different memberships that are remembered.
const MAX_KNOWN: usize = 16;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct GroupsSeen {
    known: Vec<Known>,
    next_ns: u64,
    turn: usize,
}

/// One membership.
#[derive(Debug)]
pub(super) struct Known {
    text: String,
    looks: u64,
    /// Its groups.
    pub(super) groups: ControlGroups,
    /// Its groups with limits.
    pub(super) limited: Vec<LimitedGroup>,
    /// Time since their making for which they had been throttled at the first look.
    pub(super) throttled_ns: Option<u64>,
    /// Counters of short memory at the first look.
    pub(super) memory: MemoryUse,
}

impl GroupsSeen {
    /// Looks when it is time again.
    pub(super) fn round(&mut self, now: u64, processes: &[u32], reader: &mut Reader) {
        if now < self.next_ns || processes.is_empty() {
            return;
        }
        self.next_ns = now + after_looks(self.turn);
        for n in 0..processes.len().min(MAX_PROCESSES) {
            let pid = processes[(self.turn.wrapping_mul(MAX_PROCESSES).wrapping_add(n)) % processes.len()];
            self.look(pid, reader);
        }
        self.turn = self.turn.wrapping_add(1);
    }

    fn look(&mut self, pid: u32, reader: &mut Reader) {
        let Some(text) = reader.text(format_args!("/proc/{pid}/cgroup")) else { return };
        let text = text.to_owned();
        // A process that has ended has left its groups of version 1 and seems to be in none with limits, until it is waited
        // for. A run of many short processes would be mostly that.
        if process_stat(reader, pid).is_none_or(|stat| matches!(stat.state, 'Z' | 'X')) {
            return;
        }
        if let Some(known) = self.known.iter_mut().find(|known| known.text == text) {
            known.looks += 1;
            return;
        }
        if self.known.len() >= MAX_KNOWN {
            return;
        }
        let groups = ControlGroups::parse(&text);
        let memory =
            reader.text(format_args!("/proc/meminfo")).and_then(|text| meminfo::bytes(text, "MemTotal"));
        self.known.push(Known {
            looks: 1,
            limited: groups.limited(memory.unwrap_or(u64::MAX), &|number| Sysfs::new().name_of(number)),
            throttled_ns: groups.cpu_throttled_ns(),
            memory: memory_use::now(&groups, memory),
            groups,
            text,
        });
    }

    /// The membership that most looks found; of those found as often, one with limits, and the latest.
    pub(super) fn most_frequent(self) -> Option<Known> {
        self.known.into_iter().max_by_key(|known| (known.looks, !known.limited.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::files::EARLY_NS;

    #[test]
    fn the_groups_that_most_looks_found_are_told() {
        let mut reader = Reader::new();
        let mut seen = GroupsSeen::default();
        let ours = std::process::id();
        seen.round(1, &[ours], &mut reader);
        seen.round(2, &[ours], &mut reader);
        if seen.known.is_empty() {
            eprintln!("skipped: this kernel has no control groups");
            return;
        }
        assert_eq!(seen.known[0].looks, 1, "the second look came too early");
        seen.round(EARLY_NS + 1, &[ours, u32::MAX], &mut reader);
        assert_eq!((seen.known.len(), seen.known[0].looks), (1, 2), "a process that is gone has no groups");
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let pid = ended.id();
        while process_stat(&mut reader, pid).is_some_and(|stat| stat.state != 'Z') {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        seen.round(2 * EARLY_NS + 2, &[pid], &mut reader);
        assert_eq!((seen.known.len(), seen.known[0].looks), (1, 2), "one that has ended is in no group");
        ended.wait().unwrap();
        let other = |looks| Known {
            text: "elsewhere".to_owned(),
            looks,
            groups: ControlGroups::default(),
            limited: Vec::new(),
            throttled_ns: None,
            memory: MemoryUse::default(),
        };
        seen.known.push(other(1));
        assert_eq!(seen.most_frequent().map(|known| known.groups), Some(ControlGroups::of_process(None)));
        let tie = GroupsSeen {
            known: vec![Known { text: "first".to_owned(), ..other(2) }, other(2)],
            ..GroupsSeen::default()
        };
        assert_eq!(tie.most_frequent().map(|known| known.text).as_deref(), Some("elsewhere"));
    }
}
