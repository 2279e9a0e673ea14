//! Chapters of simulations: `sim` (a point or a sweep) and `mrc` (miss-ratio curves).

use iowhy_core::units::{self, Bytes};
use serde_json::Value;

use super::look::{any, list, number, text, texts};
use iowhy_view::document::{Chapter, Chart, Part, Section, Table};
use iowhy_view::svg::bars::{self, Bar, Piece};
use iowhy_view::svg::lines::{self, Dot, Frame, Series};
use iowhy_view::svg::{Scale, WIDE};

/// The chapter of `sim`.
pub(super) fn sim(record: &Value) -> Chapter {
    let machine = record.get("machine").unwrap_or(&Value::Null);
    let points = list(record, "points");
    let keys: Vec<&String> = points
        .first()
        .and_then(|point| point.get("set")?.as_object())
        .map_or_else(Vec::new, |set| set.keys().collect());
    let mut facts = vec![text(machine, "about").to_owned()];
    facts.extend(texts(machine, "parts"));
    facts.push(format!("load: {}", text(record, "load")));
    Chapter {
        about: String::new(),
        title: format!("Simulated: {} on {}", text(record, "load"), text(machine, "name")),
        facts,
        sections: vec![
            sim_verdict(points, &keys),
            sim_sweep(points, &keys),
            sim_ledger(points, &keys),
            sim_table(points, &keys),
            warnings(record),
        ],
    }
}

fn setting(point: &Value, keys: &[&String]) -> String {
    let set = point.get("set").unwrap_or(&Value::Null);
    keys.iter()
        .map(|key| format!("{key} {}", any(set.get(key.as_str()).unwrap_or(&Value::Null))))
        .collect::<Vec<_>>()
        .join(", ")
}

fn seconds(s: f64) -> String {
    units::time(s * 1e9)
}

fn sim_verdict(points: &[Value], keys: &[&String]) -> Section {
    let time = |point: &&Value| number(point, "time_s");
    let timed: Vec<(&Value, f64)> = points.iter().filter_map(|p| Some((p, time(&p)?))).collect();
    let least = timed.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = timed.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let words = match (least, most) {
        (Some(least), Some(most)) if timed.len() > 1 => format!(
            "Fastest with {}: {}; slowest with {}: {}",
            setting(least.0, keys),
            seconds(least.1),
            setting(most.0, keys),
            seconds(most.1)
        ),
        (Some(only), _) => format!(
            "{} for {}",
            seconds(only.1),
            units::counted(number(only.0, "requests").unwrap_or(0.0) as u64, "request", "requests")
        ),
        _ => return Section::default(),
    };
    Section::new(
        "",
        vec![
            Part::Verdict(words),
            Part::Note(
                "Simulated in virtual time: exact for this model and seed, without an interval.".to_owned(),
            ),
        ],
    )
}

/// Time against the setting, where one number was swept.
fn sim_sweep(points: &[Value], keys: &[&String]) -> Section {
    let [key] = keys else { return Section::default() };
    let dots: Vec<Dot> = points
        .iter()
        .filter_map(|point| {
            let x = number(point.get("set")?, key)?;
            let y = number(point, "time_s")?;
            let marks = texts(point, "marks").join(", ");
            Some(Dot { x, y, ends: None, tip: format!("{key} {x}\n{}\n{marks}", seconds(y)) })
        })
        .collect();
    if dots.len() < 3 || dots.iter().any(|dot| dot.x <= 0.0) {
        return Section::default();
    }
    let mut table = Table::new([format!("#{key}"), "#time".to_owned()]);
    dots.iter().for_each(|dot| table.row([dot.x.to_string(), seconds(dot.y)]));
    let best = dots.iter().min_by(|a, b| a.y.total_cmp(&b.y));
    let alt = best
        .map_or_else(String::new, |best| format!("least time with {key} {}: {}", best.x, seconds(best.y)));
    let series = [Series { name: "time".to_owned(), dots, joined: true, modelled: false }];
    let frame = Frame {
        x: (key, Scale::Log2, &|v| format!("{v}")),
        y: ("time", Scale::Linear, &seconds),
        width: WIDE,
        height: 300.0,
        alt: &alt,
    };
    let svg = lines::chart(&series, &frame);
    Section::new(
        "Time against the setting",
        vec![Part::Chart(Chart { title: format!("Time against {key}"), alt, svg, table })],
    )
}

/// Colour of a part of the simulator's ledger: those that are layers have their layer's.
fn class_of(part: &str) -> &'static str {
    match part {
        "call" => "call",
        "filesystem" => "filesystem",
        "cache" => "cache",
        "copy" | "transfer" | "media" => "copy",
        "mapping" => "memory",
        "block" | "queue" | "throttle" => "block",
        "bus" => "call",
        "rotation" => "device",
        "seek" | "writeback" => "writeback",
        "lock" | "lock-step" => "lock",
        "cpu-queue" => "cpu-queue",
        "think" => "elsewhere",
        _ => "program",
    }
}

