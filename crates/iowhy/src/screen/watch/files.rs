//! The files that moved most bytes, as far as they were seen. Files without a known name are a note, not a row.

use iowhy_core::profile::{Access, FileUse};
use iowhy_view::document::{Cut, Detail, Part, Table};

use super::{percent_of, plural, visible};
use crate::record::watch::WatchRecord;
use crate::screen::figures::{bytes, count};

/// Files on a screen and on a page; the record holds all.
const MAX_FILES: (usize, usize) = (3, 25);
/// A file that moved less than this part of what the first one moved is not shown.
const MIN_PART: u64 = 100;
/// Nor one that moved fewer bytes than this.
const MIN_BYTES: u64 = 4096;
/// In place of a path: all files whose path could not be read in time.
const NOT_NAMED: &str = "?";
/// In place of a path: all files beyond the bound.
const BEYOND: &str = "others";

/// The table and its notes; empty where no file was seen to move bytes.
pub(super) fn parts(record: &WatchRecord, detail: Detail) -> Vec<Part> {
    let mut named: Vec<&FileUse> =
        record.io.files.iter().filter(|f| ![NOT_NAMED, BEYOND].contains(&f.path.as_str())).collect();
    // Pipes and terminals after files; among equals the order of the record, most bytes first.
    named.sort_by_key(|f| !on_disk(f));
    let most = named.iter().map(|f| moved(f)).max().unwrap_or(0);
    let faults = record.operations.iter().any(|o| o.id == "fault" && visible(o.share));
    let matters = |f: &FileUse| {
        detail.is_page() || moved(f) >= MIN_BYTES.max(most / MIN_PART) || f.syncs > 0 || (f.mapped && faults)
    };
    let shown: Vec<&FileUse> =
        named.iter().copied().filter(|f| matters(f)).take(detail.rows(MAX_FILES.0, MAX_FILES.1)).collect();
    let notes = notes(record, named.len() - shown.len(), !shown.is_empty());
    let note = (!notes.is_empty()).then(|| Part::Note(notes.join("; ")));
    table(&shown).part().into_iter().chain(note).collect()
}

fn table(shown: &[&FileUse]) -> Table {
    let mut table = Table::new(["file", "#size", "#reads", "#writes", "#syncs", "#cached"]);
    for f in shown {
        let cached = match (f.cached_before, f.cached_after) {
            (Some(before), Some(after)) if percent_of(before) == percent_of(after) => percent_of(after),
            (Some(before), Some(after)) => format!("{} to {}", percent_of(before), percent_of(after)),
            (None, Some(after)) => format!("{} at the end", percent_of(after)),
            _ => String::new(),
        };
        table.row([
            f.path.clone(),
            f.size_bytes.filter(|_| on_disk(f)).map(bytes).unwrap_or_default(),
            direction(&f.reads),
            direction(&f.writes),
            if f.syncs > 0 { count(f.syncs) } else { String::new() },
            cached,
        ]);
    }
    table.cut = Some(Cut::Start);
    table.without_empty_columns()
}

/// Files left out.
fn notes(record: &WatchRecord, hidden: usize, any_shown: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if hidden > 0 && any_shown {
        notes.push(format!(
            "{} in the record (`--json FILE`)",
            plural(hidden as u64, "more file", "more files")
        ));
    }
    if let Some(unnamed) = record.io.files.iter().find(|f| f.path == NOT_NAMED && moved(f) >= MIN_BYTES) {
        let parts: Vec<String> = [("read", &unnamed.reads), ("written", &unnamed.writes)]
            .into_iter()
            .filter(|(_, access)| access.bytes > 0)
            .map(|(verb, access)| {
                format!("{verb} {} in {}", bytes(access.bytes), plural(access.calls, "call", "calls"))
            })
            .collect();
        notes.push(format!("not named (opened and closed too fast to look up): {}", parts.join(", ")));
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
