//! Runs cells in short blocks, in seeded random order, on one thread: what disturbs the machine for longer than a block
//! disturbs all of them alike. For requests of which one is in flight and which leave nothing behind.
//!
//! Invariant: between two blocks of a cell each other cell has one.

use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};

use crate::arm::Arm;
use crate::clock::Clock;
use crate::counters::UsageSpan;
use crate::hot_loop::{HotAccess, HotLoop};
use crate::interrupt;
use crate::method;
use crate::runner::{self, Counted, Slice, ThreadResult, WARM_UP_NS, combine};

/// Length of the longest block: shorter than a time slice of the scheduler (about 3 ms), far longer than the 10 us that
/// reading the counters around it takes.
const BLOCK: Duration = Duration::from_millis(1);
/// The same where a device takes part: its request times are counted in whole milliseconds, and each block adds an error
/// of a fraction of one.
const DEVICE_BLOCK: Duration = Duration::from_millis(5);
/// Requests before a block that do not count: the caches and predictors of the CPU are those of the cell before.
const BLOCK_WARM_UP_NS: u64 = 50_000;

/// Whether a cell can be measured in blocks: one request in flight, and it leaves no work to later ones.
pub fn can_interleave(workload: &Workload) -> bool {
    let ends = match workload.direction {
        Direction::Read => workload.state != CacheState::Cold,
        Direction::Write => matches!(workload.method, Method::Direct | Method::PwriteFdatasync),
        Direction::Mixed(_) => false,
    };
    ends && workload.threads == 1
        && workload.depth == 1
        && workload.rate_per_second.is_none()
        && !workload.method.mapped()
        && !workload.method.asynchronous()
}

