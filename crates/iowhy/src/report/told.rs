//! Chapters of records that are mostly tables: `classic`, `tree`, `stripe advise`.

use iowhy_core::environment::Environment;
use iowhy_core::estimate::Unit;
use iowhy_core::units::{self, Bytes};
use serde_json::Value;

use super::look::{any, estimate, in_unit, list, number, text, texts};
use super::simulated::warnings;
use crate::screen::figures::written;
use crate::screen::surroundings;
use iowhy_view::document::{Chapter, Chart, Part, Section, Table};
use iowhy_view::svg::lines::{self, Dot, Frame, Series};
use iowhy_view::svg::{Scale, WIDE};

fn machine(record: &Value) -> Section {
    let environment: Option<Environment> =
        record.get("environment").and_then(|value| serde_json::from_value(value.clone()).ok());
    environment.map_or_else(Section::default, |environment| surroundings::section(&environment, &[]))
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

/// The chapter of one classic experiment.
pub(super) fn classic(record: &Value) -> Chapter {
    let mut sections = vec![Section::new(
        "",
        match texts(record, "verdicts").split_first() {
            Some((first, rest)) => {
                let mut parts = vec![Part::Verdict(first.clone())];
                if !rest.is_empty() {
                    parts.push(Part::List(rest.to_vec()));
                }
                parts
            }
            None => Vec::new(),
        },
    )];
    let mut tables: Vec<(String, Table)> = Vec::new();
    for row in list(record, "rows") {
        let key = row.get("key").unwrap_or(&Value::Null);
        let name = text(key, "table").to_owned();
        let unit: Unit =
            row.get("unit").and_then(|u| serde_json::from_value(u.clone()).ok()).unwrap_or(Unit::Ratio);
        let label = key.as_object().map_or_else(String::new, |entries| {
            let others = entries.iter().filter(|(k, _)| k.as_str() != "table");
            others.map(|(k, v)| format!("{} {}", k.replace('_', " "), any(v))).collect::<Vec<_>>().join(", ")
        });
        let cells = [
            label,
            text(row, "quantity").to_owned(),
            or_dash(number(row, "published").map(|v| in_unit(v, unit))),
            or_dash(estimate(row, "measured").as_ref().map(written)),
            or_dash(number(row, "model").map(|v| in_unit(v, unit))),
            or_dash(number(row, "error_percent").map(|v| units::signed_per_cent(v, 1))),
            text(row, "remark").to_owned(),
        ];
        match tables.iter_mut().find(|(n, _)| *n == name) {
            Some((_, table)) => table.row(cells),
            None => {
                let mut table = Table::new([
                    "row",
                    "quantity",
                    "#then",
                    "#here and now",
                    "#model",
                    "#error of the model",
                    "remark",
                ]);
                table.row(cells);
                tables.push((name, table));
            }
        }
    }
    sections.extend(
        tables
            .into_iter()
            .map(|(name, table)| Section::new(name.replace('-', " "), vec![Part::Table(table)])),
    );
    let not_done = texts(record, "not_done");
    if !not_done.is_empty() {
        sections.push(Section::new("Not done", vec![Part::List(not_done)]));
    }
    sections.push(warnings(record));
    sections.push(machine(record));
    Chapter {
        about: String::new(),
        title: format!("{}: {}", text(record, "name"), text(record, "title")),
        facts: vec![
            format!("{}, {}", text(record, "source"), text(record, "date")),
            format!("then: {}", text(record, "machine")),
        ],
        sections,
    }
}

/// The chapter of `tree`.
pub(super) fn tree(record: &Value) -> Chapter {
    let facts = record.get("tree").unwrap_or(&Value::Null);
    let mut table =
        Table::new(["phase", "state", "#files", "#files/s", "#bytes/s", "#first done", "#last done"]);
    let mut calls = Table::new(["phase", "call", "#mean", "#calls", "#p50", "#p99", "#greatest"]);
    for phase in list(record, "phases") {
        let name = text(phase, "phase");
        let shown = |key: &str| or_dash(estimate(phase, key).as_ref().map(written));
        table.row([
            name.to_owned(),
            text(phase, "state").to_owned(),
            units::count(number(phase, "files").unwrap_or(0.0) as u64),
            shown("files_per_second"),
            shown("throughput"),
            shown("first_done"),
            shown("last_done"),
        ]);
        for call in list(phase, "operations") {
            let ns = |key: &str| or_dash(number(call, key).map(units::time));
            // Records of older versions know percentiles over all calls only, which have no interval.
            let of_rounds = |key: &str, over_all: &str| match estimate(call, key) {
                Some(estimate) => written(&estimate),
                None => ns(over_all),
            };
            calls.row([
                name.to_owned(),
                text(call, "id").to_owned(),
                or_dash(estimate(call, "mean").as_ref().map(written)),
                units::count(number(call, "n").unwrap_or(0.0) as u64),
                of_rounds("p50", "p50_ns"),
                of_rounds("p99", "p99_ns"),
                ns("max_ns"),
            ]);
        }
    }
    let count = |key: &str| number(facts, key).unwrap_or(0.0) as u64;
    Chapter {
        about: String::new(),
        title: format!("Small files: {}", text(facts, "path")),
        facts: vec![
            text(record, "command").to_owned(),
            format!(
                "{} in {}, {}",
                units::counted(count("files"), "file", "files"),
                units::counted(count("directories"), "directory", "directories"),
                Bytes(count("bytes"))
            ),
        ],
        sections: vec![
            Section::new("Phases", vec![Part::Table(table)]),
            Section::new("Calls", vec![Part::Table(calls)]),
            warnings(record),
            machine(record),
        ],
    }
}

/// The chapter of `stripe advise`.
pub(super) fn stripe(record: &Value) -> Chapter {
    let bytes = |value: &Value, key: &str| Bytes(number(value, key).unwrap_or(0.0) as u64).to_string();
    let pick = record.get("pick").filter(|pick| pick.is_object());
    let verdict = pick.map_or_else(
        || "No interleave can be recommended".to_owned(),
        |pick| {
            format!(
                "Take an interleave of {} ({} confidence)",
                bytes(pick, "interleave_bytes"),
                text(pick, "confidence")
            )
        },
    );
    let points = list(record, "points");
    let mut table =
        Table::new(["#interleave", "#time", "#throughput", "#busiest over mean", "#split", "#single stream"]);
    let mut dots = Vec::new();
    for point in points {
        let time = number(point, "time_s").unwrap_or(0.0);
        let row = [
            bytes(point, "interleave_bytes"),
            units::time(time * 1e9),
            or_dash(number(point, "bytes_per_second").map(units::rate_bytes)),
            or_dash(number(point, "most_over_mean").map(|v| format!("{v:.2}"))),
            or_dash(number(point, "split_share").map(|v| format!("{:.0} %", v * 100.0))),
            or_dash(number(point, "stream_bytes_per_second").map(units::rate_bytes)),
        ];
        dots.push(Dot {
            x: number(point, "interleave_bytes").unwrap_or(1.0),
            y: time,
            ends: None,
            tip: format!("{}\n{}", row[0], row[1]),
        });
        table.row(row);
    }
    let frame = Frame {
        x: ("interleave", Scale::Log2, &|v| Bytes(v as u64).to_string()),
        y: ("simulated time", Scale::Linear, &|s| units::time(s * 1e9)),
        width: WIDE,
        height: 280.0,
        alt: &verdict,
    };
    let series = [Series { name: "simulated".to_owned(), dots, joined: true, modelled: false }];
    let svg = lines::chart(&series, &frame);
    let mut parts = vec![Part::Verdict(verdict.clone())];
    if !points.is_empty() {
        parts.push(Part::Chart(Chart {
            title: "Time of the workload against the interleave, simulated".to_owned(),
            alt: verdict,
            svg,
            table,
        }));
    }
    let mut sections = vec![Section::new("", parts)];
    let mut proof =
        Table::new(["#interleave", "role", "#predicted", "#measured", "#error", "#of the fastest"]);
    for row in list(record, "proof") {
        proof.row([
            bytes(row, "interleave_bytes"),
            match list(row, "left_out") {
                [] => text(row, "role").to_owned(),
                out => {
                    let names: Vec<&str> = out.iter().filter_map(Value::as_str).collect();
                    format!("{} {}", text(row, "role"), names.join(", "))
                }
            },
            or_dash(number(row, "predicted_bytes_per_second").map(units::rate_bytes)),
            or_dash(estimate(row, "throughput").as_ref().map(written)),
            or_dash(number(row, "error_percent").map(|v| units::signed_per_cent(v, 1))),
            or_dash(estimate(row, "of_fastest").as_ref().map(written)),
        ]);
    }
    if !proof.rows.is_empty() {
        sections.push(Section::new("Proof: stripes that were built and measured", vec![Part::Table(proof)]));
    }
    sections.push(warnings(record));
    Chapter {
        about: String::new(),
        title: format!("Which interleave for {}?", text(record, "load")),
        facts: list(record, "members")
            .iter()
            .map(|m| format!("{}, {}", text(m, "name"), bytes(m, "size_bytes")))
            .collect(),
        sections,
    }
}