fn sim_ledger(points: &[Value], keys: &[&String]) -> Section {
    let mut table = Table::new(["setting", "part", "#time", "#share"]);
    let mut bars = Vec::new();
    for point in points.iter().take(40) {
        let total = number(point, "ledger_total_s").unwrap_or(0.0);
        let name = if keys.is_empty() { "all requests".to_owned() } else { setting(point, keys) };
        let mut pieces = Vec::new();
        for part in list(point, "ledger") {
            let (id, s) = (text(part, "id"), number(part, "seconds").unwrap_or(0.0));
            let share = format!("{:.1} %", s / total.max(1e-12) * 100.0);
            table.row([name.clone(), id.to_owned(), seconds(s), share.clone()]);
            pieces.push(Piece {
                class: class_of(id).to_owned(),
                name: id.to_owned(),
                size: s,
                tip: format!("{id}\n{}, {share}", seconds(s)),
            });
        }
        // The last word of a setting is what differs.
        let label = if keys.len() == 1 { name.rsplit(' ').next().unwrap_or(&name).to_owned() } else { name };
        bars.push(Bar { label, whole: seconds(total), pieces });
    }
    if table.rows.is_empty() {
        return Section::default();
    }
    let alt = "time of all requests, split over the parts of the path; it sums to the whole".to_owned();
    let svg = bars::chart(&bars, WIDE, &alt);
    let chart = Chart { title: "Time of all requests together, by part".to_owned(), alt, svg, table };
    Section::new("Where simulated time goes", vec![Part::Chart(chart)])
}

fn sim_table(points: &[Value], keys: &[&String]) -> Section {
    let mut table = Table::new([
        "setting",
        "#time",
        "#requests/s",
        "#mean latency",
        "#p50",
        "#p99",
        "#misses",
        "#device busy",
        "marks",
    ]);
    for point in points {
        let latency = point.get("latency_ns").unwrap_or(&Value::Null);
        let ns = |key: &str| number(latency, key).map_or_else(|| "-".to_owned(), units::time);
        let busy: Vec<String> = list(point, "devices")
            .iter()
            .filter_map(|device| Some(format!("{:.0} %", number(device, "utilisation")? * 100.0)))
            .collect();
        table.row([
            if keys.is_empty() { "as given".to_owned() } else { setting(point, keys) },
            number(point, "time_s").map_or_else(|| "-".to_owned(), seconds),
            number(point, "requests_per_second").map_or_else(|| "-".to_owned(), units::count_rate),
            ns("mean"),
            ns("p50"),
            ns("p99"),
            number(point, "miss_ratio").map_or_else(|| "-".to_owned(), |m| format!("{m:.4}")),
            busy.join(" "),
            texts(point, "marks").join(", "),
        ]);
    }
    if table.rows.is_empty() {
        Section::default()
    } else {
        Section::new("All points", vec![Part::Table(table)])
    }
}

/// The chapter of `mrc`.
pub(super) fn curves(record: &Value) -> Chapter {
    let block = number(record, "block_bytes");
    let size = |room: f64| match block {
        Some(block) => Bytes((room * block) as u64).to_string(),
        None => format!("{} objects", units::count(room as u64)),
    };
    let mut table = Table::new(["policy", "#size", "#miss ratio", "#error of sampling"]);
    let mut series = Vec::new();
    for curve in list(record, "curves") {
        let policy = text(curve, "policy");
        let mut dots = Vec::new();
        for point in list(curve, "points") {
            let (Some(room), Some(miss)) = (number(point, "blocks"), number(point, "miss_ratio")) else {
                continue;
            };
            let error = number(point, "error");
            table.row([
                policy.to_owned(),
                size(room),
                format!("{miss:.4}"),
                match error {
                    Some(0.0) => "exact".to_owned(),
                    Some(error) => format!("±{error:.4}"),
                    None => "unknown".to_owned(),
                },
            ]);
            dots.push(Dot {
                x: room,
                y: miss,
                ends: error.filter(|e| *e > 0.0).map(|e| (miss - e, miss + e)),
                tip: format!("{policy}, {}\nmiss ratio {miss:.4}", size(room)),
            });
        }
        series.push(Series { name: policy.to_owned(), dots, joined: true, modelled: false });
    }
    let best = series
        .iter()
        .map(|s| (s, s.dots.iter().map(|d| d.y).sum::<f64>() / s.dots.len().max(1) as f64))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let alt = best.map_or_else(String::new, |(best, _)| {
        format!("fewest misses on the mean of its sizes: {}", best.name)
    });
    let frame = Frame {
        x: ("size of the cache", Scale::Log2, &size),
        y: ("miss ratio", Scale::Linear, &|v| format!("{v:.1}")),
        width: WIDE,
        height: 380.0,
        alt: &alt,
    };
    let svg = lines::chart(&series, &frame);
    let counted = |key: &str| units::count(number(record, key).unwrap_or(0.0) as u64);
    Chapter {
        about: String::new(),
        title: format!("Miss ratios: {}", trace_name(record)),
        facts: vec![format!(
            "{} references to {} different blocks or objects",
            counted("references"),
            counted("distinct")
        )],
        sections: vec![
            Section::new(
                "",
                vec![Part::Chart(Chart {
                    title: "Miss ratio against cache size".to_owned(),
                    alt,
                    svg,
                    table,
                })],
            ),
            warnings(record),
        ],
    }
}

fn trace_name(record: &Value) -> String {
    ["file", "name", "trace"]
        .iter()
        .map(|key| text(record, key))
        .find(|name| !name.is_empty())
        .unwrap_or("a trace")
        .to_owned()
}

/// Warnings and remarks.
pub(super) fn warnings(record: &Value) -> Section {
    let mut items: Vec<String> = list(record, "warnings")
        .iter()
        .map(|warning| match text(warning, "next") {
            "" => text(warning, "message").to_owned(),
            next => format!("{}; next: {next}", text(warning, "message")),
        })
        .collect();
    for point in list(record, "points") {
        for remark in texts(point, "remarks") {
            if !items.contains(&remark) {
                items.push(remark);
            }
        }
    }
    if items.is_empty() { Section::default() } else { Section::new("Warnings", vec![Part::List(items)]) }
}
