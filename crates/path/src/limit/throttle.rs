//! The throttle rule: a configured or metered limit caps the rate, not the device.
//!
//! Evidence: the thread mostly waits, the rate is constant at a round number (as one random rate in ten), and a third sign:
//! a burst came first (token bucket), or the block layer's request times cover less than half of the waiting (requests were
//! held above the device), or the environment names a throttle.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::{stats, units};

use super::fact::Fact;
use super::rules::{MOSTLY, Near, Ruling, Side, missing, side, wait_share};
use crate::per_request::{
    bytes_per_second, device_request_ns, estimate, requests_per_second, rounds, wait_ns,
};
use iowhy_core::units::percent;

/// Rounds needed to see a plateau.
const MIN_ROUNDS: usize = 4;
/// The plateau's rounds lie within this share of their median.
const STEADY: f64 = 0.03;
/// A first round this much above the plateau is a burst.
const BURST: f64 = 1.5;
/// A rate within this share of a round number is one.
const ROUND: f64 = 0.01;
/// Below this share of the waiting the device's request times do not explain it.
const COVERED: f64 = 0.5;
/// Leading digits that people set limits to.
const LEADING: [f64; 12] = [1.0, 1.2, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0];

/// Looks at each cell in turn; the first on which the claim holds decides, else the strongest of the others.
pub(super) fn throttle(cells: &[Option<&CellRun>], configured: Option<&str>) -> Ruling {
    let mut kept: Option<Ruling> = None;
    for cell in cells.iter().flatten() {
        match one(cell, configured) {
            found @ Ruling::Holds(_) => return found,
            found @ Ruling::Near(_) => kept = Some(found),
            found => {
                kept.get_or_insert(found);
            }
        }
    }
    kept.unwrap_or_else(|| missing("reads from the device, at least 4 rounds"))
}

fn one(run: &CellRun, configured: Option<&str>) -> Ruling {
    let Some(wait) = wait_share(run) else { return missing("at least 3 rounds of the cell itself") };
    if side(&wait, MOSTLY) == Side::Below {
        let words = format!("only {} of the time is waiting", units::share(&wait));
        return Ruling::Fails(Fact::new(words, &[&wait]));
    }
    let Some(plateau) = Plateau::of(run) else {
        return match configured {
            Some(words) => Ruling::Near(not_sure(Fact::new(
                format!("a throttle is set ({words}), but the rate shows no plateau in 4 rounds"),
                &[],
            ))),
            None => Ruling::Fails(Fact::new("the rate shows no plateau over 4 rounds", &[])),
        };
    };
    let held_above = uncovered(run);
    let mut signs = Vec::new();
    signs.extend(plateau.burst.map(|burst| {
        Fact::new(format!("a burst of {} times the later rate came first", units::factor(&burst)), &[&burst])
    }));
    signs.extend(held_above.map(|share| {
        let words =
            format!("the block layer's request times cover only {} of the waiting", units::share(&share));
        Fact::new(words, &[&share])
    }));
    signs.extend(configured.map(|words| Fact::new(format!("a throttle is set: {words}"), &[])));
    let steady = plateau.fact();
    match (&plateau.round, signs.is_empty()) {
        (Some(round), false) => {
            signs.insert(0, steady.followed_by(&format!(", within {} of {round}", percent(ROUND))));
            Ruling::Holds(signs)
        }
        (None, false) if configured.is_some() && held_above.is_some() => {
            signs.insert(0, steady);
            Ruling::Holds(signs)
        }
        (None, false) => Ruling::Near(not_sure(
            signs.into_iter().fold(steady.followed_by(", which is no round number"), Fact::beside),
        )),
        (Some(_), true) => {
            Ruling::Fails(steady.followed_by(", a round number, but nothing beside it says throttle"))
        }
        (None, true) => Ruling::Fails(steady),
    }
}

/// Signs of a throttle that are too few.
fn not_sure(fact: Fact) -> Near {
    let needs = "too few signs: compare it with the limits set for the device".to_owned();
    Near { fact, needs, open: false }
}

