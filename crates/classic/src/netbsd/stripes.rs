//! The interleave test for real: the very requests that the layout of 1999 makes of the news tree, carried out by 30 readers on
//! stripes of each interleave, in interleaved rounds. What may not enter: how the members are found, simulated times.

use std::time::{Duration, Instant};

use crate::netbsd::splits::{Fits, Spread, fits};
use crate::published::{Experiment, Table};
use iowhy_core::cell::{CellRun, StateCheck};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::histogram::Histogram;
use iowhy_core::problem::Problem;
use iowhy_core::schedule;
use iowhy_core::stats;
use iowhy_core::units::{self, Bytes};
use iowhy_core::workload::{CacheState, Workload};
use iowhy_probe::access::Request;
use iowhy_probe::interrupt;
use iowhy_probe::pass;
use iowhy_probe::target::Target;
use iowhy_sim::device;
use iowhy_sim::machine::{Machine, Value};
use iowhy_sim::requests::{self, Client};
use iowhy_sim::workload::Workload as Simulated;

use super::members::Members;
use super::model::{self, Point, REFERENCE, Share};
use crate::lab::Lab;
use crate::report::{MeasuredCell, Report, Row};

/// Rounds at least and at most.
const ROUNDS: (u32, u32) = (5, 7);
/// Files that each reader reads at least, and in the pass that finds out how many it can be.
const MIN_FILES: usize = 2;
const TRIAL_FILES: usize = 4;
/// A disk that takes longer for the trial is too slow for this test.
const TRIAL_PATIENCE: Duration = Duration::from_secs(10);
/// No pass is planned to take a tenth of this.
const PATIENCE: Duration = Duration::from_secs(60);
/// Groups of the volume at least: less is no file system of the post's.
const MIN_GROUPS: u64 = 3;
const GROUP_BYTES: u64 = 32_768 * 512;
const LARGEST_REQUEST: u64 = 8192;
/// Ratios that differ by less are not told apart.
const NOTABLE: f64 = 0.05;

/// One interleave: its stripe, its requests, and what became of them.
struct Arm<'a> {
    point: Point,
    target: &'a Target,
    clients: &'a [Client],
    spread: Spread,
    run: CellRun,
    checks: Vec<StateCheck>,
    /// Time of a pass by round; not a number where it was not complete.
    times_ns: Vec<f64>,
}

/// Measures on `stripes`, and adds rows and sentences.
///
/// # Errors
/// What the layout says of the tree; what opening the members says.
pub(super) fn measure(
    lab: &Lab<'_>,
    experiment: &Experiment,
    table: &Table,
    members: &Members,
    stripes: &[(Point, Target)],
    shares: &[Share],
    record: &mut Report,
) -> Result<(), Problem> {
    let title = "The same requests for real, on stripes in user space: time over that at interleave 2048";
    record.section("stripe", title, "interleave");
    let smallest = stripes.iter().map(|(_, target)| target.facts.size_bytes).min().unwrap_or(0);
    let tree = Scaled::from_experiment(experiment, members.count(), smallest)?;
    if tree.volume_bytes < MIN_GROUPS * GROUP_BYTES {
        record.say(format!(
            "not measured: the stripes hold {}, and {MIN_GROUPS} groups of {} are the least that is worth it.",
            Bytes(smallest),
            Bytes(GROUP_BYTES)
        ));
        return Ok(());
    }
    let (plain, small) = (tree.lists(lab.seed, false)?, tree.lists(lab.seed, true)?);
    let targets: Vec<&Target> = stripes.iter().map(|(_, target)| target).collect();
    let (method, state) = members.how(&targets);
    let workload = Workload {
        threads: tree.readers as usize,
        seed: lab.seed,
        ..Workload::reads(method, state, LARGEST_REQUEST, tree.volume_bytes)
    };
    let mut arms: Vec<Arm<'_>> = stripes
        .iter()
        .map(|(point, target)| Arm::new(*point, target, if point.1 { &small } else { &plain }, &workload))
        .collect();
    let files = match trial(&arms, &workload, lab.time / 2)? {
        Ok(files) => files,
        Err(why) => {
            record.say(format!("not measured: {why}."));
            return Ok(());
        }
    };
    let rounds = rounds(lab, &mut arms, &workload, files);
    record.rounds = record.rounds.max(rounds);
    for arm in &mut arms {
        arm.run.state_check = StateCheck::worst(arm.checks.drain(..));
        let mut cell = MeasuredCell::new(&arm.run, arm.target, None, lab.seed);
        // Not the workload's: places and sizes come from the lists.
        cell.listed = true;
        record.cells.push(cell);
    }
    fill(lab, table, members, &arms, shares, record);
    let asked = arms.iter().map(|arm| arm.spread.requests).max().unwrap_or(0);
    let past = match state {
        CacheState::Direct => "past this machine's page cache (what lies below it may cache)",
        _ => "cold, through the page cache: these members allow no direct requests of 1 KiB",
    };
    record.say(format!(
        "measured: {} readers of {files} files each from fixed lists, {asked} requests a pass, {past}, over {}: the addresses that \
         the layout of 1999 gives {} files in {} directories on {}, the post's tree cut to the room that there is, with its \
         groups, its directories of 3077 files and its share of cache.",
        tree.readers,
        members.words(),
        tree.files,
        tree.directories,
        Bytes(tree.volume_bytes),
    ));
    record.say(match members.one_disk {
        true => "One disk serves all members here: these rows show what splitting costs, and nothing about spindles.",
        false => "Each member has a disk of its own: these rows show splitting and spindles.",
    });
    record.say(
        "by splits alone: the parts that the members are sent, counted, over those at 2048 (of the busiest member, where each \
         has its own disk), as if every part cost the same.",
    );
    conclude(members, &arms, lab.seed, record);
    Ok(())
}

