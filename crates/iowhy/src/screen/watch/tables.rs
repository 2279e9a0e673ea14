//! Operations with the layers of their time, the parts of a sync, and callers.

use iowhy_core::layer::Layer;
use iowhy_diagnose::classify::Operation;

use iowhy_view::document::{Cell, Cut, Detail, Part, Shape, Table};
use iowhy_view::terminal::wrap::cut;

use super::{on_wall, percent_of, seconds, share, visible};
use crate::record::watch::{CallSite, Caller, LayerShare, OperationRecord, WatchRecord};
use crate::screen::figures::{OnTheClock, WallShare, arm, count};

/// Operations that are shown.
const MAX_OPERATIONS: usize = 6;
/// Layers that are named per operation.
const MAX_LAYERS: usize = 4;
/// Callers on a screen.
const MAX_CALL_SITES: usize = 4;
/// Callers on a page.
const MAX_ROWS: usize = 25;
/// A caller below this share of the wall time is not shown.
const CALLER_MATTERS: f64 = 0.02;
/// Nor are any, if together they stand for less than this.
const CALLERS_MATTER: f64 = 0.1;
/// A layer's part of an operation that is known no better than this is not given as a number.
const VAGUE: f64 = 0.25;
/// Syncs below this share of the wall time need no anatomy.
const SYNCS_MATTER: f64 = 0.05;

