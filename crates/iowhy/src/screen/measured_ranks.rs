//! `bench --ranks`: throughput of all ranks together, its growth with their number, and each rank's part.

use iowhy_core::cell::StateCheck;
use iowhy_core::estimate::Estimate;
use iowhy_core::text::visible;
use iowhy_core::units::{self, Bytes, time};
use iowhy_path::ranks::scale::{Growth, Scale, ScaleReason};
use iowhy_path::ranks::{LEVEL, MIN_LOSS, OfRank, SlowRank, Step};
use iowhy_view::document::{Cell, Chapter, Detail, Part, Section, Shape, Table};

use super::compare::percent;
use super::compare::runs::chance;
use super::figures::{percent_of, plural};
use super::{heading, surroundings};
use crate::record::measured_ranks::{CellOfRanks, MeasuredRanksRecord};

/// Ranks on a screen; of more those that are slow, and the least.
const MAX_ROWS: usize = 16;
/// Ranks on a page.
const MAX_ON_PAGE: usize = 1000;
/// Cells whose verdicts come first.
const MAX_VERDICTS: usize = 3;

/// The chapter.
pub fn chapter(record: &MeasuredRanksRecord, detail: Detail) -> Chapter {
    let several = record.cells.len() > 1;
    let mut sections = vec![
        Section::new("", verdicts(record, several)),
        Section::quiet("Together", vec![Part::Table(together(record, several, detail))]),
        Section::quiet("Ranks", ranks(record, several, detail)),
        Section::new("", vec![note(record)]),
    ];
    let mut facts = facts(record);
    if detail.is_page() {
        facts.push(record.command.clone());
        sections.push(surroundings::section(&record.environment, &record.warnings));
    }
    let number = plural(record.ranks.len() as u64, "rank", "ranks");
    Chapter {
        title: format!("{number} in {}", visible(&record.target)),
        about: String::new(),
        facts,
        sections,
    }
}

fn facts(record: &MeasuredRanksRecord) -> Vec<String> {
    let hosts = match record.hosts.as_slice() {
        [only] => format!("on {}", visible(&only.host)),
        several => format!("on {} hosts", units::count(several.len() as u64)),
    };
    let how = match (record.started_here, &record.job) {
        (true, _) => Some("started by iowhy".to_owned()),
        (false, Some(job)) => Some(format!("job {}", visible(job))),
        (false, None) => None,
    };
    let by = (!record.started_here).then(|| format!("by {}", record.believed.join(" and ")));
    let mut facts = vec![[Some(hosts), how, by].into_iter().flatten().collect::<Vec<_>>().join(", ")];
    facts.extend(heading::machine(&record.environment));
    if let [only] = record.cells.as_slice() {
        let threads = plural(only.threads, "thread", "threads");
        facts.push(format!(
            "{}; each rank: {threads}, queue depth {}, {} of a scratch file of its own",
            name(only),
            only.depth,
            Bytes(only.region_bytes)
        ));
    }
    facts
}

/// `pread sequential cold 4 KiB`
fn name(cell: &CellOfRanks) -> String {
    let state = match (&cell.state_check, cell.state.as_str()) {
        (_, "none") => String::new(),
        (StateCheck::Verified, state) => format!(" {state} ✓"),
        (StateCheck::Violated { .. }, state) => format!(" not {state}"),
        (StateCheck::Inconclusive { .. }, state) => format!(" {state}?"),
        (StateCheck::NotApplicable, state) => format!(" {state}"),
    };
    format!("{} {}{state} {}", cell.method, cell.pattern, Bytes(cell.block_bytes))
}

/// The name of a cell where there are several, with what differs.
fn label(cell: &CellOfRanks) -> String {
    let threads = if cell.threads > 1 { format!(", {} threads", cell.threads) } else { String::new() };
    let depth = if cell.depth > 1 { format!(", depth {}", cell.depth) } else { String::new() };
    format!("{}{threads}{depth}", name(cell))
}

fn verdicts(record: &MeasuredRanksRecord, several: bool) -> Vec<Part> {
    let mut verdicts = Vec::new();
    for cell in &record.cells {
        let Some(last) = cell.steps.last() else { continue };
        let of = if several { format!("{}: ", label(cell)) } else { String::new() };
        let said = match &cell.scale {
            Some(scale) => {
                format!("{of}{}: {}", scale.verdict.id(), reason(scale, last, record.hosts.len() == 1))
            }
            None => {
                let together = last.throughput.as_ref().map_or_else(|| "-".to_owned(), units::estimate);
                format!("{of}{} together: {together}", plural(last.ranks, "rank", "ranks"))
            }
        };
        verdicts.push(Part::Verdict(said));
        if let Some(slow) = slowest(record, last) {
            verdicts.push(Part::Verdict(format!("{of}{slow}")));
        }
    }
    let left = record.cells.len().saturating_sub(MAX_VERDICTS);
    if left > 0 {
        verdicts.truncate(2 * MAX_VERDICTS);
        verdicts.push(Part::Text(format!("{} in the table", plural(left as u64, "more cell", "more cells"))));
    }
    verdicts
}

