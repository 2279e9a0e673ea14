//! `iowhy sim`: a workload or a trace on a machine that is described, in virtual time; or a sweep over what it could be.

mod lists;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::request::Request;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_probe::environment::memory_available_bytes;
use iowhy_sim::laws;
use iowhy_sim::machine::{self, DeviceKind, JoinKind, Machine, ReadAheadKind, UNLIMITED, Value};
use iowhy_sim::outcome::Outcome;
use iowhy_sim::sweep::{self, Axis, Settings};
use iowhy_sim::workload::{Load, Workload};
use iowhy_trace::{Format, Options, Trace};
use rayon::prelude::*;

use crate::cli::{OutputArgs, SimArgs};
use crate::command::{Ending, path};
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::sim::{MachineRecord, PointRecord, SimRecord, settings};
use crate::render;

/// A sweep that takes longer is only run with `--yes`.
const PATIENCE: Duration = Duration::from_secs(60);
/// Share of the available memory that may be filled.
const MEMORY_SHARE: f64 = 0.8;
/// Requests that are run to know how long a sweep will take, and blocks that they ask for.
const TRIAL_REQUESTS: u64 = 20_000;
const TRIAL_BLOCKS: u64 = 1 << 20;
/// Points beyond this are refused before anything is run.
const MOST_POINTS: u128 = 1_000_000;
/// Time to measure this machine, for `--machine host`.
const MEASURING: Duration = Duration::from_secs(8);
/// A description larger than this is none.
const MOST_TEXT_BYTES: u64 = 1 << 20;

/// Runs the command.
///
/// # Errors
/// Refusals of a machine, a workload, a trace or a sweep that cannot be; a trace that breaks off.
pub fn run(args: &SimArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    if let Some(list) = lists::asked(args) {
        let outputs = Outputs::open(options)?;
        outputs.finish(&list.screen, &list.record)?;
        return Ok(Ending::Done);
    }
    let set = assignments("--set", &args.set)?;
    let axes = axes(args)?;
    let demand = Demand::of(args)?;
    // A name that ships and a text of keys are no files, and so never the output.
    let files =
        [Some(Path::new(&args.machine)), args.workload.as_deref().map(Path::new), args.trace.as_deref()];
    let inputs: Vec<&Path> = files.into_iter().flatten().collect();
    let outputs = Outputs::open_apart(options, &inputs)?;
    let progress = Progress::new(outputs.quiet());
    let mut warnings = Vec::new();
    let base = base_machine(args, &progress, &mut warnings)?;
    let base = sweep::machine_at(&base, &set)?;

    let mut record = SimRecord::new(describe(&base, &set), demand.words(), args.seed);
    let (outcomes, told) = run_points(&base, &axes, &demand, args, &progress)?;
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
    let keys: Vec<&str> = axes.iter().map(|axis| axis.path.as_str()).collect();
    outputs.finish(&render::sim::screen(&record, &keys, output::width()), &record)?;
    Ok(Ending::Done)
}

/// What is asked of the machine.
pub(in crate::command) enum Demand {
    Workload(Box<Workload>, String),
    Trace { path: PathBuf, options: Options, closed: Option<u32>, most: u64 },
}

impl Demand {
    fn of(args: &SimArgs) -> Result<Demand, Problem> {
        if args.workload.is_some()
            && let Some(option) = of_trace(args)
        {
            return Err(Problem::refused(format!(
                "`{option}` belongs to `--trace`, and this is a `--workload`"
            ))
            .hint("leave it out; a workload has `readers`, `requests` and more: `--workload list`"));
        }
        match (&args.workload, &args.trace) {
            (Some(text), _) => Ok(Demand::Workload(Box::new(workload(text)?), text.clone())),
            (None, Some(path)) => {
                let format = match &args.format {
                    None => None,
                    Some(id) => Some(Format::from_id(id).ok_or_else(|| {
                        Problem::refused(format!("--format `{id}` is no format of traces"))
                            .hint("leave it out: the beginning of the file tells it")
                    })?),
                };
                let options = Options { format, columns: args.columns.clone(), ..Options::default() };
                let most = args.requests.unwrap_or(u64::MAX);
                Ok(Demand::Trace { path: path.clone(), options, closed: args.closed, most })
            }
            (None, None) => {
                Err(Problem::refused("nothing to simulate: neither `--workload` nor `--trace` is given")
                    .hint("for example `--workload random-4k`; `--workload list` shows names and keys"))
            }
        }
    }

    /// A workload, by its text, its name, or a file.
    ///
    /// # Errors
    /// What the text says wrong.
    pub(in crate::command) fn of_workload(text: &str) -> Result<Demand, Problem> {
        Ok(Demand::Workload(Box::new(workload(text)?), text.to_owned()))
    }

