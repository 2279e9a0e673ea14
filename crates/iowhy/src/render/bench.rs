//! The table of `bench`: one line a cell, then what a reader must know about single cells.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::cell::StateCheck;
use iowhy_core::estimate::Estimate;
use iowhy_core::units::{self, Bytes};

use crate::record::{CellRecord, Record};
use crate::render::table::{Align, layout};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The whole result.
pub fn screen(record: &Record) -> String {
    let mut text = String::new();
    for facts in &record.targets {
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}  {}", facts.name, Bytes(facts.size_bytes));
    }
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
    ];
    let mut align = vec![Align::Left, Align::Left, Align::Left];
    align.extend([Align::Right; 10]);
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
        "{DIM}n = {n} rounds; ± the longer arm of the 95 % interval of the median; time and CPU per request; percentiles over every request{DIM:#}"
    );
    for cell in &record.cells {
        text.push_str(&remarks(cell));
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
        shown(cell.time_per_request.as_ref()),
        shown(cell.throughput.as_ref()),
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
    if several {
        row.insert(0, cell.target.clone());
    }
    row
}

fn shown(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "cannot tell".to_owned(), units::estimate_narrow)
}

/// What is worth saying about one cell; nothing when all is as claimed.
fn remarks(cell: &CellRecord) -> String {
    let mut text = String::new();
    let name = format!("{} {} {}", cell.method, cell.state, Bytes(cell.block_bytes));
    if let StateCheck::Violated { reason } | StateCheck::CannotTell { reason } = &cell.state_check {
        let _ = writeln!(text, "  {name}: {reason}");
    }
    if let Some(failure) = &cell.failure {
        let _ = writeln!(text, "  {name}: failed: {failure}");
    }
    for note in &cell.dropped {
        let _ = writeln!(text, "  {name}: {note}");
    }
    if cell.claimed_bytes > 0 {
        let device = cell.device_bytes.map_or_else(|| "unknown".to_owned(), |b| Bytes(b).to_string());
        let _ = writeln!(
            text,
            "  {name}: claimed {}, device {device}: {}",
            Bytes(cell.claimed_bytes),
            cell.bytes_verdict
        );
    }
    if let (Some(first), Some(last)) = (&cell.first_done, &cell.last_done) {
        if cell.threads > 1 {
            let _ = writeln!(
                text,
                "  {name}: first thread done after {}, last after {}",
                units::estimate(first),
                units::estimate(last)
            );
        }
    }
    if let Some(lateness) = &cell.lateness {
        let _ =
            writeln!(text, "  {name}: issued {} late on average against the plan", units::estimate(lateness));
    }
    text
}
