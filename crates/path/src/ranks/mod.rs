//! Ranks that measured the same cell together: their throughput as one, each rank's part, slow ranks, and growth with their number.
//!
//! Non-goal: clocks. Times come in by one clock, with the error that is known of it. Invariant: a round counts only where all of
//! its ranks have a slice in it.

pub mod scale;

use std::collections::BTreeMap;

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats::{bootstrap_median, median};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A slice of one rank in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankSlice {
    /// Which rank.
    pub rank: u64,
    /// Which round.
    pub round: u32,
    /// Its start, from the earliest start of the run, by the common clock.
    pub start_ns: i64,
    /// From its start to the end of its last thread.
    pub wall_ns: u64,
    /// From its start to the end of its first thread.
    pub first_done_ns: u64,
    /// Requests completed.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Time of its threads, summed.
    pub thread_ns: u64,
    /// Of which on a CPU.
    pub cpu_ns: u64,
    /// Of which waiting for a CPU.
    pub run_delay_ns: u64,
}

impl RankSlice {
    fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add_unsigned(self.wall_ns)
    }

    /// Bytes a second by its own clock.
    fn rate(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.wall_ns.max(1) as f64
    }
}

/// What a number of ranks reached together in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StepOfRanks")]
pub struct Step {
    /// Ranks side by side: those with the lowest numbers.
    pub ranks: u64,
    /// Bytes of all ranks a second, from the first start to the last end of a round: median over rounds.
    pub throughput: Option<Estimate>,
    /// Requests of all ranks a second, likewise.
    pub requests_per_second: Option<Estimate>,
    /// From the first start to the first end of a thread of any rank.
    pub first_done: Option<Estimate>,
    /// From the first start to the last end of a thread of any rank.
    pub last_done: Option<Estimate>,
    /// Between the first start and the last, greatest of all rounds.
    pub started_within_ns: u64,
    /// Share of the threads' time on a CPU.
    pub cpu: Option<Estimate>,
    /// Share waiting for a CPU.
    pub run_delay: Option<Estimate>,
    /// Share waiting for anything else: the device, the server, another rank.
    pub waits: Option<Estimate>,
    /// Each rank, by number.
    pub of_ranks: Vec<OfRank>,
    /// Ranks that are slower than chance among equal ranks explains, slowest first.
    pub slow: Vec<SlowRank>,
    /// The slices, round by round.
    pub samples: Vec<RankSlice>,
}

/// A rank beside the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RankInStep")]
pub struct OfRank {
    /// Which.
    pub rank: u64,
    /// Its bytes a second: median over rounds.
    pub throughput: Option<Estimate>,
    /// Its rate over the median of the other ranks' in the same round; `null` for one rank.
    pub of_others: Option<Estimate>,
    /// Rounds in which it was the slowest.
    pub rounds_slowest: u64,
    /// Share of its threads' time on a CPU.
    pub cpu: Option<Estimate>,
    /// Share waiting for anything but a CPU.
    pub waits: Option<Estimate>,
}

/// A rank that is slower than the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SlowRankInStep")]
pub struct SlowRank {
    /// Which.
    pub rank: u64,
    /// Its rate over the median of the others'.
    pub of_others: Estimate,
    /// Rounds in which it was the slowest.
    pub rounds_slowest: u64,
    /// Probability that any of equal ranks is the slowest in as many rounds.
    pub chance: f64,
}

/// Probability of naming a rank where all are equal.
pub const LEVEL: f64 = 0.05;
/// Smallest loss of rate that makes a rank slow.
pub const MIN_LOSS: f64 = 0.05;

impl Step {
    /// Sums the slices of `ranks` ranks. Rounds without all of them are left out.
    pub fn new(ranks: u64, slices: impl IntoIterator<Item = RankSlice>, seed: u64) -> Step {
        let mut rounds: BTreeMap<u32, Vec<RankSlice>> = BTreeMap::new();
        for slice in slices {
            rounds.entry(slice.round).or_default().push(slice);
        }
        rounds.retain(|_, slices| slices.len() as u64 == ranks);
        let mut rounds: Vec<Vec<RankSlice>> = rounds.into_values().collect();
        rounds.iter_mut().for_each(|round| round.sort_by_key(|slice| slice.rank));
        let of = |unit: Unit, value: &dyn Fn(&[RankSlice]) -> f64| {
            let values: Vec<f64> = rounds.iter().map(|round| value(round)).collect();
            bootstrap_median(&values, seed, unit)
        };
        let of_ranks = (0..ranks as usize).map(|index| of_rank(&rounds, index, seed)).collect::<Vec<_>>();
        Step {
            ranks,
            throughput: of(Unit::BytesPerSecond, &throughput),
            requests_per_second: of(Unit::PerSecond, &|round| {
                round.iter().map(|slice| slice.requests).sum::<u64>() as f64 * 1e9 / span_ns(round)
            }),
            first_done: of(Unit::Nanoseconds, &|round| first_done_ns(round)),
            last_done: of(Unit::Nanoseconds, &|round| span_ns(round)),
            started_within_ns: rounds.iter().map(|round| started_within_ns(round)).max().unwrap_or(0),
            cpu: of(Unit::Ratio, &|round| share(round, |slice| slice.cpu_ns)),
            run_delay: of(Unit::Ratio, &|round| share(round, |slice| slice.run_delay_ns)),
            waits: of(Unit::Ratio, &waits),
            slow: slow(&of_ranks, rounds.len() as u64),
            of_ranks,
            samples: rounds.concat(),
        }
    }