    /// A trace in a file, at its own times or by clients.
    pub(in crate::command) fn of_trace(path: PathBuf, closed: Option<u32>) -> Demand {
        Demand::Trace { path, options: Options::default(), closed, most: u64::MAX }
    }

    /// The workload, when it is one.
    pub(in crate::command) fn workload(&self) -> Option<&Workload> {
        match self {
            Demand::Workload(workload, _) => Some(workload),
            Demand::Trace { .. } => None,
        }
    }

    /// What it is, for people.
    pub(in crate::command) fn words(&self) -> String {
        match self {
            Demand::Workload(_, text) => text.clone(),
            Demand::Trace { path, closed, .. } => {
                let how = closed.map_or_else(|| "at its own times".to_owned(), |n| format!("by {n} clients"));
                format!("{}, {how}", path.display())
            }
        }
    }

    /// Whether it can be run more than once.
    fn repeats(&self) -> bool {
        !matches!(self, Demand::Trace { path, .. } if path.as_os_str() == "-")
    }

    /// Runs it once.
    fn run(&self, machine: &Machine, seed: u64, warnings: &mut Vec<Warning>) -> Result<Outcome, Problem> {
        self.run_first(machine, seed, u64::MAX, warnings)
    }

    /// Runs the first so many of its requests.
    ///
    /// # Errors
    /// What the machine or the trace refuses.
    pub(in crate::command) fn run_first(
        &self,
        machine: &Machine,
        seed: u64,
        first: u64,
        warnings: &mut Vec<Warning>,
    ) -> Result<Outcome, Problem> {
        let outcome = match self {
            Demand::Workload(workload, _) if first < workload.requests() => {
                iowhy_sim::run(machine, workload.load(seed).first(first), seed)?
            }
            Demand::Workload(workload, _) => iowhy_sim::run(machine, workload.load(seed), seed)?,
            Demand::Trace { path, options, closed, most } => {
                let mut feed = Feed::open(path, options, first.min(*most))?;
                feed.check(machine, *closed, warnings)?;
                let mut load = Load::replay(&mut feed);
                if let Some(clients) = closed {
                    load = load.closed(*clients);
                }
                let outcome = iowhy_sim::run(machine, load, seed)?;
                feed.close(warnings)?;
                outcome
            }
        };
        // A broken law is our fault, and its numbers are worth nothing.
        laws::check(&outcome).map_err(|law| {
            Problem::failed(format!("the simulator broke its own law: {law}"))
                .hint("please report this with the command line")
        })?;
        Ok(outcome)
    }
}

/// The first option that was given and only a trace can use.
fn of_trace(args: &SimArgs) -> Option<&'static str> {
    [
        ("--closed", args.closed.is_some()),
        ("--requests", args.requests.is_some()),
        ("--format", args.format.is_some()),
        ("--columns", args.columns.is_some()),
    ]
    .into_iter()
    .find_map(|(name, given)| given.then_some(name))
}

/// Requests of a trace, one by one; what went wrong is kept.
struct Feed {
    trace: Trace,
    batch: Vec<Request>,
    at: usize,
    left: u64,
    error: Option<Problem>,
}

impl Feed {
    fn open(path: &Path, options: &Options, most: u64) -> Result<Feed, Problem> {
        let trace = iowhy_trace::open(path, options)?;
        let mut feed = Feed { trace, batch: Vec::new(), at: 0, left: most, error: None };
        // The first batch: some files say only there what they are.
        feed.refill();
        match feed.error.take() {
            Some(problem) => Err(problem),
            None => Ok(feed),
        }
    }

    fn refill(&mut self) {
        self.at = 0;
        if let Err(error) = self.trace.next_batch(&mut self.batch) {
            self.error = Some(error.into());
        }
    }

    /// Says what the trace cannot mean on this machine.
    fn check(
        &self,
        machine: &Machine,
        closed: Option<u32>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Problem> {
        if !self.trace.has_times() && closed.is_none() {
            return Err(Problem::refused(format!("`{}` has no times to replay it at", self.trace.name()))
                .hint("`--closed 1` replays it one request after the other"));
        }
        if self.trace.below_page_cache() == Some(true) && machine.cache.bytes > 0 {
            let message = format!(
                "`{}` was recorded below a page cache: what that held is not in it, so the simulated cache finds less to hold",
                self.trace.name()
            );
            warnings.push(
                Warning::new("trace-below-cache", message)
                    .next("`--set cache.bytes=0` simulates what lies below"),
            );
        }
        if !self.trace.has_sizes() {
            warnings.push(Warning::new(
                "trace-without-sizes",
                "the trace has no sizes: every request touches one block",
            ));
        }
        Ok(())
    }

    /// What went wrong, and what was lost on the way.
    fn close(self, warnings: &mut Vec<Warning>) -> Result<(), Problem> {
        for loss in self.trace.losses().list() {
            let message = format!("{} of the trace: {}", loss.count, loss.reason);
            warnings.push(Warning::new("trace-loss", message));
        }
        self.error.map_or(Ok(()), Err)
    }
}

impl Iterator for Feed {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.left == 0 {
            return None;
        }
        if self.at == self.batch.len() {
            if self.error.is_some() || self.batch.is_empty() {
                return None;
            }
            self.refill();
        }
        let request = self.batch.get(self.at).copied()?;
        self.at += 1;
        self.left -= 1;
        Some(request)
    }
}

