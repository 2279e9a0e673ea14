//! `iowhy bench --ranks` and `--scale`: each rank measures the same cells on a scratch file of its own, round by round together with the
//! others. Rank 0 makes the one record of it.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use iowhy_core::cell::StateCheck;
use iowhy_core::problem::Problem;
use iowhy_core::text::visible;
use iowhy_core::units::{counted, time};
use iowhy_core::warning::Warning;
use iowhy_core::workload::Workload;
use iowhy_linux::names::Dir;
use iowhy_path::ranks::scale::Scale;
use iowhy_path::ranks::{RankSlice, Step};
use iowhy_probe::campaign::{Cell, Outcome};
use iowhy_probe::clock::Clock;
use iowhy_probe::runner::Gate;
use iowhy_probe::target::{Needs, Target};
use iowhy_probe::together::{self, Together};
use iowhy_probe::{environment, interrupt};
use iowhy_view::document::Detail;
use serde::{Deserialize, Serialize};

use super::processes::Processes;
use crate::cli::{BenchArgs, OutputArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::plan::sweep::Sweep;
use crate::progress::Progress;
use crate::rank;
use crate::record::measured_ranks::{CellOfRanks, HostOfMeasuredRanks, MeasuredRanksRecord, MemberOfRun};
use crate::record::rank::RankRecord;
use crate::record::{Kind, SCHEMA};
use crate::rendezvous::{Job, Met, Offset, Real, Rendezvous, World};
use crate::{screen, shell, targets};

/// Runs the command, as one of the ranks.
pub(super) fn run(args: &BenchArgs, output: &OutputArgs) -> Result<Ending, Problem> {
    let sweep = Sweep::from_args(args)?;
    if !Path::new(&args.target).is_dir() {
        return Err(Problem::refused(format!("`{}` is no directory, and ranks meet in one", args.target))
            .hint("name a directory that the hosts of all ranks share: `iowhy bench --ranks DIR`"));
    }
    let (own, ranks, processes) = job(args)?;
    let steps = steps(args, ranks)?;
    // The others have nothing to write.
    let outputs = if own.rank == 0 { Some(Outputs::open(output)?) } else { None };
    interrupt::install();
    let progress = Progress::new(output.quiet || own.rank > 0);
    let started_here = processes.is_some();
    let mut processes = processes;
    if let Some(processes) = &mut processes {
        processes.start()?;
    }
    let ended = meet(args, &sweep, (&own, ranks), &steps, &progress);
    drop(progress);
    // After a run that failed those that are still in a slice are ended: what they would leave is gone already.
    if let (Ok(_), Some(processes)) = (&ended, processes) {
        processes.wait();
    }
    let (Some(run), Some(outputs)) = (ended?, outputs) else { return Ok(Ending::done()) };
    let mut record = record(run, &sweep, &steps);
    record.started_here = started_here;
    outputs.warn(&record.warnings);
    let shown = screen::measured_ranks::chapter(&record, Detail::Screen);
    outputs.finish(&screen::text(&shown, output::width()), &record)?;
    Ok(Ending::from_reasons(mislabelled(&record)))
}

/// This process, the number of ranks, and the others where they are still to be started.
fn job(args: &BenchArgs) -> Result<(RankRecord, u64, Option<Processes>), Problem> {
    let most = args.scale.iter().flatten().copied().max();
    if let Some(own) = rank::own() {
        let Some(ranks) = own.ranks else {
            return Err(Problem::refused(format!(
                "{}: how many ranks there are is unknown, and they wait for all",
                rank::words(own)
            ))
            .hint("give their number: `--ranks=M`"));
        };
        return Ok((own.clone(), ranks, None));
    }
    let processes = Processes::new(args.ranks.flatten().or(most))?;
    let own = processes.own()?;
    let ranks = own.ranks.unwrap_or(1);
    Ok((own, ranks, Some(processes)))
}

/// The numbers of ranks that measure, in ascending order.
fn steps(args: &BenchArgs, ranks: u64) -> Result<Vec<u64>, Problem> {
    let mut steps = args.scale.clone().unwrap_or_else(|| vec![ranks]);
    steps.sort_unstable();
    match steps.iter().find(|step| **step > ranks) {
        Some(step) => Err(Problem::refused(format!(
            "`--scale` asks for {step} ranks, and there are {}",
            counted(ranks, "rank", "ranks")
        ))
        .hint(format!("start {step}, or leave the greater numbers out"))),
        None => Ok(steps),
    }
}

/// What rank 0 has of a run.
struct Run {
    results: Vec<RankResult>,
    offsets: Vec<Offset>,
    workloads: Vec<Workload>,
    target: Target,
    warnings: Vec<Warning>,
}

/// What a rank brings.
#[derive(Debug, Serialize, Deserialize)]
struct RankResult {
    rank: RankRecord,
    /// For each workload its steps.
    cells: Vec<CellResult>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CellResult {
    state_check: StateCheck,
    dropped: Vec<String>,
    /// With starts by the wall clock of the rank.
    slices: Vec<RankSlice>,
}

/// Meets the others, measures with them, and brings what was measured; all of it for rank 0.
fn meet(
    args: &BenchArgs,
    sweep: &Sweep,
    (own, ranks): (&RankRecord, u64),
    steps: &[u64],
    progress: &Progress,
) -> Result<Option<Run>, Problem> {
    let dir = Dir::open(Path::new(&args.target)).map_err(|error| {
        Problem::refused(format!("cannot open the directory `{}`: {error}", args.target))
            .hint("name a directory that this user may write to")
    })?;
    let plan = format!("{sweep:?} {steps:?}");
    progress.at(0.0, args.rank_limit, "waiting for the other ranks");
    let job = Job { own, ranks, plan, patience: args.rank_limit };
    let mut meeting = Rendezvous::join(&Real, dir, &job)?;
    match measure(args, sweep, own, steps, &mut meeting, progress) {
        Ok(run) => {
            meeting.finish();
            Ok(run)
        }
        Err(problem) => {
            meeting.give_up(&problem);
            Err(problem)
        }
    }
}

fn measure(
    args: &BenchArgs,
    sweep: &Sweep,
    own: &RankRecord,
    steps: &[u64],
    meeting: &mut Rendezvous<'_>,
    progress: &Progress,
) -> Result<Option<Run>, Problem> {
    let needs = Needs {
        scratch_bytes: super::scratch_bytes(sweep),
        write: sweep.direction.writes(),
        destroy_data: None,
    };
    let target = targets::resolve(&args.target, &needs, progress)?;
    let mut warnings = Vec::new();
    let workloads = sweep.cells(&target.facts, &mut warnings)?;
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for workload in &workloads {
        for step in steps {
            let mut cell = super::cell(vec![workload.clone()], &[&target], sweep);
            cell.key = format!("{}-r{step}", cell.key);
            cells.push(cell);
        }
    }
    let keys: Vec<&str> = cells.iter().map(|cell| cell.key.as_str()).collect();
    let met = meeting.meet(keys.join(" "))?;
    if let Some(rank) = met.payloads.iter().position(|payload| *payload != met.payloads[0]) {
        return Err(Problem::failed(format!(
            "rank {rank} cannot measure the same cells as rank 0: its file system or kernel differs ({} and {})",
            met.payloads[rank], met.payloads[0]
        ))
        .hint("give `--method` and `--state` that hold for each of them"));
    }
    let rounds = if sweep.once { super::PASSES } else { super::ROUNDS };
    let mut in_step = InStep {
        meeting,
        steps,
        rank: own.rank,
        now: (0, 0),
        starts: HashMap::new(),
        met: None,
        closed: None,
    };
    let outcome = together::run(&cells, (rounds, sweep.seed), &mut in_step, &mut |p| {
        progress.at(p.share, p.remaining, p.cell);
    });
    let outcome = outcome.map_err(|problem| in_step.closed.take().unwrap_or(problem))?;
    let result = result(own, &outcome, &in_step.starts);
    let text = serde_json::to_string(&result)
        .map_err(|error| Problem::failed(format!("the figures of this rank cannot be written: {error}")))?;
    let Met { payloads, .. } = meeting.meet(text)?;
    if own.rank > 0 {
        return Ok(None);
    }
    let results =
        payloads.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<RankResult>, _>>();
    let results =
        results.map_err(|error| Problem::failed(format!("the figures of a rank cannot be read: {error}")))?;
    drop(cells);
    Ok(Some(Run { results, offsets: meeting.offsets(), workloads, target, warnings }))
}

/// The slices of a rank, each at the meeting with the others.
struct InStep<'m, 'w> {
    meeting: &'m mut Rendezvous<'w>,
    steps: &'m [u64],
    rank: u64,
    /// Cell and round.
    now: (usize, u32),
    /// The wall clock when each slice was let go, with the clock of its samples.
    starts: HashMap<(usize, u32), (i64, u64)>,
    met: Option<Met>,
    /// Why the others are not there any more.
    closed: Option<Problem>,
}

impl InStep<'_, '_> {
    fn takes_part(&self) -> bool {
        self.rank < self.steps[self.now.0 % self.steps.len()]
    }

    fn meet(&mut self) -> Result<Met, Problem> {
        self.meeting.meet(String::new()).inspect_err(|problem| self.closed = Some(problem.clone()))
    }
}

impl Gate for InStep<'_, '_> {
    fn open(&mut self) -> Result<(), Problem> {
        let met = self.meet()?;
        if self.takes_part() {
            self.met = Some(met);
        }
        Ok(())
    }

    fn opened(&mut self) {
        if let Some(met) = self.met.take() {
            self.meeting.wait_for_start(&met);
        }
        self.starts.insert(self.now, (Real.unix_ns(), Clock::real().now_ns()));
    }
}

impl Together for InStep<'_, '_> {
    fn begin(&mut self, cell: usize, round: u32) -> bool {
        self.now = (cell, round);
        self.takes_part()
    }

    fn end(&mut self) -> Result<(), Problem> {
        self.meet().map(|_| ())
    }
}

fn result(own: &RankRecord, outcome: &Outcome, starts: &HashMap<(usize, u32), (i64, u64)>) -> RankResult {
    let cells = outcome.cells.iter().enumerate().map(|(index, runs)| {
        let slice = |sample: &iowhy_core::cell::Sample| {
            let (unix_ns, clock_ns) = *starts.get(&(index, sample.round))?;
            Some(RankSlice {
                rank: own.rank,
                round: sample.round,
                start_ns: unix_ns.saturating_add_unsigned(sample.start_ns.saturating_sub(clock_ns)),
                wall_ns: sample.wall_ns,
                first_done_ns: sample.first_done_ns,
                requests: sample.requests,
                bytes: sample.claimed_bytes,
                thread_ns: sample.thread_ns,
                cpu_ns: sample.cpu_ns,
                run_delay_ns: sample.run_delay_ns,
            })
        };
        CellResult {
            state_check: StateCheck::worst(runs.iter().map(|run| run.state_check.clone())),
            dropped: runs.iter().flat_map(|run| run.dropped.clone()).collect(),
            slices: runs.iter().flat_map(|run| &run.samples).filter_map(slice).collect(),
        }
    });
    RankResult { rank: own.clone(), cells: cells.collect() }
}

/// One account of all ranks. All starts are brought to the clock of rank 0.
fn record(mut run: Run, sweep: &Sweep, steps: &[u64]) -> MeasuredRanksRecord {
    for (result, offset) in run.results.iter_mut().zip(&run.offsets) {
        let slices = result.cells.iter_mut().flat_map(|cell| &mut cell.slices);
        slices.for_each(|slice| slice.start_ns = slice.start_ns.saturating_sub(offset.middle_ns()));
    }
    let slices = || run.results.iter().flat_map(|result| &result.cells).flat_map(|cell| &cell.slices);
    let first = slices().map(|slice| slice.start_ns).min().unwrap_or(0);
    let cells: Vec<CellOfRanks> = run
        .workloads
        .iter()
        .enumerate()
        .map(|(index, workload)| cell(&run, (index, workload), steps, (first, sweep.seed)))
        .collect();
    let hosts = hosts(&run);
    let mut warnings = std::mem::take(&mut run.warnings);
    warnings.extend(of_clocks(&hosts, &cells));
    let mut dropped: Vec<&String> =
        run.results.iter().flat_map(|result| &result.cells).flat_map(|cell| &cell.dropped).collect();
    dropped.sort();
    dropped.dedup();
    warnings.extend(dropped.into_iter().map(|note| Warning::new("option-dropped", note.clone())));
    let own = &run.results[0].rank;
    MeasuredRanksRecord {
        schema: SCHEMA,
        kind: Kind::MeasuredRanks,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        environment: environment::environment(&run.target),
        target: run.target.facts.name.clone(),
        job: own.job.clone(),
        started_here: false,
        believed: own.believed.clone(),
        rounds: if sweep.once { super::PASSES } else { super::ROUNDS },
        seed: sweep.seed,
        ranks: run
            .results
            .iter()
            .map(|result| MemberOfRun { rank: result.rank.rank, host: result.rank.host.clone() })
            .collect(),
        hosts,
        warnings,
        cells,
    }
}

fn cell(
    run: &Run,
    (index, workload): (usize, &Workload),
    steps: &[u64],
    (first, seed): (i64, u64),
) -> CellOfRanks {
    let of = |step: usize| {
        run.results
            .iter()
            .filter_map(move |result| Some((result.rank.rank, result.cells.get(index * steps.len() + step)?)))
    };
    let step = |(at, ranks): (usize, &u64)| {
        let slices = of(at).flat_map(|(_, cell)| &cell.slices);
        let slices =
            slices.map(|slice| RankSlice { start_ns: slice.start_ns.saturating_sub(first), ..*slice });
        Step::new(*ranks, slices, seed)
    };
    let of_steps: Vec<Step> = steps.iter().enumerate().map(step).collect();
    let violated = (0..steps.len()).flat_map(of).find_map(|(rank, cell)| match &cell.state_check {
        StateCheck::Violated { reason } => Some(format!("rank {rank}: {reason}")),
        _ => None,
    });
    let checks = (0..steps.len()).flat_map(of).map(|(_, cell)| cell.state_check.clone());
    CellOfRanks {
        method: workload.method.id().to_owned(),
        pattern: workload.pattern.to_string(),
        direction: workload.direction,
        state: workload.state.id().to_owned(),
        state_check: StateCheck::worst(checks),
        violated,
        block_bytes: workload.block_bytes,
        region_bytes: workload.region_bytes,
        threads: workload.threads as u64,
        depth: workload.depth as u64,
        scale: (steps.len() > 1).then(|| Scale::new(&of_steps, seed)),
        steps: of_steps,
    }
}

fn hosts(run: &Run) -> Vec<HostOfMeasuredRanks> {
    let mut hosts: Vec<HostOfMeasuredRanks> = Vec::new();
    for (result, offset) in run.results.iter().zip(&run.offsets) {
        let RankRecord { rank, host, boot_id, .. } = &result.rank;
        match hosts.iter_mut().find(|known| known.host == *host && known.boot_id == *boot_id) {
            Some(known) => known.ranks.push(*rank),
            None => hosts.push(HostOfMeasuredRanks {
                host: host.clone(),
                boot_id: boot_id.clone(),
                ranks: vec![*rank],
                clock_lead_ns: offset.middle_ns(),
                clock_error_ns: offset.error_ns(),
                clock_was_set: offset.was_set,
            }),
        }
    }
    hosts
}

/// A lead of a clock that is mentioned.
const MIN_LEAD_NS: u64 = 10_000_000;
/// The part of a round by which starts may be unknown.
const MAX_ERROR_SHARE: f64 = 0.05;

/// What a reader must know of clocks and starts.
fn of_clocks(hosts: &[HostOfMeasuredRanks], cells: &[CellOfRanks]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let steps = || cells.iter().flat_map(|cell| &cell.steps);
    let rounds = steps().filter_map(|step| Some(step.last_done?.value));
    let shortest = rounds.fold(f64::INFINITY, f64::min);
    for host in hosts {
        let name = visible(&host.host);
        if host.clock_was_set {
            warnings.push(
                Warning::new("clock-was-set", format!(
                        "the clock of {name}, or that of rank 0, was set during the run: starts and ends of that time are wrong"
                    ))
                    .next("measure again"),
            );
        }
        if host.clock_lead_ns.unsigned_abs() > host.clock_error_ns.max(MIN_LEAD_NS) {
            warnings.push(
                Warning::new(
                    "clocks",
                    format!(
                        "the clock of {name} differs from that of rank 0 by {} (±{}); starts and ends are corrected by that",
                        time(host.clock_lead_ns as f64),
                        time(host.clock_error_ns as f64)
                    ),
                )
                .next("`chronyc tracking` on both hosts shows the error of their clocks"),
            );
        }
        if host.clock_error_ns as f64 > MAX_ERROR_SHARE * shortest {
            warnings.push(
                Warning::new(
                    "start-unknown",
                    format!(
                        "when the ranks on {name} began is known to ±{} only, of rounds of {}: the throughput of all ranks may be off \
                         by that",
                        time(host.clock_error_ns as f64),
                        time(shortest)
                    ),
                )
                .next("longer rounds: `--time 60s`"),
            );
        }
    }
    let apart = steps().filter_map(|step| {
        let share = step.started_within_ns as f64 / step.last_done?.value;
        (share > MAX_ERROR_SHARE).then_some(Duration::from_nanos(step.started_within_ns))
    });
    if let Some(apart) = apart.max() {
        warnings.push(
            Warning::new(
                "starts-apart",
                format!(
                    "in a round the ranks began {} apart: throughput counts from the first start, and is lower by that",
                    time(apart.as_nanos() as f64)
                ),
            )
            .next("longer rounds: `--time 60s`; ranks that share a CPU begin when they get it"),
        );
    }
    warnings
}

/// The reason where cells were not what they claim.
fn mislabelled(record: &MeasuredRanksRecord) -> Option<Problem> {
    let bad: Vec<&String> = record.cells.iter().filter_map(|cell| cell.violated.as_ref()).collect();
    let first = bad.first()?;
    let of = counted(record.cells.len() as u64, "cell", "cells");
    Some(
        Problem::failed(format!("{} of {of} not what they claim: {first}", bad.len()))
            .hint("other processes or little free memory can cause it: run it again when the hosts are idle"),
    )
}
