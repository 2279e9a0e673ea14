//! From the timed facts of a watch to a neutral time line: stacks get their meaning, requests and calls their device and thread.
//! Deliberately absent: times for sums. What the file does not hold is said in its notes.

use std::collections::{BTreeMap, HashMap, HashSet};

use iowhy_core::finding::Finding;
use iowhy_core::profile::{Profile, StackTime, State, SymbolId};
use iowhy_core::units;
use iowhy_diagnose::classify::Class;
use iowhy_linux::block::sysfs::Sysfs;
use iowhy_linux::clock::unix_ns;
use iowhy_view::timeline::{
    Call, Device, Finding as ShownFinding, Frame, Interval, Process, Request, RequestParts, Sample, Stack,
    Thread, Timeline,
};
use iowhy_watch::block::{Owner, Request as Seen};
use iowhy_watch::event::Operation;
use iowhy_watch::event_log::{EventLog, LoggedStack};

use super::Shown;
use crate::analyzer::Analyzer;
use crate::flamegraph::waiting;

/// The time line of a run.
pub(super) fn made(shown: Shown<'_>, analyzer: &Analyzer, subject: &str) -> Timeline {
    let nothing = EventLog::default();
    let (profile, events) = (shown.profile, shown.events.unwrap_or(&nothing));
    let mut stacks = Stacks::new(profile, analyzer, events);
    let mut threads: Vec<Thread> = events
        .threads
        .iter()
        .map(|thread| Thread {
            pid: thread.pid,
            tid: thread.tid,
            name: thread.name.clone(),
            begin_ns: thread.begin_ns,
            end_ns: thread.end_ns,
            ..Thread::default()
        })
        .collect();
    for interval in &events.intervals {
        let Some(thread) = threads.get_mut(interval.thread as usize) else { continue };
        let slept = interval.state == Some(State::Blocked) && events.requests_followed;
        thread.intervals.push(Interval {
            begin_ns: interval.begin_ns,
            end_ns: interval.end_ns,
            state: interval.state,
            stack: stacks.number(interval.stack, interval.state),
            requests: slept.then_some(RequestParts {
                device_ns: interval.device_ns,
                queued_ns: interval.queued_ns,
                behind_others_ns: interval.behind_others_ns,
            }),
        });
    }
    for sample in &events.samples {
        let Some(thread) = threads.get_mut(sample.thread as usize) else { continue };
        let stack = stacks.number(sample.stack, Some(State::Running));
        thread.samples.push(Sample { time_ns: sample.time_ns, stack });
    }
    let homeless = add_calls(&mut threads, events, profile.wall_ns);
    let calls = threads.iter().map(|thread| thread.calls.len()).sum();
    Timeline {
        writer: format!("iowhy {}", env!("CARGO_PKG_VERSION")),
        subject: subject.to_owned(),
        start_unix_ns: unix_ns(events.start_ns),
        start_monotonic_ns: events.start_ns,
        wall_ns: profile.wall_ns,
        clock_period_ns: events.clock_period_ns,
        processes: processes(profile, events),
        devices: devices(&events.requests),
        findings: shown.findings.iter().map(finding).collect(),
        notes: notes(profile, events, calls, homeless),
        stacks: stacks.made,
        threads,
    }
}

fn finding(finding: &Finding) -> ShownFinding {
    ShownFinding {
        title: finding.title().to_owned(),
        sentence: finding.sentence.clone(),
        advice: finding.advice.clone(),
        share: finding.share,
    }
}

/// Stacks with their meaning, made when they are met.
struct Stacks<'a> {
    profile: &'a Profile,
    events: &'a EventLog,
    meaning: Box<dyn Fn(&StackTime) -> Class + 'a>,
    numbers: HashMap<(u32, State), u32>,
    made: Vec<Stack>,
}

