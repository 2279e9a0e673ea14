//! Short bursts of system-call tracing, when the planner says so.
//!
//! What may not enter: what the calls mean. A burst that cannot be opened is no more tried, and told once.

use std::thread::JoinHandle;

use iowhy_core::profile::{CallPattern, CallSample, FileUse, Lack};

use super::files::Files;
use super::roster::Roster;
use crate::calls::{CallTracer, Costs, Planner};
use crate::event::Kind;
use crate::perf::SyscallTap;
use iowhy_linux::clock::monotonic_ns;
use iowhy_linux::reader::Reader;
use iowhy_linux::syscalls;

/// Records of one burst: bounds memory and our own time.
const MOST_RECORDS: u64 = 200_000;

/// While a burst is open, records are fetched this often.
const PACE_NS: u64 = 2_000_000;

/// How long to wait for the last burst to be closed before asking again.
const CLOSING_NS: u64 = 10_000_000;

/// Descriptors whose positions are read at the start of a burst.
const MOST_DESCRIPTORS: usize = 256;
/// Processes of which they are read.
const MOST_PROCESSES: usize = 32;

/// Planning, and the burst that is open.
pub(super) struct Bursts {
    planner: Planner,
    tracer: CallTracer,
    open: Option<Open>,
    /// Closing takes the kernel some 60 ms, all of them waiting: it is done beside, and the next burst begins after.
    closing: Option<JoinHandle<()>>,
    not_before_ns: u64,
    start_ns: u64,
    pub(super) count: u32,
    pub(super) traced_ns: u64,
    pub(super) records: u64,
    pub(super) lost: u64,
    failed: Option<Lack>,
}

struct Open {
    tap: SyscallTap,
    since_ns: u64,
    until_ns: u64,
    next_ns: u64,
    calls_left: u64,
}

impl Bursts {
    pub(super) fn new(now: u64) -> Bursts {
        Bursts {
            planner: Planner::new(Costs::default(), now),
            tracer: CallTracer::new(syscalls::name, MOST_RECORDS),
            open: None,
            closing: None,
            not_before_ns: 0,
            start_ns: now,
            count: 0,
            traced_ns: 0,
            records: 0,
            lost: 0,
            failed: None,
        }
    }

    /// The run begins.
    pub(super) fn start(&mut self, now: u64, seed: u64) {
        self.start_ns = now;
        self.planner = Planner::new(Costs::default(), seed);
    }

    /// When [`Bursts::step`] wants to be called.
    pub(super) fn deadline_ns(&self) -> u64 {
        match &self.open {
            Some(open) => open.until_ns.min(open.next_ns),
            None if self.failed.is_some() => u64::MAX,
            None => self.start_ns.saturating_add(self.planner.next_burst().start_ns).max(self.not_before_ns),
        }
    }

    /// Begins, feeds or ends a burst, whichever is due.
    pub(super) fn step(&mut self, now: u64, roster: &Roster, files: &mut Files, reader: &mut Reader) {
        if now < self.deadline_ns() {
            return;
        }
        if self.open.is_none() {
            if self.closing.as_ref().is_some_and(|closing| !closing.is_finished()) {
                self.not_before_ns = now.saturating_add(CLOSING_NS);
                return;
            }
            self.begin(roster, files, reader);
        } else {
            self.feed(now, roster, files, reader);
        }
    }

    fn begin(&mut self, roster: &Roster, files: &mut Files, reader: &mut Reader) {
        let plan = self.planner.next_burst();
        let tids: Vec<u32> = roster.iter().map(|(_, tid)| tid).collect();
        let tap = match SyscallTap::open(&tids) {
            Ok(tap) => tap,
            Err(error) => {
                self.failed = Some(Lack {
                    id: "call-bursts".to_owned(),
                    sentence: format!("system calls are not traced: {error}"),
                    fix: None,
                });
                return;
            }
        };
        // Positions are read after the tap is open: opening takes long, and what happens before `begin` is dropped.
        let mut left = MOST_DESCRIPTORS;
        let mut snapshot = Vec::new();
        for pid in roster.processes().into_iter().take(MOST_PROCESSES) {
            let open = files.snapshot(pid, left, reader);
            left -= open.len();
            snapshot.push((pid, open));
        }
        let since_ns = monotonic_ns().max(tap.since_ns());
        self.tracer.begin(since_ns, &snapshot);
        self.open = Some(Open {
            tap,
            since_ns,
            until_ns: since_ns.saturating_add(plan.length_ns),
            next_ns: since_ns.saturating_add(PACE_NS),
            calls_left: plan.calls,
        });
    }

