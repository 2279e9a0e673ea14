//! Charts of a profiled program: layers as bars, the wall clock as a flame graph; and the devices.

use iowhy_core::layer::Layer;
use iowhy_core::profile::StackTime;
use iowhy_core::units;
use iowhy_view::document::{Chart, Part, Section, Table};
use iowhy_view::piece::Piece;
use iowhy_view::svg::WIDE;
use iowhy_view::svg::bars::{self, Bar};
use iowhy_view::svg::flame::{self, Node};

use super::{on_wall, percent_of, seconds, share};
use crate::analyzer::Analyzer;
use crate::flamegraph::waiting;
use crate::record::watch::{LayerShare, OperationRecord, WatchRecord};
use crate::screen::figures::{OnTheClock, bytes};

/// Innermost frames that are listed; the record holds all.
const MAX_ROWS: usize = 25;
/// Operations below this share have no bar.
const BAR_MATTERS: f64 = 0.005;

fn piece(layer: &LayerShare, whole_s: f64, whole: &str) -> Piece {
    let tip = format!(
        "{}\n{} of {whole}\nthread time: busy {}, waiting {}",
        layer.id.id(),
        share(&layer.of_wall(whole_s)),
        seconds(layer.busy_s),
        seconds(layer.wait_s)
    );
    Piece::for_layer(layer.id, layer.wall_s, tip)
}

pub(super) fn layers(record: &WatchRecord) -> Section {
    if record.layers.is_empty() {
        return Section::default();
    }
    let mut bars = vec![Bar {
        label: "whole run".to_owned(),
        whole: seconds(record.wall_s),
        pieces: record.layers.iter().map(|l| piece(l, record.wall_s, "the wall time")).collect(),
    }];
    let mut table =
        Table::new(["operation", "layer", "#wall time", "#share", "#busy threads", "#waiting threads"]);
    let mut rows = |of: &str, whole_s: f64, layers: &[LayerShare]| {
        for layer in layers {
            table.row([
                of.to_owned(),
                layer.id.id().to_owned(),
                seconds(layer.wall_s),
                share(&layer.of_wall(whole_s)),
                seconds(layer.busy_s),
                seconds(layer.wait_s),
            ]);
        }
    };
    rows("whole run", record.wall_s, &record.layers);
    let part = |o: &OperationRecord| o.of_wall(record.wall_s).value();
    for operation in record.operations.iter().filter(|o| part(o) >= BAR_MATTERS) {
        bars.push(Bar {
            label: operation.id.clone(),
            whole: format!("{} ({})", seconds(operation.wall_s), percent_of(part(operation))),
            pieces: operation.layers.iter().map(|l| piece(l, operation.wall_s, "this operation")).collect(),
        });
        rows(&operation.id, operation.wall_s, &operation.layers);
    }
    let mut most: Vec<&LayerShare> = record.layers.iter().collect();
    most.sort_by(|a, b| b.wall_s.total_cmp(&a.wall_s));
    let alt = most
        .iter()
        .take(3)
        .map(|layer| format!("`{}` {}", layer.id.id(), on_wall(record, *layer)))
        .collect::<Vec<_>>()
        .join(", ");
    let alt = format!("most of the wall time: {alt}");
    let svg = bars::chart(&bars, WIDE, &alt);
    let chart = Chart { title: "Wall time by layer and operation".to_owned(), alt, svg, table };
    Section::new("Where the time went", vec![Part::Chart(chart)])
}

/// The wall clock as a flame graph: each instant shared among the threads that were active in it.
pub(super) fn wall_clock(record: &WatchRecord) -> Section {
    let profile = &record.profile;
    if profile.stacks.is_empty() || profile.wall_ns == 0 {
        return Section::default();
    }
    let analyzer = Analyzer::new();
    let meaning = analyzer.meanings(profile);
    let mut root = Node::default();
    let mut table: Vec<(String, f64)> = Vec::new();
    for stack in profile.stacks.iter().filter(|stack| stack.wall_ns > 0.0) {
        let class = meaning(stack);
        let mut frames = frames(record, stack);
        frames.extend(waiting(stack.state, class.wait));
        let leaf = frames.last().cloned().unwrap_or_default();
        match table.iter_mut().find(|(name, _)| *name == leaf) {
            Some((_, ns)) => *ns += stack.wall_ns,
            None => table.push((leaf, stack.wall_ns)),
        }
        root.add(&frames, class.layer.id(), stack.wall_ns);
    }
    if profile.idle_wall_ns > 0.0 {
        let idle = "idle: no thread active on the I/O path".to_owned();
        root.add(std::slice::from_ref(&idle), Layer::Elsewhere.id(), profile.idle_wall_ns);
        table.push((idle, profile.idle_wall_ns));
    }
    table.sort_by(|a, b| b.1.total_cmp(&a.1));
    let whole = profile.wall_ns as f64;
    let mut leaves = Table::new(["innermost frame", "#wall time", "#share"]);
    for (name, ns) in table.iter().take(MAX_ROWS) {
        leaves.row([name.clone(), units::time(*ns), percent_of(ns / whole)]);
    }
    let alt = table.first().map_or_else(String::new, |(name, ns)| {
        format!("most of the wall clock ends in `{name}`: {}", percent_of(ns / whole))
    });
    let svg = flame::chart(&root, "wall clock", &units::time, &alt);
    let title =
        "Callers above, callees below; a colour is a layer; click a frame to widen it, Escape to go back";
    Section::new(
        "The wall clock as a flame graph",
        vec![Part::Chart(Chart { title: title.to_owned(), alt, svg, table: leaves })],
    )
}

fn frames(record: &WatchRecord, stack: &StackTime) -> Vec<String> {
    let profile = &record.profile;
    let thread = profile.threads.get(stack.thread as usize).map_or("", |t| t.name.as_str());
    let name = |id: &u32| {
        let name = profile.symbols.get(*id as usize).map_or("", |s| s.name.as_str());
        if name.is_empty() { "[unknown]".to_owned() } else { name.to_owned() }
    };
    let mut frames = vec![if thread.is_empty() { "[no name]".to_owned() } else { thread.to_owned() }];
    frames.extend(stack.user.iter().rev().map(name));
    frames.extend(stack.kernel.iter().rev().map(name));
    if !stack.known {
        frames.push("[stack not seen]".to_owned());
    }
    frames
}

pub(super) fn devices(record: &WatchRecord) -> Section {
    let mut table =
        Table::new(["device", "#busy", "#read", "#reads", "#written", "#writes", "#flushes", "throttle"]);
    for d in &record.devices {
        let busy = d.busy_ns as f64 / 1e9 / record.wall_s.max(1e-9);
        table.row([
            d.name.clone(),
            percent_of(busy.min(1.0)),
            bytes(d.read_bytes),
            units::count(d.reads),
            bytes(d.written_bytes),
            units::count(d.writes),
            units::count(d.flushes),
            d.throttle.clone().unwrap_or_default(),
        ]);
    }
    if table.rows.is_empty() {
        return Section::default();
    }
    let note = Part::Note("Requests of all processes of the machine.".to_owned());
    Section::new("Devices", vec![Part::Table(table), note])
}
