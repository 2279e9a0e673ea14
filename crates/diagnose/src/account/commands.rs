//! A run by command: what the processes of one name did, and whom they waited for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iowhy_core::profile::{OwnIo, Process, Profile};

use super::peer::{Sleep, sleeps};
use super::{Account, Entry, Peer, WallClock};
use crate::classify::{Operation, Wait};

/// A sleep below this part of the life of a command's threads is not named.
const MATTERS: f64 = 0.1;
/// Sleeps that are named.
const MAX_NAMED: usize = 2;
/// Commands that are named in one of them.
const MAX_COMMANDS: usize = 3;

/// The processes of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Command {
    /// Their last name; threads without a known process have their own.
    pub name: String,
    /// How many.
    pub processes: u64,
    /// CPU time.
    pub cpu_ns: f64,
    /// Time asleep on the I/O path.
    pub path_ns: f64,
    /// Part of the wall clock in which their threads were active, shared with others that were active meanwhile.
    pub wall_ns: f64,
    /// What they moved themselves; `None` where the counters of one of them could not be read.
    pub own: Option<OwnIo>,
    /// Whom or what their threads slept for off the path, most first: `git (child)`, `a timer`.
    pub waits_for: Vec<String>,
}

/// The commands of a run, those that took most of the wall clock first.
pub fn commands(profile: &Profile, account: &Account, clock: &WallClock) -> Vec<Command> {
    let tree = Tree::new(profile);
    let mut commands: BTreeMap<&str, Command> = BTreeMap::new();
    for process in &profile.processes {
        let command = commands.entry(&process.name).or_default();
        command.own = match (command.processes, command.own, process.own) {
            (0, _, own) => own,
            (_, Some(sum), Some(own)) => Some(sum.plus(own)),
            _ => None,
        };
        command.processes += process.count.max(1);
    }
    for thread in 0..profile.threads.len() {
        let command = commands.entry(tree.command(thread)).or_default();
        command.cpu_ns += profile.threads[thread].running_ns as f64;
    }
    for entry in &account.entries {
        let Some(command) = commands.get_mut(tree.command(entry.thread as usize)) else { continue };
        command.wall_ns += entry.wall_ns;
        if entry.class.wait.is_some_and(Wait::on_path) {
            command.path_ns += entry.time_ns;
        }
    }
    for (name, waits_for) in tree.waits_for(account, clock) {
        if let Some(command) = commands.get_mut(name) {
            command.waits_for = waits_for;
        }
    }
    let mut commands: Vec<Command> =
        commands.into_iter().map(|(name, command)| Command { name: name.to_owned(), ..command }).collect();
    commands.sort_by(|a, b| b.wall_ns.total_cmp(&a.wall_ns).then_with(|| b.cpu_ns.total_cmp(&a.cpu_ns)));
    commands
}

/// All time of some threads, and of it their sleeps off the path by whom they were for.
type Times = (f64, BTreeMap<String, f64>);

