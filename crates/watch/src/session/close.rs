//! The ends of a watch: what is read before the program runs, and how all sums become one profile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iowhy_core::profile::{
    CallPattern, Course, End, FileUse, IoCounters, Limitation, LimitedGroup, Observer, OtherOnCpu, Process,
    Profile, RingRequests, RingUse, Sight,
};

use iowhy_core::units;

use super::Watched;
use super::before::Before;
use super::counted::reap;
use super::counting;
use super::event_loop::EventLoop;
use super::files::Files;
use super::programs::Programs;
use super::served;
use super::state::{CpuTotal, State};
use crate::block::{BlockTracer, KeptRequests};
use crate::child::{Adoption, Child};
use crate::event_log::EventLog;
use crate::perf::{self, Counts};
use crate::timeline::Ticks;
use iowhy_linux::block::uses::{Snapshot, uses};
use iowhy_linux::clock::{file_time_lag_ns, monotonic_ns, process_cpu_ns, thread_cpu_ns, unix_ns};
use iowhy_linux::file_facts::identity;
use iowhy_linux::mountstats::{self, NfsMount};
use iowhy_linux::pressure;
use iowhy_linux::process::counters::{of_thread, since};
use iowhy_linux::process::{task, tree};

/// Devices, pressure from outside, and NFS mounts at the end.
type Machine = (Snapshot, pressure::AtEnd, Vec<NfsMount>);

/// What was read at the end, for the profile.
struct Last {
    end: End,
    end_ns: u64,
    io: IoCounters,
    counted: Option<counting::Counts>,
    counts: Option<Counts>,
    own_cpu_ns: u64,
    /// Devices, pressure from outside, and NFS mounts.
    machine: Option<Machine>,
    /// Control groups with limits.
    limited: Vec<LimitedGroup>,
    course: Option<Course>,
    /// The file of a command that ended.
    file: Option<PathBuf>,
}

