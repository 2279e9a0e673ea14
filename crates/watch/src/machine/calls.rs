//! A watch of the calls of one program: all of them by their time, the slow ones wait by wait. Waits and requests are those of the whole
//! machine, as others may be the cause.

use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::tails::{CallWait, Ended, OperationTimes, SlowCall, TailsLost, TailsProfile};
use iowhy_linux::clock::{monotonic_ns, process_cpu_ns};
use iowhy_linux::process::tree::{family, threads};
use iowhy_linux::process::usable;
use iowhy_linux::reader::Reader;
use iowhy_linux::signals::Signals;
use iowhy_linux::syscalls;

use super::period::Collector;
use super::slow::{Kept, Slow};
use super::turn::{Names, PERIOD_NS, TURN_NS, turn};
use crate::child::Existing;
use crate::in_kernel::{MachineObserver, may_load};

/// What is waited for.
#[derive(Clone, Copy)]
pub struct Condition<'a> {
    /// Names of all operations that are timed.
    pub operations: &'a [&'a str],
    /// The operation of a system call by its name, as an index of `operations`.
    pub operation_of: &'a dyn Fn(&str) -> Option<usize>,
    /// The operation whose slow calls are told: an index of `operations`.
    pub operation: usize,
    /// Calls that take longer are events.
    pub longer_than: Duration,
    /// So many events end the watch.
    pub count: usize,
}

/// Watches the calls of a process, its threads and its children, until there were as many events as are wanted, its time is over, it ends, or
/// somebody interrupts. `on_event` is told each event that is kept, before it is known what it waited for beyond its own sleeps.
///
/// # Errors
/// There is no such process; the observer may not be loaded, or the kernel refuses it; with the fix.
pub fn watch_calls(
    pid: u32,
    limit: Option<Duration>,
    condition: &Condition<'_>,
    on_event: &mut dyn FnMut(&SlowCall),
) -> Result<TailsProfile, Problem> {
    usable()?;
    let process = Existing::open(pid)?;
    let refused = |why: String| {
        Problem::refused(format!("cannot time the calls of process {pid}: {why}"))
            .hint(format!("as root, or with CAP_BPF and CAP_PERFMON: `sudo iowhy attach {pid} --when ...`"))
    };
    may_load().map_err(|why| refused(why.to_string()))?;
    let signals = Signals::listen();
    let own_before_ns = process_cpu_ns();
    let place = |number: u32| {
        let name = syscalls::name(i64::from(number))?;
        (condition.operation_of)(name).and_then(|place| u16::try_from(place).ok())
    };
    let operations = condition.operations.len() as u32;
    let mut observer = MachineObserver::open_timed(&place, operations).map_err(refused)?;
    let mut watch = Watch::new(condition, &mut observer).map_err(refused)?;
    let mut reader = Reader::new();
    observer
        .time_calls(&mut || family(&mut reader, pid).into_iter().flat_map(threads).collect())
        .map_err(refused)?;
    let failed = |why| Problem::failed(format!("the observer cannot be read: {why}"));
    let end_ns = limit.map_or(u64::MAX, |limit| {
        watch.begin_ns.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
    });
    let mut ended = None;
    while ended.is_none() {
        let until_ns = end_ns.min(watch.period_ends_ns).min(monotonic_ns() + TURN_NS);
        let interrupted = turn(&mut observer, signals.as_ref(), process.pidfd(), until_ns);
        ended = if interrupted {
            Some(Ended::Interrupted)
        } else if process.ended() {
            Some(Ended::Process)
        } else {
            (monotonic_ns() >= end_ns).then_some(Ended::Time)
        };
        if ended.is_some() {
            observer.stop_timing();
        }
        if watch.step(&mut observer, ended.is_some(), on_event).map_err(failed)? && ended.is_none() {
            ended = Some(Ended::Events);
            // With the calls that have returned since, so that the sums and the slowest calls are of the same calls.
            observer.stop_timing();
            watch.step(&mut observer, true, on_event).map_err(failed)?;
        }
    }
    let mut profile = watch.finish(&mut observer).map_err(failed)?;
    profile.pid = pid;
    profile.ended = ended.unwrap_or_default();
    profile.own_cpu_ns = process_cpu_ns() - own_before_ns;
    Ok(profile)
}

/// A watch under way.
struct Watch<'a> {
    condition: &'a Condition<'a>,
    collector: Collector,
    begin_ns: u64,
    period_ends_ns: u64,
    /// From which time on the kernel tells calls.
    tells_from_ns: u64,
    /// Calls of the operation at the end of the last period.
    calls: u64,
}

