//! The record of the measuring commands (the path report and `bench`): cells with their raw samples, limit and model.

use std::collections::BTreeMap;

use crate::record::Kind;
use iowhy_core::cell::{CellRun, Sample, StateCheck};
use iowhy_core::environment::{Environment, TargetFacts};
use iowhy_core::estimate::Estimate;
use iowhy_core::histogram::Histogram;
use iowhy_core::layer::{Layer, LayerEstimate, Ledger};
use iowhy_core::limit::Limit;
use iowhy_core::model::{LayerCost, StackModel};
use iowhy_core::stats;
use iowhy_core::summary::Summary;
use iowhy_core::warning::Warning;
use iowhy_path::cross_check::CrossCheck;
use iowhy_path::faster::Faster;
use iowhy_path::reconcile::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::member::MemberRecord;

/// One command's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// Machine and path under the (first) target.
    pub environment: Environment,
    /// With several targets: the same for each, in the order of `targets`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub environments: Vec<Environment>,
    /// What was found on each target before timing.
    pub targets: Vec<TargetFacts>,
    /// Clock and overhead of iowhy.
    pub ruler: RulerRecord,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// Rounds measured.
    pub rounds: u32,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
    /// Seed of every order, pattern and interval.
    pub seed: u64,
    /// One entry per measured cell.
    pub cells: Vec<CellRecord>,
    /// Cells that stand for something a reader asks about, in the order of the screen; the path report only.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub requests: Vec<RequestRecord>,
    /// The limit; the path report only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// The limit of each question apart: cached reads, sequential and random from the device.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub limits: Vec<QuestionLimit>,
    /// Fitted costs by layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<BTreeMap<String, LayerCost>>,
    /// Fitted costs of parts of layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_parts: Option<BTreeMap<String, LayerCost>>,
    /// Root mean square of the fit's relative residuals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_residual_percent: Option<f64>,
    /// What the fit could not separate, in words.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub model_notes: Vec<String>,
    /// Block sizes that the model had not seen.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub held_out: Vec<HeldOutRecord>,
    /// The cost of each access method relative to `pread`, within rounds.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub methods: Vec<MethodRecord>,
    /// Changes that are faster beyond noise, the greatest gain of each question first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub faster: Vec<FasterRecord>,
    /// Why no cell has a stack-sampling cross-check, where one was possible in principle.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cross_check_limitation: Option<String>,
}

/// A cell that the path report shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// Key of the cell.
    pub key: String,
    /// What it is called for people.
    pub label: String,
}

/// Clock and overhead of iowhy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RulerRecord {
    /// Where time comes from.
    pub clock_source: String,
    /// Smallest step seen.
    pub clock_step_ns: u64,
    /// Cost of one reading; absent in virtual time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_read: Option<Estimate>,
    /// Cost of the harness per request, histogram included; measured on the `null` method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness_per_request: Option<Estimate>,
    /// Cost of copying one byte in user mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_per_byte: Option<Estimate>,
    /// Greatest resident memory of the process, buffers included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

