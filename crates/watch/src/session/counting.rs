//! Exact counts of a watch, and calls in their order: the observer in the kernel is opened before the program runs, and read
//! when it has ended.

use std::collections::HashMap;
use std::time::Duration;

use iowhy_core::profile::{
    CallCount, CallCounts, CallPattern, FileUse, KindUse, Limitation, OwnIo, RingRequests, Tier,
};
use iowhy_linux::file_handles::Inode;
use iowhy_linux::process::tree;
use iowhy_linux::reader::Reader;

use super::recording::Recording;
use crate::calls::{Durations, FileKey};
use crate::event_log::SlowCall;
use crate::in_kernel::{Cost, Facts, InKernel, SocketCalls};

/// What the observer counted over the whole watch.
#[derive(Default)]
pub(super) struct Counts {
    /// `None`: nothing was counted.
    pub(super) calls: Option<CallCounts>,
    pub(super) files: Vec<FileUse>,
    /// See [`Facts::versions`].
    pub(super) versions: HashMap<String, Vec<(Inode, u64)>>,
    pub(super) kinds: Vec<KindUse>,
    pub(super) sockets: Vec<SocketCalls>,
    /// See [`Facts::processes`].
    pub(super) processes: HashMap<u32, OwnIo>,
    /// See [`Facts::living`].
    pub(super) living: HashMap<u32, OwnIo>,
    /// Calls in their order, as far as they were recorded.
    pub(super) pattern: CallPattern,
    /// Requests of rings, by operation.
    pub(super) rings: Vec<RingRequests>,
    /// How many were recorded.
    pub(super) recorded: u64,
    /// The longest of them, where they were kept.
    pub(super) slowest: Vec<SlowCall>,
    /// CPU time that counting took out of the program, from the cost of a call here; 0 where that could not be measured.
    pub(super) cost_ns: f64,
}

/// Times are the counts times the mean duration of those calls that were recorded, and 0 where none was: the observer reads
/// no clock outside of its windows.
fn set_times(calls: &mut [CallCount], files: &mut [FileUse], durations: &Durations) {
    for call in calls {
        call.time_ns = durations.by_name.get(call.name.as_str()).map_or(0, |mean| mean.of(call.calls));
    }
    for file in files {
        let Some([reads, writes]) = durations.by_path.get(&file.path) else { continue };
        file.reads.time_ns = reads.of(file.reads.calls);
        file.writes.time_ns = writes.of(file.writes.calls);
    }
}

/// What it means that this tier, without the observer, is used.
pub(super) fn without(tier: Tier) -> Limitation {
    limitation(format!("system calls are not counted: that takes tier observer, and {} is used", tier.id()))
}

/// Counts a command that is held before exec, from its exec on.
pub(super) fn command(observer: &mut InKernel, pid: u32, limitations: &mut Vec<Limitation>) {
    if let Err(why) = observer.add_held(pid) {
        limitations.push(limitation(format!("system calls are not counted: {why}")));
    }
}

/// Counts a process and all below it. Threads that are born meanwhile have a parent that is counted, or are found by
/// the next reading; so it reads until it finds nobody new.
pub(super) fn process(
    observer: &mut InKernel,
    root: u32,
    reader: &mut Reader,
    limitations: &mut Vec<Limitation>,
) {
    let mut known = std::collections::HashSet::new();
    loop {
        let found: Vec<u32> = tree::family(reader, root)
            .into_iter()
            .flat_map(tree::threads)
            .filter(|tid| known.insert(*tid))
            .collect();
        if found.is_empty() {
            return;
        }
        if let Err(why) = observer.add(found) {
            limitations.push(limitation(format!("some threads' system calls are not counted: {why}")));
            return;
        }
    }
}

/// Follows threads of our own process.
pub(super) fn threads(observer: &mut InKernel, tids: &[u32], limitations: &mut Vec<Limitation>) {
    if let Err(why) = observer.add(tids.iter().copied()) {
        limitations.push(limitation(format!("some threads are not followed: {why}")));
    }
}

/// What is recorded of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallsWanted {
    /// All of them, or windows.
    pub(super) all: bool,
    /// The longest ones are kept with their times.
    pub(super) slowest: bool,
}

/// The counting of one watch.
#[derive(Default)]
pub(super) struct Counting {
    recording: Option<Recording>,
}

