//! `iowhy history [PATH...]`: the records that were saved by name, or those in files and folders.

mod entry;
mod figure;
mod found;

use std::path::PathBuf;

use iowhy_core::environment::Environment;
use iowhy_core::problem::Problem;

use crate::cli::{HistoryArgs, OutputArgs};
use crate::ending::Ending;
use crate::machine;
use crate::output::{self, Outputs};
use crate::record::history::{EntryRecord, HistoryRecord};
use crate::record::{Kind, SCHEMA};
use crate::screen;
use crate::store;

/// Runs the command.
///
/// # Errors
/// A name that is not there; a place that cannot be read.
pub fn run(args: &HistoryArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    if !args.paths.is_empty() && !args.remove.is_empty() {
        return Err(Problem::refused(
            "`--remove` is about records that are kept by name, and files were named",
        )
        .hint("leave the files out; a file of yours is removed with rm(1)"));
    }
    let outputs = Outputs::open(options)?;
    // All names are looked up before the first one goes.
    for name in &args.remove {
        store::resolve_all(format!("@{name}").as_ref())?;
    }
    for name in &args.remove {
        store::remove(name)?;
    }
    let here = machine::here();
    let mut records = match args.paths.as_slice() {
        [] => store::all()?.into_iter().map(|saved| entry::kept(saved, &here)).collect(),
        paths => in_files(paths, &here)?,
    };
    let all = records.len();
    records.retain(|record| args.all || record.this_machine != Some(false));
    let record = HistoryRecord {
        schema: SCHEMA,
        kind: Kind::History,
        iowhy: env!("CARGO_PKG_VERSION"),
        command: "history",
        folder: if args.paths.is_empty() { Some(store::folder()?) } else { None },
        paths: args.paths.clone(),
        of_other_machines: all - records.len(),
        records,
    };
    outputs.finish(&screen::text(&screen::history::chapter(&record), output::width()), &record)?;
    Ok(Ending::done())
}

/// The records in files and directories, oldest first.
pub(super) fn in_files(paths: &[PathBuf], here: &Environment) -> Result<Vec<EntryRecord>, Problem> {
    let mut entries: Vec<EntryRecord> = Vec::new();
    for path in paths {
        entries.extend(found::records(path)?.into_iter().map(|file| entry::found(file, here)));
    }
    entries.sort_by(|a, b| (a.kept_unix_s, &a.path).cmp(&(b.kept_unix_s, &b.path)));
    entries.dedup_by(|a, b| a.path == b.path);
    Ok(entries)
}
