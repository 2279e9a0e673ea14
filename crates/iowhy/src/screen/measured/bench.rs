//! `bench`: one row a cell, then doubts about single cells; with `--layers` where their time goes.

use iowhy_core::cell::StateCheck;
use iowhy_core::text::visible;
use iowhy_core::units::{self, Bytes};
use iowhy_view::document::{Chapter, Detail, Part, Section, Spread, Table};

use super::cell::shown;
use super::{Named, cell, charts, cross_check, members};
use crate::record::{CellRecord, Record};

/// Cells whose spread is drawn; a sweep has more than anybody reads.
const MAX_SPREADS: usize = 12;

/// The chapter; with the layers of each cell where they were fitted.
pub fn chapter(record: &Record, layers: bool, detail: Detail) -> Chapter {
    let several = record.targets.len() > 1;
    let named: Named<'_> = record.cells.iter().map(|cell| (name(cell, several), cell)).collect();
    let mut sections = vec![Section::quiet("Cells", cells(record, several, detail))];
    if layers {
        let split: Named<'_> = named.iter().filter(|(_, cell)| cell.layers.is_some()).cloned().collect();
        sections.push(Section::quiet("Where the time of a request goes", self::layers(&split, detail)));
        if !detail.is_page() {
            sections.push(cell::layers(&named));
        }
        let labels = cross_check::labels(&named);
        sections.push(Section::quiet("Cross-check", cross_check::summary(record, &labels)));
    }
    let all: Vec<_> = named.iter().map(|(name, cell)| (name.clone(), cell.members.as_slice())).collect();
    sections.push(members::section(&all));
    let mut doubts = vec![spreads(record, &named)];
    doubts.extend(cell::interrupted(record).map(Part::Text));
    for (name, cell) in &named {
        doubts.push(Part::Remarks(remarks(name, cell, several, record.ruler.clock_source == "virtual")));
        doubts.extend(cell::drift(name, cell));
    }
    if let Some(harness) = &record.ruler.harness_per_request {
        doubts.push(Part::Note(format!(
            "overhead of iowhy {} per request, included above",
            units::estimate(harness)
        )));
    }
    if detail.is_page() {
        sections.extend([charts::sizes(record), charts::latencies(&named), charts::over_time(&named)]);
    }
    sections.push(Section::quiet("Notes", doubts));
    super::begin(record, detail, sections)
}

fn cells(record: &Record, several: bool, detail: Detail) -> Vec<Part> {
    let mut headings = vec!["target"; usize::from(several)];
    headings.extend(["method", "pattern", "state", "#block", "#threads", "#depth", "#time", "#throughput"]);
    headings.extend(["#requests", "#CPU", "#p50", "#p99", "#p99.9", "#device"]);
    let mut table = Table::new(headings);
    record.cells.iter().for_each(|cell| table.row(row(cell, several, detail)));
    let rounds = || record.cells.iter().map(|cell| cell.samples.len());
    let (least, most) = (rounds().min().unwrap_or(0), rounds().max().unwrap_or(0));
    let n = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    vec![
        Part::Table(table),
        Part::Note(format!(
            "n = {n} rounds; ± the longer arm of the 95 % interval of the median; time and CPU per request"
        )),
        Part::Note(
            "percentiles over all requests; device: bytes moved by the device / bytes requested".to_owned(),
        ),
    ]
}

fn row(cell: &CellRecord, several: bool, detail: Detail) -> Vec<String> {
    let state = match &cell.state_check {
        StateCheck::Verified => format!("{} ✓", cell.state),
        StateCheck::NotApplicable => cell.state.clone(),
        StateCheck::Violated { .. } => format!("not {}", cell.state),
        StateCheck::Inconclusive { .. } => format!("{}?", cell.state),
    };
    let mut row = vec![
        cell.method.clone(),
        cell.pattern.clone(),
        state,
        Bytes(cell.block_bytes).to_string(),
        cell.threads.to_string(),
        cell.depth.to_string(),
        cell::time(cell, detail),
        cell::throughput(cell, detail),
        shown(cell.requests_per_second.as_ref(), detail),
        shown(cell.cpu_per_request.as_ref(), detail),
    ];
    let latency = &cell.latency_ns;
    if latency.n == 0 {
        row.extend(std::iter::repeat_n("-".to_owned(), 3));
    } else {
        row.push(units::time(latency.p50 as f64));
        row.push(if latency.n >= 100 { units::time(latency.p99 as f64) } else { "-".to_owned() });
        row.push(latency.p99_9.map_or_else(|| "-".to_owned(), |ns| units::time(ns as f64)));
    }
    row.push(from_device(cell));
    if several {
        row.insert(0, visible(&cell.target).into_owned());
    }
    row
}

