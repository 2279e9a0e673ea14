//! Options of the commands that read records: `compare`, `history`, `export`, `report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A record made with `iowhy --json FILE` or `iowhy bench --json FILE`, or `@NAME` for a kept one. Of a watched program
    /// (`iowhy --json FILE -- CMD`) several runs: `A.json,B.json,C.json`, or all that are kept under `@NAME`. With
    /// `--baseline` the record after the change
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,

    /// A record of the same cells, or runs of the same program, after the change
    #[arg(value_name = "AFTER")]
    pub after: Option<PathBuf>,

    /// The record before: the one kept as NAME by `--save-as NAME`
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// A difference matters from this share on; of a layer or a part this share of the whole
    #[arg(long, value_name = "SHARE", default_value = "5%", allow_hyphen_values = true)]
    pub threshold: String,

    /// Exit with 1 where a cell or a program's wall time regressed, or where it cannot be told either. Layers and parts do
    /// not count: one that grew where the whole did not makes nothing slower
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,

    /// Compare records of two machines too
    #[arg(long)]
    pub force: bool,
}

/// Options of `history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Files, and folders whose files are looked at: the records among them are listed instead of those kept by name
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Records of other machines too
    #[arg(long)]
    pub all: bool,

    /// Remove what is kept as NAME, all runs of it; of `NAME+2` the second. May be given again
    #[arg(long, value_name = "NAME")]
    pub remove: Vec<String>,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A record made with `--json FILE`; `-` is stdin
    #[arg(value_name = "RECORD")]
    pub record: PathBuf,

    /// As what
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ExportFormat::Csv)]
    pub format: ExportFormat,

    /// Which table of the record, by its key, such as `cells` or `findings` [default: the main one]
    #[arg(long, value_name = "KEY")]
    pub table: Option<String>,

    /// Where to; `-` or nothing is stdout
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What a record can be exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A table as comma-separated values.
    Csv,
    /// Measured cells as fio's `--output-format=json+` has jobs, latencies in its classes.
    FioJson,
    /// Measured cells as a job file that fio runs.
    FioJob,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Records made with `--json FILE`; `-` is stdin. They follow each other on the page
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,

    /// The page; `-` or nothing is stdout, where that is no terminal
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Markdown for issues and pull requests instead: charts become their tables
    #[arg(long)]
    pub markdown: bool,
}

/// What makes `compare` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A cell, or the wall time, regressed.
    Regressed,
    /// It regressed, or that cannot be told.
    CannotTell,
}
