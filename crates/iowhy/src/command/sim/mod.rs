//! `iowhy sim`: a workload or a trace on a machine that is described, in virtual time; or a sweep over what it could be.

mod guard;
mod lists;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use iowhy_core::nearest::did_you_mean;
use iowhy_core::problem::Problem;
use iowhy_core::units::{Bytes, refused_value};
use iowhy_core::warning::Warning;
use iowhy_sim::machine::{self, DeviceKind, JoinKind, Machine, ReadAheadKind, UNLIMITED};
use iowhy_sim::sweep::{self, Axis, Settings};
use rayon::prelude::*;

use self::guard::{PATIENCE, fits, named, quick, spoken};
use crate::calibration;
use crate::cli::{MachineArg, MachineOrList, OutputArgs, SimArgs, WorkloadArg, WorkloadOrList};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::sim::{MachineRecord, PointRecord, SimRecord, settings};
use crate::screen;
use crate::simulation::{Demand, Watch, read_text};
use iowhy_view::document::Detail;

/// Points beyond this are refused before anything is run.
const MAX_POINTS: u128 = 1_000_000;
/// Time to measure this machine, for `--machine host`.
const MEASURING: Duration = Duration::from_secs(8);
/// Columns of a screen at most.
const MAX_COLUMNS: usize = 100;

/// Runs the command.
///
/// # Errors
/// Refusals of a machine, a workload, a trace or a sweep that cannot be; a trace that breaks off.
pub fn run(args: &SimArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let machine = match &args.machine {
        MachineOrList::List => return print(&lists::machines(), options),
        MachineOrList::Keys => return print(&lists::keys(), options),
        MachineOrList::Machine(machine) => machine,
    };
    let workload = match &args.workload {
        Some(WorkloadOrList::List) => return print(&lists::workloads(), options),
        Some(WorkloadOrList::Workload(workload)) => Some(workload),
        None => None,
    };
    let (set, axes) = (&args.set, &args.sweep);
    distinct(axes)?;
    let demand = Demand::from_args(args, workload)?;
    // A name that ships and a text of keys are no files, and so never the output.
    let described = match machine {
        MachineArg::File(path) => Some(path.as_path()),
        _ => None,
    };
    let keys = match workload {
        Some(WorkloadArg::File(path)) => Some(path.as_path()),
        _ => None,
    };
    let inputs: Vec<&Path> = [described, keys, args.trace.as_deref()].into_iter().flatten().collect();
    let outputs = Outputs::open_apart(options, &inputs)?;
    demand.check()?;
    let progress = Progress::new(outputs.quiet());
    let mut warnings = Vec::new();
    let base = base_machine(machine, args.seed, &progress, &mut warnings)?;
    let base = sweep::machine_at(&base, set)?;

    let mut record = SimRecord::new(describe(&base, set), demand.words(), demand.in_full(), args.seed);
    let (outcomes, told) = run_points(&base, axes, set, &demand, args, &progress)?;
    drop(progress);
    record.points = outcomes;
    warnings.extend(told);
    // What a model does not know needs no saying where it was given.
    let given = |key: &str| {
        set.iter().map(|(path, _)| path).chain(axes.iter().map(|a| &a.path)).any(|path| path == key)
    };
    let open = |note: &&String| !(note.contains("cache.bytes") && given("cache.bytes"));
    warnings.extend(base.notes.iter().filter(open).map(|note| Warning::new("machine-note", note.clone())));
    record.warnings = warnings;
    outputs.warn(&record.warnings);
    let chapter = screen::sim::chapter(&record, Detail::Screen);
    outputs.finish(&screen::text(&chapter, output::width().min(MAX_COLUMNS)), &record)?;
    Ok(Ending::done())
}

fn print(list: &lists::List, options: &OutputArgs) -> Result<Ending, Problem> {
    Outputs::open(options)?.finish(&list.screen, &list.record)?;
    Ok(Ending::done())
}

