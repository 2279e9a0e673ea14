//! Whom a thread waits for that sleeps on a futex or a semaphore.
//!
//! A stack does not tell: a futex in shared memory and one between threads sleep in the same functions. A process with one
//! thread has nobody else to wait for. Semaphores of System V and message queues are objects between processes.

use std::collections::HashMap;

use iowhy_core::profile::{Profile, State};

use super::Account;
use crate::classify::Wait;

/// Whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// A thread of the same process.
    Thread,
    /// Another process, by a futex in memory that both share.
    Process,
    /// Another process, by a semaphore or message queue of the kernel's.
    Semaphore,
}

/// A sleep: what for, and for a futex whom for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sleep {
    /// By its stack.
    pub wait: Wait,
    /// Of [`Wait::Futex`].
    pub peer: Option<Peer>,
}

impl Sleep {
    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self.peer {
            Some(Peer::Process) => "shared-futex",
            Some(Peer::Semaphore) => "semaphore",
            Some(Peer::Thread) | None => self.wait.id(),
        }
    }

    /// In words that fit after "waiting for".
    pub fn words(self) -> &'static str {
        match self.peer {
            Some(Peer::Process) => "another process (lock in shared memory)",
            Some(Peer::Semaphore) => "a semaphore shared between processes",
            Some(Peer::Thread) | None => self.wait.words(),
        }
    }
}

/// The peers of the threads of a run.
pub(super) struct Sleeps {
    /// For each thread of the profile.
    peers: Vec<Peer>,
}

impl Sleeps {
    /// The sleep of a thread with this wait.
    pub(super) fn of(&self, wait: Wait, thread: u32) -> Sleep {
        let thread = thread as usize;
        let peer = || self.peers.get(thread).copied().unwrap_or(Peer::Thread);
        let peer = (wait == Wait::Futex).then(peer);
        Sleep { wait, peer }
    }
}

/// Kernel functions that wait for a semaphore or a message queue, and not for a futex.
const SEMAPHORES: [&str; 8] = [
    "do_semtimedop",
    "__do_semtimedop",
    "ksys_semtimedop",
    "do_msgrcv",
    "do_msgsnd",
    "wq_sleep",
    "do_mq_timedreceive",
    "do_mq_timedsend",
];

/// Whom each thread waits for in most of its time on futexes and semaphores.
pub(super) fn sleeps(profile: &Profile, account: &Account) -> Sleeps {
    let semaphores = asleep_in(profile, &SEMAPHORES);
    let futexes = asleep_for(profile, account, Wait::Futex);
    let alone = alone(profile);
    let mostly = |part: &[f64], whole: &[f64], thread: usize| part[thread] > 0.5 * whole[thread];
    let peer = |thread: usize| {
        if mostly(&semaphores, &futexes, thread) {
            Peer::Semaphore
        } else if alone[thread] {
            Peer::Process
        } else {
            Peer::Thread
        }
    };
    Sleeps { peers: (0..profile.threads.len()).map(peer).collect() }
}

/// For each thread, time asleep with one of these functions in its stack.
fn asleep_in(profile: &Profile, functions: &[&str]) -> Vec<f64> {
    let mut times = vec![0.0; profile.threads.len()];
    for stack in profile.stacks.iter().filter(|s| s.state == State::Blocked) {
        if profile.kernel_names(stack).any(|name| functions.contains(&name))
            && let Some(sum) = times.get_mut(stack.thread as usize)
        {
            *sum += stack.time_ns;
        }
    }
    times
}

/// For each thread, time in one kind of wait.
fn asleep_for(profile: &Profile, account: &Account, wait: Wait) -> Vec<f64> {
    let mut times = vec![0.0; profile.threads.len()];
    for entry in account.entries.iter().filter(|e| e.class.wait == Some(wait)) {
        if let Some(sum) = times.get_mut(entry.thread as usize) {
            *sum += entry.time_ns;
        }
    }
    times
}

/// For each thread, whether it was the only one of its process all the time. A pool holds threads of several processes: of
/// those it is known only where no process had a second thread.
fn alone(profile: &Profile) -> Vec<bool> {
    let threads = |count: u64| count.max(1);
    let mut by_process: HashMap<u32, u64> = HashMap::new();
    for thread in profile.threads.iter().filter(|t| t.count > 0) {
        *by_process.entry(thread.pid).or_default() += thread.count;
    }
    let processes: u64 = profile.processes.iter().map(|p| threads(p.count)).sum();
    let all_alone = profile.thread_count() == processes;
    let one = |pid: &u32| by_process.get(pid) == Some(&1);
    profile.threads.iter().map(|t| all_alone || (t.count == 1 && one(&t.pid))).collect()
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use iowhy_core::profile::{Process, StackTime, Symbol, Thread};

    use super::*;
    use crate::account::{Delay, Entry};
    use crate::classify::{Class, Operation};

    #[test]
    fn who_is_waited_for_follows_from_the_threads_of_a_process_and_the_call() {
        let thread = |pid, count| Thread { pid, count, ..Thread::default() };
        // Two threads of one process, two processes of one, and a pool of processes.
        let threads = vec![thread(1, 1), thread(1, 1), thread(2, 1), thread(3, 1), thread(4, 5)];
        let processes = [1, 2, 3, 4].map(|pid| Process { pid, count: 1, ..Process::default() }).to_vec();
        let names = ["futex_do_wait", "do_semtimedop"];
        let symbols = names.map(|name| Symbol { name: name.to_owned(), ..Symbol::default() }).to_vec();
        let stack = |thread, kernel| StackTime {
            thread,
            state: State::Blocked,
            kernel: vec![kernel],
            user: Vec::new(),
            known: true,
            time_ns: 10.0,
            wall_ns: 0.0,
            events: 1,
            seen_ns: 0.0,
            requests: None,
        };
        let stacks = vec![stack(0, 0), stack(1, 0), stack(2, 0), stack(3, 1), stack(4, 0)];
        let profile = Profile { threads, processes, symbols, stacks, ..Profile::default() };
        let class = Class { operation: Operation::Futex, layer: Layer::Elsewhere, wait: Some(Wait::Futex) };
        let entry = |thread| Entry {
            thread,
            class,
            busy: false,
            time_ns: 10.0,
            wall_ns: 0.0,
            events: 1,
            delay: Delay::default(),
        };
        let entries = (0..5).map(entry).collect();
        let account = Account { entries, ..Account::default() };
        let kinds = sleeps(&profile, &account);
        let peers = [0, 1, 2, 3, 4].map(|thread| kinds.of(Wait::Futex, thread).peer.unwrap());
        assert_eq!(peers, [Peer::Thread, Peer::Thread, Peer::Process, Peer::Semaphore, Peer::Thread]);
        assert_eq!(kinds.of(Wait::Signal, 2), Sleep { wait: Wait::Signal, peer: None });
        let ids = [2, 3, 0].map(|thread| kinds.of(Wait::Futex, thread).id());
        assert_eq!(ids, ["shared-futex", "semaphore", "futex"]);
    }
}
