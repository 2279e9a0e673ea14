//! `iowhy mrc`: known curves come out as tables, words and JSON; what cannot be computed is refused by name.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::bad_input::assert_refused;
use crate::common::{binary, directory, iowhy, text};

/// A file with one id a line.
fn trace_of(ids: impl IntoIterator<Item = u64>) -> (TempDir, PathBuf) {
    let dir = directory();
    let path = dir.path().join("trace.txt");
    let lines: String = ids.into_iter().map(|id| format!("{id}\n")).collect();
    std::fs::write(&path, lines).unwrap();
    (dir, path)
}

/// Five times round a hundred objects.
fn loops() -> (TempDir, PathBuf) {
    trace_of((0..500).map(|i| i % 100 + 1))
}

/// The miss ratio of a policy at a size.
fn ratio(record: &Value, policy: &str, blocks: u64) -> f64 {
    let curve = record["curves"].as_array().unwrap().iter().find(|c| c["policy"] == policy).unwrap();
    let points = curve["points"].as_array().unwrap();
    assert!(points.windows(2).all(|two| two[0]["blocks"].as_u64() < two[1]["blocks"].as_u64()));
    points.iter().find(|p| p["blocks"] == blocks).unwrap_or_else(|| panic!("no {blocks}: {points:?}"))["miss_ratio"]
        .as_f64()
        .unwrap()
}

#[test]
fn a_loop_is_a_cliff_in_table_words_and_record() {
    let (_dir, path) = loops();
    let args = ["mrc", text(&path), "--objects", "--size", "99,100", "--policy", "lru,fifo,belady"];
    let screen = iowhy(&args).done();
    let row = |size: &str| {
        let is_row = |line: &&str| line.trim_start().starts_with(size) && line.contains(" %  ");
        screen.stdout.lines().find(is_row).unwrap().to_owned()
    };
    assert!(
        row("99 objects").contains("1.0000") && row("100 objects").contains("0.2000"),
        "{}",
        screen.stdout
    );
    assert!(
        screen
            .stdout
            .contains("between 99 objects and 100 objects the miss ratio of LRU falls from 1.00 to 0.20")
    );
    assert!(screen.stdout.lines().all(|line| line.chars().count() <= 100), "{}", screen.stdout);

    let record = iowhy(&[&args[..], &["--json", "-"]].concat()).done().json();
    assert_eq!((record["command"].as_str(), record["schema"].as_u64()), (Some("mrc"), Some(1)));
    assert_eq!((record["references"].as_u64(), record["distinct"].as_u64()), (Some(500), Some(100)));
    assert_eq!((ratio(&record, "lru", 99), ratio(&record, "lru", 100)), (1.0, 0.2));
    assert_eq!((ratio(&record, "fifo", 99), ratio(&record, "fifo", 100)), (1.0, 0.2));
    assert!(ratio(&record, "belady", 99) < 0.3);
    assert_eq!(record["lru_shape"]["cliffs"][0]["middle_blocks"], 100);
    assert_eq!(record["lru_shape"]["cliffs"][0]["like_a_loop"], true);
}

#[test]
fn stdin_gives_what_the_file_gives() {
    let (_dir, path) = loops();
    let args = |file: &str| ["mrc", file, "--policy", "all", "--json", "-"].map(str::to_owned);
    let from_file = iowhy(&args(text(&path)).each_ref().map(String::as_str)).done().json();
    let output = binary()
        .args(args("-"))
        .stdin(Stdio::from(std::fs::File::open(&path).unwrap()))
        .output()
        .expect("the binary starts");
    let from_stdin: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(from_file["curves"], from_stdin["curves"]);
    assert_eq!(from_file["curves"].as_array().unwrap().len(), 10);
}

#[test]
fn requests_are_split_into_blocks_and_a_block_device_trace_is_called_that() {
    let dir = directory();
    let path = dir.path().join("t.disksim");
    // Sixteen sectors at a time, over and over the same 64 KiB.
    let lines: String = (0..64).map(|i| format!("{}.0 0 {} 16 1\n", i, i % 8 * 16)).collect();
    std::fs::write(&path, lines).unwrap();
    let args =
        ["mrc", text(&path), "--format", "disksim", "--policy", "lru", "--size", "60k,64k", "--json", "-"];
    let ran = iowhy(&args).done();
    let record = ran.json();
    assert_eq!((record["references"].as_u64(), record["distinct"].as_u64()), (Some(128), Some(16)));
    assert_eq!((ratio(&record, "lru", 15), ratio(&record, "lru", 16)), (1.0, 0.125));
    assert_eq!(record["below_page_cache"], true);
    assert_eq!(record["warnings"][0]["code"], "below-page-cache");
    assert!(ran.stderr.contains("below a page cache"), "{}", ran.stderr);
}