/// Runs all points: the first alone, to know how long the others will take.
fn run_points(
    base: &Machine,
    axes: &[Axis],
    asked: &Settings,
    demand: &Demand,
    args: &SimArgs,
    progress: &Progress,
) -> Result<(Vec<PointRecord>, Vec<Warning>), Problem> {
    let count = sweep::count(axes);
    if count > MAX_POINTS {
        return Err(Problem::refused(format!(
            "the sweep has {count} points: more than {MAX_POINTS} are not run"
        ))
        .hint("give fewer values, or larger steps"));
    }
    if count > 1 && !demand.repeats() {
        return Err(Problem::refused(
            "a trace from stdin can be read once, and a sweep needs it for every point",
        )
        .hint("write it to a file first"));
    }
    let points: Vec<Settings> = (0..count).map(|index| sweep::point(axes, index)).collect();
    // Every point is looked at before the first is run: a slip in the last value is not worth the wait.
    for set in &points {
        sweep::machine_at(base, set)
            .and_then(|machine| machine.check())
            .map_err(|problem| named(problem, set))?;
    }
    let mut warnings = idle(base, &points, asked, demand);
    if count > 1 {
        warnings.extend(demand.planned_times());
    }
    let alone = Watch::new(demand.trace(), args.force, Some(progress));
    let beside_others = Watch::new(demand.trace(), args.force, None);
    let one = |set: &Settings, warnings: &mut Vec<Warning>, watch: &Watch<'_>| {
        let machine = sweep::machine_at(base, set)?;
        let outcome =
            demand.run(&machine, args.seed, warnings, watch).map_err(|problem| named(problem, set))?;
        Ok::<_, Problem>((outcome.time_ns, PointRecord::new(set, &outcome)))
    };
    let lanes = rayon::current_num_threads().max(1);
    fits(base, &points, demand, lanes, args.force)?;
    if count > 1 && !args.force {
        quick(base, &points, demand, args.seed, lanes, &beside_others)?;
    }
    let begun = Instant::now();
    let Some((first, others)) = points.split_first() else { return Ok((Vec::new(), warnings)) };
    let mut done = vec![one(first, &mut warnings, &alone)?];
    let took = begun.elapsed();
    let rest = took.mul_f64(others.len() as f64 / lanes.min(others.len().max(1)) as f64);
    if rest > PATIENCE && !args.force {
        return Err(Problem::refused(format!(
            "the sweep has {count} points and would take about {}: the first took {:.1} s, and {lanes} run side by side",
            spoken(rest),
            took.as_secs_f64()
        ))
        .hint("give fewer values or a shorter workload, or `--force` to run it all"));
    }
    let finished = AtomicUsize::new(1);
    let run_one = |set: &Settings| {
        let result = one(set, &mut Vec::new(), &beside_others);
        let share = (finished.fetch_add(1, Ordering::Relaxed) + 1) as f64 / points.len() as f64;
        progress.at(share, rest.mul_f64((1.0 - share).max(0.0)), "simulating");
        result
    };
    done.extend(others.par_iter().map(run_one).collect::<Result<Vec<_>, Problem>>()?);
    let (times, mut records): (Vec<u64>, Vec<PointRecord>) = done.into_iter().unzip();
    mark(&mut records, &times, axes);
    Ok((records, warnings))
}

/// Marks the points that a reader looks for.
fn mark(records: &mut [PointRecord], times: &[u64], axes: &[Axis]) {
    if let [axis] = axes
        && axis.rises()
    {
        for (record, mark) in records.iter_mut().zip(sweep::marks(times)) {
            record.mark(mark);
        }
    } else {
        // Over several keys or over words only the best means anything: neighbours are not in a row.
        for (record, best) in records.iter_mut().zip(sweep::bests(times)) {
            record.mark(sweep::Mark { best, ..sweep::Mark::default() });
        }
    }
}

