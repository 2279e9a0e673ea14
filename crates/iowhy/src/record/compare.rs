//! The record of `iowhy compare`: what became of every cell, and what differs around them.

use iowhy_core::estimate::Estimate;
use iowhy_core::layer::Layer;
use iowhy_core::stats::Verdict;
use iowhy_core::warning::Warning;
use serde::Serialize;

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of the record format.
    pub schema: u32,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command as it was typed.
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
    /// Keys of cells that only the first record holds.
    pub only_before: Vec<String>,
    /// Keys of cells that only the second record holds.
    pub only_after: Vec<String>,
}

/// Where a record came from.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// The file, as it was named.
    pub file: String,
    /// The command that made it.
    pub command: String,
    /// The version that made it.
    pub iowhy: String,
}

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

/// One cell.
#[derive(Clone, Debug, Serialize)]
pub struct ChangedCell {
    /// Its key.
    pub key: String,
    /// The target, as the second record names it.
    pub target: String,
    /// Time per request, first record.
    pub before: Option<Estimate>,
    /// Time per request, second record.
    pub after: Option<Estimate>,
    /// After over before.
    pub ratio: Option<Estimate>,
    /// `improved`, `regressed`, `within-noise` or `cannot-tell`.
    pub verdict: Verdict,
    /// The layer that half or more of the change sits in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Its part of the change, from the two fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_share: Option<f64>,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}
