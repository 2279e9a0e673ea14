//! `iowhy attach PID`: watches a program that runs already, for a while or to its end, and says where its time went.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_watch::session::Subject;

use crate::cli::{AttachArgs, OutputArgs};
use crate::ending::Ending;
use crate::observation::Observation;
use crate::output::{self, Outputs};
use crate::progress::Countdown;
use crate::screen;
use iowhy_view::document::Detail;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals; outputs that cannot be written.
pub fn run(args: &AttachArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let (pid, limit) = (args.pid, args.time);
    output::all_different(&[
        ("--json", options.json.as_deref()),
        ("--flamegraph", args.sight.flamegraph.as_deref()),
    ])?;
    let inputs: Vec<&Path> = args.sight.model.as_deref().into_iter().collect();
    let outputs = Outputs::open_apart(options, &inputs)?;
    let observation = Observation::prepare(&args.sight, false)?;
    let subject = Subject::Process { pid, limit };
    let profile = {
        let _countdown = Countdown::start(limit, &format!("watching process {pid}"), outputs.quiet());
        observation.watch(&subject)?
    };
    let name = profile.processes.first().map(|process| process.name.as_str()).unwrap_or_default();
    let named = format!("process {pid} {name}").trim_end().to_owned();
    let (record, flamegraph) = observation.finish(profile, named, None);
    outputs.warn(&record.warnings);
    let printed = outputs
        .finish(&screen::text(&screen::watch::chapter(&record, Detail::Screen), output::width()), &record);
    match (flamegraph, printed) {
        (Ok(()), Ok(())) => Ok(Ending::done()),
        (Err(problem), Ok(())) | (Ok(()), Err(problem)) => Err(problem),
        (Err(first), Err(second)) => {
            output::complain(&first);
            Err(second)
        }
    }
}