impl EventLoop<'_> {
    /// Ends the watch: all sources are emptied and closed, the command is reaped (`child`, if it ended), and what was
    /// added up becomes the profile.
    pub(super) fn close(mut self, end: End, child: Option<Child>, adoption: &mut Adoption) -> Watched {
        // What we do from here on takes nothing from the program.
        if let Some(recorder) = &self.recorder {
            recorder.clocks(false);
        }
        self.watched_cpu_ns = self.own_cpu_now_ns().saturating_sub(self.own_cpu_before_ns);
        // What can be read of a program that has ended, or is about to be let go, comes first.
        let now = monotonic_ns();
        if let Some(child) = &child
            && let Some(t) = task::schedstat(&mut self.state.reader, child.pid(), child.pid())
        {
            self.state.last_times = Some((child.pid(), t.running_ns, t.queued_ns));
        }
        self.read_times();
        // What the machine did after this moment is not the program's: neither our own end nor our self-test.
        let groups = std::mem::take(&mut self.state.groups).most_frequent();
        let limited = groups.as_ref().map(|known| known.limited.clone()).unwrap_or_default();
        if let (Some(before), Some(known)) = (&mut self.before, groups) {
            before.pressure.inside(known.groups, known.throttled_ns, known.memory);
        }
        let machine = self.before.as_ref().map(|before| {
            let reader = &mut self.state.reader;
            (Snapshot::with_limits(reader), before.pressure.end(reader), mountstats::read())
        });
        let own_cpu_ns = self.own_cpu_now_ns().saturating_sub(self.own_cpu_before_ns);
        self.file_round(now);
        let own = self.moved();
        let course = self.course.take().and_then(|course| course.finish(now, own, &mut self.state.reader));
        self.drain(true);
        let counts = self.recorder.take().map(|recorder| recorder.counts());
        if let Some(observer) = self.observer.as_mut().filter(|_| self.observed_switches) {
            self.self_test.switch_cost_ns = observer.switch_cost_ns();
        }
        let run = Duration::from_nanos(now.saturating_sub(self.state.start_ns));
        let counted = self
            .counting
            .take()
            .zip(self.observer.take())
            .and_then(|(counting, observer)| counting.finish(observer, run, &mut self.limitations));
        self.count_by_process(counted.as_ref());
        let end_ns = self.state.end_ns(now);
        let file = child.as_ref().map(|child| child.file().to_owned());
        self.count_processes(child, adoption);
        let io = self.state.counted.total();
        self.told_of_those_left(end, adoption);
        if self.command {
            self.measure_costs(Some(Duration::from_nanos(end_ns.saturating_sub(self.state.start_ns))));
        }
        self.watched(Last { end, end_ns, io, counted, counts, own_cpu_ns, machine, limited, course, file })
    }

    /// CPU time of the watch so far: of all our threads (one may still be loading a program into the kernel), or, where the others are what
    /// is watched, of this one.
    pub(super) fn own_cpu_now_ns(&self) -> u64 {
        if self.own { thread_cpu_ns() } else { process_cpu_ns() }
    }

    /// Tells the processes' own counters apart, where the observer saw every thread.
    fn count_by_process(&mut self, counted: Option<&counting::Counts>) {
        let Some(counted) =
            counted.filter(|counted| !self.own && counted.calls.as_ref().is_some_and(|calls| calls.complete))
        else {
            return;
        };
        let State { by_process, reader, threads, own_io, .. } = &mut self.state;
        let processes = counted.processes.clone();
        *own_io = std::mem::take(by_process).finish(reader, processes, &counted.living, threads.iter());
    }

    /// Sums the counters of all processes, each once, and reaps those that are ours.
    fn count_processes(&mut self, child: Option<Child>, adoption: &mut Adoption) {
        for pid in std::mem::take(&mut self.state.born) {
            adoption.descendant(pid);
        }
        if self.own && self.state.ended_threads > 0 {
            // The kernel keeps the counters of a thread only while it lives: the others' alone would be too few.
            self.limitations.push(Limitation {
                id: "ended-threads".to_owned(),
                sentence: format!(
                    "the counters of {} threads went with them: calls, bytes and CPU time are not known",
                    self.state.ended_threads
                ),
                fix: None,
            });
            return;
        }
        let State { counted, reader, threads, .. } = &mut self.state;
        if self.own {
            for (pid, tid) in threads.iter() {
                if let Some(now) = of_thread(reader, pid, tid) {
                    counted.add(match self.threads_before.get(&tid) {
                        Some(before) => since(&now, before),
                        None => now,
                    });
                }
            }
            return;
        }
        if let Some(mut child) = child {
            // A zombie still tells, and its counters hold all children that it waited for.
            let pid = child.pid();
            let last = self.held_io.as_ref().and_then(|held| held.read(reader)).map(without_our_gate);
            if let Some(usage) = child.reap() {
                counted.reaped(last, usage.without_cpu_ns(self.before_exec_ns));
            }
            threads.remove_process(pid);
        }
        if adoption.active() {
            let ours = tree::children(reader, std::process::id());
            reap(adoption, &ours, counted, reader);
        }
        let living = threads.processes();
        counted.living(reader, &living);
    }

    /// The kernel's account of the program's CPU time, where its threads' own figures can be compared with it: at most all
    /// CPUs for the whole time.
    fn cpu_of_the_program(
        &self,
        end: End,
        end_ns: u64,
        counted_ns: Option<u64>,
        machine: Option<&Machine>,
    ) -> CpuTotal {
        let wall_ns = end_ns.saturating_sub(self.state.start_ns);
        let most_ns = wall_ns.saturating_mul(perf::online_cpus());
        let exact = self.command && matches!(end, End::Code(_) | End::Signal(_));
        // Of a process that runs already the kernel tells whole ticks, of each of four counters, at start and end.
        let living = self.state.threads.processes().len() as u64;
        let blur_ns = if exact { 0 } else { living.max(1).saturating_mul(8 * task::tick_ns()) };
        let comparable = exact || (!self.own && self.state.ended_threads > 0);
        let taken =
            self.before.as_ref().zip(machine).map(|(before, (_, now, _))| before.pressure.taken_ns(now));
        CpuTotal {
            ns: counted_ns.filter(|_| comparable).map(|ns| ns.saturating_sub(blur_ns).min(most_ns)),
            exact: exact && living == 0,
            taken_ns: taken.unwrap_or(0),
        }
    }

    /// Names descendants that outlive the command.
    fn told_of_those_left(&mut self, end: End, adoption: &Adoption) {
        if matches!(end, End::Running) || self.own {
            return;
        }
        let reader = &mut self.state.reader;
        let mut left: Vec<u32> = self.state.threads.processes();
        if adoption.active() {
            let ours = tree::children(reader, std::process::id());
            left.extend(ours.into_iter().filter(|pid| adoption.knows(*pid)));
        }
        left.sort_unstable();
        left.dedup();
        left.retain(|pid| task::process_stat(reader, *pid).is_some_and(|s| !matches!(s.state, 'Z' | 'X')));
        let Some(first) = left.first() else { return };
        let name = task::name(reader, *first, *first).unwrap_or_default();
        let who = match left.len() {
            1 => format!("process {first} ({name})"),
            n => format!("{n} processes, among them {first} ({name}),"),
        };
        self.limitations.push(Limitation {
            id: "descendants-left".to_owned(),
            sentence: format!(
                "the program ended and left {who} running: what they do from then on is not seen"
            ),
            fix: Some(format!("iowhy attach {first}")),
        });
    }

    /// Tells of CPU time that was recorded and that the kernel added to nobody's: of a process that its parent does not wait for.
    fn told_of_uncounted(&mut self, beyond_ns: f64) {
        if beyond_ns >= task::tick_ns() as f64 {
            self.limitations.push(Limitation {
                id: "uncounted-cpu-time".to_owned(),
                sentence: format!(
                    "the kernel's total of CPU time lacks {} of processes that nobody waited for: their times are those that were \
                     recorded",
                    units::time(beyond_ns)
                ),
                fix: None,
            });
        }
    }

    fn told_of_lost_records(&mut self, lost: u64, all: u64) {
        if lost > 0 {
            self.limitations.push(Limitation {
                id: "lost-records".to_owned(),
                sentence: format!("the kernel could not store {lost} of {all} records"),
                fix: None,
            });
        }
    }

    /// CPU time that the watch took within the program: switches and ticks at the cost of the self-test, counting.
    fn cost_in_program_ns(&self, counted: Option<&counting::Counts>) -> f64 {
        self.state.own_switches as f64 * self.self_test.switch_cost_ns.unwrap_or(0.0)
            + self.state.own_ticks as f64 * self.self_test.tick_cost_ns.unwrap_or(0.0)
            + counted.map_or(0.0, |counted| counted.cost_ns)
    }

    fn watched(mut self, last: Last) -> Watched {
        let Last { end, end_ns, io, counted, counts, own_cpu_ns, machine, limited, course, file } = last;
        let recorded = counts.is_some();
        let counts = counts.unwrap_or_default();
        self.told_of_lost_records(counts.lost, counts.records + counts.lost);
        let duty = self.duty.as_ref().filter(|_| recorded).map_or(0.0, |duty| duty.share(end_ns));
        let program_cpu = io.user_ns.zip(io.system_ns).map(|(u, s)| u + s);
        let in_program_ns = self.cost_in_program_ns(counted.as_ref());
        let counted = counted.unwrap_or_default();
        let cpu = self.cpu_of_the_program(end, end_ns, program_cpu, machine.as_ref());
        let mut parts = self.state.finish_line(end_ns, cpu, self.before_exec_ns);
        let events = parts.log.take().map(|log| {
            let requests = self.state.block.as_mut().and_then(BlockTracer::requests);
            completed(log, requests, &counted, self.rights.clock_period_ns)
        });
        self.told_of_uncounted(parts.beyond_total_ns);
        let others = others_on_cpu(&parts.ticks, self.state.programs.get_mut());
        let ran = file.as_deref().map(|file| (file, units::time(parts.wall_ns as f64)));
        self.limitations.splice(0..0, self.state.hidden.limitations(ran));
        let State { mut reader, mut files, block, threads, .. } = self.state;
        let rings = with_requests(files.rings(), counted.rings);
        let mounts = files.mounts(&mut reader);
        let processes = with_ends(parts.processes, &files);
        let connections =
            counted.calls.is_some().then(|| files.connections(&counted.sockets, &threads.processes()));
        let (files, code_bytes, wanted) =
            files.finish(counted.files, &counted.versions, &mounts, &mut reader);
        let rpc = nfs(&self.before, &machine);
        let served = served::mounts(&mounts, &files, self.directory.as_deref(), rpc);
        let (devices, mut pressure) = match (&self.before, &machine) {
            (Some(before), Some((devices, pressure, _))) => (
                uses(&before.devices, devices, &wanted, before.pressure.groups()),
                before.pressure.until(pressure, program_cpu.unwrap_or(0) + own_cpu_ns),
            ),
            _ => Default::default(),
        };
        // Only a clock on every CPU hits others as it hits the program.
        if self.rights.per_cpu_clock && recorded {
            pressure.others_on_cpu = others;
        }
        let profile = Profile {
            wall_ns: parts.wall_ns,
            end,
            sight: Sight { tier: self.rights.tier, limitations: self.limitations },
            observer: Observer {
                own_cpu_ns: self.watched_cpu_ns,
                in_program_ns,
                events: counts.records + counted.recorded,
                lost: counts.lost,
                switch_duty: duty,
                recorded_calls: counted.recorded,
                peak_memory_bytes: peak_memory(),
                switch_cost_ns: self.self_test.switch_cost_ns,
            },
            directory: self.directory,
            processes,
            threads: parts.threads,
            stacks: parts.stacks,
            symbols: parts.symbols,
            idle_wall_ns: parts.idle_wall_ns,
            io,
            calls: counted.calls,
            pattern: identified(counted.pattern, &files, end_ns.saturating_sub(parts.wall_ns)),
            files,
            code_bytes: code_bytes.filter(|_| self.command && recorded && counts.lost == 0),
            kinds: counted.kinds,
            connections,
            devices,
            served,
            block: block.map(|b| b.finish(parts.charges.as_ref())),
            rings,
            pressure,
            groups: limited,
            course,
        };
        debug_assert_eq!(profile.check(1e-6), Ok(()));
        Watched { profile, events }
    }
}

