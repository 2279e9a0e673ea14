//! The proof: stripes in user space of the disks themselves, measured in interleaved rounds: the pick, the defaults, the worst
//! (or all that were simulated).

use std::sync::Arc;
use std::time::Duration;

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::problem::Problem;
use iowhy_core::stats;
use iowhy_core::units;
use iowhy_core::workload::{CacheState, Direction, Method, Touch, Workload};
use iowhy_explain::summary;
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Target, stripe};
use iowhy_sim::workload::{self as simulated_workload, What};

use super::points::{Pick, Simulated};
use super::words;
use crate::cli::StripeAdviseArgs;
use crate::command::sim::Demand;
use crate::progress::Progress;
use crate::record::member::MemberRecord;
use crate::record::stripe_advice::ProofRecord;

/// What LVM and btrfs take without being told, and what mdadm takes.
const DEFAULTS: [u64; 2] = [64 << 10, 512 << 10];
/// Time for each stripe when nobody says, over all rounds.
const DEFAULT_RUNTIME: Duration = Duration::from_secs(8);
/// Rounds: an interval needs them.
const ROUNDS: u32 = 5;

/// What is measured.
pub(super) struct Plan {
    bytes: u64,
    size: u64,
    template: Workload,
    runtime: Duration,
    all: bool,
}

impl Plan {
    /// Reads the options; `None` without `--prove`.
    ///
    /// # Errors
    /// Workloads that stripes of ours cannot carry out, by the key that cannot be.
    pub(super) fn of(args: &StripeAdviseArgs, demand: &Demand) -> Result<Option<Plan>, Problem> {
        let runtime = match &args.runtime {
            None => DEFAULT_RUNTIME,
            Some(text) => units::parse_duration("--runtime", text)?,
        };
        let Some(which) = args.prove.as_deref() else {
            return match args.runtime {
                None => Ok(None),
                Some(_) => {
                    Err(Problem::refused("`--runtime` is the time of each stripe that `--prove` measures")
                        .hint("add `--prove`, or leave it out"))
                }
            };
        };
        let all = match which {
            "some" => false,
            "all" => true,
            other => {
                return Err(Problem::refused(format!("`--prove={other}` is neither `some` nor `all`")).hint(
                    "`--prove` measures the pick, the defaults and the worst; `--prove=all` every interleave",
                ));
            }
        };
        if runtime < Duration::from_millis(u64::from(ROUNDS)) {
            return Err(Problem::refused("`--runtime` leaves no time for the rounds")
                .hint("for example `--runtime 8s`"));
        }
        let cannot = |why: &str| {
            Err(Problem::refused(format!("`--prove` cannot carry out this load: {why}")).hint(
                "a proof needs readers of large files past the cache, as in \
                 `readers=8,bytes=64k,size=1g,pattern=permuted`; without `--prove` it is simulated all the same",
            ))
        };
        let Some(workload) = demand.workload() else {
            return cannot("a trace is only simulated");
        };
        let What::Region { size, bytes, pattern, own, write_percent, .. } = &workload.what else {
            return cannot("small files need a file system, and the stripes of the proof have none");
        };
        if *write_percent > 0 {
            return cannot("it writes, and the disks are only read");
        }
        if *own && workload.clients > 1 {
            return cannot("a file for each reader (`own=yes`); the stripes of the proof are one file");
        }
        if workload.think_ns > 0 || workload.lock_step {
            return cannot("readers that pause or wait for each other (`think`, `lockstep`)");
        }
        if matches!(workload.method, simulated_workload::Method::Mapped | simulated_workload::Method::Mlock) {
            return cannot("mappings go through the page cache");
        }
        let template = Workload {
            direction: Direction::Read,
            method: Method::Uring,
            pattern: *pattern,
            state: CacheState::Direct,
            block_bytes: *bytes,
            region_bytes: *size,
            region_offset: 0,
            threads: workload.clients as usize,
            depth: 1,
            touch: Touch::None,
            rate_per_second: (workload.rate > 0.0).then_some(workload.rate),
            seed: args.seed,
        };
        Ok(Some(Plan { bytes: *bytes, size: *size, template, runtime, all }))
    }
}