#[test]
fn a_sample_says_how_far_off_it_may_be() {
    let (_dir, path) = trace_of((0..200_000u64).map(|i| (i * i + 7 * i) % 40_009));
    let args = ["mrc", text(&path), "--objects", "--size", "10%", "--policy", "lru,sieve", "--json", "-"];
    let exact = iowhy(&args).done().json();
    let sampled = iowhy(&[&args[..], &["--sample", "10%"]].concat()).done().json();
    for policy in ["lru", "sieve"] {
        let at = |record: &Value| {
            let curves = record["curves"].as_array().unwrap();
            let curve = curves.iter().find(|curve| curve["policy"] == policy).unwrap();
            curve["points"].as_array().unwrap().iter().find(|point| point["asked"] == true).unwrap().clone()
        };
        let (exact, sampled) = (at(&exact), at(&sampled));
        assert_eq!((exact["basis"].as_str(), sampled["basis"].as_str()), (Some("exact"), Some("sampled")));
        let off = (exact["miss_ratio"].as_f64().unwrap() - sampled["miss_ratio"].as_f64().unwrap()).abs();
        let error = sampled["sampling_error"].as_f64().unwrap();
        assert!(off < 0.1 && error > 0.0 && error < 0.5, "{policy}: off {off}, said {error}");
    }
    let screen = iowhy(&["mrc", text(&path), "--objects", "--sample", "10%"]).done().stdout;
    assert!(screen.contains('±') && screen.contains("95 % interval"), "{screen}");
}

#[test]
fn what_cannot_be_computed_is_refused_by_name() {
    let (dir, path) = loops();
    for (options, subject) in [
        (["--size", "0"].as_slice(), "--size"),
        (&["--size", "-1"], "--size"),
        (&["--size", "1k"], "--size"),
        (&["--size", "64MiB", "--objects"], "--objects"),
        (&["--block", "0"], "--block"),
        (&["--policy", "best"], "--policy"),
        (&["--sample", "2"], "--sample"),
        (&["--sample", "1%", "--policy", "belady"], "--sample"),
    ] {
        assert_refused(&iowhy(&[&["mrc", text(&path)], options].concat()), subject);
    }
    let missing = dir.path().join("missing");
    assert_refused(&iowhy(&["mrc", text(&missing)]), text(&missing));
    let nothing = dir.path().join("opens.csv");
    std::fs::write(&nothing, "time_s,op,id,size\n1,open,5,0\n2,close,5,0\n").unwrap();
    let ran = iowhy(&["mrc", text(&nothing), "--format", "csv"]);
    assert!(ran.code() == 1 && ran.stderr.contains("none of its 2 requests counts"), "{ran:?}");
}

#[test]
fn a_sample_that_tells_nothing_says_so() {
    let (_dir, path) = loops();
    let run = |sample: &str| iowhy(&["mrc", text(&path), "--objects", "--sample", sample, "--json", "-"]);
    assert_refused(&run("1e-9"), "sample is empty");
    // Ten of a hundred objects: a ratio, but nobody can tell how far off it is.
    let record = run("10%").done().json();
    assert!(record["curves"][0]["points"][0]["sampling_error"].is_null(), "{record}");
    assert_eq!(record["warnings"][0]["code"], "small-sample");
    let whole = run("100%").done().json();
    assert_eq!(whole["curves"][0]["points"][0]["basis"], "exact");
}

#[test]
fn few_requests_cannot_fill_the_memory() {
    let dir = directory();
    let path = dir.path().join("wide.csv");
    let lines: String = (0..200u64).map(|i| format!("{i},1,{},{}\n", i << 30, 1u64 << 30)).collect();
    std::fs::write(&path, format!("time,id,offset,size\n{lines}")).unwrap();
    let ran = iowhy(&["mrc", text(&path), "--policy", "lru"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr.contains("--sample") && ran.stderr.contains("--block"), "{}", ran.stderr);
    iowhy(&["mrc", text(&path), "--policy", "lru", "--block", "1m"]).done();
}

/// One object of 4 GiB read again and again: few blocks, and a million references a request.
#[test]
fn few_requests_cannot_take_minutes() {
    let dir = directory();
    let path = dir.path().join("large.csv");
    let lines: String = (0..2000u64).map(|i| format!("{i},1,0,{}\n", 1u64 << 32)).collect();
    std::fs::write(&path, format!("time,id,offset,size\n{lines}")).unwrap();
    for more in [&[][..], &["--sample", "1%"]] {
        let ran = iowhy(&[&["mrc", text(&path), "--policy", "lru"], more].concat());
        assert_refused(&ran, "references to blocks of 4 KiB");
        assert!(ran.stderr.contains("--block") && ran.stderr.contains("--objects"), "{}", ran.stderr);
    }
    iowhy(&["mrc", text(&path), "--policy", "lru", "--objects"]).done();
    iowhy(&["mrc", text(&path), "--policy", "lru", "--block", "1048576k"]).done();
}
