//! `iowhy -- CMD ARG...`: runs a program, watches it, and says where its time went.
//!
//! The program keeps its stdin, stdout, stderr and its exit code; the report goes to stderr or a file. What goes wrong
//! with the report never changes what the program did: it is said, and the program's code still comes.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_probe::interrupt;
use iowhy_watch::child;
use iowhy_watch::session::Subject;

use crate::cli::{OutputArgs, PathArgs, WatchArgs};
use crate::ending::Ending;
use crate::observation::{Observation, invocation};
use crate::output::{self, Report, complain};
use crate::prediction::Calibrate;
use crate::proof;
use crate::rank;
use crate::record::run_time::RunTimeRecord;
use crate::run_as;
use crate::screen;
use crate::shell;
use iowhy_view::document::Detail;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals, all before the program runs.
pub fn run(args: &WatchArgs, path_options: &PathArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let [program, arguments @ ..] = args.program.as_slice() else {
        return Err(Problem::refused("no command given after `--`")
            .hint("give a program: `iowhy -- CMD ARG...`; to measure a path leave out `--`"));
    };
    if let Some(name) = path_options.first_given() {
        return Err(Problem::refused(format!(
            "{name} is an option of `iowhy [PATH]`, not of `iowhy -- CMD`"
        ))
        .hint(
            "use one of them: `iowhy [OPTIONS] [PATH]` measures a path, `iowhy -- CMD` profiles a program",
        ));
    }
    run_as::refuse_shared_terminal()?;
    let identity = run_as::identity();
    if let Err(refusal) = child::find(program, identity) {
        return Ok(Ending::not_started(refusal.problem, refusal.code));
    }
    if let Some(machine) = args.sight.model.as_deref() {
        for (option, path) in [("--json", options.json.as_deref()), ("--output", args.output.as_deref())] {
            path.map_or(Ok(()), |path| output::spare_inputs(option, path, &[machine]))?;
        }
    }
    let named = shell::line(args.program.iter().cloned());
    let report = Report::open(args.output.as_deref(), &args.sight.profile_files(), options, &named)?;
    let observation =
        Observation::prepare(&args.sight, args.prove, &|option| format!("iowhy {option} -- CMD"))?;
    if args.prove {
        // Before the program runs, so that no signal between its end and the proof is lost.
        interrupt::install();
    }
    if let Some(own) = rank::own().filter(|_| !report.quiet()) {
        output::note(&rank::words(own));
    }
    let subject = Subject::Command {
        program: program.clone(),
        arguments: arguments.to_vec(),
        identity: identity.cloned(),
    };
    let watched = match observation.watch(&subject, &|| {}) {
        Ok(watched) => watched,
        // The program did not run: a shell's code where the command is to blame, else ours.
        Err(refusal) => return Ok(Ending::not_started(refusal.problem, refusal.code)),
    };
    let ending = Ending::program(watched.profile.end);
    let mut told = invocation(named.clone(), run_as::ran_as());
    told.warnings.extend(observation.unwritten());
    if let Some(mut record) = RunTimeRecord::new(&watched.profile, told) {
        report.warn(&record.warnings);
        let root =
            if rustix::process::geteuid().is_root() { "iowhy --as-root" } else { "sudo iowhy --as-root" };
        record
            .limitations
            .iter_mut()
            .for_each(|limitation| limitation.fix = Some(format!("{root} -- {named}")));
        let screen = screen::text(&screen::run_time::chapter(&record), report.width());
        return Ok(completed(ending, [report.finish(&screen, &record)]));
    }
    let (mut record, profiles) =
        observation.finish(watched, named, run_as::ran_as(), Calibrate::Ended, report.quiet());
    report.warn(&record.warnings);
    let mut shown = screen::text(&screen::watch::chapter(&record, Detail::Screen), report.width());
    if args.prove {
        interrupt::check_terminal();
        shown.push('\n');
        shown.push_str(&proof::append(&mut record, report.width(), report.quiet()));
    }
    Ok(completed(ending, [profiles, report.finish(&shown, &record)]))
}

/// The program's ending, unless it is success and an output failed.
fn completed(ending: Ending, written: impl IntoIterator<Item = Result<(), Problem>>) -> Ending {
    let failed: Vec<Problem> = written.into_iter().filter_map(Result::err).collect();
    if ending.code() == 0 {
        return Ending::from_reasons(failed);
    }
    failed.iter().for_each(complain);
    ending
}

/// Whether a word that is no path is the name of a program in PATH: then `iowhy -- WORD` was probably meant.
pub fn is_program(word: &str) -> bool {
    !word.contains('/') && !Path::new(word).exists() && child::find(word.as_ref(), None).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_double_dash_is_seen_only_where_the_word_is_no_path() {
        assert!(is_program("sh"));
        for word in ["/bin/sh", "no-such-program-anywhere", "", "src"] {
            assert!(!is_program(word), "{word}");
        }
    }
}
