//! `iowhy compare BEFORE AFTER`: did a change help? Nothing is measured here; records are read.

mod cells;
mod differences;
mod load;
mod pairs;
mod programs;
mod settings;
mod sides;

use iowhy_core::problem::Problem;
use iowhy_core::stats::Verdict;
use iowhy_core::warning::Warning;
use serde::Serialize;

use self::load::Loaded;
pub(super) use self::sides::{Side, sides};
use crate::cli::{CompareArgs, FailOn, OutputArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::record::compare::{Comparison, ProgramComparison};
use crate::screen;
use iowhy_view::document::Detail;

/// Runs the command.
///
/// # Errors
/// Refusals for options; a file that is not a record of measurements, or is cut off; records of two kinds, or of two
/// machines, unless forced; records that have no cell in common.
pub fn run(args: &CompareArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let (before, after) = sides(args)?;
    let inputs: Vec<_> = before.files.iter().chain(&after.files).map(AsRef::as_ref).collect();
    let outputs = Outputs::open_apart(options, &inputs)?;
    let comparison = compared(args, &before, &after)?;
    outputs.warn(comparison.warnings());
    outputs.finish(&comparison.screen(output::width()), &comparison)?;
    Ok(ending(args.fail_on, comparison.wholes().into_iter()))
}

/// A comparison of either kind.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Compared {
    Cells(Box<Comparison>),
    Runs(Box<ProgramComparison>),
}

impl Compared {
    pub(super) fn screen(&self, width: usize) -> String {
        match self {
            Compared::Cells(comparison) => {
                screen::text(&screen::compare::cells::chapter(comparison, Detail::Screen), width)
            }
            Compared::Runs(comparison) => {
                screen::text(&screen::compare::runs::chapter(comparison, Detail::Screen), width)
            }
        }
    }

    fn warnings(&self) -> &[Warning] {
        match self {
            Compared::Cells(comparison) => &comparison.warnings,
            Compared::Runs(comparison) => &comparison.warnings,
        }
    }

    /// What `--fail-on` looks at.
    fn wholes(&self) -> Vec<(&str, Verdict)> {
        match self {
            Compared::Cells(all) => all.cells.iter().map(|cell| (cell.key.as_str(), cell.verdict)).collect(),
            Compared::Runs(all) => vec![("the wall time", all.wall.verdict)],
        }
    }
}

/// Reads both sides and compares them.
pub(super) fn compared(args: &CompareArgs, before: &Side, after: &Side) -> Result<Compared, Problem> {
    match (load::side(before)?, load::side(after)?) {
        (Loaded::Cells(one), Loaded::Cells(two)) => {
            let (one, two) = ((before.first(), &*one), (after.first(), &*two));
            cells::compare(one, two, args.threshold, args.force).map(|all| Compared::Cells(Box::new(all)))
        }
        (Loaded::Runs(one), Loaded::Runs(two)) => {
            programs::compare((before, &one), (after, &two), args.threshold, args.force)
                .map(|all| Compared::Runs(Box::new(all)))
        }
        (Loaded::Cells(_), Loaded::Runs(_)) => Err(two_kinds(before, after)),
        (Loaded::Runs(_), Loaded::Cells(_)) => Err(two_kinds(after, before)),
    }
}

fn two_kinds(measured: &Side, watched: &Side) -> Problem {
    Problem::refused(format!(
        "`{}` holds measured cells and `{}` a profiled program",
        measured.named, watched.named
    ))
    .hint("compare two records of one kind")
}

/// Exit code 1 where the user asked for it. Cells and wall times decide, layers and parts do not: one that grew where the
/// whole did not is no slower program.
fn ending<'a>(fail_on: Option<FailOn>, wholes: impl Iterator<Item = (&'a str, Verdict)>) -> Ending {
    let (option, bad): (&str, &[Verdict]) = match fail_on {
        None => return Ending::done(),
        Some(FailOn::Regressed) => ("regressed", &[Verdict::Regressed]),
        Some(FailOn::Inconclusive) => ("inconclusive", &[Verdict::Regressed, Verdict::Inconclusive]),
    };
    let bad: Vec<(&str, Verdict)> = wholes.filter(|(_, verdict)| bad.contains(verdict)).collect();
    let Some((name, verdict)) = bad.first() else { return Ending::done() };
    let others = match bad.len() - 1 {
        0 => String::new(),
        n => format!(" and {n} more like it"),
    };
    Ending::failed(Problem::failed(format!(
        "{name}: {}{others}; `--fail-on {option}` makes this exit code 1",
        verdict.id()
    )))
}
