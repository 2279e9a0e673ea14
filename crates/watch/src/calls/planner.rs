//! When to trace system calls, and how long, so that tracing costs the program at most 1 %. Pure arithmetic.
//! Invariant: whenever a burst but the first begins at `t` (since the start of the run), what was spent before it and what
//! it is expected to cost is at most `SHARE * t + ADVANCE_NS`. Bursts are spread evenly in time, because counts are scaled
//! by `wall / observed`.

use iowhy_core::rng::Rng;

/// Part of the run that tracing may cost.
const SHARE: f64 = 0.01;
/// What the first burst may cost beyond [`SHARE`].
const ADVANCE_NS: f64 = 1.5e6;
/// The first burst begins about here: later than the dynamic linker's work, early enough for short programs.
const FIRST_NS: f64 = 20e6;
/// Shortest and longest burst.
const SHORTEST_NS: f64 = 1e6;
const LONGEST_NS: f64 = 200e6;
/// The first burst lasts so long unless it is full before: in 1 ms of a program that syncs each record, one sync or none
/// was seen, and short runs have no second burst.
const FIRST_LENGTH_NS: f64 = 4e6;
/// Between the end of a burst and the start of the next lies at least this: opening tracepoints is work for the kernel.
const GAP_NS: f64 = 50e6;
/// Calls that a burst should see: about this many make its shares exact to a few per cent.
const WANTED_CALLS: f64 = 1000.0;
/// More than this a burst is never asked to see.
const MAX_WANTED_CALLS: f64 = 10_000.0;
/// A burst is at most this factor longer than the one before: the program may be about to become busy.
const GROWTH: f64 = 8.0;
/// A burst ends at this multiple of what was expected.
const SLACK: f64 = 4.0;
/// No burst sees more calls than this.
const MAX_CALLS: f64 = 50_000.0;

/// What tracing costs, as measured on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// CPU time that a traced call costs the program, entry and return together.
    pub per_call_ns: f64,
    /// CPU time of opening and closing the tracepoints once. It is the watcher's, not the program's, but may be taken
    /// from the CPU that the program wants.
    pub per_burst_ns: f64,
    /// Time in which the tracepoints exist before and after a burst: the kernel takes long to close them.
    pub tail_ns: f64,
    /// CPU time that each call costs the program in that time: it takes the slow way into the kernel and back.
    pub per_tail_call_ns: f64,
}

impl Default for Costs {
    /// Measured on one virtual machine (Linux 6.18, 2 CPUs, rings of 1 MiB mapped anew): opening 4 to 33 ms, closing 63
    /// to 88 ms. A program of 10^6 calls a second pays 15 ms for each burst, which is why it gets few.
    fn default() -> Self {
        Costs { per_call_ns: 560.0, per_burst_ns: 1_000_000.0, tail_ns: 90e6, per_tail_call_ns: 150.0 }
    }
}

/// One burst to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// When it should begin, since the start of the run.
    pub start_ns: u64,
    /// How long it should last.
    pub length_ns: u64,
    /// It should end earlier, once it has seen this many calls.
    pub calls: u64,
}

/// Plans bursts from what the bursts before saw. Same seed and same answers, same plans.
#[derive(Clone, Debug)]
pub struct Planner {
    costs: Costs,
    rng: Rng,
    spent_ns: f64,
    observed_ns: f64,
    calls: f64,
    last: Option<Last>,
    plan: Plan,
}

/// The burst before.
#[derive(Clone, Copy, Debug)]
struct Last {
    end_ns: f64,
    length_ns: f64,
    /// Calls per nanosecond, not less than one call more than was seen would give.
    rate: f64,
}

impl Planner {
    /// A planner for a run that starts now. Costs that are not finite or negative are taken as 0.
    pub fn new(costs: Costs, seed: u64) -> Self {
        let sane = |cost: f64| if cost.is_finite() { cost.max(0.0) } else { 0.0 };
        let costs = Costs {
            per_call_ns: sane(costs.per_call_ns),
            per_burst_ns: sane(costs.per_burst_ns),
            tail_ns: sane(costs.tail_ns),
            per_tail_call_ns: sane(costs.per_tail_call_ns),
        };
        let mut planner = Planner {
            costs,
            rng: Rng::new(seed),
            spent_ns: 0.0,
            observed_ns: 0.0,
            calls: 0.0,
            last: None,
            plan: Plan { start_ns: 0, length_ns: 0, calls: 0 },
        };
        planner.plan = planner.first();
        planner
    }

