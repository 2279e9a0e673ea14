//! Operations with the layers of their time, the parts of a sync, and callers.

use iowhy_core::layer::Layer;
use iowhy_diagnose::classify::Operation;

use iowhy_view::document::{Cell, Cut, Detail, Part, Shape, Table};
use iowhy_view::terminal::wrap::cut;

use super::{percent_of, seconds, share, visible};
use crate::record::watch::{CallSite, LayerShare, OperationRecord, WatchRecord};
use crate::screen::figures::{arm, count};

/// Operations that are shown.
const MAX_OPERATIONS: usize = 6;
/// Layers that are named per operation.
const MAX_LAYERS: usize = 4;
/// Callers on a screen.
const MAX_CALL_SITES: usize = 4;
/// Callers on a page.
const MAX_ROWS: usize = 25;
/// A caller below this share of the thread time is not shown.
const CALLER_MATTERS: f64 = 0.02;
/// Nor are any, if together they stand for less than this.
const CALLERS_MATTER: f64 = 0.1;
/// A layer's part of an operation that is known no better than this is not given as a number.
const VAGUE: f64 = 0.25;
/// Syncs below this share of the thread time need no anatomy.
const SYNCS_MATTER: f64 = 0.05;

/// Time by operation, and in which layers it went.
pub(super) fn operations(record: &WatchRecord, detail: Detail) -> Vec<Part> {
    let shown = record.operations.iter().filter(|o| detail.is_page() || visible(o.share));
    let shown: Vec<&OperationRecord> = shown.take(detail.rows(MAX_OPERATIONS, usize::MAX)).collect();
    let mut table = Table::new(["operation", "#time", "#share", "#calls", "layers", "waits"]);
    for o in shown {
        let waits = o.waits.iter().filter(|w| detail.is_page() && w.time_s > 0.0).take(3);
        let waits: Vec<String> = waits.map(|w| format!("{} {}", w.words, seconds(w.time_s))).collect();
        table.row([
            Cell::from(label(o)),
            seconds(o.time_s).into(),
            share(o).into(),
            o.calls.map(count).unwrap_or_default().into(),
            Cell::Items(places(o)),
            waits.join(", ").into(),
        ]);
    }
    // On a narrow terminal the lesser layers give way first, then the calls.
    let shape = |items, without: &[&'static str]| Shape { bar: 0, items, without: without.to_vec() };
    let narrow = [(2, &["calls"][..]), (1, &["calls"]), (0, &["calls"])];
    table.shapes = (1..=MAX_LAYERS).rev().map(|items| shape(items, &[])).collect();
    table.shapes.extend(narrow.map(|(items, without)| shape(items, without)));
    table.without_empty_columns().part().into_iter().collect()
}

/// The layers of an operation, most first, in per cent of its own time. What may as well be nothing is left out.
fn places(operation: &OperationRecord) -> Vec<String> {
    if operation.id == Operation::Interrupt.id() {
        return vec!["system work, not the program's".to_owned()];
    }
    let mut layers: Vec<&LayerShare> = operation.layers.iter().collect();
    layers.sort_by(|a, b| b.share.total_cmp(&a.share));
    let known = |l: &LayerShare| visible(l.share) && arm(l) < VAGUE.min(l.share);
    let mut named = Vec::new();
    for (i, layer) in layers.iter().enumerate() {
        if known(layer) {
            named.push(format!("{} {}", layer.id.id(), share(*layer)));
        } else if i == 0 {
            // What most of it is must not give way to a lesser part that is known better.
            named.push(format!("mostly {}", layer.id.id()));
        }
    }
    named.truncate(MAX_LAYERS);
    named
}

/// What making data durable consists of, where it matters.
pub(super) fn syncs(record: &WatchRecord) -> Vec<Part> {
    let Some(sync) = record.operations.iter().find(|o| o.id == "sync" && o.share >= SYNCS_MATTER) else {
        return Vec::new();
    };
    let part = |seconds: f64| percent_of(if sync.time_s > 0.0 { seconds / sync.time_s } else { 0.0 });
    let busy: f64 = sync.layers.iter().map(|l| l.busy_s).sum();
    let mut parts: Vec<String> = sync
        .waits
        .iter()
        .filter(|wait| visible(wait.time_s / sync.time_s))
        .map(|wait| format!("{} {}", wait.words, part(wait.time_s)))
        .collect();
    let queued: f64 = sync.layers.iter().filter(|l| l.id == Layer::CpuQueue).map(|l| l.wait_s).sum();
    for (words, seconds) in [("CPU time", busy), ("no CPU free", queued)] {
        if visible(seconds / sync.time_s) {
            parts.push(format!("{words} {}", part(seconds)));
        }
    }
    vec![Part::Text(format!("Time of a sync: {}", parts.join(", ")))]
}

/// Functions of the program by the time of their calls, where they account for a good part of it.
pub(super) fn call_sites(record: &WatchRecord, detail: Detail) -> Vec<Part> {
    // A function without a name tells nothing.
    let named = |s: &&CallSite| !s.function.starts_with(['[', '0']) && s.share >= CALLER_MATTERS;
    let shown = record.call_sites.iter().filter(|s| detail.is_page() || named(s));
    let shown: Vec<&CallSite> = shown.take(detail.rows(MAX_CALL_SITES, MAX_ROWS)).collect();
    if !detail.is_page() && shown.iter().map(|s| s.share).sum::<f64>() < CALLERS_MATTER {
        return Vec::new();
    }
    let threads = shown.iter().any(|s| s.thread != shown[0].thread);
    let mut table = Table::new(["caller", "thread", "operation", "#time", "#share"]);
    for s in shown {
        let object = s.object.as_deref().map(|o| o.rsplit('/').next().unwrap_or(o)).unwrap_or_default();
        let name = if object.is_empty() { s.function.clone() } else { format!("{} ({object})", s.function) };
        let thread = if threads { cut(&s.thread, 16) } else { String::new() };
        table.row([name, thread, s.operation.clone(), seconds(s.time_s), share(s)]);
    }
    table.cut = Some(Cut::End);
    table.without_empty_columns().part().into_iter().collect()
}

/// An operation's identifier, which is its word in every output. Time without a CPU that no system call is known for began when the thread was put off it.
fn label(operation: &OperationRecord) -> &str {
    const NEARLY_ALL: f64 = 0.9;
    let queued: f64 = operation.layers.iter().filter(|l| l.id == Layer::CpuQueue).map(|l| l.share).sum();
    if operation.id == Operation::Unknown.id() && queued >= NEARLY_ALL {
        return "preempted";
    }
    if operation.id == Operation::User.id() && queued >= 0.5 {
        // Most of it the program did not compute: it waited for a CPU on which it could have gone on.
        return "user, queued";
    }
    &operation.id
}
