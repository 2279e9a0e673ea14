//! Two records of measured cells: a verdict for each cell and each of its layers.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::stats::Verdict;
use iowhy_core::warning::Warning;
use iowhy_path::change::{Change, LayerChange, Side, change};

use super::pairs::Pairs;
use super::{differences, settings};
use crate::record::compare::{ChangedCell, ChangedLayer, Comparison, Source};
use crate::record::{CellRecord, Kind, Record, SCHEMA};
use crate::shell;

/// Compares two records.
///
/// # Errors
/// Records of two machines, unless forced; records that have no cell in common.
pub(super) fn compare(
    (before_path, before): (&Path, &Record),
    (after_path, after): (&Path, &Record),
    threshold: f64,
    force: bool,
) -> Result<Comparison, Problem> {
    let mut differences = differences::between(before, after);
    differences::same_machine(&differences, (before_path, after_path), force)?;
    let mut pairs = Pairs::new(before, after);
    if pairs.both.is_empty() {
        let (across, settings) =
            settings::across(before, after).ok_or_else(|| nothing_in_common(before, after))?;
        pairs = across;
        differences.extend(settings);
    }
    let sizes_differ = pairs.both.iter().any(|(b, a)| b.block_bytes != a.block_bytes);
    let (mut cells, mut layers) = (Vec::new(), Vec::new());
    for (b, a) in &pairs.both {
        let told = change(&side(b), &side(a), threshold, after.seed);
        layers.extend(told.layers.iter().map(|layer| changed_layer(a, layer)));
        cells.push(changed(b, a, told));
    }
    Ok(Comparison {
        schema: SCHEMA,
        kind: Kind::Comparison,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        before: source(before_path, before),
        after: source(after_path, after),
        threshold_share: threshold,
        differences,
        warnings: sizes_differ
            .then(other_sizes)
            .into_iter()
            .chain(warnings(before, after, &cells, &layers, threshold))
            .collect(),
        cells,
        layers,
        only_before: pairs.only_before,
        only_after: pairs.only_after,
    })
}

fn source(path: &Path, record: &Record) -> Source {
    Source { file: path.display().to_string(), command: record.command.clone(), iowhy: record.iowhy.clone() }
}

fn changed(before: &CellRecord, after: &CellRecord, told: Change) -> ChangedCell {
    let Change { ratio, verdict, layer, doubt, .. } = told;
    ChangedCell {
        key: after.key.clone(),
        before_key: (before.key != after.key).then(|| before.key.clone()),
        target: after.target.clone(),
        before: before.time_per_request,
        after: after.time_per_request,
        after_over_before: ratio,
        verdict,
        layer: layer.map(|(layer, _)| layer),
        layer_share: layer.map(|(_, share)| share),
        doubt,
    }
}

fn changed_layer(cell: &CellRecord, change: &LayerChange) -> ChangedLayer {
    ChangedLayer {
        key: cell.key.clone(),
        target: cell.target.clone(),
        layer: change.id,
        before: change.before,
        after: change.after,
        effect: change.effect,
        verdict: change.verdict,
        doubt: change.doubt.clone(),
    }
}

fn side(cell: &CellRecord) -> Side<'_> {
    Side {
        ns_per_request: cell.samples.iter().map(|sample| sample.ns_per_request()).collect(),
        layers: cell.layers.as_ref(),
        estimates: &cell.layer_estimates,
        doubt: cell.doubt(),
    }
}

/// A request of another size is another amount of work.
fn other_sizes() -> Warning {
    Warning::new(
        "other-request-size",
        "the request sizes differ: a longer time per request can be a higher throughput",
    )
    .next("compare the bytes per second of both records, too")
}

fn nothing_in_common(before: &Record, after: &Record) -> Problem {
    let first = |record: &Record| record.cells.first().map_or("none".to_owned(), |cell| cell.key.clone());
    Problem::refused(format!(
        "the two records have no cell in common: the first cell is {} before and {} after",
        first(before),
        first(after)
    ))
    .hint(format!(
        "measure the same again: `{}`; or change one setting only, which can be compared",
        before.command
    ))
}

fn warnings(
    before: &Record,
    after: &Record,
    cells: &[ChangedCell],
    layers: &[ChangedLayer],
    threshold: f64,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if before.iowhy != after.iowhy {
        warnings.push(
            Warning::new(
                "versions",
                format!("the records were made by iowhy {} and {}", before.iowhy, after.iowhy),
            )
            .next("if they disagree where nothing changed, measure both with one version"),
        );
    }
    for (record, which) in [(before, "first"), (after, "second")] {
        if record.interrupted {
            warnings.push(
                Warning::new(
                    "interrupted",
                    format!("the {which} record was interrupted after {} rounds", record.rounds),
                )
                .next(format!("measure again: `{}`", record.command)),
            );
        }
    }
    let changed = |verdict: Verdict| matches!(verdict, Verdict::Improved | Verdict::Regressed);
    let sure = cells.iter().any(|c| changed(c.verdict)) || layers.iter().any(|l| changed(l.verdict));
    // A layer that is too small to change the whole by so much cannot seem to do so.
    let compared = cells.len() + layers.iter().filter(|layer| could_matter(layer, cells, threshold)).count();
    // At 95 % each, one of twenty seems changed where nothing is.
    if sure && compared >= 20 {
        warnings.push(
            Warning::new(
                "many-comparisons",
                format!(
                    "of {compared} cells and layers compared at 95 % each, up to {} may seem changed by coincidence",
                    compared.div_ceil(20)
                ),
            )
            .next("a larger `--threshold` leaves out small changes"),
        );
    }
    warnings
}

/// Whether a layer takes so much of its cell that it could change the whole by the threshold.
fn could_matter(layer: &ChangedLayer, cells: &[ChangedCell], threshold: f64) -> bool {
    let cell = cells.iter().find(|cell| cell.key == layer.key && cell.target == layer.target);
    let whole = cell.and_then(|cell| cell.before).map_or(f64::INFINITY, |time| time.value);
    let time = |side: &Option<iowhy_core::estimate::Estimate>| side.map_or(0.0, |e| e.value.abs());
    time(&layer.before).max(time(&layer.after)) >= threshold * whole
}