/// The post's tree on a smaller volume: fewer groups and directories, all else unchanged.
struct Scaled {
    readers: u64,
    each: u64,
    sizes: String,
    directories: u64,
    files: u64,
    volume_bytes: u64,
    posted_bytes: u64,
}

impl Scaled {
    fn from_experiment(experiment: &Experiment, members: usize, smallest: u64) -> Result<Scaled, Problem> {
        let fact = |id: &str| experiment.fact(id).map_or(0, |value| value as u64);
        let machine = shipped()?;
        let disk = device::new(&machine.device, 1)?.sectors() * 512;
        let posted_bytes = disk * machine.device.count;
        let volume_bytes = smallest.min(disk * members as u64) / GROUP_BYTES * GROUP_BYTES;
        let scaled =
            |posted: u64| (u128::from(posted) * u128::from(volume_bytes) / u128::from(posted_bytes)) as u64;
        let directories = scaled(fact("directories")).max(1);
        let files = (fact("files") * directories / fact("directories").max(1)).max(1);
        let readers = fact("readers").max(1);
        let sizes: Vec<String> =
            ["size-small", "size-middle", "size-large"].map(|id| fact(id).to_string()).to_vec();
        let each = fact("files-each").min(files / readers).max(1);
        Ok(Scaled { readers, each, sizes: sizes.join(":"), directories, files, volume_bytes, posted_bytes })
    }

    /// What each reader asks the volume for.
    fn lists(&self, seed: u64, small_groups: bool) -> Result<Vec<Client>, Problem> {
        let mut machine = shipped()?;
        let cache = u128::from(machine.cache.bytes) * u128::from(self.volume_bytes);
        let cache = (cache / u128::from(self.posted_bytes)) as u64;
        machine.cache.bytes = cache.max(machine.cache.block_bytes);
        if small_groups {
            machine.set("layout.group_sectors", &Value::Text(model::SMALL_GROUP.to_owned()))?;
        }
        let spec = format!(
            "readers={},files={},sizes={},dirs={},population={}",
            self.readers, self.each, self.sizes, self.directories, self.files
        );
        requests::cached_reads(&machine, Simulated::parse(&spec)?.load(seed), self.volume_bytes)
    }
}

fn shipped() -> Result<Machine, Problem> {
    Machine::shipped("netbsd-1999")
        .ok_or_else(|| Problem::failed("the machine `netbsd-1999` does not ship with this build"))
}

impl<'a> Arm<'a> {
    fn new(point: Point, target: &'a Target, clients: &'a [Client], workload: &Workload) -> Arm<'a> {
        let run = CellRun {
            workload: workload.clone(),
            key: format!("stripe-{}", point.0),
            samples: Vec::new(),
            latency: Histogram::default(),
            state_check: StateCheck::NotApplicable,
            dropped: Vec::new(),
            failure: None,
        };
        let (spread, checks, times_ns) = (Spread::default(), Vec::new(), Vec::new());
        Arm { point, target, clients, spread, run, checks, times_ns }
    }

    /// Requests of each reader for this number of files.
    fn lists(&self, files: usize) -> Vec<Vec<Request>> {
        let asked = |client: &Client| {
            let all = client.first(files).iter();
            all.map(|a| Request { offset: a.offset, bytes: a.bytes as usize, write: false }).collect()
        };
        self.clients.iter().map(asked).collect()
    }

    /// One pass.
    fn pass(&mut self, workload: &Workload, lists: &[Vec<Request>], round: u32, start_ns: u64) {
        let told = match pass::run(workload, self.target, lists, PATIENCE) {
            Ok(told) => told,
            Err(problem) => {
                self.run.failure = Some(problem.to_string());
                self.times_ns.push(f64::NAN);
                return;
            }
        };
        self.times_ns.push(if told.complete { told.sample.wall_ns as f64 } else { f64::NAN });
        if told.complete {
            self.run.latency.merge(&told.latency);
            self.run.samples.push(iowhy_core::cell::Sample { round, start_ns, ..told.sample });
            self.checks.push(told.check);
        }
        self.run.failure = self.run.failure.take().or(told.failure);
        self.run.dropped = told.dropped;
    }
}

