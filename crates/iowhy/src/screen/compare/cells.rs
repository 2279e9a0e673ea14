//! Two records of measured cells: the verdict of each cell, and of its layers.

use iowhy_core::stats::Verdict;
use iowhy_core::units;
use iowhy_view::document::{Cell, Chapter, Cut, Detail, Part, Section, Shape, Table};
use iowhy_view::terminal::wrap::cut;

use super::{cell, chart, differences, dot, effect, percent};
use crate::record::compare::{ChangedCell, ChangedLayer, Comparison};
use crate::screen::measured::cell::small_time;
use crate::screen::surroundings;

/// The chapter.
pub fn chapter(comparison: &Comparison, detail: Detail) -> Chapter {
    let sides = [("before", &comparison.before), ("after ", &comparison.after)];
    let facts = sides.map(|(which, source)| format!("{which}  {}: {}", source.file, source.command));
    let verdict = headline(comparison);
    let table = cells(comparison, detail);
    let cells = if detail.is_page() {
        let row = |cell: &ChangedCell| {
            dot(&name(comparison, &cell.target, &cell.key), cell.after_over_before.as_ref(), cell.verdict)
        };
        let rows: Vec<_> = comparison.cells.iter().map(row).collect();
        let title = "Time after over time before, with 95 % intervals; left of the line is faster";
        chart(title, &verdict, &rows, table)
    } else {
        Part::Table(table)
    };
    let mut sections = vec![
        Section::new("", vec![Part::Verdict(verdict), Part::Remarks(facts.to_vec())]),
        differences(&comparison.differences),
        Section::quiet("Cells", vec![cells]),
        Section::quiet("Layers", layers(comparison, detail)),
        Section::quiet("Remarks", remarks(comparison)),
    ];
    let title = if detail.is_page() { "Did the change help?" } else { "" };
    if detail.is_page() {
        sections.extend(surroundings::warnings(&comparison.warnings));
    }
    Chapter { title: title.to_owned(), sections, ..Chapter::default() }
}

/// `6 cells compared: 2 regressed, 1 improved, 3 within noise`
fn headline(comparison: &Comparison) -> String {
    format!(
        "{} compared: {} (smallest relative change reported: {})",
        units::counted(comparison.cells.len() as u64, "cell", "cells"),
        Verdict::counted(comparison.cells.iter().map(|cell| cell.verdict)),
        percent(comparison.threshold_share)
    )
}

/// A cell, with its target where there are several.
fn name(comparison: &Comparison, target: &str, key: &str) -> String {
    let many = comparison.cells.iter().any(|cell| cell.target != comparison.cells[0].target);
    if many { format!("{} {key}", cut(target, 16)) } else { key.to_owned() }
}

/// On a narrow terminal the times give way, then the beginnings of keys: their end tells more.
fn narrow(table: &mut Table) {
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes = vec![shape(&[]), shape(&["before", "after"]), shape(&["before", "after", "visible"])];
    table.cut = Some(Cut::Start);
}

fn cells(comparison: &Comparison, detail: Detail) -> Table {
    let mut table = Table::new(["cell", "#before", "#after", "#after / before", "#visible", "verdict"]);
    let time = |e: Option<&_>| e.map_or_else(|| "-".to_owned(), |e| detail.estimate(e));
    for changed in &comparison.cells {
        let layer = match (changed.layer, changed.layer_share) {
            (Some(layer), Some(share)) if share < 0.95 => format!(", mostly {}", layer.id()),
            (Some(layer), _) => format!(", {}", layer.id()),
            _ => String::new(),
        };
        table.row([
            name(comparison, &changed.target, &changed.key).into(),
            time(changed.before.as_ref()).into(),
            time(changed.after.as_ref()).into(),
            Cell::from(changed.after_over_before.as_ref().map_or_else(|| "-".to_owned(), units::factor)),
            super::visible(changed.after_over_before.as_ref(), comparison.threshold_share).into(),
            cell(changed.verdict, &layer),
        ]);
    }
    narrow(&mut table);
    table
}

