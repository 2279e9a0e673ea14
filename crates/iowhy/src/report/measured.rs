//! A chapter of what was measured in rounds: the main job and `bench`.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::histogram::quarter;
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::model::{LayerCost, Part as ModelPart, StackModel};
use iowhy_core::units::{self, Bytes};
use iowhy_core::workload::{CacheState, Method};

use super::document::{Chapter, Chart, Part, Section, Table};
use super::look::written;
use super::surroundings;
use super::svg::bars::{self, Bar, Piece};
use super::svg::dots::{self, Row};
use super::svg::heat::{self, Field};
use super::svg::histogram::{self, Class};
use super::svg::lines::{self, Dot, Frame, Series};
use super::svg::{SMALL, Scale, WIDE};
use crate::record::{CellRecord, Record};
use crate::render::cell;

/// Cells whose histograms are drawn.
const MOST_HISTOGRAMS: usize = 12;
/// Bars that are drawn.
const MOST_BARS: usize = 24;
/// Classes of a histogram; neighbours are joined until there are no more.
const MOST_CLASSES: usize = 90;

/// The chapter.
pub(super) fn chapter(record: &Record) -> Chapter {
    let shown = shown(record);
    let mut sections = vec![verdict(record)];
    sections.push(layers(&shown));
    sections.push(sizes(record));
    sections.push(ways(record));
    sections.push(latencies(&shown));
    sections.push(over_time(&shown));
    sections.push(doubts(record, &shown));
    sections.push(model(record));
    sections.push(surroundings::section(&record.environment, &record.warnings));
    let target = record.targets.iter().map(|t| t.name.as_str()).collect::<Vec<_>>().join(", ");
    let rounds = if record.interrupted { ", interrupted" } else { "" };
    Chapter {
        title: if target.is_empty() { record.command.clone() } else { format!("Where time goes: {target}") },
        facts: vec![
            record.command.clone(),
            format!("iowhy {}, {} rounds{rounds}, seed {}", record.iowhy, record.rounds, record.seed),
        ],
        sections,
    }
}

/// The cells that the screen of the command shows, with their labels: those it named; else all with layers; else all.
fn shown(record: &Record) -> Vec<(String, &CellRecord)> {
    let by_key = |key: &str| record.cells.iter().find(|cell| cell.key == key);
    let named: Vec<(String, &CellRecord)> =
        record.requests.iter().filter_map(|r| Some((r.label.clone(), by_key(&r.key)?))).collect();
    if !named.is_empty() {
        return named;
    }
    let label = |cell: &CellRecord| {
        let many = if record.targets.len() > 1 { format!("{} ", cell.target) } else { String::new() };
        let threads = if cell.threads > 1 { format!(", {} threads", cell.threads) } else { String::new() };
        let depth = if cell.depth > 1 { format!(", depth {}", cell.depth) } else { String::new() };
        let state = if cell.method == cell.state { String::new() } else { format!(" {}", cell.state) };
        format!("{many}{}{state} {}{threads}{depth}", cell.method, Bytes(cell.block_bytes))
    };
    let all = |with_layers: bool| -> Vec<(String, &CellRecord)> {
        let fits = |cell: &&CellRecord| !with_layers || cell.layers.is_some();
        record.cells.iter().filter(fits).map(|cell| (label(cell), cell)).collect()
    };
    let split = all(true);
    if split.is_empty() { all(false) } else { split }
}

fn verdict(record: &Record) -> Section {
    let mut parts = Vec::new();
    if let Some(limit) = &record.limit {
        parts.push(Part::Verdict(limit.sentence.clone()));
        parts.push(Part::List(limit.evidence.clone()));
    } else if let Some((first, last)) = fastest(record) {
        parts.push(Part::Verdict(format!(
            "Fastest of {} cells: {} at {}; slowest: {} at {}",
            record.cells.len(),
            first.key,
            written_rate(first),
            last.key,
            written_rate(last)
        )));
    }
    for question in record.limits.iter().filter(|q| Some(&q.limit) != record.limit.as_ref()) {
        parts.push(Part::Text(question.limit.sentence.clone()));
        if !question.limit.evidence.is_empty() {
            parts.push(Part::List(question.limit.evidence.clone()));
        }
    }
    Section::new("", parts)
}

