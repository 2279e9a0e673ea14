//! `iowhy compare BEFORE AFTER`: did a change help? Nothing is measured here; two records are read.

mod differences;
mod load;

use std::collections::HashMap;
use std::path::PathBuf;

use iowhy_core::problem::Problem;
use iowhy_core::stats::Verdict;
use iowhy_core::units::parse_percent;
use iowhy_core::warning::Warning;
use iowhy_explain::change::{Change, Side, change};

use crate::cli::{CompareArgs, FailOn, OutputArgs};
use crate::command::Ending;
use crate::command::observation::command_line;
use crate::output::{self, Outputs};
use crate::record::compare::{ChangedCell, Comparison, Source};
use crate::record::{CellRecord, Record, SCHEMA};
use crate::{render, store};

/// Runs the command.
///
/// # Errors
/// Refusals for options; a file that is no record of measurements, or is cut off; records of two machines, unless forced;
/// records that have no cell in common.
pub fn run(args: &CompareArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let threshold = parse_percent("--threshold", &args.threshold)?;
    let (before_path, after_path) = sides(args)?;
    let outputs = Outputs::open_apart(options, &[&before_path, &after_path])?;
    let before = load::record(&before_path)?;
    let after = load::record(&after_path)?;
    let differences = differences::between(&before, &after);
    if let Some(other) = differences.iter().find(|d| d.other_machine).filter(|_| !args.force) {
        return Err(Problem::refused(format!(
            "`{}` and `{}` are of two machines: {} {} and {}",
            before_path.display(),
            after_path.display(),
            other.fact,
            other.before,
            other.after
        ))
        .hint("measure both on one machine, or add `--force` to compare the machines themselves"));
    }
    let pairs = Pairs::new(&before, &after);
    if pairs.both.is_empty() {
        return Err(nothing_in_common(&before, &after));
    }
    let cells: Vec<ChangedCell> =
        pairs.both.iter().map(|(b, a)| changed(b, a, threshold, after.seed)).collect();
    let comparison = Comparison {
        schema: SCHEMA,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line(std::env::args_os()),
        before: source(&before_path, &before),
        after: source(&after_path, &after),
        threshold_share: threshold,
        differences,
        warnings: warnings(&before, &after, &cells),
        cells,
        only_before: pairs.only_before,
        only_after: pairs.only_after,
    };
    let screen = render::compare::screen(&comparison, output::width());
    outputs.warn(&comparison.warnings);
    outputs.finish(&screen, &comparison)?;
    Ok(ending(args.fail_on, &comparison.cells))
}

/// The two files: as named, or kept under a name.
fn sides(args: &CompareArgs) -> Result<(PathBuf, PathBuf), Problem> {
    let (before, after) = match (&args.baseline, &args.after) {
        (Some(name), None) => (PathBuf::from(format!("@{name}")), args.before.clone()),
        (None, Some(after)) => (args.before.clone(), after.clone()),
        (Some(name), Some(_)) => {
            return Err(Problem::refused(format!(
                "`--baseline {name}` is the record before; two others are one too many"
            ))
            .hint(format!("write `iowhy compare --baseline {name} AFTER`")));
        }
        (None, None) => {
            return Err(Problem::refused("one record has nothing to be compared with")
                .hint("name two records, or the one before with `--baseline NAME`"));
        }
    };
    Ok((store::resolve(&before)?, store::resolve(&after)?))
}

/// Exit code 1 where the user asked for it.
fn ending(fail_on: Option<FailOn>, cells: &[ChangedCell]) -> Ending {
    let any = |verdict| cells.iter().any(|cell| cell.verdict == verdict);
    let failed = match fail_on {
        None => false,
        Some(FailOn::Regressed) => any(Verdict::Regressed),
        Some(FailOn::CannotTell) => any(Verdict::Regressed) || any(Verdict::CannotTell),
    };
    if failed { Ending::SomethingFailed } else { Ending::Done }
}

fn source(path: &std::path::Path, record: &Record) -> Source {
    Source { file: path.display().to_string(), command: record.command.clone(), iowhy: record.iowhy.clone() }
}

/// Cells by whom they stand opposite.
struct Pairs<'a> {
    both: Vec<(&'a CellRecord, &'a CellRecord)>,
    only_before: Vec<String>,
    only_after: Vec<String>,
}

impl<'a> Pairs<'a> {
    /// Cells of the same key. Targets are told apart by their place in the list: a scratch file, or a directory that was
    /// moved to another disk, may have another name.
    fn new(before: &'a Record, after: &'a Record) -> Pairs<'a> {
        let place = |record: &Record, cell: &CellRecord| {
            record.targets.iter().position(|target| target.name == cell.target).unwrap_or(0)
        };
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

fn changed(before: &CellRecord, after: &CellRecord, threshold: f64, seed: u64) -> ChangedCell {
    let Change { ratio, verdict, layer, doubt } = change(&side(before), &side(after), threshold, seed);
    ChangedCell {
        key: after.key.clone(),
        target: after.target.clone(),
        before: before.time_per_request,
        after: after.time_per_request,
        ratio,
        verdict,
        layer: layer.map(|(layer, _)| layer),
        layer_share: layer.map(|(_, share)| share),
        doubt,
    }
}

fn side(cell: &CellRecord) -> Side<'_> {
    Side {
        ns_per_request: cell.samples.iter().map(|sample| sample.ns_per_request()).collect(),
        layers: cell.layers.as_ref(),
        doubt: doubt(cell),
    }
}

/// Why a cell proves nothing, in words; `None` when it does.
pub(super) fn doubt(cell: &CellRecord) -> Option<String> {
    if let Some(failure) = &cell.failure {
        Some(failure.clone())
    } else if cell.planned_per_second.is_some() {
        Some("paced by a plan: its time per request is the plan's".to_owned())
    } else if cell.verdict == "not-what-it-claims" {
        Some("it was not what it claims".to_owned())
    } else {
        None
    }
}

fn nothing_in_common(before: &Record, after: &Record) -> Problem {
    let first = |record: &Record| record.cells.first().map_or("none".to_owned(), |cell| cell.key.clone());
    Problem::refused(format!(
        "the two records have no cell in common: the first begins with {}, the second with {}",
        first(before),
        first(after)
    ))
    .hint(format!("measure the same again: `{}`", before.command))
}

fn warnings(before: &Record, after: &Record, cells: &[ChangedCell]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if before.iowhy != after.iowhy {
        warnings.push(
            Warning::new(
                "versions",
                format!("the records were made by iowhy {} and {}", before.iowhy, after.iowhy),
            )
            .next("if they disagree where nothing changed, measure both with one version"),
        );
    }
    for (record, which) in [(before, "first"), (after, "second")] {
        if record.interrupted {
            warnings.push(
                Warning::new(
                    "interrupted",
                    format!("the {which} record was interrupted after {} rounds", record.rounds),
                )
                .next(format!("measure again: `{}`", record.command)),
            );
        }
    }
    let sure = cells.iter().filter(|c| matches!(c.verdict, Verdict::Improved | Verdict::Regressed)).count();
    // At 95 % each, one of twenty seems changed where nothing is.
    if sure > 0 && cells.len() >= 20 {
        warnings.push(
            Warning::new(
                "many-comparisons",
                format!(
                    "of {} cells compared at 95 % each, up to {} may seem changed by chance",
                    cells.len(),
                    cells.len().div_ceil(20)
                ),
            )
            .next("a larger `--threshold` leaves out small changes"),
        );
    }
    warnings
}
