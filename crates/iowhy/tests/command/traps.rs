//! The wrong numbers that other tools print without a warning, each provoked here, with what we say beside it.
//!
//! Runs that lean on a device's counters are made alone: another test's traffic would be another program's.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use crate::bad_input::assert_refused;
use crate::common::{
    MIB, directory, full_file, iowhy, iowhy_alone, lives_in_memory, record_of, rows, skipped, text,
};
use crate::record::{cell, cells, holds_together, number, only_cell, same, whole, words};

/// A run by itself; the record holds together.
fn alone(args: &[&str]) -> Value {
    let record = iowhy_alone(&[args, &["--json", "-"]].concat()).measured().json();
    holds_together(&record);
    record
}

/// Whether the record can be held against a device at all; said aloud if not.
fn has_device(record: &Value) -> bool {
    if record["targets"][0]["memory_backed"] == true {
        skipped("$TMPDIR lives in memory");
        return false;
    }
    let counted = cells(record).iter().all(|cell| cell["device_bytes"].is_u64());
    if !counted {
        skipped("the device's counters cannot be read here");
    }
    counted
}

fn warns(record: &Value, code: &str) -> bool {
    record["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == code)
}

fn only_zeros(directory: &Path, name: &str, written: bool) -> Option<std::path::PathBuf> {
    let path = directory.join(name);
    let file = File::create(&path).unwrap();
    if !written {
        file.set_len(8 * MIB).unwrap();
    } else if let Err(error) = fallocate(&file, FallocateFlags::empty(), 0, 8 * MIB) {
        skipped(&format!("this file system cannot allocate ahead: {error}"));
        return None;
    }
    Some(path)
}

/// Others: 26 to 41 GB/s from a disk that moved nothing.
#[test]
fn a_file_that_was_never_written_is_not_reported_as_a_fast_device() {
    let dir = directory();
    let Some(file) = only_zeros(dir.path(), "allocated", true) else { return };
    for state in ["direct", "cold"] {
        let args = ["bench", "--state", state, "--bs", "64k", "--runtime", "50ms", text(&file)];
        let record = alone(&args);
        if !has_device(&record) {
            return;
        }
        if record["targets"][0]["unwritten_bytes"] != 8 * MIB {
            return skipped("this file system does not tell unwritten extents");
        }
        let cell = only_cell(&record);
        assert_ne!(cell["verdict"], "ok", "{}", cell["bytes_verdict"]);
        assert!(whole(&cell["device_bytes"]) < whole(&cell["claimed_bytes"]), "{}", cell["bytes_verdict"]);
        assert!(warns(&record, "unwritten-extents"), "{}", record["warnings"]);
        assert_eq!(iowhy_alone(&args).code(), 1);
    }
}

#[test]
fn a_hole_is_not_reported_as_a_fast_device() {
    let dir = directory();
    let Some(file) = only_zeros(dir.path(), "sparse", false) else { return };
    let record = alone(&["bench", "--direct", "--bs", "64k", "--runtime", "50ms", text(&file)]);
    if !has_device(&record) {
        return;
    }
    assert_eq!(record["targets"][0]["hole_bytes"], 8 * MIB);
    let cell = only_cell(&record);
    assert_ne!(cell["verdict"], "ok", "{}", cell["bytes_verdict"]);
    assert!(warns(&record, "holes"), "{}", record["warnings"]);
}

/// Others: four jobs claim 4096 MiB, the device read 1024 MiB. Our threads share the file out between them.
#[test]
fn four_threads_over_one_file_claim_its_bytes_once() {
    let dir = directory();
    if lives_in_memory(dir.path()) {
        return skipped("$TMPDIR lives in memory");
    }
    let file = full_file(dir.path(), "file", 8 * MIB);
    let record = alone(&["bench", "--state", "cold", "--threads", "4", "--once", "--bs", "64k", text(&file)]);
    for sample in only_cell(&record)["samples"].as_array().unwrap() {
        assert_eq!(whole(&sample["claimed_bytes"]), 8 * MIB, "each block once, by one of the threads");
    }
}

/// The same trap with the file named four times: the device's bytes are not evidence for each of them.
#[test]
fn one_file_named_four_times_is_not_four_cold_reads() {
    let dir = directory();
    if lives_in_memory(dir.path()) {
        return skipped("$TMPDIR lives in memory");
    }
    let file = full_file(dir.path(), "file", 8 * MIB);
    let targets = [text(&file); 4].join(":");
    let record = alone(&["bench", "--state", "cold", "--once", "--bs", "64k", &targets]);
    if !has_device(&record) {
        return;
    }
    let sum = |key: &str| cells(&record).iter().map(|cell| whole(&cell[key])).sum::<u64>();
    let (claimed, device) = (sum("claimed_bytes"), sum("device_bytes"));
    if device > claimed / 2 {
        return skipped("another program used the device meanwhile");
    }
    for cell in cells(&record) {
        assert_ne!(cell["verdict"], "ok", "{}", cell["bytes_verdict"]);
    }
}

/// Two files on one device: neither is told that the other is another program.
#[test]
fn arms_side_by_side_share_what_their_device_moved() {
    let dir = directory();
    let (one, two) = (full_file(dir.path(), "one", 4 * MIB), full_file(dir.path(), "two", 4 * MIB));
    let targets = [text(&one), text(&two)].join(":");
    for _ in 0..5 {
        let record = alone(&["bench", "--direct", "--once", "--bs", "64k", &targets]);
        if !has_device(&record) {
            return;
        }
        if cells(&record).iter().all(|cell| cell["device_bytes"] == cell["claimed_bytes"]) {
            assert!(cells(&record).iter().all(|cell| cell["verdict"] == "ok"));
            return;
        }
    }
    skipped("another program used the device in each of five runs");
}

/// Others: claims 355 MiB, device 301 MiB, 15 % hits and growing.
#[test]
fn cold_reads_that_come_back_to_a_block_are_not_called_cold() {
    let dir = directory();
    if lives_in_memory(dir.path()) {
        return skipped("$TMPDIR lives in memory");
    }
    let file = full_file(dir.path(), "file", 2 * MIB);
    let record = alone(&["bench", "--pattern", "random", "--state", "cold", "--once", text(&file)]);
    let cell = only_cell(&record);
    assert_eq!((&cell["verdict"], &cell["state_verified"]), (&"mislabelled".into(), &false.into()));
    // Each block once, in an order without order, is what such a test wants.
    let permuted = alone(&["bench", "--pattern", "permuted", "--state", "cold", "--once", text(&file)]);
    assert_ne!(only_cell(&permuted)["state_check"]["result"], "violated");
}

/// Others: a median of 56 ns, because the work was done inside submit.
#[test]
fn a_cached_read_through_a_ring_costs_what_its_work_costs() {
    let dir = directory();
    let file = full_file(dir.path(), "file", 2 * MIB);
    let record = alone(&[
        "bench",
        "--method",
        "pread,uring",
        "--pattern",
        "random",
        "--state",
        "warm",
        "--runtime",
        "200ms",
        text(&file),
    ]);
    let ring = cell(&record, "uring-random-warm-4096-t1-d1");
    if let Some(failure) = ring["failure"].as_str() {
        return skipped(&format!("io_uring is not allowed here: {failure}"));
    }
    let p50 = |cell: &Value| whole(&cell["latency_ns"]["p50"]);
    let call = cell(&record, "pread-random-warm-4096-t1-d1");
    assert!(2 * p50(ring) >= p50(call), "ring {} ns, call {} ns", p50(ring), p50(call));
}

/// Others: nothing dropped, the file stays in memory, and the number is called direct.
#[test]
fn a_mapping_is_never_called_direct() {
    let dir = directory();
    let file = full_file(dir.path(), "file", MIB);
    for method in ["mmap", "mmap-random", "mmap-sequential", "mmap-populate", "mmap-lock"] {
        let ran = iowhy(&["bench", "--method", method, "--direct", text(&file)]);
        assert_refused(&ran, &format!("`{method}`"));
    }
}

/// Others: 5 to 7 % of a short run lost between samples of the counters.
#[test]
fn the_devices_counters_are_read_exactly_around_each_slice() {
    let dir = directory();
    let file = full_file(dir.path(), "file", 8 * MIB);
    for _ in 0..5 {
        let record = alone(&["bench", "--direct", "--once", "--bs", "64k", text(&file)]);
        if !has_device(&record) {
            return;
        }
        let samples = only_cell(&record)["samples"].as_array().unwrap();
        for sample in samples {
            assert!(
                whole(&sample["device_bytes"]) >= whole(&sample["claimed_bytes"]),
                "bytes were lost: {sample}"
            );
        }
        if samples.iter().any(|sample| sample["device_bytes"] == sample["claimed_bytes"]) {
            return;
        }
    }
    skipped("another program used the device in every slice of five runs");
}

/// Others: KiB divided by 1000 and called MB, 2.4 % low.
#[test]
fn units_on_the_screen_mean_what_they_say() {
    let args = ["bench", "scripted", "--bs", "4k,1m", "--state", "warm,direct"];
    let record = record_of(&args);
    let screen = iowhy(&args).done().stdout;
    for (cell, fields) in cells(&record).iter().zip(rows(&screen)) {
        // "... TIME UNIT ±0 % THROUGHPUT UNIT ±0 % ...": the number before a unit.
        let before = |unit: &str, factor: f64| {
            let at = fields.iter().position(|field| *field == unit)?;
            Some(fields[at - 1].parse::<f64>().unwrap() * factor)
        };
        let shown = before("MiB/s", MIB as f64).or_else(|| before("GiB/s", (1 << 30) as f64));
        let shown = shown.unwrap_or_else(|| panic!("no throughput in {fields:?}"));
        assert!(same(shown, number(&cell["throughput"]["value"]), 1e-3), "{fields:?}");
        let seconds = number(&cell["time_per_request"]["value"]) / 1e9;
        assert!(same(shown * seconds, number(&cell["block_bytes"]), 1e-3), "{fields:?}");
    }
}

/// A direct read of memory is no read of a device, however willingly the kernel takes the flag.
#[test]
fn memory_is_never_reported_as_a_device() {
    let shared_memory = Path::new("/dev/shm");
    let in_memory = tempfile::tempdir_in(shared_memory).ok();
    let targets = in_memory.iter().map(|dir| text(dir.path())).chain(["memory"]);
    if in_memory.is_none() {
        skipped("/dev/shm cannot be written");
    }
    for target in targets {
        let record = record_of(&[target, "--size", "16m", "--time", "2s"]);
        assert_eq!(record["targets"][0]["memory_backed"], true);
        assert!(target == "memory" || warns(&record, "memory-backed"), "{}", record["warnings"]);
        for cell in cells(&record) {
            assert!(!matches!(words(&cell["state"]), "direct" | "cold"), "{}: {}", target, cell["key"]);
            let device = cell["layers"].as_array().and_then(|l| l.iter().find(|l| l["id"] == "device"));
            assert!(device.is_none(), "{}: {}", target, cell["key"]);
        }
        let direct =
            iowhy(&["bench", target, "--size", "4m", "--direct", "--runtime", "20ms", "--json", "-"]);
        if direct.code() == 2 {
            assert!(direct.stderr.contains("O_DIRECT"), "{direct:?}");
        } else {
            assert_eq!(only_cell(&direct.json())["verdict"], "mislabelled");
        }
    }
}

/// Others: a column for depth 32, measured at depth 1.
#[test]
fn a_depth_that_cannot_act_is_no_row_of_its_own() {
    let record =
        record_of(&["bench", "scripted", "--method", "pread", "--state", "warm", "--iodepth", "1,8,32"]);
    assert_eq!(whole(&only_cell(&record)["depth"]), 1);
    assert!(warns(&record, "depth-without-effect"));
}
