//! A simulation: one run with its ledger, or the table of a sweep. A page also has time against the setting.

use iowhy_core::layer::Layer;
use iowhy_core::units::{self, Bytes, time};
use iowhy_view::document::{Cell, Chapter, Chart, Detail, Part, Section, Shape, Split, Table};
use iowhy_view::piece::Piece;
use iowhy_view::svg::lines::{self, Dot, Frame, Series};
use iowhy_view::svg::{Scale, WIDE};

use super::surroundings;
use crate::record::sim::{DeviceRecord, PLANNED_TIMES, PartRecord, PointRecord, SimRecord};

/// Parts with their letters and the layers that give them colours, told apart where they are neighbours.
const PARTS: [(&str, char, Layer); 19] = [
    ("think", 't', Layer::Elsewhere),
    ("lock-step", 'l', Layer::Lock),
    ("cpu-queue", 'q', Layer::CpuQueue),
    ("call", 'c', Layer::Call),
    ("filesystem", 'f', Layer::Filesystem),
    ("lock", 'L', Layer::Lock),
    ("cache", 'k', Layer::Cache),
    ("mapping", 'm', Layer::Memory),
    ("copy", 'y', Layer::Copy),
    ("block", 'b', Layer::Block),
    ("writeback", 'W', Layer::Writeback),
    ("queue", 'Q', Layer::Block),
    ("throttle", 'T', Layer::Block),
    ("command", 'C', Layer::Program),
    ("seek", 'S', Layer::Writeback),
    ("rotation", 'R', Layer::Device),
    ("media", 'M', Layer::Copy),
    ("transfer", 'X', Layer::Call),
    ("bus", 'B', Layer::Filesystem),
];
/// Devices of a run on a screen and on a page.
const DEVICES: (usize, usize) = (8, 100);
/// Points with bars on a page; beyond them a table is easier to read.
const MAX_BARS: usize = 40;
/// A device's work below this share is left out.
const WORK_MATTERS: f64 = 0.005;
/// Times closer than this to the best are as good.
const AS_GOOD: f64 = 1.05;

/// The chapter.
pub fn chapter(record: &SimRecord, detail: Detail) -> Chapter {
    let machine = &record.machine;
    let mut facts = vec![machine.about.clone()];
    facts.extend(machine.parts.iter().cloned());
    facts.push(format!("load: {}", record.load));
    if let Some(full) = record.load_in_full.as_ref().filter(|full| **full != record.load) {
        // A list of keys may be broken behind its commas.
        facts.push(format!("load in full: {}", full.replace(',', ", ")));
    }
    let keys: Vec<&str> =
        record.points.first().map_or_else(Vec::new, |point| point.set.keys().map(String::as_str).collect());
    let mut sections = match record.points.as_slice() {
        [point] if keys.is_empty() => single(point, detail),
        points => sweep(points, &keys, record, detail),
    };
    let mut remarks: Vec<String> = Vec::new();
    for remark in record.points.iter().flat_map(|point| &point.remarks) {
        let remark = format!("note: {remark}");
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }
    if !remarks.is_empty() {
        sections.push(Section::quiet("Notes", remarks.into_iter().map(Part::Text).collect()));
    }
    if detail.is_page() {
        sections.extend(surroundings::warnings(&record.warnings));
    }
    Chapter { title: machine.name.clone(), about: "simulated, in virtual time".to_owned(), facts, sections }
}

fn seconds(s: f64) -> String {
    time(s * 1e9)
}

/// One run.
fn single(point: &PointRecord, detail: Detail) -> Vec<Section> {
    let requests = units::counted(point.requests, "request", "requests");
    let verdict = match (point.requests_per_second, point.throughput_bytes_per_second) {
        (Some(rate), Some(bytes)) => format!(
            "{} for {requests}: {}, {}",
            seconds(point.time_s),
            units::count_rate(rate),
            units::rate_bytes(bytes)
        ),
        _ => format!("no time passed for {requests}: none of their steps has a cost on this machine"),
    };
    let latency = &point.latency_ns;
    let quantiles = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p99_9),
        ("max", latency.max),
    ];
    let quantiles: String = quantiles.map(|(name, ns)| format!(", {name} {}", time(ns as f64))).concat();
    let mut facts = vec![("latency".to_owned(), format!("mean {}{quantiles}", time(latency.mean)))];
    if let Some(ratio) = point.miss_ratio {
        facts.push(("cache".to_owned(), format!("{:.1} % of blocks missed", ratio * 100.0)));
    }
    if let Some(reuse) = point.pool_reuse {
        facts.push(("pool".to_owned(), format!("reuse {reuse:.2}")));
    }
    let first = vec![Part::Verdict(verdict), Part::Facts(facts)];
    vec![Section::new("", first), ledger(point, detail), devices(point, detail)]
}

