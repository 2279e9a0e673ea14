//! `merge`: stragglers among the ranks of a job, the spread of their times, findings by how many ranks have them.

use iowhy_core::units::{self, time};
use iowhy_diagnose::ranks::Spread;
use iowhy_view::document::{Chapter, Detail, Part, Section, Shape, Table};

use super::compare::percent;
use super::compare::runs::chance;
use super::figures::{percent_of, plural};
use super::surroundings;
use crate::record::merge::{HostOfRanks, MergeRecord, RankRange, SlowRank};

/// Parts below this share of the median wall time in every rank are in the record alone.
const VISIBLE: f64 = 0.01;
/// Parts on a screen.
const MAX_PARTS: usize = 14;
/// Stragglers on a screen, and ranks of which each is a row.
const MAX_ROWS: usize = 10;
/// Ranks on a page.
const MAX_ON_PAGE: usize = 1000;
/// Ranges of ranks in a text.
const MAX_RANGES: usize = 8;

/// The chapter.
pub fn chapter(record: &MergeRecord, detail: Detail) -> Chapter {
    let mut sections = vec![
        Section::new("", vec![Part::Verdict(verdict(record))]),
        Section::quiet("Stragglers", stragglers(record, detail)),
        Section::quiet("Spread over ranks", parts(record, detail)),
        Section::quiet("Ranks", ranks(record, detail)),
        Section::quiet("Findings", findings(record)),
        Section::quiet("Remarks", remarks(record)),
        Section::new("", vec![note(record)]),
    ];
    if detail.is_page() {
        sections.extend(surroundings::warnings(&record.warnings));
    }
    let number = plural(record.ranks.len() as u64, "rank", "ranks");
    let of = record.ranks_of_job.filter(|of| *of != record.ranks.len() as u64);
    let of = of.map_or_else(String::new, |of| format!("{number} of {}", units::count(of)));
    let title = format!("{}: {}", record.subject, if of.is_empty() { number } else { of });
    Chapter { title, about: String::new(), facts: facts(record), sections }
}

fn facts(record: &MergeRecord) -> Vec<String> {
    let hosts = match record.hosts.as_slice() {
        [only] => format!("on {}", only.host),
        several => format!("on {} hosts", units::count(several.len() as u64)),
    };
    let started = format!("started within {} of each other", time(record.started_within_s * 1e9));
    let job = record.job.as_ref().map(|job| format!("job {job}"));
    vec![[Some(hosts), Some(started), job].into_iter().flatten().collect::<Vec<_>>().join(", ")]
}

/// The slow ranks in a sentence.
fn verdict(record: &MergeRecord) -> String {
    if let Some(doubt) = &record.stragglers_doubt {
        return format!("Stragglers: inconclusive: {doubt}");
    }
    match record.stragglers.as_slice() {
        [] => "No straggler: no rank is slower than noise among ranks explains".to_owned(),
        [only] => one(record, only),
        several => {
            let hosts: Vec<&HostOfRanks> = record.hosts.iter().filter(|host| host.stragglers > 0).collect();
            let at = match hosts.as_slice() {
                [only] => format!(
                    "all on {}, which has {}",
                    only.host,
                    plural(only.ranks.len() as u64, "rank", "ranks")
                ),
                several => format!("on {} hosts", units::count(several.len() as u64)),
            };
            let of = units::count(record.ranks.len() as u64);
            format!("{} of {of} ranks are stragglers, {at}", units::count(several.len() as u64))
        }
    }
}

fn one(record: &MergeRecord, straggler: &SlowRank) -> String {
    let SlowRank { rank, host, .. } = straggler;
    let part = part_of(straggler);
    if straggler.by_wall {
        let wall = excess(record, straggler.wall_excess_s);
        let part = part.map_or_else(String::new, |part| format!("; most in {part}"));
        return format!("Rank {rank} on {host} is {wall} slower than the others{part}");
    }
    format!(
        "Rank {rank} on {host} ends with the others, and spends more time in {}",
        part.unwrap_or_default()
    )
}

/// `sync: device (+6.1 s)`
fn part_of(straggler: &SlowRank) -> Option<String> {
    let operation =
        straggler.operation.as_ref().map_or_else(String::new, |operation| format!("{operation}: "));
    let more = time(straggler.layer_excess_s? * 1e9);
    Some(format!("{operation}{} (+{more})", straggler.layer?.id()))
}

/// `6.31 s (52 %)`
fn excess(record: &MergeRecord, seconds: f64) -> String {
    let share = seconds * 1e9 / record.wall.median_ns;
    let share = if share.is_finite() { format!(" ({})", percent_of(share)) } else { String::new() };
    format!("{}{share}", time(seconds * 1e9))
}

fn stragglers(record: &MergeRecord, detail: Detail) -> Vec<Part> {
    let mut table = Table::new(["straggler", "host", "#wall time", "#excess", "most in", "p"]);
    for straggler in record.stragglers.iter().take(detail.rows(MAX_ROWS, MAX_ON_PAGE)) {
        table.row([
            straggler.rank.to_string(),
            straggler.host.clone(),
            time(straggler.wall_s * 1e9),
            if straggler.by_wall { excess(record, straggler.wall_excess_s) } else { "none".to_owned() },
            part_of(straggler).unwrap_or_default(),
            chance(straggler.chance),
        ]);
    }
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes = vec![shape(&[]), shape(&["p"]), shape(&["p", "wall time"])];
    let left = record.stragglers.len() - table.rows.len();
    let table = table.without_empty_columns();
    table.part().into_iter().chain(left_in_record(left, "straggler", "stragglers")).collect()
}