fn written_rate(cell: &CellRecord) -> String {
    cell.throughput.as_ref().map_or_else(|| "cannot tell".to_owned(), written)
}

/// The cells with the greatest and the least throughput, where there are two with one.
fn fastest(record: &Record) -> Option<(&CellRecord, &CellRecord)> {
    let rate = |cell: &&CellRecord| cell.throughput.map(|t| t.value);
    let mut rated: Vec<&CellRecord> = record.cells.iter().filter(|c| rate(c).is_some()).collect();
    rated.sort_by(|a, b| rate(b).partial_cmp(&rate(a)).unwrap_or(std::cmp::Ordering::Equal));
    (rated.len() > 1).then(|| (rated[0], rated[rated.len() - 1]))
}

/// Bars over the layers.
fn layers(shown: &[(String, &CellRecord)]) -> Section {
    let split: Vec<(&String, &CellRecord, &Ledger)> = shown
        .iter()
        .filter_map(|(label, cell)| Some((label, *cell, cell.layers.as_ref()?)))
        .take(MOST_BARS)
        .collect();
    if split.is_empty() {
        return Section::default();
    }
    let bars: Vec<Bar> = split
        .iter()
        .map(|(label, cell, ledger)| Bar {
            label: (*label).clone(),
            whole: cell::time(cell),
            pieces: pieces(ledger),
        })
        .collect();
    let used: Vec<Layer> =
        Layer::ALL.into_iter().filter(|l| split.iter().any(|(.., g)| g.get(*l).total_ns() != 0.0)).collect();
    let mut headings = vec!["request", "#time", "#throughput", "#CPU"];
    let names: Vec<String> = used.iter().map(|layer| format!("#{}", layer.id())).collect();
    headings.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&headings);
    for (label, cell, ledger) in &split {
        let mut row = vec![
            (*label).clone(),
            cell.time_per_request.as_ref().map_or_else(|| "cannot tell".to_owned(), written),
            cell::throughput(cell),
            cell::cpu_per_byte(cell),
        ];
        row.extend(used.iter().map(|id| match cell.layer(*id) {
            Some(layer) => units::estimate(&layer.time),
            None => units::time(ledger.get(*id).total_ns()),
        }));
        table.row(row);
    }
    let alt = split
        .iter()
        .filter_map(|(label, _, ledger)| {
            let most = ledger.entries().iter().max_by(|a, b| a.total_ns().total_cmp(&b.total_ns()))?;
            let whole: f64 = ledger.entries().iter().map(|e| e.total_ns().max(0.0)).sum();
            let share = most.total_ns() / whole * 100.0;
            Some(format!("{label}: most in `{}` ({share:.0} %)", most.id.id()))
        })
        .collect::<Vec<_>>()
        .join("; ");
    let svg = bars::chart(&bars, WIDE, &alt);
    Section::new(
        "Where the time of a request goes",
        vec![Part::Chart(Chart {
            title: "Thread time of a request, split over the layers of the path".to_owned(),
            alt,
            svg,
            table,
        })],
    )
}

/// A ledger as pieces of a bar.
fn pieces(ledger: &Ledger) -> Vec<Piece> {
    let whole = ledger.total_ns();
    ledger
        .entries()
        .iter()
        .map(|entry| Piece {
            class: entry.id.id().to_owned(),
            name: entry.id.id().to_owned(),
            size: entry.total_ns(),
            tip: format!(
                "{}\n{}, {:.1} %\nbusy {}, waiting {}",
                entry.id.id(),
                units::time(entry.total_ns()),
                entry.total_ns() / whole * 100.0,
                units::time(entry.busy_ns),
                units::time(entry.wait_ns)
            ),
        })
        .collect()
}

