//! `iowhy history [PATH...]`: the records that were kept by name, or those that lie in files and folders.

mod entry;
mod figure;
mod found;

use std::collections::BTreeMap;
use std::path::PathBuf;

use iowhy_core::environment::Environment;
use iowhy_core::problem::Problem;
use iowhy_core::units;
use iowhy_probe::environment;
use serde_json::json;

use self::entry::Entry;
use crate::cli::{HistoryArgs, OutputArgs};
use crate::command::Ending;
use crate::output::{self, Outputs};
use crate::record::{Kind, SCHEMA};
use crate::store;
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{cut, cut_path};

/// Runs the command.
///
/// # Errors
/// A name that is not there; a place that cannot be read.
pub fn run(args: &HistoryArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    if !args.paths.is_empty() && !args.remove.is_empty() {
        return Err(Problem::refused(
            "`--remove` is about records that are kept by name, and files were named",
        )
        .hint("leave the files out; a file of yours is removed with rm(1)"));
    }
    let outputs = Outputs::open(options)?;
    // All names are looked up before the first one goes.
    for name in &args.remove {
        store::resolve_all(format!("@{name}").as_ref())?;
    }
    for name in &args.remove {
        store::remove(name)?;
    }
    let here = iowhy_path::targets::harness_target()
        .map(|target| environment::environment(&target))
        .unwrap_or_default();
    let mut entries = match args.paths.as_slice() {
        [] => store::all()?.into_iter().map(|saved| Entry::kept(saved, &here)).collect(),
        paths => in_files(paths, &here)?,
    };
    let all = entries.len();
    entries.retain(|entry| args.all || entry.here != Some(false));
    let others = all - entries.len();
    let record = json!({
        "schema": SCHEMA,
        "kind": Kind::History,
        "iowhy": env!("CARGO_PKG_VERSION"),
        "command": "history",
        "folder": if args.paths.is_empty() { Some(store::folder()?) } else { None },
        "of_other_machines": others,
        "records": entries.iter().map(Entry::json).collect::<Vec<_>>(),
    });
    outputs.finish(&screen(&entries, others, args, output::width()), &record)?;
    Ok(Ending::done())
}

/// The records in files and directories, oldest first.
pub(super) fn in_files(paths: &[PathBuf], here: &Environment) -> Result<Vec<Entry>, Problem> {
    let mut entries: Vec<Entry> = Vec::new();
    for path in paths {
        entries.extend(found::records(path)?.into_iter().map(|file| Entry::found(file, here)));
    }
    entries.sort_by(|a, b| (a.unix_s, &a.path).cmp(&(b.unix_s, &b.path)));
    entries.dedup_by(|a, b| a.path == b.path);
    Ok(entries)
}

/// A row a record; runs of one program that are kept under one name are one row.
pub(super) fn screen(entries: &[Entry], others: usize, args: &HistoryArgs, width: usize) -> String {
    let mut text = if entries.is_empty() {
        nothing(others, args)
    } else {
        let rows = rows(entries);
        let tables = [(48, true), (30, true), (18, true), (0, true), (0, false)]
            .map(|(subject, kind)| table(&rows, subject, kind));
        let fits = |text: &&String| text.lines().all(|line| visible_width(line) <= width);
        tables.iter().find(fits).unwrap_or(&tables[4]).clone()
    };
    if others > 0 {
        let records = units::counted(others as u64, "record", "records");
        text.push_str(&format!("{records} of other machines: `--all` lists them, too\n"));
    }
    text
}

fn nothing(others: usize, args: &HistoryArgs) -> String {
    match (args.paths.is_empty(), others) {
        (_, 1..) => "no record of this machine\n".to_owned(),
        (true, 0) => {
            "no record is kept; `--save-as NAME` keeps the record of a run, `@NAME` reads it\n".to_owned()
        }
        (false, 0) => {
            let named: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
            format!("no record of iowhy in {}\n", named.join(", "))
        }
    }
}

/// What a row shows.
struct Row {
    name: String,
    when: String,
    kind: String,
    subject: String,
    figure: String,
    remark: String,
}

fn rows(entries: &[Entry]) -> Vec<Row> {
    // Runs under one name, by their name; what stands alone is a group of one.
    let mut groups: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for entry in entries {
        let group = entry.group();
        if !groups.contains_key(&group) {
            order.push(group.clone());
        }
        groups.entry(group).or_default().push(entry);
    }
    let row = |group: &String| {
        let runs = groups.get(group)?;
        let last = runs.last()?;
        let n = if runs.len() > 1 { format!(" ({} runs)", runs.len()) } else { String::new() };
        Some(Row {
            name: format!("{}{n}", if group.starts_with('@') { group.clone() } else { cut_path(group, 36) }),
            when: store::instant(last.unix_s),
            kind: last.kind.clone(),
            subject: last.subject.clone(),
            figure: figure::of_runs(&runs.iter().map(|entry| entry.figure.as_ref()).collect::<Vec<_>>()),
            remark: last.remark.clone(),
        })
    };
    order.iter().filter_map(row).collect()
}

/// The rows as a table. On a narrow terminal the subject gives way, then the kind.
fn table(rows: &[Row], subject: usize, kind: bool) -> String {
    let remarks = rows.iter().any(|row| !row.remark.is_empty());
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let mut cells = vec![row.name.clone(), row.when.clone()];
            if kind {
                cells.push(row.kind.clone());
            }
            if subject > 0 {
                cells.push(cut(&row.subject, subject));
            }
            cells.push(row.figure.clone());
            if remarks {
                cells.push(row.remark.clone());
            }
            cells
        })
        .collect();
    let mut header = vec!["record", "written (UTC)"];
    if kind {
        header.push("kind");
    }
    if subject > 0 {
        header.push("of what");
    }
    header.push("key figure");
    if remarks {
        header.push("to know");
    }
    let align = vec![Align::Left; header.len()];
    layout(&header, &align, &cells)
}
