//! `iowhy attach PID`: watches a program that runs already, for a while or to its end, and says where its time went; with `--prove` it
//! replays the record of that while. `--when` is another command.

use std::cell::OnceCell;
use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_probe::interrupt;
use iowhy_watch::session::Subject;

use crate::cli::{AttachArgs, OutputArgs};
use crate::ending::Ending;
use crate::observation::Observation;
use crate::output::{self, Outputs};
use crate::prediction::Calibrate;
use crate::progress::Countdown;
use crate::proof;
use crate::rank;
use crate::screen;
use iowhy_view::document::Detail;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals; outputs that cannot be written.
pub fn run(args: &AttachArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let (pid, limit) = (args.pid, args.time);
    let json = [("--json", options.json.as_deref())];
    output::all_different(&[&json[..], &args.sight.profile_files()].concat())?;
    let inputs: Vec<&Path> = args.sight.model.as_deref().into_iter().collect();
    let outputs = Outputs::open_apart(options, &inputs)?;
    let observation =
        Observation::prepare(&args.sight, args.prove, &|option| format!("iowhy attach {pid} {option}"))?;
    if let Some(own) = rank::own().filter(|_| !outputs.quiet()) {
        output::note(&rank::words(own));
    }
    let subject = Subject::Process { pid, limit };
    let watched = {
        let countdown = OnceCell::new();
        let begun = || {
            countdown
                .get_or_init(|| Countdown::start(limit, &format!("watching process {pid}"), outputs.quiet()));
        };
        observation.watch(&subject, &begun)?
    };
    let name = watched.profile.processes.first().map(|process| process.name.as_str()).unwrap_or_default();
    let named = format!("process {pid} {name}").trim_end().to_owned();
    let (mut record, profiles) = observation.finish(watched, named, None, Calibrate::Live, outputs.quiet());
    outputs.warn(&record.warnings);
    let mut shown = screen::text(&screen::watch::chapter(&record, Detail::Screen), output::width());
    if args.prove {
        // A signal before this ended the watch.
        interrupt::install();
        shown.push('\n');
        shown.push_str(&proof::append(&mut record, output::width(), outputs.quiet()));
    }
    let printed = outputs.finish(&shown, &record);
    output::first_of([printed, profiles].into_iter().filter_map(Result::err).collect())?;
    Ok(record.proof.as_ref().map_or_else(Ending::done, proof::ending))
}
