//! One listed record: what it is, of which machine, and what it found out.

use std::path::PathBuf;

use iowhy_core::environment::Environment;
use serde_json::{Value, json};

use super::figure::{self, Figure};
use super::found::Found;
use crate::command::{compare, load};
use crate::record::Record;
use crate::record::watch::WatchRecord;
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
    pub(super) kind: &'static str,
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
        let (value, mut remark) = match load::shown(&found.path, "") {
            Ok(value) => (value, String::new()),
            Err(problem) => (Value::Null, problem.message),
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
        let kind = kind(&value);
        if let Some(damage) = damage(kind, &value) {
            remark = format!("damaged: {damage}");
        }
        Entry {
            name: None,
            path: found.path,
            unix_s: found.unix_s,
            bytes: found.bytes,
            command: text("command"),
            kind,
            subject: subject(kind, &value),
            here: differences.map(|all| all.is_empty()),
            environment,
            figure: figure::of(kind, &value),
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

/// Which command made it, in words; nothing where that is not known.
fn kind(value: &Value) -> &'static str {
    let has = |key: &str| value.get(key).is_some_and(|v| !v.is_null());
    let command = value.get("command").and_then(Value::as_str).unwrap_or_default();
    match () {
        () if has("profile") => "watched program",
        () if has("parts") && has("wall") => "comparison of programs",
        () if has("before") && has("after") && has("cells") => "comparison",
        () if has("cells_before") && has("cells_after") => "trial of a setting",
        () if has("cells") && has("ruler") => "measurement",
        () if has("findings") && has("subject") => "proof",
        () if command == "stripe advise" => "stripe advice",
        () if command == "stripe lint" => "stripe check",
        () if has("points") => "simulation",
        () if has("curves") => "miss ratios",
        () if has("rows") || has("experiments") => "classic",
        () if has("phases") => "small files",
        () if has("settings") && has("rights") => "doctor",
        () if command.starts_with("trace") => "trace",
        () if command == "history" => "history",
        () => "",
    }
}

/// Why a record of this kind cannot be read, where it holds not what its kind holds.
fn damage(kind: &str, value: &Value) -> Option<String> {
    let told = |error: serde_json::Error| error.to_string();
    match kind {
        "watched program" => serde_json::from_value::<WatchRecord>(value.clone()).err().map(told),
        "measurement" => serde_json::from_value::<Record>(value.clone()).err().map(told),
        _ => None,
    }
}

/// What it is about: the program, the targets, the machine that was simulated; else the command.
fn subject(kind: &str, value: &Value) -> String {
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
        "watched program" | "proof" | "stripe check" => text(value, "subject"),
        "measurement" => names("targets"),
        "comparison" => format!("{} -> {}", inner("before", "file"), inner("after", "file")),
        "comparison of programs" => format!("{} -> {}", inner("before", "named"), inner("after", "named")),
        "simulation" => format!("{}: {}", inner("machine", "name"), text(value, "load")),
        "stripe advice" => names("members"),
        "classic" => text(value, "name"),
        "small files" => inner("tree", "path"),
        "doctor" | "trial of a setting" => text(value, "path"),
        "trace" | "miss ratios" => text(value, "file"),
        _ => String::new(),
    };
    if told.is_empty() { text(value, "command") } else { told }
}
