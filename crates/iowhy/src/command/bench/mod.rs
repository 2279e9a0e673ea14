//! `iowhy bench`: one workload or a sweep over lists, on one target or on several side by side; with `--ranks` together with other
//! processes.

mod processes;
mod ranks;

use std::path::Path;
use std::time::Duration;

use iowhy_core::cell::CellRun;
use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::units::{Bytes, typed_size};
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Method, Workload};
use iowhy_path::analysis;
use iowhy_path::costs::Costs;
use iowhy_path::plan::{self, PathPlan};
use iowhy_path::targets::{calibration_targets, harness_target};
use iowhy_probe::campaign::{self, Cell, Effort, Outcome};
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Needs, Target};
use iowhy_probe::{environment, interrupt};

use crate::cli::bench::Methods;
use crate::cli::{BenchArgs, OutputArgs};
use crate::cross_check::{CrossCheckPlan, Watched};
use crate::ending::Ending;
use crate::fio::{self, Imported};
use crate::measurement;
use crate::output::{self, Outputs};
use crate::pending::Pending;
use crate::plan::sweep::{DEFAULT_REGION_BYTES, Sweep, split_targets};
use crate::progress::Progress;
use crate::record::Record;
use crate::screen;
use crate::{ruler, targets};
use iowhy_view::document::Detail;

/// Time per cell when nobody says how long or how precisely.
const DEFAULT_RUNTIME: Duration = Duration::from_secs(3);
/// Time per cell at most when only a precision is asked for.
const PRECISION_RUNTIME: Duration = Duration::from_secs(5);
/// Longer arm of the interval at which a cell is known well enough, when nobody says.
const DEFAULT_PRECISION: f64 = 0.02;
/// Slices that a cell's time is cut into.
const ROUNDS: u32 = 12;
/// Rounds before a cell may be called known: looking after each round gives luck many chances, and with fewer an
/// interval of 95 % covers less.
const MIN_ROUNDS: u32 = 8;
/// Passes of `--once`.
const PASSES: u32 = 5;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals; a cell that fails is in the record instead.
pub fn run(args: &BenchArgs, output: &OutputArgs) -> Result<Ending, Problem> {
    if args.method == Some(Methods::Print) {
        output::print(&method_list())?;
        return Ok(Ending::done());
    }
    let imported = args.fio.as_deref().map(|path| job(path, args)).transpose()?;
    let args = imported.as_ref().map_or(args, |imported| &imported.args);
    if args.of_ranks() {
        return ranks::run(args, output);
    }
    if args.rank.is_some() {
        return Err(Problem::refused(
            "`--rank` numbers a process among others, and there are none without `--ranks`",
        )
        .hint("`--rank N --ranks=M`"));
    }
    let sweep = Sweep::from_args(args)?;
    output::all_different(&[
        ("--json", output.json.as_deref()),
        ("--export-fio", args.export_fio.as_deref()),
    ])?;
    let outputs = Outputs::open_apart(output, &args.fio.as_deref().into_iter().collect::<Vec<_>>())?;
    let exported = export(args)?;
    interrupt::install();
    let progress = Progress::new(outputs.quiet());
    let targets = targets(args, &sweep, &progress)?;
    let targets: Vec<&Target> = targets.iter().collect();
    outputs.spare(&targets)?;
    if let Some(exported) = &exported {
        exported.spare(&targets)?;
    }

    let mut warnings = Vec::new();
    let workloads = workloads(&sweep, &targets, &mut warnings)?;
    targets::announce_destruction(&targets, &progress);
    let ruler = ruler::measure(&targets, sweep.seed)?;
    let measured = measure(workloads, &targets, &sweep, args.layers, &progress)?;
    drop(progress);

    let mut record = measurement::record(&targets, ruler, &measured.outcome, sweep.seed);
    record.warnings.extend(warnings);
    let notes = imported.iter().flat_map(|imported| &imported.notes);
    record.warnings.extend(notes.map(|note| Warning::new("fio", note.clone())));
    fill(&mut record, &measured, &targets);
    let Measured { outcome, costs, watched } = measured;
    let account =
        |run: &CellRun| Some(costs.layers(run, &targets.first()?.facts)).filter(|_| costs.model.is_some());
    watched.fill(&mut record, outcome.cells.iter().filter_map(|runs| runs.first()), account);
    record.warnings.extend(measurement::busy_machine(&record.cells));
    outputs.warn(&record.warnings);
    let ending = Ending::for_cells(&record);
    let shown = screen::measured::bench::chapter(&record, args.layers, Detail::Screen);
    let screen = screen::text(&shown, output::width());
    outputs.finish(&screen, &record)?;
    if let Some(exported) = exported {
        exported.write(fio::job_of(&record).as_bytes())?;
    }
    Ok(ending)
}