impl Counting {
    /// Makes the observer count; where the kernel does not allow it, that becomes a limitation.
    pub(super) fn open(observer: &mut InKernel, limitations: &mut Vec<Limitation>) -> Option<Counting> {
        match observer.count() {
            Ok(()) => Some(Counting::default()),
            Err(why) => {
                limitations.push(limitation(format!("system calls are not counted: {why}")));
                None
            }
        }
    }

    /// The run begins now: calls are recorded from here on. `loads`: it begins with loading the program.
    pub(super) fn record(
        &mut self,
        observer: &mut InKernel,
        now: u64,
        loads: bool,
        wanted: CallsWanted,
        seed: u64,
    ) {
        let recording =
            if wanted.all { Recording::of_all(now, seed) } else { Recording::new(now, loads, seed) };
        self.recording = Some(if wanted.slowest { recording.keeping_slowest() } else { recording });
        self.step(observer, now);
    }

    /// When [`Counting::step`] wants to be called.
    pub(super) fn deadline_ns(&self) -> u64 {
        self.recording.as_ref().map_or(u64::MAX, Recording::deadline_ns)
    }

    /// Does what is due for the recording.
    pub(super) fn step(&mut self, observer: &mut InKernel, now: u64) {
        if let Some(recording) = &mut self.recording {
            recording.step(now, observer);
        }
    }

    /// What was counted in a run of this length. `None`, with a limitation: it could not be read.
    pub(super) fn finish(
        mut self,
        mut observer: InKernel,
        run: Duration,
        limitations: &mut Vec<Limitation>,
    ) -> Option<Counts> {
        let recording = self.recording.take().map(|recording| recording.finish(&mut observer, limitations));
        let (mut log, recorded) = recording.map_or((None, 0), |(log, calls)| (Some(log), calls));
        let facts = match observer.facts() {
            Ok(facts) => facts,
            Err(why) => {
                limitations.push(limitation(format!("the counts of system calls cannot be read: {why}")));
                return None;
            }
        };
        let Facts { mut calls, mut files, paths, versions, kinds, sockets, processes, living, rings, lost } =
            facts;
        for (count, what) in [
            (lost.threads, "threads were not counted"),
            (lost.descriptions, "calls were counted without their file"),
            (lost.files, "times a file had no place of its own: its calls are in `others`"),
            (lost.processes, "ends of threads belong to no process: processes are not told apart"),
            (lost.ring_requests, "requests of rings were not followed"),
            (lost.requests, "steps of block requests were not seen"),
        ] {
            if count > 0 {
                limitations.push(limitation(format!("the observer's tables were full: {count} {what}")));
            }
        }
        let path = |file: FileKey| paths.get(&file).cloned();
        let slowest = log.as_mut().map(|log| log.slowest(path)).unwrap_or_default();
        let (mut pattern, durations) = log.map(|log| log.finish(path)).unwrap_or_default();
        set_times(&mut calls, &mut files, &durations);
        let cost = observer.measure(run, pattern.record.is_some());
        let faults = pattern.record.as_ref().map_or(0, |record| record.faults);
        let cost_ns = cost.map_or(0.0, |cost| spent_ns(&calls, faults, cost));
        if let Some(record) = &mut pattern.record {
            record.missing = lost.records;
            record.excess_ns = cost.and_then(|cost| cost.excess_ns);
            let of_a_fault = cost.and_then(|cost| cost.fault).filter(|_| faults > 0);
            record.fault_cost_ns = of_a_fault.map(|fault| fault.cost_ns);
            record.fault_excess_ns = of_a_fault.map(|fault| fault.excess_ns);
        }
        let calls = Some(CallCounts { complete: lost.threads == 0, calls });
        Some(Counts {
            calls,
            files,
            versions,
            kinds,
            sockets,
            processes,
            living,
            pattern,
            rings,
            recorded,
            slowest,
            cost_ns,
        })
    }
}

fn spent_ns(calls: &[CallCount], faults: u64, cost: Cost) -> f64 {
    let spent = |c: &CallCount| c.calls as f64 * if c.bytes > 0 { cost.transfer_ns } else { cost.call_ns };
    let by_faults = faults as f64 * cost.fault.map_or(0.0, |fault| fault.cost_ns);
    calls.iter().map(spent).sum::<f64>() + by_faults
}

pub(super) fn limitation(sentence: String) -> Limitation {
    Limitation { id: "call-counts".to_owned(), sentence, fix: None }
}
