//! Runs one slice: every thread of one cell (or of several cells side by side) from one barrier to its end.
//!
//! Goal: the shortest honest loop around [`Access`]. Non-goal: deciding what to run and how often (the campaign's).
//! Invariants: a request's latency is taken from before its submission (open loop: from its planned instant), never
//! from after it; a request that fails ends the slice and everything before it is kept; nothing is allocated between
//! the barrier and the end.

use std::sync::Barrier;
use std::time::Duration;

use iowhy_core::cell::Sample;
use iowhy_core::histogram::Histogram;
use iowhy_core::pattern::Offsets;
use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_core::workload::{Direction, Method, Touch, Workload};

use crate::access::{Access, Completion, Request};
use crate::clock::Clock;
use crate::counters::{self, KernelThreads, ThreadUsage};
use crate::interrupt;
use crate::method;
use crate::pace::Pacer;
use crate::target::Target;

/// One cell's part of a slice: what to do, and to what.
#[derive(Clone, Copy, Debug)]
pub struct Arm<'a> {
    /// What is asked.
    pub workload: &'a Workload,
    /// Of whom.
    pub target: &'a Target,
}

/// When a slice ends: at the first of its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Wall time from the barrier.
    pub wall: Duration,
    /// Requests per thread.
    pub requests_per_thread: u64,
}

/// What one arm did in one slice.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Its totals; cache state and round number are the caller's to fill in.
    pub sample: Sample,
    /// Latency of every request.
    pub latency: Histogram,
    /// Options the method did not get.
    pub dropped: Vec<String>,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
}

/// What one thread did.
struct ThreadResult {
    start_ns: u64,
    end_ns: u64,
    setup_ns: u64,
    tally: Tally,
    usage: ThreadUsage,
    dropped: Vec<String>,
    refused: u64,
    failure: Option<String>,
}

/// What a loop counts.
struct Tally {
    latency: Histogram,
    requests: u64,
    bytes: u64,
    lateness_ns: u64,
    digest: u64,
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
    let threads: usize = arms.iter().map(|a| a.workload.threads.max(1)).sum();
    let ready = Barrier::new(threads + 1);
    let go = Barrier::new(threads + 1);
    let mut kernel_threads = kernel_threads;
    let (results, before, after, kernel_ns) = std::thread::scope(|scope| {
        let handles: Vec<Vec<_>> = arms
            .iter()
            .map(|arm| {
                let count = arm.workload.threads.max(1);
                (0..count)
                    .map(|k| {
                        let (ready, go) = (&ready, &go);
                        scope.spawn(move || run_thread(*arm, k, count, bounds, ready, go))
                    })
                    .collect()
            })
            .collect();
        ready.wait();
        let kernel_before = kernel_threads.as_mut().map(|k| k.cpu_ns());
        let before: Vec<_> = arms.iter().map(|a| a.target.device_counters()).collect();
        go.wait();
        let results: Vec<Vec<_>> = handles
            .into_iter()
            .map(|arm| {
                arm.into_iter()
                    .map(|h| h.join().unwrap_or_else(|_| Err(Problem::failed("a measuring thread panicked"))))
                    .collect()
            })
            .collect();
        let after: Vec<_> = arms.iter().map(|a| a.target.device_counters()).collect();
        let kernel_after = kernel_threads.as_mut().map(|k| k.cpu_ns());
        let kernel_ns = kernel_before.zip(kernel_after).map(|(b, a)| a.saturating_sub(b));
        (results, before, after, kernel_ns)
    });
    let mut slices = Vec::with_capacity(arms.len());
    for (index, (arm, threads)) in arms.iter().zip(results).enumerate() {
        let threads = threads.into_iter().collect::<Result<Vec<_>, Problem>>()?;
        let mut slice = combine(threads);
        // Kernel threads of this machine have no part in virtual time.
        slice.sample.kernel_thread_ns = kernel_ns.filter(|_| arm.target.script().is_none());
        if let (Some(before), Some(after)) = (before[index], after[index]) {
            let moved = after.since(&before);
            let writes = arm.workload.direction.writes();
            let of = |written, read| Some(if writes { written } else { read });
            slice.sample.device_bytes = of(moved.write_bytes, moved.read_bytes);
            slice.sample.device_requests = of(moved.write_requests, moved.read_requests);
            slice.sample.device_request_ns = of(moved.write_ns + moved.flush_ns, moved.read_ns);
        }
        slices.push(slice);
    }
    apportion(arms, &mut slices);
    Ok(slices)
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
            ] {
                *counted = counted.map(|whole| (whole as f64 * part).round() as u64);
            }
        }
    }
}

