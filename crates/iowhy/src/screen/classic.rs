//! An experiment, like the table of a paper: then, now, model, error, and a remark a row.

use iowhy_classic::published::Experiment;
use iowhy_core::estimate::Unit;
use iowhy_core::units;
use iowhy_view::document::Section as Block;
use iowhy_view::document::{Chapter, Detail, Part, Table};

use super::{heading, surroundings};
use crate::record::classic::{ClassicRecord, RowRecord, Section};

/// The chapter.
pub fn chapter(record: &ClassicRecord, detail: Detail) -> Chapter {
    let mut facts = vec![format!("published: {}", record.source), format!("published: {}", record.machine)];
    for (index, target) in record.targets.iter().enumerate() {
        let target = heading::target(target, &record.environment);
        if index == 0 {
            facts.push(format!("measured: {}, {}", target.name, target.about));
            facts.extend(target.facts);
        } else {
            facts.push(format!("and {}", target.name));
        }
    }
    let verdicts = match record.verdicts.as_slice() {
        [] => Vec::new(),
        [only] => vec![Part::Verdict(only.clone())],
        [first, rest @ ..] => vec![Part::Verdict(first.clone()), Part::List(rest.to_vec())],
    };
    let mut sections = vec![Block::new("", verdicts)];
    sections.extend(record.sections.iter().map(|section| block(section, record, detail)));
    let mut end = Vec::new();
    if record.rounds > 0 {
        let arm =
            if detail.is_page() { "" } else { "; ± the longer arm of the 95 % interval of the median" };
        end.push(Part::Note(format!("measured: n = {} rounds{arm}", record.rounds)));
    }
    if record.interrupted {
        end.push(Part::Text("interrupted: partial result".to_owned()));
    }
    end.extend(record.not_done.iter().map(|lack| Part::Text(format!("not done: {lack}"))));
    sections.push(Block::new("", end));
    if detail.is_page() {
        sections.push(surroundings::section(&record.environment, &record.warnings));
    }
    Chapter { title: record.name.clone(), about: record.title.clone(), facts, sections }
}

/// One table and its remarks.
fn block(section: &Section, record: &ClassicRecord, detail: Detail) -> Block {
    let table = match &section.grid {
        Some(grid) => {
            let columns = grid.header.iter().map(|heading| format!("#{heading}"));
            let mut table = Table::new(std::iter::once(section.label.clone()).chain(columns));
            grid.lines.iter().for_each(|line| table.row(line.clone()));
            table.keys = 1;
            table
        }
        None => rows(section, record, detail),
    };
    let said = section.said.iter().cloned().map(Part::Note);
    Block::new(section.title.clone(), std::iter::once(Part::Table(table)).chain(said).collect())
}

fn rows(section: &Section, record: &ClassicRecord, detail: Detail) -> Table {
    let mut table =
        Table::new([section.label.as_str(), "#published", "#measured", "#model", "#error", "remark"]);
    let of_section =
        |row: &&RowRecord| row.key.get("table").and_then(|v| v.as_str()) == Some(section.id.as_str());
    for row in record.rows.iter().filter(of_section) {
        let plain = |value: Option<f64>| value.map_or_else(String::new, |value| plain(value, row.unit));
        table.row([
            row.label.clone(),
            plain(row.published),
            row.measured.as_ref().map_or_else(String::new, |estimate| detail.estimate(estimate)),
            plain(row.model),
            row.error_percent.map_or_else(String::new, |error| units::signed_per_cent(error, 0)),
            row.remark.clone(),
        ]);
    }
    let mut table = table.without_empty_columns();
    table.prose = table.columns.last().is_some_and(|(heading, _)| heading == "remark");
    table
}

fn plain(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => units::time(value),
        Unit::BytesPerSecond => units::rate_bytes(value),
        Unit::PerSecond => units::count_rate(value),
        Unit::NanosecondsPerByte => format!("{value:.3} ns/B"),
        Unit::Ratio => format!("{value:.2}"),
    }
}

/// All experiments.
pub fn list(experiments: &[Experiment]) -> Chapter {
    let block = |experiment: &Experiment| {
        let figures: usize = experiment.tables.iter().map(|table| table.rows.len()).sum();
        let tables = units::counted(experiment.tables.len() as u64, "table", "tables");
        let counts = format!("{tables}, {figures} rows, {} single figures", experiment.facts.len());
        let facts = Part::Remarks(vec![experiment.source.clone(), counts]);
        vec![Part::Lead(experiment.name.clone(), experiment.title.clone()), facts]
    };
    let next =
        "`iowhy classic NAME [PATH]` runs one of them here, `iowhy classic all` all of them that can run.";
    let sections = vec![
        Block::new("", experiments.iter().flat_map(block).collect()),
        Block::new("", vec![Part::Text(next.to_owned())]),
    ];
    Chapter { sections, ..Chapter::default() }
}