/// What looks saw in flight on rings, with the requests that were counted.
fn with_requests(seen: Option<RingUse>, requests: Vec<RingRequests>) -> Option<RingUse> {
    let used = seen.is_some() || !requests.is_empty();
    used.then(|| RingUse { requests, ..seen.unwrap_or_default() })
}

/// Adds what looks found open: ends of pipes, and sockets that listen.
fn with_ends(mut processes: Vec<Process>, files: &Files) -> Vec<Process> {
    for process in &mut processes {
        process.listens = files.listens(process.pid);
        process.pipes = files.pipes(process.pid);
    }
    processes
}

/// The NFS mounts at the start and at the end.
fn nfs<'a>(before: &'a Option<Before>, machine: &'a Option<Machine>) -> (&'a [NfsMount], &'a [NfsMount]) {
    before
        .as_ref()
        .zip(machine.as_ref())
        .map(|(before, (.., now))| (&*before.nfs, &**now))
        .unwrap_or_default()
}

/// The log of the time line, with requests and slow calls.
fn completed(
    log: EventLog,
    requests: Option<KeptRequests>,
    counted: &counting::Counts,
    clock_period_ns: u64,
) -> EventLog {
    let start_ns = log.start_ns;
    let since = |time: u64| time.saturating_sub(start_ns);
    let KeptRequests { mut requests, full_ns, others_full_ns } = requests.unwrap_or_default();
    for request in &mut requests {
        request.inserted_ns = request.inserted_ns.map(since);
        (request.issued_ns, request.done_ns) = (since(request.issued_ns), since(request.done_ns));
    }
    let mut calls = counted.slowest.clone();
    for call in &mut calls {
        (call.begin_ns, call.end_ns) = (since(call.begin_ns), since(call.end_ns));
    }
    let full_ns = [log.full_ns, full_ns.map(since)].into_iter().flatten().min();
    let recorded_calls = counted.recorded;
    let mut log = EventLog {
        clock_period_ns,
        requests,
        calls,
        recorded_calls,
        full_ns,
        others_full_ns: others_full_ns.map(since),
        ..log
    };
    log.cut();
    log
}