/// How many files a reader can read in a pass of a fitting length; `Err` within says why there is none.
fn trial(arms: &[Arm<'_>], workload: &Workload, time: Duration) -> Result<Result<usize, String>, Problem> {
    let Some(arm) = arms.iter().find(|arm| arm.point.0 == REFERENCE).or(arms.first()) else {
        return Ok(Err("there is no stripe to measure".to_owned()));
    };
    let most = arm.clients.iter().map(Client::requests).min().unwrap_or(0).max(MIN_FILES);
    let files = TRIAL_FILES.min(most);
    let lists = arm.lists(files);
    let mut took_ns = 0;
    // The first pass also pays for what is touched for the first time.
    for _ in 0..2 {
        let told = pass::run(workload, arm.target, &lists, TRIAL_PATIENCE)?;
        if let Some(failure) = told.failure {
            return Ok(Err(failure));
        }
        if interrupt::requested() {
            return Ok(Err("interrupted".to_owned()));
        }
        if !told.complete {
            let words = format!("{files} files a reader take longer than {} s", TRIAL_PATIENCE.as_secs());
            return Ok(Err(words));
        }
        took_ns = told.sample.wall_ns;
    }
    let pass_ns = time.as_nanos() as f64 / f64::from(ROUNDS.1 * arms.len().max(1) as u32);
    let fitting = pass_ns / (took_ns.max(1) as f64 / files as f64);
    Ok(Ok((fitting as usize).clamp(MIN_FILES, most)))
}

/// The rounds, each with every interleave once, in seeded order. How many there were.
fn rounds(lab: &Lab<'_>, arms: &mut [Arm<'_>], workload: &Workload, files: usize) -> u32 {
    let lists: Vec<Vec<Vec<Request>>> = arms.iter().map(|arm| arm.lists(files)).collect();
    for (arm, lists) in arms.iter_mut().zip(&lists) {
        if let Some(stripe) = arm.target.stripe() {
            let all = lists.iter().flatten().map(|request| (request.offset, request.bytes as u64));
            arm.spread = Spread::count(&stripe.map(), all);
        }
    }
    let begun = Instant::now();
    let scripted = arms.iter().all(|arm| arm.target.script().is_some());
    // How fast the host follows a script says nothing, and the same script gives the same rounds.
    let spent = |arms: &[Arm<'_>]| {
        if scripted {
            let passes_ns = arms.iter().flat_map(|arm| &arm.times_ns).filter(|ns| ns.is_finite());
            Duration::from_nanos(passes_ns.sum::<f64>() as u64)
        } else {
            begun.elapsed()
        }
    };
    let mut round = 0;
    while round < ROUNDS.1 && (round < ROUNDS.0 || spent(arms) < lab.time / 2) {
        for &index in &schedule::interleave(arms.len(), round, lab.seed) {
            if interrupt::requested() {
                return round;
            }
            let share = f64::from(round) / f64::from(ROUNDS.1);
            let left = (lab.time / 2).saturating_sub(spent(arms));
            lab.world.at(share, left, "30 readers on a stripe");
            arms[index].pass(workload, &lists[index], round, begun.elapsed().as_nanos() as u64);
        }
        round += 1;
    }
    round
}

