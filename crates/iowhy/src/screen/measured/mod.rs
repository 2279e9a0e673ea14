//! Cells measured in rounds: the path report and `bench`. A page has charts of both.

pub mod bench;
pub(crate) mod cell;
mod charts;
mod cross_check;
pub mod path;
mod summary;

use iowhy_core::layer::Layer;
use iowhy_core::units;
use iowhy_path::reconcile::Verdict as CellVerdict;
use iowhy_view::document::{Cell, Chapter, Cut, Detail, Section, Shape, Table};
use iowhy_view::piece::Piece;

use super::{heading, members, surroundings};
use crate::record::{CellRecord, Record};

/// Cells with the names they have on a screen.
type Named<'a> = Vec<(String, &'a CellRecord)>;

/// The page of either.
pub fn chapter(record: &Record, detail: Detail) -> Chapter {
    if record.requests.is_empty() {
        bench::chapter(record, true, detail)
    } else {
        path::chapter(record, detail)
    }
}

/// Targets and machine as the beginning of a chapter.
fn begin(record: &Record, detail: Detail, sections: Vec<Section>) -> Chapter {
    let mut chapter = Chapter { sections, ..Chapter::default() };
    for (index, facts) in record.targets.iter().enumerate() {
        let environment = record.environments.get(index).unwrap_or(&record.environment);
        let target = heading::target(facts, environment);
        if index == 0 {
            (chapter.title, chapter.about) = (target.name, target.about);
        } else {
            chapter.facts.push(format!("{}  {}", target.name, target.about));
        }
        chapter.facts.extend(target.facts);
    }
    if detail.is_page() {
        let rounds = if record.interrupted { ", interrupted" } else { "" };
        chapter.facts.push(record.command.clone());
        chapter
            .facts
            .push(format!("iowhy {}, {} rounds{rounds}, seed {}", record.iowhy, record.rounds, record.seed));
        chapter.sections.push(surroundings::section(&record.environment, &record.warnings));
    }
    chapter
}

/// Cells with bars over their layers. On a narrow terminal columns give way: first the width of the bar, then CPU, then
/// throughput. CPU is left to `--verbose`. A page has a column for each layer.
fn layers(named: &Named<'_>, detail: Detail) -> Table {
    let ledgers = || named.iter().filter_map(|(_, cell)| cell.layers.as_ref());
    let used = Layer::ALL.into_iter().filter(|id| ledgers().any(|ledger| ledger.get(*id).total_ns() != 0.0));
    let used: Vec<Layer> = used.filter(|_| detail.is_page()).collect();
    let mut headings: Vec<String> =
        ["request", "#time", "#throughput", "#CPU", "where it goes"].map(str::to_owned).to_vec();
    headings.extend(used.iter().map(|layer| format!("#{}", layer.id())));
    headings.push("#unexplained".to_owned());
    let mut table = Table::new(headings);
    for (label, cell) in named {
        let mut row: Vec<Cell> = vec![
            label.clone().into(),
            cell::time(cell, detail).into(),
            cell::throughput(cell, detail).into(),
            cell::cpu_per_byte(cell, detail).into(),
            cell.layers.as_ref().map_or_else(
                || Cell::from(without_layers(cell)),
                |ledger| Cell::Bar(Piece::from_ledger(ledger)),
            ),
        ];
        row.extend(used.iter().map(|id| match (cell.layer(*id), &cell.layers) {
            (Some(layer), _) => Cell::from(units::estimate(&layer.time)),
            (None, Some(ledger)) => Cell::from(units::time(ledger.get(*id).total_ns())),
            (None, None) => Cell::from("-"),
        }));
        row.push(cell::unexplained(cell).into());
        table.row(row);
    }
    let shape = |bar, without: &[&'static str]| Shape { bar, items: 0, without: without.to_vec() };
    table.shapes = vec![
        shape(22, &[]),
        shape(14, &[]),
        shape(22, &["CPU"]),
        shape(14, &["CPU"]),
        shape(14, &["CPU", "throughput"]),
        shape(10, &["CPU", "throughput", "unexplained"]),
    ];
    if detail == Detail::Screen {
        table.shapes.drain(..2);
    }
    table.cut = Some(Cut::End);
    table
}

/// Why a row has no layers, in a word.
fn without_layers(cell: &CellRecord) -> &str {
    if cell.verdict == CellVerdict::Ok.id() { "" } else { &cell.verdict }
}
