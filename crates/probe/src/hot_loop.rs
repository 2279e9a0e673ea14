//! The loops that every request goes through, from drawing an offset to recording a latency. Nothing is allocated in them.
//!
//! Invariants: latency counts from before submission (open loop: from the planned instant). A failed request ends the loop,
//! and all requests before it are kept. The closed loops are compiled for each method ([`HotAccess`]) with direct calls:
//! after a system call an indirect call is mispredicted.

use iowhy_core::histogram::Histogram;
use iowhy_core::pattern::Offsets;
use iowhy_core::rng::Rng;
use iowhy_core::workload::{Direction, Method, Touch, Workload};

use crate::access::{Access, Completion, Failure, Request};
use crate::arm::Arm;
use crate::clock::Clock;
use crate::interrupt;
use crate::pace::Pacer;

/// Generates requests: pattern for the offset, a coin for the direction of a mix.
struct NextRequest<'a> {
    offsets: Offsets,
    /// Requests made instead of the pattern, and how many of them are used up.
    listed: Option<&'a [Request]>,
    listed_used: usize,
    /// Drawn ahead: drawing one by one costs a mispredicted branch after each system call.
    drawn: [Request; DRAWN_AHEAD],
    /// How many of them are used up.
    used: usize,
    base: u64,
    block_bytes: u64,
    request_bytes: usize,
    direction: Direction,
    coin: Rng,
}

impl<'a> NextRequest<'a> {
    fn new(
        workload: &Workload,
        (thread, threads): (usize, usize),
        listed: Option<&'a [Request]>,
        request_bytes: u64,
    ) -> Self {
        NextRequest {
            offsets: Offsets::new(workload.pattern, workload.blocks().max(1), workload.seed)
                .for_thread(thread, threads),
            listed,
            listed_used: 0,
            drawn: [NO_REQUEST; DRAWN_AHEAD],
            used: DRAWN_AHEAD,
            base: workload.region_offset,
            block_bytes: workload.block_bytes,
            request_bytes: request_bytes as usize,
            direction: workload.direction,
            coin: Rng::new(workload.seed ^ 0x6d69_7865_6400 ^ thread as u64),
        }
    }

    #[inline]
    fn draw(&mut self) -> Request {
        if self.used == DRAWN_AHEAD {
            self.refill();
        }
        let request = self.drawn[self.used];
        self.used += 1;
        request
    }

    #[inline(never)]
    fn refill(&mut self) {
        self.used = 0;
        if let Some(listed) = self.listed {
            // Beyond the end of the list nobody asks: the limit of the loop is its length.
            let rest = listed.get(self.listed_used..).unwrap_or_default();
            for (drawn, request) in self.drawn.iter_mut().zip(rest) {
                *drawn = *request;
            }
            self.listed_used += DRAWN_AHEAD;
            return;
        }
        let spare = self.block_bytes.saturating_sub(self.request_bytes as u64);
        for (at, drawn) in self.drawn.iter_mut().enumerate() {
            let write = match self.direction {
                Direction::Read => false,
                Direction::Write => true,
                Direction::Mixed(read_percent) => self.coin.below(100) >= u64::from(read_percent),
            };
            // A part of a block is its beginning and its end in turn: bytes that only whole requests touch would be in no cache.
            let within = if at % 2 == 0 { 0 } else { spare };
            let offset = self.base + self.offsets.next() * self.block_bytes + within;
            *drawn = Request { offset, bytes: self.request_bytes, write };
        }
    }
}

/// Few, so that drawing them does not show in the upper percentiles of a request of some hundred nanoseconds.
const DRAWN_AHEAD: usize = 8;

/// State of the hot loops.
pub struct HotLoop<'a> {
    clock: &'a Clock,
    next: NextRequest<'a>,
    touch: Touch,
    /// A read of nothing means that the file ended under us (a null device answers nothing by nature).
    zero_is_end: bool,
    /// 0 until the loop is started.
    deadline_ns: u64,
    limit: u64,
    /// A closed loop of depth 1 ends after a multiple of so many requests.
    window: u64,
    tally: Tally,
    // Room for the deep loops, made before the clock runs: start and request of each slot, free slots, completions.
    flying: Vec<(u64, Request)>,
    free: Vec<usize>,
    done: Vec<Completion>,
}

