//! `iowhy doctor --try KEY=VALUE`: one setting changed and restored in turn, the canonical requests measured with both.
//! Invariant: the old value is restored whatever happens; see `iowhy_probe::setting`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::cell::{CellRun, StateCheck};
use iowhy_core::problem::Problem;
use iowhy_core::setting::{Group, Key, Reading};
use iowhy_core::stats::Verdict;
use iowhy_core::warning::Warning;
use iowhy_path::change::{Change, change_in_rounds};
use iowhy_path::costs::Layers;
use iowhy_path::plan::plan;
use iowhy_path::targets::calibration_targets;
use iowhy_path::trial::{Request, requests};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::setting::{ChangedSetting, Storage};
use iowhy_probe::target::{Needs, Target};
use iowhy_probe::{environment, interrupt};

use crate::cli::{DoctorArgs, OutputArgs, Wish};
use crate::ending::{self, Ending};
use crate::measurement;
use crate::output::{self, Outputs};
use crate::plan::sweep;
use crate::progress::Progress;
use crate::record::compare::ChangedCell;
use crate::record::doctor::{TrialRecord, TriedRequest};
use crate::record::{CellRecord, Kind, SCHEMA};
use crate::screen;
use crate::shell;
use crate::targets;

/// Time to spend when nobody says how much, and the least that makes sense.
const DEFAULT_TIME: Duration = Duration::from_secs(20);
const DEFAULT_THRESHOLD: f64 = 0.05;
/// Rounds, each with the old and the new value: the fewest that give a verdict, those that the budget is divided by.
const MIN_ROUNDS: u32 = 5;
const ROUNDS: u32 = 15;
/// Length of a slice: shorter ones measure the change itself, longer ones make too few rounds.
const SLICE: (Duration, Duration) = (Duration::from_millis(3), Duration::from_millis(250));

/// Which value of the setting holds.
#[derive(Clone, Copy)]
enum Side {
    Old,
    New,
}

/// The rounds of one request with both values.
#[derive(Default)]
struct Pair {
    old: Option<CellRun>,
    new: Option<CellRun>,
}

/// Pairs by the key of their request.
type Pairs = BTreeMap<String, Pair>;

/// How a trial is made.
struct How {
    budget: Duration,
    size: u64,
    threshold: f64,
    seed: u64,
}

impl How {
    fn new(args: &DoctorArgs) -> How {
        How {
            budget: args.time.unwrap_or(DEFAULT_TIME),
            size: args.size.unwrap_or(sweep::DEFAULT_REGION_BYTES),
            threshold: args.threshold.unwrap_or(DEFAULT_THRESHOLD),
            seed: args.seed.unwrap_or(1),
        }
    }
}

