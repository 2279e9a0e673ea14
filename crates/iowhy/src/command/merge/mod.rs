//! `iowhy merge run-*.json`: one account over the ranks of a parallel job. Records are read one after the other, and of each only a
//! summary is kept. Nothing is measured.
//!
//! A file that cannot be used costs its own rank, and is named; only contradictions between files are refused: two that are of one
//! rank, or files of two jobs.

mod gather;
mod load;

use std::path::{Path, PathBuf};
use std::time::Instant;

use iowhy_core::problem::Problem;
use iowhy_core::units::{count, counted};
use iowhy_view::document::Detail;

use self::gather::Gathered;
use crate::cli::{MergeArgs, OutputArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::merge::MergeRecord;
use crate::record::watch::Exit;
use crate::screen;
use crate::screen::merge::{named, ranges};
use crate::store;

/// Runs the command.
///
/// # Errors
/// Refusals for options; no file that can be used; two files of one rank, or of two jobs.
pub fn run(args: &MergeArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let mut files: Vec<PathBuf> = Vec::new();
    for word in &args.records {
        files.extend(store::resolve_all(word)?);
    }
    let inputs: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    let outputs = Outputs::open_apart(options, &inputs)?;
    let record = merged(&files, args.threshold, outputs.quiet())?;
    outputs.warn(&record.warnings);
    let screen = screen::text(&screen::merge::chapter(&record, Detail::Screen), output::width());
    outputs.finish(&screen, &record)?;
    Ok(Ending::from_reasons(reasons(&record)))
}

/// The account over the ranks in these files.
fn merged(files: &[PathBuf], threshold: f64, quiet: bool) -> Result<MergeRecord, Problem> {
    let progress = Progress::new(quiet);
    let began = Instant::now();
    let mut gathered = Gathered::default();
    for (number, file) in files.iter().enumerate() {
        let share = number as f64 / files.len() as f64;
        if number > 0 {
            let left = began.elapsed().mul_f64((1.0 - share) / share);
            progress.at(share, left, &format!("reading {}", file.display()));
        }
        gathered.add(file)?;
    }
    gathered.finish(threshold)
}

/// What makes the account incomplete, or tells of a rank that did not end well.
fn reasons(record: &MergeRecord) -> Vec<Problem> {
    let mut reasons = Vec::new();
    if let Some(first) = record.left_out.first() {
        let files = counted(record.left_out.len() as u64, "file was", "files were");
        reasons.push(Problem::failed(format!("{files} left out: {}", first.reason)));
    }
    if !record.missing.is_empty() {
        let of = record.ranks_of_job.unwrap_or_default();
        reasons.push(
            Problem::failed(format!("no record of {} of {}", named(&record.missing), count(of)))
                .hint("what they wrote to stderr says why; a record is written when its program ends"),
        );
    }
    let unlike = record.endings.len() > 1;
    for ending in record.endings.iter().filter(|ending| !ending.is_success()) {
        if unlike || matches!(ending.exit, Some(Exit::Signal(_))) {
            reasons.push(Problem::failed(format!("{}: {}", named(&ranges(&ending.ranks)), ending.words())));
        }
    }
    reasons
}
