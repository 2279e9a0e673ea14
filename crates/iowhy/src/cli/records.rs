//! Options of the commands that read records: `compare`, `history`, `export`, `report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use iowhy_core::units;

use super::value::value;

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A record made with `iowhy --json FILE` or `iowhy bench --json FILE`, or `@NAME` for a saved one. For a profiled
    /// program (`iowhy --json FILE -- CMD`) several runs: `A.json,B.json,C.json`, or all runs saved as `@NAME`. With
    /// `--baseline`, the record after the change
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,

    /// A record of the same cells, or runs of the same program, after the change
    #[arg(value_name = "AFTER")]
    pub after: Option<PathBuf>,

    /// The record before the change: the one saved with `--save-as NAME`
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// Smallest relative change to report (layers and parts: relative to the whole)
    #[arg(long, value_name = "SHARE", default_value = "5%", allow_hyphen_values = true, value_parser = value(units::parse_percent))]
    pub threshold: f64,

    /// Exit with 1 if a cell or a program's wall time regressed, or if the comparison is inconclusive. Layers and parts
    /// do not count: one that grew without the whole makes nothing slower
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,

    /// Also compare records of two machines
    #[arg(long)]
    pub force: bool,
}

/// Options of `merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Records of the ranks of one job, made with `iowhy --json 'run-{rank}.json' -- CMD` as tasks of mpirun, srun, flux or
    /// torchrun, in any order; `@NAME` is all runs saved as NAME
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,

    /// Smallest difference of a rank to report, relative to the median wall time
    #[arg(long, value_name = "SHARE", default_value = "5%", allow_hyphen_values = true, value_parser = value(units::parse_percent))]
    pub threshold: f64,
}

/// Options of `history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Files, and directories of files: list the records among them instead of those saved by name
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Also list records of other machines
    #[arg(long)]
    pub all: bool,

    /// Remove all runs saved as NAME; `NAME+2` is the second run. May be given again
    #[arg(long, value_name = "NAME")]
    pub remove: Vec<String>,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A record made with `--json FILE`; `-` is stdin
    #[arg(value_name = "RECORD")]
    pub record: PathBuf,

    /// The format to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ExportFormat::Csv)]
    pub format: ExportFormat,

    /// Key of the table to write, such as `cells` or `findings` [default: the main table]
    #[arg(long, value_name = "KEY")]
    pub table: Option<String>,

    /// The file to write; `-` is stdout [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What a record can be exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A table as comma-separated values.
    Csv,
    /// Figures of the record and of its tables, for Prometheus and others (OpenMetrics).
    Openmetrics,
    /// Measured cells as jobs of fio's `--output-format=json+`.
    FioJson,
    /// Measured cells as a job file that fio runs.
    FioJob,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Records made with `--json FILE`, in the order of the page; `-` is stdin
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,

    /// The file to write; `-` is stdout [default: stdout, unless it is a terminal]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write Markdown, for issues and pull requests: tables instead of charts
    #[arg(long)]
    pub markdown: bool,
}

/// What makes `compare` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A cell, or the wall time, regressed.
    Regressed,
    /// It regressed, or the comparison is inconclusive.
    Inconclusive,
}