/// Runs a trial.
///
/// # Errors
/// Refusals for a wish that cannot be had, for want of rights, for a path that nothing can be measured on; a setting that
/// cannot be put back.
pub(super) fn run(
    wish: &Wish,
    args: &DoctorArgs,
    options: &OutputArgs,
    path: &Path,
    place: &Storage,
) -> Result<Ending, Problem> {
    let begun = Instant::now();
    let how = How::new(args);
    let name = path.display().to_string();
    // Flags of dm-crypt cannot even be read without.
    if wish.key.group() == Group::Encryption && !place.devices.crypt.is_empty() {
        needs_root(wish)?;
    }
    let mut readings = wish.present(place, &name)?;
    let value = wish.value_for(&readings)?;
    // Nothing is to be changed where it is so already.
    readings.retain(|reading| reading.value.as_ref() != Some(&value));
    needs_root(wish)?;
    let outputs = Outputs::open(options)?;
    interrupt::install();
    let progress = Progress::new(outputs.quiet());
    let held = ChangedSetting::new(&readings, place)?;
    let needs = Needs { scratch_bytes: how.size, write: false, destroy_data: None };
    let target = targets::resolve(&name, &needs, &progress)?;
    outputs.spare(&[&target])?;
    let below = calibration_targets(&target)?;
    let mut requests = requests(wish.key, &target, plan(&target, &below, how.size, how.seed));
    if requests.is_empty() {
        return Err(Problem::refused(format!(
            "no request that `{}` can touch may be made on `{name}`",
            wish.key.id()
        ))
        .hint("name a directory on that file system: a scratch file is made in it and removed"));
    }
    // The kernel has the last word on a value, before time is spent.
    held.set(&value)?;
    held.restore()?;
    let left = how.budget.saturating_sub(begun.elapsed());
    let cells = fit(&mut requests, left);
    let (pairs, rounds) = in_turn(&cells, &held, &value, left, how.seed, &progress)?;
    held.restore()?;
    drop(progress);
    let was = held.old_state();
    drop(held);

    let setting = as_one(&readings, &was);
    let changes = compared(&requests, &pairs, &target, &setting, &value, &how);
    let record = TrialRecord {
        schema: SCHEMA,
        kind: Kind::TrialOfASetting,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        path: name,
        environment: environment::environment_of(path, place),
        warnings: warnings(&changes, wish.key),
        keep: keep(&readings, &value),
        setting,
        members: if readings.len() > 1 { readings } else { Vec::new() },
        before: was,
        after: value,
        put_back: true,
        rounds,
        interrupted: interrupt::requested(),
        seed: how.seed,
        threshold_share: how.threshold,
        requests: changes.requests,
        cells_before: changes.before,
        cells_after: changes.after,
    };
    outputs.warn(&record.warnings);
    let ending = ending_of(&record);
    outputs.finish(&screen::text(&screen::trial::chapter(&record), output::width()), &record)?;
    Ok(ending)
}

fn needs_root(wish: &Wish) -> Result<(), Problem> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Problem::refused(format!("`--try {wish}` changes a setting of the machine, which needs root"))
        .hint(format!("`sudo {}`", shell::line(std::env::args_os()))))
}

/// An interrupted trial, and a request whose two sides cannot be compared, make the exit code 1.
fn ending_of(record: &TrialRecord) -> Ending {
    let interrupted = record.interrupted.then(ending::interrupted);
    let mut doubtful =
        record.requests.iter().filter_map(|request| Some((&request.label, request.change.doubt.as_ref()?)));
    let doubt = doubtful.next().map(|(label, doubt)| {
        let others = match doubtful.count() {
            0 => String::new(),
            n => format!(" ({n} more requests have such a reason)"),
        };
        Problem::failed(format!("\"{label}\" cannot be compared: {doubt}{others}"))
            .hint("the setting is restored; run it again when other processes are idle")
    });
    Ending::from_reasons(interrupted.into_iter().chain(doubt))
}

/// The readings of several devices as one; `was` is what they were.
fn as_one(readings: &[Reading], was: &str) -> Reading {
    let Some(first) = readings.first() else { return Reading::unreadable(Key::Iostats, "nothing was tried") };
    let subjects: Vec<&str> = readings.iter().filter_map(|reading| reading.subject.as_deref()).collect();
    let same = readings.iter().all(|reading| reading.value == first.value);
    Reading {
        subject: (!subjects.is_empty()).then(|| subjects.join(" ")),
        value: if same { first.value.clone() } else { Some(was.to_owned()) },
        ..first.clone()
    }
}

/// The command that makes the new value stay until the next start.
fn keep(readings: &[Reading], value: &str) -> String {
    let of_mount = |option: &str| {
        let point = readings.first().and_then(|reading| reading.subject.clone()).unwrap_or_default();
        format!("sudo mount -o remount,{option} {}", shell::quoted(&point))
    };
    match (readings.first().map(|reading| reading.key), value) {
        (Some(Key::AccessTime), option) => of_mount(option),
        (Some(Key::LazyTime), "on") => of_mount("lazytime"),
        (Some(Key::LazyTime), _) => of_mount("nolazytime"),
        (Some(key), value) if key.group() == Group::Encryption => {
            let commands = readings.iter().map(|reading| keep_flag(reading, value));
            commands.collect::<Vec<_>>().join("; ")
        }
        _ => {
            let files: Vec<&str> = readings.iter().filter_map(|reading| reading.file.as_deref()).collect();
            format!("echo {value} | sudo tee {}", files.join(" "))
        }
    }
}