/// Sums the threads of one arm.
fn combine(threads: Vec<ThreadResult>) -> Slice {
    let start = threads.iter().map(|t| t.start_ns).min().unwrap_or(0);
    let mut sample = Sample {
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
        sample.thread_ns += thread.end_ns - thread.start_ns;
        sample.cpu_ns += thread.usage.cpu_ns;
        sample.cpu_user_ns += thread.usage.cpu_user_ns;
        sample.run_delay_ns += thread.usage.run_delay_ns;
        sample.minor_faults += thread.usage.minor_faults;
        sample.major_faults += thread.usage.major_faults;
        sample.voluntary_switches += thread.usage.voluntary_switches;
        sample.involuntary_switches += thread.usage.involuntary_switches;
        sample.setup_ns += thread.setup_ns;
        sample.refused += thread.refused;
        latency.merge(&thread.tally.latency);
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
    ready: &Barrier,
    go: &Barrier,
) -> Result<ThreadResult, Problem> {
    let clock = if arm.target.script().is_some() { Clock::virtual_time() } else { Clock::real() };
    let opening = clock.now_ns();
    let opened = method::open(arm.workload, arm.target, &clock);
    let setup_ns = clock.now_ns() - opening;
    ready.wait();
    go.wait();
    let mut access = opened?;
    let before = counters::thread_usage(&clock);
    let start_ns = clock.now_ns();
    let mut work = Loop {
        access: access.as_mut(),
        clock: &clock,
        next: NextRequest::new(arm.workload, thread, threads),
        touch: arm.workload.touch,
        zero_is_end: !arm.target.answers_nothing()
            && !matches!(arm.workload.method, Method::Syscall | Method::PreadEnd),
        deadline_ns: start_ns.saturating_add(bounds.wall.as_nanos().min(u128::from(u64::MAX)) as u64),
        limit: bounds.requests_per_thread,
        tally: Tally { latency: Histogram::default(), requests: 0, bytes: 0, lateness_ns: 0, digest: 0 },
    };
    work.tally.latency.reserve();
    let depth = arm.workload.depth.max(1).min(work.access.capacity());
    let pacer = match arm.workload.rate_per_second {
        Some(rate) => Some(Pacer::new(rate, start_ns)?.share(thread, threads)),
        None => None,
    };
    let ended = match (pacer, depth) {
        (None, 1) => work.closed(start_ns),
        (None, depth) => work.closed_deep(depth, start_ns),
        (Some(pacer), 1) => work.open_loop(pacer),
        (Some(pacer), depth) => work.open_loop_deep(pacer, depth),
    };
    let tally = work.tally;
    let end_ns = clock.now_ns();
    let usage = counters::thread_usage(&clock).since(&before);
    Ok(ThreadResult {
        start_ns,
        end_ns,
        setup_ns,
        tally,
        usage,
        dropped: access.dropped().to_vec(),
        refused: access.refused(),
        failure: ended.err(),
    })
}

/// Generates requests: pattern for the offset, a coin for the direction of a mix.
struct NextRequest {
    offsets: Offsets,
    base: u64,
    block_bytes: u64,
    direction: Direction,
    coin: Rng,
}

impl NextRequest {
    fn new(workload: &Workload, thread: usize, threads: usize) -> Self {
        NextRequest {
            offsets: Offsets::new(workload.pattern, workload.blocks().max(1), workload.seed)
                .for_thread(thread, threads),
            base: workload.region_offset,
            block_bytes: workload.block_bytes,
            direction: workload.direction,
            coin: Rng::new(workload.seed ^ 0x6d69_7865_6400 ^ thread as u64),
        }
    }

    #[inline]
    fn draw(&mut self) -> Request {
        let write = match self.direction {
            Direction::Read => false,
            Direction::Write => true,
            Direction::Mixed(read_percent) => self.coin.below(100) >= u64::from(read_percent),
        };
        Request {
            offset: self.base + self.offsets.next() * self.block_bytes,
            bytes: self.block_bytes as usize,
            write,
        }
    }
}

/// The hot loops and what they share.
struct Loop<'a> {
    access: &'a mut dyn Access,
    clock: &'a Clock,
    next: NextRequest,
    touch: Touch,
    /// A read of nothing means that the file ended under us (a null device answers nothing by nature).
    zero_is_end: bool,
    deadline_ns: u64,
    limit: u64,
    tally: Tally,
}