/// Time against block size: a small chart for each method, state and pattern that was measured at three sizes or more.
fn sizes(record: &Record) -> Section {
    let mut groups: Vec<(String, Vec<&CellRecord>)> = Vec::new();
    for cell in record.cells.iter().filter(|cell| cell.time_per_request.is_some()) {
        let many = if record.targets.len() > 1 { format!("{} ", cell.target) } else { String::new() };
        // Rungs of the ladder read other targets, which only their key tells.
        let rung = cell.key.split_once('-').map_or("", |(rung, _)| match rung {
            "memory" | "dev" => rung,
            _ => "",
        });
        let rung = if rung.is_empty() { String::new() } else { format!(" ({rung})") };
        let state = if cell.method == cell.state { String::new() } else { format!(" {}", cell.state) };
        let name = format!("{many}{}{state}, {} {}{rung}", cell.method, cell.pattern, cell.direction);
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((name, vec![cell])),
        }
    }
    let fitted = fitted(record);
    let charts: Vec<Chart> = groups
        .iter()
        .filter(|(_, cells)| {
            let mut sizes: Vec<u64> = cells.iter().map(|c| c.block_bytes).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes.len() >= 3
        })
        .map(|(name, cells)| of_sizes(name, cells, fitted.as_ref()))
        .collect();
    if charts.is_empty() {
        return Section::default();
    }
    let mut parts = Vec::new();
    if fitted.is_some() {
        parts.push(Part::Note(
            "Dots are measured, with their 95 % intervals; the dashed line is the fitted model, its band the 95 % \
             intervals of the fitted costs taken together."
                .to_owned(),
        ));
    }
    parts.push(Part::Charts(charts));
    Section::new("Time against block size", parts)
}

