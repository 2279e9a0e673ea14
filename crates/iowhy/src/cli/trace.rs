//! Options of `trace`, and how a trace is read.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use iowhy_core::problem::Problem;
use iowhy_core::units::refused_value;
use iowhy_trace::{BlockAction, ColumnSpec, Format};

use super::value::{count, value};

/// Options of `trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: TraceAction,
}

/// What can be done with a trace file.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Summary: format, requests, sizes, distinct bytes, order, time, latency, and what was lost in reading it
    Stat(TraceStatArgs),

    /// The first requests, as every command here reads them
    Head(TraceHeadArgs),

    /// Convert to another format; what it cannot hold is counted and reported
    Convert(TraceConvertArgs),

    /// The formats that can be read and written
    Formats,
}

/// A trace file, and how to read it.
#[derive(Debug, Args)]
pub struct TraceInputArgs {
    /// The trace, or `-` for stdin; .zst and .gz are seen by their content
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Its format, where the content does not show it; `iowhy trace formats` lists them
    #[arg(long, value_name = "FORMAT", value_parser = value(format))]
    pub format: Option<Format>,

    /// Columns of a CSV file, by number from 1 or by the names of its header: `time=1,id=2,size=3`; also op, offset,
    /// latency, stream; with units as in time_us, latency_ms, offset_sectors
    #[arg(long, value_name = "MEANING=COLUMN,...", value_parser = value(ColumnSpec::parse))]
    pub columns: Option<ColumnSpec>,

    /// blktrace and blkparse: the step that is the request: queue (Q, before merging, no latency) or issue (D, as the
    /// device saw it, with the latency to its completion) [default: queue]
    #[arg(long, value_name = "STEP", value_parser = value(block_action))]
    pub action: Option<BlockAction>,
}

/// Options of `trace stat`.
#[derive(Debug, Args)]
pub struct TraceStatArgs {
    /// The trace.
    #[command(flatten)]
    pub input: TraceInputArgs,
}

/// Options of `trace head`.
#[derive(Debug, Args)]
pub struct TraceHeadArgs {
    /// The trace.
    #[command(flatten)]
    pub input: TraceInputArgs,

    /// Number of requests
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, allow_hyphen_values = true, value_parser = value(count::<usize>(1..=100_000)))]
    pub number: usize,
}

/// Options of `trace convert`.
#[derive(Debug, Args)]
pub struct TraceConvertArgs {
    /// The trace.
    #[command(flatten)]
    pub input: TraceInputArgs,

    /// The file to write, or `-` for stdout; its extension says the format
    #[arg(value_name = "OUT")]
    pub output: PathBuf,

    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = value(format))]
    pub to: Option<Format>,

    /// Replace OUT if it exists
    #[arg(long)]
    pub force: bool,
}

/// A format of traces, by its id.
pub(super) fn format(option: &str, text: &str) -> Result<Format, Problem> {
    Format::from_id(text).ok_or_else(|| {
        let wanted = text.to_ascii_lowercase();
        let is_near = |id: &&str| {
            let id = id.to_ascii_lowercase();
            id.contains(&wanted) || wanted.contains(&id)
        };
        let near: Vec<String> =
            Format::all().map(Format::id).filter(is_near).map(|id| format!("`{id}`")).collect();
        let hint = match near.is_empty() || wanted.is_empty() {
            true => "`iowhy trace formats` lists the formats".to_owned(),
            false => format!("did you mean {}? `iowhy trace formats` lists all", near.join(" or ")),
        };
        refused_value(option, text, "unknown format", hint)
    })
}

fn block_action(option: &str, text: &str) -> Result<BlockAction, Problem> {
    match text.to_ascii_lowercase().as_str() {
        "queue" | "q" => Ok(BlockAction::Queue),
        "issue" | "d" => Ok(BlockAction::Issue),
        _ => Err(refused_value(
            option,
            text,
            "unknown step",
            "write `queue` (Q, before merging) or `issue` (D, as sent to the device, with latency)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_is_none_gets_the_nearest_ones() {
        assert_eq!(format("--to", "ORACLEGENERAL"), Ok(Format::OracleGeneral));
        let problem = format("--to", "oracle").unwrap_err();
        assert!(
            problem.message.contains("--to `oracle`") && problem.hint.unwrap().contains("`oracleGeneral`")
        );
        assert!(format("--format", "").unwrap_err().hint.unwrap().contains("lists"));
    }
}
