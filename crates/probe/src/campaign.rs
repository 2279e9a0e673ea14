//! Measures cells in interleaved rounds, in seeded order, until each is precise enough or the time is over. Prepares
//! and verifies the cache state around each slice.
//!
//! Invariant: a cell that fails keeps its samples and its reason and does not stop the others; an interrupt ends the
//! campaign with what is known.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iowhy_core::cell::{CellRun, Sample, StateCheck, StateEvidence};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::histogram::Histogram;
use iowhy_core::pattern::Offsets;
use iowhy_core::problem::Problem;
use iowhy_core::schedule;
use iowhy_core::stats::{self, Stop, StopRule};
use iowhy_core::workload::{CacheState, Method, Workload};

use crate::arm::Arm;
use crate::counters::KernelThreads;
use crate::interleave::{self, can_interleave};
use crate::interrupt;
use crate::listed::RequestLists;
use crate::residency;
use crate::runner::{self, Bounds, Gate, Slice};
use crate::target::{OpenMode, Target};

/// One cell of a plan. Several arms run side by side from one barrier.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// Stable key, unique in the plan.
    pub key: String,
    /// Workload and target; one entry per target.
    pub arms: Vec<(Workload, &'a Target)>,
    /// Bounds of one slice of it.
    pub bounds: Bounds,
    /// The requests of its one arm, where the workload's pattern does not say them; its block is then the largest of them.
    pub listed: Option<Arc<RequestLists>>,
    /// Cells with the same group are measured side by side in each round.
    pub group: Option<Group>,
    /// Bytes of each request at the workload's offsets, where they are fewer than a block.
    pub request_bytes: Option<u64>,
}

/// Cells that are compared with each other closely, by the name of what they explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// In turn, in blocks of a millisecond: see [`interleave`].
    Blocks(&'static str),
    /// Slice after slice in random order. Before them the page cache takes the memory that they need and frees it: memory
    /// that a hypervisor or the kernel provides on first use makes the first reads slower (240 us instead of 20 us for
    /// 128 KiB were seen). Writes through the cache find none of their pages in it.
    Slices(&'static str),
}

/// When a campaign ends.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds that run even when the time is over (an interrupt still ends them).
    pub min_rounds: u32,
    /// Rounds that are never exceeded.
    pub max_rounds: u32,
    /// Wall time after which no new round is begun; virtual time, where all targets are scripted: how fast the host follows
    /// a script says nothing, and the same script must give the same rounds.
    pub time: Duration,
    /// Longer arm of the 95 % interval relative to the value at which a cell is known well enough; 0 uses every round.
    pub precision: f64,
    /// Seed of the order of cells and of the bootstrap.
    pub seed: u64,
}

/// Progress of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Share done, 0 to 1, by time.
    pub share: f64,
    /// Estimated time to the end.
    pub remaining: Duration,
    /// The cell that is being measured.
    pub cell: &'a str,
}

/// Result of a campaign, in the order of the plan: one run for each arm of each cell.
#[derive(Debug)]
pub struct Outcome {
    /// One entry per cell, each with one run per arm.
    pub cells: Vec<Vec<CellRun>>,
    /// Rounds completed.
    pub rounds: u32,
    /// Whether an interrupt ended it.
    pub interrupted: bool,
}

impl Outcome {
    /// Appends further rounds of the cells with these indexes, begun `after` the first round of this outcome.
    pub fn append(&mut self, indexes: &[usize], more: Outcome, after: Duration) {
        let first = self.rounds_of(indexes);
        for (index, runs) in indexes.iter().zip(more.cells) {
            let Some(known) = self.cells.get_mut(*index) else { continue };
            for (known, run) in known.iter_mut().zip(runs) {
                let later = |sample: Sample| Sample {
                    round: first + sample.round,
                    start_ns: sample.start_ns.saturating_add(after.as_nanos() as u64),
                    ..sample
                };
                known.samples.extend(run.samples.into_iter().map(later));
                known.latency.merge(&run.latency);
                known.state_check = StateCheck::worst([known.state_check.clone(), run.state_check]);
                known.failure = known.failure.take().or(run.failure);
                let new = run.dropped.into_iter().filter(|note| !known.dropped.contains(note));
                let new: Vec<String> = new.collect();
                known.dropped.extend(new);
            }
        }
        self.interrupted |= more.interrupted;
    }

