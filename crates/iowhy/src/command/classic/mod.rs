//! `iowhy classic [NAME] [PATH]`: the five published experiments. The experiments are in `iowhy-classic`; here are options,
//! profiles, records and the exit code.

use std::sync::Arc;
use std::time::Duration;

use iowhy_classic::lab::{Lab, World};
use iowhy_classic::published::{self, Experiment, Table};
use iowhy_classic::report::{MeasuredCell, Report};
use iowhy_core::cell::CellRun;
use iowhy_core::problem::Problem;
use iowhy_core::profile::{Profile, Tier};
use iowhy_linux::identity::FilesAs;
use iowhy_probe::campaign::Cell;
use iowhy_probe::interrupt;
use iowhy_probe::target::{Needs, Target};
use iowhy_view::document::Detail;
use iowhy_watch::perf;

use crate::analyzer::Analyzer;
use crate::cli::{ClassicArgs, Experiments, OutputArgs};
use crate::cross_check;
use crate::ending::{self, Ending};
use crate::measurement;
use crate::output::{self, Outputs};
use crate::plan::sweep::split_targets;
use crate::progress::Progress;
use crate::record::classic::ClassicRecord;
use crate::record::lists::{ClassicsFound, ExperimentEntry, ExperimentProblem, Listed, Offer, TableEntry};
use crate::record::{CellRecord, Kind, SCHEMA, Seen};
use crate::screen;
use crate::{run_as, shell, targets};

/// Columns of a screen at most.
const MAX_COLUMNS: usize = 100;
/// Time for an experiment when nobody says how much, and with `--quick`.
const DEFAULT_TIME: Duration = Duration::from_secs(20);
const QUICK_TIME: Duration = Duration::from_secs(6);
/// The rate of the question of 1999: do you need direct I/O for it?
const DEFAULT_RATE: f64 = 100.0 * 1_048_576.0;

/// Runs the command.
///
/// # Errors
/// A refusal for a name that is none and for targets that cannot be measured; outputs that cannot be written.
pub fn run(args: &ClassicArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let experiments: Vec<Experiment> = match args.name {
        Experiments::List => return list(options),
        Experiments::All => published::names().map(published::load).collect::<Result<_, Problem>>()?,
        Experiments::One(name) => vec![published::load(name)?],
    };
    let all = args.name == Experiments::All;
    let time = args.time.unwrap_or(if args.quick { QUICK_TIME } else { DEFAULT_TIME });
    let rate = args.rate.map_or(DEFAULT_RATE, |bytes| bytes as f64);
    let outputs = Outputs::open(options)?;
    interrupt::install();
    let progress = Progress::new(outputs.quiet());
    let spec = args.target.as_deref().unwrap_or(".");
    let specs = split_targets(spec, |path| std::path::Path::new(path).exists());
    let world = Here { progress: &progress, outputs: &outputs };
    let lab = Lab {
        spec,
        specs: &specs,
        time,
        size: args.size,
        rate,
        queue_read_ahead: args.queue_read_ahead,
        files: args.files,
        null_block: args.null_block.as_deref(),
        block_size_test: args.block_size_test,
        members: args.members.as_deref(),
        keep: args.keep.as_deref(),
        seed: args.seed,
        world: &world,
    };
    let mut records: Vec<ClassicRecord> = Vec::new();
    let mut problems: Vec<(&str, Problem)> = Vec::new();
    for experiment in &experiments {
        if interrupt::requested() {
            break;
        }
        match iowhy_classic::run(&lab, experiment) {
            Ok(report) => records.push(record(experiment, report, args.seed)),
            // What one of them cannot do here is no reason to lose the others.
            Err(problem) if all => problems.push((&experiment.name, problem)),
            Err(problem) => return Err(problem),
        }
    }
    drop(progress);
    let width = output::width().min(MAX_COLUMNS);
    let text =
        |record: &ClassicRecord| screen::text(&screen::classic::chapter(record, Detail::Screen), width);
    let screens: Vec<String> = records.iter().map(text).collect();
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
    finish(outputs, all, &screens.join("\n"), &records, &problems)?;
    Ok(Ending::from_reasons(reasons(&records, &problems)))
}

