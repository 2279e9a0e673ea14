//! The screen of `sim`: one run with its ledger, or the table of a sweep.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::text::visible;
use iowhy_core::units::{self, Bytes};

use crate::record::sim::{PLANNED_TIMES, PartRecord, PointRecord, SimRecord};
use iowhy_view::terminal::table::{Align, layout};
use iowhy_view::terminal::wrap::{MIN_WIDTH, flow, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Columns of a screen; tables fit into them.
const WIDTH: usize = 100;

/// Letters of parts in bars.
const LETTERS: &[(&str, char)] = &[
    ("think", 't'),
    ("lock-step", 'l'),
    ("cpu-queue", 'q'),
    ("call", 'c'),
    ("filesystem", 'f'),
    ("lock", 'L'),
    ("cache", 'k'),
    ("mapping", 'm'),
    ("copy", 'y'),
    ("block", 'b'),
    ("writeback", 'W'),
    ("queue", 'Q'),
    ("throttle", 'T'),
    ("command", 'C'),
    ("seek", 'S'),
    ("rotation", 'R'),
    ("media", 'M'),
    ("transfer", 'X'),
    ("bus", 'B'),
];

fn letter(id: &str) -> char {
    LETTERS.iter().find(|(name, _)| *name == id).map_or('?', |(_, letter)| *letter)
}

/// The whole result; `keys` are the axes of a sweep.
pub fn screen(record: &SimRecord, keys: &[&str], width: usize) -> String {
    let width = width.clamp(MIN_WIDTH, WIDTH);
    let mut text = format!("{BOLD}{}{BOLD:#}  simulated, in virtual time\n", visible(&record.machine.name));
    text.push_str(&wrap(&record.machine.about, width, "  ", "  "));
    for part in &record.machine.parts {
        text.push_str(&wrap(part, width, "  ", "  "));
    }
    text.push_str(&wrap(&format!("load: {}", record.load), width, "  ", "    "));
    if let Some(full) = record.load_in_full.as_ref().filter(|full| **full != record.load) {
        // The list of keys may be broken behind its commas.
        text.push_str(&wrap(&format!("that is: {}", full.replace(',', ", ")), width, "  ", "    "));
    }
    text.push('\n');
    match record.points.as_slice() {
        [point] if keys.is_empty() => text.push_str(&single(point)),
        points => {
            let planned = record.warnings.iter().any(|warning| warning.code == PLANNED_TIMES);
            text.push_str(&table(points, keys, planned));
        }
    }
    let mut said: Vec<&String> = Vec::new();
    for remark in record.points.iter().flat_map(|point| &point.remarks) {
        if !said.contains(&remark) {
            said.push(remark);
            text.push_str(&wrap(remark, width, "note: ", "  "));
        }
    }
    text
}

/// One run.
fn single(point: &PointRecord) -> String {
    let latency = &point.latency_ns;
    let asked = units::counted(point.requests, "request", "requests");
    let mut text = String::new();
    match (point.requests_per_second, point.bytes_per_second) {
        (Some(requests), Some(bytes)) => {
            let _ = writeln!(
                text,
                "{BOLD}{}{BOLD:#} for {}: {}, {}",
                units::time(point.time_s * 1e9),
                asked,
                units::count_rate(requests),
                units::rate_bytes(bytes),
            );
        }
        _ => {
            let _ = writeln!(
                text,
                "{BOLD}no time{BOLD:#} passed for {asked}: nothing that they waited for costs any here",
            );
        }
    }
    let _ = writeln!(
        text,
        "latency: mean {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
        units::time(latency.mean),
        units::time(latency.p50 as f64),
        units::time(latency.p90 as f64),
        units::time(latency.p99 as f64),
        units::time(latency.p99_9 as f64),
        units::time(latency.max as f64),
    );
    text.push_str(&shares_line(point));
    let requests = point.requests.max(1) as f64;
    text.push('\n');
    let _ = writeln!(text, "{BOLD}where the time of a request goes{BOLD:#}");
    text.push_str(&ledger(&point.ledger, requests));
    if !point.slowest.is_empty() {
        let whole: f64 = point.slowest.iter().map(|part| part.seconds).sum();
        let parts: Vec<String> = largest(&point.slowest, 4)
            .map(|part| format!("{} {}", part.id, units::time(part.seconds * 1e9)))
            .collect();
        let _ =
            writeln!(text, "{DIM}slowest request, {}: {}{DIM:#}", units::time(whole * 1e9), parts.join(", "));
    }
    let after = point.settled_s - point.time_s;
    // Below a nanosecond it is rounding.
    if after > 0.5e-9 {
        let _ = writeln!(
            text,
            "the devices work for {} after the last answer: write-back and read-ahead",
            units::time(after * 1e9)
        );
    }
    text.push_str(&devices(point));
    text
}

fn shares_line(point: &PointRecord) -> String {
    let mut parts = Vec::new();
    if let Some(ratio) = point.miss_ratio {
        parts.push(format!("cache misses {:.1} % of its blocks", ratio * 100.0));
    }
    if let Some(reuse) = point.pool_reuse {
        parts.push(format!("pool reuse {reuse:.2}"));
    }
    if parts.is_empty() { String::new() } else { format!("{}\n", parts.join(", ")) }
}

/// The parts as bars that sum to 100 %.
fn ledger(parts: &[PartRecord], requests: f64) -> String {
    const BAR: f64 = 40.0;
    let whole: f64 = parts.iter().map(|part| part.seconds).sum();
    if whole <= 0.0 {
        return "  no time at all\n".to_owned();
    }
    let tenths = rounded(parts, whole);
    let rows: Vec<Vec<String>> = parts
        .iter()
        .zip(tenths)
        .map(|(part, tenths)| {
            let share = part.seconds / whole;
            vec![
                format!("  {} {}", letter(part.id), part.id),
                units::time(part.seconds * 1e9 / requests),
                format!("{}.{} %", tenths / 10, tenths % 10),
                std::iter::repeat_n(letter(part.id), (share * BAR).round() as usize).collect(),
            ]
        })
        .collect();
    let align = [Align::Left, Align::Right, Align::Right, Align::Left];
    let mut text = layout(&["  part", "per request", "share", ""], &align, &rows);
    let _ = writeln!(text, "{DIM}  sum: {} a request, 100 %{DIM:#}", units::time(whole * 1e9 / requests));
    text
}

/// Shares in tenths of a per cent that sum to 1000 exactly: by largest remainder.
fn rounded(parts: &[PartRecord], whole: f64) -> Vec<u32> {
    let exact: Vec<f64> = parts.iter().map(|part| part.seconds / whole * 1000.0).collect();
    let mut given: Vec<u32> = exact.iter().map(|e| e.floor() as u32).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let missing = 1000u32.saturating_sub(given.iter().sum());
    for &index in order.iter().cycle().take(missing as usize) {
        given[index] += 1;
    }
    given
}

fn largest(parts: &[PartRecord], most: usize) -> impl Iterator<Item = &PartRecord> {
    let mut sorted: Vec<&PartRecord> = parts.iter().collect();
    sorted.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    sorted.into_iter().take(most)
}

/// How the devices were used.
fn devices(point: &PointRecord) -> String {
    const SHOWN: usize = 8;
    let mut text = String::new();
    for (index, device) in point.devices.iter().enumerate().take(SHOWN) {
        let busy: f64 = device.work.iter().map(|part| part.seconds).sum();
        let work: Vec<String> = device
            .work
            .iter()
            .filter(|part| part.seconds > 0.005 * busy)
            .map(|part| format!("{} {:.0} %", part.id, part.seconds / busy * 100.0))
            .collect();
        let of = if work.is_empty() { String::new() } else { format!(": {}", work.join(", ")) };
        let whose = if device.units > 1 { format!("its {} units ", device.units) } else { String::new() };
        let at_work = match device.utilisation {
            Some(share) => {
                format!("{whose}at work {:.0} % of {}", share * 100.0, units::time(point.settled_s * 1e9))
            }
            None => "no time passed".to_owned(),
        };
        let line = format!(
            "device {index}: {at_work}, {}{of}",
            units::counted(device.commands, "command", "commands")
        );
        text.push_str(&wrap(&line, WIDTH, "", "  "));
    }
    if point.devices.len() > SHOWN {
        let more = (point.devices.len() - SHOWN) as u64;
        let _ = writeln!(text, "and {}", units::counted(more, "more device", "more devices"));
    }
    text
}

/// The table of a sweep.
fn table(points: &[PointRecord], keys: &[&str], planned: bool) -> String {
    const BAR: usize = 12;
    const WORK: usize = 12;
    let misses = points.iter().any(|point| point.miss_ratio.is_some());
    let pool = points.iter().any(|point| point.pool_reuse.is_some());
    let mut header: Vec<&str> = keys.iter().map(|key| key.rsplit('.').next().unwrap_or(key)).collect();
    header.extend(["time", "requests", "p99"]);
    if misses {
        header.push("miss");
    }
    if pool {
        header.push("pool");
    }
    header.extend(["devices", "of requests", "of devices", ""]);
    let mut align = vec![Align::Right; header.len()];
    let last = align.len();
    align[last - 3..].fill(Align::Left);
    let rows: Vec<Vec<String>> = points
        .iter()
        .map(|point| {
            let mut row: Vec<String> = keys.iter().map(|key| value_of(point, key)).collect();
            row.push(units::time(point.time_s * 1e9));
            row.push(point.requests_per_second.map_or_else(|| "-".to_owned(), units::count_rate));
            row.push(units::time(point.latency_ns.p99 as f64));
            if misses {
                row.push(point.miss_ratio.map_or_else(|| "-".to_owned(), |r| format!("{:.1} %", r * 100.0)));
            }
            if pool {
                row.push(point.pool_reuse.map_or_else(|| "-".to_owned(), |r| format!("{r:.2}")));
            }
            row.push(at_work(point));
            row.push(bar(&point.ledger, BAR));
            row.push(bar(&work_of(point), WORK));
            row.push(point.marks.join(" "));
            row
        })
        .collect();
    let mut text = layout(&header, &align, &rows);
    text.push_str(&legend(points));
    text.push_str(&verdict(points, keys, planned));
    text
}

/// The shares of the time that the least and the most used device are at work: how even the load is.
fn at_work(point: &PointRecord) -> String {
    let used = || point.devices.iter().filter_map(|device| device.utilisation).map(|share| share * 100.0);
    if used().next().is_none() {
        return "-".to_owned();
    }
    let (least, most) = (used().fold(f64::MAX, f64::min), used().fold(0.0, f64::max));
    if most - least < 1.0 { format!("{most:.0} %") } else { format!("{least:.0}..{most:.0} %") }
}

/// What the devices did, all together.
fn work_of(point: &PointRecord) -> Vec<PartRecord> {
    let mut sum: Vec<PartRecord> = Vec::new();
    for part in point.devices.iter().flat_map(|device| &device.work) {
        match sum.iter_mut().find(|known| known.id == part.id) {
            Some(known) => known.seconds += part.seconds,
            None => sum.push(PartRecord { id: part.id, seconds: part.seconds }),
        }
    }
    sum
}

/// The value of a key at a point; sizes with their unit.
fn value_of(point: &PointRecord, key: &str) -> String {
    match point.set.get(key) {
        Some(serde_json::Value::Number(number)) if key.ends_with("bytes") => {
            number.as_u64().map_or_else(|| number.to_string(), |bytes| Bytes(bytes).to_string())
        }
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// A bar of exactly `width` letters, shares by largest remainder.
fn bar(parts: &[PartRecord], width: usize) -> String {
    let whole: f64 = parts.iter().map(|part| part.seconds).sum();
    if whole <= 0.0 {
        return " ".repeat(width);
    }
    let exact: Vec<f64> = parts.iter().map(|part| part.seconds / whole * width as f64).collect();
    let mut given: Vec<usize> = exact.iter().map(|e| e.floor() as usize).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let missing = width.saturating_sub(given.iter().sum());
    for &index in order.iter().cycle().take(missing) {
        given[index] += 1;
    }
    parts.iter().zip(given).flat_map(|(part, n)| std::iter::repeat_n(letter(part.id), n)).collect()
}

fn legend(points: &[PointRecord]) -> String {
    let seen = |id: &str| {
        points.iter().any(|point| point.ledger.iter().chain(work_of(point).iter()).any(|part| part.id == id))
    };
    let items: Vec<String> =
        LETTERS.iter().filter(|(id, _)| seen(id)).map(|(id, letter)| format!("{letter} {id}")).collect();
    let mut text = flow(&items, WIDTH, "");
    let marked = |mark: &str| points.iter().any(|point| point.marks.contains(&mark));
    let rest = if marked("knee") || marked("cliff") {
        "; knee: the first within 5 % of it; cliff: a quarter or more from the row above"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "{DIM}of requests: where their time goes; of devices: what their work is\ndevices: share of the time at work, of the least and the most used; to the last flush\nbest: shortest time{rest}{DIM:#}"
    );
    text
}

/// What the sweep says, in a sentence. `planned`: requests come at times that no machine changes.
fn verdict(points: &[PointRecord], keys: &[&str], planned: bool) -> String {
    let Some(best) = points.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s)) else { return String::new() };
    if points.len() == 1 {
        return String::new();
    }
    let worst = points.iter().map(|point| point.time_s).fold(0.0, f64::max);
    if planned && worst <= best.time_s * 1.05 {
        return "total time: set by the times at which requests come, at every point; compare the latencies\n".to_owned();
    }
    if worst == best.time_s {
        let what = format!("no difference: every point takes {}", units::time(worst * 1e9));
        return format!("{what}, {} changes nothing here\n", keys.join(", "));
    }
    if worst <= best.time_s * 1.05 {
        return format!("no difference of more than 5 %: {} makes little of it\n", keys.join(", "));
    }
    let mut text = String::new();
    let at = |point: &PointRecord| {
        let values: Vec<String> = keys.iter().map(|key| format!("{key}={}", value_of(point, key))).collect();
        values.join(" ")
    };
    let ties = points.iter().filter(|point| point.time_s == best.time_s).count() as u64 - 1;
    let also = if ties > 0 {
        format!(" (and {} as good)", units::counted(ties, "other", "others"))
    } else {
        String::new()
    };
    let _ = writeln!(
        text,
        "{BOLD}best: {}{BOLD:#}{also}, {} against {} at worst",
        at(best),
        units::time(best.time_s * 1e9),
        units::time(worst * 1e9)
    );
    if let [key] = keys {
        let near = points.iter().filter(|point| point.time_s <= best.time_s * 1.05);
        let values: Vec<String> = near.map(|point| value_of(point, key)).collect();
        text.push_str(&wrap(&format!("within 5 % of it: {}", values.join(", ")), WIDTH, "", "  "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(seconds: &[f64]) -> Vec<PartRecord> {
        let ids = ["queue", "seek", "rotation", "transfer"];
        ids.into_iter().zip(seconds).map(|(id, &seconds)| PartRecord { id, seconds }).collect()
    }

    #[test]
    fn shares_sum_to_a_hundred_whatever_they_are() {
        for seconds in [&[1.0, 1.0, 1.0][..], &[1.0, 2.0, 4.0], &[0.001, 999.0], &[1.0, 1.0, 1.0, 4.0]] {
            let parts = parts(seconds);
            let whole: f64 = seconds.iter().sum();
            assert_eq!(rounded(&parts, whole).iter().sum::<u32>(), 1000);
            assert_eq!(bar(&parts, 24).chars().count(), 24);
        }
        assert_eq!(bar(&[], 5), "     ");
    }

    #[test]
    fn every_part_has_a_letter_of_its_own() {
        let mut letters: Vec<char> =
            iowhy_sim::ledger::Part::ALL.iter().map(|part| letter(part.id())).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), iowhy_sim::ledger::PARTS);
        assert!(!letters.contains(&'?'));
    }
}