/// Measures the stripes.
///
/// # Errors
/// Stripes that cannot be made of these disks; a cell that fails is in its record instead.
pub(super) fn run(
    plan: Plan,
    disks: Vec<Target>,
    simulated: &Simulated,
    pick: &Pick,
    args: &StripeAdviseArgs,
    progress: &Progress,
) -> Result<Vec<ProofRecord>, Problem> {
    let disks: Arc<[Target]> = disks.into();
    let chosen = chosen(&plan, simulated, pick);
    let mut stripes = Vec::new();
    for (index, _) in &chosen {
        let interleave = simulated.points[*index].interleave_bytes;
        let names: Vec<&str> = disks.iter().map(|disk| disk.facts.name.as_str()).collect();
        let spec = format!("stripe:{interleave}:{}", names.join(","));
        stripes.push(stripe::join(&spec, interleave, Arc::clone(&disks))?);
    }
    let smallest = stripes.iter().map(|target| target.facts.size_bytes).min().unwrap_or(0);
    let region = plan.size.min(smallest) / plan.bytes * plan.bytes;
    if region / plan.bytes < plan.template.threads as u64 {
        return Err(Problem::refused(format!(
            "`--prove`: {} readers of {} do not fit into {} of stripe",
            plan.template.threads,
            words(plan.bytes),
            words(smallest)
        ))
        .hint("fewer readers, smaller requests, or larger members"));
    }
    // False members have a model of one method past the cache and one in flight; so have files that allow no O_DIRECT.
    let direct = stripes.iter().all(|target| target.facts.direct_supported != Some(false));
    let cells: Vec<Cell<'_>> = stripes
        .iter()
        .map(|target| {
            let mut workload = plan.template.clone();
            workload.region_bytes = region;
            if target.facts.memory_backed {
                workload.state = CacheState::Warm;
            } else if !direct {
                workload.state = CacheState::Cold;
            }
            let requests = match workload.state {
                CacheState::Cold => workload.blocks() / workload.threads.max(1) as u64,
                _ => u64::MAX,
            };
            Cell {
                key: target.facts.name.clone(),
                arms: vec![(workload, target)],
                bounds: Bounds { wall: plan.runtime / ROUNDS, requests_per_thread: requests.max(1) },
            }
        })
        .collect();
    let effort = Effort {
        least_rounds: ROUNDS,
        most_rounds: ROUNDS,
        budget: plan.runtime * cells.len() as u32,
        precision: 0.0,
        seed: args.seed,
    };
    let outcome = campaign::run(&cells, effort, &mut |p| progress.at(p.share, p.remaining, "proving"));
    let runs: Vec<Option<&CellRun>> = outcome.cells.iter().map(|runs| runs.first()).collect();
    Ok(records(&chosen, &runs, &stripes, simulated, args.seed))
}

/// Which points are measured, and why; the pick first.
fn chosen(plan: &Plan, simulated: &Simulated, pick: &Pick) -> Vec<(usize, &'static str)> {
    let points = &simulated.points;
    let mut chosen = vec![(pick.index, "pick")];
    let mut add = |index: Option<usize>, role: &'static str| {
        if let Some(index) = index.filter(|index| chosen.iter().all(|(other, _)| other != index)) {
            chosen.push((index, role));
        }
    };
    let fastest = (0..points.len()).min_by(|a, b| points[*a].time_s.total_cmp(&points[*b].time_s));
    add(fastest, "fastest");
    for bytes in DEFAULTS {
        add(points.iter().position(|point| point.interleave_bytes == bytes), "default");
    }
    let slowest = (0..points.len()).max_by(|a, b| points[*a].time_s.total_cmp(&points[*b].time_s));
    add(slowest, "worst");
    if plan.all {
        (0..points.len()).for_each(|index| add(Some(index), "other"));
    }
    chosen
}

fn rate(sample: &Sample) -> f64 {
    sample.claimed_bytes as f64 * 1e9 / sample.wall_ns.max(1) as f64
}

/// The results, by interleave; each against the fastest measured one, within rounds.
fn records(
    chosen: &[(usize, &'static str)],
    runs: &[Option<&CellRun>],
    stripes: &[Target],
    simulated: &Simulated,
    seed: u64,
) -> Vec<ProofRecord> {
    let rates = |run: &CellRun| run.samples.iter().map(rate).collect::<Vec<f64>>();
    let fastest = runs
        .iter()
        .flatten()
        .filter(|run| run.failure.is_none())
        .filter_map(|run| Some((stats::median(&rates(run))?, *run)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, run)| rates(run));
    let mut records: Vec<ProofRecord> = chosen
        .iter()
        .zip(runs.iter().zip(stripes))
        .filter_map(|((index, role), (run, target))| {
            let (run, point) = ((*run)?, &simulated.points[*index]);
            let measured = summary::summarize(run, seed).throughput;
            Some(ProofRecord {
                interleave_bytes: point.interleave_bytes,
                role,
                predicted_bytes_per_second: point.bytes_per_second,
                throughput: measured,
                error_percent: measured.map(|m| (point.bytes_per_second / m.value - 1.0) * 100.0),
                of_fastest: fastest.as_ref().and_then(|best| stats::paired_ratio(&rates(run), best, seed)),
                members: MemberRecord::all_of(run, &target.member_names()),
                failure: run.failure.clone(),
                samples: run.samples.clone(),
            })
        })
        .collect();
    records.sort_by_key(|record| record.interleave_bytes);
    records
}
