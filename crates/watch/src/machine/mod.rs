//! A watch of the whole machine: every wait for a device, for memory or for the server of a file system, of every task. The observer in
//! the kernel is the one of a single program, with a filter that admits all; system calls are neither counted nor timed.
//! Memory is bounded whatever the number of processes and the time: what does not fit is counted, what an interval did not meet is forgotten.

mod calls;
mod devices;
mod ledger;
mod overhead;
mod period;
mod slow;
mod subjects;
mod turn;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use iowhy_core::machine::{MachineProfile, OverheadExceeded, Stalls};
use iowhy_core::problem::Problem;
use iowhy_core::profile::Course;
use iowhy_linux::clock::{monotonic_ns, process_cpu_ns};
use iowhy_linux::control_group::GroupWatch;
use iowhy_linux::process::usable;
use iowhy_linux::psi::Totals;
use iowhy_linux::reader::Reader;
use iowhy_linux::signals::Signals;

use crate::course::CourseReader;
use crate::in_kernel::{MachineObserver, may_load};
use overhead::Overhead;
use period::Collector;
use turn::{Names, PERIOD_NS, TURN_NS, turn};

pub use calls::{Condition, watch_calls};

/// Watches the machine for so long, until somebody interrupts, or until that takes more than a share of all CPU time. `group`: a control
/// group whose counters go into the steps of time.
///
/// # Errors
/// Those of [`MachineWatch::begin`], or the observer cannot be read.
pub fn watch_machine(
    limit: Duration,
    max_overhead: f64,
    group: Option<&GroupWatch>,
) -> Result<MachineProfile, Problem> {
    let mut watch = MachineWatch::begin(max_overhead, group)?;
    let end_ns = watch.begin_ns.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    let mut interrupted = false;
    while !interrupted && watch.overhead_exceeded().is_none() && monotonic_ns() < end_ns {
        interrupted = watch.turn(None, end_ns)?;
    }
    let profile = watch.take_interval()?;
    Ok(MachineProfile { interrupted, course: watch.finish(), ..profile })
}

/// A watch of the machine under way. Dropped, nothing is observed any more.
pub struct MachineWatch {
    observer: MachineObserver,
    collector: Collector,
    names: Names,
    signals: Option<Signals>,
    begin_ns: u64,
    period_ends_ns: u64,
    /// The kernel's figures when the interval began, and when the last period ended.
    psi: [Option<Totals>; 2],
    /// Our own CPU time when the interval began.
    own_cpu_ns: u64,
    overhead: Overhead,
    overhead_exceeded: Option<OverheadExceeded>,
    course: CourseReader,
    reader: Reader,
}

impl MachineWatch {
    /// Begins it. `max_overhead`: the share of all CPU time that it may take.
    ///
    /// # Errors
    /// The observer may not be loaded, or the kernel refuses it; with the fix.
    pub fn begin(max_overhead: f64, group: Option<&GroupWatch>) -> Result<MachineWatch, Problem> {
        usable()?;
        let refused = |why: String| {
            Problem::refused(format!("cannot observe the whole machine: {why}"))
                .hint("as root: `sudo iowhy --all`; or `iowhy attach PID` for one process of your own")
        };
        may_load().map_err(|why| refused(why.to_string()))?;
        let signals = Signals::listen();
        let mut observer = MachineObserver::open().map_err(refused)?;
        let psi = [Totals::of_machine(); 2];
        let begin_ns = monotonic_ns();
        let own_cpu_ns = process_cpu_ns();
        let collector = Collector::new(begin_ns, &mut observer).map_err(unreadable)?;
        let mut reader = Reader::new();
        let counters = group.and_then(|group| group.counters(&mut reader));
        Ok(MachineWatch {
            observer,
            collector,
            names: Names::new(),
            signals,
            begin_ns,
            period_ends_ns: begin_ns + PERIOD_NS,
            psi,
            own_cpu_ns,
            overhead: Overhead::begin(max_overhead, begin_ns),
            overhead_exceeded: None,
            course: CourseReader::begin(begin_ns, counters, &mut reader),
            reader,
        })
    }