/// Wall time by operation, and in which layers it went.
pub(super) fn operations(record: &WatchRecord, detail: Detail) -> Vec<Part> {
    let matters = |o: &&OperationRecord| detail.is_page() || visible(o.of_wall(record.wall_s).value());
    let mut shown: Vec<&OperationRecord> = record.operations.iter().filter(matters).collect();
    shown.sort_by(|a, b| b.wall_s.total_cmp(&a.wall_s));
    shown.truncate(detail.rows(MAX_OPERATIONS, usize::MAX));
    let mut table = Table::new(["operation", "#time", "#share", "#calls", "layers", "waits"]);
    for o in shown {
        let waits = o.waits.iter().filter(|w| detail.is_page() && w.time_s > 0.0).take(3);
        let waits: Vec<String> = waits.map(|w| format!("{} {}", w.words, seconds(w.time_s))).collect();
        table.row([
            Cell::from(label(o)),
            seconds(o.wall_s).into(),
            on_wall(record, o).into(),
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
    let mut layers: Vec<(&LayerShare, WallShare)> =
        operation.layers.iter().map(|layer| (layer, layer.of_wall(operation.wall_s))).collect();
    layers.sort_by(|a, b| b.1.value().total_cmp(&a.1.value()));
    let known = |part: &WallShare| visible(part.value()) && arm(part) < VAGUE.min(part.value());
    let mut named = Vec::new();
    for (i, (layer, part)) in layers.iter().enumerate() {
        if known(part) {
            named.push(format!("{} {}", layer.id.id(), share(part)));
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
    let Some(sync) =
        record.operations.iter().find(|o| o.id == "sync" && o.wall_s >= SYNCS_MATTER * record.wall_s)
    else {
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

/// Most characters of a function's name in a path.
const MAX_FUNCTION: usize = 40;

/// Functions of the program by the wall time of their calls, where they account for a good part of it.
pub(super) fn call_sites(record: &WatchRecord, detail: Detail) -> Vec<Part> {
    // A function without a name tells nothing.
    let part = |s: &CallSite| s.of_wall(record.wall_s).value();
    let named = |s: &&CallSite| !s.function.starts_with(['[', '0']) && part(s) >= CALLER_MATTERS;
    let mut shown: Vec<&CallSite> =
        record.call_sites.iter().filter(|s| detail.is_page() || named(s)).collect();
    shown.sort_by(|a, b| b.wall_s.total_cmp(&a.wall_s));
    shown.truncate(detail.rows(MAX_CALL_SITES, MAX_ROWS));
    if !detail.is_page() && shown.iter().map(|s| part(s)).sum::<f64>() < CALLERS_MATTER {
        return Vec::new();
    }
    let threads = shown.iter().any(|s| s.thread != shown[0].thread);
    let paths = paths(&shown, if detail.is_page() { MAX_CALL_SITES } else { 1 });
    let mut table = Table::new(["caller", "thread", "operation", "#time", "#share"]);
    for s in shown {
        let object = s.object.as_deref().map(file_name).unwrap_or_default();
        let name = if object.is_empty() { s.function.clone() } else { format!("{} ({object})", s.function) };
        let thread = if threads { cut(&s.thread, 16) } else { String::new() };
        table.row([name, thread, s.operation.clone(), seconds(s.wall_s), on_wall(record, s)]);
    }
    table.cut = Some(Cut::End);
    table.without_empty_columns().part().into_iter().chain(paths).chain(names(record)).collect()
}

/// How functions without names get them.
fn names(record: &WatchRecord) -> Option<Part> {
    let of_script = record
        .names_of_scripts
        .as_ref()
        .map(|how| format!("to name the functions of the script, start it with {how}"));
    let of_file = || {
        record.file_without_names.as_ref().map(|file| {
            format!(
                "functions of {file} have no names here; its debug symbols name them (Debian: a package `...-dbgsym`, Fedora: \
                 `dnf debuginfo-install`)"
            )
        })
    };
    of_script.or_else(of_file).map(Part::Text)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// How the program comes to the first of these callers, a line for each function. That one is reached through `main` alone tells nothing.
fn paths(sites: &[&CallSite], most: usize) -> Vec<Part> {
    let mut told: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for site in sites.iter().filter(|site| site.callers.len() > 1) {
        if lines.len() >= most {
            break;
        }
        if told.contains(&site.function.as_str()) {
            continue;
        }
        told.push(&site.function);
        let how = if percent_of(site.callers_share) == percent_of(1.0) { "" } else { "mostly " };
        lines.push(Part::Text(format!("{} is reached {how}through {}", site.function, path(site))));
    }
    lines
}

/// The callers of a site, with the file of each that is in another one than the function before. Of many that follow each other in one file
/// the first, which are next to the call, and the last, by which the file is entered.
fn path(site: &CallSite) -> String {
    const FIRST: usize = 3;
    let mut before = site.object.as_deref();
    let mut words: Vec<String> = Vec::new();
    for of_file in site.callers.chunk_by(|a, b| a.object == b.object) {
        let from = words.len();
        let function = |caller: &Caller| cut(&caller.function, MAX_FUNCTION);
        match of_file {
            [first @ .., last] if first.len() > FIRST => {
                words.extend(first[..FIRST].iter().map(function));
                words.push("...".to_owned());
                words.push(function(last));
            }
            few => words.extend(few.iter().map(function)),
        }
        let object = of_file[0].object.as_deref();
        if object != before {
            words[from].push_str(&format!(" ({})", object.map_or("no file", file_name)));
        }
        before = object;
    }
    words.join(" < ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_each_file_where_it_is_entered() {
        let caller = |of: &str| {
            let (object, function) = of.split_once(':').unwrap_or(("", of));
            Caller {
                function: function.to_owned(),
                object: Some(object.to_owned()).filter(|o| !o.is_empty()),
            }
        };
        let told = |callers: &[&str]| {
            path(&CallSite {
                thread: String::new(),
                function: "sync".to_owned(),
                object: Some("/lib/db.so".to_owned()),
                callers: callers.iter().map(|of| caller(of)).collect(),
                callers_share: 1.0,
                operation: "sync".to_owned(),
                time_s: 1.0,
                wall_s: 1.0,
                share: 1.0,
                share_low: 1.0,
                share_high: 1.0,
                events: 1,
            })
        };
        let library = ["/lib/db.so:a", "/lib/db.so:b", "/lib/db.so:c", "/lib/db.so:d"];
        assert_eq!(told(&library), "a < b < c < d");
        let entered = [&library[..], &["/lib/db.so:api", "/usr/bin/app:save", "/usr/bin/app:main"]].concat();
        assert_eq!(told(&entered), "a < b < c < ... < api < save (app) < main");
        assert_eq!(told(&["made", "/lib/db.so:a"]), "made (no file) < a (db.so)");
    }
}
