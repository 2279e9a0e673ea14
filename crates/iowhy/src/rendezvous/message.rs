//! What the ranks of a run write to each other.

use serde::{Deserialize, Serialize};

use crate::record::rank::RankRecord;

/// A process, as it shows itself to the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) rank: RankRecord,
    /// Its number in its own PID namespace: for messages.
    pub(super) pid: u32,
    /// Version of iowhy, and the options that must be the same for all.
    pub(super) plan: String,
}

/// Content of [`super::files::RUN`] and of requests to be let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) member: Member,
    pub(super) at_unix_ns: i64,
}

/// The first rank lets a process in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) run: String,
    pub(super) at_unix_ns: i64,
}

/// A rank has come to a meeting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    pub(super) run: String,
    pub(super) at_unix_ns: i64,
    /// When it had read the message of the first rank before.
    pub(super) saw_unix_ns: i64,
    /// How much after the start that was asked for it read of it.
    pub(super) late_ns: u64,
    pub(super) payload: String,
}

/// All ranks have come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Go {
    pub(super) run: String,
    pub(super) at_unix_ns: i64,
    pub(super) start_unix_ns: i64,
    /// Lead of each rank's clock, by rank.
    pub(super) offsets_ns: Vec<i64>,
}

/// The run ended early.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) rank: u64,
    pub(super) host: String,
    pub(super) reason: String,
}

impl Member {
    /// `process 4711 on node07`
    pub(super) fn words(&self) -> String {
        format!("process {} on {}", self.pid, self.rank.host)
    }
}
