//! Records with a number that no measurement gives: every kind of number in every golden record is replaced, one at a time,
//! and every command that reads records shows the result. Overflow checks are on in this build, so a sum that overflows is
//! a panic here. Not covered: two damaged numbers in one record.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use iowhy_core::environment::Environment;
use iowhy_core::rng::Rng;
use serde_json::{Value, json};

use super::{compare, export, history, report as report_command};
use crate::cli::{CompareArgs, ExportFormat};
use crate::record::history::HistoryRecord;
use crate::record::prove::ProveRecord;
use crate::record::stripe_advice::AdviceRecord;
use crate::record::tree::TreeRecord;
use crate::record::watch::WatchRecord;
use crate::record::{Kind, Record, SCHEMA};
use crate::record_file;
use crate::report;
use crate::screen::history::chapter as screen_of_history;
use crate::screen::measured::{bench, path};
use crate::screen::{prove, stripe, text, tree, watch};
use iowhy_view::document::Detail;
use iowhy_view::{html, markdown};

/// The order of the numbers is drawn with this, and so is the one of a list that is replaced.
const SEED: u64 = 17;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/command/records/1/{name}.json"))
}

/// The first is put into every kind of number; of the others one, which the seed draws.
fn extremes() -> [Value; 6] {
    [json!(u64::MAX), json!(i64::MIN), json!(1e308), json!(-1), json!(1e29), json!(5e-324)]
}

/// A comparison draws many resamples: one record in this many is compared.
const COMPARED: u64 = 24;

/// Places of numbers (JSON pointers) by their path without list positions.
fn places(value: &Value, at: &str, kind: &str, found: &mut BTreeMap<String, Vec<String>>) {
    match value {
        Value::Number(_) => found.entry(kind.to_owned()).or_default().push(at.to_owned()),
        Value::Array(entries) => {
            for (i, entry) in entries.iter().enumerate() {
                places(entry, &format!("{at}/{i}"), &format!("{kind}[]"), found);
            }
        }
        Value::Object(entries) => {
            for (key, entry) in entries {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                places(entry, &format!("{at}/{escaped}"), &format!("{kind}.{key}"), found);
            }
        }
        _ => {}
    }
}

/// Everything that any command shows of a record.
fn outputs(path: &Path, original: &Path, comparing: bool) -> Vec<String> {
    let mut shown = Vec::new();
    if let Ok(known) = report_command::known(path) {
        let document = report::document(&known);
        shown.extend([html::page(&document), markdown::text(&document)]);
    }
    for format in [ExportFormat::Csv, ExportFormat::FioJson, ExportFormat::FioJob] {
        shown.extend(export::exported(path, format, None));
    }
    for (before, after) in [(original, path), (path, original)].into_iter().filter(|_| comparing) {
        let args = CompareArgs {
            before: before.to_owned(),
            after: Some(after.to_owned()),
            baseline: None,
            threshold: 0.05,
            fail_on: None,
            force: true,
        };
        let compared = compare::sides(&args).and_then(|(one, two)| compare::compared(&args, &one, &two));
        shown.extend(compared.iter().flat_map(|all| [all.screen(100), serde_json::to_string(all).unwrap()]));
    }
    let records = history::in_files(&[path.to_owned()], &Environment::default()).unwrap();
    let history = HistoryRecord {
        schema: SCHEMA,
        kind: Kind::History,
        iowhy: "0",
        command: "history",
        folder: None,
        paths: Vec::new(),
        of_other_machines: 0,
        records,
    };
    shown.push(text(&screen_of_history(&history), 100));
    shown.push(serde_json::to_string(&history).unwrap());
    shown.extend(
        record_file::shown(path, "").and_then(|record| record.read()).map(screens).unwrap_or_default(),
    );
    shown
}

/// The screens that were printed when the record was made.
fn screens(value: Value) -> Vec<String> {
    if let Ok(record) = serde_json::from_value::<WatchRecord>(value.clone()) {
        return vec![text(&watch::chapter(&record, Detail::Screen), 80)];
    }
    if let Ok(record) = serde_json::from_value::<ProveRecord>(value.clone()) {
        return vec![text(&prove::chapter(&record, Detail::Screen), 80)];
    }
    if let Ok(record) = serde_json::from_value::<AdviceRecord>(value.clone()) {
        return vec![text(&stripe::advice(&record, Detail::Screen), 80)];
    }
    if let Ok(record) = serde_json::from_value::<TreeRecord>(value.clone()) {
        return vec![text(&tree::chapter(&record, Detail::Screen), 80)];
    }
    let Ok(record) = serde_json::from_value::<Record>(value) else { return Vec::new() };
    let chapters = [path::chapter(&record, Detail::Verbose), bench::chapter(&record, true, Detail::Screen)];
    chapters.iter().map(|chapter| text(chapter, 80)).collect()
}

/// A line that shows a figure that is no number. `∞` is the end of an interval that is open, and of golden records.
fn no_number(text: &str) -> Option<&str> {
    text.lines().find(|line| {
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| matches!(word, "NaN" | "nan" | "inf")) || line.contains('∞')
    })
}

/// Replaces the numbers of a golden record; what goes wrong, by the number that causes it.
fn wrong(name: &str) -> Vec<String> {
    let original = golden(name);
    let value: Value = serde_json::from_slice(&std::fs::read(&original).unwrap()).unwrap();
    let mut kinds = BTreeMap::new();
    places(&value, "", "", &mut kinds);
    assert!(!kinds.is_empty(), "{name} holds numbers");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.json");
    let mut rng = Rng::new(SEED);
    let mut wrong = Vec::new();
    for (kind, all) in &kinds {
        let place = &all[rng.below(all.len() as u64) as usize];
        let [first, others @ ..] = extremes();
        for extreme in [first, others[rng.below(others.len() as u64) as usize].clone()] {
            let mut damaged = value.clone();
            *damaged.pointer_mut(place).unwrap() = extreme.clone();
            std::fs::write(&path, damaged.to_string()).unwrap();
            let comparing = rng.below(COMPARED) == 0;
            match catch_unwind(AssertUnwindSafe(|| outputs(&path, &original, comparing))) {
                Err(_) => wrong.push(format!("{name}{kind} = {extreme}: panic")),
                Ok(texts) => wrong.extend(texts.iter().find_map(|text| {
                    no_number(text).map(|line| {
                        let line: String = line.chars().take(160).collect();
                        format!("{name}{kind} = {extreme}: {line}")
                    })
                })),
            }
        }
    }
    wrong
}

#[test]
fn any_number_in_a_record_of_cells_is_shown_or_refused() {
    let wrong: Vec<_> = ["measured", "measured-layers", "path"].into_iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn any_number_in_a_record_of_a_program_is_shown_or_refused() {
    let wrong: Vec<_> = ["watched", "proof"].into_iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn any_number_in_another_record_is_shown_or_refused() {
    let others = [
        "advice",
        "classic",
        "compared",
        "compared-layers",
        "compared-programs",
        "doctor",
        "lint",
        "merged",
        "ratios",
        "simulated",
        "trace",
        "tree",
    ];
    let wrong: Vec<_> = others.into_iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