impl<'a> Stacks<'a> {
    fn new(profile: &'a Profile, analyzer: &'a Analyzer, events: &'a EventLog) -> Stacks<'a> {
        let meaning = Box::new(analyzer.meanings(profile));
        Stacks { profile, events, meaning, numbers: HashMap::new(), made: Vec::new() }
    }

    /// The number of a stack of the log with which a thread ran or waited. Time that was not recorded has none.
    fn number(&mut self, stack: u32, state: Option<State>) -> u32 {
        let Some((state, seen)) = state.zip(self.events.stacks.get(stack as usize)) else { return 0 };
        if let Some(number) = self.numbers.get(&(stack, state)) {
            return *number;
        }
        let number = self.made.len() as u32;
        let made = self.with_meaning(seen, state);
        self.made.push(made);
        self.numbers.insert((stack, state), number);
        number
    }

    fn with_meaning(&self, seen: &LoggedStack, state: State) -> Stack {
        let class = (self.meaning)(&StackTime {
            thread: 0,
            state,
            kernel: seen.kernel.clone(),
            user: seen.user.clone(),
            known: seen.known,
            time_ns: 0.0,
            wall_ns: 0.0,
            events: 0,
            seen_ns: 0.0,
            requests: None,
        });
        Stack {
            user: self.frames(&seen.user),
            kernel: self.frames(&seen.kernel),
            known: seen.known,
            layer: class.layer,
            operation: class.operation.id(),
            waits: waiting(state, class.wait),
        }
    }

    /// Outermost first.
    fn frames(&self, ids: &[SymbolId]) -> Vec<Frame> {
        let symbols = ids.iter().rev().filter_map(|id| self.profile.symbols.get(*id as usize));
        symbols.map(|symbol| Frame { name: symbol.name.clone(), object: symbol.object.clone() }).collect()
    }
}

/// Gives each slow call to the thread that lived then. Returns how many have none in the log. Calls may go on while the watch ends.
fn add_calls(threads: &mut [Thread], events: &EventLog, wall_ns: u64) -> usize {
    let mut homeless = 0;
    for call in events.calls.iter().filter(|call| call.begin_ns < wall_ns) {
        let lived = |thread: &&mut Thread| thread.tid == call.tid && thread.begin_ns <= call.end_ns;
        match threads.iter_mut().rev().find(lived) {
            Some(thread) => thread.calls.push(Call {
                name: call.name,
                path: call.path.clone(),
                value: call.value,
                begin_ns: call.begin_ns,
                end_ns: call.end_ns.min(wall_ns),
            }),
            None => homeless += 1,
        }
    }
    homeless
}

/// Each process with its last name, in the order of the first threads.
fn processes(profile: &Profile, events: &EventLog) -> Vec<Process> {
    let names: HashMap<u32, &str> = profile.processes.iter().map(|p| (p.pid, p.name.as_str())).collect();
    let mut met = HashSet::new();
    let first_of_each = events.threads.iter().filter(|thread| met.insert(thread.pid));
    // Many processes are pooled in the profile: then the name of the thread tells.
    first_of_each
        .map(|thread| {
            let name = names.get(&thread.pid).copied().filter(|name| !name.is_empty());
            Process { pid: thread.pid, name: name.unwrap_or(&thread.name).to_owned() }
        })
        .collect()
}

/// The requests of each device, by begin.
fn devices(requests: &[Seen]) -> Vec<Device> {
    let sysfs = Sysfs::new();
    let mut by_number: BTreeMap<(u32, u32), Vec<Request>> = BTreeMap::new();
    // One that was done before the start has no time in it.
    for request in requests.iter().filter(|request| request.done_ns > 0) {
        by_number.entry(request.device).or_default().push(shown(request));
    }
    let named = |(number, mut requests): ((u32, u32), Vec<Request>)| {
        requests.sort_by_key(|request| (request.begin_ns, request.done_ns));
        let number = format!("{}:{}", number.0, number.1);
        let name = match sysfs.name_of(&number) {
            Some(name) => format!("device {name} ({number})"),
            None => format!("device {number}"),
        };
        Device { name, requests }
    };
    by_number.into_iter().map(named).collect()
}

fn shown(request: &Seen) -> Request {
    Request {
        operation: match request.operation {
            Operation::Read { .. } if request.metadata => "read of metadata",
            Operation::Read { ahead: false } => "read",
            Operation::Read { ahead: true } => "read-ahead",
            Operation::Flush => "flush",
            Operation::Discard => "discard",
            Operation::Write => "write",
            Operation::Other => "other",
        },
        owner: match (request.owner, &request.program) {
            (Owner::Own, _) => "the program".to_owned(),
            (Owner::Kernel, _) => "the kernel".to_owned(),
            (Owner::Other, Some(name)) => format!("another program: {name}"),
            (Owner::Other, None) => "another program".to_owned(),
        },
        sector: request.sector,
        bytes: request.bytes,
        begin_ns: request.inserted_ns.unwrap_or(request.issued_ns),
        issued_ns: request.issued_ns,
        done_ns: request.done_ns,
    }
}

/// What the file holds and what it leaves out, with numbers.
fn notes(profile: &Profile, events: &EventLog, calls: usize, homeless: usize) -> Vec<String> {
    let time = |ns: u64| units::time(ns as f64);
    let lengths = |recorded: bool| -> u64 {
        let these = events.intervals.iter().filter(|i| i.state.is_some() == recorded);
        these.map(|i| i.end_ns - i.begin_ns).sum()
    };
    let mut notes = vec![format!(
        "Recorded: {} of {} thread time. The rest is inferred in the report, has no time of its own, and is left out here.",
        time(lengths(true)),
        time(profile.thread_ns())
    )];
    if let Some(full_ns) = events.full_ns {
        notes.push(format!(
            "The room for this file was full after {} of {}: later intervals, samples and requests are left out.",
            time(full_ns),
            time(profile.wall_ns)
        ));
    }
    if let Some(full_ns) = events.others_full_ns {
        notes.push(format!(
            "Requests of other programs are here until {} of {}: there was no room for more.",
            time(full_ns),
            time(profile.wall_ns)
        ));
    }
    if lengths(false) > 0 {
        notes.push(format!(
            "Not recorded: {} of these threads. Switches are recorded in windows where they are many; elsewhere few records are missing.",
            time(lengths(false))
        ));
    }
    notes.push(
        "A sleep lasts until the thread gets a CPU: the wait for one after the wake-up is in it. The report takes it out as a sum."
            .to_owned(),
    );
    if events.clock_period_ns > 0 {
        notes.push(format!(
            "Samples: a clock ticks every {}, and each tick has an equal part of its thread's recorded running time.",
            time(events.clock_period_ns)
        ));
    }
    notes.push(match (&profile.block, events.requests.is_empty()) {
        (None, _) => format!("Requests at devices were not seen (tier {}).", profile.sight.tier.id()),
        (Some(_), true) => "No device completed a request.".to_owned(),
        (Some(_), false) => {
            "Requests: those that a device completed. Those of loop devices are left out, the disk below has them.".to_owned()
        }
    });
    notes.push(match events.recorded_calls {
        0 => "No call was recorded with its time.".to_owned(),
        recorded => format!(
            "Calls: the {} longest of {} that were recorded{}. Longer ones may be missing where calls were not recorded; waits are there all the same.",
            calls,
            units::count(recorded),
            if homeless > 0 {
                format!("; {homeless} more are of threads that are left out")
            } else {
                String::new()
            }
        ),
    });
    notes.push(
        "Findings are about the whole run. Counts of calls, files and devices have no time: they are in the record (--json)."
            .to_owned(),
    );
    notes
}
