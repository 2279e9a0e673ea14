//! Paces requests in open-loop runs. Goal: every request at its planned instant, also after the target stalled.
//!
//! Non-goal: choosing the rate. Invariants: planned instants depend on the rate and the start alone, never on how long
//! requests took; no instant is skipped; lateness is data and is never dropped. Latency counted from the planned instant
//! is therefore free of coordinated omission.

use std::sync::Arc;
use std::time::Duration;

use iowhy_core::problem::Problem;

use crate::clock::Clock;

/// The plan of one thread.
#[derive(Clone, Debug)]
pub struct Pacer {
    start_ns: u64,
    plan: Plan,
    /// Number of the next request, counted over all threads.
    next: u64,
    /// Threads that share the plan.
    stride: u64,
}

/// How the instants are planned.
#[derive(Clone, Debug)]
enum Plan {
    /// Requests per 10^6 seconds: an integer, so that instants can be exact.
    Rate(u64),
    /// One after the other, from the start.
    Listed(Arc<[u64]>),
}

/// The last part of a wait, in which the clock is watched instead of sleeping. On a virtual machine (Linux 6.18, timer
/// slack 50 us) clock_nanosleep came back 71 to 92 us late in the median and 143 us at the 90th percentile.
const SPIN_NS: u64 = 150_000;
/// The longest single sleep: how late an interrupt may be noticed.
const SLEEP_NS: u64 = 50_000_000;

impl Pacer {
    /// Plans request i at `start_ns + i / rate` (rounded down to whole nanoseconds). The rate is taken to 10^-6
    /// requests per second; no rounding adds up.
    ///
    /// # Errors
    /// A refusal when the rate is not a number from 10^-6 to 10^9 requests per second.
    pub fn new(rate_per_second: f64, start_ns: u64) -> Result<Pacer, Problem> {
        if !(1e-6..=1e9).contains(&rate_per_second) {
            return Err(Problem::refused(format!(
                "`--rate {rate_per_second}` is not a rate that can be planned"
            ))
            .hint("give requests per second from 0.000001 to 1000000000, such as `--rate 1000`"));
        }
        let plan = Plan::Rate((rate_per_second * 1e6).round() as u64);
        Ok(Pacer { start_ns, plan, next: 0, stride: 1 })
    }

    /// Plans the requests at these instants after `start_ns`.
    pub fn listed(instants_ns: Arc<[u64]>, start_ns: u64) -> Pacer {
        Pacer { start_ns, plan: Plan::Listed(instants_ns), next: 0, stride: 1 }
    }

    /// Whether the plan has an end of its own.
    pub fn ends(&self) -> bool {
        matches!(self.plan, Plan::Listed(_))
    }

    /// The part of thread `index` of `threads`: every `threads`-th request of the same plan.
    #[must_use]
    pub fn share(mut self, index: usize, threads: usize) -> Pacer {
        self.next = index as u64;
        self.stride = threads.max(1) as u64;
        self
    }

    /// The planned instant of the next request, on the clock that `start_ns` was read from.
    pub fn next_planned_ns(&self) -> u64 {
        let after_start = match &self.plan {
            // Below 2^64 * 2^50: exact.
            Plan::Rate(micro) => {
                u64::try_from(u128::from(self.next) * 1_000_000_000_000_000 / u128::from(*micro)).ok()
            }
            Plan::Listed(instants) => usize::try_from(self.next).ok().and_then(|n| instants.get(n).copied()),
        };
        after_start.map_or(u64::MAX, |ns| self.start_ns.saturating_add(ns))
    }

    /// Leaves out what is planned before `deadline_ns`: the next request is then the first of the whole plan, whichever
    /// thread's it is, at or after that instant.
    pub fn skip_to(&mut self, deadline_ns: u64) {
        let span_ns = deadline_ns.saturating_sub(self.start_ns);
        self.next = match &self.plan {
            Plan::Rate(micro) => {
                let before = (u128::from(span_ns) * u128::from(*micro)).div_ceil(1_000_000_000_000_000);
                u64::try_from(before).unwrap_or(u64::MAX)
            }
            Plan::Listed(instants) => instants.partition_point(|instant| *instant < span_ns) as u64,
        };
    }

    /// Takes the next request at `now_ns` and returns how late that is (0 when it is early: then the caller did not
    /// wait). For methods that keep several requests in flight and must reap while they wait.
    pub fn take(&mut self, now_ns: u64) -> u64 {
        let lateness_ns = now_ns.saturating_sub(self.next_planned_ns());
        self.next += self.stride;
        lateness_ns
    }

