//! The JSON that other programs rely on: every promised key, its type and its unit, on a real file.

use serde_json::Value;

use crate::common::{directory, iowhy, names, record_of, text};
use crate::record::{cells, number, words};

/// What a key must hold. `Maybe` is for what a machine may not be able to tell: `null` or the type.
#[derive(Clone, Copy, Debug)]
enum Type {
    Whole,
    Number,
    Words,
    Flag,
    List,
    Object,
    Estimate(&'static str),
    MaybeWhole,
    MaybeNumber,
    MaybeEstimate(&'static str),
}

use Type::{Estimate, Flag, List, MaybeEstimate, MaybeNumber, MaybeWhole, Number, Object, Whole, Words};

const COMMON: [(&str, Type); 10] = [
    ("schema", Whole),
    ("kind", Words),
    ("iowhy", Words),
    ("command", Words),
    ("environment", Object),
    ("warnings", List),
    ("cells", List),
    ("seed", Whole),
    ("rounds", Whole),
    ("interrupted", Flag),
];

const ENVIRONMENT: [(&str, Type); 5] =
    [("kernel", Words), ("cpu", Words), ("cpus", Whole), ("memory_bytes", Whole), ("file_system", Words)];

/// Present only where there is one device under the file.
const DEVICE: [(&str, Type); 3] = [("device", Words), ("scheduler", Words), ("read_ahead_bytes", Whole)];

const CELL: [(&str, Type); 19] = [
    ("key", Words),
    ("target", Words),
    ("method", Words),
    ("direction", Words),
    ("pattern", Words),
    ("state", Words),
    ("state_verified", Flag),
    ("block_bytes", Whole),
    ("threads", Whole),
    ("depth", Whole),
    ("touch", Words),
    ("time_per_request", MaybeEstimate("ns")),
    ("throughput", MaybeEstimate("bytes/s")),
    ("requests_per_second", MaybeEstimate("1/s")),
    ("cpu_ns_per_request", MaybeNumber),
    ("claimed_bytes", Whole),
    ("device_bytes", MaybeWhole),
    ("verdict", Words),
    ("samples", List),
];

fn assert_keys(place: &str, object: &Value, keys: &[(&str, Type)]) {
    for &(key, expected) in keys {
        let value = object.get(key).unwrap_or_else(|| panic!("{place} has no `{key}`"));
        assert!(fits(value, expected), "{place}.{key} is no {expected:?}: {value}");
    }
}

fn fits(value: &Value, expected: Type) -> bool {
    match expected {
        Whole => value.is_u64(),
        Number => value.is_number(),
        Words => value.as_str().is_some_and(|text| !text.is_empty()),
        Flag => value.is_boolean(),
        List => value.is_array(),
        Object => value.is_object(),
        Estimate(unit) => {
            ["value", "low", "high"].iter().all(|key| value[key].is_number())
                && value["unit"] == unit
                && value["n"].is_u64()
        }
        MaybeWhole => value.is_null() || fits(value, Whole),
        MaybeNumber => value.is_null() || fits(value, Number),
        MaybeEstimate(unit) => value.is_null() || fits(value, Estimate(unit)),
    }
}

fn assert_common(record: &Value) {
    assert_keys("record", record, &COMMON);
    assert_eq!(record["schema"], 1);
    assert_keys("environment", &record["environment"], &ENVIRONMENT);
    for (key, expected) in DEVICE {
        let value = &record["environment"][key];
        assert!(value.is_null() || fits(value, expected), "environment.{key}: {value}");
    }
    assert!(!cells(record).is_empty());
    for cell in cells(record) {
        assert_keys(words(&cell["key"]), cell, &CELL);
        for sample in cell["samples"].as_array().unwrap() {
            assert_keys(
                "sample",
                sample,
                &[("requests", Whole), ("claimed_bytes", Whole), ("wall_ns", Whole)],
            );
        }
    }
    assert_units(record, "record");
}

/// A key that ends in a unit holds a number (or nothing, a list or an object of numbers).
fn assert_units(value: &Value, place: &str) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if ["_ns", "_bytes", "_percent", "_per_second"].iter().any(|unit| key.ends_with(unit)) {
                    assert!(!inner.is_string() && !inner.is_boolean(), "{place}.{key}: {inner}");
                }
                assert_units(inner, &format!("{place}.{key}"));
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| assert_units(inner, place)),
        _ => {}
    }
}

#[test]
fn bench_keeps_the_contract() {
    let dir = directory();
    let args = ["bench", text(dir.path()), "--size", "4m", "--runtime", "50ms", "--bs", "4k,64k"];
    assert_common(&record_of(&args));
    assert!(names(dir.path()).is_empty());
}

