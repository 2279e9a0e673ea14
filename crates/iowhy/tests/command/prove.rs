//! `iowhy prove RECORD` and `iowhy --prove -- CMD`: what is refused, what a proof holds, what is left as it was.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bad_input::{assert_refused, fingerprint};
use crate::common::{MIB, Mount, directory, full_file, iowhy, iowhy_alone, is_root, names, skipped, text};

/// Whether every call can be recorded here, which a replay needs.
fn traced() -> bool {
    let recorded = is_root() && iowhy(&["--record-calls", "--", "true"]).code() == 0;
    if !recorded {
        skipped("system calls are traced by root alone, and a replay is made of them");
    }
    recorded
}

/// Watches a program; the record lies beside the data.
fn watched(dir: &Path, options: &[&str], program: &[&str]) -> PathBuf {
    let record = dir.join("record.json");
    let all = [&["--json", text(&record)][..], options, &["--"], program].concat();
    let ran = iowhy_alone(&all);
    assert_eq!(ran.code(), 0, "{ran:?}");
    record
}

/// dd in pieces of 64 bytes, long enough to be seen.
fn small_reads(dir: &Path, options: &[&str]) -> (PathBuf, PathBuf) {
    let data = full_file(dir, "data", 16 * MIB);
    let from = format!("if={}", text(&data));
    let program = ["dd", &from, "of=/dev/null", "bs=32", "count=400000", "status=none"];
    (watched(dir, &[&["--record-calls"], options].concat(), &program), data)
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn change(record: &Path, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let mut value = read(record);
    change(&mut value);
    let path = record.with_file_name(name);
    std::fs::write(&path, value.to_string()).unwrap();
    path
}

#[test]
fn records_that_cannot_be_proved_are_refused_and_nothing_is_left() {
    let dir = directory();
    let record = watched(dir.path(), &["--tier", "none"], &["sleep", "0.05"]);
    let whole = std::fs::read(&record).unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("cut"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(at("text"), b"not JSON").unwrap();
    std::fs::write(at("other"), b"{}").unwrap();
    std::fs::write(at("bench"), br#"{"schema":1,"kind":"measurement","cells":[]}"#).unwrap();
    change(&record, "newer", |v| v["schema"] = 99.into());
    change(&record, "damaged", |v| v["profile"]["threads"] = "none".into());
    change(&record, "elsewhere", |v| v["environment"]["cpu"] = "another CPU".into());
    let before = names(dir.path());
    for (name, subject) in [
        ("missing", "cannot read"),
        ("cut", "cut off"),
        ("text", "no JSON"),
        ("other", "no record of iowhy"),
        ("bench", "another command"),
        ("newer", "format 99"),
        ("damaged", "damaged"),
        ("elsewhere", "another machine"),
        ("record.json", "no record of every call"),
    ] {
        let path = at(name);
        let ran = iowhy(&["prove", "--quiet", text(&path)]);
        assert_refused(&ran, text(&path));
        assert!(ran.stderr.contains(subject), "{name}: {ran:?}");
    }
    for rounds in ["4", "x", "100", "-1"] {
        assert_refused(&iowhy(&["prove", text(&record), "--rounds", rounds]), "--rounds");
    }
    assert_refused(&iowhy(&["prove", text(&record), "--json", text(&record)]), "--json");
    assert_refused(&iowhy(&["--prove", "."]), "--prove");
    // Without every call nothing can be replayed: it is said before the program runs.
    for without in [["--tier", "clock"].as_slice(), &["--no-counts"]] {
        let ran = iowhy(&[&["--prove"], without, &["--", "touch", text(&at("ran"))]].concat());
        assert_refused(&ran, "--prove");
    }
    assert_eq!(names(dir.path()), before);
    assert_eq!(std::fs::read(&record).unwrap(), whole);
}

/// What every proof promises.
fn assert_contract(proof: &Value, rounds: usize) {
    let estimate = |e: &Value| {
        let of = |key: &str| e[key].as_f64().unwrap_or_else(|| panic!("{key} of {e}"));
        assert!(of("low") <= of("value") && of("value") <= of("high") && of("low") > 0.0, "{e}");
        assert_eq!((e["unit"].as_str(), e["n"].as_u64()), (Some("ratio"), Some(rounds as u64)), "{e}");
    };
    estimate(&proof["baseline"]["fidelity"]);
    assert_eq!(proof["baseline"]["io_ns"].as_array().map(Vec::len), Some(rounds));
    for finding in proof["findings"].as_array().unwrap() {
        let verdict = finding["verdict"].as_str().unwrap();
        assert!(["proven", "not-confirmed", "contradicted", "inconclusive"].contains(&verdict), "{finding}");
        match &finding["measured"] {
            Value::Null => {
                assert!(finding["reason"].is_string() && verdict == "inconclusive", "{finding}");
            }
            measured => {
                estimate(measured);
                assert_eq!(finding["io_ns"].as_array().map(Vec::len), Some(rounds));
                assert!(finding["how"].is_string());
            }
        }
    }
}

/// The record has every read and write of dd, as the kernel counted them, and the plan has those of its part.
fn assert_calls_are_conserved(value: &Value, calls: u64, bytes: u64) {
    let pattern = &value["profile"]["pattern"];
    let record = &pattern["record"];
    assert_eq!(record["missing"], 0, "{record}");
    let files = pattern["files"].as_array().unwrap();
    let path = |file: &Value| file.as_u64().map_or("", |at| files[at as usize]["path"].as_str().unwrap());
    let total = |kind: &str, of: &str| {
        let totals = record["totals"].as_array().unwrap().iter();
        let ours = totals.filter(|t| t["kind"] == kind && path(&t["file"]).ends_with(of));
        ours.fold((0, 0), |sum, t| {
            (sum.0 + t["calls"].as_u64().unwrap(), sum.1 + t["bytes"].as_u64().unwrap())
        })
    };
    assert_eq!(total("read", "/data"), (calls, calls * bytes));
    assert_eq!(total("write", "/dev/null"), (calls, calls * bytes));
    let counted = value["profile"]["calls"]["calls"].as_array().unwrap();
    let all: u64 = counted.iter().map(|c| c["calls"].as_u64().unwrap()).sum();
    // Calls that do not return (exit_group, and exec itself) are in neither, or in one.
    assert!(record["calls"].as_u64().unwrap().abs_diff(all) <= 2, "{record} {all}");
    let sum = |steps: &Value, key: &str| {
        let each = |s: &Value| s[key].as_u64().unwrap_or(0) * s["count"].as_u64().unwrap_or(1);
        steps.as_array().unwrap().iter().filter(|s| !s["bytes"].is_null()).map(each).sum::<u64>()
    };
    let plan = &value["proof"]["baseline"]["plan"]["threads"][0];
    let moves: Vec<Value> = pattern["stretches"][0]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|s| ["read", "write"].contains(&s["kind"].as_str().unwrap()))
        .cloned()
        .collect();
    assert_eq!(sum(plan, "bytes"), sum(&Value::Array(moves), "bytes"));
}

/// Whether the table of verdicts is there.
fn has_table(screen: &str) -> bool {
    screen.lines().any(|line| line.split_whitespace().eq(["finding", "measured", "verdict"]))
}

#[test]
fn a_proof_right_after_the_run_is_in_the_record_and_the_files_are_as_they_were() {
    if !traced() {
        return;
    }
    let dir = directory();
    full_file(dir.path(), "data", 16 * MIB);
    let data = dir.path().join("data");
    let before = fingerprint(&data);
    let record = dir.path().join("record.json");
    let from = format!("if={}", text(&data));
    let ran = iowhy_alone(&[
        "--prove",
        "--json",
        text(&record),
        "--",
        "dd",
        &from,
        "of=/dev/null",
        "bs=32",
        "count=400000",
        "status=none",
    ]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, ""), "{ran:?}");
    assert!(ran.stderr.contains("replayed: dd") && has_table(&ran.stderr), "{}", ran.stderr);
    let value = read(&record);
    assert_contract(&value["proof"], 9);
    assert_calls_are_conserved(&value, 400_000, 32);
    assert_eq!(fingerprint(&data), before);
    assert_eq!(names(dir.path()), ["data", "record.json"]);
    // The repaired run makes a call for each 64 KiB: what it gains on any machine is more than nothing.
    let findings = value["proof"]["findings"].as_array().unwrap();
    let small = findings.iter().find(|f| f["id"] == "small-requests").unwrap_or_else(|| panic!("{value}"));
    assert!(small["measured"]["value"].as_f64().is_some_and(|gain| gain > 1.0), "{small}");
    // The same record once more, with another number of rounds.
    let again = iowhy_alone(&["prove", text(&record), "--rounds", "5", "--json", "-"]).json();
    assert_eq!((again["schema"].as_u64(), again["seed"].as_u64()), (Some(1), Some(1)));
    assert_contract(&again, 5);
    assert_eq!(fingerprint(&data), before);
}

#[test]
fn files_that_were_changed_or_are_gone_are_named_and_nothing_is_lost() {
    if !traced() {
        return;
    }
    let dir = directory();
    let (record, data) = small_reads(dir.path(), &[]);
    std::fs::OpenOptions::new()
        .append(true)
        .open(&data)
        .and_then(|mut f| std::io::Write::write_all(&mut f, b"x"))
        .unwrap();
    let told = |word: &str| {
        let ran = iowhy_alone(&["prove", text(&record)]);
        assert_eq!(ran.code(), 1, "{ran:?}");
        let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(text(&data)) && said.contains(word), "{ran:?}");
        assert!(said.contains("inconclusive"), "{ran:?}");
    };
    told("changed");
    std::fs::remove_file(&data).unwrap();
    told("No such file");
    assert_eq!(names(dir.path()), ["record.json"]);
}

#[test]
fn a_disk_without_room_for_a_replay_is_named_and_stays_clean() {
    if !traced() {
        return;
    }
    let Some(small) = Mount::tmpfs("size=24m") else { return };
    let dir = directory();
    let log = format!("of={}", text(&small.path().join("log")));
    let program = ["dd", "if=/dev/zero", &log, "bs=64", "count=250000", "status=none"];
    let record = watched(dir.path(), &["--record-calls"], &program);
    std::fs::remove_file(small.path().join("log")).unwrap();
    let room = rustix::fs::statvfs(small.path()).unwrap();
    // A few pages would do for a short stretch of calls, and how long a recorded one is depends on the machine.
    let filler = vec![7u8; (room.f_bavail * room.f_frsize) as usize];
    std::fs::write(small.path().join("full"), filler).unwrap();
    let ran = iowhy_alone(&["prove", text(&record)]);
    assert_eq!(ran.code(), 1, "{ran:?}");
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(text(&small.path().join("log"))) && said.contains("make room"), "{ran:?}");
    assert_eq!(names(small.path()), ["full"]);
}