/// The later half of the rounds, and as many as an interval needs, when it holds still.
struct Plateau {
    requests_per_second: Estimate,
    bytes_per_second: Estimate,
    /// The first round's rate over the later one, when it is a burst. The interval is the plateau's: of first rounds
    /// there is only one.
    burst: Option<Estimate>,
    /// The round number it lies on, in words.
    round: Option<String>,
}

impl Plateau {
    fn of(run: &CellRun) -> Option<Plateau> {
        let mut samples: Vec<&Sample> = rounds(run).collect();
        samples.sort_by_key(|s| (s.start_ns, s.round));
        if samples.len() < MIN_ROUNDS {
            return None;
        }
        let late = &samples[(samples.len() / 2).min(samples.len() - stats::MIN_SAMPLES)..];
        let level = |unit, rate: fn(&Sample) -> f64| {
            stats::bootstrap_median(
                &late.iter().map(|s| rate(s)).collect::<Vec<f64>>(),
                run.workload.seed,
                unit,
            )
        };
        let requests = level(Unit::PerSecond, requests_per_second)?;
        let bytes = level(Unit::BytesPerSecond, bytes_per_second)?;
        let steady = |s: &&Sample| (requests_per_second(s) / requests.value - 1.0).abs() <= STEADY;
        if requests.value <= 0.0 || !late.iter().all(steady) {
            return None;
        }
        let burst = requests.reciprocal(requests_per_second(samples[0]), Unit::Ratio);
        Some(Plateau {
            requests_per_second: requests,
            bytes_per_second: bytes,
            burst: Some(burst).filter(|burst| burst.value >= BURST),
            round: round_words(requests.value, bytes.value),
        })
    }

    fn fact(&self) -> Fact {
        let (requests, bytes) = (&self.requests_per_second, &self.bytes_per_second);
        let words = format!("requests hold at {} ({})", units::estimate(requests), units::estimate(bytes));
        Fact::new(words, &[requests, bytes])
    }
}

/// The round number that either rate lies on. Requests count from 100 a second, bytes from 1 MB/s.
fn round_words(requests_per_second: f64, bytes_per_second: f64) -> Option<String> {
    let near = |rate: f64, least: f64| {
        let power = 10f64.powf((rate * (1.0 + ROUND)).log10().floor());
        let lead = LEADING.iter().chain(&[10.0]).find(|&&l| (rate / (l * power) - 1.0).abs() <= ROUND)?;
        (rate >= least * (1.0 - ROUND)).then_some(lead * power)
    };
    let mib = bytes_per_second / 1_048_576.0;
    let binary = || {
        let nearest = mib.max(1.0).log2().round().exp2();
        (mib >= 1.0 - ROUND && (mib / nearest - 1.0).abs() <= ROUND).then_some(nearest)
    };
    near(requests_per_second, 100.0)
        .map(|r| format!("{r:.0} requests/s"))
        .or_else(|| near(bytes_per_second, 1e6).map(|b| format!("{:.0} MB/s", b / 1e6)))
        .or_else(|| near(mib, 1.0).or_else(binary).map(|m| format!("{m:.0} MiB/s")))
}

