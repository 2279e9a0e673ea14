//! The records of `iowhy doctor`: what this machine allows and what is set under a path; a setting that was tried.

use crate::record::Kind;
use iowhy_core::environment::Environment;
use iowhy_core::profile::{Limitation, Tier};
use iowhy_core::setting::{Group, Reading};
use iowhy_core::warning::Warning;
use iowhy_diagnose::setting::Judgement;
use schemars::JsonSchema;
use serde::Serialize;

use crate::record::CellRecord;
use crate::record::compare::ChangedCell;

/// One visit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DoctorRecord {
    /// Version of the record format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The path.
    pub path: String,
    /// The machine and the path under it.
    pub environment: Environment,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// What the kernel lets us see.
    pub rights: RightsRecord,
    /// Why the path has no queue to look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_device: Option<String>,
    /// Every setting.
    pub settings: Vec<SettingRecord>,
}

/// What the kernel lets us see.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RightsRecord {
    /// The highest tier that works.
    pub tier: Tier,
    /// What it shows.
    pub shows: String,
    /// The next tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextTier>,
    /// What is not possible, why, and what would change it.
    pub limitations: Vec<Limitation>,
}

/// The next tier.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NextTier {
    /// Which.
    pub tier: Tier,
    /// What it would show.
    pub shows: String,
    /// Why it is not had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The exact command for it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// One setting.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SettingRecord {
    /// Where it belongs.
    pub group: Group,
    /// What was read.
    #[serde(flatten)]
    pub reading: Reading,
    /// What follows from it; absent where it is neutral or could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Judgement>,
    /// The command that measures another value against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
}

/// One setting, tried.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TrialRecord {
    /// Version of the record format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The path.
    pub path: String,
    /// The machine and the path under it, as they are again.
    pub environment: Environment,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// The setting as it was found; of several devices as one.
    pub setting: Reading,
    /// The same device by device, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Reading>,
    /// The old value; where another setting holds instead, that one, as `KEY=VALUE`; where devices differ `DEVICE VALUE` of each.
    pub before: String,
    /// The value that was tried.
    pub after: String,
    /// The command that makes the new value stay until the next start.
    pub keep: String,
    /// Whether the old value is back. A record is only written when it is.
    pub put_back: bool,
    /// Rounds, each with both values.
    pub rounds: u32,
    /// Whether somebody asked us to stop.
    pub interrupted: bool,
    /// Seed of orders, patterns and intervals.
    pub seed: u64,
    /// The share from which a difference matters.
    pub threshold_share: f64,
    /// What became of each request.
    pub requests: Vec<TriedRequest>,
    /// The requests with the old value, raw samples kept.
    pub cells_before: Vec<CellRecord>,
    /// The requests with the new value.
    pub cells_after: Vec<CellRecord>,
}

/// A request of a trial.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TriedRequest {
    /// Its name for people.
    pub label: String,
    /// Whether the setting cannot touch it.
    pub control: bool,
    /// What became of it; the ratio is the median of those within a round.
    #[serde(flatten)]
    pub change: ChangedCell,
}
