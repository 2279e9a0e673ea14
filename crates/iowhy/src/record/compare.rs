//! The records of `iowhy compare`: what became of every cell and its layers, or of the runs of a watched program, and what
//! differs around them.

use crate::record::Kind;
use iowhy_core::estimate::Estimate;
use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::stats::Verdict;
use iowhy_core::warning::Warning;
use iowhy_diagnose::runs::Changed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One comparison.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of the record format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The first record.
    pub before: Source,
    /// The second record.
    pub after: Source,
    /// The share from which a difference matters.
    pub threshold_share: f64,
    /// What differs between the two machines, or around the targets.
    pub differences: Vec<Difference>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// Cells that both records hold, in the order of the second.
    pub cells: Vec<ChangedCell>,
    /// The layers of those cells, top to bottom, cell by cell.
    pub layers: Vec<ChangedLayer>,
    /// Keys of cells that only the first record holds.
    pub only_before: Vec<String>,
    /// Keys of cells that only the second record holds.
    pub only_after: Vec<String>,
}

/// Where a record came from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The file name as given.
    pub file: String,
    /// The command that made it.
    pub command: String,
    /// The version that made it.
    pub iowhy: String,
}

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Its name, for people.
    pub fact: String,
    /// In the first record.
    pub before: String,
    /// In the second.
    pub after: String,
    /// Whether it makes another machine of it, which times may not be compared with.
    pub other_machine: bool,
}

impl Difference {
    /// The difference of two values of a fact, if there is one.
    pub fn between(fact: &str, before: String, after: String, other_machine: bool) -> Option<Difference> {
        (before != after).then(|| Difference { fact: fact.to_owned(), before, after, other_machine })
    }
}

/// One cell.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedCell {
    /// Its key.
    pub key: String,
    /// Its key in the first record, where a setting differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_key: Option<String>,
    /// The target, as the second record names it.
    pub target: String,
    /// Time per request, first record.
    pub before: Option<Estimate>,
    /// Time per request, second record.
    pub after: Option<Estimate>,
    /// Time per request after, over that before.
    pub after_over_before: Option<Estimate>,
    /// `improved`, `regressed`, `within-noise` or `inconclusive`.
    pub verdict: Verdict,
    /// The layer that half or more of the change sits in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Its part of the change, from the two splits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_share: Option<f64>,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// One layer of a cell.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedLayer {
    /// Key of its cell.
    pub key: String,
    /// The target, as the second record names it.
    pub target: String,
    /// Which.
    pub layer: Layer,
    /// Its time for one request, first record; `null` where no interval was kept.
    pub before: Option<Estimate>,
    /// The same, second record.
    pub after: Option<Estimate>,
    /// What the cell's time would have become of itself had only this layer changed; 1.05 is 5 % more.
    pub effect: Option<Estimate>,
    /// One of the four words, by the effect.
    pub verdict: Verdict,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// Runs of profiled programs, compared.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProgramComparison {
    /// Version of the record format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The runs before.
    pub before: RunsOf,
    /// The runs after.
    pub after: RunsOf,
    /// The share of the wall time from which a difference matters.
    pub threshold_share: f64,
    /// Seed of the resampling.
    pub seed: u64,
    /// What differs between the two machines, or around the programs.
    pub differences: Vec<Difference>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// What became of the wall time.
    pub wall: Changed,
    /// The same of its parts, greatest change first; with the idle time they sum to it.
    pub parts: Vec<ChangedPart>,
    /// Why no part has a verdict, where the wall time may have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts_doubt: Option<String>,
    /// Every finding of any run.
    pub findings: Vec<ChangedFinding>,
    /// Why there is no verdict at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// The runs of one side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunsOf {
    /// As the side was named.
    pub named: String,
    /// The files.
    pub files: Vec<String>,
    /// The program; of several, the first.
    pub subject: String,
    /// The version that made the first of them.
    pub iowhy: String,
}

/// A part of the wall time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedPart {
    /// What the program asked for; `idle` where nothing of it was active.
    pub operation: String,
    /// In which layer; `null` where nothing was active.
    pub layer: Option<Layer>,
    /// Its time.
    #[serde(flatten)]
    pub time: Changed,
}

/// A finding.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFinding {
    /// Which.
    pub id: FindingId,
    /// Runs before in which it was found.
    pub before_runs: u64,
    /// Runs after.
    pub after_runs: u64,
    /// `appeared`, `went`, `stays` or `inconclusive`.
    pub change: String,
    /// Probability of a difference of counts at least this large without a change.
    pub chance: f64,
}
