//! `iowhy replay RECORD --on DIR,DIR`: the recorded calls of a program on other file systems, without the program.
//!
//! Arguments, progress and the record; `iowhy_replay::trial` plans and measures. The program's files are opened read-only where it ran;
//! in each directory there are unnamed scratch files of the same sizes, or a scratch tree.

use std::path::Path;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_diagnose::findings::Facts;
use iowhy_linux::mounts;
use iowhy_probe::interrupt;
use iowhy_replay::trial::{self, Places};
use iowhy_view::document::Detail;

use crate::analyzer::Analyzer;
use crate::cli::{OutputArgs, ReplayArgs};
use crate::ending::{self, Ending};
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::proof::cgroup_helper;
use crate::record::replay::{Elsewhere, ReplayRecord};
use crate::record::{Kind, SCHEMA};
use crate::recorded_run;
use crate::run_as;
use crate::screen;
use crate::shell;

const OTHER_MACHINE: &str = "add `--force`: the calls are replayed on file systems of this one, and their recorded times are of that one";
const AGAIN: &str = "profile the program again: `sudo iowhy --record-calls --json RECORD -- CMD`";

/// Runs the command.
///
/// # Errors
/// Refusals: a bad option; a DIR that is no directory; no record of a profiled program, or one of another machine; a record without
/// recorded calls.
pub fn run(args: &ReplayArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    // Before an output is made, which an interrupt would leave empty.
    interrupt::install();
    let table = mounts::read();
    let on = args.on.iter().map(|directory| checked(directory, &table)).collect::<Result<Vec<_>, _>>()?;
    let outputs = Outputs::open_apart(options, &[&args.record])?;
    let (record, warnings) = recorded_run::record(&args.record, args.force, OTHER_MACHINE)?;
    let account = Analyzer::new().account(&record.profile);
    let directories: Vec<(String, bool)> =
        on.iter().map(|there| (there.directory.clone(), in_memory(&there.file_system))).collect();
    let places = Places {
        facts: &Facts::new(&record.profile, &account, None),
        findings: &record.findings,
        directories: &directories,
        rounds: args.rounds,
        seed: args.seed,
    };
    let line = Progress::new(outputs.quiet());
    let mut progress = |share: f64, left: Duration, arm: &str| line.at(share, left, arm);
    let files = run_as::files()?;
    let replayed = trial::replay_on(&places, &cgroup_helper::command, &mut progress);
    drop(files);
    let mut elsewhere = replayed.map_err(|reason| {
        Problem::refused(format!("`{}` cannot be replayed: {reason}", args.record.display())).hint(AGAIN)
    })?;
    for (place, there) in elsewhere.places.iter_mut().skip(1).zip(&on) {
        place.file_system = Some(there.file_system.clone()).filter(|name| !name.is_empty());
    }
    let ending = ending_of(&elsewhere);
    let record = ReplayRecord {
        schema: SCHEMA,
        kind: Kind::Replay,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        subject: record.subject,
        warnings,
        elsewhere,
    };
    outputs.warn(&record.warnings);
    let shown = screen::text(&screen::replay::chapter(&record, Detail::Screen), output::width());
    outputs.finish(&shown, &record)?;
    Ok(ending)
}

/// A directory of `--on`.
struct There {
    directory: String,
    /// Type of its file system; empty where the mount table does not tell.
    file_system: String,
}

fn checked(directory: &str, table: &[mounts::Mount]) -> Result<There, Problem> {
    let refused = |why: String| {
        Problem::refused(format!("--on `{directory}`: {why}"))
            .hint("name a directory on the file system to be tried: `--on /mnt/a,/mnt/b`")
    };
    let path = Path::new(directory).canonicalize().map_err(|error| refused(error.to_string()))?;
    if !path.is_dir() {
        return Err(refused("it is no directory".to_owned()));
    }
    let name = path.to_str().ok_or_else(|| refused("its path is no text".to_owned()))?;
    let file_system = mounts::above(table, &path).map_or_else(String::new, |mount| mount.file_system.clone());
    Ok(There { directory: name.to_owned(), file_system })
}

fn in_memory(file_system: &str) -> bool {
    matches!(file_system, "tmpfs" | "ramfs" | "hugetlbfs")
}

/// An interrupt, and a replay that failed, make the exit code 1.
fn ending_of(elsewhere: &Elsewhere) -> Ending {
    let interrupted = interrupt::requested().then(ending::interrupted);
    let failed = elsewhere.places.iter().filter(|place| place.directory.is_some()).find(|place| place.failed);
    let failed = failed.map(|place| {
        let (name, why) = (place.directory.as_deref(), place.reason.as_deref());
        Problem::failed(format!(
            "the replay in `{}` failed: {}",
            name.unwrap_or_default(),
            why.unwrap_or("no reason is known")
        ))
    });
    Ending::from_reasons(interrupted.into_iter().chain(failed))
}