/// How much of the waiting the block layer's request times cover, when that is too little; `None` when they cover
/// it, the counters are missing, or several requests overlap so that times and waiting cannot be compared.
fn uncovered(run: &CellRun) -> Option<Estimate> {
    if run.workload.depth > 1
        || run.workload.threads > 1
        || rounds(run).any(|s| s.device_request_ns.is_none())
    {
        return None;
    }
    let share = estimate(run, Unit::Ratio, |s| device_request_ns(s).unwrap_or(0.0) / wait_ns(s).max(1.0))?;
    (share.value < COVERED).then_some(share)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::limit::fact;
    use crate::synthetic::Rounds;
    use iowhy_core::workload::{CacheState, Method, Workload};

    /// Direct reads of 4 KiB at this rate, the first `burst` of 12 rounds four times as fast.
    pub(in crate::limit) fn bucket(requests_per_second: f64, burst: usize) -> CellRun {
        let w = Workload::reads(Method::Direct, CacheState::Direct, 4096, 1 << 30);
        let ns = 1e9 / requests_per_second;
        let mut run = Rounds::new(w).rounds(12).busy(3000.0).wait(ns - 3000.0).noise(0.004).build();
        for s in run.samples.iter_mut().take(burst) {
            s.wall_ns /= 4;
            s.thread_ns /= 4;
        }
        run
    }

    #[test]
    fn a_burst_and_then_a_round_plateau_is_a_token_bucket() {
        let run = bucket(3000.0, 4);
        let Ruling::Holds(evidence) = throttle(&[Some(&run)], None) else {
            panic!("{:?}", throttle(&[Some(&run)], None))
        };
        let evidence = fact::lines(evidence);
        let interval = evidence[0].contains(" ±") || evidence[0].contains(" [");
        assert!(evidence[0].contains("of 3000 requests/s") && interval, "{evidence:?}");
        assert!(evidence.iter().any(|line| line.contains("a burst of")), "{evidence:?}");
    }

    #[test]
    fn one_sign_alone_does_not_decide() {
        assert!(
            matches!(throttle(&[Some(&bucket(3000.0, 0))], None), Ruling::Fails(_)),
            "round, but no burst"
        );
        assert!(
            matches!(throttle(&[Some(&bucket(3371.0, 4))], None), Ruling::Near(_)),
            "burst, but not round"
        );
        assert!(matches!(throttle(&[Some(&bucket(3371.0, 0))], None), Ruling::Fails(_)));
        assert!(matches!(throttle(&[], None), Ruling::Missing(_)));
        let words = Some("io.max rbps=1048576");
        assert!(
            matches!(throttle(&[Some(&bucket(3371.0, 0))], words), Ruling::Near(_)),
            "set, but it does not bite"
        );
        assert!(matches!(throttle(&[Some(&bucket(3000.0, 0))], words), Ruling::Holds(_)));
    }

    #[test]
    fn requests_held_above_the_device_and_a_round_rate() {
        let w = Workload::reads(Method::Direct, CacheState::Direct, 4096, 1 << 30);
        let cell = |request_ns| {
            Rounds::new(w.clone())
                .rounds(8)
                .busy(3000.0)
                .wait(997_000.0)
                .device(1.0, 4096.0, request_ns)
                .build()
        };
        assert!(matches!(throttle(&[Some(&cell(60_000.0))], None), Ruling::Holds(_)));
        assert!(matches!(throttle(&[Some(&cell(950_000.0))], None), Ruling::Fails(_)), "a slow device");
    }

    #[test]
    fn busy_cells_and_wandering_rates_are_not_throttled() {
        let w = Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 30);
        let busy = Rounds::new(w).rounds(12).busy(1000.0).build();
        assert!(matches!(throttle(&[Some(&busy)], Some("io.max")), Ruling::Fails(_)));
        let mut wandering = bucket(3000.0, 0);
        for (i, s) in wandering.samples.iter_mut().enumerate() {
            s.wall_ns += s.wall_ns * (i as u64 % 3) / 5;
        }
        assert!(matches!(throttle(&[Some(&wandering)], None), Ruling::Fails(_)));
    }

    #[test]
    fn round_numbers_are_those_that_people_set() {
        assert_eq!(round_words(3010.0, 1.0).as_deref(), Some("3000 requests/s"));
        assert_eq!(round_words(9990.0, 1.0).as_deref(), Some("10000 requests/s"));
        assert_eq!(round_words(119.2, 125e6).as_deref(), Some("120 requests/s"));
        assert_eq!(round_words(111.0, 125e6).as_deref(), Some("125 MB/s"));
        assert_eq!(round_words(111.0, 64.0 * 1_048_576.0).as_deref(), Some("64 MiB/s"));
        assert_eq!(round_words(3371.0, 3371.0 * 4096.0), None);
        assert_eq!(round_words(0.0, 0.0), None);
    }
}
