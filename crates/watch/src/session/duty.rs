//! When switches are recorded: always, unless the program switches so often that recording would cost too much; then in
//! windows at pseudo-random times. A pure function of time and counts.
//! Invariant: the first [`FIRST_NS`], or the first [`WINDOW_SWITCHES`] switches, are always recorded, and never less than
//! [`MIN`] of the time. A window ends early when it has seen enough, because the ring buffers hold no more.

use iowhy_core::rng::Rng;

/// Part of the time that recording may take.
const BUDGET: f64 = 0.02;

/// Least part of the time that is recorded, whatever it costs.
const MIN: f64 = 0.05;

/// Above this there is nothing to gain from windows.
const AS_GOOD_AS_ALWAYS: f64 = 0.9;

/// Recorded in every run that does not switch too fast: what a short program does is seen whole.
pub(super) const FIRST_NS: u64 = 100_000_000;

/// Length of a window: uniform between the two.
const WINDOW_NS: (u64, u64) = (50_000_000, 100_000_000);

/// A window is over once it holds this number of switches (about 8 ms of cost): shares of them are exact to two per cent, and
/// the ring buffers (300 bytes each, 4 MiB a CPU) hold them even where we come late.
const WINDOW_SWITCHES: u64 = 4_000;

/// But no window is planned shorter than this: switching recording on and off is work too.
const SHORTEST_NS: u64 = 5_000_000;

/// Assumed cost of a recorded switch (out and in, with its stack) where the self-test could not measure it.
const USUAL_COST_NS: f64 = 1800.0;

/// The schedule.
#[derive(Clone, Debug)]
pub(super) struct Duty {
    rng: Rng,
    cost_ns: f64,
    start_ns: u64,
    /// Present window, on or off.
    on: bool,
    since_ns: u64,
    until_ns: u64,
    /// Switches that had been recorded when the window began.
    count_at_start: u64,
    /// Recorded time of the windows that are over.
    on_ns: u64,
    /// Switches per nanosecond in the last window that was recorded.
    rate: f64,
}

impl Duty {
    /// Begins recording. `cost_ns` is the cost of one recorded switch.
    pub(super) fn new(now_ns: u64, cost_ns: Option<f64>, seed: u64) -> Duty {
        let cost_ns = cost_ns.filter(|c| c.is_finite() && *c > 0.0).unwrap_or(USUAL_COST_NS);
        Duty {
            rng: Rng::new(seed),
            cost_ns,
            start_ns: now_ns,
            on: true,
            since_ns: now_ns,
            until_ns: now_ns + FIRST_NS,
            count_at_start: 0,
            on_ns: 0,
            rate: 0.0,
        }
    }

    /// A recorded switch costs this, as is known meanwhile.
    pub(super) fn set_cost_ns(&mut self, cost_ns: f64) {
        self.cost_ns = cost_ns;
    }

    /// When [`Duty::turn`] wants to be asked again.
    pub(super) fn deadline_ns(&self) -> u64 {
        self.until_ns
    }

    /// Whether recording is to be switched, and to what, given the switches recorded so far. The caller does it and
    /// says [`Duty::turned`].
    pub(super) fn turn(&mut self, now_ns: u64, recorded: u64) -> Option<bool> {
        let count = recorded.saturating_sub(self.count_at_start);
        if now_ns < self.until_ns && !(self.on && count >= WINDOW_SWITCHES) {
            return None;
        }
        if !self.on {
            return Some(true);
        }
        let length_ns = now_ns.saturating_sub(self.since_ns).max(1) as f64;
        let count = count as f64;
        let share = count * self.cost_ns / length_ns;
        let wanted = if share > 0.0 { (BUDGET / share).clamp(MIN, 1.0) } else { 1.0 };
        if wanted > AS_GOOD_AS_ALWAYS {
            // Look again after another window's length; the window goes on.
            self.on_ns += now_ns - self.since_ns;
            self.since_ns = now_ns;
            self.count_at_start = recorded;
            self.until_ns = now_ns + self.window_ns();
            return None;
        }
        Some(false)
    }

