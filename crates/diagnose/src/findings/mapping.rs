//! Whose page faults they are: of files that are mapped, or of fresh memory. By the kernel functions of the samples, so
//! it also tells where the files themselves went unseen. What may not enter: causes.

use std::collections::BTreeMap;

use iowhy_core::profile::State;

use super::Facts;
use crate::account::Entry;
use crate::classify::{Operation, Wait};

/// Functions that only faults on files run.
const OF_FILES: [&str; 10] = [
    "filemap_map_pages",
    "filemap_map_folio_range",
    "next_uptodate_folio",
    "next_uptodate_page",
    "filemap_fault",
    "do_read_fault",
    "do_shared_fault",
    "do_fault_around",
    "do_page_mkwrite",
    "fault_dirty_shared_page",
];
/// Functions that faults on fresh memory run, and on pages that are copied because a parent or a child has them too; of a file's
/// page they run those above besides.
const OF_MEMORY: [&str; 6] = [
    "do_anonymous_page",
    "do_huge_pmd_anonymous_page",
    "alloc_anon_folio",
    "vma_alloc_zeroed_movable_folio",
    "do_wp_page",
    "wp_page_copy",
];
/// Fewer samples than this tell nothing,
const ENOUGH: u64 = 10;
/// or fewer than this where all are of one kind: five alike of two kinds have a probability of one in sixteen.
const ENOUGH_ALIKE: u64 = 5;

impl Facts<'_> {
    /// Whether most faults are those of mapped files; `None` where too few of them were seen to tell. A wait for the
    /// device within a fault is a file's, unless it is for swap.
    pub(super) fn faults_are_of_files(&self) -> Option<bool> {
        let (mut files, mut memory, mut events) = (0.0, 0.0, 0);
        for stack in self.profile.stacks.iter().filter(|s| s.known && s.state == State::Running) {
            let any = |of: &[&str]| self.profile.kernel_names(stack).any(|name| of.contains(&name));
            if any(&OF_FILES) {
                files += stack.time_ns;
            } else if any(&OF_MEMORY) {
                memory += stack.time_ns;
            } else {
                continue;
            }
            events += stack.events;
        }
        let waits = self.waiting(Operation::Fault, Wait::DeviceRead);
        let swap = self.short_memory().swap_waiting;
        let of_files = files + (waits.time_ns - swap.time_ns).max(0.0);
        let events = events + waits.events.saturating_sub(swap.events);
        let all_alike = of_files.min(memory) <= 0.0;
        let enough = if all_alike { ENOUGH_ALIKE } else { ENOUGH };
        (events >= enough).then_some(of_files > memory)
    }

    /// Samples of faults in each process, by thread: of threads of several processes that are one in the profile, in one of the processes
    /// on average. Each process takes faults when it starts, on its program and its libraries; those are no mapping's that it could make
    /// otherwise, and a process of few samples took no others that could be told from them.
    pub(super) fn processes_that_fault(&self) -> impl Fn(&Entry) -> bool + use<'_> {
        let (mut named, mut all) = (BTreeMap::<&str, u64>::new(), 0);
        for process in &self.profile.processes {
            *named.entry(&process.name).or_default() += process.count.max(1);
            all += process.count.max(1);
        }
        // The row of a pool is one process, which has no other; else the process by its number. Threads that have no process's name may be of
        // as many processes as there are.
        let place = move |index: u32| {
            let Some(thread) = self.profile.threads.get(index as usize) else { return (None, 0, 1) };
            let processes = named.get(thread.name.as_str()).copied().unwrap_or(all).min(thread.count).max(1);
            let pool = (processes > 1).then_some(index);
            (pool, if pool.is_some() { 0 } else { thread.pid }, processes)
        };
        let mut samples = BTreeMap::<(Option<u32>, u32), u64>::new();
        for entry in self.account.entries.iter().filter(|e| e.busy && e.class.operation == Operation::Fault) {
            let (pool, pid, _) = place(entry.thread);
            *samples.entry((pool, pid)).or_default() += entry.events;
        }
        move |entry| {
            let (pool, pid, processes) = place(entry.thread);
            samples.get(&(pool, pid)).is_some_and(|&samples| samples / processes >= ENOUGH_ALIKE)
        }
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use iowhy_core::profile::{Process, Thread};

    use super::*;
    use crate::findings::synthetic::Run;

    #[test]
    fn the_functions_of_the_samples_tell_files_from_memory() {
        let run = |name: &str, events| {
            Run::new(1.0).stack(&[name], State::Running, 1e-3, events).facts(|f| f.faults_are_of_files())
        };
        assert_eq!(run("next_uptodate_folio", 50), Some(true));
        assert_eq!(run("do_anonymous_page", 50), Some(false));
        assert_eq!(run("next_uptodate_folio", 3), None, "too few samples");
        assert_eq!(run("vfs_read", 50), None);
        assert_eq!(run("do_wp_page", 50), Some(false), "copied after a fork");
        assert_eq!(run("do_page_mkwrite", 50), Some(true));
    }

    #[test]
    fn faults_of_many_processes_in_one_row_are_those_of_one_on_average() {
        let faults = |count: u64, process: &str, processes: u64| {
            let mut run = Run::new(1.0).busy_sampled(Operation::Fault, Layer::Memory, 0.5, 400);
            run.profile.threads = vec![Thread { name: "true".into(), count, pid: 7, ..Thread::default() }];
            run.profile.processes =
                vec![Process { name: process.into(), count: processes, pid: 7, ..Process::default() }];
            run.facts(|f| f.account.entries.iter().any(f.processes_that_fault()))
        };
        assert!(!faults(900, "true", 1000), "as many as each takes when it starts");
        assert!(!faults(900, "app", 1000), "of how many processes is not known");
        assert!(faults(900, "app", 1), "threads of one process");
        assert!(faults(1, "true", 1000));
    }
}