/// The parts of a request; their shares sum to 100 %.
fn ledger(point: &PointRecord, detail: Detail) -> Section {
    let whole: f64 = point.ledger.iter().map(|part| part.time_s).sum();
    if whole <= 0.0 {
        return Section::default();
    }
    let each = |s: f64| seconds(s / point.requests.max(1) as f64);
    let mut table = Table::new(["part", "#per request", "#share"]);
    for (part, tenths) in point.ledger.iter().zip(tenths(&point.ledger, whole)) {
        let name = match detail {
            Detail::Page => part.id.clone(),
            _ => format!("{} {}", key(&part.id).0, part.id),
        };
        table.row([name, each(part.time_s), format!("{}.{} %", tenths / 10, tenths % 10)]);
    }
    let split = Split { label: each(whole), pieces: pieces(&point.ledger), legend: Vec::new() };
    let mut parts = vec![Part::Split(split), Part::Table(table)];
    if !point.slowest.is_empty() {
        let all: f64 = point.slowest.iter().map(|part| part.time_s).sum();
        let mut largest: Vec<&PartRecord> = point.slowest.iter().collect();
        largest.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
        let words = largest.iter().take(4).map(|part| format!("{} {}", part.id, seconds(part.time_s)));
        let words: Vec<String> = words.collect();
        parts.push(Part::Note(format!("slowest request, {}: {}", seconds(all), words.join(", "))));
    }
    Section::new("mean time of a request", parts)
}

/// Shares in tenths of a per cent that sum to 1000 exactly: by largest remainder.
fn tenths(parts: &[PartRecord], whole: f64) -> Vec<u32> {
    let exact: Vec<f64> = parts.iter().map(|part| part.time_s / whole * 1000.0).collect();
    let mut given: Vec<u32> = exact.iter().map(|e| e.floor() as u32).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let missing = 1000u32.saturating_sub(given.iter().sum());
    for &index in order.iter().cycle().take(missing as usize) {
        given[index] += 1;
    }
    given
}

fn key(id: &str) -> (char, Layer) {
    let known = PARTS.iter().find(|(name, ..)| *name == id);
    known.map_or(('?', Layer::Unexplained), |(_, letter, layer)| (*letter, *layer))
}

fn pieces<'a>(parts: impl IntoIterator<Item = &'a PartRecord>) -> Vec<Piece> {
    let piece = |part: &PartRecord| {
        let (letter, layer) = key(&part.id);
        let tip = format!("{}\n{}", part.id, seconds(part.time_s));
        Piece { layer, letter, name: part.id.clone(), size: part.time_s, tip }
    };
    parts.into_iter().map(piece).collect()
}

/// How the devices were used.
fn devices(point: &PointRecord, detail: Detail) -> Section {
    let mut table = Table::new(["device", "#busy", "#units", "#commands", "work"]);
    let shown = detail.rows(DEVICES.0, DEVICES.1);
    for (index, device) in point.devices.iter().enumerate().take(shown) {
        table.row([
            Cell::from(index.to_string()),
            device
                .busy_share
                .map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
                .into(),
            if device.units > 1 { device.units.to_string() } else { String::new() }.into(),
            units::count(device.commands).into(),
            Cell::Items(work(device)),
        ]);
    }
    let mut table = table.without_empty_columns();
    table.prose = true;
    let mut parts: Vec<Part> = table.part().into_iter().collect();
    if let Some(more) = point.devices.len().checked_sub(shown).filter(|more| *more > 0) {
        parts.push(Part::Note(format!("and {}", units::counted(more as u64, "more device", "more devices"))));
    }
    if point.devices.iter().any(|device| device.units > 1) {
        parts.push(Part::Note(
            "units: requests that a device serves at once; busy: the mean share of the time that a unit works".to_owned(),
        ));
    }
    // Below a nanosecond it is rounding.
    let after = point.settled_s - point.time_s;
    if after > 0.5e-9 {
        parts.push(Part::Note(format!(
            "The devices work for {} after the last answer: write-back and read-ahead.",
            seconds(after)
        )));
    }
    Section::new("devices", parts)
}