/// Runs all points: the first alone, to know how long the others will take.
fn run_points(
    base: &Machine,
    axes: &[Axis],
    demand: &Demand,
    args: &SimArgs,
    progress: &Progress,
) -> Result<(Vec<PointRecord>, Vec<Warning>), Problem> {
    let count = sweep::count(axes);
    if count > MOST_POINTS {
        return Err(Problem::refused(format!(
            "the sweep has {count} points: more than {MOST_POINTS} are not run"
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
    let mut warnings = Vec::new();
    let one = |set: &Settings, warnings: &mut Vec<Warning>| {
        let machine = sweep::machine_at(base, set)?;
        let outcome = demand.run(&machine, args.seed, warnings).map_err(|problem| named(problem, set))?;
        Ok::<_, Problem>((outcome.time_ns, PointRecord::new(set, &outcome)))
    };
    let lanes = rayon::current_num_threads().max(1);
    fits(base, &points, demand, lanes)?;
    if count > 1 && !args.yes {
        quick(base, &points, demand, args.seed, lanes)?;
    }
    let begun = Instant::now();
    let Some((first, others)) = points.split_first() else { return Ok((Vec::new(), warnings)) };
    let mut done = vec![one(first, &mut warnings)?];
    let took = begun.elapsed();
    let rest = took.mul_f64(others.len() as f64 / lanes.min(others.len().max(1)) as f64);
    if rest > PATIENCE && !args.yes {
        return Err(Problem::refused(format!(
            "the sweep has {count} points and would take about {}: the first took {:.1} s, and {lanes} run side by side",
            spoken(rest),
            took.as_secs_f64()
        ))
        .hint("give fewer values or a shorter workload, or `--yes` to run it all"));
    }
    let finished = AtomicUsize::new(1);
    let run_one = |set: &Settings| {
        let result = one(set, &mut Vec::new());
        let share = (finished.fetch_add(1, Ordering::Relaxed) + 1) as f64 / points.len() as f64;
        progress.at(share, rest.mul_f64((1.0 - share).max(0.0)), "simulating");
        result
    };
    done.extend(others.par_iter().map(run_one).collect::<Result<Vec<_>, Problem>>()?);
    let (times, mut records): (Vec<u64>, Vec<PointRecord>) = done.into_iter().unzip();
    if axes.len() == 1 {
        for (record, mark) in records.iter_mut().zip(sweep::marks(&times)) {
            record.mark(mark);
        }
    } else if let Some(best) = times.iter().enumerate().min_by_key(|(_, time)| **time).map(|(index, _)| index)
    {
        // Over several keys only the best means anything: neighbours are not in a row.
        if records.len() > 1 {
            records[best].mark(sweep::Mark { best: true, ..sweep::Mark::default() });
        }
    }
    Ok((records, warnings))
}

/// Refuses what would fill the memory: as many of the largest points as run side by side.
fn fits(base: &Machine, points: &[Settings], demand: &Demand, lanes: usize) -> Result<(), Problem> {
    let (Demand::Workload(workload, _), Some(available)) = (demand, memory_available_bytes()) else {
        return Ok(());
    };
    let mut needed = Vec::with_capacity(points.len());
    for set in points {
        needed.push(workload.memory_bytes(&sweep::machine_at(base, set)?));
    }
    needed.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
    let wanted = needed.iter().take(lanes).fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let limit = (available as f64 * MEMORY_SHARE) as u64;
    if wanted <= limit {
        return Ok(());
    }
    Err(Problem::refused(format!(
        "the simulation would take up to {} of memory, and {} may be filled",
        Bytes(wanted),
        Bytes(limit)
    ))
    .hint("give fewer `readers`, a smaller `size` or `population`, a smaller or colder cache (`--set cache.bytes=`, `warm=no`)"))
}

/// Refuses a sweep that would take too long, before its first point is run: by the speed of its first requests.
fn quick(
    base: &Machine,
    points: &[Settings],
    demand: &Demand,
    seed: u64,
    lanes: usize,
) -> Result<(), Problem> {
    let (Demand::Workload(workload, _), Some(set)) = (demand, points.first()) else { return Ok(()) };
    let machine = sweep::machine_at(base, set)?;
    let blocks = workload.request_bytes() / machine.cache.block_bytes.max(1);
    let most = (TRIAL_BLOCKS / blocks.max(1)).clamp(1, TRIAL_REQUESTS);
    let requests = workload.requests();
    if requests / 10 < most {
        return Ok(());
    }
    let timed = |most: u64| {
        let begun = Instant::now();
        iowhy_sim::run(&machine, workload.load(seed).first(most), seed)
            .map_err(|problem| named(problem, set))?;
        Ok::<_, Problem>(begun.elapsed())
    };
    // What is built before the first request does not grow with their number.
    let building = timed(1)?;
    let each = timed(most)?.saturating_sub(building).as_secs_f64() / most as f64;
    let rows = points.len().div_ceil(lanes.min(points.len()).max(1));
    let whole = (building.as_secs_f64() + each * requests as f64) * rows as f64;
    if whole <= PATIENCE.as_secs_f64() {
        return Ok(());
    }
    Err(Problem::refused(format!(
        "the sweep has {} points of {requests} requests and would take about {}, by the speed of the first {most}; {lanes} run side by side",
        points.len(),
        // Hours beyond counting are all the same.
        spoken(Duration::from_secs_f64(whole.min(1e12))),
    ))
    .hint("give fewer values or a shorter workload, or `--yes` to run it all"))
}

/// A problem of one point of a sweep.
fn named(problem: Problem, set: &Settings) -> Problem {
    if set.is_empty() {
        return problem;
    }
    let at: Vec<String> = set.iter().map(|(path, value)| format!("{path}={value}")).collect();
    Problem { message: format!("at {}: {}", at.join(", "), problem.message), ..problem }
}

fn spoken(time: Duration) -> String {
    match time.as_secs() {
        0..=119 => format!("{} s", time.as_secs()),
        120..=7199 => format!("{} minutes", time.as_secs() / 60),
        seconds => format!("{} hours", seconds / 3600),
    }
}

/// The machine that is named: measured, shipped, or in a file.
fn base_machine(
    args: &SimArgs,
    progress: &Progress,
    warnings: &mut Vec<Warning>,
) -> Result<Machine, Problem> {
    let name = args.machine.as_str();
    if name.eq_ignore_ascii_case("host") {
        let model = path::model_here(MEASURING, args.seed, progress, warnings)?;
        return Ok(Machine { name: "host".to_owned(), ..Machine::from(&model) });
    }
    if let Some(machine) = Machine::shipped(name) {
        return Ok(machine);
    }
    let path = Path::new(name);
    if !path.exists() {
        let names: Vec<&str> = machine::shipped().iter().map(|shipped| shipped.name).collect();
        return Err(Problem::refused(format!(
            "--machine `{name}` is neither a file nor a machine that ships"
        ))
        .hint(format!("these ship: {}; `--machine list` says what they are", names.join(", "))));
    }
    Machine::from_toml(&read_text("--machine", path)?, name)
}

/// A workload from a name, a text, or a file.
fn workload(text: &str) -> Result<Workload, Problem> {
    let path = Path::new(text);
    if !text.contains('=') && path.is_file() {
        return Workload::from_toml(&read_text("--workload", path)?, text);
    }
    Workload::parse(text)
}

fn read_text(option: &str, path: &Path) -> Result<String, Problem> {
    let refuse = |why: String| {
        Problem::refused(format!("cannot read `{option} {}`: {why}", path.display())).hint("name a TOML file")
    };
    let size = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if !size.is_file() || size.len() > MOST_TEXT_BYTES {
        return Err(refuse("not a file of text, or larger than 1 MiB".to_owned()));
    }
    std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))
}

/// `key=value` options.
pub(in crate::command) fn assignments(option: &str, given: &[String]) -> Result<Settings, Problem> {
    given
        .iter()
        .map(|text| match text.split_once('=') {
            Some((path, value)) => Ok((path.trim().to_owned(), Value::Text(value.trim().to_owned()))),
            None => Err(Problem::refused(format!("{option} `{text}` is no `key=value`"))
                .hint("for example `--set volume.interleave=126`; `--machine keys` lists the keys")),
        })
        .collect()
}

fn axes(args: &SimArgs) -> Result<Vec<Axis>, Problem> {
    let axes = args.sweep.iter().map(|text| Axis::parse(text)).collect::<Result<Vec<Axis>, Problem>>()?;
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index].iter().any(|other| other.path == axis.path) {
            return Err(Problem::refused(format!("--sweep: `{}` is swept twice", axis.path))
                .hint("give all its values in one `--sweep`"));
        }
    }
    Ok(axes)
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
