//! `iowhy compare BEFORE AFTER`: did a change help? Nothing is measured here; records are read.

mod cells;
mod differences;
mod load;
mod pairs;
mod programs;
mod settings;
mod sides;

pub(super) use self::cells::doubt;
pub(super) use self::differences::machine as other_machine;

use iowhy_core::problem::Problem;
use iowhy_core::stats::Verdict;
use iowhy_core::units::parse_percent;

use self::load::Loaded;
use self::sides::Side;
use crate::cli::{CompareArgs, FailOn, OutputArgs};
use crate::command::Ending;
use crate::output::{self, Outputs};
use crate::screen;
use iowhy_view::document::Detail;

/// Runs the command.
///
/// # Errors
/// Refusals for options; a file that is no record of measurements, or is cut off; records of two kinds, or of two machines,
/// unless forced; records that have no cell in common.
pub fn run(args: &CompareArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let threshold = parse_percent("--threshold", &args.threshold)?;
    let (before, after) = sides::sides(args)?;
    let inputs: Vec<_> = before.files.iter().chain(&after.files).map(AsRef::as_ref).collect();
    let outputs = Outputs::open_apart(options, &inputs)?;
    match (load::side(&before)?, load::side(&after)?) {
        (Loaded::Cells(one), Loaded::Cells(two)) => {
            let (one, two) = ((before.first(), &*one), (after.first(), &*two));
            let comparison = cells::compare(one, two, threshold, args.force)?;
            let shown =
                screen::text(&screen::compare::cells::chapter(&comparison, Detail::Screen), output::width());
            outputs.warn(&comparison.warnings);
            outputs.finish(&shown, &comparison)?;
            Ok(ending(args.fail_on, comparison.cells.iter().map(|cell| (cell.key.as_str(), cell.verdict))))
        }
        (Loaded::Runs(one), Loaded::Runs(two)) => {
            let comparison = programs::compare((&before, &one), (&after, &two), threshold, args.force)?;
            let shown =
                screen::text(&screen::compare::runs::chapter(&comparison, Detail::Screen), output::width());
            outputs.warn(&comparison.warnings);
            outputs.finish(&shown, &comparison)?;
            Ok(ending(args.fail_on, std::iter::once(("the wall time", comparison.wall.verdict))))
        }
        (Loaded::Cells(_), Loaded::Runs(_)) => Err(two_kinds(&before, &after)),
        (Loaded::Runs(_), Loaded::Cells(_)) => Err(two_kinds(&after, &before)),
    }
}

/// The comparison as text and as JSON, for tests of what records may hold.
#[cfg(test)]
pub(super) fn compared(args: &CompareArgs) -> Result<String, Problem> {
    let threshold = parse_percent("--threshold", &args.threshold)?;
    let (before, after) = sides::sides(args)?;
    match (load::side(&before)?, load::side(&after)?) {
        (Loaded::Cells(one), Loaded::Cells(two)) => {
            let (one, two) = ((before.first(), &*one), (after.first(), &*two));
            let comparison = cells::compare(one, two, threshold, args.force)?;
            Ok(screen::text(&screen::compare::cells::chapter(&comparison, Detail::Screen), 100)
                + &serde_json::to_string(&comparison).unwrap())
        }
        (Loaded::Runs(one), Loaded::Runs(two)) => {
            let comparison = programs::compare((&before, &one), (&after, &two), threshold, args.force)?;
            Ok(screen::text(&screen::compare::runs::chapter(&comparison, Detail::Screen), 100)
                + &serde_json::to_string(&comparison).unwrap())
        }
        _ => Ok(String::new()),
    }
}

fn two_kinds(measured: &Side, watched: &Side) -> Problem {
    Problem::refused(format!(
        "`{}` holds measured cells and `{}` a watched program",
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
        Some(FailOn::CannotTell) => ("cannot-tell", &[Verdict::Regressed, Verdict::CannotTell]),
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
