//! `iowhy attach PID`: watches a program that runs already, for a while or to its end, and says where its time went.

use std::path::Path;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::units;
use iowhy_watch::session::Subject;

use crate::cli::{AttachArgs, OutputArgs};
use crate::command::Ending;
use crate::command::observation::Observation;
use crate::output::{self, Outputs};
use crate::progress::Countdown;
use crate::screen;
use iowhy_view::document::Detail;

/// Below this hardly anything is seen.
const LEAST: Duration = Duration::from_millis(10);

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals; outputs that cannot be written.
pub fn run(args: &AttachArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let pid = pid(&args.pid)?;
    let limit = args.time.as_deref().map(limit).transpose()?;
    output::all_different(&[
        ("--json", options.json.as_deref()),
        ("--flamegraph", args.sight.flamegraph.as_deref()),
    ])?;
    let inputs: Vec<&Path> = args.sight.model.as_deref().into_iter().collect();
    let outputs = Outputs::open_apart(options, &inputs)?;
    let observation = Observation::prepare(&args.sight)?;
    let subject = Subject::Process { pid, limit };
    let profile = {
        let _countdown = Countdown::start(limit, &format!("watching process {pid}"), outputs.quiet());
        observation.watch(&subject)?
    };
    let name = profile.processes.first().map(|process| process.name.as_str()).unwrap_or_default();
    let named = format!("process {pid} {name}").trim_end().to_owned();
    let (record, folded) = observation.finish(profile, named, None);
    outputs.warn(&record.warnings);
    let printed = outputs
        .finish(&screen::text(&screen::watch::chapter(&record, Detail::Screen), output::width()), &record);
    match (folded, printed) {
        (Ok(()), Ok(())) => Ok(Ending::done()),
        (Err(problem), Ok(())) | (Ok(()), Err(problem)) => Err(problem),
        (Err(first), Err(second)) => {
            output::complain(&first);
            Err(second)
        }
    }
}

/// The number of a process.
fn pid(text: &str) -> Result<u32, Problem> {
    // The kernel counts up to 2^22; a larger number is no process, whatever it was meant to be.
    match text.parse::<u32>() {
        Ok(pid) if pid > 0 && i32::try_from(pid).is_ok() => Ok(pid),
        _ => Err(Problem::refused(format!("`attach {text}`: not the number of a process")).hint(
            if text.chars().any(char::is_alphabetic) && !text.contains(char::is_whitespace) {
                format!("`pidof {text}` tells the numbers of programs of that name")
            } else {
                "`ps -e` lists the processes with their numbers".to_owned()
            },
        )),
    }
}

/// How long to watch.
fn limit(text: &str) -> Result<Duration, Problem> {
    let limit = units::parse_duration("--time", text)?;
    if limit < LEAST {
        return Err(Problem::refused(format!("`--time {text}` is too short to see anything"))
            .hint("give at least `--time 10ms`, better some seconds"));
    }
    Ok(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_positive_numbers_are_processes() {
        assert_eq!(pid("1"), Ok(1));
        for text in ["0", "-1", "", "x", "1.5", "4294967296", "2147483648", " 1"] {
            let problem = pid(text).unwrap_err();
            assert!(problem.exit_code() == 2 && problem.hint.is_some(), "{problem}");
        }
        assert!(pid("postgres").unwrap_err().hint.unwrap().contains("pidof postgres"));
    }
}
