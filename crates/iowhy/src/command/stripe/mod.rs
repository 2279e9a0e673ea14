//! `iowhy stripe`: the rules for a stripe under a file system, and which interleave suits these disks and this workload.

mod advise;
mod lint;

use iowhy_core::problem::Problem;

use crate::cli::{OutputArgs, StripeAction, StripeArgs};
use crate::ending::Ending;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals.
pub fn run(args: &StripeArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    match &args.action {
        StripeAction::Lint(args) => lint::run(args, options),
        StripeAction::Advise(args) => advise::run(args, options),
    }
}
