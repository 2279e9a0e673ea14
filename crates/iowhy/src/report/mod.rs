//! From records to one report. A [`Document`] has a chapter a record; HTML or Markdown is decided last. Nothing is measured
//! and no file is touched here.
//!
//! What may not enter: options, files, figures that are not in a record.

mod look;
mod simulated;
mod told;

use serde_json::Value;

use crate::record::compare::{Comparison, ProgramComparison};
use crate::record::prove::ProveRecord;
use crate::record::watch::WatchRecord;
use crate::record::{Kind, Record};
use crate::screen;
use iowhy_view::document::{Chapter, Detail, Document};

/// A record that a report can be made of.
#[derive(Debug)]
pub enum Known {
    /// Of the path report or `bench`.
    Measured(Box<Record>),
    /// Of a watched program.
    Watched(Box<WatchRecord>),
    /// Of a proof that was made of a record.
    Proved(Box<ProveRecord>),
    /// Of `compare`: measured cells.
    Compared(Box<Comparison>),
    /// Of `compare`: runs of a program.
    ComparedPrograms(Box<ProgramComparison>),
    /// Of another command, read as it is.
    Other(Kind, Value),
}

/// The report of some records.
pub fn document(records: &[Known]) -> Document {
    let chapters: Vec<Chapter> = records.iter().map(chapter).collect();
    let title = match chapters.as_slice() {
        [only] => only.title.clone(),
        several => format!("iowhy: {} records", several.len()),
    };
    Document { title, chapters }
}

fn chapter(record: &Known) -> Chapter {
    match record {
        Known::Measured(record) => screen::measured::chapter(record, Detail::Page),
        Known::Watched(record) => screen::watch::chapter(record, Detail::Page),
        Known::Proved(record) => screen::prove::chapter(record, Detail::Page),
        Known::Other(Kind::Simulation, value) => simulated::sim(value),
        Known::Other(Kind::MissRatios, value) => simulated::curves(value),
        Known::Other(Kind::Classic, value) => told::classic(value),
        Known::Compared(record) => screen::compare::cells::chapter(record, Detail::Page),
        Known::ComparedPrograms(record) => screen::compare::runs::chapter(record, Detail::Page),
        Known::Other(Kind::SmallFiles, value) => told::tree(value),
        Known::Other(_, value) => told::stripe(value),
    }
}
