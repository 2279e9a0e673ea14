//! Records that list things: what a command offers, several experiments, removed files.

use iowhy_core::finding::FindingId;
use iowhy_diagnose::advice::KnownProgram;
use schemars::JsonSchema;
use serde::Serialize;

use super::classic::ClassicRecord;
use super::{Kind, SCHEMA};

/// A list with what every record has.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed<T> {
    /// Version of the format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: &'static str,
    /// The command.
    pub command: String,
    /// The list.
    #[serde(flatten)]
    pub list: T,
}

impl<T> Listed<T> {
    /// A record of this version.
    pub fn new(kind: Kind, command: impl Into<String>, list: T) -> Listed<T> {
        Listed { schema: SCHEMA, kind, iowhy: env!("CARGO_PKG_VERSION"), command: command.into(), list }
    }
}

/// What a command offers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Offer {
    /// `explain`
    Findings {
        /// Findings, in the order of their list.
        findings: Vec<FindingEntry>,
    },
    /// `explain WORD`, for a word of a screen
    Words {
        /// Its meanings.
        words: Vec<WordEntry>,
    },
    /// `trace formats`
    Formats {
        /// Formats of trace files.
        formats: Vec<FormatEntry>,
    },
    /// `sim --machine list`
    Machines {
        /// Machines, for `--machine`.
        machines: Vec<NamedEntry>,
        /// Devices, for `--set device.model=`.
        devices: Vec<NamedEntry>,
    },
    /// `sim --workload list`
    Workloads {
        /// Workloads, for `--workload`.
        workloads: Vec<WorkloadEntry>,
        /// Keys of a workload.
        keys: Vec<NamedEntry>,
    },
    /// `sim --machine keys`
    Keys {
        /// Keys, for `--set` and `--sweep`.
        keys: Vec<NamedEntry>,
    },
    /// `schema`
    Kinds {
        /// Kinds of records.
        kinds: Vec<NamedEntry>,
    },
    /// `classic list`
    Experiments {
        /// Published experiments.
        experiments: Vec<ExperimentEntry>,
    },
}

/// A finding.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindingEntry {
    /// Its id.
    pub id: FindingId,
    /// Its claim in one sentence.
    pub claim: &'static str,
    /// Its manual page, in Markdown.
    pub manual: &'static str,
    /// Well-known programs with changes that act on it, in the order of their names.
    pub programs: Vec<KnownProgram>,
    /// Whether `prove` has a repair for it.
    pub repairable: bool,
}

/// A meaning of a word of a screen.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WordEntry {
    /// The word.
    pub word: &'static str,
    /// `layer`, `limit`, `column`, `verdict`, `row` or `line`.
    pub kind: &'static str,
    /// What it means.
    pub text: &'static str,
}

/// A format of trace files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FormatEntry {
    /// Its id, for `--format` and `--to`.
    pub id: &'static str,
    /// Which tool writes it.
    pub about: &'static str,
    /// What its requests name: `blocks`, `files` or `keys`.
    pub kind: &'static str,
    /// Whether iowhy reads it.
    pub readable: bool,
    /// Whether iowhy writes it.
    pub writable: bool,
    /// How names of its files end; null if they have no common end.
    pub extension: Option<&'static str>,
}

/// A name with its description.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NamedEntry {
    /// The name.
    pub name: String,
    /// What it is.
    pub about: String,
}

/// A workload that comes with iowhy.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkloadEntry {
    /// The name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its definition, as `--workload` takes it.
    pub text: String,
}

/// A published experiment.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExperimentEntry {
    /// The name.
    pub name: String,
    /// What it was about.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// When.
    pub date: String,
    /// The machine of the publication.
    pub machine: String,
    /// Its published tables.
    pub tables: Vec<TableEntry>,
}

/// A published table.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TableEntry {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Number of rows.
    pub rows: usize,
}

/// `classic all`
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClassicsFound {
    /// The experiments that ran.
    pub experiments: Vec<ClassicRecord>,
    /// Those that could not run.
    pub problems: Vec<ExperimentProblem>,
}

/// Why an experiment could not run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExperimentProblem {
    /// The experiment.
    pub name: String,
    /// The cause.
    pub message: String,
    /// The next step; null if there is none.
    pub hint: Option<String>,
}

/// `tree --remove`
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovalFound {
    /// Number of files that were removed.
    pub removed_files: u64,
    /// The folder that held them.
    pub path: String,
}