/// The job of fio that is to be taken over.
fn job(path: &Path, args: &BenchArgs) -> Result<Imported, Problem> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::refused(format!("`--fio {name}`: {error}")).hint("name a job file of fio")
    })?;
    let jobs = fio::read(&text, &name)?;
    let names = || jobs.iter().map(|job| format!("`{}`", job.name)).collect::<Vec<_>>().join(", ");
    let chosen = match (&args.job, jobs.as_slice()) {
        (None, [only]) => only,
        (None, _) => {
            return Err(Problem::refused(format!("`{name}` holds {} jobs: {}", jobs.len(), names()))
                .hint("choose one with `--job NAME`: iowhy measures one at a time"));
        }
        (Some(section), _) => jobs.iter().find(|job| job.name == *section).ok_or_else(|| {
            Problem::refused(format!("`--job {section}`: `{name}` has no such job"))
                .hint(format!("it has {}", names()))
        })?,
    };
    fio::import(chosen, args.clone())
}

/// The file of `--export-fio`, opened before anything is measured.
fn export(args: &BenchArgs) -> Result<Option<Pending>, Problem> {
    let Some(path) = args.export_fio.as_deref() else { return Ok(None) };
    let inputs: Vec<&Path> = args.fio.as_deref().into_iter().collect();
    output::spare_inputs("--export-fio", path, &inputs)?;
    Pending::open("--export-fio", path).map(Some)
}

/// Finds or makes the targets. A permission to destroy that names none of them is refused: somebody mistyped.
fn targets(args: &BenchArgs, sweep: &Sweep, progress: &Progress) -> Result<Vec<Target>, Problem> {
    let needs = Needs {
        scratch_bytes: scratch_bytes(sweep),
        write: sweep.direction.writes(),
        destroy_data: args.destroy_data.clone(),
    };
    let specs = split_targets(&args.target, |path| Path::new(path).exists());
    if args.destroy_data.is_some() {
        one_to_destroy(&specs)?;
    }
    let targets = specs
        .iter()
        .map(|spec| targets::resolve(spec, &needs, progress))
        .collect::<Result<Vec<Target>, Problem>>()?;
    match &args.destroy_data {
        Some(name) if targets.iter().all(|target| target.facts.name != *name) => Err(Problem::refused(
            format!("`--destroy-data {name}` does not name the target"),
        )
        .hint("leave it out: a directory gets a scratch file; or give the device itself as the target, too")),
        _ => Ok(targets),
    }
}

/// Only one target of a run can be written over: the permission names one, and each target is a run of its own.
fn one_to_destroy(specs: &[String]) -> Result<(), Problem> {
    let users: Vec<&str> = specs
        .iter()
        .map(String::as_str)
        .filter(|spec| !spec.contains(',') && !Path::new(spec).is_dir())
        .collect();
    let [first, second, ..] = users.as_slice() else { return Ok(()) };
    Err(Problem::refused(format!(
        "`--destroy-data` names one target, and `{}` is {} of them: only one can be written over in a run",
        users.join(":"),
        users.len()
    ))
    .hint(format!(
        "to write to all at once as a stripe: `--destroy-data stripe:64k:{0} stripe:64k:{0}`; or one run each: \
         `--destroy-data {first} {first}`, then `--destroy-data {second} {second}`",
        users.join(",")
    )))
}

