//! Reads the table of programs: `programs/*.toml`, one file a program.
//!
//! Reading is total: a file that cannot be understood is left out and named among the faults, and a test holds that list
//! empty. What may not enter: a name of a program.

use std::sync::OnceLock;

use iowhy_core::finding::{ChangeKind, FindingId, ProgramChange};
use serde::Deserialize;

macro_rules! programs {
    ($($file:literal),+ $(,)?) => {
        /// Name and text of each file.
        const FILES: &[(&str, &str)] = &[$(($file, include_str!(concat!("programs/", $file)))),+];
    };
}

// In the order of the programs' names: it decides where two are recognised by facts of the same kind.
programs![
    "containers.toml",
    "dpkg.toml",
    "elasticsearch.toml",
    "etcd.toml",
    "git.toml",
    "java.toml",
    "kafka.toml",
    "lmdb.toml",
    "mariadb.toml",
    "mongodb.toml",
    "node.toml",
    "postgresql.toml",
    "python.toml",
    "pytorch.toml",
    "redis.toml",
    "rocksdb.toml",
    "rsync.toml",
    "safetensors.toml",
    "sqlite.toml",
    "tar.toml",
];

/// A program of the table.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) recognised: Recognised,
    pub(super) advice: Vec<Advice>,
}

/// Facts by which a program is recognised. Any of its lists is enough, except `within`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recognised {
    /// Names of its executable file or process; `python` stands also for `python3.11`.
    #[serde(default)]
    pub(super) executables: Vec<String>,
    /// It runs programs of others, so anything else that is recognised comes first.
    #[serde(default)]
    pub(super) run_time: bool,
    /// How it is started so that functions of its scripts have names on stacks.
    #[serde(default)]
    pub(super) names: Option<String>,
    /// Names of libraries whose functions make the calls; `*` stands for any text.
    #[serde(default)]
    pub(super) libraries: Vec<String>,
    /// Functions that make the calls, for programs that contain the library.
    #[serde(default)]
    pub(super) functions: Vec<String>,
    /// Libraries that it has functions of on any stack.
    #[serde(default)]
    pub(super) loaded: Vec<String>,
    /// Names of files that only this program writes.
    #[serde(default)]
    pub(super) files: Vec<String>,
    /// Ends of names of files that it writes beside another file of the same name without the end.
    #[serde(default)]
    pub(super) companions: Vec<String>,
    /// Names of mapped files.
    #[serde(default)]
    pub(super) mapped_files: Vec<String>,
    /// Files and loaded libraries count only in a process of these executables.
    #[serde(default)]
    pub(super) within: Vec<String>,
    /// Types of file systems that serve its files.
    #[serde(default)]
    pub(super) file_systems: Vec<String>,
}

/// A change for some findings.
#[derive(Clone, Debug)]
pub(super) struct Advice {
    pub(super) findings: Vec<FindingId>,
    pub(super) change: ProgramChange,
    pub(super) side: Option<Side>,
    pub(super) with_files: Vec<String>,
    pub(super) without_files: Vec<String>,
    /// It saves the listing of directories, so it applies where most opens are for that.
    pub(super) directories: bool,
}

/// Whether a change acts on reads or on writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Side {
    Read,
    Write,
}

/// The file as TOML has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: String,
    recognised: Recognised,
    advice: Vec<AdviceToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AdviceToml {
    findings: Vec<FindingId>,
    kind: ChangeKind,
    change: String,
    cost: String,
    power_failure: Option<String>,
    note: Option<String>,
    title: String,
    url: String,
    side: Option<Side>,
    #[serde(default)]
    with_files: Vec<String>,
    #[serde(default)]
    without_files: Vec<String>,
    #[serde(default)]
    directories: bool,
}

impl Recognised {
    /// The facts in words, for a manual page.
    pub(super) fn words(&self) -> String {
        let names = |names: &[String]| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let within = names(&self.within).map(|names| format!(" in a process of {names}")).unwrap_or_default();
        [
            names(&self.executables).map(|names| format!("executable {names}")),
            names(&self.libraries).map(|names| format!("calls from library {names}")),
            names(&self.functions).map(|names| format!("calls from function {names}")),
            names(&self.loaded).map(|names| format!("library {names}{within}")),
            names(&self.files).map(|names| format!("writes to {names}{within}")),
            names(&self.companions).map(|names| format!("writes to a file and the same name with {names}")),
            names(&self.mapped_files).map(|names| format!("mapped {names}{within}")),
            names(&self.file_systems).map(|names| format!("file system {names}")),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
    }
}

impl Advice {
    fn from_toml(toml: AdviceToml) -> Advice {
        Advice {
            findings: toml.findings,
            change: ProgramChange {
                kind: toml.kind,
                change: toml.change,
                cost: toml.cost,
                power_failure: toml.power_failure,
                note: toml.note,
                source_title: toml.title,
                source_url: toml.url,
            },
            side: toml.side,
            with_files: toml.with_files,
            without_files: toml.without_files,
            directories: toml.directories,
        }
    }

    /// In which runs it applies, in words.
    pub(super) fn when(&self) -> Option<String> {
        let names =
            |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        let mut when = Vec::new();
        match self.side {
            Some(Side::Read) => when.push("for reads".to_owned()),
            Some(Side::Write) => when.push("for writes".to_owned()),
            None => {}
        }
        if !self.with_files.is_empty() {
            when.push(format!("with files {}", names(&self.with_files)));
        }
        if !self.without_files.is_empty() {
            when.push(format!("without files {}", names(&self.without_files)));
        }
        if self.directories {
            when.push("where directories are listed".to_owned());
        }
        (!when.is_empty()).then(|| when.join(", "))
    }
}

/// Reads one file.
fn parse(text: &str) -> Result<Program, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let advice = file.advice.into_iter().map(Advice::from_toml).collect();
    Ok(Program { name: file.program, recognised: file.recognised, advice })
}

/// All programs, read once.
pub(super) fn programs() -> &'static [Program] {
    static PROGRAMS: OnceLock<Vec<Program>> = OnceLock::new();
    PROGRAMS.get_or_init(|| FILES.iter().filter_map(|(_, text)| parse(text).ok()).collect())
}

/// Files that cannot be understood, with the reason.
#[cfg(test)]
pub(super) fn faults() -> Vec<String> {
    let fault = |(file, text): &(&str, &str)| parse(text).err().map(|error| format!("{file}: {error}"));
    FILES.iter().filter_map(fault).collect()
}

/// Names of the files, for a test that none was forgotten.
#[cfg(test)]
pub(super) fn file_names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}
