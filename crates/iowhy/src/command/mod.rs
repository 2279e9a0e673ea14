//! One file per command: from options to a finished record.

#[cfg(test)]
mod any_number_tests;
pub mod attach;
pub mod bench;
pub mod classic;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod history;
pub mod merge;
pub mod mrc;
pub mod path;
pub mod prove;
pub mod replay;
pub mod report;
pub mod schema;
pub mod sim;
pub mod stripe;
pub mod tails;
pub mod trace;
pub mod tree;
pub mod watch;
pub mod whole_machine;

use iowhy_core::warning::Warning;

use crate::cli::OutputArgs;

/// Restores settings that a killed run of iowhy left changed, and reports them on stderr.
pub fn put_back_left(options: &OutputArgs) {
    let left = iowhy_probe::setting::restore_leftovers().into_iter();
    let warnings: Vec<Warning> = left.map(|said| Warning::new("setting-put-back", said)).collect();
    if !options.quiet {
        crate::output::print_warnings(&warnings);
    }
}
