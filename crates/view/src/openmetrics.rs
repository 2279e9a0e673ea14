//! A record as text of OpenMetrics 1.0: a gauge for each figure of the record and of its lists, for a push gateway or a text
//! file collector. Times are seconds and shares are ratios, as that format asks for.
//! Deliberately absent: figures below lists (`profile`), which are raw data, and lists whose entries have no name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use iowhy_core::text::visible;
use serde_json::Value;

use crate::csv::{NAMES, Row, rows};

/// Keys of a record that say what it is.
const DESCRIBING: [&str; 5] = ["kind", "subject", "command", "iowhy", "schema"];

/// The points of each metric, in the order of metrics and of the record: labels and value.
type Metrics = BTreeMap<Metric, Vec<(String, f64)>>;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Metric {
    name: String,
    unit: Option<&'static str>,
}

/// The text.
pub fn text(record: &Value) -> String {
    let mut metrics = Metrics::new();
    let mut own = record.clone();
    let map = own.as_object_mut();
    let described: Vec<(String, String)> = map
        .into_iter()
        .flat_map(|map| {
            DESCRIBING.iter().filter_map(|key| Some(((*key).to_owned(), plain(&map.remove(*key)?))))
        })
        .collect();
    for (key, value) in own.as_object().into_iter().flatten() {
        match value {
            Value::Array(entries) => list(&mut metrics, key, entries),
            Value::Number(_) | Value::Bool(_) => add(&mut metrics, key, None, String::new(), value),
            _ => {}
        }
    }
    let mut text = String::from("# TYPE iowhy_record info\n");
    let _ = writeln!(text, "iowhy_record_info{} 1", labels(&described));
    for (Metric { name, unit }, points) in &metrics {
        let _ = writeln!(text, "# TYPE {name} gauge");
        if let Some(unit) = unit {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        for (labels, value) in points {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
    text + "# EOF\n"
}

/// One of the record's lists. Where rows share a name, their numbers tell them apart.
fn list(metrics: &mut Metrics, key: &str, entries: &[Value]) {
    let rows: Vec<_> = entries.iter().flat_map(rows).collect();
    let named = |row: &Row<'_>| {
        let names = row.iter().filter(|(column, value)| is_name(column) && !value.is_null());
        names.map(|(column, value)| (column.clone(), plain(value))).collect::<Vec<_>>()
    };
    let mut names: Vec<_> = rows.iter().map(named).collect();
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        let numbered = names.iter_mut().enumerate().filter(|(_, names)| !names.is_empty());
        numbered.for_each(|(number, names)| names.push(("row".to_owned(), number.to_string())));
    }
    for (row, names) in rows.iter().zip(&names).filter(|(_, names)| !names.is_empty()) {
        let labels = labels(names);
        for (column, value) in row.iter().filter(|(column, _)| !is_name(column)) {
            // An estimate has its unit beside it.
            let unit = column.rsplit_once('.').map(|(whole, _)| format!("{whole}.unit"));
            let unit = unit.and_then(|unit| row.iter().find(|(column, _)| *column == unit)?.1.as_str());
            let unit = unit.filter(|_| !column.ends_with(".n"));
            add(metrics, &format!("{key}.{column}"), unit, labels.clone(), value);
        }
    }
}

fn is_name(column: &str) -> bool {
    NAMES.contains(&column)
}

/// A point, if the value is a figure.
fn add(metrics: &mut Metrics, key: &str, unit: Option<&str>, labels: String, value: &Value) {
    let figure = match value {
        Value::Bool(is) => f64::from(u8::from(*is)),
        value => match value.as_f64() {
            Some(figure) => figure,
            None => return,
        },
    };
    let (name, unit, parts) = match unit {
        Some("ns") => (key.to_owned(), Some("seconds"), 1e9),
        Some("ratio") => (key.to_owned(), Some("ratio"), 1.0),
        Some(other) => (format!("{key}_{}", other.replace('/', "_per_")), None, 1.0),
        None => in_base_units(key),
    };
    let end = unit.map(|unit| format!("_{unit}")).unwrap_or_default();
    let known = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name = format!("iowhy_{}{end}", name.chars().map(known).collect::<String>());
    metrics.entry(Metric { name, unit }).or_default().push((labels, figure / parts));
}

/// A key without its unit, the base unit, and how many of the key's units are one of it.
fn in_base_units(key: &str) -> (String, Option<&'static str>, f64) {
    let units = [
        ("_ns", "seconds", 1e9),
        ("_s", "seconds", 1.0),
        ("_bytes", "bytes", 1.0),
        ("_percent", "ratio", 100.0),
    ];
    let found = units.iter().find_map(|(end, unit, parts)| Some((key.strip_suffix(end)?, *unit, *parts)));
    match found {
        Some((name, unit, parts)) => (name.to_owned(), Some(unit), parts),
        None => (key.to_owned(), None, 1.0),
    }
}

fn labels(labels: &[(String, String)]) -> String {
    let escaped = |text: &str| visible(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_have_base_units_and_names_are_labels() {
        let record = json!({
            "kind": "watched-program", "iowhy": "1", "wall_s": 0.5, "interrupted": false, "profile": {"wall_ns": 1},
            "layers": [{"id": "device", "wall_s": 0.25}, {"id": "a\"\\\n\u{1b}", "share": null}],
            "cells": [
                {"key": "a", "time": {"value": 1500.0, "n": 3, "unit": "ns"}, "error_percent": 5},
                {"key": "a", "time": null, "rate": {"value": 2, "unit": "bytes/s"}},
            ],
            "no_name": [{"wall_s": 1}],
        });
        assert_eq!(
            text(&record),
            "\
# TYPE iowhy_record info
iowhy_record_info{kind=\"watched-program\",iowhy=\"1\"} 1
# TYPE iowhy_cells_error_ratio gauge
# UNIT iowhy_cells_error_ratio ratio
iowhy_cells_error_ratio{key=\"a\",row=\"0\"} 0.05
# TYPE iowhy_cells_rate_value_bytes_per_s gauge
iowhy_cells_rate_value_bytes_per_s{key=\"a\",row=\"1\"} 2
# TYPE iowhy_cells_time_n gauge
iowhy_cells_time_n{key=\"a\",row=\"0\"} 3
# TYPE iowhy_cells_time_value_seconds gauge
# UNIT iowhy_cells_time_value_seconds seconds
iowhy_cells_time_value_seconds{key=\"a\",row=\"0\"} 0.0000015
# TYPE iowhy_interrupted gauge
iowhy_interrupted 0
# TYPE iowhy_layers_wall_seconds gauge
# UNIT iowhy_layers_wall_seconds seconds
iowhy_layers_wall_seconds{id=\"device\"} 0.25
# TYPE iowhy_wall_seconds gauge
# UNIT iowhy_wall_seconds seconds
iowhy_wall_seconds 0.5
# EOF
"
        );
    }
}
