//! One listed record: what it is, of which machine, and what it found out.

use std::path::PathBuf;

use iowhy_core::environment::Environment;
use serde_json::{Value, json};

use super::figure::{self, Figure};
use super::found::Found;
use crate::command::{compare, load};
use crate::record::watch::WatchRecord;
use crate::record::{Kind, Record};
use crate::store::{self, Kept};

/// A record and what it is.
#[derive(Debug)]
pub(in crate::command) struct Entry {
    /// The name it is kept under; `None` of a file.
    name: Option<String>,
    pub(super) path: PathBuf,
    pub(super) unix_s: u64,
    bytes: u64,
    command: String,
    pub(super) kind: String,
    /// What was measured, watched or simulated.
    pub(super) subject: String,
    environment: Option<Environment>,
    /// Whether it is of this machine; `None` where the record does not say.
    pub(super) here: Option<bool>,
    /// What it found out; `None` where it is broken.
    pub(super) figure: Option<Figure>,
    /// What a reader must know.
    pub(super) remark: String,
}

impl Entry {
    /// A record that was kept by name.
    pub(super) fn kept(kept: Kept, here: &Environment) -> Entry {
        let found = Found { path: kept.path, unix_s: kept.unix_s, bytes: kept.bytes };
        Entry { name: Some(kept.name), ..Entry::found(found, here) }
    }

    /// A record in a file.
    pub(super) fn found(found: Found, here: &Environment) -> Entry {
        let (kind, value, mut remark) = match load::shown(&found.path, "") {
            Ok((kind, value)) => (Some(kind), value, String::new()),
            Err(problem) => (None, Value::Null, problem.message),
        };
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let environment: Option<Environment> =
            value.get("environment").and_then(|environment| serde_json::from_value(environment.clone()).ok());
        let differences = environment.as_ref().map(|then| compare::other_machine(here, then));
        if let Some(other) = differences.as_ref().and_then(|all| all.first()) {
            remark = format!("another machine: {}", other.after);
        } else if let Some(then) = environment.as_ref().filter(|then| then.kernel != here.kernel) {
            remark = format!("kernel {}", then.kernel);
        }
        if let Some(damage) = kind.and_then(|kind| damage(kind, &value)) {
            remark = format!("damaged: {damage}");
        }
        Entry {
            name: None,
            path: found.path,
            unix_s: found.unix_s,
            bytes: found.bytes,
            command: text("command"),
            kind: kind.map_or_else(String::new, Kind::words),
            subject: kind.map_or_else(String::new, |kind| subject(kind, &value)),
            here: differences.map(|all| all.is_empty()),
            environment,
            figure: kind.and_then(|kind| figure::of(kind, &value)),
            remark,
        }
    }

    /// The name that stands for it and its like: runs that are kept under one name have one.
    pub(super) fn group(&self) -> String {
        match &self.name {
            Some(name) => format!("@{}", store::run_of(name).0),
            None => self.path.display().to_string(),
        }
    }

    pub(in crate::command) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "path": self.path,
            "kept_unix_s": self.unix_s,
            "bytes": self.bytes,
            "kind": self.kind,
            "command": self.command,
            "subject": self.subject,
            "kernel": self.environment.as_ref().map_or("", |e| e.kernel.as_str()),
            "cpu": self.environment.as_ref().map_or("", |e| e.cpu.as_str()),
            "this_machine": self.here,
            "figure": self.figure.as_ref().map(Figure::json),
            "remark": self.remark,
        })
    }
}

/// Why a record of this kind cannot be read, where it holds not what its kind holds.
fn damage(kind: Kind, value: &Value) -> Option<String> {
    let told = |error: serde_json::Error| error.to_string();
    match kind {
        Kind::WatchedProgram => serde_json::from_value::<WatchRecord>(value.clone()).err().map(told),
        Kind::Measurement => serde_json::from_value::<Record>(value.clone()).err().map(told),
        _ => None,
    }
}

/// What it is about: the program, the targets, the machine that was simulated; else the command.
fn subject(kind: Kind, value: &Value) -> String {
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let inner = |outer: &str, key: &str| text(value.get(outer).unwrap_or(&Value::Null), key);
    let names = |list: &str| {
        let entries = value.get(list).and_then(Value::as_array);
        entries.map_or_else(String::new, |entries| {
            entries.iter().map(|entry| text(entry, "name")).collect::<Vec<_>>().join(", ")
        })
    };
    let told = match kind {
        Kind::WatchedProgram | Kind::Proof | Kind::StripeCheck | Kind::RunTime => text(value, "subject"),
        Kind::Measurement => names("targets"),
        Kind::Comparison => format!("{} -> {}", inner("before", "file"), inner("after", "file")),
        Kind::ComparisonOfPrograms => format!("{} -> {}", inner("before", "named"), inner("after", "named")),
        Kind::Simulation => format!("{}: {}", inner("machine", "name"), text(value, "load")),
        Kind::StripeAdvice => names("members"),
        Kind::Classic => text(value, "name"),
        Kind::SmallFiles => inner("tree", "path"),
        Kind::Doctor | Kind::TrialOfASetting => text(value, "path"),
        Kind::Trace | Kind::MissRatios => text(value, "file"),
        _ => String::new(),
    };
    if told.is_empty() { text(value, "command") } else { told }
}
