//! Which cells of two records are compared with each other.

use std::collections::HashMap;

use crate::record::{CellRecord, Record};

/// The cells of two records, paired.
pub(super) struct Pairs<'a> {
    pub(super) both: Vec<(&'a CellRecord, &'a CellRecord)>,
    pub(super) only_before: Vec<String>,
    pub(super) only_after: Vec<String>,
}

impl<'a> Pairs<'a> {
    /// Cells of the same key. Targets are identified by their index in the list: a scratch file, or a directory that was
    /// moved to another disk, may have another name.
    pub(super) fn new(before: &'a Record, after: &'a Record) -> Pairs<'a> {
        let mut old: HashMap<(usize, &str), &CellRecord> =
            before.cells.iter().map(|cell| ((place(before, cell), cell.key.as_str()), cell)).collect();
        let (mut both, mut only_after) = (Vec::new(), Vec::new());
        for cell in &after.cells {
            match old.remove(&(place(after, cell), cell.key.as_str())) {
                Some(before) => both.push((before, cell)),
                None => only_after.push(cell.key.clone()),
            }
        }
        let left = |cell: &&CellRecord| old.contains_key(&(place(before, cell), cell.key.as_str()));
        let only_before = before.cells.iter().filter(left).map(|cell| cell.key.clone()).collect();
        Pairs { both, only_before, only_after }
    }
}

/// The number of a cell's target in the list of its record.
pub(super) fn place(record: &Record, cell: &CellRecord) -> usize {
    record.targets.iter().position(|target| target.name == cell.target).unwrap_or(0)
}
