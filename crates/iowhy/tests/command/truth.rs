//! Programs that print what they did themselves: each count that iowhy prints as exact is theirs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cases_binary;
use crate::common::{binary, directory, is_root, lives_in_memory, skipped, text};
use crate::record::{whole, words};

/// What the program says that it did, and the record of that run; `None`, with a reason: calls are not counted here.
fn watched(kind: &str, dir: &Path, number: u64) -> Option<(Value, Value)> {
    if !is_root() {
        skipped("system calls cannot be counted here: only root may load the observer");
        return None;
    }
    let (files, record) = (dir.join("files"), dir.join("run.json"));
    std::fs::create_dir(&files).unwrap();
    let ran = Command::new(binary().get_program())
        .args(["--quiet", "--json", text(&record), "--"])
        .arg(cases_binary::build())
        .args(["program", "truth", kind, text(&files), &number.to_string()])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&ran.stderr).into_owned();
    if error.contains("cannot start a thread") {
        skipped(&format!("{number} threads cannot be started here"));
        return None;
    }
    assert!(ran.status.success(), "{error}");
    let truth = serde_json::from_slice(&ran.stdout).unwrap();
    let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    let profile = &record["profile"];
    if profile["calls"].is_null() {
        let why = profile["sight"]["limitations"].as_array().unwrap().iter().map(|l| words(&l["sentence"]));
        skipped(&format!("system calls cannot be counted here: {}", why.collect::<Vec<_>>().join("; ")));
        return None;
    }
    Some((truth, record))
}

/// Opens, reads, bytes read, writes, bytes written.
fn of_file(file: &Value) -> [u64; 5] {
    let [reads, writes] = [&file["reads"], &file["writes"]];
    let opens = file["opens"].as_u64().unwrap_or(0);
    [opens, whole(&reads["calls"]), whole(&reads["bytes"]), whole(&writes["calls"]), whole(&writes["bytes"])]
}

#[test]
fn phases_children_and_crowds_are_counted_as_they_count_themselves() {
    for (kind, number) in [("phases", 10_000), ("children", 200), ("crowd", 4096)] {
        let dir = directory();
        let Some((truth, record)) = watched(kind, dir.path(), number) else { continue };
        let profile = &record["profile"];
        assert_eq!(profile["calls"]["complete"], true, "{kind}: {}", profile["sight"]);
        let files = profile["files"].as_array().unwrap();
        for (path, counts) in truth["files"].as_object().unwrap() {
            let told = files.iter().find(|file| file["path"] == *path.as_str()).map(of_file);
            let counts: Vec<u64> = counts.as_array().unwrap().iter().map(whole).collect();
            assert_eq!(told.map(Vec::from), Some(counts), "{kind}: {path}");
        }
        let errors = profile["calls"]["calls"].as_array().unwrap().iter();
        let failed: u64 = errors.filter_map(|call| call["errors"]["ENOTDIR"].as_u64()).sum();
        assert_eq!(failed, whole(&truth["failed_opens"]), "{kind}");
    }
}

#[test]
fn files_beyond_the_observers_table_are_counted_together_and_none_is_lost() {
    const FILES: u64 = 70_000;
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return skipped("there is no /dev/shm");
    }
    let dir = tempfile::tempdir_in(memory).unwrap();
    let Some((truth, record)) = watched("many", dir.path(), FILES) else { return };
    let profile = &record["profile"];
    let truth: Vec<u64> = truth["files"]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(whole)
        .collect();
    let kinds = profile["kinds"].as_array().unwrap();
    let regular = kinds.iter().find(|kind| kind["kind"] == "regular").unwrap();
    let [reads, writes, written] =
        ["read_calls", "write_calls", "written_bytes"].map(|key| whole(&regular[key]));
    assert_eq!([writes, written], [truth[3], truth[4]]);
    // The loader reads a few libraries.
    assert!((truth[1]..truth[1] + 40).contains(&reads), "{reads}");
    let limitations = profile["sight"]["limitations"].to_string();
    assert!(limitations.contains("tables were full"), "{limitations}");
}

/// Other threads write to the disk all the time: that is not what a ring waits for that waits for a message or a timer.
#[test]
fn a_ring_waits_for_what_its_requests_wait_for() {
    const REQUESTS: u64 = 100;
    let dir = directory();
    if lives_in_memory(dir.path()) {
        return skipped("$TMPDIR lives in memory");
    }
    let Some((truth, record)) = watched("ring", dir.path(), REQUESTS) else { return };
    if record["profile"]["sight"]["limitations"].to_string().contains("ring-requests") {
        return skipped("requests of rings are not followed here");
    }
    let told = record["io"]["rings"].as_array().unwrap();
    let of = |operation: &str| told.iter().find(|ring| ring["operation"] == operation).unwrap();
    for (operation, requests) in truth.as_object().unwrap() {
        assert_eq!(whole(&of(operation)["requests"]), whole(requests), "{operation}");
    }
    // A request on a file has a time; of one that waits for an event that says nothing.
    assert!(of("read")["mean_s"].as_f64().unwrap() > 0.0 && of("recv")["mean_s"].is_null());
    let operations = record["operations"].as_array().unwrap();
    let ring = operations.iter().find(|operation| operation["id"] == "ring").unwrap();
    let layers = ring["layers"].as_array().unwrap();
    let share =
        |id: &str| layers.iter().find(|l| l["id"] == id).map_or(0.0, |l| l["share"].as_f64().unwrap());
    // Per message and read it sleeps 6 ms for events, and for one request at the disk.
    assert!(share("elsewhere") > share("device"), "{ring}");
}

/// The programs of the observer that this process holds.
fn held_by(pid: u32) -> Vec<u64> {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return Vec::new() };
    let text = |file: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(file.ok()?.path()).ok();
    let number =
        |text: String| text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok());
    files.filter_map(text).filter_map(number).collect()
}

/// The programs in the kernel. `None`: they cannot be listed here.
fn in_kernel() -> Option<Vec<u64>> {
    let listed = Command::new("bpftool").args(["--json", "prog", "show"]).output().ok()?;
    let listed: Value = serde_json::from_slice(&listed.stdout).ok()?;
    listed.as_array()?.iter().map(|program| program["id"].as_u64()).collect()
}

#[test]
fn a_watch_that_is_killed_leaves_nothing_in_the_kernel_and_the_program_runs_on() {
    let dir = directory();
    let (begun, done) = (dir.path().join("begun"), dir.path().join("done"));
    let script = format!("> {}; sleep 1; > {}", text(&begun), text(&done));
    let mut watch = Command::new(binary().get_program()).args(["--", "sh", "-c", &script]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait_until = |what: &str, happened: &dyn Fn() -> bool| {
        while !happened() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_until("the program did not begin", &|| begun.exists());
    let held = held_by(watch.id());
    let all = in_kernel();
    watch.kill().unwrap();
    watch.wait().unwrap();
    wait_until("the program did not run on", &|| done.exists());
    let Some(all) = all.filter(|_| !held.is_empty()) else {
        return skipped("programs in the kernel cannot be listed here (no bpftool, or no observer)");
    };
    assert!(held.iter().all(|program| all.contains(program)), "{held:?} {all:?}");
    wait_until("programs of the observer stay in the kernel", &|| {
        in_kernel().is_some_and(|all| !all.iter().any(|program| held.contains(program)))
    });
}
