//! How many calls may be recorded: a number of calls per time, so that recording costs a program at most about a hundredth of
//! its time, on any machine on which recording a call takes less than a microsecond.
//! Programs that make fewer calls are recorded without a gap. In others, windows begin at moments that are drawn at random,
//! so that they do not fall into step with a program that works in rounds.

use iowhy_core::rng::Rng;

/// Calls for each second of the run.
const RATE: f64 = 10_000.0;
/// Calls at the start, and at most at once: fewer than the kernel's buffer holds.
const MAX_CREDIT: f64 = 8_000.0;
/// A window begins with so many calls to record.
const WINDOW: f64 = 1_000.0;
/// This part of the credit is kept for later windows: the start of an interpreter makes thousands of calls, and what comes after it
/// must have its share.
const RESERVE: f64 = 0.5;
/// After a window at least this part of the time of the run so far passes, up to the time of a window's credit.
const PAUSE: f64 = 0.25;

/// The calls that may still be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Credit {
    rng: Rng,
    calls: f64,
    since_ns: u64,
    start_ns: u64,
    /// Calls that this window may not use.
    reserve: f64,
}

impl Credit {
    /// Credit for a run that starts now.
    pub(crate) fn new(now_ns: u64, seed: u64) -> Credit {
        let reserve = RESERVE * MAX_CREDIT;
        Credit { rng: Rng::new(seed), calls: MAX_CREDIT, since_ns: now_ns, start_ns: now_ns, reserve }
    }

    /// Calls that may be recorded at this time.
    pub(crate) fn calls(&mut self, now_ns: u64) -> u32 {
        let passed = now_ns.saturating_sub(self.since_ns) as f64 / 1e9;
        self.since_ns = self.since_ns.max(now_ns);
        self.calls = (self.calls + passed * RATE).min(MAX_CREDIT);
        (self.calls - self.reserve).max(0.0) as u32
    }

    /// So many calls were recorded.
    pub(crate) fn spend(&mut self, calls: u64) {
        self.calls -= calls as f64;
    }

    /// When the next window begins: as soon as there is credit for it, after a pause, and up to once more that time later.
    pub(crate) fn next_window_ns(&mut self, now_ns: u64) -> u64 {
        let _ = self.calls(now_ns);
        let missing = (WINDOW - self.calls).max(0.0);
        self.reserve = RESERVE * self.calls.max(WINDOW);
        let so_far_s = now_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        let pause_s = (PAUSE * so_far_s).min(WINDOW / RATE);
        let wait_s = (missing / RATE).max(pause_s) * (1.0 + self.rng.unit());
        now_ns.saturating_add((wait_s * 1e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program of this many calls a second, looked at every 10 ms; returns recorded calls and windows.
    fn run(rate: f64, seconds: f64, seed: u64) -> (u64, u32) {
        const LOOK_NS: u64 = 10_000_000;
        let mut credit = Credit::new(0, seed);
        let (mut recorded, mut windows, mut next_ns, mut granted) = (0, 1, 0, credit.calls(0));
        for now in (LOOK_NS..(seconds * 1e9) as u64).step_by(LOOK_NS as usize) {
            if granted == 0 {
                if now >= next_ns {
                    (granted, windows) = (credit.calls(now), windows + 1);
                }
                continue;
            }
            let made = (rate * LOOK_NS as f64 / 1e9) as u64;
            let seen = made.min(u64::from(granted));
            credit.spend(seen);
            recorded += seen;
            let had = granted;
            granted = credit.calls(now);
            if seen == u64::from(had) || granted == 0 {
                granted = 0;
                next_ns = credit.next_window_ns(now);
            }
        }
        (recorded, windows)
    }

    #[test]
    fn programs_of_few_calls_are_recorded_without_a_gap() {
        assert_eq!(run(5_000.0, 10.0, 1), (5 * 9_990, 1));
    }

    #[test]
    fn no_program_pays_for_more_than_the_rate_and_the_start() {
        for rate in [2e4, 1e5, 1e6, 1e7] {
            for seed in 0..20 {
                let (recorded, windows) = run(rate, 10.0, seed);
                assert!(recorded as f64 <= RATE * 10.0 + MAX_CREDIT, "{rate} {seed}: {recorded}");
                assert!(windows >= 10 && recorded >= 30_000, "{rate} {seed}: {windows} {recorded}");
            }
        }
    }

    #[test]
    fn windows_begin_at_random_times() {
        let begin = |seed| {
            let mut credit = Credit::new(0, seed);
            credit.spend(MAX_CREDIT as u64);
            credit.next_window_ns(0)
        };
        let times: Vec<u64> = (0..50).map(begin).collect();
        let (low, high) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert!(*low >= 100_000_000 && *high <= 200_000_000 && high - low > 50_000_000, "{low} {high}");
    }
}