/// `Rank 2 on node07 is the slowest: 0.21 times the throughput of the others, slowest in 12 of 12 rounds`
fn slowest(record: &MeasuredRanksRecord, step: &Step) -> Option<String> {
    let SlowRank { rank, of_others, rounds_slowest, .. } = step.slow.first()?;
    let more = match step.slow.len() - 1 {
        0 => String::new(),
        more => format!("; {} also slow", plural(more as u64, "rank is", "ranks are")),
    };
    Some(format!(
        "Rank {rank}{} is the slowest: {} times the throughput of the others, slowest in {rounds_slowest} of {} rounds{more}",
        on_host(record, *rank),
        units::factor(of_others),
        of_others.n
    ))
}

/// Its name; empty where it has none.
fn host(record: &MeasuredRanksRecord, rank: u64) -> String {
    let member = record.ranks.iter().find(|member| member.rank == rank);
    member.map_or_else(String::new, |member| visible(&member.host).into_owned())
}

/// ` on node07`
fn on_host(record: &MeasuredRanksRecord, rank: u64) -> String {
    Some(host(record, rank))
        .filter(|host| !host.is_empty())
        .map_or_else(String::new, |host| format!(" on {host}"))
}

/// Why a verdict was given.
fn reason(scale: &Scale, last: &Step, one_host: bool) -> String {
    let share = |estimate: Option<&Estimate>| estimate.map_or_else(|| "-".to_owned(), units::share);
    let waits = share(last.waits.as_ref());
    let ranks = plural(last.ranks, "rank", "ranks");
    let grows = scale.growth.last().map_or_else(String::new, grown);
    match scale.reason {
        ScaleReason::StoppedAndWaits => {
            let host = match one_host {
                true => {
                    ". All ranks are on one host: what they share there, such as its link, counts as the server"
                }
                false => "",
            };
            format!("{grows}, and each rank waits {waits} of its time{host}")
        }
        ScaleReason::Runs => format!(
            "with {ranks} each runs {} of its time and waits for a CPU {}: their CPUs are the limit, not the server ({grows})",
            share(last.cpu.as_ref()),
            share(last.run_delay.as_ref())
        ),
        ScaleReason::StillGrows => format!(
            "{grows}, and each rank waits {waits} of its time: the limit is beyond {ranks}; more ranks or a greater `--iodepth` show it"
        ),
        ScaleReason::GrowthUnsure => {
            format!(
                "{grows}: about half of what is in proportion, or too noisy to tell; `--time 60s` narrows it"
            )
        }
        ScaleReason::WaitsUnsure => {
            format!(
                "with {ranks} each waits {waits} of its time: neither the server nor the CPUs for certain ({grows})"
            )
        }
        ScaleReason::TooFewRounds => "fewer than 3 rounds have all ranks; `--time` gives more".to_owned(),
        ScaleReason::OneStep => "one number of ranks shows no growth".to_owned(),
    }
}

/// `from 4 to 8 ranks throughput grows by the factor 1.03 ±2 % (in proportion: 2.0)`
fn grown(growth: &Growth) -> String {
    let factor = growth.factor.as_ref().map_or_else(|| "-".to_owned(), units::factor);
    format!(
        "from {} to {} throughput grows by the factor {factor} (in proportion: {:.1})",
        growth.fewer,
        plural(growth.more, "rank", "ranks"),
        growth.more as f64 / growth.fewer as f64
    )
}

fn shown(estimate: Option<&Estimate>, detail: Detail) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| detail.estimate(estimate))
}

fn share(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| percent_of(estimate.value))
}

