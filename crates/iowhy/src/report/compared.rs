//! Chapters of `compare`: measured cells with their layers, or runs of watched programs with the parts of their wall time.

use iowhy_core::estimate::Estimate;
use iowhy_core::units;
use serde_json::Value;

use super::look::{estimate, list, number, text, written};
use super::simulated::warnings;
use iowhy_view::document::{Chapter, Chart, Part, Section, Table};
use iowhy_view::svg::WIDE;
use iowhy_view::svg::dots::{self, Row};

fn shown(of: &Value, key: &str) -> String {
    estimate(of, key).as_ref().map_or_else(|| "-".to_owned(), written)
}

/// The verdict in words.
fn words(of: &Value) -> String {
    match text(of, "verdict") {
        "cannot-tell" => "inconclusive".to_owned(),
        verdict => verdict.replace('-', " "),
    }
}

/// A ratio as a row of the chart.
fn dot(label: &str, ratio: Option<Estimate>, words: String) -> Row {
    let colour = match words.as_str() {
        "improved" => 2,
        "regressed" => 1,
        _ => 7,
    };
    Row {
        label: label.to_owned(),
        value: ratio.map(|r| (r.value, r.low, r.high)),
        tip: format!("{label}: {words}\n{}", ratio.as_ref().map_or_else(|| "-".to_owned(), written)),
        words,
        colour,
    }
}

/// Differences of the settings.
fn differences(record: &Value) -> Section {
    let mut table = Table::new(&["setting", "before", "after"]);
    for difference in list(record, "differences") {
        table.row(["fact", "before", "after"].map(|key| text(difference, key).to_owned()));
    }
    if table.rows.is_empty() {
        return Section::default();
    }
    Section::new("Other differences", vec![Part::Table(table)])
}

/// The chapter of two records of measured cells.
pub(super) fn cells(record: &Value) -> Chapter {
    let cells = list(record, "cells");
    let count = |verdict: &str| cells.iter().filter(|cell| text(cell, "verdict") == verdict).count();
    let verdict = format!(
        "Of {}: {} improved, {} regressed, {} within noise, {} inconclusive",
        units::counted(cells.len() as u64, "cell", "cells"),
        count("improved"),
        count("regressed"),
        count("within-noise"),
        count("cannot-tell")
    );
    let rows: Vec<Row> =
        cells.iter().map(|cell| dot(text(cell, "key"), estimate(cell, "ratio"), words(cell))).collect();
    let mut table =
        Table::new(&["cell", "#before", "#after", "#after over before", "verdict", "layer", "doubt"]);
    for cell in cells {
        table.row([
            text(cell, "key").to_owned(),
            shown(cell, "before"),
            shown(cell, "after"),
            shown(cell, "ratio"),
            words(cell),
            text(cell, "layer").to_owned(),
            text(cell, "doubt").to_owned(),
        ]);
    }
    let svg = dots::chart(&rows, 1.0, &|v| format!("{v}"), WIDE, &verdict);
    let title = "Time after over time before, with 95 % intervals; left of the line is faster".to_owned();
    let mut layers = Table::new(&[
        "cell",
        "layer",
        "#before",
        "#after",
        "#effect on the cell (1: none)",
        "verdict",
        "doubt",
    ]);
    for layer in list(record, "layers") {
        layers.row([
            text(layer, "key").to_owned(),
            text(layer, "layer").to_owned(),
            shown(layer, "before"),
            shown(layer, "after"),
            shown(layer, "effect"),
            words(layer),
            text(layer, "doubt").to_owned(),
        ]);
    }
    let side = |key: &str| {
        record
            .get(key)
            .map_or_else(String::new, |s| format!("{key}: {} ({})", text(s, "file"), text(s, "command")))
    };
    let mut sections = vec![Section::new(
        "",
        vec![Part::Verdict(verdict.clone()), Part::Chart(Chart { title, alt: verdict, svg, table })],
    )];
    if !layers.rows.is_empty() {
        sections.push(Section::new("Layer by layer", vec![Part::Table(layers)]));
    }
    sections.push(differences(record));
    sections.push(warnings(record));
    Chapter {
        about: String::new(),
        title: "Did the change help?".to_owned(),
        facts: vec![side("before"), side("after")],
        sections,
    }
}