/// What a device did, most first.
fn work(device: &DeviceRecord) -> Vec<String> {
    let busy: f64 = device.work.iter().map(|part| part.time_s).sum();
    let mut parts: Vec<&PartRecord> =
        device.work.iter().filter(|part| part.time_s > WORK_MATTERS * busy).collect();
    parts.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    parts.iter().map(|part| format!("{} {:.0} %", part.id, part.time_s / busy * 100.0)).collect()
}

/// The verdict of a sweep, and its table.
fn sweep(points: &[PointRecord], keys: &[&str], record: &SimRecord, detail: Detail) -> Vec<Section> {
    let planned = record.warnings.iter().any(|warning| warning.code == PLANNED_TIMES);
    let mut parts = vec![Part::Table(table(points, keys, detail))];
    let mut notes =
        vec!["busy: share of the time until the last flush, of the least and of the most used device"];
    let marked = |mark: &str| points.iter().any(|point| point.marks.iter().any(|known| known == mark));
    if marked("best") {
        notes.push("best: shortest time");
    }
    if marked("knee") {
        notes.push("knee: the first within 5 % of the best");
    }
    if marked("cliff") {
        notes.push("cliff: differs by 25 % or more from the row above");
    }
    parts.push(Part::Note(notes.join("; ")));
    vec![
        Section::new("", verdict(points, keys, planned)),
        Section::quiet("All points", parts),
        if detail.is_page() { chart(points, keys) } else { Section::default() },
    ]
}