impl Loop<'_> {
    /// Depth 1, closed loop: one clock reading a request; the end of one is the start of the next.
    fn closed(&mut self, start_ns: u64) -> Result<(), String> {
        let mut last = start_ns;
        while self.tally.requests < self.limit && !interrupt::requested() {
            let request = self.next.draw();
            let bytes = self.access.perform(request).map_err(|f| f.to_string())?;
            self.arrived(0, bytes, request)?;
            let now = self.clock.now_ns();
            self.tally.latency.record(now - last);
            last = now;
            if now >= self.deadline_ns {
                break;
            }
        }
        Ok(())
    }

    /// Depth above 1, closed loop: a finished request is replaced at once; one clock reading a batch.
    fn closed_deep(&mut self, depth: usize, start_ns: u64) -> Result<(), String> {
        let mut flying = vec![(0u64, NO_REQUEST); depth];
        let mut done: Vec<Completion> = Vec::with_capacity(depth);
        let mut started = 0u64;
        let mut in_flight = 0usize;
        for (slot, entry) in flying.iter_mut().enumerate() {
            if started == self.limit {
                break;
            }
            *entry = (start_ns, self.next.draw());
            self.access.submit(slot, entry.1).map_err(|f| f.to_string())?;
            started += 1;
            in_flight += 1;
        }
        let mut open = true;
        // Waiting for a few at a time saves system calls without starving the device: on a virtual disk at depth 32,
        // one at a time gave 0.87 of the rate of four.
        let batch = (depth / 8).max(1);
        while in_flight > 0 {
            done.clear();
            self.access.reap(batch.min(in_flight), &mut done).map_err(|f| f.to_string())?;
            let now = self.clock.now_ns();
            open = open && now < self.deadline_ns && !interrupt::requested();
            for completion in &done {
                let (since, request) = flying[completion.slot];
                self.tally.latency.record(now - since);
                self.arrived(completion.slot, completion.bytes, request)?;
                in_flight -= 1;
                if open && started < self.limit {
                    let request = self.next.draw();
                    flying[completion.slot] = (now, request);
                    self.access.submit(completion.slot, request).map_err(|f| f.to_string())?;
                    started += 1;
                    in_flight += 1;
                }
            }
        }
        Ok(())
    }

    /// Depth 1, open loop: latency counts from the planned instant, so that a stall is paid by every request it held
    /// up.
    fn open_loop(&mut self, mut pacer: Pacer) -> Result<(), String> {
        while self.tally.requests < self.limit && !interrupt::requested() {
            let planned = pacer.next_planned_ns();
            if planned >= self.deadline_ns {
                break;
            }
            let Some(lateness_ns) = pacer.wait(self.clock, interrupt::requested) else { break };
            self.tally.lateness_ns += lateness_ns;
            let request = self.next.draw();
            let bytes = self.access.perform(request).map_err(|f| f.to_string())?;
            self.arrived(0, bytes, request)?;
            self.tally.latency.record(self.clock.now_ns().saturating_sub(planned));
            // A device that cannot keep the rate must not stretch the slice without end.
            if self.clock.now_ns() >= self.deadline_ns {
                break;
            }
        }
        Ok(())
    }

    /// Open loop with several in flight. Polls while it waits for the next planned instant, because a completion may
    /// come at any time; the CPU this costs is in the record.
    fn open_loop_deep(&mut self, mut pacer: Pacer, depth: usize) -> Result<(), String> {
        let mut flying = vec![(0u64, NO_REQUEST); depth];
        let mut free: Vec<usize> = (0..depth).rev().collect();
        let mut done: Vec<Completion> = Vec::with_capacity(depth);
        let mut started = 0u64;
        loop {
            let now = self.clock.now_ns();
            let planned = pacer.next_planned_ns();
            let open = planned < self.deadline_ns
                && now < self.deadline_ns
                && started < self.limit
                && !interrupt::requested();
            if open && planned <= now {
                if let Some(slot) = free.pop() {
                    self.tally.lateness_ns += pacer.take(now);
                    let request = self.next.draw();
                    flying[slot] = (planned, request);
                    self.access.submit(slot, request).map_err(|f| f.to_string())?;
                    started += 1;
                    continue;
                }
            }
            if free.len() == depth {
                if !open {
                    return Ok(());
                }
                // Nothing is in flight, so nothing can complete before the plan goes on.
                match self.clock.virtual_time_of() {
                    Some(time) => time.sleep_until(planned),
                    None => std::hint::spin_loop(),
                }
                continue;
            }
            done.clear();
            let must_wait = !open || free.is_empty() || self.clock.virtual_time_of().is_some();
            self.access.reap(usize::from(must_wait), &mut done).map_err(|f| f.to_string())?;
            let now = self.clock.now_ns();
            for completion in &done {
                let (since, request) = flying[completion.slot];
                self.tally.latency.record(now.saturating_sub(since));
                self.arrived(completion.slot, completion.bytes, request)?;
                free.push(completion.slot);
            }
        }
    }

    /// Books a finished request and touches what arrived.
    #[inline]
    fn arrived(&mut self, slot: usize, bytes: usize, request: Request) -> Result<(), String> {
        if bytes == 0 && self.zero_is_end {
            return Err(format!(
                "the target ended at offset {}: it was truncated while it was measured",
                request.offset
            ));
        }
        self.tally.requests += 1;
        self.tally.bytes += bytes as u64;
        if self.touch != Touch::None && !request.write {
            if let Some(data) = self.access.data(slot) {
                let data = &data[..bytes.min(data.len())];
                self.tally.digest = self.tally.digest.wrapping_add(touch(data, self.touch));
            }
        }
        Ok(())
    }
}

const NO_REQUEST: Request = Request { offset: 0, bytes: 0, write: false };

/// Loads arrived bytes the way `how` says and returns a digest that the optimiser cannot skip.
fn touch(data: &[u8], how: Touch) -> u64 {
    match how {
        Touch::None => 0,
        Touch::Line => {
            data.iter().step_by(64).fold(0, |sum, &byte| sum + u64::from(std::hint::black_box(byte)))
        }
        Touch::All => {
            let mut words = data.chunks_exact(8);
            let sum = words.by_ref().fold(0u64, |sum, w| {
                sum.wrapping_add(u64::from_ne_bytes([w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]]))
            });
            words.remainder().iter().fold(std::hint::black_box(sum), |sum, &b| sum.wrapping_add(u64::from(b)))
        }
    }
}
