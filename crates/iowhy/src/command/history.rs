//! `iowhy history`: the records that were kept by name.

use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_probe::environment;
use serde_json::{Value, json};

use crate::cli::{HistoryArgs, OutputArgs};
use crate::command::{Ending, load, shared};
use crate::output::Outputs;
use crate::record::SCHEMA;
use crate::render::table::{Align, layout};
use crate::store::{self, Kept};

/// Runs the command.
///
/// # Errors
/// A name that is not there; a place that cannot be read.
pub fn run(args: &HistoryArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let outputs = Outputs::open(options)?;
    // All names are looked up before the first one goes.
    for name in &args.remove {
        store::resolve(format!("@{name}").as_ref())?;
    }
    for name in &args.remove {
        store::remove(name)?;
    }
    let here = shared::harness_target().map(|target| environment::environment(&target)).unwrap_or_default();
    let entries: Vec<Entry> =
        store::all()?.into_iter().map(|kept| Entry::read(kept, &here.cpu, &here.kernel)).collect();
    let record = json!({
        "schema": SCHEMA,
        "iowhy": env!("CARGO_PKG_VERSION"),
        "command": "history",
        "folder": store::folder()?,
        "records": entries.iter().map(Entry::json).collect::<Vec<_>>(),
    });
    outputs.finish(&screen(&entries), &record)?;
    Ok(Ending::Done)
}

/// A kept record and what it is.
struct Entry {
    kept: Kept,
    command: String,
    kind: &'static str,
    kernel: String,
    cpu: String,
    remark: String,
}

impl Entry {
    fn read(kept: Kept, cpu_here: &str, kernel_here: &str) -> Entry {
        let (value, mut remark) = match load::any(&kept.path, "") {
            Ok(value) => (value, String::new()),
            Err(problem) => (Value::Null, problem.message),
        };
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let environment = value.get("environment").unwrap_or(&Value::Null);
        let (kernel, cpu) = (text(environment, "kernel"), text(environment, "cpu"));
        if !cpu.is_empty() && cpu != cpu_here {
            remark = format!("another machine: {cpu}");
        } else if !kernel.is_empty() && kernel != kernel_here {
            remark = format!("kernel {kernel}");
        }
        let has = |key: &str| value.get(key).is_some();
        let kind = match () {
            () if has("profile") => "watched program",
            () if has("cells") && has("ruler") => "measurement",
            () if has("cells") => "comparison",
            () if has("points") => "simulation",
            () if has("curves") => "miss ratios",
            () if has("rows") || has("experiments") => "classic",
            () if has("phases") => "small files",
            () => "",
        };
        Entry { command: text(&value, "command"), kept, kind, kernel, cpu, remark }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.kept.name,
            "path": self.kept.path,
            "kept_unix_s": self.kept.unix_s,
            "bytes": self.kept.bytes,
            "kind": self.kind,
            "command": self.command,
            "kernel": self.kernel,
            "cpu": self.cpu,
            "remark": self.remark,
        })
    }
}

fn screen(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "no record is kept; `--keep-as NAME` keeps the record of a run, `@NAME` reads it\n"
            .to_owned();
    }
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| {
            vec![
                format!("@{}", entry.kept.name),
                store::instant(entry.kept.unix_s),
                entry.kind.to_owned(),
                Bytes(entry.kept.bytes / 1024 * 1024).to_string(),
                entry.command.clone(),
                entry.remark.clone(),
            ]
        })
        .collect();
    let align = [Align::Left, Align::Left, Align::Left, Align::Right, Align::Left, Align::Left];
    layout(&["record", "kept (UTC)", "kind", "size", "command", "to know"], &align, &rows)
}
