//! From records to documents: one file or folder per kind of record. Terminal, HTML and Markdown are made from the same
//! document in `iowhy_view`. Nothing is measured, decided or explained here.

pub mod classic;
pub mod compare;
pub(crate) mod course;
pub mod doctor;
pub(crate) mod figures;
#[cfg(test)]
pub(crate) mod for_tests;
#[cfg(test)]
mod golden_tests;
pub(crate) mod heading;
pub mod history;
pub mod measured;
pub mod measured_ranks;
pub(crate) mod members;
pub mod merge;
pub mod mrc;
pub mod prove;
pub(crate) mod remedies;
pub mod replay;
pub mod run_time;
pub mod sim;
pub mod stripe;
pub(crate) mod surroundings;
pub mod tails;
pub mod trace;
pub mod tree;
pub mod trial;
pub mod watch;
pub mod whole_machine;
pub(crate) mod words;

use iowhy_view::document::Chapter;
use iowhy_view::terminal;

/// A chapter as the text of a screen for a terminal of `width` columns.
pub fn text(chapter: &Chapter, width: usize) -> String {
    terminal::screen(chapter, width, terminal::marks())
}
