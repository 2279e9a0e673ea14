//! Records that earlier versions made, as they made them: each is still read by everything that read it then.
//!
//! `records/N` holds those of schema N, one of each kind; of the largest only some cells are kept. The machine in them is
//! made up.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Ran, binary, directory, finish, iowhy, text};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/records/1")
}

pub(crate) fn record(name: &str) -> String {
    text(&folder().join(format!("{name}.json"))).to_owned()
}

/// Each record: its kind, a word of its report, the first column of its table.
pub(crate) const RECORDS: [(&str, &str, Option<&str>, Option<&str>); 18] = [
    ("measured", "measurement", Some("pread"), Some("key")),
    ("measured-layers", "measurement", Some("pread"), Some("key")),
    ("path", "measurement", Some("depth"), Some("key")),
    ("watched", "watched program", Some("sync-per-write"), Some("id")),
    ("compared", "comparison", Some("within noise"), Some("key")),
    ("compared-layers", "comparison", Some("regressed"), Some("key")),
    ("compared-programs", "comparison of programs", Some("Wall time"), Some("operation")),
    ("merged", "merged ranks", Some("slower than the others"), Some("operation")),
    ("measured-ranks", "measured ranks", Some("in proportion"), Some("method")),
    ("proof", "proof", Some("sync-per-write"), Some("id")),
    ("simulated", "simulation", Some("nvme"), Some("requests")),
    ("ratios", "miss ratios", Some("sieve"), Some("policy")),
    ("classic", "classic", Some("minix-1989"), None),
    ("tree", "small files", Some("files/s"), Some("phase")),
    ("advice", "stripe advice", Some("interleave"), None),
    ("doctor", "doctor", None, None),
    ("lint", "stripe check", None, None),
    ("trace", "trace", None, None),
];

#[test]
fn every_kind_is_reported_exported_and_listed() {
    let folder = folder();
    let listed = iowhy(&["history", text(&folder), "--all", "--json", "-"]).done().json();
    let listed = listed["records"].as_array().unwrap();
    assert_eq!(listed.len(), RECORDS.len(), "every sample is in the table above: {listed:?}");
    for (name, kind, shown, column) in RECORDS {
        let path = record(name);
        let entry = listed.iter().find(|entry| entry["path"] == path.as_str()).unwrap();
        assert_eq!((entry["kind"].as_str(), entry["remark"].as_str()), (Some(kind), remark(name)), "{entry}");
        let report = iowhy(&["report", &path, "--markdown"]);
        match shown {
            Some(word) => assert!(report.done().stdout.contains(word), "{name}"),
            None => assert!(report.code() == 2 && report.stderr.contains("nothing that a report shows")),
        }
        if let Some(column) = column {
            let table = iowhy(&["export", &path]).done().stdout;
            assert!(table.lines().next().unwrap().split(',').any(|c| c == column), "{name}: {table}");
            assert!(table.lines().count() > 1, "{name}");
        }
    }
}

/// What `history` says beside a record of the made-up machine; some kinds name no machine.
fn remark(name: &str) -> Option<&'static str> {
    match name {
        "compared" | "compared-layers" | "compared-programs" | "merged" | "proof" | "simulated"
        | "ratios" | "advice" | "lint" | "trace" => Some(""),
        _ => Some("another machine: Example CPU"),
    }
}

