//! `history`: a row for each record; runs of one program under one name are one row.

use std::collections::BTreeMap;

use iowhy_core::units::counted;
use iowhy_view::document::{Cell, Chapter, Cut, Part, Section, Shape, Table};
use iowhy_view::terminal::wrap::cut_path;

use crate::record::history::{EntryRecord, Figure, HistoryRecord};
use crate::store;

/// Characters of a name or path at most.
const NAME: usize = 36;

/// The chapter.
pub fn chapter(record: &HistoryRecord) -> Chapter {
    let mut parts = match record.records.as_slice() {
        [] => vec![Part::Text(nothing(record))],
        records => vec![Part::Table(table(records))],
    };
    if record.of_other_machines > 0 {
        let others = counted(record.of_other_machines as u64, "record", "records");
        parts.push(Part::Text(format!("{others} of other machines: `--all` lists them, too")));
    }
    Chapter { sections: vec![Section::quiet("Records", parts)], ..Chapter::default() }
}

fn nothing(record: &HistoryRecord) -> String {
    match (&record.folder, record.of_other_machines) {
        (_, 1..) => "no record of this machine".to_owned(),
        (Some(_), 0) => {
            "no record is saved; `--save-as NAME` saves the record of a run, `@NAME` reads it".to_owned()
        }
        (None, 0) => {
            let named: Vec<String> = record.paths.iter().map(|path| path.display().to_string()).collect();
            format!("no record of iowhy in {}", named.join(", "))
        }
    }
}

/// On a narrow terminal the kind gives way, then the subject or the time.
fn table(records: &[EntryRecord]) -> Table {
    let mut table = Table::new(["record", "written (UTC)", "kind", "subject", "result", "remark"]);
    // Runs under one name are a group; a record alone is a group of one.
    let mut groups: BTreeMap<String, Vec<&EntryRecord>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for record in records {
        let group = match &record.name {
            Some(name) => format!("@{}", store::run_of(name).0),
            None => record.path.display().to_string(),
        };
        if !groups.contains_key(&group) {
            order.push(group.clone());
        }
        groups.entry(group).or_default().push(record);
    }
    for group in order {
        let runs = &groups[&group];
        let Some(last) = runs.last() else { continue };
        let n = if runs.len() > 1 { format!(" ({} runs)", runs.len()) } else { String::new() };
        let figures: Vec<Option<&Figure>> = runs.iter().map(|run| run.figure.as_ref()).collect();
        table.row([
            Cell::from(format!("{}{n}", cut_path(&group, NAME))),
            store::instant(last.kept_unix_s).into(),
            last.kind.clone().into(),
            Cell::Long(last.subject.clone()),
            Figure::of_runs(&figures).map_or_else(String::new, |figure| figure.words).into(),
            last.remark.clone().into(),
        ]);
    }
    let shape = |items, without: &[&'static str]| Shape { bar: 0, items, without: without.to_vec() };
    table.shapes = vec![
        shape(48, &[]),
        shape(24, &[]),
        shape(24, &["kind"]),
        shape(0, &["kind", "subject"]),
        shape(16, &["kind", "written (UTC)"]),
        shape(0, &["kind", "written (UTC)", "subject"]),
    ];
    table.cut = Some(Cut::Start);
    table.prose = table.rows.iter().any(|row| row.last().is_some_and(|remark| !remark.text().is_empty()));
    table.without_empty_columns()
}