/// One experiment as it is; `all` as a list with the problems of those that could not be run.
fn finish(
    outputs: Outputs,
    all: bool,
    screen: &str,
    records: &[ClassicRecord],
    problems: &[(&str, Problem)],
) -> Result<(), Problem> {
    if let ([only], false) = (records, all) {
        return outputs.finish(screen, only);
    }
    let problem = |(name, problem): &(&str, Problem)| ExperimentProblem {
        name: (*name).to_owned(),
        message: problem.message.clone(),
        hint: problem.hint.clone(),
    };
    let found =
        ClassicsFound { experiments: records.to_vec(), problems: problems.iter().map(problem).collect() };
    outputs.finish(screen, &Listed::new(Kind::Classics, shell::line(std::env::args_os()), found))
}

/// What the experiments need of this command.
struct Here<'a> {
    progress: &'a Progress,
    outputs: &'a Outputs,
}

impl World for Here<'_> {
    fn resolve(&self, spec: &str, needs: &Needs) -> Result<Target, Problem> {
        targets::resolve(spec, needs, self.progress)
    }

    fn spare(&self, targets: &[&Target]) -> Result<(), Problem> {
        self.outputs.spare(targets)
    }

    fn at(&self, share: f64, left: Duration, doing: &str) {
        self.progress.at(share, left, doing);
    }

    fn files_of_the_user(&self) -> Result<FilesAs, Problem> {
        run_as::files()
    }

    fn no_stacks(&self) -> Option<String> {
        let rights = perf::rights();
        (rights.tier < Tier::Stacks).then(|| {
            let why = rights
                .limitations
                .iter()
                .find(|limitation| limitation.id == "kernel-stacks")
                .or(rights.limitations.first());
            why.map_or("no kernel stacks", |limitation| limitation.sentence.as_str()).to_owned()
        })
    }

    fn profile(&self, cell: &Cell<'_>, seed: u64) -> Result<Option<(CellRun, Profile)>, String> {
        cross_check::observe(cell, seed, &Arc::new(Analyzer::new()))
    }
}

/// The record of an experiment.
fn record(experiment: &Experiment, report: Report, seed: u64) -> ClassicRecord {
    let cells: Vec<CellRecord> = report.cells.into_iter().map(cell_record).collect();
    let mut warnings = report.warnings;
    warnings.extend(measurement::busy_machine(&cells));
    ClassicRecord {
        schema: SCHEMA,
        kind: Kind::Classic,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        date: experiment.date.clone(),
        machine: experiment.machine.clone(),
        environment: report.environment,
        targets: report.targets,
        warnings,
        rounds: report.rounds,
        interrupted: report.interrupted,
        seed,
        rows: report.rows,
        verdicts: report.verdicts,
        not_done: report.not_done,
        cells,
        sections: report.sections,
    }
}

fn cell_record(cell: MeasuredCell) -> CellRecord {
    let seen = Seen {
        bytes_verdict: cell.bytes_verdict,
        verdict: cell.verdict.id().to_owned(),
        members: cell.member_names,
        ..Seen::default()
    };
    let mut record = CellRecord::new(&cell.run, &cell.target, cell.summary, seen);
    if cell.listed {
        record.pattern = "listed".to_owned();
    }
    record
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
    reasons.extend(records.iter().flat_map(|record| ending::failed_cells(&record.cells)));
    reasons
}

fn list(options: &OutputArgs) -> Result<Ending, Problem> {
    let experiments: Vec<Experiment> =
        published::names().map(published::load).collect::<Result<_, Problem>>()?;
    let outputs = Outputs::open(options)?;
    let table = |t: &Table| TableEntry { id: t.id.clone(), title: t.title.clone(), rows: t.rows.len() };
    let entry = |e: &Experiment| ExperimentEntry {
        name: e.name.clone(),
        title: e.title.clone(),
        source: e.source.clone(),
        date: e.date.clone(),
        machine: e.machine.clone(),
        tables: e.tables.iter().map(table).collect(),
    };
    let list = Offer::Experiments { experiments: experiments.iter().map(entry).collect() };
    let record = Listed::new(Kind::List, shell::line(std::env::args_os()), list);
    let text = screen::text(&screen::classic::list(&experiments), output::width().min(MAX_COLUMNS));
    outputs.finish(&text, &record)?;
    Ok(Ending::done())
}