/// The table of a sweep, with bars where they are not too many for a page.
fn table(points: &[PointRecord], keys: &[&str], detail: Detail) -> Table {
    let bars = !detail.is_page() || points.len() <= MAX_BARS;
    let one_column = detail.is_page() && keys.len() > 1;
    let mut headings: Vec<String> = match one_column {
        true => vec!["setting".to_owned()],
        false => keys.iter().map(|key| format!("#{}", short(key))).collect(),
    };
    headings.extend(["#time", "#requests", "#p99", "#miss ratio", "#pool reuse", "#busy"].map(str::to_owned));
    if bars {
        headings.extend(["request time", "device work"].map(str::to_owned));
    }
    headings.push(String::new());
    let mut table = Table::new(headings);
    for point in points {
        let mut row: Vec<Cell> = match one_column {
            true => vec![setting(point, keys).into()],
            false => keys.iter().map(|key| value_of(point, key).into()).collect(),
        };
        row.extend([
            Cell::from(seconds(point.time_s)),
            point.requests_per_second.map_or_else(|| "-".to_owned(), units::count_rate).into(),
            time(point.latency_ns.p99 as f64).into(),
            point.miss_ratio.map_or_else(String::new, |ratio| format!("{:.1} %", ratio * 100.0)).into(),
            point.pool_reuse.map_or_else(String::new, |reuse| format!("{reuse:.2}")).into(),
            busy(point).into(),
        ]);
        if bars {
            row.push(Cell::Bar(pieces(&point.ledger)));
            row.push(Cell::Bar(pieces(&work_together(point))));
        }
        row.push(point.marks.join(" ").into());
        table.row(row);
    }
    let shape = |bar, without: &[&'static str]| Shape { bar, items: 0, without: without.to_vec() };
    let mut table = table.without_empty_columns();
    table.shapes = vec![
        shape(12, &[]),
        shape(8, &[]),
        shape(12, &["device work"]),
        shape(8, &["device work"]),
        shape(8, &["device work", "busy"]),
        shape(8, &["device work", "busy", "miss ratio", "pool reuse"]),
        shape(8, &["device work", "busy", "miss ratio", "pool reuse", "requests", "p99"]),
    ];
    table
}

/// The last word of a key.
fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// The shares of the time that the least and the most used device are busy: how even the load is.
fn busy(point: &PointRecord) -> String {
    let used = || point.devices.iter().filter_map(|device| device.busy_share).map(|share| share * 100.0);
    if used().next().is_none() {
        return "-".to_owned();
    }
    let (least, most) = (used().fold(f64::MAX, f64::min), used().fold(0.0, f64::max));
    if most - least < 1.0 { format!("{most:.0} %") } else { format!("{least:.0}..{most:.0} %") }
}

/// What the devices did, all together.
fn work_together(point: &PointRecord) -> Vec<PartRecord> {
    let mut sum: Vec<PartRecord> = Vec::new();
    for part in point.devices.iter().flat_map(|device| &device.work) {
        match sum.iter_mut().find(|known| known.id == part.id) {
            Some(known) => known.time_s += part.time_s,
            None => sum.push(part.clone()),
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

fn setting(point: &PointRecord, keys: &[&str]) -> String {
    let values: Vec<String> = keys.iter().map(|key| format!("{key}={}", value_of(point, key))).collect();
    values.join(" ")
}

/// The answer of a sweep. `planned`: requests come at times that no machine changes.
fn verdict(points: &[PointRecord], keys: &[&str], planned: bool) -> Vec<Part> {
    let Some(best) = points.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s)) else { return Vec::new() };
    if points.len() == 1 {
        return Vec::new();
    }
    let worst = points.iter().map(|point| point.time_s).fold(0.0, f64::max);
    let near = worst <= best.time_s * AS_GOOD;
    let names = keys.join(", ");
    if near {
        return vec![Part::Verdict(if planned {
            "Requests come at their own times, which sets the total time at every point: compare the latencies"
                .to_owned()
        } else if worst == best.time_s {
            format!("no difference: every point takes {}, whatever {names} is", seconds(worst))
        } else {
            format!("no difference of more than 5 % between the values of {names}")
        })];
    }
    let ties = points.iter().filter(|point| point.time_s == best.time_s).count() as u64 - 1;
    let also = match ties {
        0 => String::new(),
        _ => format!(" (and {} as good)", units::counted(ties, "other", "others")),
    };
    let mut parts = vec![Part::Verdict(format!(
        "best: {}{also}, {}; the slowest point takes {}",
        setting(best, keys),
        seconds(best.time_s),
        seconds(worst)
    ))];
    if let [key] = keys {
        let near = points.iter().filter(|point| point.time_s <= best.time_s * AS_GOOD);
        let values: Vec<String> = near.map(|point| value_of(point, key)).collect();
        parts.push(Part::Text(format!("within 5 % of the best: {}", values.join(", "))));
    }
    parts
}

/// Time against the setting, where one number was swept.
fn chart(points: &[PointRecord], keys: &[&str]) -> Section {
    let [key] = keys else { return Section::default() };
    let dot = |point: &PointRecord| {
        let x = point.set.get(*key)?.as_f64()?;
        let tip =
            format!("{key} {}\n{}\n{}", value_of(point, key), seconds(point.time_s), point.marks.join(", "));
        Some(Dot { x, y: point.time_s, ends: None, tip })
    };
    let dots: Vec<Dot> = points.iter().filter_map(dot).collect();
    if dots.len() < 3 || dots.iter().any(|dot| dot.x <= 0.0) {
        return Section::default();
    }
    let best = points.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s));
    let alt = best.map_or_else(String::new, |best| {
        format!("shortest time with {key} {}: {}", value_of(best, key), seconds(best.time_s))
    });
    let series = [Series { name: "time".to_owned(), dots, joined: true, modelled: false }];
    let frame = Frame {
        x: (key, Scale::Log2, &|v| format!("{v}")),
        y: ("time", Scale::Linear, &seconds),
        width: WIDE,
        height: 300.0,
        alt: &alt,
    };
    let svg = lines::chart(&series, &frame);
    let mut table = Table::new([format!("#{key}"), "#time".to_owned()]);
    points.iter().for_each(|point| table.row([value_of(point, key), seconds(point.time_s)]));
    let chart = Chart { title: format!("Time against {key}"), alt, svg, table };
    Section::new("Time against the setting", vec![Part::Chart(chart)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_a_hundred_whatever_they_are() {
        for seconds in [&[1.0, 1.0, 1.0][..], &[1.0, 2.0, 4.0], &[0.001, 999.0], &[1.0, 1.0, 1.0, 4.0]] {
            let part = |&seconds| PartRecord { id: "queue".to_owned(), time_s: seconds };
            let parts: Vec<PartRecord> = seconds.iter().map(part).collect();
            assert_eq!(tenths(&parts, seconds.iter().sum()).iter().sum::<u32>(), 1000);
        }
    }

    #[test]
    fn every_part_has_a_letter_of_its_own() {
        let mut letters: Vec<char> =
            iowhy_sim::ledger::Part::ALL.iter().map(|part| key(part.id()).0).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), iowhy_sim::ledger::PARTS);
        assert!(!letters.contains(&'?'));
    }
}