fn scratch_bytes(sweep: &Sweep) -> u64 {
    sweep.size_bytes.unwrap_or(DEFAULT_REGION_BYTES)
}

/// What the campaign brought: the sweep's cells, and what they are split with: our own cost, and the model of the ladder
/// when it was asked for.
struct Measured {
    outcome: Outcome,
    costs: Costs,
    watched: Watched,
}

/// Measures the sweep, and in the same rounds our own cost and, if asked for, the ladder under the first target.
fn measure(
    workloads: Vec<Vec<Workload>>,
    targets: &[&Target],
    sweep: &Sweep,
    layers: bool,
    progress: &Progress,
) -> Result<Measured, Problem> {
    let null = harness_target()?;
    let below = if layers { Some(calibration_targets(targets[0])?) } else { None };
    let mut calibration = match &below {
        Some(below) => plan::calibration(targets[0], below, scratch_bytes(sweep), sweep.seed),
        None => PathPlan::default(),
    };
    let mut cells: Vec<Cell<'_>> = workloads.into_iter().map(|arms| cell(arms, targets, sweep)).collect();
    let swept = cells.len();
    // Our own cost is real time: it has no place beside virtual time, where every run is the same.
    if targets.iter().all(|target| target.script().is_none()) {
        cells.push(overhead_cell(&null, sweep.pattern));
    }
    let measured = cells.len();
    let effort = effort(sweep, measured as u32);
    cells.append(&mut calibration.cells);

    let profiling = match layers {
        true => CrossCheckPlan::make(&cells, |index| index < swept, per_cell(sweep) * cells.len() as u32),
        false => CrossCheckPlan::none(),
    };
    let after = profiling.takes();
    let mut outcome =
        campaign::run(&cells, effort, &mut |p| progress.at(p.share, p.remaining + after, p.cell));
    let watched = profiling.run(&cells, (sweep.seed, 1.0, Duration::ZERO), progress, |_, _| false);
    let calibrated = Outcome { cells: outcome.cells.split_off(measured), ..outcome };
    let own: Vec<CellRun> = outcome.cells.split_off(swept).into_iter().flatten().collect();
    let context = analysis::Context {
        target: targets[0],
        environment: &environment::environment(targets[0]),
        memcpy: None,
        page_bytes: rustix::param::page_size() as u64,
        seed: sweep.seed,
    };
    let costs = analysis::costs_for(&calibration, &calibrated, &context, (&outcome.cells, own.first()));
    Ok(Measured { costs, outcome, watched })
}

/// The cell that measures the overhead of iowhy itself on the target `null`, which answers at once, with the pattern of the others: drawing an offset is part of it.
fn overhead_cell(target: &Target, pattern: Pattern) -> Cell<'_> {
    let mut workload = Workload::reads(Method::Null, CacheState::None, 4096, 1 << 30);
    workload.pattern = pattern;
    Cell {
        key: "null".to_owned(),
        arms: vec![(workload, target)],
        bounds: Bounds { wall: Duration::from_millis(2), requests_per_thread: u64::MAX },
        listed: None,
        group: None,
        request_bytes: None,
    }
}

/// Puts the cells into the record. The ladder's model is that of the first target alone.
fn fill(record: &mut Record, measured: &Measured, targets: &[&Target]) {
    let costs = &measured.costs;
    record.ruler.harness_per_request = costs.harness;
    let read_ahead_bytes = record.environment.read_ahead_bytes;
    let plain = costs.without_model();
    for runs in &measured.outcome.cells {
        for (index, (run, target)) in runs.iter().zip(targets).enumerate() {
            let own_model = index == 0 && costs.model.is_some();
            let mut layers =
                if index == 0 { costs.layers(run, &target.facts) } else { plain.layers(run, &target.facts) };
            if own_model {
                layers.notes.extend(larger_than_the_ladder(run, target));
            }
            record.cells.push(measurement::cell_record(run, target, read_ahead_bytes, record.seed, layers));
        }
    }
}