/// An access with a closed loop compiled for its own type, see the module's header.
pub trait HotAccess: Access {
    /// Runs the loop of depth 1.
    fn closed_loop(&mut self, work: &mut HotLoop<'_>, start_ns: u64) -> Result<(), String>;

    /// Runs the loop of a greater depth.
    fn closed_loop_deep(&mut self, work: &mut HotLoop<'_>, depth: usize, start_ns: u64)
    -> Result<(), String>;
}

impl<A: Access> HotAccess for A {
    fn closed_loop(&mut self, work: &mut HotLoop<'_>, start_ns: u64) -> Result<(), String> {
        work.closed(self, start_ns)
    }

    fn closed_loop_deep(
        &mut self,
        work: &mut HotLoop<'_>,
        depth: usize,
        start_ns: u64,
    ) -> Result<(), String> {
        work.closed_deep(self, depth, start_ns)
    }
}

/// Counts of a loop.
pub(crate) struct Tally {
    pub(crate) latency: Histogram,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) lateness_ns: u64,
    pub(crate) digest: u64,
}

impl Tally {
    fn new() -> Tally {
        let mut latency = Histogram::default();
        latency.reserve();
        Tally { latency, requests: 0, bytes: 0, lateness_ns: 0, digest: 0 }
    }
}

impl<'a> HotLoop<'a> {
    /// A loop over the workload of an arm, for one of its threads, with `depth` requests in flight; ends after `limit`
    /// requests, or with the thread's list where there is one.
    pub(crate) fn new(
        arm: &Arm<'a>,
        (thread, threads): (usize, usize),
        clock: &'a Clock,
        depth: usize,
        limit: u64,
    ) -> Self {
        let Arm { workload, target, .. } = *arm;
        let listed = arm.listed.map(|listed| listed.for_thread(thread));
        let request_bytes =
            arm.request_bytes.map_or(workload.block_bytes, |bytes| bytes.min(workload.block_bytes));
        let limit = listed.map_or(limit, |list| limit.min(list.len() as u64));
        HotLoop {
            clock,
            next: NextRequest::new(workload, (thread, threads), listed, request_bytes),
            touch: workload.touch,
            zero_is_end: !target.moves_no_data()
                && !matches!(workload.method, Method::Syscall | Method::PreadEnd),
            deadline_ns: 0,
            limit,
            window: 1,
            tally: Tally::new(),
            flying: vec![(0, NO_REQUEST); depth],
            free: (0..depth).rev().collect(),
            done: Vec::with_capacity(depth),
        }
    }

    /// Makes requests that count for nothing, for at most `ns`, so that the CPU's caches and predictors are in the state
    /// that they keep for the rest of the slice. A failure is left for the loop to meet again.
    pub(crate) fn warm_up(&mut self, access: &mut dyn Access, ns: u64) {
        self.uncounted(access, u64::MAX, ns);
    }

    /// Makes `windows` of `requests` that count for nothing, and ends the loop between two windows. Where they take longer than `ns`, the loop goes
    /// on from there and ends at its instant. They are taken from the limit. How many it made.
    pub(crate) fn lead_in(&mut self, access: &mut dyn Access, windows: u64, requests: u64, ns: u64) -> u64 {
        let made = self.uncounted(access, windows * requests, ns);
        self.limit = self.limit.saturating_sub(made);
        if made == windows * requests {
            self.window = requests;
        }
        made
    }

    /// Makes at most so many requests, for at most `ns`; how many it made.
    fn uncounted(&mut self, access: &mut dyn Access, most: u64, ns: u64) -> u64 {
        let end = self.clock.now_ns().saturating_add(ns);
        let mut made = 0;
        while made < most && self.clock.now_ns() < end && !interrupt::requested() {
            made += 1;
            if access.perform(self.next.draw()).is_err() {
                break;
            }
        }
        made
    }

    /// Sets the instant at which the loop ends, on its clock's time.
    pub(crate) fn until(&mut self, deadline_ns: u64) {
        self.deadline_ns = deadline_ns;
    }

    /// The counts so far; those of later requests begin anew.
    pub(crate) fn take_tally(&mut self) -> Tally {
        std::mem::replace(&mut self.tally, Tally::new())
    }

    /// Depth 1, closed loop: one clock reading a request; the end of one is the start of the next.
    pub(crate) fn closed<A: Access + ?Sized>(&mut self, access: &mut A, start_ns: u64) -> Result<(), String> {
        let mut last = start_ns;
        while self.tally.requests < self.limit && !interrupt::requested() {
            let request = self.next.draw();
            let bytes = access.perform(request).map_err(|f| f.to_string())?;
            self.arrived(access, 0, bytes, request)?;
            let now = self.clock.now_ns();
            self.tally.latency.record(now.saturating_sub(last));
            last = now;
            if now >= self.deadline_ns && self.tally.requests.is_multiple_of(self.window) {
                break;
            }
        }
        Ok(())
    }

