//! `iowhy attach PID --when 'sync>50ms'`: times the calls of a program, waits for slow ones, and says where they spent their time.

use iowhy_core::problem::Problem;
use iowhy_core::tails::SlowCall;
use iowhy_core::text::visible;
use iowhy_core::units;
use iowhy_diagnose::classify::{Classifier, Operation};
use iowhy_diagnose::tails::OPERATIONS;
use iowhy_linux::process::task;
use iowhy_linux::reader::Reader;
use iowhy_watch::machine::{Condition, watch_calls};

use crate::cli::{AttachArgs, OutputArgs, When};
use crate::ending::Ending;
use crate::observation::invocation;
use crate::output::{self, Outputs};
use crate::progress::Countdown;
use crate::record::tails::TailsRecord;
use crate::screen;
use iowhy_view::document::Detail;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals; outputs that cannot be written.
pub fn run(args: &AttachArgs, when: &When, options: &OutputArgs) -> Result<Ending, Problem> {
    let pid = args.pid;
    let outputs = Outputs::open(options)?;
    let classifier = Classifier::new();
    let names = OPERATIONS.map(Operation::id);
    let place = |operation: Operation| OPERATIONS.iter().position(|other| *other == operation);
    let condition = Condition {
        operations: &names,
        operation_of: &|name| place(classifier.operation_of_call(name)),
        operation: place(when.operation).unwrap_or_default(),
        longer_than: when.longer_than,
        count: args.count.unwrap_or(1),
    };
    let quiet = outputs.quiet();
    // Asked before, as it may be gone when the watch ends, and after, as it may have executed another program.
    let name = || task::name(&mut Reader::new(), pid, pid);
    let before = name();
    let profile = {
        let doing = format!(
            "timing the calls of process {pid}, waiting for {}>{}",
            when.operation.id(),
            units::time(when.longer_than.as_nanos() as f64)
        );
        let _countdown = Countdown::start(args.time, &doing, quiet);
        watch_calls(pid, args.time, &condition, &mut |call| tell(call, quiet || args.time.is_some()))?
    };
    let name = name().or(before).unwrap_or_default();
    let subject = format!("process {pid} {name}").trim_end().to_owned();
    let record = TailsRecord::new(profile, invocation(subject, None));
    outputs.warn(&record.warnings);
    let screen = screen::text(&screen::tails::chapter(&record, Detail::Screen), output::width());
    outputs.finish(&screen, &record).map(|()| Ending::done())
}

/// A line as soon as a slow call is known, where the report may come much later.
fn tell(call: &SlowCall, quiet: bool) {
    if quiet {
        return;
    }
    let file = call.file.as_ref().map(|file| format!(", {}", visible(file))).unwrap_or_default();
    anstream::eprintln!(
        "{}  {} {} by {} ({}){file}",
        screen::tails::time_of_day(call.began_unix_ns),
        call.call,
        units::time(call.time_ns as f64),
        visible(&call.thread),
        call.tid
    );
}
