//! Charts of a page: time against block size, methods, histograms of latency, latency over time.

use iowhy_core::histogram::quarter;
use iowhy_core::layer::Layer;
use iowhy_core::model::{LayerCost, Part as ModelPart, StackModel};
use iowhy_core::units::{self, Bytes};
use iowhy_core::workload::{CacheState, Method};
use iowhy_view::document::{Chart, Detail, Part, Section, Table};
use iowhy_view::svg::dots::{self, Row};
use iowhy_view::svg::heat::{self, Field};
use iowhy_view::svg::histogram::{self, Class};
use iowhy_view::svg::lines::{self, Dot, Frame, Series};
use iowhy_view::svg::{SMALL, Scale, WIDE};

use super::{Named, cell};
use crate::record::{CellRecord, MethodRecord, Record};
use crate::screen::figures::written;

/// Cells whose histograms are drawn.
const MAX_HISTOGRAMS: usize = 12;
/// Classes of a histogram; adjacent ones are joined until there are no more.
const MAX_CLASSES: usize = 90;

/// Time against block size: a small chart for each method, state and pattern that was measured at three sizes or more.
pub(super) fn sizes(record: &Record) -> Section {
    let mut groups: Vec<(String, Vec<&CellRecord>)> = Vec::new();
    for cell in record.cells.iter().filter(|cell| cell.time_per_request.is_some()) {
        let many = if record.targets.len() > 1 { format!("{} ", cell.target) } else { String::new() };
        // Calibration cells read other targets, which only their key names.
        let device = cell.key.split_once('-').map_or("", |(device, _)| match device {
            "memory" | "dev" => device,
            _ => "",
        });
        let device = if device.is_empty() { String::new() } else { format!(" ({device})") };
        let state = if cell.method == cell.state { String::new() } else { format!(" {}", cell.state) };
        let name = format!("{many}{}{state}, {} {}{device}", cell.method, cell.pattern, cell.direction);
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
    let model = model.filter(|_| !name.contains('('));
    let mut table = Table::new(["request", "#block", "#threads", "#depth", "#time", "#throughput", "#model"]);
    let mut series = Vec::new();
    for (threads, depth) in &kinds {
        let mut of: Vec<&&CellRecord> =
            cells.iter().filter(|c| (c.threads, c.depth) == (*threads, *depth)).collect();
        of.sort_by_key(|c| c.block_bytes);
        let mut modelled =
            Series { name: "model".to_owned(), joined: true, modelled: true, dots: Vec::new() };
        let mut dots = Vec::new();
        for cell in of {
            let Some(time) = cell.time_per_request else { continue };
            let ends = model.map(|model| model.each_ref().map(|model| predicted(model, cell)));
            let [says, low, high] = ends.unwrap_or_default();
            table.row([
                cell.key.clone(),
                Bytes(cell.block_bytes).to_string(),
                threads.to_string(),
                depth.to_string(),
                written(&time),
                cell::throughput(cell, Detail::Page),
                says.map_or_else(|| "-".to_owned(), units::time),
            ]);
            let x = cell.block_bytes as f64;
            let tip = format!("{}\n{}\n{}", cell.key, written(&time), cell::throughput(cell, Detail::Page));
            dots.push(Dot { x, y: time.value, ends: Some((time.low, time.high)), tip });
            if let Some(y) = says {
                modelled.dots.push(Dot { x, y, ends: low.zip(high), tip: String::new() });
            }
        }
        series.push(Series { name: named(*threads, *depth), dots, joined: true, modelled: false });
        if modelled.dots.len() > 1 {
            series.push(modelled);
        }
    }
    let alt = in_words(name, &series);
    let frame = Frame {
        x: ("block size", Scale::Log2, &|v| Bytes(v as u64).to_string()),
        y: ("time of a request", Scale::Log10, &units::time),
        width: SMALL,
        height: 250.0,
        alt: &alt,
    };
    Chart { title: name.to_owned(), svg: lines::chart(&series, &frame), alt, table }
}

/// The time of a cell by the model, which knows single reads.
fn predicted(model: &StackModel, cell: &CellRecord) -> Option<f64> {
    let method = Method::ALL.iter().copied().find(|m| m.id() == cell.method)?;
    let state = [CacheState::Cold, CacheState::Warm, CacheState::Direct, CacheState::None]
        .into_iter()
        .find(|s| s.id() == cell.state)?;
    if cell.threads != 1 || cell.depth != 1 || cell.direction != "read" {
        return None;
    }
    model.predict(method, state, cell.block_bytes).map(|ledger| ledger.total_ns())
}

fn named(threads: usize, depth: usize) -> String {
    match (threads, depth) {
        (1, 1) => "measured".to_owned(),
        (1, depth) => format!("depth {depth}"),
        (threads, 1) => format!("{threads} threads"),
        (threads, depth) => format!("{threads} threads, depth {depth}"),
    }
}

/// The measured times of the smallest and the largest blocks, for readers who do not see the chart.
fn in_words(name: &str, series: &[Series]) -> String {
    let dots = || series.iter().filter(|s| !s.modelled).flat_map(|s| &s.dots);
    let ends = dots().map(|d| d.x).fold((f64::MAX, 0.0_f64), |(l, h), x| (l.min(x), h.max(x)));
    let grows = |x: f64| dots().find(|d| d.x == x).map(|d| d.y);
    match (grows(ends.0), grows(ends.1)) {
        (Some(small), Some(large)) => format!(
            "{name}: {} for {}, {} for {}",
            units::time(small),
            Bytes(ends.0 as u64),
            units::time(large),
            Bytes(ends.1 as u64)
        ),
        _ => name.to_owned(),
    }
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

/// Methods relative to `pread`.
pub(super) fn methods(methods: &[&MethodRecord], table: Table) -> Chart {
    let row = |method: &&MethodRecord| Row {
        label: format!("{}{}", method.method, if method.delivers { "" } else { " (delivers nothing)" }),
        value: method.time_over_pread.map(|ratio| (ratio.value, ratio.low, ratio.high)),
        words: method.time_over_pread.map_or_else(|| "the baseline".to_owned(), |r| written(&r)),
        colour: usize::from(method.state != "warm"),
        tip: format!("{} {}: {}", method.state, method.method, written(&method.time_per_request)),
    };
    let rows: Vec<Row> = methods.iter().map(row).collect();
    let delivering = methods.iter().filter(|method| method.delivers);
    let best = delivering
        .filter_map(|method| Some((method, method.time_over_pread?)))
        .min_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let alt = best.map_or_else(String::new, |(method, ratio)| {
        format!("fastest: {} at {} of the time of `pread`", method.method, written(&ratio))
    });
    let svg = dots::chart(&rows, 1.0, &|v| format!("{v}"), WIDE, &alt);
    Chart { title: "Time per byte over that of `pread`, paired within rounds".to_owned(), alt, svg, table }
}

pub(super) fn latencies(shown: &Named<'_>) -> Section {
    let charts: Vec<Chart> = shown
        .iter()
        .filter(|(_, cell)| cell.latency_ns.n > 0)
        .take(MAX_HISTOGRAMS)
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
    let mut table = Table::new(["latency", "#requests"]);
    // Joined by equal steps of the logarithm: the widest histogram keeps its shape.
    let (low, high) = (l.histogram.min_ns().max(1) as f64, l.max.max(2) as f64 + 1.0);
    let step = ((high / low).ln() / MAX_CLASSES as f64).max(0.01);
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
pub(super) fn over_time(shown: &Named<'_>) -> Section {
    let charts: Vec<Chart> = shown
        .iter()
        .filter(|(_, cell)| cell.samples.len() >= 3)
        .take(MAX_HISTOGRAMS)
        .map(|(label, cell)| rounds(label, cell))
        .collect();
    if charts.is_empty() {
        return Section::default();
    }
    let note = "A column is a round; rounds of different requests took turns, so that a disturbance shows in all of them.";
    Section::new("Latency over time", vec![Part::Note(note.to_owned()), Part::Charts(charts)])
}

fn rounds(label: &str, cell: &CellRecord) -> Chart {
    let mut table = Table::new(["#round", "#begins after", "#requests", "#time of a request"]);
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
