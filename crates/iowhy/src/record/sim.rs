//! The record of `sim`: points with their settings, time, latencies and ledgers.

use iowhy_core::warning::Warning;
use iowhy_sim::machine::Value;
use iowhy_sim::outcome::Outcome;
use iowhy_sim::sweep::{Mark, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, SCHEMA};

/// Code of the warning that requests come at times that no machine changes.
pub const PLANNED_TIMES: &str = "planned-times";

/// The whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimRecord {
    /// Version of the format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// `sim`.
    pub command: String,
    /// The machine that was simulated.
    pub machine: MachineRecord,
    /// The workload or trace, as given.
    pub load: String,
    /// The workload with what was left to its defaults; null for a trace.
    pub load_in_full: Option<String>,
    /// Seed of everything that chance decides.
    pub seed: u64,
    /// What limits the meaning of the numbers.
    pub warnings: Vec<Warning>,
    /// One, or those of a sweep.
    pub points: Vec<PointRecord>,
}

/// The machine before a sweep changes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineRecord {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its parts in a line each, for people.
    pub parts: Vec<String>,
    /// What was set on the command line.
    pub set: serde_json::Map<String, serde_json::Value>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SimulatedPoint")]
pub struct PointRecord {
    /// What the sweep set.
    pub set: serde_json::Map<String, serde_json::Value>,
    /// From the first request to the end of the last.
    pub time_s: f64,
    /// Until the last device was idle: write-back and read-ahead may outlast the last answer.
    pub settled_s: f64,
    /// Requests.
    pub requests: u64,
    /// Requests a second; null where no time passed.
    pub requests_per_second: Option<f64>,
    /// Bytes a second; null where no time passed.
    pub throughput_bytes_per_second: Option<f64>,
    /// Latencies.
    pub latency_ns: LatencyNs,
    /// Where the time of requests (and pauses of clients) went, summed over them; sums to `ledger_total_s`.
    pub ledger: Vec<PartRecord>,
    /// What the ledger sums to.
    pub ledger_total_s: f64,
    /// Share of blocks that had to be fetched; null without a cache.
    pub miss_ratio: Option<f64>,
    /// Share of look-ups that found their buffer mapped; null without a pool.
    pub pool_reuse: Option<f64>,
    /// The devices.
    pub devices: Vec<DeviceRecord>,
    /// The account of the slowest request.
    pub slowest: Vec<PartRecord>,
    /// `best`, `knee`, `cliff`.
    pub marks: Vec<String>,
    /// What had to be bent.
    pub remarks: Vec<String>,
}

/// Percentiles over all requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyNs {
    /// Mean.
    pub mean: f64,
    /// Half are faster.
    pub p50: u64,
    /// 90 of 100 are faster.
    pub p90: u64,
    /// 99 of 100 are faster.
    pub p99: u64,
    /// 999 of 1000 are faster.
    pub p99_9: u64,
    /// The slowest.
    pub max: u64,
}

/// Time of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartRecord {
    /// Which part.
    pub id: String,
    /// How long, in all.
    pub time_s: f64,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRecord {
    /// Commands that it served.
    pub commands: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Requests that it serves side by side.
    pub units: u64,
    /// Share of `settled_s` that one of them is at work, the mean of all; null where no time passed.
    pub busy_share: Option<f64>,
    /// What its working time went on.
    pub work: Vec<PartRecord>,
}

impl PointRecord {
    /// The record of a run.
    pub fn new(set: &Settings, outcome: &Outcome) -> PointRecord {
        let latency = &outcome.latency;
        let passed = |figure: f64, ns: u64| (ns > 0).then_some(figure);
        let parts = |entries: &mut dyn Iterator<Item = (iowhy_sim::ledger::Part, u64)>| {
            entries
                .map(|(part, ns)| PartRecord { id: part.id().to_owned(), time_s: seconds(ns) })
                .collect::<Vec<_>>()
        };
        PointRecord {
            set: settings(set),
            time_s: seconds(outcome.time_ns),
            settled_s: seconds(outcome.settled_ns),
            requests: outcome.requests,
            requests_per_second: passed(outcome.requests_per_second(), outcome.time_ns),
            throughput_bytes_per_second: passed(outcome.bytes_per_second(), outcome.time_ns),
            latency_ns: LatencyNs {
                mean: latency.mean_ns(),
                p50: latency.quantile(0.5),
                p90: latency.quantile(0.9),
                p99: latency.quantile(0.99),
                p99_9: latency.quantile(0.999),
                max: latency.max_ns(),
            },
            ledger: parts(&mut outcome.ledger.entries()),
            ledger_total_s: seconds(outcome.ledger.total()),
            miss_ratio: outcome.miss_ratio(),
            pool_reuse: outcome.pool_reuse(),
            devices: outcome
                .devices
                .iter()
                .map(|device| DeviceRecord {
                    commands: device.done,
                    bytes: device.bytes,
                    units: device.units,
                    busy_share: passed(device.utilisation(outcome.settled_ns), outcome.settled_ns),
                    work: parts(&mut device.work.entries()),
                })
                .collect(),
            slowest: outcome
                .slowest
                .as_ref()
                .map_or_else(Vec::new, |slowest| parts(&mut slowest.parts.entries())),
            marks: Vec::new(),
            remarks: outcome.remarks.clone(),
        }
    }

    /// Takes over what a sweep found remarkable.
    pub fn mark(&mut self, mark: Mark) {
        let named = [("best", mark.best), ("knee", mark.knee), ("cliff", mark.cliff)];
        self.marks = named.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name.to_owned()).collect();
    }
}

impl SimRecord {
    /// A record without points.
    pub fn new(machine: MachineRecord, load: String, load_in_full: Option<String>, seed: u64) -> SimRecord {
        SimRecord {
            schema: SCHEMA,
            kind: Kind::Simulation,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: "sim".to_owned(),
            machine,
            load,
            load_in_full,
            seed,
            warnings: Vec::new(),
            points: Vec::new(),
        }
    }
}

/// Settings as JSON: numbers as numbers, all else as text.
pub fn settings(set: &Settings) -> serde_json::Map<String, serde_json::Value> {
    set.iter()
        .map(|(path, value)| {
            let json = match value {
                Value::Int(number) => (*number).into(),
                Value::Text(text) => text.parse::<u64>().map_or_else(|_| text.clone().into(), Into::into),
                other => other.to_string().into(),
            };
            (path.clone(), json)
        })
        .collect()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
