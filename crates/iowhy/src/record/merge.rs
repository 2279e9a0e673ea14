//! The record of `merge`: one account over the ranks of a parallel job. A rank is named by its number everywhere.

use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::warning::Warning;
use iowhy_diagnose::ranks::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Kind;
use super::watch::Exit;

/// An account over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeRecord {
    /// Version of the record format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The program; of several, that of the first rank.
    pub subject: String,
    /// The job, as its launcher names it; `null` where no record says.
    pub job: Option<String>,
    /// Ranks of the job; `null` where no record says.
    pub ranks_of_job: Option<u64>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// Ranks of the job that no file is of, in order.
    pub missing: Vec<RankRange>,
    /// Files that nothing was taken from.
    pub left_out: Vec<LeftOut>,
    /// How the ranks ended.
    pub endings: Vec<EndingOfRanks>,
    /// Hosts, in the order of their first ranks.
    pub hosts: Vec<HostOfRanks>,
    /// Between the first start and the last, by the clocks of the hosts.
    pub started_within_s: f64,
    /// Wall times.
    pub wall: Spread,
    /// Parts of the wall times by layer, greatest first.
    pub layers: Vec<LayerOverRanks>,
    /// Parts of the wall times by operation and layer, greatest first.
    pub parts: Vec<PartOverRanks>,
    /// Why parts and layers of ranks may not be compared; their figures are there all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts_doubt: Option<String>,
    /// Findings, those of most ranks first.
    pub findings: Vec<FindingOverRanks>,
    /// Ranks that are slower than noise among ranks explains, slowest first.
    pub stragglers: Vec<SlowRank>,
    /// Why none is named, where that was not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stragglers_doubt: Option<String>,
    /// Probability of naming any straggler where there is none.
    pub level: f64,
    /// The share of the median wall time from which a difference matters.
    pub threshold_share: f64,
    /// All ranks, by number.
    pub ranks: Vec<RankLine>,
}

/// Ranks that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankRange {
    /// The first.
    pub first: u64,
    /// The last, which is the first where it is one.
    pub last: u64,
}

/// A file that nothing was taken from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub file: String,
    /// The rank that it is of, where that can be read.
    pub rank: Option<u64>,
    /// Why.
    pub reason: String,
}

/// Ranks that ended alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndingOfRanks {
    /// How; `null` where nobody saw it.
    pub exit: Option<Exit>,
    /// Which.
    pub ranks: Vec<u64>,
}

impl EndingOfRanks {
    /// Whether the program said that all went well.
    pub fn is_success(&self) -> bool {
        self.exit == Some(Exit::Code(0))
    }

    /// `killed by signal 9`
    pub fn words(&self) -> String {
        match self.exit {
            Some(Exit::Code(code)) => format!("ended with code {code}"),
            Some(Exit::Signal(signal)) => format!("killed by signal {signal}"),
            None => "not seen to end".to_owned(),
        }
    }
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostOfRanks {
    /// Its name.
    pub host: String,
    /// Random identifier of the run of its kernel.
    pub boot_id: Option<String>,
    /// Its ranks.
    pub ranks: Vec<u64>,
    /// Of them, stragglers.
    pub stragglers: u64,
}

/// A layer over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerOverRanks {
    /// Which.
    pub id: Layer,
    /// Its part of the wall time of a rank.
    #[serde(flatten)]
    pub time: Spread,
}

/// A part of the wall time over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartOverRanks {
    /// What the program asked for.
    pub operation: String,
    /// In which layer.
    pub layer: Layer,
    /// Its part of the wall time of a rank.
    #[serde(flatten)]
    pub time: Spread,
}

/// A finding over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingOverRanks {
    /// Which.
    pub id: FindingId,
    /// Ranks that have it.
    pub ranks: Vec<u64>,
    /// Part of the wall time that it takes in them: median.
    pub median_share: f64,
}

/// A rank that is slower than the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRank {
    /// Which.
    pub rank: u64,
    /// Its host.
    pub host: String,
    /// Its wall time.
    pub wall_s: f64,
    /// Beyond the median of the ranks that are no stragglers.
    pub wall_excess_s: f64,
    /// Whether its wall time stands apart; else it is a layer alone, as where ranks wait for each other.
    pub by_wall: bool,
    /// The layer that differs most; `null` where layers may not be compared.
    pub layer: Option<Layer>,
    /// Time of that layer beyond the median of the others.
    pub layer_excess_s: Option<f64>,
    /// The operation that most of that is of.
    pub operation: Option<String>,
    /// Probability of naming it where no rank is slower.
    pub chance: f64,
}

/// A rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankLine {
    /// Its number.
    pub rank: u64,
    /// Its host.
    pub host: String,
    /// The file of its record.
    pub file: String,
    /// From start to end, by the monotonic clock of its host.
    pub wall_s: f64,
}