/// The command that gives an encrypted device a flag beside those that it has now. It asks for the passphrase.
fn keep_flag(reading: &Reading, value: &str) -> String {
    let Some((name, options)) = reading.details.split_first() else { return String::new() };
    let flags = options.iter().map(String::as_str).chain((value == "1").then_some(reading.key.id()));
    let words = flags.filter_map(|flag| match flag {
        "allow_discards" => Some("--allow-discards ".to_owned()),
        flag if Key::from_id(flag).is_some() => Some(format!("--perf-{flag} ")),
        // The header of the volume says the others.
        _ => None,
    });
    format!("sudo cryptsetup refresh {}{}", words.collect::<String>(), shell::quoted(name))
}

/// The cells of the requests, their slices as long as the time allows. Preparing a slice takes about as long as the slice.
fn fit<'a>(requests: &mut [Request<'a>], left: Duration) -> Vec<Cell<'a>> {
    let slices = 2 * ROUNDS * u32::try_from(requests.len()).unwrap_or(u32::MAX);
    let wall = (left / 2 / slices.max(1)).clamp(SLICE.0, SLICE.1);
    requests
        .iter_mut()
        .map(|request| {
            request.cell.bounds.wall = wall;
            request.cell.clone()
        })
        .collect()
}

/// Rounds of both values in turn; the first of the pair changes from round to round, and the seed says with which it
/// begins. A round that was interrupted counts for nothing. Returns the pairs, and the number of rounds.
fn in_turn(
    cells: &[Cell<'_>],
    held: &ChangedSetting,
    value: &str,
    left: Duration,
    seed: u64,
    progress: &Progress,
) -> Result<(Pairs, u32), Problem> {
    let begun = Instant::now();
    let mut pairs = Pairs::new();
    let mut rounds = 0;
    let mut longest = Duration::ZERO;
    while rounds < ROUNDS && (rounds < MIN_ROUNDS || begun.elapsed() + longest < left) {
        let round_begun = Instant::now();
        let order =
            if (u64::from(rounds) ^ seed) & 1 == 0 { [Side::Old, Side::New] } else { [Side::New, Side::Old] };
        let mut outcomes = Vec::new();
        for side in order {
            let share = f64::from(rounds) / f64::from(ROUNDS);
            let doing = match side {
                Side::Old => held.old_state(),
                Side::New => value.to_owned(),
            };
            progress.at(share, left.saturating_sub(begun.elapsed()), &format!("measuring with {doing}"));
            match side {
                Side::Old => held.restore()?,
                Side::New => held.set(value)?,
            }
            let seed = seed.wrapping_add(u64::from(rounds));
            let effort = Effort { min_rounds: 1, max_rounds: 1, time: left, precision: 0.0, seed };
            outcomes.push((side, campaign::run(cells, effort, &mut |_| {})));
        }
        if interrupt::requested() {
            break;
        }
        for (side, outcome) in outcomes {
            for run in outcome.cells.into_iter().filter_map(|runs| runs.into_iter().next()) {
                let pair = pairs.entry(run.key.clone()).or_default();
                let sum = match side {
                    Side::Old => &mut pair.old,
                    Side::New => &mut pair.new,
                };
                add(sum, run, rounds);
            }
        }
        rounds += 1;
        longest = longest.max(round_begun.elapsed());
    }
    Ok((pairs, rounds))
}

/// Adds one round.
fn add(sum: &mut Option<CellRun>, mut run: CellRun, round: u32) {
    run.samples.iter_mut().for_each(|sample| sample.round = round);
    let Some(sum) = sum else {
        *sum = Some(run);
        return;
    };
    sum.samples.append(&mut run.samples);
    sum.latency.merge(&run.latency);
    sum.state_check = StateCheck::worst([sum.state_check.clone(), run.state_check]);
    sum.failure = sum.failure.take().or(run.failure);
    run.dropped.retain(|note| !sum.dropped.contains(note));
    sum.dropped.append(&mut run.dropped);
}

/// What became of the requests, and the cells that say so.
struct Compared {
    requests: Vec<TriedRequest>,
    before: Vec<CellRecord>,
    after: Vec<CellRecord>,
}

fn compared(
    requests: &[Request<'_>],
    pairs: &Pairs,
    target: &Target,
    reading: &Reading,
    value: &str,
    how: &How,
) -> Compared {
    let window = |value: Option<&str>| -> Option<u64> {
        value.filter(|_| reading.key == Key::ReadAhead)?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    let record = |run: &CellRun, value: Option<&str>| {
        measurement::cell_record(run, target, window(value), how.seed, Layers::default())
    };
    let mut all = Compared { requests: Vec::new(), before: Vec::new(), after: Vec::new() };
    for request in requests {
        let pair = pairs.get(&request.cell.key);
        let Some(Pair { old: Some(old), new: Some(new) }) = pair else { continue };
        let before = record(old, reading.value.as_deref());
        let after = record(new, Some(value));
        let doubts = [before.doubt(), after.doubt()];
        let Change { ratio, verdict, doubt, .. } =
            change_in_rounds(old, new, doubts, how.threshold, how.seed);
        let change = ChangedCell {
            key: after.key.clone(),
            before_key: None,
            target: target.facts.name.clone(),
            before: before.time_per_request,
            after: after.time_per_request,
            after_over_before: ratio,
            verdict,
            layer: None,
            layer_share: None,
            doubt,
        };
        all.requests.push(TriedRequest { label: request.label.to_owned(), control: request.control, change });
        all.before.push(before);
        all.after.push(after);
    }
    all
}

/// A control that changed, and a machine that was busy.
fn warnings(changes: &Compared, key: Key) -> Vec<Warning> {
    let moved = |request: &&TriedRequest| {
        request.control && matches!(request.change.verdict, Verdict::Improved | Verdict::Regressed)
    };
    let control = changes.requests.iter().find(moved).map(|request| {
        Warning::new(
            "control-changed",
            format!(
                "`{}` cannot affect \"{}\", but that changed: other activity disturbed the trial, and the other verdicts are \
                 unreliable",
                key.id(),
                request.label
            ),
        )
        .next("repeat it when the machine is idle, with a longer `--time`")
    });
    control.into_iter().chain(measurement::busy_machine(&changes.before)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(device: &str, value: &str) -> Reading {
        let file = Some(format!("/sys/class/block/{device}/queue/nomerges"));
        Reading { file, subject: Some(device.into()), ..Reading::new(Key::Nomerges, value) }
    }

    #[test]
    fn several_devices_are_one_setting_with_all_their_names() {
        let same = as_one(&[reading("sda", "0"), reading("sdb", "0")], "0");
        assert_eq!((same.subject.as_deref(), same.value.as_deref()), (Some("sda sdb"), Some("0")));
        let other = as_one(&[reading("sda", "0"), reading("sdb", "1")], "sda 0, sdb 1");
        assert_eq!(other.value.as_deref(), Some("sda 0, sdb 1"));
    }

    #[test]
    fn what_keeps_a_value_can_be_typed() {
        let of = [reading("sda", "0"), reading("sdb", "0")];
        let files = "/sys/class/block/sda/queue/nomerges /sys/class/block/sdb/queue/nomerges";
        assert_eq!(keep(&of, "2"), format!("echo 2 | sudo tee {files}"));
        let mount = |key| [Reading { subject: Some("/a b".into()), ..Reading::new(key, "relatime") }];
        assert_eq!(keep(&mount(Key::AccessTime), "noatime"), "sudo mount -o remount,noatime '/a b'");
        assert_eq!(keep(&mount(Key::LazyTime), "off"), "sudo mount -o remount,nolazytime '/a b'");
        let crypt = Reading {
            details: ["home", "allow_discards", "same_cpu_crypt", "sector_size:4096"]
                .map(str::to_owned)
                .to_vec(),
            ..Reading::new(Key::NoReadWorkqueue, "0")
        };
        let kept =
            "sudo cryptsetup refresh --allow-discards --perf-same_cpu_crypt --perf-no_read_workqueue home";
        assert_eq!(keep(std::slice::from_ref(&crypt), "1"), kept);
        assert_eq!(keep(&[crypt], "0"), kept.replace("--perf-no_read_workqueue ", ""));
    }
}
