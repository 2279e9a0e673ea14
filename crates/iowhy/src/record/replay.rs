//! The record of `iowhy replay`.

use crate::record::Kind;
use iowhy_core::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use iowhy_replay::elsewhere::{Elsewhere, Place};

/// The calls of a run on several file systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The program whose run was replayed.
    pub subject: String,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// The places.
    #[serde(flatten)]
    pub elsewhere: Elsewhere,
}
