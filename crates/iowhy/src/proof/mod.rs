//! The proof of a profiled run: its findings replayed with and without their repairs, as the user of this run.

pub(crate) mod cgroup_helper;

use std::time::Duration;

use iowhy_core::finding::Finding;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Profile;
use iowhy_diagnose::findings::Facts;
use iowhy_diagnose::repair::Sizes;
use iowhy_replay::plan::what_if::Change;
use iowhy_replay::trial::{self, Request};

use crate::analyzer::Analyzer;
use crate::progress::Progress;
use crate::record::prove::Proof;
use crate::run_as;

pub use cgroup_helper::serve;

/// Default of `--rounds`.
const ROUNDS: usize = 9;

/// What the options ask for.
pub(crate) struct Wanted {
    pub(crate) rounds: usize,
    pub(crate) sizes: Sizes,
    pub(crate) changes: Vec<Change>,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { rounds: ROUNDS, sizes: Sizes::default(), changes: Vec::new() }
    }
}

/// Proves the printed findings of a profile. Files are opened and made as the user of this run.
pub(crate) fn prove(
    profile: &Profile,
    findings: &[Finding],
    wanted: &Wanted,
    seed: u64,
    quiet: bool,
) -> Proof {
    let _files = match run_as::files() {
        Ok(files) => files,
        Err(Problem { message, hint, .. }) => {
            return Proof { seed, reason: Some(message), hint, ..Proof::default() };
        }
    };
    let account = Analyzer::new().account(profile);
    let request = Request {
        facts: &Facts::new(profile, &account, None),
        findings,
        sizes: wanted.sizes,
        changes: &wanted.changes,
        rounds: wanted.rounds,
        seed,
    };
    let line = Progress::new(quiet);
    let mut progress = |share: f64, left: Duration, arm: &str| line.at(share, left, arm);
    trial::prove(&request, &cgroup_helper::command, &mut progress)
}
