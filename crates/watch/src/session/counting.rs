//! Exact counts of a watch: the observer in the kernel is opened before the program runs, and read when it has ended.

use std::collections::HashMap;

use iowhy_core::profile::{CallCount, CallSample, FileUse, KindUse, Limitation, OwnIo, Tier};
use iowhy_linux::process::tree;
use iowhy_linux::reader::Reader;

use crate::in_kernel::{Cost, Facts, InKernel};

/// What the observer counted over the whole watch.
pub(super) struct Counts {
    pub(super) calls: Vec<CallCount>,
    pub(super) files: Vec<FileUse>,
    pub(super) kinds: Vec<KindUse>,
    /// See [`Facts::processes`].
    pub(super) processes: HashMap<u32, OwnIo>,
    pub(super) complete: bool,
    /// CPU time that counting took out of the program, from the cost of a call here; 0 where that could not be measured.
    pub(super) cost_ns: f64,
}

impl Counts {
    /// As the calls and files of a run of this length. The observer reads no clock: times are the counts times the mean
    /// duration of those calls that bursts traced, and 0 where none was.
    pub(super) fn with_durations(
        self,
        traced: &CallSample,
        traced_files: &[FileUse],
        wall_ns: u64,
    ) -> (CallSample, Vec<FileUse>) {
        let Counts { mut calls, mut files, complete, .. } = self;
        for call in &mut calls {
            if let Some(seen) = traced.calls.iter().find(|seen| seen.name == call.name) {
                call.time_ns = estimated_ns(call.calls, seen.calls, seen.time_ns);
            }
        }
        for file in &mut files {
            let Some(seen) = traced_files.iter().find(|seen| seen.path == file.path) else { continue };
            for (access, seen) in [(&mut file.reads, &seen.reads), (&mut file.writes, &seen.writes)] {
                access.time_ns = estimated_ns(access.calls, seen.calls, seen.time_ns);
            }
        }
        (CallSample { bursts: 0, observed_ns: wall_ns, complete, calls, burst_lengths_ns: Vec::new() }, files)
    }
}

/// The time of so many calls, of which some were traced and took so long.
fn estimated_ns(calls: u64, traced: u64, traced_ns: u64) -> u64 {
    if traced == 0 { 0 } else { (calls as f64 * traced_ns as f64 / traced as f64) as u64 }
}

/// The observer of one watch.
pub(super) struct Counting {
    observer: InKernel,
}

impl Counting {
    /// Loads the observer; where the tier or the kernel does not allow it, that becomes a limitation.
    pub(super) fn open(tier: Tier, limitations: &mut Vec<Limitation>) -> Option<Counting> {
        if tier < Tier::Observer {
            let sentence =
                format!("system calls are not counted: that takes tier observer, and {} is used", tier.id());
            limitations.push(limitation(sentence));
            return None;
        }
        match InKernel::open() {
            Ok(observer) => Some(Counting { observer }),
            Err(why) => {
                limitations.push(limitation(format!("system calls are not counted: {why}")));
                None
            }
        }
    }

    /// Counts a command that is held before exec, from its exec on.
    pub(super) fn command(&mut self, pid: u32, limitations: &mut Vec<Limitation>) {
        if let Err(why) = self.observer.add_held(pid) {
            limitations.push(limitation(format!("system calls are not counted: {why}")));
        }
    }

    /// Counts a process and all below it. Threads that are born meanwhile have a parent that is counted, or are found by
    /// the next reading; so it reads until it finds nobody new.
    pub(super) fn process(&mut self, root: u32, reader: &mut Reader, limitations: &mut Vec<Limitation>) {
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
            if let Err(why) = self.observer.add(found) {
                limitations.push(limitation(format!("some threads' system calls are not counted: {why}")));
                return;
            }
        }
    }

    /// What was counted. `None`, with a limitation: it could not be read.
    pub(super) fn finish(mut self, limitations: &mut Vec<Limitation>) -> Option<Counts> {
        let facts = match self.observer.facts() {
            Ok(facts) => facts,
            Err(why) => {
                limitations.push(limitation(format!("the counts of system calls cannot be read: {why}")));
                return None;
            }
        };
        let Facts { calls, files, kinds, processes, lost } = facts;
        for (count, what) in [
            (lost.threads, "threads were not counted"),
            (lost.descriptions, "calls were counted without their file"),
            (lost.files, "open files lost their counts"),
        ] {
            if count > 0 {
                limitations.push(limitation(format!("the observer's tables were full: {count} {what}")));
            }
        }
        let cost_ns = self.observer.measure().map_or(0.0, |cost| spent_ns(&calls, cost));
        let complete = lost.threads == 0;
        Some(Counts { calls, files, kinds, processes, complete, cost_ns })
    }
}

fn spent_ns(calls: &[CallCount], cost: Cost) -> f64 {
    let spent = |c: &CallCount| c.calls as f64 * if c.bytes > 0 { cost.transfer_ns } else { cost.call_ns };
    calls.iter().map(spent).sum()
}

fn limitation(sentence: String) -> Limitation {
    Limitation { id: "call-counts".to_owned(), sentence, fix: None }
}