/// Smaller files that no call was seen on are rarely what a program reads through a ring.
const MIN_UNSEEN_BYTES: u64 = 1 << 20;

/// Adds to the files of a pattern what they are now, so that a replay can tell whether they are still the same. Files that
/// were mapped before any call was recorded join them, and large ones that were open without a call on them: a ring's.
/// A file that is gone, or has another name, ends with ` (deleted)`, as in `/proc/PID/fd`. `begin_ns`: when the watch began.
fn identified(mut pattern: CallPattern, files: &[FileUse], begin_ns: u64) -> CallPattern {
    let begin = i64::try_from(unix_ns(begin_ns).saturating_sub(file_time_lag_ns())).unwrap_or(i64::MAX);
    let unseen = |f: &FileUse| {
        f.reads.calls + f.writes.calls == 0 && f.size_bytes.is_some_and(|bytes| bytes >= MIN_UNSEEN_BYTES)
    };
    for file in files.iter().filter(|f| f.kind == "regular" && (f.mapped || unseen(f))) {
        if !pattern.files.iter().any(|known| known.path == file.path) {
            pattern.file(&file.path, &file.kind, None);
        }
    }
    for file in pattern.files.iter_mut().filter(|f| f.kind == "regular" && f.path.starts_with('/')) {
        match identity(Path::new(&file.path)) {
            Some((identity, born)) => {
                file.identity = Some(identity);
                file.made = born.map(|born| born >= begin);
            }
            None => file.path.push_str(" (deleted)"),
        }
    }
    pattern
}

