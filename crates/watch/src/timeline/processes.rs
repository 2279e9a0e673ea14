//! The processes of the program: who lives, who was whose parent, what was executed.

use std::collections::HashMap;

use iowhy_core::profile::Process;

/// Most processes that are told apart; of the others, those of one name are pooled.
const MAX_INDIVIDUAL: usize = 256;
/// Most pools with a name of their own.
const MAX_POOLS: usize = 256;

struct Living {
    process: Process,
    order: u64,
    threads: u32,
    /// It has just executed a program whose path was not seen yet.
    executed: bool,
}

/// The processes.
#[derive(Default)]
pub(super) struct Processes {
    living: HashMap<u32, Living>,
    ended: Vec<(u64, Process)>,
    pools: HashMap<String, Process>,
    seen: u64,
}

impl Processes {
    pub(super) fn lives(&self, pid: u32) -> bool {
        self.living.contains_key(&pid)
    }

    /// How many threads of it live.
    pub(super) fn threads(&self, pid: u32) -> u32 {
        self.living.get(&pid).map_or(0, |l| l.threads)
    }

    /// A thread of this process appeared. Returns whether the process is new.
    pub(super) fn thread_begins(&mut self, pid: u32, parent: Option<u32>, name: &str) -> bool {
        if let Some(living) = self.living.get_mut(&pid) {
            living.threads += 1;
            return false;
        }
        let program = parent.and_then(|p| self.living.get(&p)).and_then(|p| p.process.program.clone());
        let process = Process { pid, parent, name: name.to_owned(), program, count: 1 };
        self.living.insert(pid, Living { process, order: self.seen, threads: 1, executed: false });
        self.seen += 1;
        true
    }

    /// A thread of it is gone. Returns whether the process ended with it.
    pub(super) fn thread_ends(&mut self, pid: u32) -> bool {
        let Some(living) = self.living.get_mut(&pid) else { return false };
        living.threads = living.threads.saturating_sub(1);
        if living.threads > 0 {
            return false;
        }
        if let Some(l) = self.living.remove(&pid) {
            self.keep(l.order, l.process);
        }
        true
    }

    fn keep(&mut self, order: u64, process: Process) {
        // The first process is the program itself; a place is kept for it.
        if order == 0 || self.ended.len() < MAX_INDIVIDUAL - 1 {
            self.ended.push((order, process));
            return;
        }
        let room = self.pools.contains_key(&process.name) || self.pools.len() < MAX_POOLS;
        let name = if room { process.name.clone() } else { "(others)".to_owned() };
        let pool = self.pools.entry(name.clone()).or_insert_with(|| Process { name, count: 0, ..process });
        pool.count += 1;
    }

    pub(super) fn rename(&mut self, pid: u32, name: &str, exec: bool) {
        if let Some(living) = self.living.get_mut(&pid) {
            name.clone_into(&mut living.process.name);
            living.executed |= exec;
        }
    }

    /// Code of this path was mapped: the first after an exec is the program.
    pub(super) fn mapped(&mut self, pid: u32, path: &str) {
        if let Some(living) = self.living.get_mut(&pid).filter(|l| l.executed && path.starts_with('/')) {
            living.process.program = Some(path.to_owned());
            living.executed = false;
        }
    }

    pub(super) fn into_list(mut self) -> Vec<Process> {
        let mut living: Vec<(u64, Process)> =
            self.living.drain().map(|(_, l)| (l.order, l.process)).collect();
        living.sort_by_key(|(order, _)| *order);
        for (order, process) in living {
            self.keep(order, process);
        }
        self.ended.sort_by_key(|(order, _)| *order);
        let mut pools: Vec<Process> = self.pools.into_values().collect();
        pools.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        self.ended.into_iter().map(|(_, p)| p).chain(pools).collect()
    }
}