    /// The next burst. It stays the same until [`Planner::saw`] is called. A burst that begins later than planned
    /// keeps the law all the better; one that could not begin is told as one of no length.
    pub fn next_burst(&self) -> Plan {
        self.plan
    }

    /// A burst ended at `end_ns` (since the start of the run), lasted `length_ns` and saw `calls`.
    pub fn saw(&mut self, end_ns: u64, length_ns: u64, calls: u64) {
        let (length, calls) = (length_ns as f64, calls as f64);
        let rate = (calls + 1.0) / length.max(SHORTEST_NS / 1000.0);
        self.spent_ns += self.opening_ns(rate) + calls * self.costs.per_call_ns;
        self.observed_ns += length;
        self.calls += calls;
        self.last = Some(Last { end_ns: end_ns as f64, length_ns: length, rate });
        self.plan = self.following();
    }

    /// Cost of all bursts so far, by the given costs.
    pub fn spent_ns(&self) -> f64 {
        self.spent_ns
    }

    /// Cost of opening and closing once, in a program of this many calls per nanosecond.
    fn opening_ns(&self, rate: f64) -> f64 {
        self.costs.per_burst_ns + rate * self.costs.tail_ns * self.costs.per_tail_call_ns
    }

    /// The first burst, while nothing is known of the program: short, and cut where the advance is used up. It waits where opening alone costs more than the advance.
    fn first(&mut self) -> Plan {
        let earliest = ((self.costs.per_burst_ns - ADVANCE_NS / 2.0) / SHARE).max(FIRST_NS);
        let start = earliest * (1.0 + 0.2 * self.rng.unit());
        let left = SHARE * start + ADVANCE_NS - self.costs.per_burst_ns;
        let calls = (left / self.costs.per_call_ns.max(1.0)).clamp(1.0, MAX_CALLS);
        Plan { start_ns: start as u64, length_ns: FIRST_LENGTH_NS as u64, calls: calls as u64 }
    }