fn left_in_record(left: usize, one: &str, many: &str) -> Option<Part> {
    (left > 0).then(|| Part::Note(format!("{} in the record alone", plural(left as u64, one, many))))
}

/// The wall time and its parts.
fn parts(record: &MergeRecord, detail: Detail) -> Vec<Part> {
    let visible = VISIBLE * record.wall.median_ns;
    let shown = record.parts.iter().filter(|part| detail.is_page() || part.time.max_ns >= visible);
    let shown: Vec<_> = shown.take(detail.rows(MAX_PARTS, MAX_ON_PAGE)).collect();
    let mut table = Table::new(["part", "#min", "#median", "quartiles", "#max", "slowest rank"]);
    let mut row = |name: String, time: &Spread| table.row(cells(record, name, time));
    row("wall time".to_owned(), &record.wall);
    for part in &shown {
        row(format!("{}: {}", part.operation, part.layer.id()), &part.time);
    }
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes = vec![shape(&[]), shape(&["min"]), shape(&["min", "quartiles"])];
    let left = record.parts.len() - shown.len();
    table.part().into_iter().chain(left_in_record(left, "smaller part", "smaller parts")).collect()
}

fn cells(record: &MergeRecord, name: String, spread: &Spread) -> [String; 6] {
    let rank = spread.max_rank;
    let line = record.ranks.binary_search_by_key(&rank, |line| line.rank).ok().map(|at| &record.ranks[at]);
    let host =
        line.filter(|_| record.hosts.len() > 1).map_or_else(String::new, |line| format!(" on {}", line.host));
    [
        name,
        time(spread.min_ns),
        time(spread.median_ns),
        format!("{} to {}", time(spread.lower_quartile_ns), time(spread.upper_quartile_ns)),
        time(spread.max_ns),
        format!("{rank}{host}"),
    ]
}

/// Wall time of each rank, where they are few; a page has all.
fn ranks(record: &MergeRecord, detail: Detail) -> Vec<Part> {
    let most = detail.rows(MAX_ROWS, MAX_ON_PAGE);
    if record.ranks.len() > most && !detail.is_page() {
        return Vec::new();
    }
    let mut table = Table::new(["#rank", "host", "#wall time"]);
    for line in record.ranks.iter().take(most) {
        table.row([line.rank.to_string(), line.host.clone(), time(line.wall_s * 1e9)]);
    }
    let left = record.ranks.len() - table.rows.len();
    table.part().into_iter().chain(left_in_record(left, "rank", "ranks")).collect()
}

fn findings(record: &MergeRecord) -> Vec<Part> {
    let all = units::count(record.ranks.len() as u64);
    let mut table = Table::new(["finding", "#ranks", "which", "#median share"]);
    for finding in &record.findings {
        let every = finding.ranks.len() == record.ranks.len();
        table.row([
            finding.id.id().to_owned(),
            format!("{} of {all}", units::count(finding.ranks.len() as u64)),
            if every { "all".to_owned() } else { in_words(&ranges(&finding.ranks)) },
            percent_of(finding.median_share),
        ]);
    }
    table.part().into_iter().collect()
}

fn remarks(record: &MergeRecord) -> Vec<Part> {
    let mut lines = Vec::new();
    if !record.missing.is_empty() {
        lines.push(format!("no record of {}", named(&record.missing)));
    }
    lines.extend(record.left_out.iter().take(MAX_ROWS).map(|left| format!("left out: {}", left.reason)));
    if record.left_out.len() > MAX_ROWS {
        lines.push(format!("left out: {} more", units::count((record.left_out.len() - MAX_ROWS) as u64)));
    }
    let ended = record.endings.iter().filter(|ending| !ending.is_success());
    lines.extend(ended.map(|ending| format!("{}: {}", named(&ranges(&ending.ranks)), ending.words())));
    lines.extend(record.parts_doubt.as_ref().map(|doubt| format!("parts and layers: inconclusive: {doubt}")));
    if lines.is_empty() { Vec::new() } else { vec![Part::Remarks(lines)] }
}

/// How a straggler is told from noise.
fn note(record: &MergeRecord) -> Part {
    Part::Note(format!(
        "parts are of the wall clock of a rank; excess: beyond the median of the ranks that are no stragglers. A straggler's wall \
         time stands apart from those of the others, or a layer does while all end together (p: probability of such a gap \
         between equal ranks, at most {} for all tests), by {} of the median wall time or more",
        percent(record.level),
        percent(record.threshold_share)
    ))
}

/// Numbers in order as ranges.
pub(crate) fn ranges(numbers: &[u64]) -> Vec<RankRange> {
    let mut ranges: Vec<RankRange> = Vec::new();
    for number in numbers {
        match ranges.last_mut().filter(|range| range.last.checked_add(1) == Some(*number)) {
            Some(range) => range.last = *number,
            None => ranges.push(RankRange { first: *number, last: *number }),
        }
    }
    ranges
}

/// `rank 3`, `ranks 0-2, 5`
pub(crate) fn named(ranges: &[RankRange]) -> String {
    let one = matches!(ranges, [only] if only.first == only.last);
    format!("{} {}", if one { "rank" } else { "ranks" }, in_words(ranges))
}

/// `0-2, 5`; of many ranges the first.
fn in_words(ranges: &[RankRange]) -> String {
    let word = |range: &RankRange| match range.last == range.first {
        true => range.first.to_string(),
        false => format!("{}-{}", range.first, range.last),
    };
    let mut words: Vec<String> = ranges.iter().take(MAX_RANGES).map(word).collect();
    if ranges.len() > MAX_RANGES {
        words.push("...".to_owned());
    }
    words.join(", ")
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