/// Keys that were given and have an effect at no point.
fn idle(base: &Machine, points: &[Settings], asked: &Settings, demand: &Demand) -> Vec<Warning> {
    let swept = points.first().into_iter().flatten();
    let why =
        |set: &Settings, path: &str| sweep::machine_at(base, set).ok()?.without_effect(path, demand.method());
    let given = asked.iter().map(|key| ("--set", key)).chain(swept.map(|key| ("--sweep", key)));
    given
        .filter_map(|(option, (path, _))| {
            let first = why(points.first()?, path)?;
            points.iter().all(|set| why(set, path).is_some()).then(|| {
                Warning::new("setting-without-effect", format!("`{option} {path}` has no effect: {first}"))
            })
        })
        .collect()
}

/// The machine that is named: measured, shipped, or in a file.
fn base_machine(
    machine: &MachineArg,
    seed: u64,
    progress: &Progress,
    warnings: &mut Vec<Warning>,
) -> Result<Machine, Problem> {
    match machine {
        MachineArg::Host => {
            let model = calibration::measure_host(MEASURING, seed, progress, warnings)?;
            Ok(Machine { name: "host".to_owned(), ..Machine::from(&model) })
        }
        MachineArg::Shipped(shipped) => Machine::from_toml(shipped.text, shipped.name),
        MachineArg::File(path) => {
            let name = path.display().to_string();
            if !path.exists() {
                return Err(no_machine(&name));
            }
            Machine::from_toml(&read_text("--machine", path)?, &name)
        }
    }
}

fn no_machine(name: &str) -> Problem {
    let names: Vec<&str> = machine::shipped().iter().map(|shipped| shipped.name).collect();
    let near = did_you_mean(name, names.iter().copied());
    let hint = format!("{near}these ship: {}; `--machine list` says what they are", names.join(", "));
    refused_value("--machine", name, "neither a file nor a machine that ships", hint)
}

/// Each key is swept once.
fn distinct(axes: &[Axis]) -> Result<(), Problem> {
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index].iter().any(|other| other.path == axis.path) {
            return Err(Problem::refused(format!("--sweep: `{}` is swept twice", axis.path))
                .hint("give all its values in one `--sweep`"));
        }
    }
    Ok(())
}

/// The machine in a few lines.
fn describe(machine: &Machine, set: &Settings) -> MachineRecord {
    let m = machine;
    let mut parts = Vec::new();
    let model = if m.device.model.is_empty() { m.device.kind.id() } else { &m.device.model };
    let mut storage = format!("{} x {model}", m.device.count);
    match m.volume.kind {
        JoinKind::Single => {}
        JoinKind::Stripe => storage.push_str(&format!(", stripe of {} sectors", m.volume.interleave)),
        other => storage.push_str(&format!(", {}", other.id())),
    }
    storage.push_str(&format!(", {} depth {}", m.scheduler.order.id(), m.scheduler.depth));
    if m.bus.bytes_per_second > 0 {
        storage.push_str(&format!(", bus {:.0} MB/s", m.bus.bytes_per_second as f64 / 1e6));
    }
    parts.push(storage);
    let mut above = match m.cache.bytes {
        0 => "no cache".to_owned(),
        UNLIMITED => format!("unlimited cache in blocks of {}", Bytes(m.cache.block_bytes)),
        bytes => format!(
            "cache {} in blocks of {}, {}",
            Bytes(bytes),
            Bytes(m.cache.block_bytes),
            m.cache.policy.id()
        ),
    };
    if m.pool.buffers > 0 {
        above.push_str(&format!(", pool of {} buffers", m.pool.buffers));
    }
    if m.read_ahead.kind != ReadAheadKind::None {
        above.push_str(&format!(", read-ahead {} {}", m.read_ahead.kind.id(), Bytes(m.read_ahead.bytes)));
    }
    above.push_str(&format!(", layout {}", m.layout.kind.id()));
    parts.push(above);
    if m.device.kind == DeviceKind::Null {
        parts.push("the device answers at once".to_owned());
    }
    MachineRecord { name: m.name.clone(), about: m.about.clone(), parts, set: settings(set) }
}
