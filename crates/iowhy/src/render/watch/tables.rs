//! The tables: operations with the layers they spent their time in, the anatomy of syncs, files, callers.

use std::fmt::Write as _;

use super::words::{bytes, count, cut, cut_path, percent_of, share, visible, wrap};
use super::{DIM, seconds};
use crate::record::watch::{LayerShare, OperationRecord, WatchRecord};
use crate::render::table::{Align, layout, visible_width};

/// Operations that are shown.
const MOST_OPERATIONS: usize = 6;
/// Layers that are named per operation.
const MOST_LAYERS: usize = 4;
/// Files that are shown.
const MOST_FILES: usize = 4;
/// Callers that are shown.
const MOST_CALL_SITES: usize = 4;
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
            let mut row = vec![o.id.clone(), seconds(o.seconds), share(*o)];
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

/// Calls: counted, or scaled from bursts with their interval.
fn calls(operation: &OperationRecord) -> String {
    match (operation.calls, operation.calls_interval) {
        (Some(n), Some((low, high))) if low == high => count(n),
        (Some(n), Some((low, high))) if n > 0 => {
            let arm = (n as f64 - low).max(high - n as f64) / n as f64 * 100.0;
            if arm <= 100.0 {
                format!("{} ±{:.0} %", count(n), arm.ceil())
            } else {
                // So few were seen that no single number is worth saying.
                format!("{} to {}", count(low.floor() as u64), count(high.ceil() as u64))
            }
        }
        _ => String::new(),
    }
}

/// The layers of an operation, most first, in per cent of its own time.
fn places(operation: &OperationRecord, most: usize) -> String {
    let time = |l: &LayerShare| l.busy_s + l.wait_s;
    let mut layers: Vec<&LayerShare> = operation.layers.iter().collect();
    layers.sort_by(|a, b| time(b).total_cmp(&time(a)));
    layers
        .iter()
        .filter(|l| visible(l.share))
        .take(most)
        .map(|l| format!("{} {}", l.id.id(), share(*l)))
        .collect::<Vec<_>>()
        .join(", ")
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
    parts.push(format!("CPU {}", part(busy)));
    let mut text = wrap(&format!("a sync is: {}", parts.join(", ")), width, "", "  ");
    text.push('\n');
    text
}

/// The files that moved most bytes, as far as they were seen.
pub(super) fn files(record: &WatchRecord, width: usize) -> String {
    let used = |f: &&iowhy_core::profile::FileUse| {
        f.reads.calls + f.writes.calls + f.syncs + f.opens > 0 || f.mapped
    };
    // Files with a name first: what the others were nobody can look up.
    let named = |f: &&iowhy_core::profile::FileUse| !matches!(f.path.as_str(), "?" | "others");
    let (names, rest): (Vec<_>, Vec<_>) = record.io.files.iter().filter(used).partition(named);
    let shown: Vec<_> = names.into_iter().chain(rest).take(MOST_FILES).collect();
    if shown.is_empty() {
        return String::new();
    }
    let direction = |a: &iowhy_core::profile::Access| {
        if a.calls == 0 { String::new() } else { format!("{} in {}", bytes(a.bytes), count(a.calls)) }
    };
    let rows = |room: usize| -> String {
        let row = |f: &&iowhy_core::profile::FileUse| {
            let cached = match (f.cached_before, f.cached_after) {
                (Some(before), Some(after)) => format!("{} > {}", percent_of(before), percent_of(after)),
                (None, Some(after)) => format!("? > {}", percent_of(after)),
                _ => String::new(),
            };
            vec![
                cut_path(&f.path, room),
                f.size_bytes.map(bytes).unwrap_or_default(),
                direction(&f.reads),
                direction(&f.writes),
                if f.syncs > 0 { count(f.syncs) } else { String::new() },
                cached,
            ]
        };
        let all: Vec<Vec<String>> = shown.iter().map(row).collect();
        let head = ["file", "size", "read in calls", "written in calls", "syncs", "cached"];
        // A column that nobody fills only takes room.
        let filled: Vec<usize> =
            (0..head.len()).filter(|c| all.iter().any(|row| !row[*c].is_empty())).collect();
        let header: Vec<&str> = filled.iter().map(|c| head[*c]).collect();
        let align: Vec<Align> =
            filled.iter().map(|c| if *c == 0 { Align::Left } else { Align::Right }).collect();
        let rows: Vec<Vec<String>> =
            all.iter().map(|row| filled.iter().map(|c| row[*c].clone()).collect()).collect();
        layout(&header, &align, &rows)
    };
    let mut text = narrowed(&rows, width);
    let others = record.io.files.iter().filter(used).count() - shown.len();
    let mut notes = Vec::new();
    if others > 0 {
        notes.push(format!("{} more files in the record (`--json FILE`)", count(others as u64)));
    }
    match &record.profile.calls {
        Some(calls) if !calls.complete => notes.push(format!(
            "calls as seen in {} of {} that were traced",
            seconds(calls.observed_ns as f64 / 1e9),
            seconds(record.wall_s)
        )),
        _ => {}
    }
    if !notes.is_empty() {
        for line in wrap(&notes.join("; "), width, "  ", "  ").lines() {
            let _ = writeln!(text, "{DIM}{line}{DIM:#}");
        }
    }
    text.push('\n');
    text
}

/// Functions of the program by the time they asked for.
pub(super) fn call_sites(record: &WatchRecord, width: usize) -> String {
    let shown: Vec<_> = record.call_sites.iter().filter(|s| visible(s.share)).take(MOST_CALL_SITES).collect();
    if shown.is_empty() {
        return String::new();
    }
    let threads = shown.iter().any(|s| s.thread != shown[0].thread);
    let rows = |room: usize| -> String {
        let mut columns = vec![("caller", Align::Left)];
        columns.extend(threads.then_some(("thread", Align::Left)));
        columns.extend([("operation", Align::Left), ("time", Align::Right), ("share", Align::Right)]);
        let row = |s: &&crate::record::watch::CallSite| {
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

/// A table whose first column gives way until its lines fit.
fn narrowed(rows: &dyn Fn(usize) -> String, width: usize) -> String {
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