    /// Whether requests to stop are heard ([`MachineWatch::turn`] tells them); else they end this process as they would any other.
    pub fn hears_signals(&self) -> bool {
        self.signals.is_some()
    }

    /// It takes more than it may, and should be ended.
    pub fn overhead_exceeded(&self) -> Option<OverheadExceeded> {
        self.overhead_exceeded
    }

    /// Takes what happens until then (CLOCK_MONOTONIC) at most, and no longer than until `input` can be read. True: somebody asks us to
    /// end.
    ///
    /// # Errors
    /// The observer cannot be read.
    pub fn turn(&mut self, input: Option<BorrowedFd<'_>>, until_ns: u64) -> Result<bool, Problem> {
        let now_ns = monotonic_ns();
        if now_ns >= self.period_ends_ns || self.collector.is_full() {
            self.close_period()?;
        }
        if now_ns >= self.course.deadline_ns() {
            self.course.step(now_ns, None, &mut self.reader);
            self.collector.mark(&mut self.observer).map_err(unreadable)?;
        }
        self.overhead_exceeded = self.overhead_exceeded.or(self.overhead.step(now_ns, &self.observer));
        let deadlines = [self.period_ends_ns, self.course.deadline_ns(), self.overhead.deadline_ns()];
        let until_ns = deadlines.into_iter().fold(until_ns.min(now_ns + TURN_NS), u64::min);
        let interrupted = turn(&mut self.observer, self.signals.as_ref(), input, until_ns);
        self.collector.take(&mut self.observer);
        Ok(interrupted)
    }

    /// This process will stop for a while, or did until now.
    pub fn pause(&mut self) {
        self.overhead.pause(monotonic_ns());
    }

    /// What happened since the last time, or since the beginning. Intervals sum to the whole: a wait or request over the end of one has its
    /// part in each.
    ///
    /// # Errors
    /// The observer cannot be read.
    pub fn take_interval(&mut self) -> Result<MachineProfile, Problem> {
        self.close_period()?;
        let mut profile = self.collector.take_interval(&mut self.observer).map_err(unreadable)?;
        let [before, now] = self.psi;
        profile.counted = now.zip(before).map(|(now, before)| stalls(&now.since(&before)));
        self.psi[0] = now;
        let numbers = profile.waits.iter().filter_map(|wait| wait.stack).collect();
        let (stacks, place) = self.names.of(numbers, &mut self.observer);
        profile.stacks = stacks;
        profile.waits.iter_mut().for_each(|wait| wait.stack = wait.stack.and_then(&place));
        let own_cpu_ns = process_cpu_ns();
        profile.cost.own_cpu_ns = own_cpu_ns - std::mem::replace(&mut self.own_cpu_ns, own_cpu_ns);
        let (observer, unknown) = self.overhead.take_interval();
        profile.cost.observer = observer;
        profile.cost.observer_unknown = unknown;
        profile.overhead_exceeded = self.overhead_exceeded;
        Ok(profile)
    }

    /// Ends the watch. Gives what happened in steps of time, from its beginning on; `None`: it ended within the first step.
    pub fn finish(mut self) -> Option<Course> {
        self.course.finish(monotonic_ns(), None, &mut self.reader)
    }

    fn close_period(&mut self) -> Result<(), Problem> {
        self.psi[1] = Totals::of_machine();
        self.collector.close_period(&mut self.observer).map_err(unreadable)?;
        self.period_ends_ns = monotonic_ns() + PERIOD_NS;
        Ok(())
    }
}

fn unreadable(why: String) -> Problem {
    Problem::failed(format!("the observer cannot be read: {why}"))
}

fn stalls(of: &Totals) -> Stalls {
    Stalls {
        cpu_some_ns: of.cpu_some_ns as f64,
        io_some_ns: of.io_some_ns as f64,
        io_full_ns: of.io_full_ns as f64,
        memory_some_ns: of.memory_some_ns as f64,
        memory_full_ns: of.memory_full_ns as f64,
    }
}
