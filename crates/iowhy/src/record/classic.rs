//! The record of `classic`: one row a published figure, with what this machine says and what the model says, in the same
//! unit. What may not enter: text layout, which is `screen`'s.

use crate::record::Kind;
pub use iowhy_classic::report::{Row as RowRecord, Section};
use iowhy_core::environment::{Environment, TargetFacts};
use iowhy_core::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::CellRecord;

/// One experiment, then, now and as modelled.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClassicRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The experiment's name.
    pub name: String,
    /// What it was about.
    pub title: String,
    /// Where and when it was published.
    pub source: String,
    /// Date of the post.
    pub date: String,
    /// The machine of the post.
    pub machine: String,
    /// This machine.
    pub environment: Environment,
    /// What was read here.
    pub targets: Vec<TargetFacts>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// Rounds measured.
    pub rounds: u32,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
    /// Seed of every order, pattern and interval.
    pub seed: u64,
    /// Then, now, model.
    pub rows: Vec<RowRecord>,
    /// What follows, a sentence each.
    pub verdicts: Vec<String>,
    /// What this command does not do for this experiment.
    pub not_done: Vec<String>,
    /// The raw measurements behind `measured`.
    pub cells: Vec<CellRecord>,
    /// How the rows are grouped.
    pub sections: Vec<Section>,
}