    /// Waits for the next planned instant, takes the request and returns its lateness. `None`, with the request still
    /// in the plan, when `stop` says so first. The end of the wait is busy: the thread's CPU time includes it.
    pub fn wait(&mut self, clock: &Clock, stop: impl Fn() -> bool) -> Option<u64> {
        let planned_ns = self.next_planned_ns();
        if let Some(time) = clock.virtual_time_of() {
            time.sleep_until(planned_ns);
            return Some(self.take(clock.now_ns()));
        }
        loop {
            let now_ns = clock.now_ns();
            let left_ns = planned_ns.saturating_sub(now_ns);
            if left_ns == 0 {
                return Some(self.take(now_ns));
            }
            if left_ns <= SPIN_NS {
                std::hint::spin_loop();
                continue;
            }
            if stop() {
                return None;
            }
            std::thread::sleep(Duration::from_nanos((left_ns - SPIN_NS).min(SLEEP_NS)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_sees_the_same_end_of_the_plan() {
        for thread in 0..8 {
            // 20 a second: every 50 ms; the first instant at or after 120 ms is that of request 3.
            let mut pacer = Pacer::new(20.0, 1_000).unwrap().share(thread, 8);
            pacer.skip_to(1_000 + 120_000_000);
            assert_eq!(pacer.next_planned_ns(), 1_000 + 150_000_000);
        }
    }

    #[test]
    fn listed_instants_are_kept_and_then_there_are_none() {
        let plan = Pacer::listed([0, 70, 70, 200].into(), 1_000);
        assert_eq!(instants(plan.clone(), 5), [1_000, 1_070, 1_070, 1_200, u64::MAX]);
        let mut late = plan;
        late.skip_to(1_071);
        assert_eq!((late.next_planned_ns(), late.ends()), (1_200, true));
    }

    fn never() -> bool {
        false
    }

    fn instants(mut pacer: Pacer, n: usize) -> Vec<u64> {
        (0..n)
            .map(|_| {
                let planned = pacer.next_planned_ns();
                pacer.take(planned);
                planned
            })
            .collect()
    }

    #[test]
    fn instants_are_exact_and_do_not_drift() {
        assert_eq!(instants(Pacer::new(3.0, 7).unwrap(), 4), [7, 333_333_340, 666_666_673, 1_000_000_007]);
        assert_eq!(instants(Pacer::new(0.1, 0).unwrap(), 3), [0, 10_000_000_000, 20_000_000_000]);
        let mut pacer = Pacer::new(3.0, 7).unwrap();
        // A year of requests later it is still on the second.
        pacer.next = 3 * 86_400 * 365;
        assert_eq!(pacer.next_planned_ns(), 7 + 86_400 * 365 * 1_000_000_000);
        pacer.next = u64::MAX;
        assert_eq!(pacer.next_planned_ns(), u64::MAX, "what cannot be told is never");
    }

    #[test]
    fn threads_share_one_plan() {
        let plan = Pacer::new(1_000.0, 50).unwrap();
        let mut shared: Vec<u64> = (0..3).flat_map(|k| instants(plan.clone().share(k, 3), 4)).collect();
        shared.sort_unstable();
        assert_eq!(shared, instants(plan, 12));
    }

    #[test]
    fn a_stall_makes_later_requests_late_and_skips_none() {
        let clock = Clock::virtual_time();
        let time = clock.virtual_time_of().unwrap();
        let mut pacer = Pacer::new(1_000_000.0, 0).unwrap();
        // One request each 1000 ns; each takes 400 ns, except that the third stalls for 3000.
        let lateness: Vec<u64> = (0..8)
            .map(|i| {
                let late = pacer.wait(&clock, never).unwrap();
                time.sleep_until(clock.now_ns() + if i == 2 { 3_000 } else { 400 });
                late
            })
            .collect();
        // Planned 0, 1000, 2000, 3000 (free at 5000), 4000 (5400), 5000 (5800), 6000 (6200), 7000.
        assert_eq!(lateness, [0, 0, 0, 2_000, 1_400, 800, 200, 0]);
        assert_eq!(pacer.next_planned_ns(), 8_000, "eight planned, eight taken");
        assert_eq!(clock.thread_cpu_ns(), 0, "waiting in virtual time costs no CPU");
    }

    #[test]
    fn no_request_is_issued_before_its_time_on_a_real_clock() {
        let clock = Clock::real();
        let start = clock.now_ns();
        let mut pacer = Pacer::new(2_000.0, start).unwrap();
        for _ in 0..20 {
            let planned = pacer.next_planned_ns();
            let late = pacer.wait(&clock, never).unwrap();
            assert!(clock.now_ns() >= planned + late);
        }
        assert_eq!(pacer.next_planned_ns(), start + 10_000_000);
    }

    #[test]
    fn a_stopped_wait_leaves_the_request_in_the_plan() {
        let clock = Clock::real();
        let mut pacer = Pacer::new(0.001, clock.now_ns()).unwrap();
        pacer.take(clock.now_ns());
        let planned = pacer.next_planned_ns();
        assert_eq!(pacer.wait(&clock, || true), None);
        assert_eq!(pacer.next_planned_ns(), planned);
    }

    #[test]
    fn rates_that_cannot_be_planned_are_refused_by_name() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9, 1e12] {
            assert!(Pacer::new(rate, 0).unwrap_err().message.contains("--rate"), "{rate}");
        }
    }
}
