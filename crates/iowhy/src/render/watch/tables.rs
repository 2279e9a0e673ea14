//! The tables: operations with the layers they spent their time in, the anatomy of syncs, callers.

use iowhy_core::layer::Layer;
use iowhy_diagnose::classify::Operation;

use super::seconds;
use super::words::{arm, count, estimated, percent_of, share, visible};
use crate::record::watch::{CallSite, LayerShare, OperationRecord, WatchRecord};
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{cut, wrap};

/// Operations that are shown.
const MOST_OPERATIONS: usize = 6;
/// Layers that are named per operation.
const MOST_LAYERS: usize = 4;
/// Callers that are shown.
const MOST_CALL_SITES: usize = 4;
/// A caller below this share of the thread time is not shown.
const CALLER_MATTERS: f64 = 0.02;
/// Nor are any, if together they stand for less than this.
const CALLERS_MATTER: f64 = 0.1;
/// A layer's part of an operation that is known no better than this is not given as a number.
const VAGUE: f64 = 0.25;
/// Syncs below this share of the thread time need no anatomy.
const SYNCS_MATTER: f64 = 0.05;

/// What the program asked for, and in which layers that time went.
pub(super) fn operations(record: &WatchRecord, width: usize) -> String {
    let shown: Vec<&OperationRecord> =
        record.operations.iter().filter(|o| visible(o.share)).take(MOST_OPERATIONS).collect();
    if shown.is_empty() {
        return String::new();
    }
    let rows = |layers: usize, with_calls: bool| -> String {
        let mut columns = vec![("operation", Align::Left), ("time", Align::Right), ("share", Align::Right)];
        columns.extend(with_calls.then_some(("calls", Align::Right)));
        columns.push(("where", Align::Left));
        let row = |o: &&OperationRecord| {
            let mut row = vec![label_of(o).to_owned(), seconds(o.seconds), share(*o)];
            row.extend(with_calls.then(|| calls(o)));
            row.push(places(o, layers));
            row
        };
        let (header, align): (Vec<&str>, Vec<Align>) = columns.into_iter().unzip();
        layout(&header, &align, &shown.iter().map(row).collect::<Vec<_>>())
    };
    let any_calls = shown.iter().any(|o| o.calls.is_some());
    let fits = |text: &String| text.lines().all(|line| visible_width(line) <= width);
    // On a narrow terminal the lesser layers give way first, then the calls.
    let shapes = (1..=MOST_LAYERS).rev().map(|n| (n, any_calls)).chain([(2, false), (1, false), (0, false)]);
    let mut tables = shapes.map(|(layers, with_calls)| rows(layers, with_calls));
    let table = tables.find(fits).unwrap_or_else(|| rows(0, false));
    format!("{table}\n")
}

/// Calls: counted, or estimated from bursts with their interval.
fn calls(operation: &OperationRecord) -> String {
    match (operation.calls, operation.calls_interval) {
        (Some(n), Some((low, high))) if low == high => count(n),
        (Some(n), Some((low, high))) if n > 0 => estimated(n, low, high),
        _ => String::new(),
    }
}

/// The layers of an operation, most first, in per cent of its own time. What may as well be nothing is left out.
fn places(operation: &OperationRecord, most: usize) -> String {
    if operation.id == Operation::Interrupt.id() {
        return "the machine's work, not the program's".to_owned();
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
    named.truncate(most);
    named.join(", ")
}

/// What making data durable consists of, where it matters.
pub(super) fn syncs(record: &WatchRecord, width: usize) -> String {
    let Some(sync) = record.operations.iter().find(|o| o.id == "sync" && o.share >= SYNCS_MATTER) else {
        return String::new();
    };
    let part = |seconds: f64| percent_of(if sync.seconds > 0.0 { seconds / sync.seconds } else { 0.0 });
    let busy: f64 = sync.layers.iter().map(|l| l.busy_s).sum();
    let mut parts: Vec<String> = sync
        .waits
        .iter()
        .filter(|wait| visible(wait.seconds / sync.seconds))
        .map(|wait| format!("{} {}", wait.words, part(wait.seconds)))
        .collect();
    let queued: f64 = sync.layers.iter().filter(|l| l.id == Layer::CpuQueue).map(|l| l.wait_s).sum();
    for (words, seconds) in [("CPU time", busy), ("no CPU free", queued)] {
        if visible(seconds / sync.seconds) {
            parts.push(format!("{words} {}", part(seconds)));
        }
    }
    let mut text = wrap(&format!("A sync is: {}", parts.join(", ")), width, "", "  ");
    text.push('\n');
    text
}

/// Functions of the program by the time they asked for, where the functions found say where a good part of it was
/// asked for.
pub(super) fn call_sites(record: &WatchRecord, width: usize) -> String {
    // A function without a name tells nothing.
    let named = |s: &&CallSite| !s.function.starts_with(['[', '0']);
    let shown: Vec<&CallSite> = record
        .call_sites
        .iter()
        .filter(|s| named(s) && s.share >= CALLER_MATTERS)
        .take(MOST_CALL_SITES)
        .collect();
    if shown.iter().map(|s| s.share).sum::<f64>() < CALLERS_MATTER {
        return String::new();
    }
    let threads = shown.iter().any(|s| s.thread != shown[0].thread);
    let rows = |room: usize| -> String {
        let mut columns = vec![("caller", Align::Left)];
        columns.extend(threads.then_some(("thread", Align::Left)));
        columns.extend([("operation", Align::Left), ("time", Align::Right), ("share", Align::Right)]);
        let row = |s: &&CallSite| {
            let object = s.object.as_deref().map(|o| o.rsplit('/').next().unwrap_or(o)).unwrap_or_default();
            let name =
                if object.is_empty() { s.function.clone() } else { format!("{} ({object})", s.function) };
            let mut row = vec![cut(&name, room)];
            row.extend(threads.then(|| cut(&s.thread, 16)));
            row.extend([s.operation.clone(), seconds(s.seconds), share(*s)]);
            row
        };
        let (header, align): (Vec<&str>, Vec<Align>) = columns.into_iter().unzip();
        layout(&header, &align, &shown.iter().map(row).collect::<Vec<_>>())
    };
    format!("{}\n", narrowed(&rows, width))
}

/// An operation's identifier, which is its word in every output. Time without a CPU that no system call is known for began when the thread was put off it.
fn label_of(operation: &OperationRecord) -> &str {
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

/// A table whose first column gives way until its lines fit.
pub(super) fn narrowed(rows: &dyn Fn(usize) -> String, width: usize) -> String {
    const LEAST: usize = 8;
    let widest = |text: &str| text.lines().map(visible_width).max().unwrap_or(0);
    let mut room = width;
    loop {
        let table = rows(room);
        let over = widest(&table).saturating_sub(width);
        if over == 0 {
            return table;
        }
        if room <= LEAST {
            // Nothing more to give: lines are cut as a last resort.
            return table.lines().map(|line| format!("{}\n", cut(line, width))).collect();
        }
        // The column may be narrower than its room: start from what it can take at most.
        room = room.min(width).saturating_sub(over.min(room - LEAST).max(1)).max(LEAST);
    }
}
