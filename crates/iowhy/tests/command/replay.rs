//! `iowhy replay RECORD --on DIR,DIR`: what is refused, what each place holds, and that nothing is left.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bad_input::{assert_refused, fingerprint};
use crate::common::{MIB, Mount, directory, full_file, iowhy, iowhy_alone, is_root, names, skipped, text};

/// Runs a program with every call recorded; the record lies beside the data. `None`: not here.
fn recorded(dir: &Path, program: &[&str]) -> Option<PathBuf> {
    if !is_root() || iowhy(&["--record-calls", "--", "true"]).code() != 0 {
        skipped("system calls are traced by root alone, and a replay is made of them");
        return None;
    }
    let record = dir.join("record.json");
    let ran = iowhy_alone(&[&["--record-calls", "--json", text(&record), "--"], program].concat());
    assert_eq!(ran.code(), 0, "{ran:?}");
    Some(record)
}

/// dd in small pieces from a file in `dir`: reading takes longer than starting dd, also where the machine is busy.
fn reads(dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let data = full_file(dir, "data", 16 * MIB);
    let from = format!("if={}", text(&data));
    let record = recorded(dir, &["dd", &from, "of=/dev/null", "bs=1024", "status=none"])?;
    Some((record, data))
}

fn replayed(record: &Path, on: &[&Path], code: i32) -> Value {
    let on: Vec<&str> = on.iter().map(|dir| text(dir)).collect();
    let ran = iowhy_alone(&["replay", text(record), "--on", &on.join(","), "--rounds", "5", "--json", "-"]);
    assert_eq!(ran.code(), code, "{ran:?}");
    ran.json()
}

/// The figures of a place: each round, with an interval around the median.
fn assert_measured(place: &Value, keys: &[&str]) {
    assert_eq!(place["io_ns"].as_array().map(Vec::len), Some(5), "{place}");
    for key in keys {
        let of = |end: &str| place[key][end].as_f64().unwrap_or_else(|| panic!("{key}: {place}"));
        assert!(0.0 < of("low") && of("low") <= of("value") && of("value") <= of("high"), "{key}: {place}");
    }
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let dir = directory();
    let record = dir.path().join("record.json");
    let ran = iowhy(&["--tier", "none", "--json", text(&record), "--", "sleep", "0.05"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let here = text(dir.path());
    let none = dir.path().join("none");
    let nowhere = iowhy(&["replay", text(&record)]);
    assert!(nowhere.code() == 2 && nowhere.stderr.contains("--on"), "{nowhere:?}");
    assert_refused(&iowhy(&["replay", text(&record), "--on", text(&none)]), text(&none));
    assert_refused(&iowhy(&["replay", text(&record), "--on", text(&record)]), "no directory");
    assert_refused(&iowhy(&["replay", text(&record), "--on", here, "--rounds", "4"]), "--rounds");
    assert_refused(&iowhy(&["replay", text(&none), "--on", here]), text(&none));
    assert_refused(&iowhy(&["replay", text(&record), "--on", here]), "no record of every call");
    assert_refused(&iowhy(&["replay", text(&record), "--on", here, "--json", text(&record)]), "--json");
    assert_eq!(names(dir.path()), ["record.json"]);
}

#[test]
fn the_calls_are_replayed_in_each_directory_and_nothing_is_left() {
    let dir = directory();
    let Some((record, data)) = reads(dir.path()) else { return };
    let Some(memory) = Mount::tmpfs("size=100m") else { return };
    let before = fingerprint(&data);
    let value = replayed(&record, &[dir.path(), memory.path()], 0);
    assert_eq!((value["kind"].as_str(), value["schema"].as_u64()), (Some("replay"), Some(1)));
    let places = value["places"].as_array().unwrap();
    assert_eq!(places.len(), 3, "{value}");
    assert!(places[0]["directory"].is_null() && places[0]["over_here"].is_null());
    assert_eq!(places[2]["file_system"], "tmpfs");
    assert_measured(&places[0], &["io", "over_recorded"]);
    assert_measured(&places[1], &["io", "over_recorded", "over_here"]);
    assert_measured(&places[2], &["io", "over_recorded", "over_here"]);
    // dd reads 16,384 blocks and the end of the file, and writes them; some reads more load its libraries.
    assert!((32_769..32_900).contains(&value["calls"].as_u64().unwrap()), "{}", value["calls"]);
    assert_eq!(fingerprint(&data), before);
    assert_eq!(names(dir.path()), ["data", "record.json"]);
    assert!(names(memory.path()).is_empty());
    // A page of the record.
    let saved = dir.path().join("elsewhere.json");
    std::fs::write(&saved, value.to_string()).unwrap();
    let page = iowhy(&["report", text(&saved), "--markdown", "-o", "-"]);
    assert_eq!(page.code(), 0, "{page:?}");
    assert!(page.stdout.contains("(tmpfs)"), "{page:?}");
}

#[test]
fn durable_writes_cost_less_where_there_is_no_device() {
    let dir = directory();
    let Some(memory) = Mount::tmpfs("size=100m") else { return };
    let log = format!("of={}", text(&dir.path().join("log")));
    let program = ["dd", "if=/dev/zero", &log, "bs=4096", "count=300", "oflag=dsync", "status=none"];
    let Some(record) = recorded(dir.path(), &program) else { return };
    let file = std::fs::File::open(&record).unwrap();
    if rustix::fs::fstatfs(&file).unwrap().f_type as u32 == 0x0102_1994 {
        return skipped("the directory of the tests is in memory, too");
    }
    let value = replayed(&record, &[memory.path()], 0);
    let there = &value["places"][1]["over_here"];
    assert!(there["high"].as_f64().is_some_and(|ratio| ratio < 1.0), "{value}");
}

#[test]
fn where_the_program_ran_its_files_may_be_gone() {
    let dir = directory();
    let Some((record, data)) = reads(dir.path()) else { return };
    std::fs::remove_file(&data).unwrap();
    let value = replayed(&record, &[dir.path()], 0);
    let places = value["places"].as_array().unwrap();
    assert!(places[0]["reason"].as_str().is_some_and(|why| why.contains("No such file")), "{value}");
    assert_measured(&places[1], &["io", "over_recorded"]);
    // Without a replay where it ran nobody knows what the rest of the run is.
    assert!(places[1]["wall"].is_null() && places[1]["reason"].is_string(), "{value}");
}

#[test]
fn a_directory_without_room_is_named_and_the_others_are_replayed() {
    let dir = directory();
    let Some((record, _)) = reads(dir.path()) else { return };
    let Some(small) = Mount::tmpfs("size=24m") else { return };
    let value = replayed(&record, &[small.path(), dir.path()], 1);
    let places = value["places"].as_array().unwrap();
    assert!(places[1]["reason"].as_str().is_some_and(|why| why.contains("make room")), "{value}");
    assert_measured(&places[2], &["io", "over_recorded", "over_here"]);
    assert!(names(small.path()).is_empty());
}