impl<'a> Watch<'a> {
    fn new(condition: &'a Condition<'a>, observer: &mut MachineObserver) -> Result<Watch<'a>, String> {
        let begin_ns = monotonic_ns();
        let mut collector = Collector::new(begin_ns, observer)?;
        let limit_ns = u64::try_from(condition.longer_than.as_nanos()).unwrap_or(u64::MAX);
        collector.slow = Some(Slow::new(limit_ns, condition.count));
        let period_ends_ns = begin_ns + PERIOD_NS;
        let mut watch =
            Watch { condition, collector, begin_ns, period_ends_ns, tells_from_ns: u64::MAX, calls: 0 };
        watch.tell_less(observer)?;
        Ok(watch)
    }

    /// Takes what was told; at the end of a period (or of all: `over`) it is settled. True: all events that are wanted are there.
    fn step(
        &mut self,
        observer: &mut MachineObserver,
        over: bool,
        on_event: &mut dyn FnMut(&SlowCall),
    ) -> Result<bool, String> {
        self.collector.take(observer);
        self.tell_less(observer)?;
        if !over && monotonic_ns() < self.period_ends_ns && !self.collector.is_full() {
            return Ok(false);
        }
        let known = self.collector.slow.as_ref().map_or(0, |slow| slow.events.len());
        let calls = observer.calls(self.condition.operation as u32)?;
        self.collector.close_second(observer, calls.saturating_sub(self.calls))?;
        self.calls = calls;
        self.period_ends_ns = monotonic_ns() + PERIOD_NS;
        let Some(slow) = &self.collector.slow else { return Ok(true) };
        slow.events.iter().skip(known).for_each(|kept| on_event(&with_file(kept, observer)));
        Ok(slow.is_complete())
    }

    /// The kernel tells no call that can matter no more.
    fn tell_less(&mut self, observer: &mut MachineObserver) -> Result<(), String> {
        let from_ns = self.collector.slow.as_ref().map_or(u64::MAX, Slow::tell_from_ns);
        if from_ns != self.tells_from_ns {
            observer.tell_from(self.condition.operation as u32, from_ns)?;
            self.tells_from_ns = from_ns;
        }
        Ok(())
    }

    fn finish(mut self, observer: &mut MachineObserver) -> Result<TailsProfile, String> {
        let mut operations = Vec::new();
        for (place, name) in (0_u32..).zip(self.condition.operations) {
            let sums = observer.operation(place)?;
            if !sums.times.is_empty() {
                let operation = (*name).to_owned();
                operations.push(OperationTimes { operation, failed: sums.failed, times: sums.times });
            }
        }
        let slow = self.collector.slow.take().unwrap_or_else(|| Slow::new(0, 0));
        let mut events: Vec<SlowCall> = slow.events.iter().map(|kept| with_file(kept, observer)).collect();
        let mut slowest: Vec<SlowCall> = slow.slowest.iter().map(|kept| with_file(kept, observer)).collect();
        let stacks = name_stacks(events.iter_mut().chain(&mut slowest), observer);
        let (kernel, calls_lost) = (observer.lost(), observer.calls_lost());
        let wall_ns = monotonic_ns().saturating_sub(self.begin_ns);
        let (subjects, devices, [waits, requests, pooled]) = self.collector.finish_calls();
        Ok(TailsProfile {
            operation: self.condition.operations[self.condition.operation].to_owned(),
            limit_ns: u64::try_from(self.condition.longer_than.as_nanos()).unwrap_or(u64::MAX),
            wall_ns,
            operations,
            over: slow.over,
            events,
            slowest,
            subjects,
            stacks,
            devices: devices.into_iter().map(|device| device.name).collect(),
            gaps: observer.gaps.clone(),
            lost: TailsLost {
                calls: calls_lost.calls,
                compat: calls_lost.compat,
                told: calls_lost.told,
                waits: kernel.waits + kernel.events + waits,
                requests: kernel.requests + requests,
                stacks: slow.without_stack,
                pooled,
            },
            ..TailsProfile::default()
        })
    }
}

fn with_file(kept: &Kept, observer: &mut MachineObserver) -> SlowCall {
    SlowCall { file: kept.file.map(|key| observer.file(key)), ..kept.call.clone() }
}

/// Replaces the kernel's numbers of stacks by indices of the functions that are given.
fn name_stacks<'a>(
    calls: impl Iterator<Item = &'a mut SlowCall>,
    observer: &mut MachineObserver,
) -> Vec<Vec<String>> {
    fn each(wait: &mut CallWait) -> impl Iterator<Item = &mut Option<u32>> {
        std::iter::once(&mut wait.stack).chain(wait.helper.iter_mut().map(|helped| &mut helped.stack))
    }
    let mut numbers: Vec<&mut Option<u32>> =
        calls.flat_map(|call| call.waits.iter_mut()).flat_map(each).collect();
    let (stacks, place) = Names::new().of(numbers.iter().filter_map(|number| **number).collect(), observer);
    numbers.iter_mut().for_each(|number| **number = number.and_then(&place));
    stacks
}