    fn feed(&mut self, now: u64, roster: &Roster, files: &mut Files, reader: &mut Reader) {
        let Some(mut open) = self.open.take() else { return };
        let over = now >= open.until_ns;
        let mut end_ns = if over { open.tap.stop() } else { now };
        let more = self.take(&mut open, over, roster);
        if !more && !over {
            // Enough were seen: the last ones are fetched where the burst ends.
            end_ns = open.tap.stop();
            self.take(&mut open, true, roster);
        }
        self.tracer.settle(monotonic_ns(), &mut |pid, descriptor| files.resolve(pid, descriptor, reader));
        if over || !more {
            self.end(open, end_ns);
        } else {
            open.next_ns = now.saturating_add(PACE_NS);
            self.open = Some(open);
        }
    }

    /// Fetches records. False: enough were seen.
    fn take(&mut self, open: &mut Open, all: bool, roster: &Roster) -> bool {
        let Bursts { tracer, records, .. } = self;
        let (mut more, mut calls) = (true, 0);
        let filtered = open.tap.is_filtered();
        open.tap.drain(all, &mut |event| {
            *records += 1;
            let wanted = filtered || matches!(event.kind, Kind::Lost { .. }) || roster.contains(event.tid);
            if wanted && more {
                calls += u64::from(matches!(event.kind, Kind::Trace(crate::event::Trace::Return { .. })));
                more = tracer.event(event);
            }
        });
        open.calls_left = open.calls_left.saturating_sub(calls);
        more && open.calls_left > 0
    }

    /// Ends a burst in the middle of a run. The next one waits until this one's tap is closed.
    fn end(&mut self, open: Open, end_ns: u64) {
        let tap = self.book(open, end_ns);
        // Without a thread it is closed here.
        self.closing =
            std::thread::Builder::new().name("iowhy-closing".to_owned()).spawn(move || drop(tap)).ok();
    }

    /// Adds up what a burst saw. Returns what is to be closed.
    fn book(&mut self, open: Open, end_ns: u64) -> SyscallTap {
        let (length_ns, calls) = self.tracer.end(end_ns);
        self.lost += open.tap.lost();
        self.count += 1;
        self.traced_ns += length_ns;
        let end = open.since_ns.saturating_add(length_ns).max(end_ns).saturating_sub(self.start_ns);
        self.planner.saw(end, length_ns, calls);
        open.tap
    }

    /// What all bursts saw; the one that is open is ended.
    pub(super) fn finish(mut self, roster: &Roster, lacks: &mut Vec<Lack>) -> Finished {
        if let Some(mut open) = self.open.take() {
            let end_ns = open.tap.stop();
            self.take(&mut open, true, roster);
            self.book(open, end_ns).let_go();
        }
        lacks.extend(self.failed.take());
        let cost_ns = if self.count > 0 { self.planner.spent_ns() } else { 0.0 };
        let pattern = self.tracer.take_pattern();
        let (sample, files) = self.tracer.finish(false);
        Finished {
            pattern,
            sample: (self.count > 0).then_some(sample),
            files,
            count: self.count,
            traced_ns: self.traced_ns,
            records: self.records,
            lost: self.lost,
            cost_ns,
        }
    }
}

/// What bursts leave behind.
#[derive(Default)]
pub(super) struct Finished {
    pub(super) pattern: CallPattern,
    pub(super) sample: Option<CallSample>,
    pub(super) files: Vec<FileUse>,
    pub(super) count: u32,
    pub(super) traced_ns: u64,
    pub(super) records: u64,
    pub(super) lost: u64,
    /// Estimated CPU time that tracing took out of the program.
    pub(super) cost_ns: f64,
}
