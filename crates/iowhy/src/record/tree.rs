//! The record of `tree`: a phase with its rates, its times and every call's latency, each with the rounds behind it.

use crate::record::Kind;
use iowhy_core::environment::Environment;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::histogram::Histogram;
use iowhy_core::stats;
use iowhy_core::warning::Warning;
use iowhy_probe::tree::{Operation, Pass, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One run of `iowhy tree`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TreeRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// This machine.
    pub environment: Environment,
    /// The files.
    pub tree: TreeFacts,
    /// Threads side by side.
    pub readers: u64,
    /// Files in each reader's list, where they are fewer than all.
    pub files_each: Option<u64>,
    /// `directory`, `inode` or `random`.
    pub order: String,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// Rounds measured.
    pub rounds: u64,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
    /// Seed of lists and intervals.
    pub seed: u64,
    /// The phases, in the order of a file's life.
    pub phases: Vec<PhaseRecord>,
    /// Making the files and bringing them to the device together, where both were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<SettledRecord>,
}

/// Making files, and the sync after it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SettledRecord {
    /// Files a second until all are on the device.
    pub files_per_second: Estimate,
    /// The sync's share of that time.
    pub sync_share: Estimate,
}

/// What the files are.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TreeFacts {
    /// Where.
    pub path: String,
    /// `made` for this run and removed, `kept`, or `found`.
    pub origin: String,
    /// Files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Size of the smallest, the middle and the largest file.
    pub size_bytes: Vec<u64>,
    /// Files that a kept tree lacked.
    pub made_now: u64,
    /// Links, devices, pipes and sockets that were passed over.
    pub not_regular: u64,
    /// Files and directories that may not be looked at.
    pub forbidden: u64,
    /// Directories where another file system is mounted.
    pub other_file_system: u64,
    /// Whether there are more files than were asked for.
    pub cut: bool,
}

/// One phase over all rounds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// `create`, `sync`, `stat`, `list`, `read`, `rename` or `delete`.
    pub phase: String,
    /// State of the data before it, where that matters: `cold` or `warm`.
    pub state: Option<String>,
    /// Whether that state was seen before every round; `None` where it does not matter or cannot be seen.
    pub state_verified: Option<bool>,
    /// Files of a round; entries of a listing.
    pub files: u64,
    /// Bytes of a round.
    pub bytes: u64,
    /// Files a second of all threads together, until the last is done.
    pub files_per_second: Option<Estimate>,
    /// Bytes a second, likewise; only where bytes are moved.
    pub throughput: Option<Estimate>,
    /// From the common start to the end of the first thread.
    pub first_done: Option<Estimate>,
    /// From the common start to the end of the last thread.
    pub last_done: Option<Estimate>,
    /// The calls.
    pub operations: Vec<OperationRecord>,
    /// One call of each kind, one after the other: median over rounds of the sum of their means.
    pub calls_together: Option<Estimate>,
    /// The rounds.
    pub samples: Vec<PhaseSample>,
}

/// One kind of call over all rounds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TreeOperation")]
pub struct OperationRecord {
    /// Its name.
    pub id: String,
    /// Mean time of a call: median over rounds, with its interval.
    pub mean: Option<Estimate>,
    /// Its share of one call of each kind of the phase.
    pub share: Option<Estimate>,
    /// Half of a round's calls take no longer: median over rounds, with its interval.
    pub p50: Option<Estimate>,
    /// 99 of 100 of a round's calls take no longer, likewise; `None` where a round has fewer than 100.
    pub p99: Option<Estimate>,
    /// Calls in all.
    pub n: u64,
    /// Half of all calls take no longer.
    pub p50_ns: u64,
    /// 99 of 100 take no longer; `None` below 100 calls.
    pub p99_ns: Option<u64>,
    /// The slowest.
    pub max_ns: u64,
}

/// One round of a phase.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSample {
    /// Files done.
    pub files: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// To the end of the first thread.
    pub first_done_ns: u64,
    /// To the end of the last thread.
    pub last_done_ns: u64,
    /// Share of the pages that were in the cache before.
    pub resident_before: Option<f64>,
    /// What the device read meanwhile, whoever asked.
    pub device_read_bytes: Option<u64>,
    /// What it wrote meanwhile.
    pub device_write_bytes: Option<u64>,
}

/// A pass and what was seen beside it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What it came to.
    pub pass: Pass,
    /// Share of the pages that were in the cache before.
    pub resident_before: Option<f64>,
    /// Bytes that the device read and wrote meanwhile.
    pub device_bytes: Option<(u64, u64)>,
}