/// Others that are named: those with most CPU time.
const MAX_OTHERS: usize = 8;

/// Whom the clock hit beside the program, pooled by the name of the process: threads of a compiler have names of their own.
/// The watcher is not among them.
fn others_on_cpu(ticks: &Ticks, programs: &mut Programs) -> Vec<OtherOnCpu> {
    let all = ticks.own + ticks.kernel + ticks.others;
    let ours = std::process::id();
    let mut names: HashMap<String, OtherOnCpu> = HashMap::new();
    for task in ticks.by_task.iter().filter(|task| task.pid != ours) {
        let known = programs.meet(task.pid);
        // One that is gone stays without a name, and is left out: it can be named to nobody.
        let Some(name) = known.name.or_else(|| task.name.clone()) else { continue };
        let entry = names.entry(name).or_insert_with_key(|name| OtherOnCpu {
            name: name.clone(),
            pid: task.pid,
            command: known.command,
            kernel: task.kernel,
            ..OtherOnCpu::default()
        });
        entry.samples += task.ticks;
    }
    let mut others: Vec<OtherOnCpu> = names.into_values().collect();
    for other in &mut others {
        other.share = other.samples as f64 / (all as f64).max(1.0);
    }
    others.sort_by(|a, b| b.samples.cmp(&a.samples).then(a.name.cmp(&b.name)));
    others.truncate(MAX_OTHERS);
    others
}

/// Before exec the command read one byte from us.
fn without_our_gate(mut io: IoCounters) -> IoCounters {
    io.read_calls = io.read_calls.map(|n| n.saturating_sub(1));
    io.read_bytes = io.read_bytes.map(|n| n.saturating_sub(1));
    io
}

/// Greatest resident memory of this process.
fn peak_memory() -> Option<u64> {
    // SAFETY: `rusage` is plain numbers, for which zero is a value; the kernel writes to the local.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_SELF, &mut usage) == 0).then_some(usage)?
    };
    u64::try_from(usage.ru_maxrss).ok()?.checked_mul(1024)
}
