//! Runs one slice: every thread of one cell (or of several cells side by side) from one barrier to its end.
//!
//! Goal: counters that hold for exactly the time of the slice, and threads that start together. Non-goal: deciding what
//! to run and how often (the campaign's). Invariant: every thread reaches both barriers whatever happens to it, and what
//! was measured before a failure is kept.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iowhy_core::cell::{MemberTotals, Sample};
use iowhy_core::histogram::Histogram;
use iowhy_core::problem::Problem;
use iowhy_core::workload::{CacheState, Direction, Workload};

use crate::access::Sent;
use crate::arm::Arm;
use crate::clock::Clock;
use crate::counters::{self, DeviceCounters, KernelThreads, ThreadUsage};
use crate::hot_loop::{HotLoop, Tally};
use crate::listed::RequestLists;
use crate::method;
use crate::pace::Pacer;
use crate::stream;

/// When a slice ends: at the first of its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Wall time from the barrier.
    pub wall: Duration,
    /// Requests per thread.
    pub requests_per_thread: u64,
}

/// Where processes that measure together wait for each other before a slice.
pub trait Gate {
    /// Returns when all of them may begin. The threads of this process are ready.
    ///
    /// # Errors
    /// Another process is gone, or gave up: nothing is to be measured.
    fn open(&mut self) -> Result<(), Problem>;

    /// The threads begin now.
    fn opened(&mut self);
}

/// How the threads of a slice begin.
struct Start {
    /// All threads have opened what they need.
    ready: Barrier,
    /// They may begin.
    go: Barrier,
    /// They end at once instead.
    called_off: AtomicBool,
}

/// Result of one arm in one slice.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Its totals, with the start by the clock of its threads; cache state, round number and the start by another clock are the
    /// caller's to fill in.
    pub sample: Sample,
    /// Latency of every request.
    pub latency: Histogram,
    /// Options the method did not get.
    pub dropped: Vec<String>,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
}

/// Result of one thread.
pub(crate) struct ThreadResult {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) setup_ns: u64,
    /// See [`Sample::lead_bytes`].
    pub(crate) lead_bytes: u64,
    pub(crate) tally: Tally,
    pub(crate) usage: ThreadUsage,
    pub(crate) dropped: Vec<String>,
    pub(crate) refused: u64,
    pub(crate) sent: Vec<Sent>,
    pub(crate) failure: Option<String>,
}

