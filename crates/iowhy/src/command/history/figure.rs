//! The one figure that tells most of a record, with its interval.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats::bootstrap_median;
use iowhy_core::units;
use serde_json::{Value, json};

use crate::record::Kind;

/// The main result of a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    /// What it is a figure of.
    what: String,
    value: Amount,
}

#[derive(Clone, Debug, PartialEq)]
enum Amount {
    /// A measured figure.
    Estimate(Estimate),
    /// A time that was taken once: exact, and without an interval.
    Once(f64),
    /// Too few rounds for an interval.
    Inconclusive,
    /// What is counted, not measured.
    Words(String),
}

/// Seed of the interval over runs.
const SEED: u64 = 1;

impl Figure {
    pub(super) fn json(&self) -> Value {
        let (estimate, once_ns) = match &self.value {
            Amount::Estimate(estimate) => (Some(estimate), None),
            Amount::Once(ns) => (None, Some(ns)),
            Amount::Inconclusive | Amount::Words(_) => (None, None),
        };
        json!({ "what": self.what, "estimate": estimate, "once_ns": once_ns, "words": self.words() })
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        let value = match &self.value {
            Amount::Estimate(e) => format!("{}, n = {}", units::estimate(e), e.n),
            Amount::Once(ns) => format!("{}, n = 1", units::time(*ns)),
            Amount::Inconclusive => "inconclusive".to_owned(),
            Amount::Words(words) => words.clone(),
        };
        if self.what.is_empty() { value } else { format!("{}: {value}", self.what) }
    }
}

/// The figure of a row: of several runs of one program their median.
pub(super) fn of_runs(runs: &[Option<&Figure>]) -> String {
    let once = |figure: &Option<&Figure>| match figure.as_ref()?.value {
        Amount::Once(ns) => Some(ns),
        _ => None,
    };
    let times: Vec<f64> = runs.iter().filter_map(once).collect();
    let last = runs.last().copied().flatten();
    match (times.len(), last) {
        (2.., Some(last)) if times.len() == runs.len() => {
            let value = bootstrap_median(&times, SEED, Unit::Nanoseconds).map_or_else(
                || Amount::Words(format!("inconclusive, n = {}", times.len())),
                Amount::Estimate,
            );
            Figure { what: last.what.clone(), value }.words()
        }
        (_, Some(last)) => last.words(),
        (_, None) => String::new(),
    }
}

/// The figure of a record of this kind.
pub(super) fn of(kind: Kind, value: &Value) -> Option<Figure> {
    let words =
        |what: &str, words: String| Some(Figure { what: what.to_owned(), value: Amount::Words(words) });
    let counted = |list: &str, one: &str, many: &str| {
        let n = list_of(value, list).len() as u64;
        words("", units::counted(n, one, many))
    };
    match kind {
        Kind::Measurement => measured(value),
        Kind::WatchedProgram => Some(Figure {
            what: "wall time".to_owned(),
            value: Amount::Once(value.get("wall_s")?.as_f64()? * 1e9),
        }),
        Kind::Comparison => words("", verdicts(list_of(value, "cells"))),
        Kind::ComparisonOfPrograms => {
            let wall = value.get("wall")?;
            let ratio: Option<Estimate> = estimate(wall, "ratio");
            let told = Amount::Estimate;
            Some(Figure {
                what: format!("wall time {}, after / before", text(wall, "verdict").replace('-', " ")),
                value: ratio.map_or(Amount::Inconclusive, told),
            })
        }
        Kind::Proof => {
            let word = |f: &Value| format!("{} {}", text(f, "id"), text(f, "verdict").replace('-', " "));
            let all: Vec<String> = list_of(value, "findings").iter().map(word).collect();
            words("", if all.is_empty() { "nothing to prove".to_owned() } else { all.join(", ") })
        }
        Kind::SmallFiles => {
            let phase =
                list_of(value, "phases").iter().find(|p| estimate(p, "files_per_second").is_some())?;
            Some(Figure {
                what: format!("{}, files", text(phase, "phase")),
                value: estimate(phase, "files_per_second").map_or(Amount::Inconclusive, Amount::Estimate),
            })
        }
        Kind::Classic => {
            let rows = list_of(value, "rows");
            let here = rows.iter().filter(|row| estimate(row, "measured").is_some()).count();
            words("", format!("{}, {here} measured here", units::counted(rows.len() as u64, "row", "rows")))
        }
        Kind::Simulation | Kind::StripeAdvice => counted("points", "point", "points"),
        Kind::MissRatios => counted("curves", "curve", "curves"),
        Kind::TrialOfASetting => words("", verdicts(list_of(value, "requests"))),
        Kind::Doctor => counted("settings", "setting", "settings"),
        _ => None,
    }
}

/// The first request of the path report; of `bench` the first cell.
fn measured(value: &Value) -> Option<Figure> {
    let cells = list_of(value, "cells");
    let request = list_of(value, "requests").first();
    let (key, label) = match request {
        Some(request) => (text(request, "key"), text(request, "label")),
        None => cells.first().map(|cell| (text(cell, "key"), text(cell, "key")))?,
    };
    let cell = cells.iter().find(|cell| text(cell, "key") == key)?;
    Some(Figure {
        what: label.to_owned(),
        value: estimate(cell, "time_per_request").map_or(Amount::Inconclusive, Amount::Estimate),
    })
}

/// `1 regressed, 3 within noise`.
fn verdicts(cells: &[Value]) -> String {
    let count = |verdict: &str| cells.iter().filter(|cell| text(cell, "verdict") == verdict).count();
    ["regressed", "improved", "within-noise", "cannot-tell"]
        .into_iter()
        .map(|verdict| (count(verdict), verdict.replace('-', " ")))
        .filter(|(n, _)| *n > 0)
        .map(|(n, words)| format!("{n} {words}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn list_of<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn estimate(value: &Value, key: &str) -> Option<Estimate> {
    serde_json::from_value(value.get(key)?.clone()).ok()
}