    /// Samples of all cells.
    pub fn samples(&self) -> usize {
        self.cells.iter().flatten().map(|run| run.samples.len()).sum()
    }

    /// The number of the next round of these cells.
    fn rounds_of(&self, indexes: &[usize]) -> u32 {
        let runs = indexes.iter().filter_map(|index| self.cells.get(*index)).flatten();
        runs.flat_map(|run| &run.samples).map(|sample| sample.round + 1).max().unwrap_or(self.rounds)
    }
}

/// Measures a plan.
pub fn run(cells: &[Cell<'_>], effort: Effort, progress: &mut dyn FnMut(Progress<'_>)) -> Outcome {
    let begun = Instant::now();
    let mut kernel_threads = KernelThreads::open();
    let mut states: Vec<CellState> = cells.iter().map(CellState::new).collect();
    let mut rounds = 0;
    let mut first_round = Duration::ZERO;
    let scripted = cells.iter().all(|cell| cell.arms.iter().all(|(_, target)| target.script().is_some()));
    let spent = |states: &[CellState]| {
        if scripted {
            Duration::from_nanos(states.iter().map(CellState::measured_ns).sum())
        } else {
            begun.elapsed()
        }
    };
    while rounds < effort.max_rounds && !interrupt::requested() {
        let open: Vec<usize> = (0..cells.len()).filter(|&i| states[i].wants_more(rounds, &effort)).collect();
        if open.is_empty() || (rounds >= effort.min_rounds && spent(&states) + first_round > effort.time) {
            break;
        }
        let units = units(cells, &open);
        let mut position = 0;
        for pick in schedule::interleave(units.len(), rounds, effort.seed) {
            let unit = &units[pick];
            populate(cells, unit);
            let mut at = |index: usize| {
                let (share, remaining) = ahead(&begun, rounds, position, open.len(), &effort);
                progress(Progress { share, remaining, cell: &cells[index].key });
                position += 1;
                !interrupt::requested()
            };
            let in_blocks = matches!(unit.as_slice(), [first, _, ..] if matches!(cells[*first].group, Some(Group::Blocks(_))));
            if in_blocks {
                if unit.iter().all(|index| at(*index)) {
                    blocks(cells, &mut states, unit, (rounds, begun, effort.seed));
                }
                continue;
            }
            let seed = effort.seed ^ unit.first().map_or(0, |first| *first as u64);
            warm_up(cells, unit);
            for turn in 0..MAX_TURNS {
                for place in schedule::interleave(unit.len(), rounds * MAX_TURNS + turn, seed) {
                    let (index, cell) = (unit[place], &cells[unit[place]]);
                    let wanted = turn == 0 || states[index].has_time_left(cell, rounds);
                    if wanted && (turn > 0 || at(index)) {
                        states[index].slice(cell, rounds, begun, kernel_threads.as_mut(), None);
                    }
                }
            }
        }
        rounds += 1;
        if rounds == 1 {
            first_round = spent(&states);
        }
    }
    Outcome {
        cells: states.into_iter().map(|s| s.finish()).collect(),
        rounds,
        interrupted: interrupt::requested(),
    }
}

/// Slices of a cell of [`Group::Slices`] in one round, where its requests end before its time does: they sum to one sample.
const MAX_TURNS: u32 = 16;