#[test]
fn the_path_report_keeps_the_contract() {
    let dir = directory();
    let record = record_of(&[text(dir.path()), "--time", "2s", "--size", "16m"]);
    assert_common(&record);
    assert_keys("limit", &record["limit"], &[("id", Words), ("sentence", Words), ("evidence", List)]);
    let known = ["cpu", "one-thread", "depth", "copy-bandwidth", "device", "throttle", "unknown"];
    assert!(known.contains(&words(&record["limit"]["id"])), "{}", record["limit"]);
    let model = record["model"].as_object().expect("model{}");
    assert!(["call", "filesystem", "cache", "copy"].iter().all(|layer| model.contains_key(*layer)));
    for (layer, cost) in model {
        let keys = [("per_call_ns", Number), ("per_page_ns", Number), ("per_byte_ns", Number)];
        assert_keys(layer, cost, &keys);
        assert_keys(layer, cost, &[("low", Object), ("high", Object)]);
        assert_keys(layer, &cost["low"], &keys);
    }
    let held_out = record["held_out"].as_array().expect("held_out[]");
    assert!(!held_out.is_empty());
    for held in held_out {
        let keys = [("block_bytes", Whole), ("predicted_ns", Number), ("measured_ns", Number)];
        assert_keys("held_out", held, &keys);
    }
    let split = cells(&record).iter().filter_map(|cell| cell["layers"].as_array());
    assert!(split.clone().count() > 0, "no cell has its time split");
    for layer in split.flatten() {
        assert_keys("layers", layer, &[("id", Words), ("busy_ns", Number), ("wait_ns", Number)]);
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn json_on_stdout_is_one_line_and_nothing_else() {
    let ran = iowhy(&["bench", "scripted", "--json", "-"]).done();
    ran.json();
    assert_eq!((ran.stdout.lines().count(), ran.stdout.ends_with('\n')), (1, true));
    // A warning goes to stderr and is in the record too.
    let ran = iowhy(&["bench", "scripted", "--method", "pread", "--iodepth", "4", "--json", "-"]).done();
    assert!(ran.stderr.starts_with("warning: depth 4 has no effect"), "{}", ran.stderr);
    assert_eq!(ran.json()["warnings"][0]["code"], "depth-without-effect");
}

#[test]
fn json_in_a_file_leaves_the_screen_and_replaces_what_was_there() {
    let dir = directory();
    let file = dir.path().join("record.json");
    std::fs::write(&file, "x".repeat(1 << 20)).unwrap();
    let ran = iowhy(&["bench", "scripted", "--json", text(&file)]).done();
    assert!(ran.stdout.contains("method") && !ran.stdout.contains('{'), "{}", ran.stdout);
    let record: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_common_scripted(&record);
    assert_eq!(names(dir.path()), ["record.json"]);
}

fn assert_common_scripted(record: &Value) {
    for cell in cells(record) {
        assert_keys(words(&cell["key"]), cell, &CELL);
        assert!(number(&cell["time_per_request"]["value"]) > 0.0);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let dir = directory();
    let target = dir.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let missing = dir.path().join("missing/record.json");
    for option in ["--json", "--save-model"] {
        // A size that cannot be had: reaching the target at all would be another error.
        let ran = iowhy(&[text(&target), "--size", "1e", option, text(&missing)]);
        assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""));
        assert!(ran.stderr.starts_with(&format!("error: cannot write `{option} ")), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
    assert_eq!(names(dir.path()), ["target"]);
    // An output that was made for nothing goes again.
    let record = dir.path().join("record.json");
    let ran = iowhy(&[text(&dir.path().join("nowhere")), "--json", text(&record)]);
    assert_eq!(ran.code(), 2);
    assert_eq!(names(dir.path()), ["target"]);
}

#[test]
fn a_cross_check_is_recorded_where_stacks_may_be_sampled() {
    let dir = directory();
    let args =
        ["bench", text(dir.path()), "--layers", "--size", "16m", "--runtime", "100ms", "--state", "warm"];
    let record = record_of(&args);
    if let Some(why) = record["cross_check_limitation"].as_str() {
        println!("skipped: {why}");
        return;
    }
    let checks: Vec<&Value> = cells(&record).iter().map(|cell| &cell["cross_check"]).collect();
    assert!(checks.iter().any(|w| w.is_object()), "{record}");
    for cross_check in checks.into_iter().filter(|w| w.is_object()) {
        assert_keys(
            "cross_check",
            cross_check,
            &[
                ("tier", Words),
                ("samples", Whole),
                ("requests", Whole),
                ("time_ns", Number),
                ("layers", List),
            ],
        );
        assert!(
            ["confirmed", "disagrees", "inconclusive"].contains(&words(&cross_check["verdict"])),
            "{cross_check}"
        );
        // What cannot be told says why.
        assert_eq!(
            cross_check["verdict"] == "inconclusive",
            cross_check["reason"].is_string(),
            "{cross_check}"
        );
        let mut busy = 0.0;
        for part in cross_check["layers"].as_array().unwrap() {
            assert_keys(
                "part",
                part,
                &[("id", Words), ("seen", Estimate("ns")), ("events", Whole), ("result", Words)],
            );
            if !words(&part["id"]).ends_with("-wait") {
                busy += number(&part["seen"]["value"]);
            }
        }
        // Shares of the samples sum to the CPU time, which is part of the whole.
        assert!(busy <= number(&cross_check["time_ns"]) * (1.0 + 1e-9), "{cross_check}");
    }
}