impl PhaseRecord {
    /// Sums the rounds of a phase. `wanted` is the share of pages that should be in the cache before, and how far from it
    /// counts as met, where the phase reads data.
    pub fn new(
        phase: Phase,
        state: Option<(&str, f64)>,
        tolerance: f64,
        rounds: &[Seen],
        seed: u64,
    ) -> PhaseRecord {
        let of = |value: &dyn Fn(&Pass) -> f64, unit: Unit| {
            let values: Vec<f64> = rounds.iter().map(|seen| value(&seen.pass)).collect();
            stats::bootstrap_median(&values, seed, unit).filter(|e| e.value > 0.0)
        };
        let seconds = |pass: &Pass| pass.last_done_ns.max(1) as f64 / 1e9;
        let verified = state.and_then(|(_, wanted)| {
            let shares: Option<Vec<f64>> = rounds.iter().map(|seen| seen.resident_before).collect();
            Some(shares?.iter().all(|share| (share - wanted).abs() <= tolerance))
        });
        let last = rounds.last().map(|seen| &seen.pass);
        PhaseRecord {
            phase: phase.id().to_owned(),
            state: state.map(|(name, _)| name.to_owned()),
            state_verified: verified,
            files: last.map_or(0, |pass| pass.files),
            bytes: last.map_or(0, |pass| pass.bytes),
            files_per_second: of(&|pass| pass.files as f64 / seconds(pass), Unit::PerSecond),
            throughput: of(&|pass| pass.bytes as f64 / seconds(pass), Unit::BytesPerSecond),
            first_done: of(&|pass| pass.first_done_ns as f64, Unit::Nanoseconds),
            last_done: of(&|pass| pass.last_done_ns as f64, Unit::Nanoseconds),
            operations: phase.operations().iter().map(|id| OperationRecord::new(*id, rounds, seed)).collect(),
            calls_together: of(&means_together, Unit::Nanoseconds),
            samples: rounds.iter().map(PhaseSample::new).collect(),
        }
    }
}

/// One call of each kind, by their means in a round.
fn means_together(pass: &Pass) -> f64 {
    pass.operations.iter().filter(|(_, times)| !times.is_empty()).map(|(_, times)| times.mean_ns()).sum()
}

/// Calls of a round without which its 99th percentile is no more than its slowest.
const CALLS_FOR_P99: u64 = 100;

impl OperationRecord {
    fn new(id: Operation, rounds: &[Seen], seed: u64) -> OperationRecord {
        let mut all = Histogram::new();
        let (mut means, mut shares, mut halves, mut tails) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for seen in rounds {
            let together = means_together(&seen.pass);
            for (_, times) in seen.pass.operations.iter().filter(|(other, _)| *other == id) {
                all.merge(times);
                if times.is_empty() {
                    continue;
                }
                means.push(times.mean_ns());
                shares.push(times.mean_ns() / together);
                halves.push(times.quantile(0.5) as f64);
                if times.count() >= CALLS_FOR_P99 {
                    tails.push(times.quantile(0.99) as f64);
                }
            }
        }
        let median = |values: &[f64], unit| stats::bootstrap_median(values, seed, unit);
        OperationRecord {
            id: id.id().to_owned(),
            mean: median(&means, Unit::Nanoseconds),
            share: median(&shares, Unit::Ratio),
            p50: median(&halves, Unit::Nanoseconds),
            p99: median(&tails, Unit::Nanoseconds),
            n: all.count(),
            p50_ns: all.quantile(0.5),
            p99_ns: (all.count() >= CALLS_FOR_P99).then(|| all.quantile(0.99)),
            max_ns: all.max_ns(),
        }
    }
}

impl SettledRecord {
    /// From the rounds of making and those of the sync after it; `None` with too few of them.
    pub fn new(create: &[Seen], sync: &[Seen], seed: u64) -> Option<SettledRecord> {
        let times = create.iter().zip(sync).map(|(create, sync)| {
            let (make, settle) = (create.pass.last_done_ns as f64, sync.pass.last_done_ns as f64);
            (create.pass.files as f64 * 1e9 / (make + settle), settle / (make + settle))
        });
        let (rates, shares): (Vec<f64>, Vec<f64>) = times.unzip();
        Some(SettledRecord {
            files_per_second: stats::bootstrap_median(&rates, seed, Unit::PerSecond)?,
            sync_share: stats::bootstrap_median(&shares, seed, Unit::Ratio)?,
        })
    }
}