    /// Depth above 1, closed loop: a finished request is replaced at once; one clock reading a batch.
    pub(crate) fn closed_deep<A: Access + ?Sized>(
        &mut self,
        access: &mut A,
        depth: usize,
        start_ns: u64,
    ) -> Result<(), String> {
        let (mut flying, mut done) = (std::mem::take(&mut self.flying), std::mem::take(&mut self.done));
        let mut started = 0u64;
        let mut in_flight = 0usize;
        for (slot, entry) in flying.iter_mut().enumerate() {
            if started == self.limit {
                break;
            }
            *entry = (start_ns, self.next.draw());
            access.submit(slot, entry.1).map_err(|f| f.to_string())?;
            started += 1;
            in_flight += 1;
        }
        let mut open = true;
        // Waiting for a few at a time saves system calls without starving the device: on a virtual disk at depth 32,
        // one at a time gave 0.87 of the rate of four.
        let batch = (depth / 8).max(1);
        while in_flight > 0 {
            done.clear();
            access.reap(batch.min(in_flight), &mut done).map_err(|f| f.to_string())?;
            let now = self.clock.now_ns();
            open = open && now < self.deadline_ns && !interrupt::requested();
            for completion in &done {
                let (since, request) = flying[completion.slot];
                self.arrived(access, completion.slot, completion.bytes, request)?;
                self.tally.latency.record(now.saturating_sub(since));
                in_flight -= 1;
                if open && started < self.limit {
                    let request = self.next.draw();
                    flying[completion.slot] = (now, request);
                    access.submit(completion.slot, request).map_err(|f| f.to_string())?;
                    started += 1;
                    in_flight += 1;
                }
            }
        }
        Ok(())
    }

    /// Depth 1, open loop: latency counts from the planned instant, so that a stall is paid by every request it held
    /// up.
    pub(crate) fn open_loop(&mut self, access: &mut dyn Access, mut pacer: Pacer) -> Result<(), String> {
        while self.tally.requests < self.limit && !interrupt::requested() {
            let planned = pacer.next_planned_ns();
            if planned >= self.deadline_ns {
                break;
            }
            let Some(lateness_ns) = pacer.wait(self.clock, interrupt::requested) else { break };
            self.tally.lateness_ns += lateness_ns;
            let request = self.next.draw();
            let bytes = access.perform(request).map_err(|f| f.to_string())?;
            self.arrived(access, 0, bytes, request)?;
            self.tally.latency.record(self.clock.now_ns().saturating_sub(planned));
            // A device that cannot keep the rate must not stretch the slice without end.
            if self.clock.now_ns() >= self.deadline_ns {
                break;
            }
        }
        self.see_out(pacer);
        Ok(())
    }

    /// Waits for the instant of the request that is no longer made: n requests take n intervals of the plan, and a slice
    /// that ended with its last request would show a rate that was never planned.
    fn see_out(&self, mut pacer: Pacer) {
        if pacer.ends() {
            return;
        }
        // Every thread to the same instant: that of the first request of the whole plan that is no longer made.
        pacer.skip_to(self.deadline_ns);
        let _ = pacer.wait(self.clock, interrupt::requested);
    }

    /// Open loop with several in flight. Polls while it waits for the next planned instant, because a completion may
    /// come at any time; the CPU this costs is in the record.
    pub(crate) fn open_loop_deep(
        &mut self,
        access: &mut dyn Access,
        mut pacer: Pacer,
        depth: usize,
    ) -> Result<(), String> {
        let (mut flying, mut done) = (std::mem::take(&mut self.flying), std::mem::take(&mut self.done));
        let mut free = std::mem::take(&mut self.free);
        let mut started = 0u64;
        loop {
            let now = self.clock.now_ns();
            let planned = pacer.next_planned_ns();
            let open = planned < self.deadline_ns
                && now < self.deadline_ns
                && started < self.limit
                && !interrupt::requested();
            if open
                && planned <= now
                && let Some(slot) = free.pop()
            {
                self.tally.lateness_ns += pacer.take(now);
                let request = self.next.draw();
                flying[slot] = (planned, request);
                access.submit(slot, request).map_err(|f| f.to_string())?;
                started += 1;
                continue;
            }
            if free.len() == depth {
                if !open {
                    self.see_out(pacer);
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
            access.reap(usize::from(must_wait), &mut done).map_err(|f| f.to_string())?;
            let now = self.clock.now_ns();
            for completion in &done {
                let (since, request) = flying[completion.slot];
                self.arrived(access, completion.slot, completion.bytes, request)?;
                self.tally.latency.record(now.saturating_sub(since));
                free.push(completion.slot);
            }
        }
    }

    /// Books a finished request and touches what arrived.
    #[inline(always)]
    fn arrived<A: Access + ?Sized>(
        &mut self,
        access: &A,
        slot: usize,
        bytes: usize,
        request: Request,
    ) -> Result<(), String> {
        if bytes == 0 && self.zero_is_end {
            return Err(Failure::Ended { offset: request.offset }.to_string());
        }
        self.tally.requests += 1;
        self.tally.bytes += bytes as u64;
        if self.touch != Touch::None
            && !request.write
            && let Some(data) = access.data(slot)
        {
            let data = &data[..bytes.min(data.len())];
            self.tally.digest = self.tally.digest.wrapping_add(touch(data, self.touch));
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