    /// Throughput of each round, by its number.
    fn by_round(&self) -> BTreeMap<u32, f64> {
        self.samples
            .chunk_by(|a, b| a.round == b.round)
            .map(|round| (round[0].round, throughput(round)))
            .collect()
    }
}

fn started_within_ns(round: &[RankSlice]) -> u64 {
    let starts = || round.iter().map(|slice| slice.start_ns);
    starts().max().unwrap_or(0).abs_diff(starts().min().unwrap_or(0))
}

/// From the first start to the last end.
fn span_ns(round: &[RankSlice]) -> f64 {
    let first = round.iter().map(|slice| slice.start_ns).min().unwrap_or(0);
    let last = round.iter().map(RankSlice::end_ns).max().unwrap_or(0);
    last.saturating_sub(first).max(1) as f64
}

fn first_done_ns(round: &[RankSlice]) -> f64 {
    let first = round.iter().map(|slice| slice.start_ns).min().unwrap_or(0);
    let done = round.iter().map(|slice| slice.start_ns.saturating_add_unsigned(slice.first_done_ns)).min();
    done.unwrap_or(0).saturating_sub(first) as f64
}

fn throughput(round: &[RankSlice]) -> f64 {
    round.iter().map(|slice| slice.bytes).sum::<u64>() as f64 * 1e9 / span_ns(round)
}

/// A part of the threads' time. Clocks of the CPU and of the wall differ by a little.
fn share(round: &[RankSlice], part: impl Fn(&RankSlice) -> u64) -> f64 {
    let whole: u64 = round.iter().map(|slice| slice.thread_ns).sum();
    (round.iter().map(part).sum::<u64>() as f64 / whole.max(1) as f64).min(1.0)
}

/// The part that is neither on a CPU nor waiting for one.
fn waits(round: &[RankSlice]) -> f64 {
    1.0 - share(round, |slice| slice.cpu_ns + slice.run_delay_ns)
}

fn of_rank(rounds: &[Vec<RankSlice>], index: usize, seed: u64) -> OfRank {
    let values = |unit, value: &dyn Fn(&RankSlice) -> f64| {
        let values: Vec<f64> = rounds.iter().map(|round| value(&round[index])).collect();
        bootstrap_median(&values, seed, unit)
    };
    let others = |round: &[RankSlice]| {
        let others = round.iter().enumerate().filter(|(other, _)| *other != index);
        median(&others.map(|(_, slice)| slice.rate()).collect::<Vec<f64>>())
    };
    let ratios: Vec<f64> =
        rounds.iter().filter_map(|round| Some(round[index].rate() / others(round)?)).collect();
    let is_slowest = |round: &&Vec<RankSlice>| {
        let least = round.iter().map(RankSlice::rate).fold(f64::INFINITY, f64::min);
        // Where several are equal, none is.
        round[index].rate() == least && round.iter().filter(|slice| slice.rate() == least).count() == 1
    };
    OfRank {
        rank: rounds.first().map_or(index as u64, |round| round[index].rank),
        throughput: values(Unit::BytesPerSecond, &RankSlice::rate),
        of_others: bootstrap_median(&ratios, seed, Unit::Ratio),
        rounds_slowest: rounds.iter().filter(is_slowest).count() as u64,
        cpu: values(Unit::Ratio, &|slice| share(&[*slice], |slice| slice.cpu_ns)),
        waits: values(Unit::Ratio, &|slice| waits(&[*slice])),
    }
}

/// Ranks that are the slowest in more rounds than chance gives. Of equal ranks each is the slowest of a round with the probability
/// 1 / n, whatever the law of their times; the binomial tail is multiplied by n, as there are n of them to be named.
fn slow(ranks: &[OfRank], rounds: u64) -> Vec<SlowRank> {
    let n = ranks.len() as u64;
    let named = |rank: &OfRank| {
        let of_others = rank.of_others.filter(|ratio| ratio.high < 1.0 - MIN_LOSS)?;
        let chance = (n as f64 * tail(rank.rounds_slowest, rounds, 1.0 / n as f64)).min(1.0);
        let (rank, rounds_slowest) = (rank.rank, rank.rounds_slowest);
        (chance <= LEVEL).then_some(SlowRank { rank, of_others, rounds_slowest, chance })
    };
    let mut slow: Vec<SlowRank> = ranks.iter().filter_map(named).collect();
    slow.sort_by(|a, b| a.of_others.value.total_cmp(&b.of_others.value));
    slow
}

/// The probability of `least` or more successes in `n` trials.
fn tail(least: u64, n: u64, p: f64) -> f64 {
    if p >= 1.0 {
        return 1.0;
    }
    let mut term = (1.0 - p).powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for k in 0..least.min(n + 1) {
        below += term;
        term *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
    }
    (1.0 - below).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests;