#[test]
fn measured_cells_of_before_layers_had_intervals_are_compared_and_say_what_cannot_be_told() {
    for name in ["measured", "path"] {
        let told = iowhy(&["compare", &record(name), &record(name), "--json", "-"]).done().json();
        assert!(told["cells"].as_array().unwrap().iter().all(|c| c["verdict"] == "within-noise"), "{told}");
        let layers = told["layers"].as_array().unwrap();
        assert!(!layers.is_empty() && layers.iter().all(|l| l["verdict"] == "inconclusive"), "{layers:?}");
        assert!(layers.iter().all(|l| l["doubt"].as_str().unwrap().contains("no intervals of layers")));
    }
    // Against one with intervals: the same cells, and still only one side of each layer.
    let told = iowhy(&["compare", &record("measured"), &record("measured-layers"), "--json", "-"]);
    let told = told.done().json();
    assert!(told["layers"].as_array().unwrap().iter().all(|l| l["verdict"] == "inconclusive"), "{told}");
    let told = iowhy(&["compare", &record("measured-layers"), &record("measured-layers"), "--json", "-"]);
    let told = told.done().json();
    assert!(told["layers"].as_array().unwrap().iter().all(|l| l["verdict"] == "within-noise"), "{told}");
    for format in ["fio-json", "fio-job"] {
        iowhy(&["export", &record("measured"), "--format", format]).done();
    }
}

#[test]
fn a_run_of_a_program_is_compared_with_another() {
    let told = iowhy(&["compare", &record("watched"), &record("watched"), "--json", "-"]).done().json();
    assert_eq!(told["doubt"], "one run each");
    assert!(!told["parts"].as_array().unwrap().is_empty());
}

#[test]
fn other_kinds_are_refused_by_name() {
    for (name, ..) in
        RECORDS.iter().filter(|(_, kind, ..)| !["measurement", "watched program"].contains(kind))
    {
        let path = record(name);
        let ran: Ran = finish(binary().args(["compare", &path, &path]));
        assert!(ran.code() == 2 && ran.stderr.contains(&path) && ran.stderr.contains("hint:"), "{ran:?}");
    }
}

/// A text shows a figure that is none: a division by a median of 0, or something that is less than nothing.
fn no_number(text: &str) -> Option<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let wrong = |line: &&str| {
        let whole = |word: &str| {
            line.match_indices(word).any(|(at, _)| {
                let (before, after) = (&line[..at], &line[at + word.len()..]);
                !before.ends_with(is_word) && !after.starts_with(is_word)
            })
        };
        whole("NaN")
            || whole("nan")
            || whole("inf")
            || [" -0 %", " -0.0 %", " -0.00 %"].iter().any(|z| line.contains(z))
    };
    text.lines().find(wrong)
}

/// The same record of a run in which nothing took any time: every estimate is 0, and surely so.
fn of_nothing(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            if ["value", "low", "high"].iter().all(|key| entries.get(*key).is_some_and(Value::is_number)) {
                for key in ["value", "low", "high"] {
                    entries.insert(key.to_owned(), 0.0.into());
                }
            }
            entries.values_mut().for_each(of_nothing);
        }
        Value::Array(entries) => entries.iter_mut().for_each(of_nothing),
        _ => {}
    }
}

#[test]
fn no_format_shows_a_figure_that_is_no_number() {
    let folder = directory();
    let mut shown = 0;
    let mut look = |args: &[&str]| {
        let ran = finish(binary().args(args));
        for text in [&ran.stdout, &ran.stderr] {
            assert_eq!(no_number(text), None, "{args:?}");
        }
        assert!(matches!(ran.code(), 0..=2), "{ran:?}");
        shown += usize::from(ran.code() == 0);
    };
    for (name, ..) in RECORDS {
        let mut value: Value = serde_json::from_slice(&std::fs::read(record(name)).unwrap()).unwrap();
        of_nothing(&mut value);
        let nothing = folder.path().join(format!("{name}.json"));
        std::fs::write(&nothing, value.to_string()).unwrap();
        let (as_made, nothing) = (record(name), text(&nothing).to_owned());
        for path in [&as_made, &nothing] {
            look(&["report", path]);
            look(&["report", path, "--markdown"]);
            for format in ["csv", "openmetrics", "fio-json", "fio-job"] {
                look(&["export", path, "--format", format]);
            }
            for other in [&as_made, &nothing] {
                look(&["compare", path, other]);
                look(&["compare", path, other, "--json", "-"]);
            }
        }
    }
    look(&["history", text(folder.path()), "--all"]);
    assert!(shown > 60, "{shown} outputs were looked at");
}