    /// Recording was switched at `at_ns`.
    pub(super) fn turned(&mut self, at_ns: u64, on: bool, recorded: u64) {
        let length_ns = at_ns.saturating_sub(self.since_ns);
        if self.on {
            self.on_ns += length_ns;
            self.rate = recorded.saturating_sub(self.count_at_start) as f64 / length_ns.max(1) as f64;
        }
        self.since_ns = at_ns;
        self.count_at_start = recorded;
        self.until_ns = at_ns
            + if on {
                self.window_ns()
            } else {
                let wanted = (BUDGET / (self.rate * self.cost_ns).max(BUDGET)).clamp(MIN, 1.0);
                // The pause follows from the usual window, so that long and short windows weigh alike; but one that
                // was longer than planned is paid for.
                let usual_ns = self.at_most_enough((WINDOW_NS.0 + WINDOW_NS.1) / 2) as f64;
                let window_ns = if length_ns as f64 > 1.5 * usual_ns { length_ns as f64 } else { usual_ns };
                // And a pause is never longer than the longest that a slow program would get.
                let window_ns = window_ns.min(WINDOW_NS.1 as f64);
                let pause_ns = window_ns * (1.0 - wanted) / wanted;
                // Jitter keeps us from falling into step with the program. Downwards only where the least share
                // would be missed.
                let jitter = if wanted <= MIN { 0.5 + 0.5 * self.rng.unit() } else { 0.5 + self.rng.unit() };
                (pause_ns * jitter) as u64
            };
        self.on = on;
    }

    /// Part of the time that was recorded, from the start until now.
    pub(super) fn share(&self, now_ns: u64) -> f64 {
        let whole = now_ns.saturating_sub(self.start_ns);
        if whole == 0 {
            return 1.0;
        }
        let open = if self.on { now_ns.saturating_sub(self.since_ns) } else { 0 };
        ((self.on_ns + open) as f64 / whole as f64).min(1.0)
    }

    fn window_ns(&mut self) -> u64 {
        let drawn = WINDOW_NS.0 + ((WINDOW_NS.1 - WINDOW_NS.0) as f64 * self.rng.unit()) as u64;
        self.at_most_enough(drawn)
    }

    /// Cuts a window to the time in which enough switches come at the last rate.
    fn at_most_enough(&self, window_ns: u64) -> u64 {
        if self.rate <= 0.0 {
            return window_ns;
        }
        window_ns.min(((WINDOW_SWITCHES as f64 / self.rate) as u64).max(SHORTEST_NS))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs the schedule against a program of a constant rate. Returns the share of time recorded.
    fn play(rate_per_s: f64, length_ns: u64, seed: u64) -> (f64, bool) {
        let mut duty = Duty::new(1000, Some(2000.0), seed);
        let (mut on, mut recorded, mut now, mut first_whole) = (true, 0.0, 1000, true);
        while now < length_ns {
            let next = duty.deadline_ns().clamp(now + 1, now + 10_000_000);
            if on {
                recorded += rate_per_s * (next - now) as f64 / 1e9;
            }
            now = next;
            if let Some(to) = duty.turn(now, recorded as u64) {
                first_whole &= now >= 1000 + FIRST_NS || recorded >= WINDOW_SWITCHES as f64;
                duty.turned(now, to, recorded as u64);
                on = to;
            }
        }
        (duty.share(now), first_whole)
    }

    #[test]
    fn a_quiet_program_is_always_recorded() {
        assert_eq!(play(0.0, 5_000_000_000, 1), (1.0, true));
        assert_eq!(play(5000.0, 5_000_000_000, 1), (1.0, true));
    }

    #[test]
    fn a_busy_program_is_recorded_as_the_budget_allows() {
        // 40,000 switches of 2 us are 8 % of the time: a quarter of it is the budget of 2 %.
        let (share, _) = play(40_000.0, 200_000_000_000, 7);
        assert!((0.18..0.35).contains(&share), "{share}");
    }

    proptest! {
        #[test]
        fn never_too_little_and_the_start_is_whole(rate in 0.0..2e6f64, seed: u64, seconds in 1u64..60) {
            let (share, first_whole) = play(rate, seconds * 1_000_000_000, seed);
            prop_assert!(first_whole);
            prop_assert!((0.045..=1.0).contains(&share), "{share}");
        }
    }
}