/// What a copy costs depends on what the CPU's caches hold, so the fitted costs are those of what the ladder moves over.
fn larger_than_the_ladder(run: &CellRun, target: &Target) -> Option<String> {
    let w = &run.workload;
    let ladder = plan::calibration_bytes(w.region_bytes);
    let cached = w.state == CacheState::Warm && target.script().is_none();
    (cached && w.region_bytes > ladder + ladder / 4).then(|| {
        format!(
            "the ladder's cached reads move over {}, this cell over {}: fitted costs of `cache` and `copy` are too low \
             where the CPU's caches hold the one and not the other; `--size {}` moves both over the same",
            Bytes(ladder),
            Bytes(w.region_bytes),
            typed_size(ladder)
        )
    })
}

/// For each cell one workload per target. All targets run the same list.
fn workloads(
    sweep: &Sweep,
    targets: &[&Target],
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Vec<Workload>>, Problem> {
    let lists = targets
        .iter()
        .map(|target| sweep.cells(&target.facts, warnings))
        .collect::<Result<Vec<_>, Problem>>()?;
    let least = lists.iter().map(Vec::len).min().unwrap_or(0);
    if lists.iter().any(|list| list.len() != least) {
        return Err(Problem::refused("these targets cannot run the same cells side by side")
            .hint("give `--method` and `--state` that hold for each of them"));
    }
    Ok((0..least).map(|i| lists.iter().map(|list| list[i].clone()).collect()).collect())
}

fn cell<'a>(arms: Vec<Workload>, targets: &[&'a Target], sweep: &Sweep) -> Cell<'a> {
    let first = &arms[0];
    let key = format!(
        "{}-{}-{}-{}-t{}-d{}",
        first.method.id(),
        first.pattern,
        first.state.id(),
        first.block_bytes,
        first.threads,
        first.depth
    );
    // A cold block may be asked for once a round; a mapped page faults once.
    let once = sweep.once || arms.iter().any(|w| w.state == CacheState::Cold || w.method.mapped());
    let requests = arms.iter().map(|w| w.blocks() / w.threads.max(1) as u64).min().unwrap_or(1);
    let wall = if sweep.once { Duration::MAX } else { per_cell(sweep) / ROUNDS };
    let bounds = Bounds { wall, requests_per_thread: if once { requests } else { u64::MAX } };
    Cell {
        key,
        arms: arms.into_iter().zip(targets.iter().copied()).collect(),
        bounds,
        listed: None,
        group: None,
        request_bytes: None,
    }
}

fn per_cell(sweep: &Sweep) -> Duration {
    let default = if sweep.precision.is_some() { PRECISION_RUNTIME } else { DEFAULT_RUNTIME };
    sweep.runtime.unwrap_or(default)
}

fn effort(sweep: &Sweep, cells: u32) -> Effort {
    // A time alone is used up; a precision, given or not, ends a cell early.
    let precision = match (sweep.runtime, sweep.precision) {
        (_, Some(precision)) => precision,
        (Some(_), None) => 0.0,
        (None, None) => DEFAULT_PRECISION,
    };
    let (least, most) = if sweep.once { (PASSES, PASSES) } else { (MIN_ROUNDS, ROUNDS) };
    Effort {
        min_rounds: least,
        max_rounds: most,
        // The rounds are the bound; preparation comes on top of the measured time.
        time: per_cell(sweep) * cells * 10,
        precision,
        seed: sweep.seed,
    }
}

fn method_list() -> String {
    Method::ALL.iter().map(|m| format!("{:18} {}\n", m.id(), m.about())).collect()
}