/// Layers that changed or are inconclusive in a row each, the others by name; a page has a row for each.
fn layers(comparison: &Comparison, detail: Detail) -> Vec<Part> {
    let quiet = |layer: &ChangedLayer| layer.doubt.is_none() && layer.verdict == Verdict::WithinNoise;
    let shown = |layer: &&ChangedLayer| detail.is_page() || (layer.doubt.is_none() && !quiet(layer));
    let mut table = Table::new(["cell", "layer", "#before", "#after", "#effect", "verdict"]);
    let time = |e: Option<&_>| e.map_or_else(|| "-".to_owned(), small_time);
    for layer in comparison.layers.iter().filter(shown) {
        table.row([
            Cell::from(name(comparison, &layer.target, &layer.key)),
            layer.layer.id().into(),
            time(layer.before.as_ref()).into(),
            time(layer.after.as_ref()).into(),
            layer.effect.as_ref().map_or_else(|| "-".to_owned(), effect).into(),
            cell(layer.verdict, ""),
        ]);
    }
    narrow(&mut table);
    let mut lines = Vec::new();
    for cell in &comparison.cells {
        let of_cell = |layer: &&ChangedLayer| layer.key == cell.key && layer.target == cell.target;
        let all = comparison.layers.iter().filter(of_cell).filter(|layer| quiet(layer));
        let names: Vec<&str> = all.map(|layer| layer.layer.id()).collect();
        let name = name(comparison, &cell.target, &cell.key);
        if !names.is_empty() {
            lines.push(format!("{name}: within noise: {}", names.join(", ")));
        }
        // An inconclusive cell has its own remark.
        let doubt = comparison.layers.iter().find(of_cell).and_then(|layer| layer.doubt.as_deref());
        if let Some(doubt) = doubt.filter(|doubt| cell.doubt.as_deref() != Some(*doubt)) {
            lines.push(format!("{name}: layers: inconclusive: {doubt}"));
        }
    }
    let lines = (!lines.is_empty()).then_some(Part::Remarks(lines));
    table.part().into_iter().chain(lines).collect()
}

fn remarks(comparison: &Comparison) -> Vec<Part> {
    let doubt = |cell: &ChangedCell| Some(format!("{}: {}", cell.key, cell.doubt.as_deref()?));
    let mut lines: Vec<String> = comparison.cells.iter().filter_map(doubt).collect();
    for (keys, which) in [(&comparison.only_before, "first"), (&comparison.only_after, "second")] {
        if !keys.is_empty() {
            lines.push(format!("only in the {which} record: {}", keys.join(", ")));
        }
    }
    if comparison.cells.iter().any(|c| c.verdict == Verdict::Inconclusive && c.doubt.is_none()) {
        lines.push(
            "inconclusive: the interval includes no change and a relevant change; an idle machine or a longer \
             measurement narrows it (`--precision` and `--time` of `iowhy bench`)"
                .to_owned(),
        );
    }
    let layers = if comparison.layers.is_empty() {
        ""
    } else {
        "; effect: of this layer's change alone, on the cell's time; `mostly`: the layer with half or more of the change"
    };
    let rounds = rounds(&comparison.cells);
    let note = Part::Note(format!("time per request: medians{rounds}, 95 % intervals{layers}"));
    vec![Part::Remarks(lines), note]
}

/// ` of 8 to 11 rounds`: the fewer of both sides, of each cell.
fn rounds(cells: &[ChangedCell]) -> String {
    let all = || cells.iter().filter_map(|cell| Some(cell.after_over_before.as_ref()?.n));
    match (all().min(), all().max()) {
        (Some(least), Some(most)) if least == most => format!(" of {least} rounds"),
        (Some(least), Some(most)) => format!(" of {least} to {most} rounds"),
        _ => String::new(),
    }
}
