//! Records of trace files: `trace stat`, `trace head`, `trace convert` and `mrc`. Deliberately absent: reading and counting.

use std::collections::BTreeMap;

use iowhy_core::request::Op;
use iowhy_core::warning::Warning;
use iowhy_trace::survey::distinct::Amount;
use iowhy_trace::{BlockAction, Losses, Trace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, SCHEMA};

/// A trace, and what a command found in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRecord<T> {
    /// Version of the format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// `trace stat`, `trace head`, `trace convert` or `mrc`.
    pub command: String,
    /// Limits of the result.
    pub warnings: Vec<Warning>,
    /// The file of the trace.
    pub file: String,
    /// Its format, as in `iowhy trace formats`.
    pub format: String,
    /// Its compression: `none`, `gzip`, `zstd`.
    pub compression: String,
    /// What its requests name: `blocks`, `files` or `keys`.
    pub content: String,
    /// Whether the requests were recorded below the page cache; null if the format does not say.
    pub below_page_cache: Option<bool>,
    /// The step of a block request that was read (`queue` or `issue`); null for other formats.
    pub action: Option<String>,
    /// Requests that were read.
    pub read_requests: u64,
    /// What the file held and a request cannot carry.
    pub losses: Vec<LossRecord>,
    /// The result of the command.
    #[serde(flatten)]
    pub found: T,
}

/// The record of `mrc`.
pub type MrcRecord = TraceRecord<RatiosFound>;

impl<T> TraceRecord<T> {
    /// The facts of `trace` with what `command` found.
    pub fn new(trace: &Trace, kind: Kind, command: &str, warnings: &[Warning], found: T) -> TraceRecord<T> {
        TraceRecord {
            schema: SCHEMA,
            kind,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            warnings: warnings.to_vec(),
            file: trace.name().to_owned(),
            format: trace.format().id().to_owned(),
            compression: trace.compression().id().to_owned(),
            content: trace.kind().id().to_owned(),
            below_page_cache: trace.below_page_cache(),
            action: trace.action().map(|action| match action {
                BlockAction::Queue => "queue".to_owned(),
                BlockAction::Issue => "issue".to_owned(),
            }),
            read_requests: trace.requests(),
            losses: losses(trace.losses()),
            found,
        }
    }
}

/// Lines or requests that could not be kept as they were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossRecord {
    /// The loss, and what was done instead.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// Position of the first; null if the format has no positions.
    pub first: Option<String>,
}

/// Losses as a list.
pub fn losses(losses: &Losses) -> Vec<LossRecord> {
    let record = |loss: &iowhy_trace::Loss| LossRecord {
        reason: loss.reason.to_owned(),
        count: loss.count,
        first: loss.first.map(|position| position.to_string()),
    };
    losses.list().iter().map(record).collect()
}

/// What one of the trace commands found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TraceFound {
    /// `trace stat`
    Stat(Box<StatRecord>),
    /// `trace head`
    Head {
        /// The first requests.
        requests: Vec<TraceRequest>,
    },
    /// `trace convert`
    Convert(ConvertRecord),
}

/// `trace stat`: what the requests are.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatRecord {
    /// Number of requests.
    pub requests: u64,
    /// By operation; those without a request are absent.
    pub operations: Vec<OperationCount>,
    /// Different devices, files or keys.
    pub objects: Count,
    /// Different bytes that were touched; null if the trace has no sizes.
    pub footprint_bytes: Option<Count>,
    /// Sizes of requests.
    pub size_bytes: Sizes,
    /// Share of requests that begin at the end of one before; null for keys.
    pub sequential_share: Option<f64>,
    /// From the first request to the last; null if the trace has no times.
    pub span_ns: Option<u64>,
    /// Rate over that span.
    pub requests_per_second: Option<f64>,
    /// Different threads or processes; null if there are too many to count.
    pub streams: Option<usize>,
    /// Latencies; null if the trace has none.
    pub latency_ns: Option<Latencies>,
    /// Requests by mark: `sync`, `fua`, `metadata`, `read-ahead`, `failed`, `hit`, `miss`.
    pub marks: BTreeMap<&'static str, u64>,
}

/// Requests of one operation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OperationCount {
    /// The operation.
    pub id: &'static str,
    /// Number of requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A number that is estimated if there is much to count.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Count {
    /// The number; null if only a lower limit is known.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end; null if only a lower limit is known.
    pub high: Option<f64>,
    /// Whether everything was counted.
    pub exact: bool,
}

impl Count {
    /// With both ends.
    pub fn new(amount: Amount) -> Count {
        Count {
            value: Some(amount.value),
            low: amount.value - amount.error,
            high: Some(amount.value + amount.error),
            exact: amount.error == 0.0,
        }
    }

