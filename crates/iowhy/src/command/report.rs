//! `iowhy report RECORD...`: one page to show somebody. Nothing is measured; records are read.

use std::io::IsTerminal;
use std::path::Path;

use iowhy_core::problem::Problem;
use serde_json::Value;

use crate::cli::{OutputArgs, ReportArgs};
use crate::ending::Ending;
use crate::output::{self, spare_inputs};
use crate::pending::Pending;
use crate::record::Kind;
use crate::record_file;
use crate::report::{self, Known};
use crate::store;
use iowhy_view::{html, markdown};

const HINT: &str = "name records that were made with `--json FILE`";

/// Runs the command.
///
/// # Errors
/// Refusals for options; a file that is no record, is damaged, or holds nothing to show; an output that cannot be written.
pub fn run(args: &ReportArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    output::no_record(
        options,
        "report",
        "the records themselves are the JSON; `--markdown` is the other form of a report",
    )?;
    let target = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    if target.is_none() && args.output.is_none() && !args.markdown && std::io::stdout().is_terminal() {
        return Err(Problem::refused("a page is nothing to read on a terminal")
            .hint("write it to a file: `-o report.html`; or read it here: `--markdown`"));
    }
    let records = args
        .records
        .iter()
        .map(|path| store::resolve_all(path))
        .collect::<Result<Vec<_>, Problem>>()?
        .concat();
    let inputs: Vec<&Path> = records.iter().map(AsRef::as_ref).collect();
    if inputs.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Problem::refused("`-` stands twice: stdin can be read once").hint("name files"));
    }
    let pending = match target {
        Some(path) => {
            spare_inputs("--output", path, &inputs)?;
            Some(Pending::open("--output", path)?)
        }
        None => None,
    };
    let mut known = Vec::new();
    for path in inputs {
        known.extend(self::known(path)?);
    }
    let document = report::document(&known);
    let text = if args.markdown { markdown::text(&document) } else { html::page(&document) };
    match pending {
        Some(pending) => pending.write(text.as_bytes())?,
        None => output::print_data(&text)?,
    }
    Ok(Ending::done())
}

/// The record in a file; several of `classic all`.
pub(super) fn known(path: &Path) -> Result<Vec<Known>, Problem> {
    let (kind, value) = record_file::shown(path, HINT)?;
    let damaged = |error| record_file::damaged(path, &error);
    let classic = |value| Ok(Known::Classic(Box::new(serde_json::from_value(value).map_err(damaged)?)));
    match kind {
        Kind::WatchedProgram => {
            Ok(vec![Known::Watched(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::Proof => Ok(vec![Known::Proved(Box::new(serde_json::from_value(value).map_err(damaged)?))]),
        Kind::Replay => Ok(vec![Known::Replayed(Box::new(serde_json::from_value(value).map_err(damaged)?))]),
        Kind::Measurement => {
            let record: crate::record::Record = serde_json::from_value(value).map_err(damaged)?;
            if record.cells.iter().all(|cell| cell.samples.is_empty()) {
                return Err(Problem::refused(format!(
                    "`{}` holds no samples: nothing was measured before it ended",
                    path.display()
                ))
                .hint(format!("measure again: `{}`", record.command)));
            }
            Ok(vec![Known::Measured(Box::new(record))])
        }
        Kind::Classics => {
            let several = value.get("experiments").and_then(Value::as_array).cloned().unwrap_or_default();
            several.into_iter().map(classic).collect()
        }
        Kind::Classic => Ok(vec![classic(value)?]),
        Kind::Comparison => {
            Ok(vec![Known::Compared(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::ComparisonOfPrograms => {
            Ok(vec![Known::ComparedPrograms(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::MergedRanks => {
            Ok(vec![Known::Merged(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::MeasuredRanks => {
            Ok(vec![Known::MeasuredRanks(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::Simulation => {
            Ok(vec![Known::Simulated(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::MissRatios => {
            Ok(vec![Known::MissRatios(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::StripeAdvice => {
            Ok(vec![Known::Advised(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::WholeMachine => {
            Ok(vec![Known::WholeMachine(Box::new(serde_json::from_value(value).map_err(damaged)?))])
        }
        Kind::SmallFiles => Ok(vec![Known::Tree(Box::new(serde_json::from_value(value).map_err(damaged)?))]),
        _ => Err(Problem::refused(format!("`{}` holds nothing that a report shows", path.display())).hint(
            "a report shows records of `iowhy`, `iowhy -- CMD`, `attach`, `--all`, `prove`, `bench`, `sim`, `mrc`, `classic`, \
             `compare`, `merge`, `tree` and `stripe advise`",
        )),
    }
}
