//! The layers of compared cells: those that changed or are inconclusive in a row each, the others by name.

use iowhy_core::stats::Verdict;

use super::{effect, verdict_word};
use crate::record::compare::{ChangedLayer, Comparison};
use crate::screen::measured::cell::small_time;
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{cut, cut_path, wrap};

/// The section; nothing where no cell was split.
pub(super) fn section(comparison: &Comparison, width: usize) -> String {
    if comparison.layers.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    let told = |layer: &&ChangedLayer| layer.doubt.is_none() && layer.verdict != Verdict::WithinNoise;
    let shown: Vec<&ChangedLayer> = comparison.layers.iter().filter(told).collect();
    if !shown.is_empty() {
        let shapes = [(40, true), (24, true), (40, false), (24, false)];
        let tables = shapes.map(|(room, times)| table(comparison, &shown, room, times));
        let fits = |text: &&String| text.lines().all(|line| visible_width(line) <= width);
        text.push_str(tables.iter().find(fits).unwrap_or(&tables[3]));
    }
    for cell in &comparison.cells {
        let of_cell = |layer: &&ChangedLayer| layer.key == cell.key && layer.target == cell.target;
        let quiet: Vec<&str> = comparison
            .layers
            .iter()
            .filter(of_cell)
            .filter(|layer| layer.doubt.is_none() && layer.verdict == Verdict::WithinNoise)
            .map(|layer| layer.layer.id())
            .collect();
        let name = name(comparison, &cell.target, &cell.key);
        if !quiet.is_empty() {
            let line = format!("{name}: within noise: {}", quiet.join(", "));
            text.push_str(&wrap(&line, width, "  ", "    "));
        }
        // An inconclusive cell has its own remark.
        let doubt = comparison.layers.iter().find(of_cell).and_then(|layer| layer.doubt.as_deref());
        if let Some(doubt) = doubt.filter(|doubt| cell.doubt.as_deref() != Some(*doubt)) {
            text.push_str(&wrap(&format!("{name}: layers: inconclusive: {doubt}"), width, "  ", "    "));
        }
    }
    text
}

/// A row for each layer; without its times where there is no room for them.
fn table(comparison: &Comparison, shown: &[&ChangedLayer], room: usize, times: bool) -> String {
    let time =
        |e: Option<iowhy_core::estimate::Estimate>| e.map_or_else(|| "-".to_owned(), |e| small_time(&e));
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|layer| {
            let name = name(comparison, &layer.target, &layer.key);
            let mut row = vec![cut_path(&name, room), layer.layer.id().to_owned()];
            if times {
                row.extend([time(layer.before), time(layer.after)]);
            }
            row.push(layer.effect.as_ref().map_or_else(|| "-".to_owned(), effect));
            row.push(verdict_word(layer.verdict));
            row
        })
        .collect();
    let mut columns = vec![("cell", Align::Left), ("layer", Align::Left)];
    if times {
        columns.extend([("before", Align::Right), ("after", Align::Right)]);
    }
    columns.extend([("of the cell's time", Align::Right), ("verdict", Align::Left)]);
    let (header, align): (Vec<&str>, Vec<Align>) = columns.into_iter().unzip();
    layout(&header, &align, &rows)
}

/// A cell, with its target where there are several.
fn name(comparison: &Comparison, target: &str, key: &str) -> String {
    let many = comparison.cells.iter().any(|cell| cell.target != comparison.cells[0].target);
    if many { format!("{} {key}", cut(target, 16)) } else { key.to_owned() }
}
