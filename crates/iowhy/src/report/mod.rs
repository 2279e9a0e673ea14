//! From records to one report. A [`Document`] has a chapter a record; HTML or Markdown is decided last. Nothing is measured
//! and no file is touched here.
//!
//! What may not enter: options, files, figures that are not in a record.

use crate::record::Record;
use crate::record::classic::ClassicRecord;
use crate::record::compare::{Comparison, ProgramComparison};
use crate::record::measured_ranks::MeasuredRanksRecord;
use crate::record::merge::MergeRecord;
use crate::record::prove::ProveRecord;
use crate::record::replay::ReplayRecord;
use crate::record::sim::SimRecord;
use crate::record::stripe_advice::AdviceRecord;
use crate::record::trace::MrcRecord;
use crate::record::tree::TreeRecord;
use crate::record::watch::WatchRecord;
use crate::record::whole_machine::WholeMachineRecord;
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
    /// Of `replay`.
    Replayed(Box<ReplayRecord>),
    /// Of `compare`: measured cells.
    Compared(Box<Comparison>),
    /// Of `compare`: runs of a program.
    ComparedPrograms(Box<ProgramComparison>),
    /// Of `merge`.
    Merged(Box<MergeRecord>),
    /// Of `bench --ranks`.
    MeasuredRanks(Box<MeasuredRanksRecord>),
    /// Of `sim`.
    Simulated(Box<SimRecord>),
    /// Of `classic`: one experiment.
    Classic(Box<ClassicRecord>),
    /// Of `mrc`.
    MissRatios(Box<MrcRecord>),
    /// Of `stripe advise`.
    Advised(Box<AdviceRecord>),
    /// Of `tree`.
    Tree(Box<TreeRecord>),
    /// Of `--all`, `--cgroup` or `--container`.
    WholeMachine(Box<WholeMachineRecord>),
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
        Known::Replayed(record) => screen::replay::chapter(record, Detail::Page),
        Known::Simulated(record) => screen::sim::chapter(record, Detail::Page),
        Known::MissRatios(record) => screen::mrc::chapter(record, Detail::Page),
        Known::Classic(record) => screen::classic::chapter(record, Detail::Page),
        Known::Compared(record) => screen::compare::cells::chapter(record, Detail::Page),
        Known::ComparedPrograms(record) => screen::compare::runs::chapter(record, Detail::Page),
        Known::Merged(record) => screen::merge::chapter(record, Detail::Page),
        Known::MeasuredRanks(record) => screen::measured_ranks::chapter(record, Detail::Page),
        Known::Advised(record) => screen::stripe::advice(record, Detail::Page),
        Known::Tree(record) => screen::tree::chapter(record, Detail::Page),
        Known::WholeMachine(record) => screen::whole_machine::chapter(record, Detail::Page),
    }
}
