//! A list of a record as comma-separated values (RFC 4180): a row an entry, nested figures in columns of their own.

use std::collections::BTreeMap;

use iowhy_core::text::escaped;
use serde_json::Value;

/// Lists of objects that a value holds, by path (`points`, `profile.stacks`), most important first;
/// with the number of entries.
pub fn lists(record: &Value) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    look(record, String::new(), &mut found);
    found.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    found
}

/// The main table of each kind of record.
const FIRST: [&str; 10] = [
    "cells",
    "points",
    "curves",
    "rows",
    "phases",
    "operations",
    "parts",
    "layers",
    "findings",
    "experiments",
];

fn look(value: &Value, path: String, found: &mut Vec<(String, usize)>) {
    let Some(map) = value.as_object() else { return };
    for (key, value) in map {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Array(entries) if entries.first().is_some_and(Value::is_object) => {
                found.push((path, entries.len()));
            }
            Value::Object(_) => look(value, path, found),
            _ => {}
        }
    }
}

/// The list at a path; `None` where there is none.
pub fn at<'a>(record: &'a Value, path: &str) -> Option<&'a [Value]> {
    let value = path.split('.').try_fold(record, |value, key| value.get(key))?;
    value.as_array().map(Vec::as_slice)
}

/// The text. An entry that holds a list of objects of its own becomes a row for each of them, if that is the only such list;
/// other lists are left out, as a figure has one place in a row.
pub fn text(entries: &[Value]) -> String {
    let written =
        |row: Row<'_>| row.into_iter().map(|(name, value)| (name, written(value))).collect::<Vec<_>>();
    let rows: Vec<_> = entries.iter().flat_map(rows).map(written).collect();
    let mut filled: BTreeMap<&str, bool> = BTreeMap::new();
    for (name, text) in rows.iter().flatten() {
        *filled.entry(name).or_default() |= !text.is_empty();
    }
    // `time` without a value in one row is `time.value` of the others.
    let nested = |name: &str| {
        filled.keys().any(|other| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    };
    let mut columns: Vec<&str> =
        filled.iter().filter(|(name, filled)| **filled || !nested(name)).map(|(name, _)| *name).collect();
    // Columns that name a row come first, then the others in alphabetical order.
    columns.sort_by_key(|name| NAMES.iter().position(|first| first == name).unwrap_or(NAMES.len()));
    let line = |cells: &mut dyn Iterator<Item = String>| cells.collect::<Vec<_>>().join(",") + "\r\n";
    let mut text = line(&mut columns.iter().map(|name| quoted(name)));
    for row in &rows {
        let cell = |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, text)| text);
        text.push_str(&line(&mut columns.iter().map(|column| quoted(cell(column)))));
    }
    text
}

/// Columns that name a row.
pub(crate) const NAMES: [&str; 6] = ["key", "name", "id", "policy", "phase", "target"];

/// Columns and their figures.
pub(crate) type Row<'a> = Vec<(String, &'a Value)>;

/// Rows of one entry.
pub(crate) fn rows(entry: &Value) -> Vec<Row<'_>> {
    let mut row = Vec::new();
    flatten(entry, "", &mut row);
    let inner = |value: &&Value| value.as_array().and_then(|a| a.first()).is_some_and(Value::is_object);
    // Raw rounds are a list in each cell; the cell is the row.
    let own: Vec<(&String, &Value)> = entry.as_object().map_or_else(Vec::new, |map| {
        map.iter().filter(|(key, value)| inner(value) && key.as_str() != "samples").collect()
    });
    match own.as_slice() {
        [(key, Value::Array(inner))] if row.len() <= MAX_OUTER => inner
            .iter()
            .map(|one| {
                let mut whole = row.clone();
                flatten(one, &format!("{key}."), &mut whole);
                whole
            })
            .collect(),
        _ => vec![row],
    }
}

/// An entry with more figures of its own than this is a row itself, whatever lists it holds.
const MAX_OUTER: usize = 3;

fn flatten<'a>(value: &'a Value, prefix: &str, row: &mut Row<'a>) {
    let Some(map) = value.as_object() else {
        row.push((format!("{prefix}value"), value));
        return;
    };
    for (key, value) in map {
        match value {
            Value::Object(_) => flatten(value, &format!("{prefix}{key}."), row),
            Value::Array(_) => {}
            _ => row.push((format!("{prefix}{key}"), value)),
        }
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A field, in quotes where it must be. Escapes as of [`escaped`]; what a spreadsheet would take for a formula is made a text
/// by a leading `'`, and so is what begins with one: without that and [`iowhy_core::text::unescaped`] it is the name again.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '@', '+', '-', '\'']) && text.parse::<f64>().is_err();
    let text = escaped(text);
    let text = if formula { format!("'{text}") } else { text.into_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_figures_have_columns_of_their_own() {
        let entries = [
            json!({"key": "a,b", "time": {"value": 1.5, "n": 3}, "samples": [{"round": 1}]}),
            json!({"key": "=1+1", "time": null, "more": true}),
        ];
        let text = text(&entries);
        assert_eq!(text, "key,more,time.n,time.value\r\n\"a,b\",,3,1.5\r\n'=1+1,true,,\r\n");
    }

    #[test]
    fn names_come_back_as_they_were() {
        for name in ["a\\b", "\u{1b}[31m\u{202e}x\r\ny", "=1+1", "'quoted", "@\u{9b}", "a,\"b\"\n", "läuft"]
        {
            let text = text(&[json!({"name": name, "n": 1})]);
            assert!(!text.replace("\r\n", "").contains(iowhy_core::text::acts), "{text:?}");
            let field = text.lines().nth(1).unwrap().strip_suffix(",1").unwrap();
            let field = match field.strip_prefix('"') {
                Some(quoted) => quoted.strip_suffix('"').unwrap().replace("\"\"", "\""),
                None => field.to_owned(),
            };
            let field = field.strip_prefix('\'').unwrap_or(&field);
            assert_eq!(iowhy_core::text::unescaped(field).as_deref(), Some(name), "{text}");
        }
    }

    #[test]
    fn curves_become_a_row_a_point() {
        let curves = [json!({"policy": "lru", "points": [{"blocks": 1}, {"blocks": 2}]})];
        assert_eq!(text(&curves), "policy,points.blocks\r\nlru,1\r\nlru,2\r\n");
    }

    #[test]
    fn lists_are_found_at_any_depth_the_important_ones_first() {
        let record =
            json!({"a": [{"x": 1}], "deep": {"er": [{"y": 1}, {"y": 2}]}, "cells": [{"z": 1}], "n": [1, 2]});
        let found = lists(&record);
        assert_eq!(found, [("cells".into(), 1), ("a".into(), 1), ("deep.er".into(), 2)]);
        assert_eq!(at(&record, "deep.er").map(<[Value]>::len), Some(2));
        assert!(at(&record, "nothing.here").is_none());
    }
}
