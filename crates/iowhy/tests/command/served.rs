//! A program that reads from a slow FUSE server: the server is named, and no disk is blamed.

use std::process::Command;

use crate::cases_binary;
use crate::common::{binary, directory, is_root, skipped, text};
use crate::record::words;

/// The record of `dd` on a file of a server that takes 20 ms for each read; `None`: it cannot be mounted here.
fn watched(reads: &str) -> Option<serde_json::Value> {
    if !is_root() {
        skipped("a small file system cannot be mounted here (needs root)");
        return None;
    }
    let dir = directory();
    let (mount, record) = (dir.path().join("served"), dir.path().join("run.json"));
    std::fs::create_dir(&mount).unwrap();
    let file = mount.join("file");
    // Mounted in a namespace of its own, which goes with the last process in it.
    let ran = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--"])
        .arg(cases_binary::build())
        .args(["serve", text(&mount), "20000", "0", reads])
        .arg(binary().get_program())
        .args(["--quiet", "--json", text(&record), "--"])
        .args(["dd", &format!("if={}", text(&file)), "of=/dev/null", "bs=64k", "count=16", "status=none"])
        .output();
    let read = || std::fs::read_to_string(&record).ok();
    match ran
        .map_err(|e| e.to_string())
        .and_then(|o| read().ok_or(String::from_utf8_lossy(&o.stderr).into_owned()))
    {
        Ok(record) => Some(serde_json::from_str(&record).unwrap()),
        Err(why) => {
            skipped(&format!("no FUSE server can be mounted here: {why}"));
            None
        }
    }
}

#[test]
fn a_slow_fuse_server_is_named_whether_or_not_its_stack_shows_it() {
    for reads in ["sync", "async"] {
        let Some(record) = watched(reads) else { return };
        // Without the observer nobody counts which files were used: then an asynchronous read is not told from a disk's.
        if reads == "async" && record["profile"]["block"].is_null() {
            skipped("requests are not seen here: an asynchronous FUSE read cannot be told from a disk's");
            return;
        }
        assert_eq!(words(&record["findings"][0]["id"]), "server-bound", "{reads}: {}", record["findings"]);
        let layers = record["layers"].as_array().unwrap();
        let share =
            |id: &str| layers.iter().find(|l| l["id"] == id).map_or(0.0, |l| l["share"].as_f64().unwrap());
        assert!(share("server") > 0.5 && share("device") < 0.1, "{reads}: {layers:?}");
    }
}
