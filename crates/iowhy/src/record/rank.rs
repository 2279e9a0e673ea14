//! Which process of a parallel job a record is of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process of a job of several, as its launcher or an option numbers it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankRecord {
    /// Its number, from 0.
    pub rank: u64,
    /// Processes of the job; `null` where nothing tells.
    pub ranks: Option<u64>,
    /// The options or environment variables that were believed.
    pub believed: Vec<String>,
    /// Name of its host.
    pub host: String,
    /// Random identifier of the run of the host's kernel: hosts of one name differ in it, containers of one host do not.
    pub boot_id: Option<String>,
    /// The job, as its launcher names it: `SLURM_JOB_ID=4711 SLURM_STEP_ID=0`; `null` where the launcher names none.
    pub job: Option<String>,
    /// Restarts of the job before this one, where the launcher counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// When iowhy began, in seconds since 1970, by the clock of this host.
    pub started_unix_s: f64,
}

impl RankRecord {
    /// `rank 3 of 16`
    pub fn words(&self) -> String {
        let of = self.ranks.map_or_else(String::new, |ranks| format!(" of {ranks}"));
        format!("rank {}{of}", self.rank)
    }
}
