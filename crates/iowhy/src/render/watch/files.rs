//! The files that moved most bytes, as far as they were seen. Files that no name could be found for are a note, not a row.

use std::fmt::Write as _;

use iowhy_core::profile::{Access, FileUse};

use super::tables::narrowed;
use super::words::{bytes, count, percent_of, plural, visible};
use super::{DIM, seconds};
use crate::record::watch::WatchRecord;
use iowhy_view::terminal::table::{Align, layout};
use iowhy_view::terminal::wrap::{cut_path, wrap};

/// Files that are shown.
const MOST_FILES: usize = 3;
/// A file that moved less than this part of what the first one moved is not shown.
const LEAST_PART: u64 = 100;
/// Nor one that moved fewer bytes than this.
const LEAST_BYTES: u64 = 4096;
/// What stands in place of a path for all files whose path could not be learnt in time.
const NOT_NAMED: &str = "?";
/// The same for all files beyond the bound.
const BEYOND: &str = "others";

/// The table and its notes; empty where no file was seen to move bytes.
pub(super) fn files(record: &WatchRecord, width: usize) -> String {
    let named: Vec<&FileUse> = {
        let mut named: Vec<&FileUse> =
            record.io.files.iter().filter(|f| ![NOT_NAMED, BEYOND].contains(&f.path.as_str())).collect();
        // Pipes and terminals after what is on disks; among equals the order of the record, most bytes first.
        named.sort_by_key(|f| !on_disk(f));
        named
    };
    let most = named.iter().map(|f| moved(f)).max().unwrap_or(0);
    let faults = record.operations.iter().any(|o| o.id == "fault" && visible(o.share));
    let shown: Vec<&FileUse> = named
        .iter()
        .copied()
        .filter(|f| moved(f) >= LEAST_BYTES.max(most / LEAST_PART) || f.syncs > 0 || (f.mapped && faults))
        .take(MOST_FILES)
        .collect();
    let mut text = if shown.is_empty() { String::new() } else { table(record, &shown, width) };
    let notes = notes(record, named.len() - shown.len(), !shown.is_empty());
    for line in wrap(&notes.join("; "), width, "  ", "  ").lines().filter(|_| !notes.is_empty()) {
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    if text.is_empty() { text } else { text + "\n" }
}

fn table(record: &WatchRecord, shown: &[&FileUse], width: usize) -> String {
    let whole = record.profile.calls.as_ref().is_none_or(|calls| calls.complete);
    let rows = |room: usize| -> String {
        let row = |f: &&FileUse| {
            let cached = match (f.cached_before, f.cached_after) {
                (Some(before), Some(after)) if percent_of(before) == percent_of(after) => percent_of(after),
                (Some(before), Some(after)) => format!("{} to {}", percent_of(before), percent_of(after)),
                (None, Some(after)) => format!("{} at the end", percent_of(after)),
                _ => String::new(),
            };
            vec![
                cut_path(&f.path, room),
                f.size_bytes.filter(|_| on_disk(f)).map(bytes).unwrap_or_default(),
                direction(&f.reads),
                direction(&f.writes),
                if f.syncs > 0 { count(f.syncs) } else { String::new() },
                cached,
            ]
        };
        let all: Vec<Vec<String>> = shown.iter().map(row).collect();
        // Of a part of the calls nobody should take the sums for those of the run.
        let head = if whole {
            ["file", "size", "read in calls", "written in calls", "syncs", "in cache"]
        } else {
            ["file", "size", "read, as seen", "written, as seen", "syncs seen", "in cache"]
        };
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
    narrowed(&rows, width)
}

/// What the table does not show, and what its calls are.
fn notes(record: &WatchRecord, hidden: usize, any_shown: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if hidden > 0 && any_shown {
        let files = if hidden == 1 { "file" } else { "files" };
        notes.push(format!("{} more {files} in the record (`--json FILE`)", count(hidden as u64)));
    }
    if let Some(unnamed) = record.io.files.iter().find(|f| f.path == NOT_NAMED && moved(f) >= LEAST_BYTES) {
        let parts: Vec<String> = [("read", &unnamed.reads), ("written", &unnamed.writes)]
            .into_iter()
            .filter(|(_, access)| access.bytes > 0)
            .map(|(verb, access)| {
                format!("{verb} {} in {}", bytes(access.bytes), plural(access.calls, "call", "calls"))
            })
            .collect();
        notes.push(format!("not named (opened and closed too fast to look up): {}", parts.join(", ")));
    }
    match &record.profile.calls {
        Some(calls) if !calls.complete && (any_shown || !notes.is_empty()) => notes.push(format!(
            "calls as seen in {} of {} that were traced",
            seconds(calls.observed_ns as f64 / 1e9),
            seconds(record.wall_s)
        )),
        _ => {}
    }
    notes
}

fn on_disk(file: &FileUse) -> bool {
    ["regular", "directory", "block-device"].contains(&file.kind.as_str())
}

fn moved(file: &FileUse) -> u64 {
    file.reads.bytes.saturating_add(file.writes.bytes)
}

/// `1.5 MiB in 380`.
fn direction(access: &Access) -> String {
    if access.calls == 0 {
        String::new()
    } else {
        format!("{} in {}", bytes(access.bytes), count(access.calls))
    }
}
