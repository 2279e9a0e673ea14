//! `iowhy report RECORD...`: one page to show somebody. Nothing is measured; records are read.

use std::io::IsTerminal;
use std::path::Path;

use iowhy_core::problem::Problem;
use serde::Deserialize;

use crate::cli::{OutputArgs, ReportArgs};
use crate::ending::Ending;
use crate::output::{self, spare_inputs};
use crate::pending::Pending;
use crate::record::Kind;
use crate::record::classic::ClassicRecord;
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
    let record = record_file::shown(path, HINT)?;
    Ok(match record.kind() {
        Kind::WatchedProgram => vec![Known::Watched(Box::new(record.read()?))],
        Kind::Proof => vec![Known::Proved(Box::new(record.read()?))],
        Kind::Replay => vec![Known::Replayed(Box::new(record.read()?))],
        Kind::Measurement => {
            let record: crate::record::Record = record.read()?;
            if record.cells.iter().all(|cell| cell.samples.is_empty()) {
                return Err(Problem::refused(format!(
                    "`{}` holds no samples: nothing was measured before it ended",
                    path.display()
                ))
                .hint(format!("measure again: `{}`", record.command)));
            }
            vec![Known::Measured(Box::new(record))]
        }
        Kind::Classics => {
            #[derive(Deserialize)]
            struct Classics {
                #[serde(default)]
                experiments: Vec<ClassicRecord>,
            }
            let several: Classics = record.read()?;
            several.experiments.into_iter().map(|one| Known::Classic(Box::new(one))).collect()
        }
        Kind::Classic => vec![Known::Classic(Box::new(record.read()?))],
        Kind::Comparison => vec![Known::Compared(Box::new(record.read()?))],
        Kind::ComparisonOfPrograms => vec![Known::ComparedPrograms(Box::new(record.read()?))],
        Kind::MergedRanks => vec![Known::Merged(Box::new(record.read()?))],
        Kind::MeasuredRanks => vec![Known::MeasuredRanks(Box::new(record.read()?))],
        Kind::Simulation => vec![Known::Simulated(Box::new(record.read()?))],
        Kind::MissRatios => vec![Known::MissRatios(Box::new(record.read()?))],
        Kind::StripeAdvice => vec![Known::Advised(Box::new(record.read()?))],
        Kind::WholeMachine => vec![Known::WholeMachine(Box::new(record.read()?))],
        Kind::SmallFiles => vec![Known::Tree(Box::new(record.read()?))],
        _ => {
            return Err(Problem::refused(format!("`{}` holds nothing that a report shows", path.display())).hint(
                "a report shows records of `iowhy`, `iowhy -- CMD`, `attach`, `--all`, `prove`, `bench`, `sim`, `mrc`, `classic`, \
                 `compare`, `merge`, `tree` and `stripe advise`",
            ));
        }
    })
}