/// Measures each arm for its wall time, in blocks of at most a millisecond.
pub fn run(arms: &[(Arm<'_>, Duration)], seed: u64) -> Vec<Result<Slice, Problem>> {
    // A thread of its own, as for a slice: the caller's CPU time and caches are left out.
    let thread = std::thread::scope(|scope| scope.spawn(|| run_here(arms, seed)).join());
    thread.unwrap_or_else(|_| {
        arms.iter().map(|_| Err(Problem::failed("a measuring thread panicked"))).collect()
    })
}

fn run_here(arms: &[(Arm<'_>, Duration)], seed: u64) -> Vec<Result<Slice, Problem>> {
    let clocks: Vec<Clock> = arms
        .iter()
        .map(|(arm, _)| if arm.target.script().is_some() { Clock::virtual_time() } else { Clock::real() })
        .collect();
    let longest = arms.iter().map(|(_, wall)| *wall).max().unwrap_or_default();
    let device = arms
        .iter()
        .any(|(arm, _)| arm.workload.state == CacheState::Direct || arm.workload.direction.writes());
    let block = if device { DEVICE_BLOCK } else { BLOCK };
    let passes = longest.as_nanos().div_ceil(block.as_nanos()).max(1) as u32;
    let mut open: Vec<Result<Open<'_>, Problem>> =
        arms.iter().zip(&clocks).map(|((arm, wall), clock)| Open::new(*arm, clock, *wall / passes)).collect();
    let mut rng = Rng::new(seed);
    let mut order: Vec<usize> = (0..arms.len()).collect();
    for _ in 0..passes {
        rng.shuffle(&mut order);
        for &index in &order {
            if let Ok(open) = &mut open[index]
                && !interrupt::requested()
            {
                open.block();
            }
        }
    }
    open.into_iter().map(|open| open.map(Open::finish)).collect()
}

/// A cell between its blocks.
struct Open<'a> {
    arm: Arm<'a>,
    clock: &'a Clock,
    access: Box<dyn HotAccess>,
    work: HotLoop<'a>,
    block_ns: u64,
    setup_ns: u64,
    /// All blocks so far.
    sum: Option<Slice>,
}

impl<'a> Open<'a> {
    fn new(arm: Arm<'a>, clock: &'a Clock, block: Duration) -> Result<Open<'a>, Problem> {
        let opening = clock.now_ns();
        let mut access = method::open(arm.workload, arm.target, clock)?;
        let setup_ns = clock.now_ns() - opening;
        let mut work = HotLoop::new(&arm, (0, 1), clock, 1, u64::MAX);
        if runner::warms_up(arm) {
            work.warm_up(access.as_mut(), WARM_UP_NS);
        }
        access.begin();
        let block_ns = (block.as_nanos() as u64).max(1);
        Ok(Open { arm, clock, access, work, block_ns, setup_ns, sum: None })
    }

    fn block(&mut self) {
        if self.sum.as_ref().is_some_and(|sum| sum.failure.is_some()) {
            return;
        }
        if self.arm.target.script().is_none() && self.arm.workload.direction == Direction::Read {
            self.work.warm_up(self.access.as_mut(), BLOCK_WARM_UP_NS);
        }
        let before = Counted::read(&self.arm);
        let span = UsageSpan::begin(self.clock);
        let start_ns = self.clock.now_ns();
        self.work.until(start_ns.saturating_add(self.block_ns));
        let ended = self.access.closed_loop(&mut self.work, start_ns);
        let end_ns = self.clock.now_ns();
        let usage = span.end(self.clock);
        let mut slice = combine(vec![ThreadResult {
            start_ns,
            end_ns,
            setup_ns: std::mem::take(&mut self.setup_ns),
            lead_bytes: 0,
            tally: self.work.take_tally(),
            usage,
            dropped: Vec::new(),
            refused: 0,
            sent: Vec::new(),
            failure: ended.err(),
        }]);
        before.book(&Counted::read(&self.arm), self.arm.workload.direction, &mut slice.sample);
        match &mut self.sum {
            None => self.sum = Some(slice),
            Some(sum) => {
                sum.sample.add(&slice.sample);
                sum.latency.merge(&slice.latency);
                sum.failure = slice.failure;
            }
        }
    }

    fn finish(mut self) -> Slice {
        let ended = self.access.finish();
        let mut slice = self.sum.unwrap_or_else(|| combine(Vec::new()));
        slice.dropped = self.access.dropped().to_vec();
        slice.sample.refused = self.access.refused();
        slice.failure = slice.failure.or(ended.err().map(|failure| failure.to_string()));
        slice
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;
    use crate::target::Target;

    /// Blocks of cells that cost what the script says sum to whole cells, and a failure stays with its cell.
    #[test]
    fn blocks_of_a_script_sum_to_its_costs() {
        let target = Target::scripted(Script::from_spec("scripted").unwrap());
        let failing = Target::scripted(Script { fail_at: Some(3), ..Script::from_spec("scripted").unwrap() });
        let of = |block| Workload::reads(Method::Pread, CacheState::Warm, block, 1 << 20);
        let (small, large) = (of(4096), of(1 << 16));
        let arm = |workload, target, request_bytes| Arm { workload, target, listed: None, request_bytes };
        let wall = Duration::from_millis(5);
        let arms = [
            (arm(&small, &target, None), wall),
            (arm(&large, &target, None), wall / 2),
            (arm(&small, &target, Some(512)), wall),
            (arm(&small, &failing, None), wall),
        ];
        let slices: Vec<Slice> = run(&arms, 7).into_iter().map(Result::unwrap).collect();
        for (slice, (arm, wall)) in slices.iter().zip(&arms).take(3) {
            let s = &slice.sample;
            assert!(slice.failure.is_none() && s.latency_sum_ns == s.thread_ns);
            assert_eq!(slice.latency.count(), s.requests);
            let bytes = arm.request_bytes.unwrap_or(arm.workload.block_bytes);
            assert_eq!(s.claimed_bytes, s.requests * bytes);
            // Five blocks, each a request too long at most.
            assert!((wall.as_nanos() as u64..).contains(&s.wall_ns), "{s:?}");
            assert!(s.wall_ns < wall.as_nanos() as u64 + 6 * s.wall_ns / s.requests, "{s:?}");
        }
        let [small, _, part, failed] = slices.as_slice() else { panic!("four cells") };
        assert!(part.sample.ns_per_request() < small.sample.ns_per_request());
        assert!(failed.failure.is_some() && failed.sample.requests == 3);
    }
}
