//! Pairs of cells that differ in one setting, for two records without a common cell. Records of one cell each may differ in
//! several.
//!
//! Invariant: every setting that differs is named.

use iowhy_core::units::typed_size;

use super::pairs::{Pairs, place};
use crate::record::compare::Difference;
use crate::record::{CellRecord, Record};

/// Settings of a cell, by their options.
const SETTINGS: [&str; 10] = [
    "target",
    "--method",
    "--rw",
    "--pattern",
    "--state",
    "--bs",
    "--threads",
    "--iodepth",
    "--touch",
    "--rate",
];

type Values = [String; SETTINGS.len()];

fn values(record: &Record, cell: &CellRecord) -> Values {
    [
        place(record, cell).to_string(),
        cell.method.clone(),
        cell.direction.clone(),
        cell.pattern.clone(),
        cell.state.clone(),
        typed_size(cell.block_bytes),
        cell.threads.to_string(),
        cell.depth.to_string(),
        cell.touch.clone(),
        cell.planned_per_second.map_or_else(|| "none".to_owned(), |rate| rate.to_string()),
    ]
}

/// The pairs, and the settings that differ; `None` where more than one does in records of several cells, or none.
pub(super) fn across<'a>(before: &'a Record, after: &'a Record) -> Option<(Pairs<'a>, Vec<Difference>)> {
    let of = |record: &'a Record| -> Vec<(Values, &'a CellRecord)> {
        record.cells.iter().map(|cell| (values(record, cell), cell)).collect()
    };
    let (old, new) = (of(before), of(after));
    let (first, second) = (&old.first()?.0, &new.first()?.0);
    let differing: Vec<usize> = (0..SETTINGS.len()).filter(|&i| first[i] != second[i]).collect();
    let alone = old.len() == 1 && new.len() == 1;
    // Of a sweep, the one setting that has one value in each record, and another in the other.
    let fixed = |cells: &[(Values, &CellRecord)], i: usize| cells.iter().all(|(v, _)| v[i] == cells[0].0[i]);
    let wanted: Vec<usize> = match alone {
        true => differing,
        false => differing.into_iter().filter(|&i| fixed(&old, i) && fixed(&new, i)).collect(),
    };
    if wanted.is_empty() || (!alone && wanted.len() > 1) {
        return None;
    }
    let equal =
        |one: &Values, two: &Values| (0..SETTINGS.len()).all(|i| wanted.contains(&i) || one[i] == two[i]);
    let opposite = |values: &Values, cells: &[(Values, &'a CellRecord)]| -> Option<&'a CellRecord> {
        cells.iter().find(|(other, _)| equal(values, other)).map(|(_, cell)| *cell)
    };
    let both: Vec<_> = new.iter().filter_map(|(v, cell)| Some((opposite(v, &old)?, *cell))).collect();
    if both.is_empty() {
        return None;
    }
    let left = |cells: &[(Values, &'a CellRecord)], others: &[(Values, &'a CellRecord)]| -> Vec<String> {
        cells
            .iter()
            .filter(|(v, _)| opposite(v, others).is_none())
            .map(|(_, cell)| cell.key.clone())
            .collect()
    };
    let differences = wanted
        .iter()
        .map(|&i| Difference {
            fact: SETTINGS[i].to_owned(),
            before: first[i].clone(),
            after: second[i].clone(),
            other_machine: false,
        })
        .collect();
    Some((Pairs { only_before: left(&old, &new), only_after: left(&new, &old), both }, differences))
}
