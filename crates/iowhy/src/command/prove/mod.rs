//! `iowhy prove RECORD`: replays a profiled run with and without the advised repairs and prints a verdict on each finding.
//!
//! Arguments, progress and the record; `iowhy_replay::trial` plans, measures and judges. User files are opened read-only;
//! writes go to unnamed scratch files, or to a scratch tree where names cause the cost.

mod sizes;

use iowhy_core::problem::Problem;
use iowhy_probe::interrupt;

use crate::cli::{OutputArgs, ProveArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::proof::{self, Wanted, prove};
use crate::record::prove::ProveRecord;
use crate::record::{Kind, SCHEMA};
use crate::recorded_run;
use crate::screen;
use crate::shell;
use iowhy_view::document::Detail;

const OTHER_MACHINE: &str =
    "prove it there, or add `--force` to learn what the repair would gain on this one";

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
        just_now: false,
    };
    let outputs = Outputs::open_apart(options, &[&args.record])?;
    let (record, warnings) = recorded_run::record(&args.record, args.force, OTHER_MACHINE)?;
    let proof = prove(&record.profile, &record.findings, &wanted, args.seed, outputs.quiet());
    if proof.baseline.is_none()
        && let Some(reason) = &proof.reason
        && proof.findings.iter().all(|f| !f.failed && f.measured.is_none())
    {
        const AGAIN: &str = "profile the program again: `sudo iowhy --record-calls --json RECORD -- CMD`, or `--prove` instead";
        return Err(Problem::refused(format!("`{}` cannot be replayed: {reason}", args.record.display()))
            .hint(proof.hint.as_deref().unwrap_or(AGAIN)));
    }
    let ending = proof::ending(&proof);
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
