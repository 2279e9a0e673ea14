//! The processes of the program: who lives, who was whose parent, what was executed.

use std::collections::HashMap;

use iowhy_core::profile::{OwnIo, Process};

/// Most processes that are told apart; of the others, those of one name are pooled.
const MAX_INDIVIDUAL: usize = 256;
/// Most pools with a name of their own.
const MAX_POOLS: usize = 256;
/// Processes of a pool whose numbers are kept: as many as the observer in the kernel counts.
const MAX_MEMBERS: usize = 65_536;

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
    /// With the numbers of the processes in them.
    pools: HashMap<String, (Process, Vec<u32>)>,
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
        let name = name.to_owned();
        let process = Process { pid, parent, name, program, count: 1, ..Process::default() };
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
        let pid = process.pid;
        let empty = || (Process { name: name.clone(), count: 0, ..process }, Vec::new());
        let (pool, members) = self.pools.entry(name.clone()).or_insert_with(empty);
        pool.count += 1;
        if members.len() < MAX_MEMBERS {
            members.push(pid);
        }
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

    /// All of them, with what each did itself (by number).
    pub(super) fn into_list(mut self, own: &HashMap<u32, OwnIo>) -> Vec<Process> {
        let mut living: Vec<(u64, Process)> =
            self.living.drain().map(|(_, l)| (l.order, l.process)).collect();
        living.sort_by_key(|(order, _)| *order);
        for (order, process) in living {
            self.keep(order, process);
        }
        self.ended.sort_by_key(|(order, _)| *order);
        // Of two processes that had one number, one after the other, nobody knows who did what.
        let mut uses: HashMap<u32, u64> = HashMap::new();
        let individual = self.ended.iter().map(|(_, process)| process.pid);
        for pid in individual.chain(self.pools.values().flat_map(|(_, members)| members.iter().copied())) {
            *uses.entry(pid).or_default() += 1;
        }
        let own = |pid: &u32| own.get(pid).copied().filter(|_| uses.get(pid) == Some(&1));
        let mut pools: Vec<Process> = self
            .pools
            .into_values()
            .map(|(pool, members)| {
                let all = members.len() as u64 == pool.count;
                let known = if all { members.as_slice() } else { &[0] };
                let sum = known.iter().try_fold(OwnIo::default(), |sum, pid| Some(sum.plus(own(pid)?)));
                Process { own: sum, ..pool }
            })
            .collect();
        pools.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        let individual = self.ended.into_iter().map(|(_, p)| Process { own: own(&p.pid), ..p });
        individual.chain(pools).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(pids: impl Iterator<Item = u32>) -> Processes {
        let mut processes = Processes::default();
        for pid in pids {
            processes.thread_begins(pid, None, "x");
            processes.thread_ends(pid);
        }
        processes
    }

    #[test]
    fn what_pooled_processes_did_is_added_up() {
        let own: HashMap<u32, OwnIo> =
            (1..=1000).map(|pid| (pid, OwnIo { read_bytes: 2, ..OwnIo::default() })).collect();
        let list = ended(1..=1000).into_list(&own);
        let pool = list.last().unwrap();
        assert!(pool.count > 700 && pool.own.unwrap().read_bytes == 2 * pool.count, "{pool:?}");
        // One of them was not counted: of the pool nothing is known.
        let mut own = own;
        own.remove(&1000);
        assert_eq!(ended(1..=1000).into_list(&own).last().unwrap().own, None);
    }

    #[test]
    fn two_processes_that_had_one_number_are_not_told_apart() {
        let own = HashMap::from([(1, OwnIo::default()), (2, OwnIo::default())]);
        let list = ended([1, 2, 1].into_iter()).into_list(&own);
        assert_eq!(list.iter().map(|p| p.own.is_some()).collect::<Vec<_>>(), [false, true, false]);
    }
}
