//! Files for the Firefox Profiler and Perfetto: whole files, also without rights, that hold no more time than the record.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::common::{directory, iowhy, text};

/// Writes 1 MiB and makes it durable, computes, sleeps, and has a child.
const PROGRAM: &str = "dd if=/dev/zero of=\"$0\" bs=64k count=16 conv=fsync 2>/dev/null; \
                       i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05";

fn decompressed(path: &Path) -> Value {
    let mut content = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut content).unwrap();
    serde_json::from_str(&content).unwrap()
}

fn sum(of: &Value) -> f64 {
    of.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).sum()
}

/// Packets of a trace: their number. Fails where the file is not whole.
fn packets(mut trace: &[u8]) -> usize {
    let mut count = 0;
    while let [0x0a, rest @ ..] = trace {
        let digits = rest.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let length =
            rest[..digits].iter().rev().fold(0, |length, byte| length << 7 | usize::from(byte & 0x7f));
        trace = &rest[digits + length..];
        count += 1;
    }
    assert!(trace.is_empty(), "{} bytes are no packet", trace.len());
    count
}

#[test]
fn files_are_whole_at_each_tier_and_hold_no_more_time_than_the_record() {
    let dir = directory();
    let path = |name: &str| dir.path().join(name);
    let (json, profile, trace, data) = (path("r.json"), path("p.json.gz"), path("t.pftrace"), path("data"));
    for tier in ["none", "stacks", "clock", "observer"] {
        let files = ["--json", text(&json), "--profile", text(&profile), "--perfetto", text(&trace)];
        let options = [&files[..], &["--tier", tier, "--no-calibrate"]].concat();
        iowhy(&[&options[..], &["--", "sh", "-c", PROGRAM, text(&data)]].concat()).done();
        let record: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let shown = decompressed(&profile);
        let meta = &shown["meta"];
        assert_eq!(meta["preprocessedProfileVersion"], 66);
        assert!(meta["product"].as_str().unwrap().starts_with("sh -c"), "{meta}");
        let threads = shown["threads"].as_array().unwrap();
        let recorded_ms: f64 = threads.iter().map(|thread| sum(&thread["samples"]["weight"])).sum();
        let thread_ms = record["thread_s"].as_f64().unwrap() * 1e3;
        assert!(recorded_ms <= thread_ms * (1.0 + 1e-6), "{tier}: {recorded_ms} of {thread_ms} ms");
        // Each sample of the clock is there; the rest are waits, and running time that no sample hit.
        let samples: u64 = record["profile"]["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|thread| thread["samples"].as_u64().unwrap())
            .sum();
        let rows: u64 = threads.iter().map(|t| t["samples"]["length"].as_u64().unwrap()).sum();
        assert!(rows >= samples, "{tier}: {samples} samples in {rows} rows");
        assert!(packets(&std::fs::read(&trace).unwrap()) > 2);
        let warned = record["warnings"].as_array().unwrap().iter().any(|w| w["code"] == "no-states-by-time");
        assert_eq!(warned, recorded_ms == 0.0, "{tier}: {}", record["warnings"]);
    }
}

#[test]
fn a_process_that_runs_already_has_them_too_and_a_name_says_whether_they_are_compressed() {
    let dir = directory();
    let (profile, trace) = (dir.path().join("p.json"), dir.path().join("t.pftrace.gz"));
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = other.id().to_string();
    let files = ["--profile", text(&profile), "--perfetto", text(&trace)];
    let ran = iowhy(&[&["attach", &pid, "--time", "200ms"][..], &files].concat());
    other.kill().unwrap();
    other.wait().unwrap();
    ran.done();
    let shown: Value = serde_json::from_str(&std::fs::read_to_string(&profile).unwrap()).unwrap();
    assert_eq!(shown["threads"][0]["tid"].as_u64(), Some(u64::from(other.id())));
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(&trace).unwrap()).read_to_end(&mut content).unwrap();
    assert!(packets(&content) > 2);
}
