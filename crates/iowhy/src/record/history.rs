//! The record of `history`: the listed records, each with its main result.

use std::path::PathBuf;

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats::bootstrap_median;
use iowhy_core::units;
use schemars::JsonSchema;
use serde::Serialize;

use super::Kind;

/// Records that were saved by name, or found in files.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HistoryRecord {
    /// Version of the format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: &'static str,
    /// `history`.
    pub command: &'static str,
    /// The folder of saved records; null where files were named.
    pub folder: Option<PathBuf>,
    /// The files and folders that were named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathBuf>,
    /// Records of other machines that are left out.
    pub of_other_machines: usize,
    /// The records, oldest first.
    pub records: Vec<EntryRecord>,
}

/// One listed record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EntryRecord {
    /// The name it is saved under; null for a file.
    pub name: Option<String>,
    /// Its file.
    pub path: PathBuf,
    /// When it was written, seconds since 1970.
    pub kept_unix_s: u64,
    /// Size of the file.
    pub bytes: u64,
    /// The kind in words; empty where it cannot be read.
    pub kind: String,
    /// The command line.
    pub command: String,
    /// What was measured, profiled or simulated.
    pub subject: String,
    /// Kernel of its machine.
    pub kernel: String,
    /// CPU of its machine.
    pub cpu: String,
    /// Whether it is of this machine; null where it does not say.
    pub this_machine: Option<bool>,
    /// Its main result; null where it is damaged.
    pub figure: Option<Figure>,
    /// Damage, another machine, another kernel.
    pub remark: String,
}

/// The main result of a record.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// The quantity.
    pub what: String,
    /// A measured figure.
    pub estimate: Option<Estimate>,
    /// A time measured once, without an interval.
    pub once_ns: Option<f64>,
    /// For people.
    pub words: String,
}

/// Seed of the interval over runs.
const SEED: u64 = 1;

impl Figure {
    /// A figure in words.
    pub fn new(what: &str, value: &str) -> Figure {
        let words = if what.is_empty() { value.to_owned() } else { format!("{what}: {value}") };
        Figure { what: what.to_owned(), estimate: None, once_ns: None, words }
    }

    /// A measured figure.
    pub fn estimate(what: &str, estimate: Option<Estimate>) -> Figure {
        let value = estimate
            .as_ref()
            .map_or_else(|| "inconclusive".to_owned(), |e| format!("{}, n = {}", units::estimate(e), e.n));
        Figure { estimate, ..Figure::new(what, &value) }
    }

    /// The figure of several runs of one program is the median of their times; else that of the last.
    pub fn of_runs(runs: &[Option<&Figure>]) -> Option<Figure> {
        let last = runs.last().copied().flatten()?;
        let times: Option<Vec<f64>> = runs.iter().map(|figure| figure.as_ref()?.once_ns).collect();
        match times.filter(|times| times.len() > 1) {
            Some(times) => match bootstrap_median(&times, SEED, Unit::Nanoseconds) {
                Some(median) => Some(Figure::estimate(&last.what, Some(median))),
                None => Some(Figure::new(&last.what, &format!("inconclusive, n = {}", times.len()))),
            },
            None => Some(last.clone()),
        }
    }
}
