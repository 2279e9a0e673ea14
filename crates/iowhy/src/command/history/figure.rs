//! The main result of a record, with its interval.

use iowhy_core::estimate::Estimate;
use iowhy_core::stats::Verdict;
use iowhy_core::units;
use serde_json::Value;

use crate::record::Kind;
use crate::record::history::Figure;

/// The figure of a record of this kind.
pub(super) fn main_result(kind: Kind, value: &Value) -> Option<Figure> {
    let words = |what: &str, words: String| Some(Figure::new(what, &words));
    let counted = |list: &str, one: &str, many: &str| {
        let n = list_of(value, list).len() as u64;
        words("", units::counted(n, one, many))
    };
    match kind {
        Kind::Measurement => measured(value),
        Kind::WatchedProgram => {
            let ns = value.get("wall_s")?.as_f64()? * 1e9;
            let figure = Figure::new("wall time", &format!("{}, n = 1", units::time(ns)));
            Some(Figure { once_ns: Some(ns), ..figure })
        }
        Kind::Comparison => words("", verdicts(list_of(value, "cells"))),
        Kind::ComparisonOfPrograms => {
            let wall = value.get("wall")?;
            let what = format!("wall time {}, after / before", text(wall, "verdict").replace('-', " "));
            Some(Figure::estimate(&what, estimate(wall, "after_over_before")))
        }
        Kind::Proof => {
            let word = |f: &Value| format!("{} {}", text(f, "id"), text(f, "verdict").replace('-', " "));
            let all: Vec<String> = list_of(value, "findings").iter().map(word).collect();
            words("", if all.is_empty() { "nothing to prove".to_owned() } else { all.join(", ") })
        }
        Kind::Replay => {
            let place = list_of(value, "places").iter().find(|place| estimate(place, "wall").is_some())?;
            Some(Figure::estimate("wall time", estimate(place, "wall")))
        }
        Kind::SmallFiles => {
            let phase =
                list_of(value, "phases").iter().find(|p| estimate(p, "files_per_second").is_some())?;
            let what = format!("{}, files", text(phase, "phase"));
            Some(Figure::estimate(&what, estimate(phase, "files_per_second")))
        }
        Kind::Classic => {
            let rows = list_of(value, "rows");
            let here = rows.iter().filter(|row| estimate(row, "measured").is_some()).count();
            words("", format!("{}, {here} measured here", units::counted(rows.len() as u64, "row", "rows")))
        }
        Kind::MergedRanks => {
            let ns = value.get("wall")?.get("median_ns")?.as_f64()?;
            let ranks = units::counted(list_of(value, "ranks").len() as u64, "rank", "ranks");
            words("wall time", format!("{}, median of {ranks}", units::time(ns)))
        }
        Kind::MeasuredRanks => {
            let step = list_of(list_of(value, "cells").first()?, "steps").last()?;
            let ranks = units::counted(step.get("ranks")?.as_u64()?, "rank", "ranks");
            Some(Figure::estimate(&format!("{ranks} together"), estimate(step, "throughput")))
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
    Some(Figure::estimate(label, estimate(cell, "time_per_request")))
}

/// `1 regressed, 3 within noise`
fn verdicts(cells: &[Value]) -> String {
    let verdict = |cell: &Value| serde_json::from_value(cell.get("verdict")?.clone()).ok();
    let all: Vec<Verdict> = cells.iter().filter_map(verdict).collect();
    Verdict::counted(all.iter().copied())
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