/// The open cells in units that are measured side by side: a group, or a cell.
fn units(cells: &[Cell<'_>], open: &[usize]) -> Vec<Vec<usize>> {
    let mut units: Vec<Vec<usize>> = Vec::new();
    for &index in open {
        let group = cells[index].group;
        match units.iter_mut().find(|unit| group.is_some() && cells[unit[0]].group == group) {
            Some(unit) => unit.push(index),
            None => units.push(vec![index]),
        }
    }
    units
}

/// Has the page cache take and free the memory that cold reads and writes of a group will need. What cannot be fetched here fails
/// where it is measured.
fn populate(cells: &[Cell<'_>], unit: &[usize]) {
    let cold = unit.iter().filter(|index| matches!(cells[**index].group, Some(Group::Slices(_))));
    let cold = cold.filter_map(|index| cells[*index].arms.first());
    let cold = cold.filter(|(w, _)| w.state == CacheState::Cold || w.direction.writes());
    let Some((workload, target)) = cold.max_by_key(|(workload, _)| workload.region_bytes) else { return };
    let rest = target.facts.size_bytes.saturating_sub(workload.region_offset);
    let bytes = workload.region_bytes.max(MIN_POPULATED_BYTES).min(rest);
    if let Some(script) = target.script() {
        script.quirks.populate(bytes);
    }
    if !target.has_page_cache() {
        return;
    }
    for (part, offset, bytes) in target.ranges(workload.region_offset, bytes) {
        if let Ok(file) = part.open(OpenMode::default()) {
            let fd = file.as_fd();
            let _ = residency::fetch(fd, offset, bytes).and_then(|_| residency::evict(fd, offset, bytes));
        }
    }
}

/// Runs a slice that does not count before those of a group of warm cells: the first one finds the pages of the file and of its
/// mapping in no cache of the CPU (300 ns a page instead of 155 were seen), and would make whatever cell begins slower.
fn warm_up(cells: &[Cell<'_>], unit: &[usize]) {
    let warm = |index: &usize| {
        matches!(cells[*index].group, Some(Group::Slices(_)))
            && cells[*index]
                .arms
                .iter()
                .all(|(w, target)| w.state == CacheState::Warm && target.script().is_none())
    };
    let Some(cell) = unit.first().map(|first| &cells[*first]).filter(|_| unit.iter().all(warm)) else {
        return;
    };
    let [(workload, target)] = cell.arms.as_slice() else { return };
    // What fails here fails where it counts.
    if prepare(workload, target).is_ok() {
        let arm = Arm { workload, target, listed: cell.listed.as_deref(), request_bytes: cell.request_bytes };
        let _ = runner::run(&[arm], cell.bounds, None);
    }
}

/// The kernel may take other free memory than what was just freed, so a small region populates more than itself.
const MIN_POPULATED_BYTES: u64 = 128 << 20;

/// Measures the cells of a unit in blocks; one that cannot be is measured in a slice.
fn blocks(
    cells: &[Cell<'_>],
    states: &mut [CellState],
    unit: &[usize],
    (round, begun, seed): (u32, Instant, u64),
) {
    let mut prepared = Vec::new();
    for &index in unit {
        let cell = &cells[index];
        let [(workload, target)] = cell.arms.as_slice() else { continue };
        if !can_interleave(workload) || cell.listed.is_some() {
            states[index].slice(cell, round, begun, None, None);
        } else if let Some(before) = states[index].prepare(cell, round) {
            let arm = Arm { workload, target, listed: None, request_bytes: cell.request_bytes };
            prepared.push((index, before, (arm, cell.bounds.wall)));
        }
    }
    let start_ns = begun.elapsed().as_nanos() as u64;
    let arms: Vec<(Arm<'_>, Duration)> = prepared.iter().map(|(_, _, arm)| *arm).collect();
    let slices = interleave::run(&arms, seed ^ u64::from(round) << 32);
    for ((index, before, _), slice) in prepared.into_iter().zip(slices) {
        match slice {
            Ok(slice) => states[index].book(&cells[index], (round, start_ns), &before, vec![slice]),
            Err(problem) => states[index].fail(&problem),
        }
    }
}

/// Share done and time to the end. The end is whichever comes later of the time and the minimum number of rounds, or
/// earlier when the greatest number of rounds is reached first, at the pace seen so far.
fn ahead(begun: &Instant, rounds: u32, position: usize, cells: usize, effort: &Effort) -> (f64, Duration) {
    let spent = begun.elapsed().as_secs_f64();
    let done = f64::from(rounds) + position as f64 / cells.max(1) as f64;
    if done == 0.0 {
        return (0.0, effort.time);
    }
    let per_round = spent / done;
    let least = per_round * f64::from(effort.min_rounds);
    let most = per_round * f64::from(effort.max_rounds);
    let end = effort.time.as_secs_f64().max(least).min(most).max(spent);
    (spent / end, Duration::from_secs_f64(end - spent))
}

/// A cell while it is measured.
pub(crate) struct CellState {
    pub(crate) runs: Vec<CellRun>,
    checks: Vec<Vec<StateCheck>>,
    failed: bool,
}

impl CellState {
    pub(crate) fn new(cell: &Cell<'_>) -> Self {
        let many = cell.arms.len() > 1;
        let runs = cell
            .arms
            .iter()
            .map(|(workload, target)| CellRun {
                // The record says what a request is; its offsets are those of the whole blocks.
                workload: Workload {
                    block_bytes: cell.request_bytes.unwrap_or(workload.block_bytes),
                    ..workload.clone()
                },
                key: if many { format!("{}@{}", cell.key, target.facts.name) } else { cell.key.clone() },
                samples: Vec::new(),
                latency: Histogram::default(),
                state_check: StateCheck::NotApplicable,
                dropped: Vec::new(),
                failure: None,
            })
            .collect::<Vec<_>>();
        CellState { checks: vec![Vec::new(); runs.len()], runs, failed: false }
    }

    /// Not failed, and not yet precise enough.
    fn wants_more(&self, rounds: u32, effort: &Effort) -> bool {
        let rule = StopRule {
            precision: effort.precision,
            min_rounds: u64::from(effort.min_rounds),
            budget_ns: u64::MAX,
        };
        let estimates: Vec<Option<Estimate>> = self
            .runs
            .iter()
            .map(|run| {
                let values: Vec<f64> = run.samples.iter().map(Sample::ns_per_request).collect();
                stats::bootstrap_median(&values, effort.seed, Unit::Nanoseconds)
            })
            .collect();
        !self.failed && rule.decide(&estimates, u64::from(rounds), 0, 0) == Stop::GoOn
    }

    /// Prepares, runs and verifies one slice; books it.
    pub(crate) fn slice(
        &mut self,
        cell: &Cell<'_>,
        round: u32,
        begun: Instant,
        kernel_threads: Option<&mut KernelThreads>,
        gate: Option<&mut dyn Gate>,
    ) {
        let Some(before) = self.prepare(cell, round) else { return };
        let arms: Vec<Arm<'_>> = cell
            .arms
            .iter()
            .map(|(workload, target)| Arm {
                workload,
                target,
                listed: cell.listed.as_deref(),
                request_bytes: cell.request_bytes,
            })
            .collect();
        let (at_gate, start_ns) = (gate.is_some(), begun.elapsed().as_nanos() as u64);
        let slices = match runner::run_at(gate, &arms, cell.bounds, kernel_threads) {
            Ok(slices) => slices,
            Err(problem) => return self.fail(&problem),
        };
        for (workload, target) in &cell.arms {
            if let Err(problem) = write_back(workload, target) {
                return self.fail(&problem);
            }
        }
        // How long it waited at a gate is nobody's time.
        let own = slices.first().filter(|_| at_gate).map(|slice| slice.sample.start_ns);
        self.book(cell, (round, own.unwrap_or(start_ns)), &before, slices);
    }

    /// Whether slices of a group fit in what this round left of a cell's time.
    fn has_time_left(&self, cell: &Cell<'_>, round: u32) -> bool {
        let grouped = matches!(cell.group, Some(Group::Slices(_))) && !self.failed && !interrupt::requested();
        let last = self.runs.first().and_then(|run| run.samples.last()).filter(|last| last.round == round);
        let spent = |last: &Sample| 3 * u128::from(last.wall_ns) / 2 < cell.bounds.wall.as_nanos();
        grouped && last.is_some_and(spent)
    }

    /// Brings the cache into the claimed state and looks at it, arm by arm; `None` where that failed.
    fn prepare(&mut self, cell: &Cell<'_>, round: u32) -> Option<Vec<Option<Seen>>> {
        let arm = |(workload, target): &(Workload, &Target)| {
            if round == 0 {
                read_first(workload, target)?;
            }
            if cell.group.is_some() {
                forget_written(workload, target)?;
            }
            prepare(workload, target)
        };
        match cell.arms.iter().map(arm).collect::<Result<Vec<_>, Problem>>() {
            Ok(before) => Some(before),
            Err(problem) => {
                self.fail(&problem);
                None
            }
        }
    }

    /// Verifies the cache state after a slice and books it.
    fn book(
        &mut self,
        cell: &Cell<'_>,
        (round, start_ns): (u32, u64),
        before: &[Option<Seen>],
        slices: Vec<Slice>,
    ) {
        for (i, mut slice) in slices.into_iter().enumerate() {
            let (workload, target) = &cell.arms[i];
            slice.sample.round = round;
            slice.sample.start_ns = start_ns;
            if let Some(before) = &before[i] {
                let after = look(workload, target);
                slice.sample.resident_before = before.as_ref().ok().copied();
                slice.sample.resident_after = after.as_ref().ok().copied();
                let evidence = StateEvidence {
                    before: slice.sample.resident_before,
                    after: slice.sample.resident_after,
                    blind_reason: before.clone().err().or(after.err()),
                    region_bytes: workload.region_bytes,
                    claimed_bytes: slice.sample.claimed_bytes,
                    // Only a cold claim is spoilt by repeats; counting them takes memory by the block.
                    repeated: match (&cell.listed, workload.state) {
                        (Some(listed), CacheState::Cold) => listed.repeated(),
                        (None, CacheState::Cold) => repeated_share(workload, slice.sample.requests),
                        _ => 0.0,
                    },
                };
                self.checks[i].push(StateCheck::judge(workload.state, &evidence));
            }
            let run = &mut self.runs[i];
            if slice.sample.requests > 0 {
                run.latency.merge(&slice.latency);
                let latency_quarters = slice.latency.quarters();
                match run.samples.last_mut().filter(|last| last.round == round) {
                    Some(last) => last.add(&Sample { latency_quarters, ..slice.sample }),
                    None => run.samples.push(Sample { latency_quarters, ..slice.sample }),
                }
            }
            for note in slice.dropped {
                if !run.dropped.contains(&note) {
                    run.dropped.push(note);
                }
            }
            if slice.failure.is_some() {
                run.failure = slice.failure;
                self.failed = true;
            }
        }
    }

    /// Time in the slices so far; arms run side by side.
    fn measured_ns(&self) -> u64 {
        let of = |run: &CellRun| run.samples.iter().map(|sample| sample.wall_ns).sum();
        self.runs.iter().map(of).max().unwrap_or(0)
    }

    fn fail(&mut self, problem: &Problem) {
        self.failed = true;
        let text = match &problem.hint {
            Some(hint) => format!("{problem} (hint: {hint})"),
            None => problem.to_string(),
        };
        for run in &mut self.runs {
            run.failure = Some(text.clone());
        }
    }

    /// A cell is what it claims only if every round was.
    pub(crate) fn finish(mut self) -> Vec<CellRun> {
        for (run, checks) in self.runs.iter_mut().zip(self.checks) {
            run.state_check = StateCheck::worst(checks);
        }
        self.runs
    }
}

/// Share of the region in the cache, or why it cannot be seen.
pub(crate) type Seen = Result<f64, String>;

/// Reads a region plainly before it is populated or locked for the first time: where a page cannot be read, `mlock` and
/// MAP_POPULATE do not come back from the kernel (seen on 6.18), while a read says what is wrong. What we wrote ourselves
/// a moment ago needs no such test.
fn read_first(workload: &Workload, target: &Target) -> Result<(), Problem> {
    let may_hang = matches!(workload.method, Method::MmapPopulate | Method::MmapLock);
    if may_hang && target.has_page_cache() && !target.is_scratch() {
        for (part, offset, bytes) in target.ranges(workload.region_offset, workload.region_bytes) {
            let file = part.open(OpenMode::default())?;
            residency::fetch(file.as_fd(), offset, bytes)?;
        }
    }
    Ok(())
}

/// Drops the cached pages of a region that is written through the cache, so that every slice allocates them.
fn forget_written(workload: &Workload, target: &Target) -> Result<(), Problem> {
    if workload.direction.writes() && workload.state == CacheState::None && target.has_page_cache() {
        for (part, offset, bytes) in target.ranges(workload.region_offset, workload.region_bytes) {
            let file = part.open(OpenMode { write: part.is_scratch(), ..OpenMode::default() })?;
            residency::evict(file.as_fd(), offset, bytes)?;
        }
    }
    Ok(())
}

/// Brings the page cache into the claimed state and looks at it; `None` where no state is claimed or no page cache is
/// involved.
pub(crate) fn prepare(workload: &Workload, target: &Target) -> Result<Option<Seen>, Problem> {
    if !target.has_page_cache() || workload.state == CacheState::None {
        return Ok(None);
    }
    for (part, offset, bytes) in target.ranges(workload.region_offset, workload.region_bytes) {
        let file = part.open(OpenMode { write: part.is_scratch(), ..OpenMode::default() })?;
        let fd = file.as_fd();
        if workload.state == CacheState::Warm {
            if !residency::look(fd, offset, bytes).is_ok_and(|seen| seen.resident == seen.pages) {
                residency::fetch(fd, offset, bytes)?;
            }
        } else {
            // Direct cells too: a request that silently went through a full cache would not show in it.
            residency::evict(fd, offset, bytes)?;
        }
    }
    Ok(Some(look(workload, target)))
}

/// Looks at the region without changing anything.
pub(crate) fn look(workload: &Workload, target: &Target) -> Seen {
    let (mut pages, mut resident) = (0u64, 0u64);
    for (part, offset, bytes) in target.ranges(workload.region_offset, workload.region_bytes) {
        let file = part.open(OpenMode::default()).map_err(|problem| problem.to_string())?;
        let seen = residency::look(file.as_fd(), offset, bytes)?;
        pages += seen.pages;
        resident += seen.resident;
    }
    Ok(if pages == 0 { 0.0 } else { resident as f64 / pages as f64 })
}

/// Writes back the dirty pages of a slice, so that the next slice does not pay for them.
pub(crate) fn write_back(workload: &Workload, target: &Target) -> Result<(), Problem> {
    if !workload.direction.writes() || !target.has_page_cache() {
        return Ok(());
    }
    for part in target.data_targets() {
        let file = part.open(OpenMode { write: true, ..OpenMode::default() })?;
        rustix::fs::fdatasync(&file).map_err(|errno| {
            Problem::failed(format!(
                "cannot write out what was written to `{}`: {}",
                part.facts.name,
                std::io::Error::from(errno)
            ))
        })?;
    }
    Ok(())
}

/// Share of a round's requests that asked for a block asked for before in the round. Patterns without chance are
/// reckoned; the others are drawn again from the seed, as if every thread had made its equal part.
fn repeated_share(workload: &Workload, requests: u64) -> f64 {
    let blocks = workload.blocks().max(1);
    if requests == 0 {
        return 0.0;
    }
    if !workload.pattern.revisits() {
        return requests.saturating_sub(blocks) as f64 / requests as f64;
    }
    let mut asked = vec![false; blocks as usize];
    let all = Offsets::new(workload.pattern, blocks, workload.seed);
    let threads = workload.threads.max(1);
    for thread in 0..threads {
        let mut offsets = all.for_thread(thread, threads);
        for _ in 0..requests / threads as u64 {
            asked[offsets.next() as usize] = true;
        }
    }
    let distinct = asked.iter().filter(|&&a| a).count() as u64;
    requests.saturating_sub(distinct) as f64 / requests as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;
    use iowhy_core::pattern::Pattern;

    #[test]
    fn repeats_are_none_within_one_pass_and_counted_beyond_it() {
        let mut w = Workload::reads(Method::Pread, CacheState::Cold, 4096, 4096 * 1000);
        assert_eq!(repeated_share(&w, 1000), 0.0);
        assert_eq!(repeated_share(&w, 2000), 0.5);
        // Uniform draws of as many as there are blocks leave 1/e of the blocks out.
        w.pattern = Pattern::Random;
        let share = repeated_share(&w, 1000);
        assert!((share - 0.368).abs() < 0.05, "{share}");
    }

    #[test]
    fn further_rounds_are_numbered_after_the_first_ones() {
        let target = Target::scripted(Script::from_spec("scripted").unwrap());
        let workload = Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20);
        let bounds = Bounds { wall: Duration::from_millis(2), requests_per_thread: u64::MAX };
        let cell = |key: &str| Cell {
            key: key.to_owned(),
            arms: vec![(workload.clone(), &target)],
            bounds,
            listed: None,
            group: None,
            request_bytes: None,
        };
        let cells = [cell("a"), cell("b")];
        let rounds =
            |n| Effort { min_rounds: n, max_rounds: n, time: Duration::MAX, precision: 0.0, seed: 1 };
        let mut outcome = run(&cells, rounds(3), &mut |_| {});
        let once: u64 = outcome.cells[1][0].latency.count();
        for _ in 0..2 {
            let more = run(&cells[1..], rounds(2), &mut |_| {});
            outcome.append(&[1], more, Duration::from_secs(9));
        }
        let numbers = |cell: usize| -> Vec<u32> {
            outcome.cells[cell][0].samples.iter().map(|sample| sample.round).collect()
        };
        assert_eq!((numbers(0), numbers(1)), (vec![0, 1, 2], vec![0, 1, 2, 3, 4, 5, 6]));
        assert!(outcome.cells[1][0].samples[3].start_ns >= 9_000_000_000);
        assert!(outcome.cells[1][0].latency.count() > 2 * once);
    }

    #[test]
    fn the_budget_of_a_script_is_virtual_time_and_gives_the_same_rounds_always() {
        let target = Target::scripted(Script::from_spec("scripted").unwrap());
        let workload = Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20);
        let bounds = Bounds { wall: Duration::from_millis(2), requests_per_thread: u64::MAX };
        let cells = [Cell {
            key: "a".to_owned(),
            arms: vec![(workload, &target)],
            bounds,
            listed: None,
            group: None,
            request_bytes: None,
        }];
        let rounds = |budget| {
            let effort = Effort { min_rounds: 1, max_rounds: 50, time: budget, precision: 0.0, seed: 1 };
            run(&cells, effort, &mut |_| {}).rounds
        };
        // Slices of 2 ms and at most a request more: the fifth would end after 9 ms.
        assert_eq!(rounds(Duration::from_millis(9)), 4);
        assert_eq!(rounds(Duration::ZERO), 1, "the least");
        assert_eq!(rounds(Duration::from_secs(1)), 50, "the most, however long the host takes");
    }
}
