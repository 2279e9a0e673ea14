//! The main job's screen: target, canonical requests with their bars, limit, ways of reading, warnings.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::cell::StateCheck;
use iowhy_core::units::{self, Bytes};

use crate::record::{CellRecord, Record, WayRecord};
use crate::render::cell::{self, shown};
use crate::render::heading::heading;
use crate::render::members;
use crate::render::witness;
use iowhy_view::terminal::bar;
use iowhy_view::terminal::sparkline::{self, Marks};
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{MAX_WIDTH, MIN_WIDTH, fold};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The whole screen for a terminal of `width` columns. `canonical` names the cells to show, in order: key and label.
pub fn screen(
    record: &Record,
    canonical: &[(String, &'static str)],
    verbose: bool,
    width: usize,
    marks: Marks,
) -> String {
    let mut text = String::new();
    if let Some(facts) = record.targets.first() {
        text.push_str(&heading(facts, &record.environment));
    }
    text.push('\n');
    text.push_str(&requests(record, canonical, width, marks));
    text.push_str(&folded(&limits(record, verbose), width));
    text.push_str(&ways(record));
    if verbose {
        let named: Vec<(String, &CellRecord)> = canonical
            .iter()
            .filter_map(|(key, label)| {
                Some(((*label).to_owned(), record.cells.iter().find(|cell| cell.key == *key)?))
            })
            .collect();
        text.push_str(&cell::layers(&named, width));
        text.push_str(&model(record));
        text.push_str(&witness::table(record, &witness::labels(record, canonical)));
    }
    text.push_str(&folded(&trust(record, canonical), width));
    text
}

/// Sentences broken at words.
fn folded(sentences: &str, width: usize) -> String {
    let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
    sentences.lines().map(|line| fold(line, width) + "\n").collect()
}

/// The canonical requests, a line each. On a narrow terminal columns give way: first the width of the bar, then CPU,
/// then throughput; the time and where it goes stay.
fn requests(record: &Record, canonical: &[(String, &'static str)], width: usize, marks: Marks) -> String {
    let cells: Vec<(String, &CellRecord)> = canonical
        .iter()
        .filter_map(|(key, label)| {
            let cell = record.cells.iter().find(|c| c.key == *key)?;
            let mark = if cell.verdict == "mislabelled" { " (!)" } else { "" };
            Some((format!("{label}{mark}"), cell))
        })
        .collect();
    if cells.is_empty() {
        return "nothing was measured\n".to_owned();
    }
    let shapes = [(true, true, 22), (true, true, 14), (true, false, 14), (false, false, 14)];
    let fits = |text: &String| text.lines().all(|line| visible_width(line) <= width);
    let tables = shapes.map(|(throughput, cpu, bar_width)| table(&cells, throughput, cpu, bar_width));
    let mut text = tables.iter().find(|text| fits(text)).unwrap_or(&tables[3]).clone();
    let _ = writeln!(text, "{}", bar::legend(cells.iter().filter_map(|(_, cell)| cell.layers.as_ref())));
    let _ = writeln!(
        text,
        "{DIM}medians of {} rounds, ± the longer arm of the 95 % interval; time is thread time per request{DIM:#}",
        record.rounds
    );
    for (label, cell) in &cells {
        text.push_str(&folded(&remarks(label, cell), width));
        text.push_str(&cell::drift(label, cell, marks));
    }
    text.push_str(&spreads(&cells, width, marks));
    let members: Vec<_> = cells
        .iter()
        .filter(|(_, cell)| cell.state != "warm")
        .map(|(label, cell)| (label.clone(), cell.members.as_slice()))
        .collect();
    text.push_str(&members::table(&members));
    text.push_str(&folded(&cell::interrupted(record), width));
    text.push_str(&folded(&failures(record, canonical), width));
    text
}

/// How requests of one kind differ from each other.
fn spreads(cells: &[(String, &CellRecord)], width: usize, marks: Marks) -> String {
    let rows: Vec<_> =
        cells.iter().map(|(label, cell)| (label.clone(), &cell.latency_ns.histogram)).collect();
    let table = sparkline::table(&rows, true, width, marks);
    if table.is_empty() { table } else { format!("\n{table}") }
}

/// The table with or without the columns that may give way.
fn table(cells: &[(String, &CellRecord)], throughput: bool, cpu: bool, bar_width: usize) -> String {
    let mut columns = vec![("request", Align::Left), ("time", Align::Right)];
    columns.extend(throughput.then_some(("throughput", Align::Right)));
    columns.extend(cpu.then_some(("CPU", Align::Right)));
    columns.extend([("where it goes", Align::Left), ("unexplained", Align::Right)]);
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|(label, cell)| {
            let mut row = vec![label.clone(), cell::time(cell)];
            row.extend(throughput.then(|| cell::throughput(cell)));
            row.extend(cpu.then(|| cell::cpu_per_byte(cell)));
            row.push(cell.layers.as_ref().map_or_else(|| " ".repeat(bar_width), |l| bar::bar(l, bar_width)));
            row.push(cell::unexplained(cell));
            row
        })
        .collect();
    let (header, align): (Vec<&str>, Vec<Align>) = columns.into_iter().unzip();
    layout(&header, &align, &rows)
}

/// What a reader must know about one row.
fn remarks(label: &str, cell: &CellRecord) -> String {
    let mut text = String::new();
    if let Some(failure) = &cell.failure {
        let _ = writeln!(text, "  {label}: {failure}");
    } else if let StateCheck::Violated { reason } | StateCheck::CannotTell { reason } = &cell.state_check {
        let _ = writeln!(text, "  {label}: {reason}");
    } else if cell.verdict != "ok" && cell.latency_ns.n > 0 {
        let _ = writeln!(text, "  {label}: {}", cell.bytes_verdict);
    }
    for note in cell.layer_notes.iter().filter(|note| note.contains("not checked")) {
        let _ = writeln!(text, "  {label}: {note}");
    }
    text
}

/// Cells beside the canonical ones that could not be measured, by reason.
fn failures(record: &Record, canonical: &[(String, &'static str)]) -> String {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for cell in record.cells.iter().filter(|cell| canonical.iter().all(|(key, _)| *key != cell.key)) {
        let Some(reason) = &cell.failure else { continue };
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, keys)) => keys.push(&cell.key),
            None => by_reason.push((reason, vec![&cell.key])),
        }
    }
    by_reason
        .into_iter()
        .map(|(reason, keys)| format!("  not measured: {}: {reason}\n", keys.join(", ")))
        .collect()
}

/// The headline with its evidence, then the other questions in a line each. What was ruled out is for `--verbose`.
fn limits(record: &Record, verbose: bool) -> String {
    let Some(limit) = &record.limit else { return String::new() };
    let mut text = format!("\n{BOLD}limit: {}{BOLD:#}  {}\n", limit.id.id(), limit.sentence);
    let others: Vec<_> = record.limits.iter().filter(|q| q.limit != *limit).collect();
    let mut evidence: Vec<&String> = limit.evidence.iter().filter(|e| verbose || !ruled_out(e)).collect();
    if !verbose {
        evidence.truncate(MOST_EVIDENCE);
    }
    for line in evidence {
        let _ = writeln!(text, "  - {line}");
    }
    for question in others {
        let _ =
            writeln!(text, "{BOLD}limit: {}{BOLD:#}  {}", question.limit.id.id(), question.limit.sentence);
        if verbose {
            for line in &question.limit.evidence {
                let _ = writeln!(text, "  - {line}");
            }
        }
    }
    text
}

/// Lines of evidence on a screen that must stay one screen.
const MOST_EVIDENCE: usize = 4;

/// Whether a line of evidence says what the limit is not.
fn ruled_out(evidence: &str) -> bool {
    evidence.starts_with("not ")
}

/// What each way of reading costs against `pread`.
fn ways(record: &Record) -> String {
    let mut text = String::new();
    for (state, title) in [("warm", "cached"), ("cold", "not cached")] {
        let ways: Vec<&WayRecord> = record.ways.iter().filter(|w| w.state == state).collect();
        if ways.is_empty() {
            continue;
        }
        let rows: Vec<Vec<String>> = ways
            .iter()
            .map(|way| {
                let mark = if way.delivers { "" } else { " *" };
                vec![
                    format!("{}{mark}", way.method),
                    units::estimate_narrow(&way.time_per_request),
                    shown(way.time_ratio.as_ref()),
                    shown(way.cpu_ratio.as_ref()),
                ]
            })
            .collect();
        let _ = writeln!(text, "\n{BOLD}ways of reading 64 KiB in order, {title}, data used{BOLD:#}");
        text.push_str(&layout(
            &["  method", "time", "against pread", "its CPU"],
            &[Align::Left, Align::Right, Align::Right, Align::Right],
            &indent(rows),
        ));
        if ways.iter().any(|way| !way.delivers) {
            let _ = writeln!(text, "  {DIM}* to /dev/null: the bytes never reach the program{DIM:#}");
        }
    }
    text
}

fn indent(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.into_iter()
        .map(|mut row| {
            if let Some(first) = row.first_mut() {
                first.insert_str(0, "  ");
            }
            row
        })
        .collect()
}

/// The fitted costs and how well they predict what they had not seen.
fn model(record: &Record) -> String {
    let Some(model) = &record.model else { return String::new() };
    let mut text = format!("\n{BOLD}fitted costs{BOLD:#} (95 % interval)\n");
    let mut rows = Vec::new();
    let parts = record.model_parts.iter().flatten().map(|(name, cost)| (format!("({name})"), cost));
    for (name, cost) in model.iter().map(|(n, c)| (n.clone(), c)).chain(parts) {
        let range = |value: f64, low: f64, high: f64, digits: usize| {
            if value == 0.0 && high == 0.0 {
                "0".to_owned()
            } else {
                format!("{value:.digits$} [{low:.digits$}, {high:.digits$}]")
            }
        };
        rows.push(vec![
            format!("  {name}"),
            range(cost.cost.per_call_ns, cost.low.per_call_ns, cost.high.per_call_ns, 0),
            range(cost.cost.per_page_ns, cost.low.per_page_ns, cost.high.per_page_ns, 1),
            range(cost.cost.per_byte_ns, cost.low.per_byte_ns, cost.high.per_byte_ns, 4),
        ]);
    }
    text.push_str(&layout(
        &["  layer", "ns per call", "ns per page", "ns per byte"],
        &[Align::Left, Align::Right, Align::Right, Align::Right],
        &rows,
    ));
    if let Some(residual) = record.model_residual_percent {
        let _ = writeln!(text, "  residual of the fit {residual:.1} % (root mean square, relative)");
    }
    for held in &record.held_out {
        let _ = writeln!(
            text,
            "  held out: {} {}: predicted {}, measured {}, error {}",
            held.rung,
            Bytes(held.block_bytes),
            units::time(held.predicted_ns),
            units::estimate(&held.measured),
            units::signed_per_cent(held.error_percent, 1)
        );
    }
    for note in &record.model_notes {
        let _ = writeln!(text, "  {note}");
    }
    text
}

/// Our own cost, and what the fit missed: how far to trust the screen.
fn trust(record: &Record, canonical: &[(String, &'static str)]) -> String {
    let mut text = String::from("\n");
    let mut parts = Vec::new();
    if let Some(harness) = &record.ruler.harness_per_request {
        parts.push(format!("iowhy's own cost {} per request", units::estimate(harness)));
    }
    if let Some(worst) =
        record.held_out.iter().max_by(|a, b| a.error_percent.abs().total_cmp(&b.error_percent.abs()))
    {
        parts.push(format!(
            "the model missed unseen block sizes by at most {:.0} % ({} {})",
            worst.error_percent.abs(),
            worst.rung,
            Bytes(worst.block_bytes)
        ));
    }
    if !parts.is_empty() {
        let _ = writeln!(text, "{DIM}{}{DIM:#}", parts.join("; "));
    }
    text.push_str(&witness::lines(record, &witness::labels(record, canonical)));
    text
}
