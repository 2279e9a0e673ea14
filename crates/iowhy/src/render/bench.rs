//! The table of `bench`: one line a cell, then what a reader must know about single cells.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::cell::StateCheck;
use iowhy_core::text::visible;
use iowhy_core::units::{self, Bytes};

use crate::record::{CellRecord, Record};
use crate::render::cell::{self, shown};
use crate::render::heading::heading;
use crate::render::members;
use crate::render::witness;
use iowhy_view::terminal::bar;
use iowhy_view::terminal::sparkline::{self, Marks};
use iowhy_view::terminal::table::{Align, layout};

const DIM: Style = Style::new().dimmed();

/// The whole result; with the layers of each cell when its ladder was measured.
pub fn screen(record: &Record, layers: bool, width: usize, marks: Marks) -> String {
    let mut text = String::new();
    for (index, facts) in record.targets.iter().enumerate() {
        text.push_str(&heading(facts, record.environments.get(index).unwrap_or(&record.environment)));
    }
    text.push('\n');
    let several = record.targets.len() > 1;
    let rows: Vec<Vec<String>> = record.cells.iter().map(|cell| row(cell, several)).collect();
    let mut header = vec![
        "method",
        "pattern",
        "state",
        "bs",
        "thr",
        "depth",
        "time",
        "throughput",
        "requests",
        "CPU",
        "p50",
        "p99",
        "p99.9",
        "device",
    ];
    let mut align = vec![Align::Left, Align::Left, Align::Left];
    align.extend([Align::Right; 11]);
    if several {
        header.insert(0, "target");
        align.insert(0, Align::Left);
    }
    text.push_str(&layout(&header, &align, &rows));
    let rounds: Vec<usize> = record.cells.iter().map(|c| c.samples.len()).collect();
    let (least, most) =
        (rounds.iter().min().copied().unwrap_or(0), rounds.iter().max().copied().unwrap_or(0));
    let n = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    let _ = writeln!(
        text,
        "{DIM}n = {n} rounds; ± the longer arm of the 95 % interval of the median; time and CPU per request\n\
         percentiles over every request; device: bytes that the device moved, of those the requests claim{DIM:#}"
    );
    if layers {
        text.push_str(&split(record, several));
        let named: Vec<_> = record.cells.iter().map(|cell| (name(cell, several), cell)).collect();
        text.push_str(&cell::layers(&named, width));
        let labels = witness::all_labels(record, |cell| name(cell, several));
        text.push_str(&witness::lines(record, &labels));
        text.push('\n');
    }
    let members: Vec<_> = record.cells.iter().map(|c| (name(c, several), c.members.as_slice())).collect();
    text.push_str(&members::table(&members));
    text.push_str(&spreads(record, several, width, marks));
    text.push_str(&cell::interrupted(record));
    for cell in &record.cells {
        text.push_str(&remarks(cell, several, record.ruler.clock_source == "virtual", marks));
    }
    if let Some(harness) = &record.ruler.harness_per_request {
        let _ = writeln!(
            text,
            "{DIM}iowhy's own cost {} per request, included above{DIM:#}",
            units::estimate(harness)
        );
    }
    text
}

