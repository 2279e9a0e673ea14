//! Who waits and causes waits: processes, kernel threads by name. Bounded: processes beyond the bound share an entry of their name,
//! names beyond theirs one entry, and how many were pooled is counted.

use std::collections::HashMap;

use iowhy_core::machine::Subject;
use iowhy_linux::control_group;
use iowhy_linux::process::task;
use iowhy_linux::process::tree::{processes, threads};
use iowhy_linux::reader::Reader;

const MAX_PROCESSES: usize = 4096;
const MAX_NAMES: usize = 512;
/// Threads whose run queue times are read.
const MAX_THREADS: usize = 65_536;
/// Work of an interrupt has no task.
const INTERRUPT: &str = "interrupt";
const OTHERS: &str = "others";

/// The table.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    pub(super) all: Vec<Subject>,
    by_pid: HashMap<u32, u32>,
    /// Of kernel threads (true) and of pools.
    by_name: HashMap<(bool, String), u32>,
    pub(super) pooled: u64,
    reader: Reader,
    queued_before: HashMap<u32, u64>,
}

impl Subjects {
    /// With the time that each process has spent in run queues so far.
    pub(super) fn new() -> Subjects {
        let mut subjects = Subjects { reader: Reader::new(), ..Subjects::default() };
        subjects.queued_before = subjects.queued();
        subjects
    }

    /// The index of a process.
    pub(super) fn process(&mut self, pid: u32, name: &str) -> u32 {
        if let Some(index) = self.by_pid.get(&pid) {
            return *index;
        }
        if self.by_pid.len() >= MAX_PROCESSES {
            self.pooled += 1;
            return self.named(false, name);
        }
        let groups = control_group::paths_of(&mut self.reader, pid).unwrap_or_default();
        // It may have ended: then what the kernel told stands.
        let command = task::command_line(&mut self.reader, pid);
        let name = task::name(&mut self.reader, pid, pid).unwrap_or_else(|| name.to_owned());
        let index = self.push(Subject { pid, name, command, groups, ..Subject::default() });
        self.by_pid.insert(pid, index);
        index
    }

    /// The index of a thread of the kernel, or of whoever the kernel works for when it has no thread (0).
    pub(super) fn kernel_thread(&mut self, tid: u32, name: &str) -> u32 {
        let name = if tid == 0 { INTERRUPT } else { kernel_name(name) };
        self.named(true, name)
    }

    fn named(&mut self, kernel: bool, name: &str) -> u32 {
        let full = self.by_name.len() >= MAX_NAMES;
        let key = (kernel, name.to_owned());
        let key = if full && !self.by_name.contains_key(&key) { (kernel, OTHERS.to_owned()) } else { key };
        if let Some(index) = self.by_name.get(&key) {
            return *index;
        }
        let index = self.push(Subject { name: key.1.clone(), kernel, ..Subject::default() });
        self.by_name.insert(key, index);
        index
    }

    /// The pool of those that a device could not tell apart.
    pub(super) fn others(&mut self) -> u32 {
        self.named(false, OTHERS)
    }

    fn push(&mut self, subject: Subject) -> u32 {
        self.all.push(subject);
        self.all.len() as u32 - 1
    }

    /// Adds the time in run queues since the beginning to each process, also those that never waited for anything else.
    pub(super) fn add_queued(&mut self) {
        for (pid, now_ns) in self.queued() {
            let passed = now_ns.saturating_sub(self.queued_before.get(&pid).copied().unwrap_or(0));
            if passed == 0 || (self.by_pid.len() >= MAX_PROCESSES && !self.by_pid.contains_key(&pid)) {
                continue;
            }
            let Some(name) = task::name(&mut self.reader, pid, pid) else { continue };
            let kernel = task::command_line(&mut self.reader, pid).is_none_or(|line| line.is_empty());
            let index = if kernel { self.kernel_thread(pid, &name) } else { self.process(pid, &name) };
            self.all[index as usize].queued_ns += passed;
        }
    }

    /// A process may have been moved to another group since it was first seen: those that live are told by where they are.
    pub(super) fn look_at_groups(&mut self) {
        for subject in self.all.iter_mut().filter(|subject| subject.pid > 0) {
            if let Some(groups) = control_group::paths_of(&mut self.reader, subject.pid) {
                subject.groups = groups;
            }
        }
    }

    fn queued(&mut self) -> HashMap<u32, u64> {
        let (mut sums, mut seen) = (HashMap::new(), 0);
        for pid in processes() {
            for tid in threads(pid) {
                if seen == MAX_THREADS {
                    return sums;
                }
                seen += 1;
                if let Some(times) = task::schedstat(&mut self.reader, pid, tid) {
                    *sums.entry(pid).or_default() += times.queued_ns;
                }
            }
        }
        sums
    }
}

/// Workers of one kind are one: `kworker/u8:3-flush` is a kworker.
fn kernel_name(name: &str) -> &str {
    if name.starts_with("kworker/") { "kworker" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_processes_without_number_take_bounded_memory() {
        let mut subjects = Subjects::default();
        // Numbers that no process has.
        for pid in 0..20_000_u32 {
            subjects.process(u32::MAX - 1 - pid, if pid % 2 == 0 { "sh" } else { "true" });
        }
        assert_eq!(subjects.all.len(), MAX_PROCESSES + 2);
        assert_eq!(subjects.pooled, 20_000 - MAX_PROCESSES as u64);
        let pool = subjects.process(7, "sh");
        assert_eq!((subjects.all[pool as usize].pid, subjects.all[pool as usize].name.as_str()), (0, "sh"));
        for n in 0..2000 {
            subjects.process(7, &format!("name{n}"));
        }
        assert!(subjects.all.len() <= MAX_PROCESSES + MAX_NAMES + 2, "{}", subjects.all.len());
    }

    #[test]
    fn workers_of_the_kernel_are_one_by_kind() {
        let mut subjects = Subjects::default();
        let worker = subjects.kernel_thread(50, "kworker/u8:3");
        assert_eq!(subjects.kernel_thread(51, "kworker/1:0"), worker);
        assert_ne!(subjects.kernel_thread(52, "jbd2/vda-8"), worker);
        let interrupt = subjects.kernel_thread(0, "swapper/0");
        assert_eq!(subjects.all[interrupt as usize].name, INTERRUPT);
    }
}