/// Time over that of the reference, within rounds.
fn over_reference(arms: &[Arm<'_>], arm: &Arm<'_>, seed: u64) -> Option<Estimate> {
    let reference = arms.iter().find(|other| other.point.0 == REFERENCE)?;
    stats::paired_ratio(&arm.times_ns, &reference.times_ns, seed)
}

fn by_splits(arms: &[Arm<'_>], arm: &Arm<'_>, members: &Members) -> Option<f64> {
    let reference = arms.iter().find(|other| other.point.0 == REFERENCE)?;
    arm.spread.time_over(&reference.spread, members.one_disk)
}

fn fill(
    lab: &Lab<'_>,
    table: &Table,
    members: &Members,
    arms: &[Arm<'_>],
    shares: &[Share],
    record: &mut Report,
) {
    for arm in arms {
        let interleave = arm.point.0;
        let time = stats::bootstrap_median(&arm.times_ns, lab.seed, Unit::Nanoseconds);
        let (ratio, splits) = (over_reference(arms, arm, lab.seed), by_splits(arms, arm, members));
        let row =
            Row::new("stripe", interleave.to_string(), "time over that of interleave 2048", Unit::Ratio)
                .key("interleave_sectors", interleave)
                .key("requests", arm.spread.requests)
                .key("split", arm.spread.split)
                .key("parts", arm.spread.parts)
                .key("busiest_member_parts", arm.spread.busiest)
                .key("by_splits", splits)
                .key("time_ns", serde_json::to_value(time).unwrap_or_default())
                .then(model::published_share(table, interleave))
                .model(shares.iter().find(|(other, _)| *other == interleave).and_then(|(_, share)| *share));
        let row = match (&arm.run.failure, &arm.run.state_check) {
            (Some(failure), _) => row.remark(format!("failed: {failure}")),
            (None, StateCheck::Violated { reason }) => row.remark(format!("mislabelled: {reason}")),
            _ if interleave == REFERENCE => row.remark(match time {
                Some(time) => format!("the reference: {} a pass", units::estimate(&time)),
                None => "too few rounds".to_owned(),
            }),
            _ => {
                let split = format!("{:.1} % split", arm.spread.split_share() * 100.0);
                let alone = match (splits, &ratio) {
                    (Some(splits), Some(ratio)) => {
                        let fits = match fits(ratio, splits) {
                            Fits::Yes => "as measured",
                            Fits::No => "not as measured",
                            Fits::Inconclusive => "inconclusive",
                        };
                        format!(", by splits alone {splits:.2}: {fits}")
                    }
                    _ => ", too few rounds".to_owned(),
                };
                row.now(ratio).remark(split + &alone)
            }
        };
        record.row(row);
    }
}

/// Whether a big interleave wins here, and whether splits explain the rows.
fn conclude(members: &Members, arms: &[Arm<'_>], seed: u64, record: &mut Report) {
    let rows: Vec<(u64, Estimate, f64)> = arms
        .iter()
        .filter(|arm| arm.point.0 != REFERENCE && arm.run.failure.is_none())
        .filter_map(|arm| {
            let ratio = over_reference(arms, arm, seed)?;
            Some((arm.point.0, ratio, by_splits(arms, arm, members)?))
        })
        .collect();
    let block = LARGEST_REQUEST / 512;
    let small: Vec<_> = rows.iter().filter(|(i, ..)| (block..REFERENCE).contains(i)).collect();
    if small.is_empty() {
        return;
    }
    let list = |which: &dyn Fn(&Estimate) -> bool| -> Vec<String> {
        small.iter().filter(|(_, ratio, _)| which(ratio)).map(|(i, ratio, _)| told(*i, ratio)).collect()
    };
    let slower = list(&|ratio| ratio.low > 1.0 + NOTABLE);
    let faster = list(&|ratio| ratio.high < 1.0 - NOTABLE);
    let alike = list(&|ratio| ratio.low >= 1.0 - NOTABLE && ratio.high <= 1.0 + NOTABLE);
    let unsure = small.len() - slower.len() - faster.len() - alike.len();
    let mut words = Vec::new();
    if !slower.is_empty() {
        words.push(format!("2048 wins over {}", slower.join(", ")));
    }
    if !faster.is_empty() {
        words.push(format!("2048 loses against {}", faster.join(", ")));
    }
    if !alike.is_empty() {
        words.push(format!("no difference of more than 5 % to {}", alike.join(", ")));
    }
    if unsure > 0 {
        let open = list(&|ratio| {
            ratio.low <= 1.0 + NOTABLE
                && ratio.high >= 1.0 - NOTABLE
                && (ratio.low < 1.0 - NOTABLE || ratio.high > 1.0 + NOTABLE)
        });
        words.push(format!("inconclusive for {}", open.join(", ")));
    }
    let disks = if members.one_disk { "one disk below all members" } else { "a disk below each member" };
    record.verdicts.push(format!(
        "A big interleave for small files, on real stripes here ({disks}): {}.",
        words.join("; ")
    ));
    let of = |wanted: Fits| -> Vec<String> {
        let held = rows.iter().filter(|(_, ratio, splits)| fits(ratio, *splits) == wanted);
        held.map(|(interleave, ..)| interleave.to_string()).collect()
    };
    let (yes, no, open) = (of(Fits::Yes), of(Fits::No), of(Fits::Inconclusive));
    let part = |rows: &[String], words: &str| match rows {
        [] => String::new(),
        rows => format!("; {words} {}", rows.join(", ")),
    };
    record.verdicts.push(format!(
        "Splits alone explain {} of {} of these rows{}{}{}.",
        yes.len(),
        rows.len(),
        part(&yes, "they do:"),
        part(&no, "they do not:"),
        part(&open, "inconclusive:"),
    ));
}

fn told(interleave: u64, ratio: &Estimate) -> String {
    format!("{interleave} (takes {} times as long)", units::factor(ratio))
}