fn of_sizes(name: &str, cells: &[&CellRecord], model: Option<&[StackModel; 3]>) -> Chart {
    let mut kinds: Vec<(usize, usize)> = cells.iter().map(|c| (c.threads, c.depth)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut table =
        Table::new(&["request", "#block", "#threads", "#depth", "#time", "#throughput", "#model"]);
    let mut series = Vec::new();
    let predicted = |which: usize, cell: &CellRecord| -> Option<f64> {
        let method = Method::ALL.iter().copied().find(|m| m.id() == cell.method)?;
        let state = [CacheState::Cold, CacheState::Warm, CacheState::Direct, CacheState::None]
            .into_iter()
            .find(|s| s.id() == cell.state)?;
        let plain = cell.threads == 1 && cell.depth == 1 && cell.direction == "read";
        model
            .filter(|_| plain && !name.contains('('))
            .and_then(|m| m[which].predict(method, state, cell.block_bytes))
            .map(|ledger| ledger.total_ns())
    };
    for (threads, depth) in &kinds {
        let mut of: Vec<&&CellRecord> =
            cells.iter().filter(|c| (c.threads, c.depth) == (*threads, *depth)).collect();
        of.sort_by_key(|c| c.block_bytes);
        let mut modelled =
            Series { name: "model".to_owned(), joined: true, modelled: true, dots: Vec::new() };
        let mut dots = Vec::new();
        for cell in of {
            let Some(time) = cell.time_per_request else { continue };
            let says = predicted(0, cell);
            table.row([
                cell.key.clone(),
                Bytes(cell.block_bytes).to_string(),
                threads.to_string(),
                depth.to_string(),
                written(&time),
                cell::throughput(cell),
                says.map_or_else(|| "-".to_owned(), units::time),
            ]);
            dots.push(Dot {
                x: cell.block_bytes as f64,
                y: time.value,
                ends: Some((time.low, time.high)),
                tip: format!("{}\n{}\n{}", cell.key, written(&time), cell::throughput(cell)),
            });
            if let Some(ns) = says {
                modelled.dots.push(Dot {
                    x: cell.block_bytes as f64,
                    y: ns,
                    ends: predicted(1, cell).zip(predicted(2, cell)),
                    tip: String::new(),
                });
            }
        }
        let name = match (threads, depth) {
            (1, 1) => "measured".to_owned(),
            (1, depth) => format!("depth {depth}"),
            (threads, 1) => format!("{threads} threads"),
            (threads, depth) => format!("{threads} threads, depth {depth}"),
        };
        series.push(Series { name, dots, joined: true, modelled: false });
        if modelled.dots.len() > 1 {
            series.push(modelled);
        }
    }
    let dots = || series.iter().filter(|s| !s.modelled).flat_map(|s| &s.dots);
    let ends = dots().map(|d| d.x).fold((f64::MAX, 0.0_f64), |(l, h), x| (l.min(x), h.max(x)));
    let grows = |x: f64| dots().find(|d| d.x == x).map(|d| d.y);
    let alt = match (grows(ends.0), grows(ends.1)) {
        (Some(small), Some(large)) => format!(
            "{name}: {} for {}, {} for {}",
            units::time(small),
            Bytes(ends.0 as u64),
            units::time(large),
            Bytes(ends.1 as u64)
        ),
        _ => name.to_owned(),
    };
    let frame = Frame {
        x: ("block size", Scale::Log2, &|v| Bytes(v as u64).to_string()),
        y: ("time of a request", Scale::Log10, &units::time),
        width: SMALL,
        height: 250.0,
        alt: &alt,
    };
    Chart { title: name.to_owned(), svg: lines::chart(&series, &frame), alt, table }
}

/// The fitted model with the values, the lower and the upper ends of its costs.
fn fitted(record: &Record) -> Option<[StackModel; 3]> {
    let layers = record.model.as_ref()?;
    let parts = record.model_parts.clone().unwrap_or_default();
    let of = |pick: &dyn Fn(&LayerCost) -> LayerCost| StackModel {
        schema: iowhy_core::model::MODEL_SCHEMA,
        name: String::new(),
        page_bytes: 4096,
        device_parallelism: 1.0,
        read_ahead_bytes: record.environment.read_ahead_bytes.unwrap_or(128 << 10),
        layers: Layer::ALL
            .into_iter()
            .filter_map(|layer| Some((layer, pick(layers.get(layer.id())?))))
            .collect(),
        parts: [ModelPart::Vfs, ModelPart::Insert]
            .into_iter()
            .filter_map(|part| Some((part, pick(parts.get(part.id())?))))
            .collect(),
    };
    Some([of(&|c| *c), of(&|c| LayerCost::exact(c.low)), of(&|c| LayerCost::exact(c.high))])
}

/// Ways of reading against `pread`.
fn ways(record: &Record) -> Section {
    if record.ways.is_empty() {
        return Section::default();
    }
    let rows: Vec<Row> = record
        .ways
        .iter()
        .map(|way| Row {
            label: format!(
                "{} {}{}",
                way.state,
                way.method,
                if way.delivers { "" } else { " (delivers nothing)" }
            ),
            value: way.time_ratio.map(|ratio| (ratio.value, ratio.low, ratio.high)),
            words: way.time_ratio.map_or_else(|| "the yardstick".to_owned(), |r| written(&r)),
            colour: usize::from(way.state != "warm"),
            tip: format!("{} {}: {}", way.state, way.method, written(&way.time_per_request)),
        })
        .collect();
    let mut table =
        Table::new(&["state", "way", "#time of a request", "#time over pread", "#CPU over pread"]);
    for way in &record.ways {
        let ratio = |r: &Option<_>| r.as_ref().map_or_else(|| "-".to_owned(), written);
        table.row([
            way.state.clone(),
            way.method.clone(),
            written(&way.time_per_request),
            ratio(&way.time_ratio),
            ratio(&way.cpu_ratio),
        ]);
    }
    let best = record
        .ways
        .iter()
        .filter(|way| way.delivers)
        .filter_map(|way| Some((way, way.time_ratio?)))
        .min_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let alt = best.map_or_else(String::new, |(way, ratio)| {
        format!(
            "time per byte over that of `pread`; the least has {} {}: {}",
            way.state,
            way.method,
            written(&ratio)
        )
    });
    let svg = dots::chart(&rows, 1.0, &|v| format!("{v}"), WIDE, &alt);
    let chart = Chart {
        title: "Time per byte over that of `pread`, paired within rounds".to_owned(),
        alt,
        svg,
        table,
    };
    Section::new("Ways of reading", vec![Part::Chart(chart)])
}

fn latencies(shown: &[(String, &CellRecord)]) -> Section {
    let charts: Vec<Chart> = shown
        .iter()
        .filter(|(_, cell)| cell.latency_ns.n > 0)
        .take(MOST_HISTOGRAMS)
        .map(|(label, cell)| latency(label, cell))
        .collect();
    if charts.is_empty() {
        return Section::default();
    }
    Section::new("Latency of every request", vec![Part::Charts(charts)])
}

fn latency(label: &str, cell: &CellRecord) -> Chart {
    let l = &cell.latency_ns;
    let mut marks = vec![(l.p50 as f64, format!("p50 {}", units::time(l.p50 as f64)))];
    marks.push((l.p99 as f64, format!("p99 {}", units::time(l.p99 as f64))));
    if let Some(p) = l.p99_9 {
        marks.push((p as f64, format!("p99.9 {}", units::time(p as f64))));
    }
    let buckets: Vec<(u64, u64, u64)> =
        l.histogram.buckets().map(|b| (b.low_ns, b.high_ns, b.count)).collect();
    let mut table = Table::new(&["latency", "#requests"]);
    // Joined by equal steps of the logarithm: the widest histogram keeps its shape.
    let (low, high) = (l.histogram.min_ns().max(1) as f64, l.max.max(2) as f64 + 1.0);
    let step = ((high / low).ln() / MOST_CLASSES as f64).max(0.01);
    let mut classes: Vec<Class> = Vec::new();
    for (from, to, count) in buckets {
        let index = |ns: u64| (((ns.max(1) as f64 / low).ln() / step).floor()).max(0.0);
        let start = low * (index(from) * step).exp();
        let end = (low * ((index(from) + 1.0) * step).exp()).max(to as f64);
        match classes.last_mut() {
            Some(last) if (last.low - start).abs() < start * 1e-9 || last.high > from as f64 => {
                last.count = last.count.saturating_add(count);
                last.high = last.high.max(to as f64);
            }
            _ => classes.push(Class { low: start, high: end, count, tip: String::new() }),
        }
    }
    for class in &mut classes {
        let share = class.count as f64 / l.n as f64 * 100.0;
        class.tip = format!(
            "{} to {}\n{}, {share:.2} %",
            units::time(class.low),
            units::time(class.high),
            units::counted(class.count, "request", "requests")
        );
        table.row([
            format!("{} to {}", units::time(class.low), units::time(class.high)),
            units::count(class.count),
        ]);
    }
    let alt = format!(
        "{}: {}, greatest {}",
        units::counted(l.n, "request", "requests"),
        marks.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", "),
        units::time(l.max as f64)
    );
    let svg = histogram::chart(&classes, &marks, &units::time, (SMALL, 170.0), &alt);
    Chart { title: label.to_owned(), alt, svg, table }
}

