//! `iowhy classic [NAME] [PATH]`: the five published experiments, then, now and as modelled. One file an experiment; here
//! is what they share. What may not enter: arithmetic of models (explain's), layout of text (render's).

mod freebsd;
mod lab;
mod minix;
mod mmap;
mod netbsd;
mod sg;

use std::time::Duration;

use iowhy_classic::published::{self, Experiment};
use iowhy_core::problem::Problem;
use iowhy_probe::interrupt;
use serde_json::json;

use crate::cli::{ClassicArgs, OutputArgs};
use crate::command::classic::lab::Lab;
use crate::command::ending::{self, Ending};
use crate::command::shared;
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::SCHEMA;
use crate::record::classic::ClassicRecord;
use crate::render::classic as render;

/// Time for an experiment when nobody says how much, and with `--quick`.
const DEFAULT_BUDGET: Duration = Duration::from_secs(20);
const QUICK_BUDGET: Duration = Duration::from_secs(6);
/// The rate of the question of 1999: do you need direct I/O for it?
const DEFAULT_RATE: f64 = 100.0 * 1_048_576.0;

/// Runs the command.
///
/// # Errors
/// A refusal for a name that is none and for targets that cannot be measured; outputs that cannot be written.
pub fn run(args: &ClassicArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let name = args.name.as_deref().unwrap_or("list");
    if name == "list" {
        return list(options);
    }
    let experiments: Vec<Experiment> = match name {
        "all" => published::names().map(published::load).collect::<Result<_, Problem>>()?,
        one => vec![published::load(one)?],
    };
    let budget = args.time.unwrap_or(if args.quick { QUICK_BUDGET } else { DEFAULT_BUDGET });
    let rate = args.rate.map_or(DEFAULT_RATE, |bytes| bytes as f64);
    let outputs = Outputs::open(options)?;
    interrupt::install();
    let progress = Progress::new(outputs.quiet());
    let lab = Lab {
        spec: args.target.as_deref().unwrap_or("."),
        budget,
        size: args.size,
        rate,
        queue_read_ahead: args.queue_read_ahead,
        files: args.files,
        null_block: args.null_block.as_deref(),
        block_size_test: args.block_size_test,
        members: args.members.as_deref(),
        keep: args.keep.as_deref(),
        seed: args.seed,
        progress: &progress,
        outputs: &outputs,
    };
    let mut records: Vec<ClassicRecord> = Vec::new();
    let mut problems: Vec<(&str, Problem)> = Vec::new();
    for experiment in &experiments {
        if interrupt::requested() {
            break;
        }
        match one(&lab, experiment) {
            Ok(record) => records.push(record),
            // What one of them cannot do here is no reason to lose the others.
            Err(problem) if name == "all" => problems.push((&experiment.name, problem)),
            Err(problem) => return Err(problem),
        }
    }
    drop(progress);
    let width = output::width();
    let screens: Vec<String> = records.iter().map(|record| render::screen(record, width)).collect();
    for record in &records {
        outputs.warn(&record.warnings);
    }
    if records.is_empty()
        && let Some((_, problem)) = problems.pop()
    {
        return Err(problem);
    }
    for (name, problem) in &problems {
        output::complain(&Problem { message: format!("{name}: {problem}"), ..problem.clone() });
    }
    let ending = Ending::from_reasons(reasons(&records, &problems));
    let screen = screens.join("\n");
    match records.as_slice() {
        [only] if name != "all" => outputs.finish(&screen, only)?,
        several => {
            let record = json!({
                "schema": SCHEMA,
                "iowhy": env!("CARGO_PKG_VERSION"),
                "command": lab::command(),
                "experiments": several,
                "problems": problems
                    .iter()
                    .map(|(name, problem)| json!({"name": name, "message": problem.message, "hint": problem.hint}))
                    .collect::<Vec<_>>(),
            });
            outputs.finish(&screen, &record)?;
        }
    }
    Ok(ending)
}

fn one(lab: &Lab<'_>, experiment: &Experiment) -> Result<ClassicRecord, Problem> {
    match experiment.name.as_str() {
        "minix-1989" => minix::run(lab, experiment),
        "linux-sg-1999" => sg::run(lab, experiment),
        "freebsd-2006" => freebsd::run(lab, experiment),
        "linux-mmap-1999" => mmap::run(lab, experiment),
        _ => netbsd::run(lab, experiment),
    }
}

/// What makes the exit code 1. A cell that failed does; one that the target cannot do by nature was never planned.
fn reasons(records: &[ClassicRecord], problems: &[(&str, Problem)]) -> Vec<Problem> {
    let mut reasons = Vec::new();
    if interrupt::requested() || records.iter().any(|record| record.interrupted) {
        reasons.push(ending::interrupted());
    }
    if !problems.is_empty() {
        let names: Vec<&str> = problems.iter().map(|(name, _)| *name).collect();
        let all = records.len() + problems.len();
        let message =
            format!("{} of {all} experiments could not be run here: {}", names.len(), names.join(", "));
        reasons.push(Problem::failed(message).hint(format!("`iowhy classic {}` shows one alone", names[0])));
    }
    reasons.extend(records.iter().flat_map(|record| shared::failed_cells(&record.cells)));
    reasons
}

fn list(options: &OutputArgs) -> Result<Ending, Problem> {
    let experiments: Vec<Experiment> =
        published::names().map(published::load).collect::<Result<_, Problem>>()?;
    let outputs = Outputs::open(options)?;
    let entries: Vec<_> = experiments
        .iter()
        .map(|e| {
            json!({
                "name": e.name, "title": e.title, "source": e.source, "date": e.date, "machine": e.machine,
                "tables": e.tables.iter().map(|t| json!({"id": t.id, "title": t.title, "rows": t.rows.len()}))
                    .collect::<Vec<_>>(),
            })
        })
        .collect();
    let record = json!({
        "schema": SCHEMA,
        "iowhy": env!("CARGO_PKG_VERSION"),
        "command": lab::command(),
        "experiments": entries,
    });
    outputs.finish(&render::list(&experiments, output::width()), &record)?;
    Ok(Ending::done())
}
