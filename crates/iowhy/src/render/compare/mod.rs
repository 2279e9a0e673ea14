//! The screen of `iowhy compare`: the verdict in one line, what differs around the two records, each cell, and its layers.

mod layers;
pub mod runs;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use iowhy_core::estimate::Estimate;
use iowhy_core::stats::Verdict;
use iowhy_core::units;

use crate::record::compare::{ChangedCell, Comparison, Difference};
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{cut, cut_path, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
/// A screen is at least and at most so wide.
const WIDTHS: (usize, usize) = (60, 120);

/// Lays the comparison out.
pub fn screen(comparison: &Comparison, width: usize) -> String {
    let width = width.clamp(WIDTHS.0, WIDTHS.1);
    let mut text = wrap(&headline(comparison), width, "", "  ").trim_end().to_owned();
    text = format!("{BOLD}{text}{BOLD:#}\n");
    for (which, source) in [("before", &comparison.before), ("after ", &comparison.after)] {
        let line = cut(&format!("{which}  {}: {}", source.file, source.command), width);
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    text.push_str(&differences(&comparison.differences, width));
    text.push('\n');
    text.push_str(&fitting(&comparison.cells, width));
    text.push_str(&layers::section(comparison, width));
    text.push_str(&remarks(comparison, width));
    text
}

/// What differs, a line each.
fn differences(differences: &[Difference], width: usize) -> String {
    let line = |d: &Difference| format!("{}: {} -> {}", d.fact, d.before, d.after);
    differences.iter().map(|difference| wrap(&line(difference), width, "differs  ", "    ")).collect()
}

/// An effect as per cent of the whole, with both ends: `+42 % [+40, +44]`; tenths where whole per cents would hide them.
fn effect(e: &Estimate) -> String {
    let percent = [e.value, e.low, e.high].map(|v| (v - 1.0) * 100.0);
    let decimals = usize::from(percent.iter().all(|p| p.abs() < 10.0));
    // Adding 0 turns -0 into 0.
    let scale = 10f64.powi(decimals as i32);
    let [value, low, high] = percent.map(|p| format!("{:+.decimals$}", (p * scale).round() / scale + 0.0));
    if e.low == e.high { format!("{value} %") } else { format!("{value} % [{low}, {high}]") }
}

fn count(comparison: &Comparison, verdict: Verdict) -> usize {
    comparison.cells.iter().filter(|cell| cell.verdict == verdict).count()
}

/// `2 of 6 cells regressed, 1 improved; ...`
fn headline(comparison: &Comparison) -> String {
    let of = [
        (Verdict::Regressed, "regressed"),
        (Verdict::Improved, "improved"),
        (Verdict::WithinNoise, "within noise"),
        (Verdict::CannotTell, "inconclusive"),
    ];
    let parts: Vec<String> = of
        .iter()
        .map(|(verdict, words)| (count(comparison, *verdict), words))
        .filter(|(n, _)| *n > 0)
        .map(|(n, words)| format!("{n} {words}"))
        .collect();
    let cells = match comparison.cells.len() {
        1 => "1 cell".to_owned(),
        n => format!("{n} cells"),
    };
    format!(
        "{cells} compared: {} (a difference matters from {} on)",
        parts.join(", "),
        units_percent(comparison.threshold_share)
    )
}

/// The word of the verdict; those of change in colour.
pub(crate) fn verdict_word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Improved => format!("{GREEN}improved{GREEN:#}"),
        Verdict::Regressed => format!("{RED}REGRESSED{RED:#}"),
        Verdict::WithinNoise => "within noise".to_owned(),
        Verdict::CannotTell => "inconclusive".to_owned(),
    }
}

/// A share as per cent, with a tenth where there is one.
pub(crate) fn units_percent(share: f64) -> String {
    // Adding 0 turns -0 into 0.
    let percent = (share * 1000.0).round() / 10.0 + 0.0;
    format!("{percent} %")
}

/// The table; on a narrow terminal the beginnings of keys give way, then the times.
fn fitting(cells: &[ChangedCell], width: usize) -> String {
    let tables = [(40, true), (24, true), (40, false)].map(|(key, times)| table(cells, key, times));
    let fits = |text: &&String| text.lines().all(|line| visible_width(line) <= width);
    tables.iter().find(fits).unwrap_or(&tables[2]).clone()
}

fn table(cells: &[ChangedCell], room: usize, times: bool) -> String {
    let time = |e: Option<Estimate>| e.map_or_else(|| "-".to_owned(), |e| units::estimate_narrow(&e));
    let many = cells.iter().any(|cell| cell.target != cells[0].target);
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            let word = verdict_word(cell.verdict);
            let layer = match (cell.layer, cell.layer_share) {
                (Some(layer), Some(share)) if share < 0.95 => format!(", mostly {}", layer.id()),
                (Some(layer), _) => format!(", {}", layer.id()),
                _ => String::new(),
            };
            let key = if many { format!("{} {}", cut(&cell.target, 16), cell.key) } else { cell.key.clone() };
            // The end of a key tells more than its beginning.
            let mut row = vec![cut_path(&key, room)];
            if times {
                row.extend([time(cell.before), time(cell.after)]);
            }
            row.push(cell.ratio.as_ref().map_or_else(|| "-".to_owned(), units::factor));
            row.push(format!("{word}{layer}"));
            row
        })
        .collect();
    let mut columns = vec![("cell", Align::Left)];
    if times {
        columns.extend([("before", Align::Right), ("after", Align::Right)]);
    }
    columns.extend([("after / before", Align::Right), ("verdict", Align::Left)]);
    let (header, align): (Vec<&str>, Vec<Align>) = columns.into_iter().unzip();
    layout(&header, &align, &rows)
}

fn remarks(comparison: &Comparison, width: usize) -> String {
    let mut text = String::new();
    for cell in comparison.cells.iter().filter(|cell| cell.doubt.is_some()) {
        let doubt = cell.doubt.as_deref().unwrap_or_default();
        text.push_str(&wrap(&format!("{}: {doubt}", cell.key), width, "  ", "    "));
    }
    for (keys, which) in [(&comparison.only_before, "first"), (&comparison.only_after, "second")] {
        if !keys.is_empty() {
            let line = format!("only in the {which} record: {}", keys.join(", "));
            text.push_str(&wrap(&line, width, "  ", "    "));
        }
    }
    let unsure = comparison.cells.iter().any(|c| c.verdict == Verdict::CannotTell && c.doubt.is_none());
    if unsure {
        let line = "inconclusive: the interval includes no change and a relevant change; more rounds, or an idle \
                    machine, would decide (`--precision` and `--time` of `iowhy bench`)";
        text.push_str(&wrap(line, width, "  ", "    "));
    }
    let line = format!(
        "time per request: medians{}, 95 % intervals{}",
        rounds(&comparison.cells),
        if comparison.layers.is_empty() {
            ""
        } else {
            "; layers: what the change of this layer alone makes of the cell's time; `mostly`: the layer that half or more \
             of the change sits in"
        }
    );
    let _ = write!(text, "{DIM}{}{DIM:#}", wrap(&line, width, "", "  "));
    text
}

/// ` of 8 to 11 rounds`: the fewer of both sides, of each cell.
fn rounds(cells: &[ChangedCell]) -> String {
    let of = || cells.iter().filter_map(|cell| Some(cell.ratio.as_ref()?.n));
    match (of().min(), of().max()) {
        (Some(least), Some(most)) if least == most => format!(" of {least} rounds"),
        (Some(least), Some(most)) => format!(" of {least} to {most} rounds"),
        _ => String::new(),
    }
}
