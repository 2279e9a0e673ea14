//! `iowhy prove RECORD`: replays a profiled run with and without the advised repairs and prints a verdict on each finding.
//!
//! Arguments, progress and the record; `iowhy_replay::trial` plans, measures and judges. User files are opened read-only;
//! writes go to unnamed scratch files, or to a scratch tree where names cause the cost.

mod cgroup_helper;
mod load;
mod sizes;

use std::time::Duration;

use iowhy_core::finding::Finding;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Profile;
use iowhy_diagnose::findings::Facts;
use iowhy_diagnose::repair::Sizes;
use iowhy_probe::interrupt;
use iowhy_replay::plan::what_if::Change;
use iowhy_replay::trial::{self, Request};

use crate::analyzer::Analyzer;
use crate::cli::{OutputArgs, ProveArgs};
use crate::command::ending::{self, Ending};
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::prove::{Proof, ProveRecord};
use crate::record::{Kind, SCHEMA};
use crate::run_as;
use crate::screen;
use crate::shell;
use iowhy_view::document::Detail;

pub use cgroup_helper::serve;

/// Default of `--rounds`.
const ROUNDS: usize = 9;

/// Runs the command.
///
/// # Errors
/// Refusals: a bad option; no record of a profiled program, or one of another machine; a record without recorded calls.
pub fn run(args: &ProveArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    // Before an output is made, which an interrupt would leave empty.
    interrupt::install();
    let wanted = Wanted {
        rounds: args.rounds,
        sizes: sizes::asked(args),
        changes: args.what_if.clone().unwrap_or_default(),
    };
    let outputs = Outputs::open_apart(options, &[&args.record])?;
    let (record, warnings) = load::record(&args.record, args.force)?;
    let proof = prove(&record.profile, &record.findings, &wanted, args.seed, outputs.quiet());
    if proof.baseline.is_none()
        && let Some(reason) = &proof.reason
        && proof.findings.iter().all(|f| !f.failed && f.measured.is_none())
    {
        const AGAIN: &str =
            "profile the program again as root, for a second or more: `sudo iowhy --prove -- CMD`";
        return Err(Problem::refused(format!("`{}` cannot be replayed: {reason}", args.record.display()))
            .hint(proof.hint.as_deref().unwrap_or(AGAIN)));
    }
    let ending = ending_of(&proof);
    let record = ProveRecord {
        schema: SCHEMA,
        kind: Kind::Proof,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        subject: record.subject,
        warnings,
        proof,
    };
    outputs.warn(&record.warnings);
    let shown = screen::text(&screen::prove::chapter(&record, Detail::Screen), output::width());
    outputs.finish(&shown, &record)?;
    Ok(ending)
}

/// An interrupt, and a replay that failed, make the exit code 1.
fn ending_of(proof: &Proof) -> Ending {
    let interrupted = interrupt::requested().then(ending::interrupted);
    let failed = proof.findings.iter().find(|finding| finding.failed).map(|finding| {
        let why = finding.reason.as_deref().unwrap_or("no reason is known");
        Problem::failed(format!("the replay for `{}` failed: {why}", finding.id.id()))
    });
    Ending::from_reasons(interrupted.into_iter().chain(failed))
}

/// What the options ask for.
pub(crate) struct Wanted {
    rounds: usize,
    sizes: Sizes,
    changes: Vec<Change>,
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