/// Runs all arms side by side from one barrier.
///
/// # Errors
/// A method that cannot be opened is a problem of the whole slice; a request that fails is a [`Slice::failure`].
pub fn run(
    arms: &[Arm<'_>],
    bounds: Bounds,
    kernel_threads: Option<&mut KernelThreads>,
) -> Result<Vec<Slice>, Problem> {
    run_at(None, arms, bounds, kernel_threads)
}

/// The same, where the threads begin when a gate opens.
///
/// # Errors
/// Those of [`run`], and the gate's.
pub(crate) fn run_at(
    mut gate: Option<&mut dyn Gate>,
    arms: &[Arm<'_>],
    bounds: Bounds,
    mut kernel_threads: Option<&mut KernelThreads>,
) -> Result<Vec<Slice>, Problem> {
    let threads: usize = arms.iter().map(|a| a.workload.threads.max(1)).sum();
    let start = Start {
        ready: Barrier::new(threads + 1),
        go: Barrier::new(threads + 1),
        called_off: AtomicBool::new(false),
    };
    let mut closed = None;
    let (results, before, after, kernel_ns) = std::thread::scope(|scope| {
        let handles: Vec<Vec<_>> = arms
            .iter()
            .map(|arm| {
                let count = arm.workload.threads.max(1);
                (0..count)
                    .map(|k| {
                        let start = &start;
                        scope.spawn(move || run_thread(*arm, k, count, bounds, start))
                    })
                    .collect()
            })
            .collect();
        start.ready.wait();
        closed = gate.as_mut().and_then(|gate| gate.open().err());
        start.called_off.store(closed.is_some(), Ordering::Relaxed);
        let kernel_before = kernel_threads.as_mut().map(|k| k.cpu_ns());
        let before: Vec<_> = arms.iter().map(Counted::read).collect();
        if let (Some(gate), None) = (gate, &closed) {
            gate.opened();
        }
        start.go.wait();
        let results: Vec<Vec<_>> = handles
            .into_iter()
            .map(|arm| {
                arm.into_iter()
                    .map(|h| h.join().unwrap_or_else(|_| Err(Problem::failed("a measuring thread panicked"))))
                    .collect()
            })
            .collect();
        for arm in arms.iter().filter(|arm| leaves_work_behind(arm.workload)) {
            counters::settle(arm.target.counted_devices(), SETTLE_PATIENCE);
        }
        let after: Vec<_> = arms.iter().map(Counted::read).collect();
        let kernel_after = kernel_threads.as_mut().map(|k| k.cpu_ns());
        let kernel_ns = kernel_before.zip(kernel_after).map(|(b, a)| a.saturating_sub(b));
        (results, before, after, kernel_ns)
    });
    if let Some(problem) = closed {
        return Err(problem);
    }
    let mut slices = Vec::with_capacity(arms.len());
    for (index, (arm, threads)) in arms.iter().zip(results).enumerate() {
        let threads = threads.into_iter().collect::<Result<Vec<_>, Problem>>()?;
        let mut slice = combine(threads);
        // Kernel threads of this machine have no part in virtual time.
        slice.sample.kernel_thread_ns = kernel_ns.filter(|_| arm.target.script().is_none());
        before[index].book(&after[index], arm.workload.direction, &mut slice.sample);
        slices.push(slice);
    }
    apportion(arms, &mut slices);
    Ok(slices)
}

/// Readings of the devices under one arm.
pub(crate) struct Counted {
    whole: Option<DeviceCounters>,
    /// Of a stacked device (dm, md) above them.
    stack: Option<DeviceCounters>,
    members: Vec<Option<DeviceCounters>>,
}

impl Counted {
    pub(crate) fn read(arm: &Arm<'_>) -> Counted {
        Counted {
            whole: arm.target.device_counters(),
            stack: arm.target.stack_counters(),
            members: arm.target.member_counters(),
        }
    }

    /// Puts what the devices did from this reading to a later one into a sample.
    pub(crate) fn book(&self, after: &Counted, direction: Direction, sample: &mut Sample) {
        let of = |written, read| in_direction(direction, written, read);
        if let (Some(before), Some(after)) = (self.stack, after.stack) {
            let moved = after.since(&before);
            // A stack whose requests stand still does not count, and its times mean nothing.
            let counts = of(moved.write_requests, moved.read_requests) > 0;
            let held = of(moved.write_ns.saturating_add(moved.flush_ns), moved.read_ns);
            sample.stack_request_ns = counts.then_some(held);
        }
        if let (Some(before), Some(after)) = (self.whole, after.whole) {
            let moved = after.since(&before);
            let of = |written, read| Some(of(written, read));
            sample.device_bytes = of(moved.write_bytes, moved.read_bytes);
            sample.device_requests = of(moved.write_requests, moved.read_requests);
            sample.device_request_ns = of(moved.write_ns + moved.flush_ns, moved.read_ns);
        }
        book_members(sample, direction, &self.members, &after.members);
    }
}

/// The counters of one direction.
fn in_direction(direction: Direction, written: u64, read: u64) -> u64 {
    match direction {
        Direction::Read => read,
        Direction::Write => written,
        Direction::Mixed(_) => written.saturating_add(read),
    }
}

/// Adds what the devices of each member moved to what was sent to it.
fn book_members(
    sample: &mut Sample,
    direction: Direction,
    before: &[Option<DeviceCounters>],
    after: &[Option<DeviceCounters>],
) {
    if sample.members.len() < before.len() {
        sample.members.resize(before.len(), MemberTotals::default());
    }
    for (member, (before, after)) in sample.members.iter_mut().zip(before.iter().zip(after)) {
        if let (Some(before), Some(after)) = (before, after) {
            let moved = after.since(before);
            member.device_requests = Some(in_direction(direction, moved.write_requests, moved.read_requests));
            member.device_bytes = Some(in_direction(direction, moved.write_bytes, moved.read_bytes));
            member.device_busy_ns = Some(moved.busy_ns);
        }
    }
}

/// Arms on the same devices see each other's traffic in the counters. Each is booked its part by the bytes it claims,
/// so that the parts sum to what the devices moved and no byte is taken as evidence twice.
fn apportion(arms: &[Arm<'_>], slices: &mut [Slice]) {
    let claimed: Vec<u64> = slices.iter().map(|slice| slice.sample.claimed_bytes).collect();
    for (index, slice) in slices.iter_mut().enumerate() {
        let devices = arms[index].target.counted_devices();
        let beside = |other: &Arm<'_>| !devices.is_empty() && other.target.counted_devices() == devices;
        let together: u64 =
            arms.iter().zip(&claimed).filter(|(arm, _)| beside(arm)).map(|(_, bytes)| bytes).sum();
        if together > claimed[index] {
            let part = claimed[index] as f64 / together as f64;
            for counted in [
                &mut slice.sample.device_bytes,
                &mut slice.sample.device_requests,
                &mut slice.sample.device_request_ns,
                &mut slice.sample.stack_request_ns,
            ] {
                *counted = counted.map(|whole| (whole as f64 * part).round() as u64);
            }
        }
    }
}

/// How long a thread makes requests that do not count before a warm slice. On a CPU with a private second-level cache of
/// 2 MiB, slices of 9 ms without it showed 60 ns more for a cached read of 4 KiB than slices of 66 ms. After 3 ms the
/// copies of slices of 7 ms still cost 0.13 to 0.28 ns a byte where slices of 50 ms cost 0.09: the first pass over the
/// region fetches it from memory. After 12 ms both agree.
pub(crate) const WARM_UP_NS: u64 = 12_000_000;

/// Whether the first requests of a slice would only measure the state in which the CPU was left: where the page cache
/// answers and nothing changes by asking. A mapping would change: its faults happen once.
pub(crate) fn warms_up(arm: Arm<'_>) -> bool {
    let workload = arm.workload;
    workload.state == CacheState::Warm
        && workload.direction == Direction::Read
        && !workload.method.mapped()
        && arm.listed.is_none()
        && arm.target.script().is_none()
}

/// How long a slice waits for what it left in flight. Another program may keep the device busy for ever.
const SETTLE_PATIENCE: Duration = Duration::from_millis(100);

/// Whether requests of a finished slice may still be in flight: read-ahead beyond its last byte, or write-back.
fn leaves_work_behind(workload: &Workload) -> bool {
    workload.direction.writes() || workload.state == CacheState::Cold
}

/// Sums the threads of one arm.
pub(crate) fn combine(threads: Vec<ThreadResult>) -> Slice {
    let start = threads.iter().map(|t| t.start_ns).min().unwrap_or(0);
    let mut sample = Sample {
        start_ns: start,
        first_done_ns: threads.iter().map(|t| t.end_ns).min().unwrap_or(start) - start,
        wall_ns: threads.iter().map(|t| t.end_ns).max().unwrap_or(start) - start,
        ..Sample::default()
    };
    let mut latency = Histogram::default();
    let (mut dropped, mut failure): (Vec<String>, Option<String>) = (Vec::new(), None);
    for thread in threads {
        sample.requests += thread.tally.requests;
        sample.claimed_bytes += thread.tally.bytes;
        sample.lateness_ns += thread.tally.lateness_ns;
        sample.latency_sum_ns = sample.latency_sum_ns.saturating_add(thread.tally.latency.sum_ns());
        sample.thread_ns += thread.end_ns - thread.start_ns;
        sample.cpu_ns += thread.usage.cpu_ns;
        sample.cpu_user_ns += thread.usage.cpu_user_ns;
        sample.run_delay_ns += thread.usage.run_delay_ns;
        sample.minor_faults += thread.usage.minor_faults;
        sample.major_faults += thread.usage.major_faults;
        sample.voluntary_switches += thread.usage.voluntary_switches;
        sample.involuntary_switches += thread.usage.involuntary_switches;
        sample.setup_ns += thread.setup_ns;
        sample.lead_bytes += thread.lead_bytes;
        sample.refused += thread.refused;
        latency.merge(&thread.tally.latency);
        if sample.members.len() < thread.sent.len() {
            sample.members.resize(thread.sent.len(), MemberTotals::default());
        }
        for (member, sent) in sample.members.iter_mut().zip(&thread.sent) {
            member.requests = Some(member.requests.unwrap_or(0) + sent.requests);
            member.bytes = Some(member.bytes.unwrap_or(0) + sent.bytes);
        }
        for note in thread.dropped {
            if !dropped.contains(&note) {
                dropped.push(note);
            }
        }
        failure = failure.or(thread.failure);
        std::hint::black_box(thread.tally.digest);
    }
    Slice { sample, latency, dropped, failure }
}

/// One thread from opening to its last request. Reaches both barriers whatever happens, or the others would hang.
fn run_thread(
    arm: Arm<'_>,
    thread: usize,
    threads: usize,
    bounds: Bounds,
    start: &Start,
) -> Result<ThreadResult, Problem> {
    let clock = if arm.target.script().is_some() { Clock::virtual_time() } else { Clock::real() };
    let opening = clock.now_ns();
    let mut opened = method::open(arm.workload, arm.target, &clock);
    let setup_ns = clock.now_ns() - opening;
    let depth = opened.as_ref().map_or(1, |access| arm.workload.depth.max(1).min(access.capacity()));
    let mut work = HotLoop::new(&arm, (thread, threads), &clock, depth, bounds.requests_per_thread);
    if let Ok(access) = &mut opened
        && warms_up(arm)
    {
        work.warm_up(access.as_mut(), WARM_UP_NS);
    }
    let mut lead_bytes = 0;
    if let Ok(access) = &mut opened {
        lead_bytes = stream::lead_in(&arm, bounds.wall, &mut work, access.as_mut());
        access.begin();
    }
    start.ready.wait();
    start.go.wait();
    if start.called_off.load(Ordering::Relaxed) {
        return Err(Problem::failed("called off"));
    }
    let mut access = opened?;
    // Who let this thread go may share its CPU, and would take it back in the middle of the slice to go to sleep.
    std::thread::yield_now();
    let span = counters::UsageSpan::begin(&clock);
    let start_ns = clock.now_ns();
    work.until(start_ns.saturating_add(bounds.wall.as_nanos().min(u128::from(u64::MAX)) as u64));
    let pacer = match (arm.listed.and_then(RequestLists::instants), arm.workload.rate_per_second) {
        (Some(instants), _) => Some(Pacer::listed(instants, start_ns)),
        (None, Some(rate)) => Some(Pacer::new(rate, start_ns)?.share(thread, threads)),
        (None, None) => None,
    };
    let ended = match (pacer, depth) {
        (None, 1) => access.closed_loop(&mut work, start_ns),
        (None, depth) => access.closed_loop_deep(&mut work, depth, start_ns),
        (Some(pacer), 1) => work.open_loop(access.as_mut(), pacer),
        (Some(pacer), depth) => work.open_loop_deep(access.as_mut(), pacer, depth),
    };
    let ended = ended.and_then(|()| access.finish().map_err(|failure| failure.to_string()));
    let end_ns = clock.now_ns();
    let usage = span.end(&clock) + access.helpers();
    // Not before: it makes room for the next counts.
    let tally = work.take_tally();
    Ok(ThreadResult {
        start_ns,
        end_ns,
        setup_ns,
        lead_bytes,
        tally,
        usage,
        dropped: access.dropped().to_vec(),
        refused: access.refused(),
        sent: access.sent().to_vec(),
        failure: ended.err(),
    })
}