/// One measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellRecord {
    /// Short stable key.
    pub key: String,
    /// Name of the target.
    pub target: String,
    /// How.
    pub method: String,
    /// `read`, `write` or `mixed:N`.
    pub direction: String,
    /// Where.
    pub pattern: String,
    /// Claimed cache state.
    pub state: String,
    /// Whether the claim was verified. A violated claim is in `verdict`.
    pub state_verified: bool,
    /// What was seen of it.
    pub state_check: StateCheck,
    /// Request size.
    pub block_bytes: u64,
    /// Part of the target that requests fall into.
    pub region_bytes: u64,
    /// Start of it.
    pub region_offset_bytes: u64,
    /// Threads.
    pub threads: usize,
    /// Requests in flight per thread.
    pub depth: usize,
    /// What was done with arrived bytes.
    pub touch: String,
    /// Planned rate of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_per_second: Option<f64>,
    /// Thread time per request; at depth 1 the mean latency. Absent below 3 rounds, which give no interval.
    pub time_per_request: Option<Estimate>,
    /// Bytes per second.
    pub throughput: Option<Estimate>,
    /// Requests per second.
    pub requests_per_second: Option<Estimate>,
    /// CPU time per request.
    pub cpu_ns_per_request: Option<f64>,
    /// Interval of it.
    pub cpu_per_request: Option<Estimate>,
    /// CPU time per byte.
    pub cpu_per_byte: Option<Estimate>,
    /// Of the CPU time per request, user mode, by the kernel's own coarse split.
    pub cpu_user_per_request: Option<Estimate>,
    /// CPU time of kernel threads per request, where they can be seen.
    pub kernel_threads_per_request: Option<Estimate>,
    /// Spread of the rounds: median absolute deviation over median.
    pub noise_share: Option<f64>,
    /// Change of the time per request over the run, where a trend is clear.
    pub drift_share: Option<f64>,
    /// Latency of every request of every round.
    pub latency_ns: LatencyRecord,
    /// Mean lateness against the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Estimate>,
    /// First thread done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_done: Option<Estimate>,
    /// Last thread done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_done: Option<Estimate>,
    /// Bytes that requests claim.
    pub claimed_bytes: u64,
    /// Bytes that the devices moved.
    pub device_bytes: Option<u64>,
    /// What the two say about each other, in words.
    pub bytes_verdict: String,
    /// `ok`, `mislabelled`, `inconclusive` or `failed`.
    pub verdict: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Options that the kernel refused.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dropped: Vec<String>,
    /// Time per request, split over the layers; sums to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Ledger>,
    /// The same layers with intervals, from a bootstrap over the rounds; empty in records of older versions.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub layer_estimates: Vec<LayerEstimate>,
    /// Remarks on the split (what could not be checked).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub layer_notes: Vec<String>,
    /// `layers` compared with stack samples of extra slices of this cell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cross_check: Option<CrossCheck>,
    /// How the work was spread over members or devices, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub members: Vec<MemberRecord>,
    /// Raw rounds.
    pub samples: Vec<Sample>,
}

/// Latency percentiles and the histogram they come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyRecord {
    /// Requests.
    pub n: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile; `null` where fewer than 1000 requests were made.
    pub p99_9: Option<u64>,
    /// Greatest.
    pub max: u64,
    /// Every request.
    pub histogram: Histogram,
}

/// The limit of one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionLimit {
    /// `cached`, `sequential`, `random`.
    pub question: String,
    /// The verdict.
    #[serde(flatten)]
    pub limit: Limit,
}

/// A block size that the model had not seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOutRecord {
    /// The calibration cell.
    pub calibration_cell: String,
    /// Block size.
    pub block_bytes: u64,
    /// What the model says.
    pub predicted_ns: f64,
    /// What was measured.
    pub measured_ns: f64,
    /// Interval of the measurement.
    pub measured: Estimate,
    /// (predicted - measured) / measured.
    pub error_percent: f64,
}

/// One access method relative to `pread` of the same state and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MethodRecord {
    /// `warm` or `cold`.
    pub state: String,
    /// How.
    pub method: String,
    /// Key of its cell.
    pub key: String,
    /// Whether the bytes reach the program's memory; those of `splice` and `sendfile` here do not.
    pub delivers: bool,
    /// Thread time of one request, every cache line of the data loaded once.
    pub time_per_request: Estimate,
    /// Time per byte over that of `pread`, paired within rounds.
    pub time_over_pread: Option<Estimate>,
    /// CPU per byte over that of `pread`.
    pub cpu_over_pread: Option<Estimate>,
}

/// A change that is faster beyond noise: the whole interval of its gain is above 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FasterRecord {
    /// `random reads`, `sequential reads`, `cached reads` or `sequential writes`.
    pub question: String,
    /// The change, for people.
    pub change: String,
    /// Key of the cell with the change.
    pub key: String,
    /// Key of the cell without it.
    pub than: String,
    /// Throughput with the change over throughput without it, paired within rounds.
    pub gain: Estimate,
}

impl From<Faster> for FasterRecord {
    fn from(found: Faster) -> FasterRecord {
        let Faster { question, change, key, than, gain } = found;
        FasterRecord { question: question.to_owned(), change, key, than, gain }
    }
}

impl CellRecord {
    /// The interval of a layer; `None` where it was not kept.
    pub fn layer(&self, id: Layer) -> Option<&LayerEstimate> {
        self.layer_estimates.iter().find(|layer| layer.id == id)
    }

    /// The median time per request of the rounds there are, for a run that was cut short before an interval could be
    /// had; with the number of rounds.
    pub fn provisional_ns(&self) -> Option<(f64, usize)> {
        let times: Vec<f64> = self.samples.iter().map(Sample::ns_per_request).collect();
        stats::median(&times).map(|ns| (ns, times.len()))
    }