/// Who is whose child, and who is at the other end of a pipe.
struct Tree<'a> {
    profile: &'a Profile,
    /// The first process of each number.
    by_pid: HashMap<u32, &'a Process>,
    /// Commands of the children of a command.
    children: HashMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Tree<'a> {
    fn new(profile: &'a Profile) -> Tree<'a> {
        let mut tree = Tree { profile, by_pid: HashMap::new(), children: HashMap::new() };
        for process in &profile.processes {
            tree.by_pid.entry(process.pid).or_insert(process);
        }
        for process in &profile.processes {
            let parent = process.parent.and_then(|pid| tree.by_pid.get(&pid));
            if let Some(parent) = parent.filter(|parent| parent.pid != process.pid) {
                tree.children.entry(&parent.name).or_default().insert(&process.name);
            }
        }
        tree
    }

    /// The command of a thread. CPU time of nobody, and a process that was pooled with others, have a name of their own.
    fn command(&self, thread: usize) -> &'a str {
        let Some(thread) = self.profile.threads.get(thread) else { return "" };
        let process = self.by_pid.get(&thread.pid).filter(|_| thread.count > 0);
        process.map_or(thread.name.as_str(), |process| &process.name)
    }

    /// For each command whom its threads waited for. Threads that idle throughout tell only of a command that has no others.
    fn waits_for(&self, account: &Account, clock: &WallClock) -> BTreeMap<&'a str, Vec<String>> {
        let kinds = sleeps(self.profile, account);
        // By command, first of threads that do something: all time, and sleeps.
        let mut times: BTreeMap<(&str, bool), Times> = BTreeMap::new();
        for entry in &account.entries {
            let command = self.command(entry.thread as usize);
            let (all, sleeps) = times.entry((command, clock.idles(entry.thread))).or_default();
            *all += entry.time_ns;
            let off_path = entry.class.wait.filter(|wait| !wait.on_path());
            let Some(wait) = off_path else { continue };
            if let Some(whom) = self.whom(entry, kinds.of(wait, entry.thread)) {
                *sleeps.entry(whom).or_default() += entry.time_ns;
            }
        }
        let mut named = BTreeMap::new();
        for ((command, _), (all, sleeps)) in times {
            // Those that do something come first.
            named.entry(command).or_insert_with(|| {
                let mut most: Vec<(String, f64)> =
                    sleeps.into_iter().filter(|(_, ns)| *ns >= MATTERS * all).collect();
                most.sort_by(|a, b| b.1.total_cmp(&a.1));
                most.into_iter().take(MAX_NAMED).map(|(whom, _)| whom).collect()
            });
        }
        named
    }

    /// Whom a sleep off the path is for; `None`: not known.
    fn whom(&self, entry: &Entry, sleep: Sleep) -> Option<String> {
        let command = self.command(entry.thread as usize);
        let some = |names: BTreeSet<&str>, how: &str| match names.len() {
            0 => None,
            n if n > MAX_COMMANDS => Some(format!("{n} commands ({how})")),
            _ => Some(format!("{} ({how})", Vec::from_iter(names).join(", "))),
        };
        Some(match sleep.wait {
            Wait::Unknown => return None,
            Wait::Child => some(self.children.get(command).cloned().unwrap_or_default(), "child")
                .unwrap_or_else(|| "a child".to_owned()),
            // A shell that waits for its children sleeps until the signal of their end.
            Wait::Signal => some(self.children.get(command).cloned().unwrap_or_default(), "child, by signal")
                .unwrap_or_else(|| sleep.words().to_owned()),
            Wait::Pipe => some(self.other_ends(entry), "pipe").unwrap_or_else(|| "a pipe".to_owned()),
            Wait::Poll => "events".to_owned(),
            Wait::Futex => match sleep.peer {
                Some(Peer::Process) => "a lock in shared memory".to_owned(),
                Some(Peer::Semaphore) => "a semaphore".to_owned(),
                _ => "its threads".to_owned(),
            },
            _ => sleep.words().to_owned(),
        })
    }

    /// Commands that have the other end of a pipe of this thread's process.
    fn other_ends(&self, entry: &Entry) -> BTreeSet<&'a str> {
        let Some(thread) = self.profile.threads.get(entry.thread as usize) else { return BTreeSet::new() };
        let Some(process) = self.by_pid.get(&thread.pid) else { return BTreeSet::new() };
        let writes = entry.class.operation == Operation::Write;
        let own = process.pipes.iter().filter(|end| end.writes == writes);
        let inodes: BTreeSet<u64> = own.map(|end| end.inode).collect();
        let holds = |other: &&Process| {
            other.pid != process.pid
                && other.pipes.iter().any(|end| end.writes != writes && inodes.contains(&end.inode))
        };
        let holders: Vec<&Process> = self.profile.processes.iter().filter(holds).collect();
        // A shell keeps the ends that it passed on to its children.
        let passed_on = |holder: &Process| holders.iter().any(|other| other.parent == Some(holder.pid));
        holders.iter().filter(|holder| !passed_on(holder)).map(|holder| holder.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use iowhy_core::profile::{PipeEnd, Thread};

    use super::*;
    use crate::account::Delay;
    use crate::classify::Class;

    fn process(pid: u32, parent: Option<u32>, name: &str, pipes: &[(u64, bool)]) -> Process {
        let pipes = pipes.iter().map(|(inode, writes)| PipeEnd { inode: *inode, writes: *writes }).collect();
        let own = Some(OwnIo { read_bytes: u64::from(pid), ..OwnIo::default() });
        Process { pid, parent, name: name.to_owned(), count: 1, pipes, own, ..Process::default() }
    }

    fn entry(thread: u32, operation: Operation, wait: Option<Wait>, time_ns: f64) -> Entry {
        let layer = wait.map_or(Layer::Program, |wait| wait.layer().unwrap_or(Layer::Unexplained));
        let wall_ns = if wait.is_some_and(|wait| !wait.on_path()) { 0.0 } else { time_ns };
        Entry {
            thread,
            class: Class { operation, layer, wait },
            busy: wait.is_none(),
            time_ns,
            wall_ns,
            events: 1,
            delay: Delay::default(),
        }
    }

    /// `sh` runs `find | xargs`, and `xargs` two times `grep`. The shell still holds both ends of the pipe.
    fn pipeline() -> (Profile, Account) {
        let processes = vec![
            process(1, None, "sh", &[(9, true), (9, false)]),
            process(2, Some(1), "find", &[(9, true)]),
            process(3, Some(1), "xargs", &[(9, false)]),
            process(4, Some(3), "grep", &[]),
            process(5, Some(3), "grep", &[]),
        ];
        let thread =
            |pid| Thread { pid, tid: pid, count: 1, running_ns: 1, lifetime_ns: 100, ..Thread::default() };
        let profile =
            Profile { wall_ns: 100, threads: (1..=5).map(thread).collect(), processes, ..Profile::default() };
        let entries = vec![
            entry(0, Operation::Process, Some(Wait::Child), 99.0),
            entry(1, Operation::Read, Some(Wait::DeviceRead), 30.0),
            entry(2, Operation::Read, Some(Wait::Pipe), 40.0),
            entry(2, Operation::Process, Some(Wait::Child), 50.0),
            entry(3, Operation::User, None, 20.0),
            entry(4, Operation::Read, Some(Wait::DeviceRead), 50.0),
        ];
        let account = Account { wall_ns: 100.0, entries, ..Account::default() };
        (profile, account)
    }

    fn table(profile: &Profile, account: &Account) -> Vec<Command> {
        commands(profile, account, &WallClock::new(profile, account))
    }

    #[test]
    fn who_waits_for_whom_follows_from_parents_and_pipes() {
        let (profile, account) = pipeline();
        let table = table(&profile, &account);
        let names: Vec<&str> = table.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["grep", "find", "sh", "xargs"]);
        let [grep, find, sh, xargs] = [0, 1, 2, 3].map(|i| &table[i]);
        assert_eq!((grep.processes, grep.cpu_ns, grep.path_ns, grep.wall_ns), (2, 2.0, 50.0, 70.0));
        assert_eq!(grep.own.unwrap().read_bytes, 9);
        assert_eq!(sh.waits_for, ["find, xargs (child)"]);
        // Not the shell, which has passed its end on.
        assert_eq!(xargs.waits_for, ["grep (child)", "find (pipe)"]);
        assert!(grep.waits_for.is_empty() && find.waits_for.is_empty());
    }

    #[test]
    fn a_process_without_counters_leaves_its_command_without() {
        let (mut profile, account) = pipeline();
        profile.processes[4].own = None;
        let table = table(&profile, &account);
        assert_eq!(table.iter().map(|c| c.own.is_some()).collect::<Vec<_>>(), [false, true, true, true]);
    }
}
