//! `iowhy export RECORD`: a record for other programs: tables as CSV, figures as OpenMetrics, cells as fio's JSON or
//! as a job that fio can run.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::text;
use serde_json::Value;

use crate::cli::{ExportArgs, ExportFormat, OutputArgs};
use crate::ending::Ending;
use crate::output::{self, spare_inputs};
use crate::pending::Pending;
use crate::record::{Kind, Record};
use crate::record_file::{self, RecordText};
use crate::{fio, store};
use iowhy_view::{csv, openmetrics};

/// Runs the command.
///
/// # Errors
/// Refusals for options; a file that is no record, or does not hold what the format needs; an output that cannot be written.
pub fn run(args: &ExportArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    output::no_record(
        options,
        "export",
        "the record itself is the JSON; `--output FILE` names where the export goes",
    )?;
    let record = store::resolve(&args.record)?;
    if args.table.is_some() && args.format != ExportFormat::Csv {
        return Err(Problem::refused("`--table` chooses a table, and this format has none")
            .hint("leave it out, or use `--format csv`"));
    }
    let pending = match args.output.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) => {
            spare_inputs("--output", path, &[&record])?;
            Some(Pending::open("--output", path)?)
        }
        None => None,
    };
    let text = exported(&record, args.format, args.table.as_deref())?;
    match pending {
        Some(pending) => pending.write(text.as_bytes())?,
        None => output::print_data(&text)?,
    }
    Ok(Ending::done())
}

/// The record in another format.
///
/// # Errors
/// A file that is no record, or does not hold what the format needs.
pub(super) fn exported(record: &Path, format: ExportFormat, list: Option<&str>) -> Result<String, Problem> {
    let read = record_file::any(record, "name a record that was made with `--json FILE`")?;
    Ok(match format {
        ExportFormat::Csv => table(record, &read.read()?, list)?,
        ExportFormat::FioJson => {
            let text = serde_json::to_string_pretty(&fio::json(&measured(record, &read)?))
                .map_err(|error| Problem::failed(format!("the export cannot be written as JSON: {error}")))?;
            text::json(text) + "\n"
        }
        ExportFormat::Openmetrics => openmetrics::text(&read.read()?),
        ExportFormat::FioJob => fio::job_of(&measured(record, &read)?),
    })
}

/// One of the record's lists.
fn table(path: &Path, record: &Value, list: Option<&str>) -> Result<String, Problem> {
    let lists = csv::lists(record);
    let names = || lists.iter().map(|(name, n)| format!("{name} ({n})")).collect::<Vec<_>>().join(", ");
    let Some((first, _)) = lists.first() else {
        return Err(Problem::refused(format!("`{}` holds no table", path.display())).hint(
            "records of `bench`, `sim`, `mrc`, `classic`, `tree`, `compare` and of watched programs do",
        ));
    };
    let chosen = list.unwrap_or(first);
    if !lists.iter().any(|(name, _)| name == chosen) {
        return Err(Problem::refused(format!("`--table {chosen}`: `{}` has no such table", path.display()))
            .hint(format!("it has {}", names())));
    }
    Ok(csv::text(csv::at(record, chosen).unwrap_or_default()))
}

/// The record as one of measured cells.
fn measured(path: &Path, record: &RecordText) -> Result<Record, Problem> {
    if record.kind() != Kind::Measurement {
        return Err(Problem::refused(format!("`{}` holds no measured cells", path.display()))
            .hint("fio's formats are for records of `iowhy --json FILE` and `iowhy bench --json FILE`"));
    }
    record.read()
}
