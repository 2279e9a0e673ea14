//! `compare`: measured cells with their layers, or runs of a profiled program with the parts of their wall time.

pub mod cells;
pub mod runs;

use iowhy_core::estimate::Estimate;
use iowhy_core::stats::{Verdict, smallest_visible};
use iowhy_view::document::{Cell, Part, Section, Table};
use iowhy_view::svg::WIDE;
use iowhy_view::svg::dots::{self, Row};

use super::figures::written;
use crate::record::compare::Difference;

/// An effect as per cent of the whole, with both ends: `+42 % [+40, +44]`; tenths where whole per cents would hide them.
fn effect(e: &Estimate) -> String {
    let percent = [e.value, e.low, e.high].map(|v| (v - 1.0) * 100.0);
    let decimals = usize::from(percent.iter().all(|p| p.abs() < 10.0));
    // Adding 0 turns -0 into 0.
    let scale = 10f64.powi(decimals as i32);
    let [value, low, high] = percent.map(|p| format!("{:+.decimals$}", (p * scale).round() / scale + 0.0));
    if e.low == e.high { format!("{value} %") } else { format!("{value} % [{low}, {high}]") }
}

/// A share as per cent, with a tenth where there is one.
pub(crate) fn percent(share: f64) -> String {
    // Adding 0 turns -0 into 0.
    let percent = (share * 1000.0).round() / 10.0 + 0.0;
    format!("{percent} %")
}

/// The word of a verdict.
/// The smallest change that a ratio of this width would have shown.
pub(crate) fn visible(ratio: Option<&Estimate>, threshold: f64) -> String {
    ratio.and_then(|ratio| smallest_visible(ratio, threshold)).map_or_else(|| "-".to_owned(), percent)
}

pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Improved => "improved",
        Verdict::Regressed => "REGRESSED",
        Verdict::WithinNoise => "within noise",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// A verdict in a table, with what follows it.
pub(crate) fn cell(verdict: Verdict, rest: &str) -> Cell {
    let text = format!("{}{rest}", word(verdict));
    match verdict {
        Verdict::Improved => Cell::Good(text),
        Verdict::Regressed => Cell::Bad(text),
        Verdict::WithinNoise | Verdict::Inconclusive => Cell::Text(text),
    }
}

/// Different settings of the two sides.
fn differences(differences: &[Difference]) -> Section {
    let line = |d: &Difference| format!("differs  {}: {} -> {}", d.fact, d.before, d.after);
    let lines: Vec<String> = differences.iter().map(line).collect();
    Section::quiet("Differences", if lines.is_empty() { Vec::new() } else { vec![Part::Remarks(lines)] })
}

/// A ratio as a row of a chart.
fn dot(label: &str, ratio: Option<&Estimate>, verdict: Verdict) -> Row {
    let colour = match verdict {
        Verdict::Improved => 2,
        Verdict::Regressed => 1,
        Verdict::WithinNoise | Verdict::Inconclusive => 7,
    };
    let words = word(verdict).to_owned();
    Row {
        label: label.to_owned(),
        value: ratio.map(|r| (r.value, r.low, r.high)),
        tip: format!("{label}: {words}\n{}", ratio.map_or_else(|| "-".to_owned(), written)),
        words,
        colour,
    }
}

/// Ratios around 1 as a chart with its table.
fn chart(title: &str, alt: &str, rows: &[Row], table: Table) -> Part {
    let svg = dots::chart(rows, 1.0, &|v| format!("{v}"), WIDE, alt);
    Part::Chart(iowhy_view::document::Chart { title: title.to_owned(), alt: alt.to_owned(), svg, table })
}
