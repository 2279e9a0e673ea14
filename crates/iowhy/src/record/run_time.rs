//! The record of a program that may not be watched: what needs no rights. Keys that would have to be guessed are not there.

use iowhy_core::environment::Environment;
use iowhy_core::profile::{Limitation, Profile};
use iowhy_core::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rank::RankRecord;
use super::watch::{Exit, Invocation};
use super::{Kind, SCHEMA};

/// Run time and end of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunTimeRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The program: its command line.
    pub subject: String,
    /// Which process of a parallel job it was; absent outside of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<RankRecord>,
    /// Machine.
    pub environment: Environment,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// From start to end.
    pub wall_s: f64,
    /// CPU time of the program and of the processes that it waited for; `null` where the kernel did not tell.
    pub cpu_s: Option<f64>,
    /// How it ended; `null` when it still runs, or when that cannot be known.
    pub exit: Option<Exit>,
    /// Why no more is known.
    pub limitations: Vec<Limitation>,
}

impl RunTimeRecord {
    /// `None`: more is known of the program.
    pub fn new(profile: &Profile, invocation: Invocation) -> Option<RunTimeRecord> {
        let why =
            profile.sight.limitations.iter().find(|limitation| limitation.id == Limitation::ONLY_RUN_TIME)?;
        let cpu_ns = profile.io.user_ns.zip(profile.io.system_ns).map(|(user, system)| user + system);
        Some(RunTimeRecord {
            schema: SCHEMA,
            kind: Kind::RunTime,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: invocation.command,
            subject: invocation.subject,
            rank: invocation.rank,
            environment: invocation.environment,
            warnings: invocation.warnings,
            wall_s: profile.wall_ns as f64 / 1e9,
            cpu_s: cpu_ns.map(|ns| ns as f64 / 1e9),
            exit: Exit::from_end(profile.end),
            limitations: vec![why.clone()],
        })
    }
}