/// Latency over time where the rounds kept theirs; else the rounds' means.
fn over_time(shown: &[(String, &CellRecord)]) -> Section {
    let charts: Vec<Chart> = shown
        .iter()
        .filter(|(_, cell)| cell.samples.len() >= 3)
        .take(MOST_HISTOGRAMS)
        .map(|(label, cell)| rounds(label, cell))
        .collect();
    if charts.is_empty() {
        return Section::default();
    }
    let note = "A column is a round; rounds of different requests took turns, so that a disturbance shows in all of them.";
    Section::new("Latency over time", vec![Part::Note(note.to_owned()), Part::Charts(charts)])
}

fn rounds(label: &str, cell: &CellRecord) -> Chart {
    let mut table = Table::new(&["#round", "#begins after", "#requests", "#time of a request"]);
    let mut fields = Vec::new();
    for (column, sample) in cell.samples.iter().enumerate() {
        table.row([
            sample.round.to_string(),
            units::time(sample.start_ns as f64),
            units::count(sample.requests),
            units::time(sample.ns_per_request()),
        ]);
        let begins = units::time(sample.start_ns as f64);
        let seen = units::total(sample.latency_quarters.iter().map(|class| class.1));
        for &(low_ns, count) in &sample.latency_quarters {
            let (_, high_ns) = quarter(low_ns);
            let share = count as f64 / seen.max(1) as f64;
            fields.push(Field {
                column,
                low: low_ns.max(1) as f64,
                high: high_ns.max(2) as f64,
                share,
                tip: format!(
                    "round {} (after {begins})\n{} to {}\n{}, {:.1} %",
                    sample.round,
                    units::time(low_ns as f64),
                    units::time(high_ns as f64),
                    units::counted(count, "request", "requests"),
                    share * 100.0
                ),
            });
        }
        if sample.latency_quarters.is_empty() {
            let ns = sample.ns_per_request().max(1.0);
            fields.push(Field {
                column,
                low: ns * 0.97,
                high: ns * 1.03,
                share: 1.0,
                tip: format!("round {} (after {begins})\nmean {}", sample.round, units::time(ns)),
            });
        }
    }
    let mut times: Vec<f64> = cell.samples.iter().map(|s| s.ns_per_request()).collect();
    times.sort_by(f64::total_cmp);
    let alt = format!(
        "means of {} rounds: {} to {}",
        times.len(),
        units::time(times.first().copied().unwrap_or(0.0)),
        units::time(times.last().copied().unwrap_or(0.0))
    );
    let svg =
        heat::chart(&fields, cell.samples.len(), &units::time, (SMALL, 170.0), ("rounds, in order", &alt));
    Chart { title: label.to_owned(), alt, svg, table }
}