    /// Why the cell proves nothing, in words; `None` when it does.
    pub fn doubt(&self) -> Option<String> {
        if let Some(failure) = &self.failure {
            Some(failure.clone())
        } else if self.planned_per_second.is_some() {
            Some("paced by a plan: its time per request is the plan's".to_owned())
        } else if self.verdict == Verdict::Mislabelled.id() {
            Some("it is mislabelled".to_owned())
        } else {
            None
        }
    }

    /// Why its verdict is not `ok`: what was seen of its cache state, else of its bytes.
    pub fn why_not_ok(&self) -> &str {
        match &self.state_check {
            StateCheck::Violated { reason } | StateCheck::Inconclusive { reason } => reason,
            _ => &self.bytes_verdict,
        }
    }

    /// Joins a run with what was made of it.
    pub fn new(run: &CellRun, target: &str, summary: Summary, seen: Seen) -> CellRecord {
        let w = &run.workload;
        CellRecord {
            key: run.key.clone(),
            target: target.to_owned(),
            method: w.method.id().to_owned(),
            direction: match w.direction {
                iowhy_core::workload::Direction::Read => "read".to_owned(),
                iowhy_core::workload::Direction::Write => "write".to_owned(),
                iowhy_core::workload::Direction::Mixed(read_percent) => format!("mixed:{read_percent}"),
            },
            pattern: w.pattern.to_string(),
            state: w.state.id().to_owned(),
            state_verified: run.state_check == StateCheck::Verified,
            state_check: run.state_check.clone(),
            block_bytes: w.block_bytes,
            region_bytes: w.region_bytes,
            region_offset_bytes: w.region_offset,
            threads: w.threads,
            depth: w.depth,
            touch: w.touch.id().to_owned(),
            planned_per_second: w.rate_per_second,
            time_per_request: summary.time_per_request,
            throughput: summary.throughput,
            requests_per_second: summary.requests_per_second,
            cpu_ns_per_request: summary.cpu_per_request.map(|e| e.value),
            cpu_per_request: summary.cpu_per_request,
            cpu_per_byte: summary.cpu_per_byte,
            cpu_user_per_request: summary.cpu_user_per_request,
            kernel_threads_per_request: summary.kernel_threads_per_request,
            noise_share: summary.noise_share,
            drift_share: summary.drift_share,
            latency_ns: LatencyRecord::of(&run.latency),
            lateness: summary.lateness,
            first_done: summary.first_done,
            last_done: summary.last_done,
            claimed_bytes: summary.claimed_bytes,
            device_bytes: summary.device_bytes,
            bytes_verdict: seen.bytes_verdict,
            verdict: seen.verdict,
            failure: run.failure.clone(),
            dropped: run.dropped.clone(),
            layers: seen.layers,
            layer_estimates: seen.layer_estimates,
            layer_notes: seen.layer_notes,
            cross_check: None,
            members: MemberRecord::all_of(run, &seen.members),
            samples: run.samples.clone(),
        }
    }
}

/// What explanation adds to a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// See [`CellRecord::bytes_verdict`].
    pub bytes_verdict: String,
    /// See [`CellRecord::verdict`].
    pub verdict: String,
    /// See [`CellRecord::layers`].
    pub layers: Option<Ledger>,
    /// See [`CellRecord::layer_estimates`].
    pub layer_estimates: Vec<LayerEstimate>,
    /// See [`CellRecord::layer_notes`].
    pub layer_notes: Vec<String>,
    /// Names of the members of the target.
    pub members: Vec<String>,
}

impl LatencyRecord {
    fn of(histogram: &Histogram) -> LatencyRecord {
        let n = histogram.count();
        LatencyRecord {
            n,
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            // A percentile needs requests beyond it.
            p99_9: (n >= 1000).then(|| histogram.quantile(0.999)),
            max: histogram.max_ns(),
            histogram: histogram.clone(),
        }
    }
}

/// The model's tables by layer and part identifiers.
pub fn model_tables(model: &StackModel) -> (BTreeMap<String, LayerCost>, BTreeMap<String, LayerCost>) {
    let layers = model.layers.iter().map(|(layer, cost)| (layer.id().to_owned(), *cost)).collect();
    let parts = model.parts.iter().map(|(part, cost)| (part.id().to_owned(), *cost)).collect();
    (layers, parts)
}