impl PhaseSample {
    fn new(seen: &Seen) -> PhaseSample {
        PhaseSample {
            files: seen.pass.files,
            bytes: seen.pass.bytes,
            first_done_ns: seen.pass.first_done_ns,
            last_done_ns: seen.pass.last_done_ns,
            resident_before: seen.resident_before,
            device_read_bytes: seen.device_bytes.map(|(read, _)| read),
            device_write_bytes: seen.device_bytes.map(|(_, written)| written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(last_done_ns: u64, resident: f64) -> Seen {
        let mut times = Histogram::new();
        times.record_many(1000, 200);
        let pass = Pass {
            phase: Phase::Stat,
            files: 200,
            bytes: 0,
            first_done_ns: last_done_ns / 2,
            last_done_ns,
            operations: vec![(Operation::Stat, times)],
            interrupted: false,
        };
        Seen { pass, resident_before: Some(resident), device_bytes: Some((7, 0)) }
    }

    #[test]
    fn rates_are_until_the_last_thread_and_medians_over_rounds() {
        let rounds = [seen(1_000_000_000, 0.0), seen(2_000_000_000, 0.0), seen(4_000_000_000, 0.0)];
        let phase = PhaseRecord::new(Phase::Stat, Some(("cold", 0.0)), 0.01, &rounds, 1);
        assert_eq!(phase.files_per_second.unwrap().value, 100.0);
        assert_eq!((phase.last_done.unwrap().value, phase.first_done.unwrap().value), (2e9, 1e9));
        assert_eq!((phase.throughput, phase.state_verified), (None, Some(true)));
        let call = &phase.operations[0];
        assert_eq!((call.n, call.max_ns, call.mean.unwrap().value), (600, 1000, 1000.0));
        assert!(call.p99_ns.is_some());
        // Every round has 200 calls that all took the same.
        for (of, value) in [(&call.p50, 1000.0), (&call.p99, 1000.0), (&call.share, 1.0)] {
            let estimate = of.unwrap();
            assert_eq!((estimate.value, estimate.low, estimate.high, estimate.n), (value, value, value, 3));
        }
        assert_eq!(phase.calls_together.unwrap().value, 1000.0);
    }

    #[test]
    fn percentiles_are_of_rounds_and_need_a_hundred_calls_in_each() {
        let round = |fast: u64, slow: u64| {
            let mut seen = seen(1_000_000_000, 0.0);
            let mut times = Histogram::new();
            times.record_many(1000, fast);
            times.record_many(64_000, slow);
            seen.pass.operations = vec![(Operation::Stat, times)];
            seen
        };
        // Two calls of 100 are slow in the first round, none in the others: over all calls the 99th percentile would not
        // show how far rounds are apart.
        let phase =
            PhaseRecord::new(Phase::Stat, None, 0.0, &[round(98, 2), round(100, 0), round(100, 0)], 1);
        let p99 = phase.operations[0].p99.unwrap();
        assert!(p99.value < 1100.0 && p99.high > 60_000.0, "{p99:?}");
        let few = PhaseRecord::new(Phase::Stat, None, 0.0, &[round(50, 0), round(50, 0), round(50, 0)], 1);
        assert_eq!((few.operations[0].p99, few.operations[0].p99_ns.is_some()), (None, true));
    }

    #[test]
    fn made_and_settled_is_paired_within_rounds() {
        let (create, sync) = ([seen(1_000_000_000, 0.0)], [seen(3_000_000_000, 0.0)]);
        assert!(SettledRecord::new(&create, &sync, 1).is_none(), "one round");
        let many = |seen: &Seen| vec![seen.clone(), seen.clone(), seen.clone()];
        let settled = SettledRecord::new(&many(&create[0]), &many(&sync[0]), 1).unwrap();
        assert_eq!((settled.files_per_second.value, settled.sync_share.value), (50.0, 0.75));
    }

    #[test]
    fn one_round_has_no_interval_and_a_warm_one_is_not_cold() {
        let phase = PhaseRecord::new(Phase::Stat, Some(("cold", 0.0)), 0.01, &[seen(9, 0.5)], 1);
        assert_eq!((phase.files_per_second, phase.state_verified), (None, Some(false)));
        assert_eq!(phase.samples.len(), 1);
        let none = PhaseRecord::new(Phase::Read, None, 0.0, &[], 1);
        assert_eq!((none.files, none.operations.len(), none.operations[0].n), (0, 3, 0));
    }
}