/// How requests of one cell differ from each other.
fn spreads(record: &Record, named: &Named<'_>) -> Part {
    let patterns = record.cells.iter().any(|cell| cell.pattern != record.cells[0].pattern);
    let row = |(name, cell): &(String, &CellRecord)| {
        let name = if patterns { format!("{name} {}", cell.pattern) } else { name.clone() };
        (name, cell.latency_ns.histogram.clone())
    };
    let few = named.len() <= MAX_SPREADS;
    Part::Spread(Spread { rows: named.iter().filter(|_| few).map(row).collect(), percentiles: false })
}

/// Where each cell's time goes.
fn layers(split: &Named<'_>, detail: Detail) -> Vec<Part> {
    if split.is_empty() {
        return Vec::new();
    }
    let explains = |note: &&String| note.contains("not checked") || note.contains("ladder");
    let notes = |(name, cell): &(String, &CellRecord)| -> Vec<String> {
        cell.layer_notes.iter().filter(explains).map(|note| format!("{name}: {note}")).collect()
    };
    vec![Part::Table(super::layers(split, detail)), Part::Remarks(split.iter().flat_map(notes).collect())]
}

/// The name of a row.
fn name(cell: &CellRecord, several: bool) -> String {
    let mut name = format!("{} {} {}", cell.method, cell.state, Bytes(cell.block_bytes));
    if cell.threads > 1 {
        name.push_str(&format!(", {} threads", cell.threads));
    }
    if cell.depth > 1 {
        name.push_str(&format!(", depth {}", cell.depth));
    }
    if several {
        name.push_str(&format!(" on {}", visible(&cell.target)));
    }
    name
}

/// Noise below this share is not mentioned.
const NOTABLE_NOISE: f64 = 0.10;
/// CPU time of kernel threads below this share of the program's is not mentioned.
const NOTABLE_KERNEL_SHARE: f64 = 0.10;

/// Bytes that the device moved over bytes that requests claim, in per cent.
fn from_device(cell: &CellRecord) -> String {
    match cell.device_bytes {
        Some(bytes) if cell.claimed_bytes > 0 => {
            format!("{:.0} %", bytes as f64 / cell.claimed_bytes as f64 * 100.0)
        }
        _ => "-".to_owned(),
    }
}

/// Doubts about one cell; empty where all is as claimed.
fn remarks(name: &str, cell: &CellRecord, several: bool, virtual_time: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let StateCheck::Violated { reason } | StateCheck::Inconclusive { reason } = &cell.state_check {
        lines.push(format!("{name}: {reason}"));
    }
    if let Some(failure) = &cell.failure {
        lines.push(format!("{name}: failed: {failure}"));
    }
    for note in &cell.dropped {
        lines.push(format!("{name}: {note}"));
    }
    let state_explains = matches!(cell.state_check, StateCheck::Violated { .. });
    if cell.verdict != "ok" && cell.failure.is_none() && cell.claimed_bytes > 0 && !state_explains {
        lines.push(format!("{name}: {}: {}", cell.verdict, cell.bytes_verdict));
    }
    if let Some(noise) = cell.noise_share.filter(|n| *n > NOTABLE_NOISE) {
        lines.push(format!("{name}: noisy: rounds differ by {:.0} % (median absolute deviation); a longer `--time` narrows the interval",
            noise * 100.0
        ));
    }
    if let (Some(kernel), Some(own)) = (&cell.kernel_threads_per_request, &cell.cpu_per_request)
        && kernel.value > NOTABLE_KERNEL_SHARE * own.value
    {
        lines.push(format!("{name}: kernel threads (write-back, completions, also of other processes) used another {} per request",
            units::estimate(kernel)
        ));
    }
    if let (Some(first), Some(last)) = (&cell.first_done, &cell.last_done) {
        let (first, last) = (units::estimate(first), units::estimate(last));
        if cell.threads > 1 {
            lines.push(format!("{name}: first thread done after {first}, last after {last}"));
        } else if several {
            lines.push(format!("{name}: done after {last}"));
        }
    }
    if let Some(lateness) = &cell.lateness {
        if cell.cpu_per_request.is_some() && !virtual_time {
            lines.push(format!("{name}: CPU time includes polling the clock until each planned start; without `--rate` it does not"
            ));
        }
        lines.push(format!("{name}: issued {} late on average", units::estimate(lateness)));
    }
    lines
}