fn row(cell: &CellRecord, several: bool) -> Vec<String> {
    let state = match &cell.state_check {
        StateCheck::Verified => format!("{} ✓", cell.state),
        StateCheck::NotApplicable => cell.state.clone(),
        StateCheck::Violated { .. } => format!("not {}", cell.state),
        StateCheck::CannotTell { .. } => format!("{}?", cell.state),
    };
    let mut row = vec![
        cell.method.clone(),
        cell.pattern.clone(),
        state,
        Bytes(cell.block_bytes).to_string(),
        cell.threads.to_string(),
        cell.depth.to_string(),
        cell::time(cell),
        cell::throughput(cell),
        shown(cell.requests_per_second.as_ref()),
        shown(cell.cpu_per_request.as_ref()),
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

/// Cells whose spread is drawn; a sweep has more than anybody looks at.
const MOST_SPREADS: usize = 12;

/// How requests of one cell differ from each other.
fn spreads(record: &Record, several: bool, width: usize, marks: Marks) -> String {
    if record.cells.len() > MOST_SPREADS {
        return String::new();
    }
    let patterns = record.cells.iter().any(|cell| cell.pattern != record.cells[0].pattern);
    let row = |cell: &CellRecord| {
        let name = name(cell, several);
        if patterns { format!("{name} {}", cell.pattern) } else { name }
    };
    let rows: Vec<_> = record.cells.iter().map(|cell| (row(cell), &cell.latency_ns.histogram)).collect();
    let table = sparkline::table(&rows, false, width, marks);
    if table.is_empty() { table } else { format!("\n{table}") }
}

/// Where each cell's time goes.
fn split(record: &Record, several: bool) -> String {
    const BAR_WIDTH: usize = 30;
    let rows: Vec<Vec<String>> = record
        .cells
        .iter()
        .filter_map(|cell| Some((cell, cell.layers.as_ref()?)))
        .map(|(cell, ledger)| {
            vec![name(cell, several), cell::time(cell), bar::bar(ledger, BAR_WIDTH), cell::unexplained(cell)]
        })
        .collect();
    let align = [Align::Left, Align::Right, Align::Left, Align::Right];
    let mut text = String::from("\n");
    text.push_str(&layout(&["cell", "time", "where it goes", "unexplained"], &align, &rows));
    let _ = writeln!(text, "{}", bar::legend(record.cells.iter().filter_map(|cell| cell.layers.as_ref())));
    for cell in &record.cells {
        for note in
            cell.layer_notes.iter().filter(|note| note.contains("not checked") || note.contains("ladder"))
        {
            let _ = writeln!(text, "  {}: {note}", name(cell, several));
        }
    }
    text
}

/// The row that a remark is about.
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

/// Noise beyond this share is said.
const NOTABLE_NOISE: f64 = 0.10;
/// CPU time of kernel threads beyond this share of ours is said.
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

/// What is worth saying about one cell; nothing when all is as claimed.
fn remarks(cell: &CellRecord, several: bool, virtual_time: bool, marks: Marks) -> String {
    let mut text = String::new();
    let name = name(cell, several);
    if let StateCheck::Violated { reason } | StateCheck::CannotTell { reason } = &cell.state_check {
        let _ = writeln!(text, "  {name}: {reason}");
    }
    if let Some(failure) = &cell.failure {
        let _ = writeln!(text, "  {name}: failed: {failure}");
    }
    for note in &cell.dropped {
        let _ = writeln!(text, "  {name}: {note}");
    }
    let state_explains = matches!(cell.state_check, StateCheck::Violated { .. });
    if cell.verdict != "ok" && cell.failure.is_none() && cell.claimed_bytes > 0 && !state_explains {
        let _ = writeln!(text, "  {name}: {}: {}", cell.verdict, cell.bytes_verdict);
    }
    text.push_str(&cell::drift(&name, cell, marks));
    if let Some(noise) = cell.noise_share.filter(|n| *n > NOTABLE_NOISE) {
        let _ = writeln!(
            text,
            "  {name}: noisy: rounds differ by {:.0} % (median absolute deviation); a longer `--time` narrows the interval",
            noise * 100.0
        );
    }
    if let (Some(kernel), Some(own)) = (&cell.kernel_threads_per_request, &cell.cpu_per_request)
        && kernel.value > NOTABLE_KERNEL_SHARE * own.value
    {
        let _ = writeln!(
            text,
            "  {name}: kernel threads (write-back, completions, others' too) used {} per request beside",
            units::estimate(kernel)
        );
    }
    if let (Some(first), Some(last)) = (&cell.first_done, &cell.last_done) {
        let (first, last) = (units::estimate(first), units::estimate(last));
        if cell.threads > 1 {
            let _ = writeln!(text, "  {name}: first thread done after {first}, last after {last}");
        } else if several {
            let _ = writeln!(text, "  {name}: done after {last}");
        }
    }
    if let Some(lateness) = &cell.lateness {
        if cell.cpu_per_request.is_some() && !virtual_time {
            let _ = writeln!(
                text,
                "  {name}: CPU includes watching the clock before each planned instant; without `--rate` it does not"
            );
        }
        let _ =
            writeln!(text, "  {name}: issued {} late on average against the plan", units::estimate(lateness));
    }
    text
}
