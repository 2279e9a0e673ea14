//! `iowhy tree`: every phase over a tree of its own, a tree that is there and stays as it was, a kept one that is taken up.

use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, directory, iowhy, lives_in_memory, names, text};

/// The phases of a record, by name.
fn phase<'r>(record: &'r Value, name: &str) -> &'r Value {
    let phases = record["phases"].as_array().expect("phases[]");
    phases.iter().find(|phase| phase["phase"] == name).unwrap_or_else(|| panic!("no phase {name}: {record}"))
}

fn tree(args: &[&str]) -> Ran {
    iowhy(&[&["tree", "--time", "1s", "--json", "-"], args].concat())
}

fn estimate(value: &Value) -> f64 {
    let [low, value, high] = ["low", "value", "high"].map(|key| value[key].as_f64().unwrap());
    assert!(0.0 < low && low <= value && value <= high, "{low} {value} {high}");
    value
}

#[test]
fn a_life_of_small_files_is_counted_to_the_byte_and_leaves_nothing() {
    let dir = directory();
    // Cold cannot be had in memory.
    let state = if lives_in_memory(dir.path()) { "warm" } else { "cold" };
    let args =
        [text(dir.path()), "--files", "300", "--dirs", "7", "--sizes", "930,3030,6102", "--state", state];
    for order in ["directory", "inode", "random"] {
        let record = tree(&[&args[..], &["--threads", "3", "--order", order]].concat()).measured().json();
        assert_eq!((&record["tree"]["files"], &record["tree"]["directories"]), (&300.into(), &7.into()));
        let bytes = record["tree"]["bytes"].as_u64().unwrap();
        assert_eq!(bytes, 100 * (930 + 3030 + 6102));
        let rounds = record["rounds"].as_u64().unwrap();
        assert!(rounds >= 3);
        for (name, files, moved) in [
            ("create", 300, bytes),
            ("stat", 300, 0),
            ("list", 300, 0),
            ("read", 300, bytes),
            ("rename", 300, 0),
            ("delete", 300, 0),
        ] {
            let phase = phase(&record, name);
            assert_eq!(
                (phase["files"].as_u64(), phase["bytes"].as_u64()),
                (Some(files), Some(moved)),
                "{name}"
            );
            let (first, last) = (estimate(&phase["first_done"]), estimate(&phase["last_done"]));
            assert!(first <= last && estimate(&phase["files_per_second"]) > 0.0);
            let samples = phase["samples"].as_array().unwrap();
            assert_eq!(samples.len() as u64, rounds);
            for sample in samples {
                assert_eq!(
                    (sample["files"].as_u64(), sample["bytes"].as_u64()),
                    (Some(files), Some(moved)),
                    "{name}"
                );
            }
            for call in phase["operations"].as_array().unwrap() {
                let calls = if name == "list" { 7 } else { 300 };
                assert_eq!(call["n"].as_u64(), Some(calls * rounds), "{name} {call}");
                assert!(call["p50_ns"].as_u64() <= call["max_ns"].as_u64());
            }
        }
        assert_eq!(phase(&record, "read")["state"], state);
        assert!(names(dir.path()).is_empty(), "nothing is left");
    }
}

/// Every name below a directory with what it holds.
fn contents(directory: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for name in names(directory) {
        let path = directory.join(&name);
        if path.is_symlink() {
            // What a link leads to is not below it.
            found.push((name, None));
        } else if path.is_dir() {
            found.extend(contents(&path).into_iter().map(|(below, data)| (format!("{name}/{below}"), data)));
        } else {
            found.push((name, std::fs::read(&path).ok()));
        }
    }
    found
}

#[test]
fn a_tree_that_is_there_is_only_read() {
    let dir = directory();
    for (name, bytes) in [("a/one", 10), ("a/b/two", 5000), ("three", 0)] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, vec![7u8; bytes]).unwrap();
    }
    std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
    let before = contents(dir.path());
    let from = ["--from", text(dir.path()), "--state", "warm"];
    let record = tree(&[&from[..], &["--order", "directory", "--threads", "2"]].concat()).measured().json();
    assert_eq!((&record["tree"]["files"], &record["tree"]["not_regular"]), (&3.into(), &1.into()));
    assert_eq!(phase(&record, "read")["bytes"].as_u64(), Some(5010));
    assert_eq!(record["phases"].as_array().unwrap().len(), 3, "stat, list, read");
    assert_eq!(contents(dir.path()), before);
    let refused = tree(&[&from[..], &["--phases", "read,delete"]].concat());
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr.contains("only read"), "{refused:?}");
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_kept_tree_is_taken_up_and_removed_again() {
    let dir = directory();
    let kept = dir.path().join("news");
    let args = ["--keep", text(&kept), "--files", "50", "--dirs", "5", "--sizes", "1k", "--state", "warm"];
    let made = tree(&args).measured().json();
    assert_eq!((&made["tree"]["made_now"], &made["tree"]["origin"]), (&50.into(), &"kept".into()));
    std::fs::remove_file(kept.join("d1/6")).unwrap();
    let again = tree(&args).measured().json();
    assert_eq!(again["tree"]["made_now"], 1, "only what is missing is made");
    let other = tree(&["--keep", text(&kept), "--files", "51", "--dirs", "5", "--sizes", "1k"]);
    assert!(other.code() == 1 || other.code() == 2);
    assert!(other.stderr.contains("another tree"), "{other:?}");
    std::fs::write(dir.path().join("mine"), b"data").unwrap();
    let not_ours = iowhy(&["tree", "--remove", text(dir.path())]);
    assert_eq!(not_ours.code(), 2, "{not_ours:?}");
    iowhy(&["tree", "--remove", text(&kept)]).done();
    assert_eq!(names(dir.path()), ["mine"]);
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_written() {
    let dir = directory();
    let here = text(dir.path());
    for (args, said) in [
        (&["--files", "0", here] as &[&str], "--files `0`"),
        (&["--files", "10", "--dirs", "11", here], "--dirs 11"),
        (&["--threads", "0", here], "--threads `0`"),
        (&["--files", "10", "--threads", "4", "--files-per-thread", "3", here], "--files-per-thread 3"),
        (&["--sizes", "17m", here], "16 MiB"),
        (&["--sizes", "-1", here], "--sizes"),
        (&["--order", "alphabet", here], "directory, inode, random"),
        (&["--state", "tepid", here], "cold, warm"),
        (&["--phases", "read,eat", here], "eat"),
        (&["--files", "20000000", "--sizes", "16m", here], "not enough"),
        (&["--from", "/no/such/place"], "/no/such/place"),
        (&["--remove", here], "no tree of iowhy's"),
        (&["null"], "null"),
    ] {
        let ran = tree(args);
        assert_eq!(ran.code(), 2, "{args:?} {ran:?}");
        assert!(format!("{}{}", ran.stderr, ran.stdout).contains(said), "{args:?} {ran:?}");
        assert!(names(dir.path()).is_empty(), "{args:?}");
    }
}

#[test]
fn the_screen_keeps_to_the_width_and_names_every_phase() {
    let dir = directory();
    let args = [
        "tree",
        text(dir.path()),
        "--files",
        "60",
        "--dirs",
        "3",
        "--time",
        "1s",
        "--threads",
        "2",
        "--state",
        "warm",
    ];
    let ran = iowhy(&args).measured();
    for phase in ["create", "sync", "stat", "list", "read", "rename", "delete"] {
        assert!(ran.stdout.lines().any(|line| line.starts_with(phase)), "{phase}: {}", ran.stdout);
    }
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 120), "{}", ran.stdout);
}
