//! The proof of a profiled run: its findings replayed with and without their repairs, as the user of this run.

pub(crate) mod cgroup_helper;

use std::time::Duration;

use iowhy_core::finding::Finding;
use iowhy_core::problem::Problem;
use iowhy_core::profile::{End, Profile};
use iowhy_diagnose::findings::Facts;
use iowhy_diagnose::repair::Sizes;
use iowhy_probe::interrupt;
use iowhy_replay::plan::what_if::Change;
use iowhy_replay::trial::{self, Request};
use iowhy_view::document::Detail;

use crate::analyzer::Analyzer;
use crate::ending::{self, Ending};
use crate::progress::Progress;
use crate::record::prove::Proof;
use crate::record::watch::WatchRecord;
use crate::run_as;
use crate::screen;

pub use cgroup_helper::serve;

/// Default of `--rounds`.
const ROUNDS: usize = 9;

/// Seed of a proof right after a watch: the same in every run.
const SEED: u64 = 1;

/// What the options ask for.
pub(crate) struct Wanted {
    pub(crate) rounds: usize,
    pub(crate) sizes: Sizes,
    pub(crate) changes: Vec<Change>,
    /// The watch has just ended: a program that ran at its end still does.
    pub(crate) just_now: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { rounds: ROUNDS, sizes: Sizes::default(), changes: Vec::new(), just_now: true }
    }
}

/// Proves the findings of a watch that has just ended, puts the proof into its record, and returns the screen of it.
pub(crate) fn append(record: &mut WatchRecord, width: usize, quiet: bool) -> String {
    let proof = prove(&record.profile, &record.findings, &Wanted::default(), SEED, quiet);
    let shown = screen::text(&screen::prove::appendix(&record.subject, &proof, Detail::Screen), width);
    record.proof = Some(proof);
    shown
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
        live: wanted.just_now && profile.end == End::Running,
        rounds: wanted.rounds,
        seed,
    };
    let line = Progress::new(quiet);
    let mut progress = |share: f64, left: Duration, arm: &str| line.at(share, left, arm);
    trial::prove(&request, &cgroup_helper::command, &mut progress)
}

/// An interrupt, and a replay that failed, make the exit code 1.
pub(crate) fn ending(proof: &Proof) -> Ending {
    let interrupted = interrupt::requested().then(ending::interrupted);
    let failed = proof.findings.iter().find(|finding| finding.failed).map(|finding| {
        let why = finding.reason.as_deref().unwrap_or("no reason is known");
        Problem::failed(format!("the replay for `{}` failed: {why}", finding.id.id()))
    });
    Ending::from_reasons(interrupted.into_iter().chain(failed))
}