/// What a reader must know of single cells.
fn doubts(record: &Record, shown: &[(String, &CellRecord)]) -> Section {
    let mut items = Vec::new();
    for (label, cell) in shown {
        if let Some(failure) = &cell.failure {
            items.push(format!("{label}: failed: {failure}"));
        }
        if cell.verdict == "mislabelled" || cell.verdict == "inconclusive" {
            items.push(format!("{label}: {}", cell.bytes_verdict));
        }
        items.extend(cell.dropped.iter().map(|dropped| format!("{label}: the kernel refused {dropped}")));
    }
    items.extend(record.model_notes.iter().cloned());
    items.retain(|item| !item.trim().is_empty());
    items.dedup();
    if items.is_empty() { Section::default() } else { Section::new("Doubts", vec![Part::List(items)]) }
}

fn model(record: &Record) -> Section {
    let Some(layers) = &record.model else { return Section::default() };
    let mut table = Table::new(&["layer", "#ns a call", "#ns a page", "#ns a byte"]);
    let cost = |value: f64, low: f64, high: f64| {
        if value == 0.0 && low == 0.0 && high == 0.0 {
            "-".to_owned()
        } else {
            let e = Estimate { value, low, high, unit: Unit::Ratio, n: u64::from(record.rounds) };
            units::factor(&e)
        }
    };
    let of = |(name, c): (&String, &LayerCost)| {
        [
            name.clone(),
            cost(c.cost.per_call_ns, c.low.per_call_ns, c.high.per_call_ns),
            cost(c.cost.per_page_ns, c.low.per_page_ns, c.high.per_page_ns),
            cost(c.cost.per_byte_ns, c.low.per_byte_ns, c.high.per_byte_ns),
        ]
    };
    layers.iter().chain(record.model_parts.iter().flatten()).for_each(|entry| table.row(of(entry)));
    let mut parts = vec![
        Part::Note(format!("Fitted over {} rounds; 95 % intervals over rounds.", record.rounds)),
        Part::Table(table),
    ];
    if !record.held_out.is_empty() {
        let mut held = Table::new(&["rung", "#block", "#predicted", "#measured", "#error"]);
        for row in &record.held_out {
            held.row([
                row.rung.clone(),
                Bytes(row.block_bytes).to_string(),
                units::time(row.predicted_ns),
                written(&row.measured),
                units::signed_per_cent(row.error_percent, 0),
            ]);
        }
        parts.push(Part::Note("Block sizes that the fit had not seen:".to_owned()));
        parts.push(Part::Table(held));
    }
    Section::new("Fitted costs", parts)
}
