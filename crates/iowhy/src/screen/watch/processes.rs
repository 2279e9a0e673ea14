//! The processes of a run by command: who used the CPU, who waited for storage, who moved bytes, who waited for whom.

use iowhy_view::document::{Cell, Detail, Part, Shape, Table};

use super::{percent_of, plural, seconds};
use crate::record::watch::{CommandRecord, WatchRecord};
use crate::screen::figures::{bytes, count};

/// Commands on a screen and on a page; the record holds all.
const MAX_COMMANDS: (usize, usize) = (8, 50);
/// A counter of a process that was gone before it could be read.
const NOT_READ: &str = "-";

/// The table, where there was more than one process.
pub(super) fn parts(record: &WatchRecord, detail: Detail) -> Vec<Part> {
    let processes: u64 = record.processes.iter().map(|command| command.count).sum();
    if processes < 2 {
        return Vec::new();
    }
    let (shown, rest) =
        record.processes.split_at(record.processes.len().min(detail.rows(MAX_COMMANDS.0, MAX_COMMANDS.1)));
    let mut table =
        Table::new(["command", "#CPU", "#disk wait", "#read", "#written", "#syncs", "#share", "waits for"]);
    for command in shown {
        table.row([
            name(command).into(),
            seconds(command.cpu_s).into(),
            seconds(command.path_wait_s).into(),
            counter(command.read_bytes, bytes).into(),
            counter(command.written_bytes, bytes).into(),
            counter(command.syncs, count).into(),
            percent_of(command.wall_share).into(),
            Cell::Items(command.waits_for.clone()),
        ]);
    }
    // On a narrow terminal the lesser sleeps give way first, then the counters.
    let shape = |items, without: &[&'static str]| Shape { bar: 0, items, without: without.to_vec() };
    table.shapes = vec![
        shape(2, &[]),
        shape(1, &[]),
        shape(1, &["syncs"]),
        shape(0, &["syncs"]),
        shape(0, &["syncs", "read", "written"]),
    ];
    let mut parts = vec![Part::Table(table)];
    if !rest.is_empty() {
        let cpu_s = rest.iter().map(|command| command.cpu_s).sum();
        let more = plural(rest.len() as u64, "more command", "more commands");
        parts.push(Part::Note(format!(
            "{more} with {} of CPU time in the record (`--json FILE`)",
            seconds(cpu_s)
        )));
    }
    parts
}

fn name(command: &CommandRecord) -> String {
    let name = if command.command.is_empty() { "(no name)" } else { &command.command };
    if command.count > 1 { format!("{name} ({})", count(command.count)) } else { name.to_owned() }
}

fn counter(value: Option<u64>, words: impl Fn(u64) -> String) -> String {
    value.map_or_else(|| NOT_READ.to_owned(), words)
}