/// The chapter of runs of watched programs.
pub(super) fn programs(record: &Value) -> Chapter {
    let nothing = Value::Null;
    let wall = record.get("wall").unwrap_or(&nothing);
    let side = |key: &str| record.get(key).unwrap_or(&nothing);
    let runs = |key: &str| units::counted(list(side(key), "files").len() as u64, "run", "runs");
    // Below three runs there is a time, and no interval.
    let time = |of: &Value, key: &str, ns: &str| {
        let alone = || number(of, ns).map_or_else(|| "-".to_owned(), units::time);
        estimate(of, key).as_ref().map_or_else(alone, written)
    };
    let because = match text(record, "doubt") {
        "" => String::new(),
        doubt => format!(" ({doubt})"),
    };
    let verdict = format!(
        "Wall time {}{because}: {} before, {} after",
        words(wall),
        time(wall, "before", "before_ns"),
        time(wall, "after", "after_ns")
    );
    let mut rows = vec![dot("wall time", estimate(wall, "effect"), words(wall))];
    let mut table = Table::new(&[
        "part of the wall time",
        "#before",
        "#after",
        "#after over before",
        "#effect on the whole (1: none)",
        "verdict",
    ]);
    table.row([
        "all".to_owned(),
        time(wall, "before", "before_ns"),
        time(wall, "after", "after_ns"),
        shown(wall, "ratio"),
        shown(wall, "effect"),
        words(wall),
    ]);
    for part in list(record, "parts") {
        let name = match text(part, "layer") {
            "" => "nothing of it active".to_owned(),
            layer => format!("{}: {layer}", text(part, "operation")),
        };
        let changed = matches!(text(part, "verdict"), "improved" | "regressed");
        if changed {
            rows.push(dot(&name, estimate(part, "effect"), words(part)));
        }
        table.row([
            name,
            time(part, "before", "before_ns"),
            time(part, "after", "after_ns"),
            shown(part, "ratio"),
            shown(part, "effect"),
            words(part),
        ]);
    }
    let svg = dots::chart(&rows, 1.0, &|v| format!("{v}"), WIDE, &verdict);
    let title =
        "What each change alone makes of the wall time, with 95 % intervals; left of the line is faster";
    let mut sections = vec![Section::new(
        "",
        vec![
            Part::Verdict(verdict.clone()),
            Part::Chart(Chart { title: title.to_owned(), alt: verdict, svg, table }),
        ],
    )];
    let mut findings =
        Table::new(&["finding", "#runs before", "#runs after", "change", "#probability of chance"]);
    for finding in list(record, "findings") {
        let count = |key: &str| number(finding, key).map_or_else(|| "-".to_owned(), |n| format!("{n}"));
        findings.row([
            text(finding, "id").to_owned(),
            count("before_runs"),
            count("after_runs"),
            text(finding, "fate").replace('-', " "),
            number(finding, "chance").map_or_else(|| "-".to_owned(), |p| format!("{p:.3}")),
        ]);
    }
    if !findings.rows.is_empty() {
        sections.push(Section::new("Findings", vec![Part::Table(findings)]));
    }
    if !text(record, "parts_doubt").is_empty() {
        sections.push(Section::new("", vec![Part::List(vec![text(record, "parts_doubt").to_owned()])]));
    }
    sections.push(differences(record));
    sections.push(warnings(record));
    let fact = |key: &str| {
        format!("{key}: {}, {} ({})", text(side(key), "named"), runs(key), text(side(key), "subject"))
    };
    Chapter {
        about: String::new(),
        title: "Did the change help?".to_owned(),
        facts: vec![fact("before"), fact("after")],
        sections,
    }
}