fn shapes(order: &[&'static str]) -> Vec<Shape> {
    (0..=order.len()).map(|left| Shape { bar: 0, items: 0, without: order[..left].to_vec() }).collect()
}

fn together(record: &MeasuredRanksRecord, several: bool, detail: Detail) -> Table {
    let mut headings = vec!["cell"; usize::from(several)];
    headings.extend(["#ranks", "#throughput", "#requests", "#growth", "#first done", "#last done"]);
    headings.extend(["#runs", "#waits for CPU", "#waits"]);
    let mut table = Table::new(headings);
    for cell in &record.cells {
        for (at, step) in cell.steps.iter().enumerate() {
            let mut row: Vec<Cell> = Vec::new();
            if several {
                row.push(Cell::from(if at == 0 { label(cell) } else { String::new() }));
            }
            let growth = at.checked_sub(1).and_then(|at| cell.scale.as_ref()?.growth.get(at)?.factor);
            row.extend(
                [
                    step.ranks.to_string(),
                    shown(step.throughput.as_ref(), detail),
                    shown(step.requests_per_second.as_ref(), detail),
                    growth.map_or_else(String::new, |growth| units::factor(&growth)),
                    shown(step.first_done.as_ref(), detail),
                    shown(step.last_done.as_ref(), detail),
                    share(step.cpu.as_ref()),
                    share(step.run_delay.as_ref()),
                    share(step.waits.as_ref()),
                ]
                .map(Cell::from),
            );
            table.row(row);
        }
    }
    table.shapes = shapes(&["requests", "first done", "last done"]);
    table.without_empty_columns()
}

/// Each rank at the greatest number of them.
fn ranks(record: &MeasuredRanksRecord, several: bool, detail: Detail) -> Vec<Part> {
    let mut headings = vec!["cell"; usize::from(several)];
    headings.extend(["#rank", "host", "#throughput", "#of the others", "#slowest in", "#runs", "#waits"]);
    let mut table = Table::new(headings);
    let mut left = 0;
    for cell in &record.cells {
        let Some(last) = cell.steps.last().filter(|step| step.ranks > 1) else { continue };
        let mut rows: Vec<&OfRank> = last.of_ranks.iter().collect();
        let most = detail.rows(MAX_ROWS, MAX_ON_PAGE);
        if rows.len() > most {
            // The slow ones are what a reader looks for.
            let value = |rank: &OfRank| rank.throughput.map_or(0.0, |rate| rate.value);
            rows.sort_by(|a, b| value(a).total_cmp(&value(b)));
            left += rows.len() - most;
            rows.truncate(most);
        }
        for (at, rank) in rows.into_iter().enumerate() {
            let mut row: Vec<Cell> = Vec::new();
            if several {
                row.push(Cell::from(if at == 0 { label(cell) } else { String::new() }));
            }
            let slow = last.slow.iter().any(|slow| slow.rank == rank.rank);
            let of_others = rank.of_others.as_ref().map_or_else(|| "-".to_owned(), units::factor);
            let rounds = rank.throughput.map_or(0, |rate| rate.n);
            row.extend([
                Cell::from(rank.rank.to_string()),
                Cell::from(host(record, rank.rank)),
                Cell::from(shown(rank.throughput.as_ref(), detail)),
                if slow { Cell::Bad(of_others) } else { Cell::from(of_others) },
                Cell::from(format!("{} of {rounds}", rank.rounds_slowest)),
                Cell::from(share(rank.cpu.as_ref())),
                Cell::from(share(rank.waits.as_ref())),
            ]);
            table.row(row);
        }
    }
    table.shapes = shapes(&["runs", "waits", "host"]);
    let left = (left > 0).then(|| {
        Part::Note(format!("{} in the record alone", plural(left as u64, "faster rank", "faster ranks")))
    });
    table.part().into_iter().chain(left).collect()
}

/// What the columns mean.
fn note(record: &MeasuredRanksRecord) -> Part {
    let steps = || record.cells.iter().flat_map(|cell| &cell.steps);
    let within = steps().map(|step| step.started_within_ns).max().unwrap_or(0);
    let slow = steps().flat_map(|step| &step.slow).map(|slow| slow.chance).fold(0.0, f64::max);
    let p = if slow > 0.0 { format!(" (here p at most {})", chance(slow)) } else { String::new() };
    Part::Note(format!(
        "n = {} rounds, in each of which the ranks began within {} of each other; ± or [low, high]: 95 % interval of the median over \
         rounds. Throughput of all ranks from the first start to the last end; of one rank by its own time. Runs, waits for CPU, \
         waits: parts of the time of the measuring threads. A rank is slow if it is the slowest in more rounds than chance gives among equal ranks (at most \
         {} for all of them){p}, by {} or more",
        record.rounds,
        time(within as f64),
        percent(LEVEL),
        percent(MIN_LOSS)
    ))
}

#[cfg(test)]
#[path = "measured_ranks_tests.rs"]
mod tests;
