//! Who waits and causes waits: processes, kernel threads by name. Bounded: processes beyond the bound share an entry of their name,
//! names beyond theirs one entry, and how many were pooled is counted.

use std::collections::{HashMap, HashSet};

use iowhy_core::machine::Subject;
use iowhy_linux::control_group;
use iowhy_linux::process::schedstat::Schedstat;
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
    times_before: HashMap<u32, Schedstat>,
    /// Who was met in this interval.
    met: HashSet<u32>,
}

impl Subjects {
    /// With the time that each process has spent on CPUs and in run queues so far.
    pub(super) fn new() -> Subjects {
        let mut subjects = Subjects { reader: Reader::new(), ..Subjects::default() };
        subjects.times_before = subjects.times();
        subjects
    }

    /// Whether a thread is there.
    pub(super) fn lives(&mut self, pid: u32, tid: u32) -> bool {
        task::name(&mut self.reader, pid, tid).is_some()
    }

    /// The index of a process.
    pub(super) fn process(&mut self, pid: u32, name: &str) -> u32 {
        if let Some(index) = self.by_pid.get(&pid) {
            self.met.insert(*index);
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
            self.met.insert(*index);
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
        let index = self.all.len() as u32 - 1;
        self.met.insert(index);
        index
    }

    /// Adds the time on CPUs and in run queues since the last time to each process, also to those that never waited for anything else.
    pub(super) fn add_times(&mut self) {
        let now = self.times();
        let before = std::mem::take(&mut self.times_before);
        for (pid, now) in &now {
            let before = before.get(pid).copied().unwrap_or_default();
            let cpu_ns = now.running_ns.saturating_sub(before.running_ns);
            let queued_ns = now.queued_ns.saturating_sub(before.queued_ns);
            let has_room = self.by_pid.len() < MAX_PROCESSES || self.by_pid.contains_key(pid);
            if (cpu_ns == 0 && queued_ns == 0) || !has_room {
                continue;
            }
            let Some(index) = self.of_process(*pid) else { continue };
            let subject = &mut self.all[index as usize];
            subject.cpu_ns += cpu_ns;
            subject.queued_ns += queued_ns;
        }
        self.times_before = now;
    }

    /// A process that runs, or a thread of the kernel. `None`: it has ended.
    fn of_process(&mut self, pid: u32) -> Option<u32> {
        if self.by_pid.contains_key(&pid) {
            return Some(self.process(pid, ""));
        }
        let name = task::name(&mut self.reader, pid, pid)?;
        let kernel = task::command_line(&mut self.reader, pid).is_none_or(|line| line.is_empty());
        Some(if kernel { self.kernel_thread(pid, &name) } else { self.process(pid, &name) })
    }

    /// A process may have been moved to another group, and may run another program, since it was first seen: those that live are told
    /// by what they are.
    pub(super) fn look_again(&mut self) {
        for subject in self.all.iter_mut().filter(|subject| subject.pid > 0) {
            let Some(groups) = control_group::paths_of(&mut self.reader, subject.pid) else { continue };
            subject.groups = groups;
            if let Some(name) = task::name(&mut self.reader, subject.pid, subject.pid)
                && name != subject.name
            {
                subject.command = task::command_line(&mut self.reader, subject.pid);
                subject.name = name;
            }
        }
    }

    /// Begins an interval, with 0 in all sums, and forgets all but those who were met in the one before, or are held elsewhere. Gives the
    /// new index of each that is kept.
    pub(super) fn begin_interval(&mut self, held: &HashSet<u32>) -> HashMap<u32, u32> {
        let met = std::mem::take(&mut self.met);
        let (mut all, mut places) = (Vec::new(), HashMap::new());
        for (index, of) in (0_u32..).zip(std::mem::take(&mut self.all)) {
            if met.contains(&index) || held.contains(&index) {
                places.insert(index, all.len() as u32);
                let Subject { pid, name, command, groups, kernel, .. } = of;
                all.push(Subject { pid, name, command, groups, kernel, ..Subject::default() });
            }
        }
        self.all = all;
        let moved = |index: &mut u32| places.get(index).map(|place| *index = *place).is_some();
        self.by_pid.retain(|_, index| moved(index));
        self.by_name.retain(|_, index| moved(index));
        places
    }

    fn times(&mut self) -> HashMap<u32, Schedstat> {
        let (mut sums, mut seen): (HashMap<u32, Schedstat>, usize) = (HashMap::new(), 0);
        for pid in processes() {
            for tid in threads(pid) {
                if seen == MAX_THREADS {
                    return sums;
                }
                seen += 1;
                if let Some(times) = task::schedstat(&mut self.reader, pid, tid) {
                    let sum = sums.entry(pid).or_default();
                    sum.running_ns += times.running_ns;
                    sum.queued_ns += times.queued_ns;
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
    fn who_is_met_no_more_is_forgotten_unless_something_of_it_is_under_way() {
        let mut subjects = Subjects::default();
        let pid = |n: u32| u32::MAX - 1 - n;
        let [gone, held, worker] = [
            subjects.process(pid(1), "gone"),
            subjects.process(pid(2), "held"),
            subjects.kernel_thread(9, "k"),
        ];
        subjects.all[held as usize].cpu_ns = 5;
        assert_eq!(subjects.begin_interval(&HashSet::new()).len(), 3, "all were met in the first");
        assert_eq!((subjects.process(pid(3), "new"), subjects.all[held as usize].cpu_ns), (3, 0));
        let places = subjects.begin_interval(&HashSet::from([held]));
        assert_eq!((places.get(&gone), places.get(&worker), places[&held], places[&3]), (None, None, 0, 1));
        let names: Vec<&str> = subjects.all.iter().map(|subject| subject.name.as_str()).collect();
        assert_eq!(names, ["held", "new"]);
        assert_eq!((subjects.process(pid(2), ""), subjects.process(pid(1), "back")), (0, 2));
    }

    #[test]
    fn a_long_watch_of_short_processes_forgets_them_interval_by_interval() {
        let mut subjects = Subjects::default();
        for pid in 0..10 * MAX_PROCESSES as u32 {
            subjects.process(u32::MAX - 1 - pid, "sh");
            if pid % 1000 == 0 {
                subjects.begin_interval(&HashSet::new());
            }
        }
        assert_eq!(subjects.pooled, 0);
        assert!(subjects.all.len() <= 2000, "{}", subjects.all.len());
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