    fn following(&mut self) -> Plan {
        let Some(last) = self.last else { return self.first() };
        // The greater of the last and the mean rate: a program that was once busy may be so again.
        let rate = last.rate.max(self.calls / self.observed_ns.max(SHORTEST_NS));
        let longest = (last.length_ns.max(SHORTEST_NS) * GROWTH).min(LONGEST_NS);
        // A burst that is dear to open is made longer, until seeing calls costs half as much as opening.
        let opening = self.opening_ns(rate);
        let wanted = (opening / 2.0 / self.costs.per_call_ns.max(1.0)).clamp(WANTED_CALLS, MAX_WANTED_CALLS);
        let length = (wanted / rate).clamp(SHORTEST_NS, longest);
        let expected = rate * length;
        let calls = (SLACK * expected + WANTED_CALLS).min(MAX_CALLS);
        let cost = opening + expected.min(calls) * self.costs.per_call_ns;
        let affordable = (self.spent_ns + cost - ADVANCE_NS / 2.0) / SHARE;
        let earliest = affordable.max(last.end_ns + GAP_NS);
        // Jitter keeps bursts from falling into step with a program that works in rounds.
        let start = earliest + 0.5 * (earliest - last.end_ns) * self.rng.unit();
        Plan { start_ns: start.ceil() as u64, length_ns: length as u64, calls: calls.ceil() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs a program of this many calls a second for so long; returns bursts, observed time, cost and longest burst.
    fn run(calls_per_s: f64, wall_ns: u64, costs: Costs, seed: u64) -> (u32, u64, f64, u64) {
        let mut planner = Planner::new(costs, seed);
        let (mut bursts, mut observed, mut longest) = (0, 0, 0);
        loop {
            let plan = planner.next_burst();
            let calls = (calls_per_s * plan.length_ns as f64 / 1e9) as u64;
            // A burst that is full ends early.
            let part = if calls > plan.calls { plan.calls as f64 / calls as f64 } else { 1.0 };
            let length = (plan.length_ns as f64 * part) as u64;
            if plan.start_ns + length > wall_ns {
                return (bursts, observed, planner.spent_ns(), longest);
            }
            planner.saw(plan.start_ns + length, length, calls.min(plan.calls));
            (bursts, observed, longest) = (bursts + 1, observed + length, longest.max(length));
        }
    }

    #[test]
    fn ten_milliseconds_get_no_burst_and_a_tenth_of_a_second_gets_one() {
        assert_eq!(run(1e6, 10_000_000, Costs::default(), 1).0, 0);
        assert!(run(1e6, 100_000_000, Costs::default(), 1).0 >= 1);
    }

    #[test]
    fn slow_calls_get_long_bursts_and_are_seen() {
        let (_, observed, _, longest) = run(10.0, 10_000_000_000, Costs::default(), 3);
        assert_eq!(longest, 200_000_000);
        assert!(observed as f64 * 10.0 / 1e9 >= 10.0, "{observed} ns hold too few calls");
    }

    #[test]
    fn ten_million_calls_a_second_get_bursts_of_a_millisecond() {
        let (bursts, _, _, longest) = run(1e7, 60_000_000_000, Costs::default(), 3);
        assert!((2..20).contains(&bursts), "each costs 135 ms to open, 600 ms are allowed: {bursts}");
        assert!(longest <= 1_000_000, "{longest}");
    }

    #[test]
    fn same_seed_same_plan_and_another_seed_another() {
        let plan = |seed| Planner::new(Costs::default(), seed).next_burst();
        assert_eq!(plan(5), plan(5));
        assert_ne!(plan(5), plan(6));
    }

    #[test]
    fn longer_runs_get_more_bursts() {
        let bursts = |wall| run(1e5, wall, Costs::default(), 9).0;
        assert!(bursts(1_000_000_000) < bursts(10_000_000_000));
        assert!(bursts(10_000_000_000) < bursts(100_000_000_000));
    }

    proptest! {
        #[test]
        fn a_steady_program_never_pays_more_than_the_share_and_the_advance(
            rate in 0.0_f64..1e7, wall_ms in 1_u64..30_000, per_call in 0.0_f64..5e3, per_burst in 0.0_f64..2e7,
            tail in 0.0_f64..2e8, seed: u64,
        ) {
            let costs =
                Costs { per_call_ns: per_call, per_burst_ns: per_burst, tail_ns: tail, per_tail_call_ns: 150.0 };
            let (_, _, spent, _) = run(rate, wall_ms * 1_000_000, costs, seed);
            let allowed = SHARE * wall_ms as f64 * 1e6 + ADVANCE_NS;
            // What the first costs to open is not known before it. One call of rounding in each of the bursts, which
            // is more in the rate of a short one.
            let first = rate.max(1e3) * 1.01 / 1e9 * tail * 150.0;
            prop_assert!(spent <= allowed * 1.05 + first + per_call + 1.0, "{spent} > {allowed} + {first}");
        }

        #[test]
        fn any_answers_give_plans_that_move_on(
            answers in prop::collection::vec((0_u64..=u64::MAX / 4, 0_u64..=u64::MAX / 4, any::<u64>()), 0..50), seed: u64,
        ) {
            let mut planner = Planner::new(
                Costs { per_call_ns: f64::NAN, per_burst_ns: -1.0, tail_ns: f64::INFINITY, per_tail_call_ns: 1.0 },
                seed,
            );
            for (end, length, calls) in answers {
                planner.saw(end, length, calls);
                let plan = planner.next_burst();
                prop_assert!(plan.start_ns >= end.saturating_add(GAP_NS as u64 / 2));
                prop_assert!((1_000_000..=200_000_000).contains(&plan.length_ns));
                prop_assert!(plan.calls >= 1 && plan.calls <= MAX_CALLS as u64);
            }
        }
    }
}
