//! One listed record: its kind, machine and main result.

use iowhy_core::environment::Environment;
use serde_json::Value;

use super::figure;
use super::found::Found;
use crate::machine;
use crate::record::history::EntryRecord;
use crate::record::watch::WatchRecord;
use crate::record::{Kind, Record};
use crate::record_file;
use crate::store::Kept;

/// A record that was saved by name.
pub(super) fn kept(kept: Kept, here: &Environment) -> EntryRecord {
    let found = Found { path: kept.path, unix_s: kept.unix_s, bytes: kept.bytes };
    EntryRecord { name: Some(kept.name), ..self::found(found, here) }
}

/// A record in a file.
pub(super) fn found(found: Found, here: &Environment) -> EntryRecord {
    let (kind, value, mut remark) = match record_file::shown(&found.path, "") {
        Ok(record) => (Some(record.kind()), record.read().unwrap_or_default(), String::new()),
        Err(problem) => (None, Value::Null, problem.message),
    };
    let environment: Option<Environment> =
        value.get("environment").and_then(|environment| serde_json::from_value(environment.clone()).ok());
    let differences = environment.as_ref().map(|then| machine::differences(here, then));
    if let Some(other) = differences.as_ref().and_then(|all| all.first()) {
        remark = format!("another machine: {}", other.after);
    } else if let Some(then) = environment.as_ref().filter(|then| then.kernel != here.kernel) {
        remark = format!("kernel {}", then.kernel);
    }
    if let Some(damage) = kind.and_then(|kind| damage(kind, &value)) {
        remark = format!("damaged: {damage}");
    }
    let (kernel, cpu) = environment.map(|then| (then.kernel, then.cpu)).unwrap_or_default();
    EntryRecord {
        name: None,
        path: found.path,
        kept_unix_s: found.unix_s,
        bytes: found.bytes,
        kind: kind.map_or_else(String::new, Kind::words),
        command: value.get("command").and_then(Value::as_str).unwrap_or_default().to_owned(),
        subject: kind.map_or_else(String::new, |kind| subject(kind, &value)),
        kernel,
        cpu,
        this_machine: differences.map(|all| all.is_empty()),
        figure: kind.and_then(|kind| figure::main_result(kind, &value)),
        remark,
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
        Kind::WatchedProgram
        | Kind::Proof
        | Kind::Replay
        | Kind::StripeCheck
        | Kind::RunTime
        | Kind::MergedRanks => text(value, "subject"),
        Kind::Measurement => names("targets"),
        Kind::MeasuredRanks => text(value, "target"),
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