    /// Of which only a lower limit is known, because some requests were too large to count.
    pub fn at_least(amount: Amount) -> Count {
        Count { value: None, low: amount.value - amount.error, high: None, exact: false }
    }
}

/// Sizes of requests; null where the trace has none.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sizes {
    /// Median.
    pub p50: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
    /// The most frequent sizes.
    pub common: Vec<SizeCount>,
}

/// Requests of one size.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SizeCount {
    /// The size.
    pub size_bytes: u64,
    /// Number of requests.
    pub requests: u64,
}

/// Latencies of requests in nanoseconds.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Latencies {
    /// Number of requests with a latency.
    pub n: u64,
    /// The shortest.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// Mean.
    pub mean: f64,
}

/// One request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceRequest {
    /// Time after the first request; null if the trace has no times.
    pub time_ns: Option<u64>,
    /// The operation.
    pub op: Op,
    /// Number of the device, file or key.
    pub object: u64,
    /// Its name; null if the trace has none.
    pub name: Option<String>,
    /// Offset in the object; null for keys.
    pub offset_bytes: Option<u64>,
    /// Size; null if the trace has no sizes.
    pub size_bytes: Option<u64>,
    /// Latency; null if the trace has none.
    pub latency_ns: Option<u64>,
    /// Number of the thread or process; null if the trace has none.
    pub stream: Option<u32>,
    /// Its marks, as in `trace stat`.
    pub marks: Vec<&'static str>,
}

/// `trace convert`: what was written.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConvertRecord {
    /// The new file.
    pub output: String,
    /// Its format.
    pub output_format: &'static str,
    /// Requests in it.
    pub written_requests: u64,
    /// Bytes that these requests ask for.
    pub written_bytes: u64,
    /// What the new format cannot carry.
    pub write_losses: Vec<LossRecord>,
}

/// `mrc`: the share of references that miss, by policy and size of the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatiosFound {
    /// Unit of sizes: `blocks` or `objects`.
    pub unit: String,
    /// Size of a block; null for objects.
    pub block_bytes: Option<u64>,
    /// Requests that count.
    pub counted_requests: u64,
    /// References to blocks or objects.
    pub references: u64,
    /// Different blocks or objects.
    pub distinct: u64,
    /// Whether these were counted, not estimated.
    pub distinct_exact: bool,
    /// Share of references that are first uses, which miss in any cache.
    pub cold_miss_ratio: f64,
    /// Requests that do not count, by reason.
    pub left_out: LeftOutRecord,
    /// One curve per policy.
    pub curves: Vec<CurveRecord>,
    /// Cliffs and sizes of interest of the LRU curve; null if that curve is sampled, or LRU is not among the policies.
    pub lru_shape: Option<ShapeRecord>,
}

/// Requests that do not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutRecord {
    /// They access no data.
    pub no_access: u64,
    /// They have size 0.
    pub empty: u64,
    /// They are larger than any cache may be.
    pub too_large: u64,
    /// They are left out by `--only`.
    pub other_kind: u64,
}

/// The curve of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveRecord {
    /// The policy.
    pub policy: String,
    /// By size, ascending.
    pub points: Vec<CurvePoint>,
}

/// One size of a cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Size in blocks or objects.
    pub blocks: u64,
    /// Size in bytes; null for objects.
    pub size_bytes: Option<u64>,
    /// Share of references that miss.
    pub miss_ratio: f64,
    /// Share of bytes that miss; null if all references have one size.
    pub byte_miss_ratio: Option<f64>,
    /// Half the width of the interval of `miss_ratio`; null if unknown.
    pub sampling_error: Option<f64>,
    /// `exact` or `sampled`.
    pub basis: String,
    /// Share of blocks that were followed.
    pub sample_rate: f64,
    /// Whether `--size` asked for it.
    pub asked: bool,
}

/// Cliffs and sizes of interest of the LRU curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapeRecord {
    /// Sizes at which the miss ratio falls suddenly.
    pub cliffs: Vec<CliffRecord>,
    /// Smallest cache that saves 90 % of the avoidable misses; null if no miss is avoidable.
    pub saves_90_percent_blocks: Option<u64>,
    /// Smallest cache that saves all avoidable misses.
    pub saves_all_blocks: Option<u64>,
}

/// A sudden fall of the miss ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CliffRecord {
    /// Last size before the fall.
    pub from_blocks: u64,
    /// First size behind it.
    pub to_blocks: u64,
    /// Size in its middle.
    pub middle_blocks: u64,
    /// Miss ratio before.
    pub miss_ratio_before: f64,
    /// Miss ratio behind.
    pub miss_ratio_behind: f64,
    /// Whether the fall is as steep as that of a loop over these blocks.
    pub like_a_loop: bool,
}
