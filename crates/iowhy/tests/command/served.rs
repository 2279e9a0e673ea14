//! Programs that wait for a slow FUSE server, for data, for names, or for pages of a mapping: each has its finding, and no disk
//! is blamed.

use std::process::Command;

use crate::cases_binary;
use crate::common::{binary, directory, is_root, skipped, text};
use crate::record::words;

/// What a server that waits before its answers is asked by a program.
struct Served<'a> {
    read_us: &'a str,
    names_us: &'a str,
    reads: &'a str,
    /// `{file}` is the file that it serves.
    program: &'a [&'a str],
}

/// The record of the program; `None`: the file system cannot be mounted here.
fn watched(served: &Served<'_>) -> Option<serde_json::Value> {
    if !is_root() {
        skipped("a small file system cannot be mounted here (needs root)");
        return None;
    }
    let dir = directory();
    let (mount, record) = (dir.path().join("served"), dir.path().join("run.json"));
    std::fs::create_dir(&mount).unwrap();
    let cases = cases_binary::build();
    let file = mount.join("file");
    let spell = |word: &&str| word.replace("{file}", text(&file)).replace("{cases}", text(&cases));
    // Mounted in a namespace of its own, which goes with the last process in it, and without the mounts of tests beside this one.
    let alone = "umount --lazy --all --types fuse.iowhylab; exec \"$@\"";
    let ran = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--", "sh", "-c", alone, "sh"])
        .arg(&cases)
        .args(["serve", text(&mount), served.read_us, served.names_us, served.reads])
        .arg(binary().get_program())
        .args(["--quiet", "--json", text(&record), "--"])
        .args(served.program.iter().map(spell))
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

/// Asserts that the first finding is this one, that no other one about a server claims much beside it (opens wait for the
/// server too, and longer on a busy machine), and that the time is the server's.
fn is_told(record: &serde_json::Value, id: &str) {
    let findings = record["findings"].as_array().unwrap();
    assert_eq!(words(&findings[0]["id"]), id, "{findings:?}");
    let of_servers = ["server-bound", "remote-metadata", "mapped-over-network"];
    let claimed = |f: &serde_json::Value| f["share"].as_f64().unwrap();
    let others = findings[1..].iter().filter(|f| of_servers.contains(&words(&f["id"])));
    assert!(others.map(claimed).sum::<f64>() < 0.2 * claimed(&findings[0]), "{findings:?}");
    assert!(words(&findings[0]["sentence"]).contains("fuse.iowhylab"), "{findings:?}");
    let layers = record["layers"].as_array().unwrap();
    let share =
        |id: &str| layers.iter().find(|l| l["id"] == id).map_or(0.0, |l| l["share"].as_f64().unwrap());
    assert!(share("server") > 0.5 && share("device") < 0.1, "{layers:?}");
}

/// Without the observer nobody counts which files were used: then an asynchronous read is not told from a disk's.
fn is_inconclusive(reads: &str, record: &serde_json::Value) -> bool {
    let inconclusive = reads == "async" && record["profile"]["block"].is_null();
    if inconclusive {
        skipped("requests are not seen here: an asynchronous FUSE read cannot be told from a disk's");
    }
    inconclusive
}

#[test]
fn a_slow_fuse_server_is_named_whether_or_not_its_stack_shows_it() {
    for reads in ["sync", "async"] {
        let program = ["dd", "if={file}", "of=/dev/null", "bs=64k", "count=16", "status=none"];
        let served = Served { read_us: "20000", names_us: "0", reads, program: &program };
        let Some(record) = watched(&served) else { return };
        if is_inconclusive(reads, &record) {
            return;
        }
        is_told(&record, "server-bound");
    }
}

#[test]
fn a_program_that_reads_its_disk_as_well_is_not_held_back_by_it() {
    let dir = directory();
    let local = dir.path().join("local");
    std::fs::write(&local, vec![b'x'; 64 << 10]).unwrap();
    // Sixteen reads of a disk, about as many as sleeps for the server.
    let script = format!(
        "dd if={} of=/dev/null bs=4k iflag=direct status=none; exec dd if={{file}} of=/dev/null bs=64k count=16 status=none",
        text(&local)
    );
    let served = Served { read_us: "20000", names_us: "0", reads: "async", program: &["sh", "-c", &script] };
    let Some(record) = watched(&served) else { return };
    if !is_inconclusive("async", &record) {
        is_told(&record, "server-bound");
    }
}

#[test]
fn look_ups_that_each_wait_for_the_server_are_not_data() {
    // The server lets the kernel keep no names: each `test` looks the file up and asks for its attributes.
    let script = "i=0; while [ $i -lt 60 ]; do test -r {file}; i=$((i+1)); done";
    let served = Served { read_us: "0", names_us: "5000", reads: "sync", program: &["sh", "-c", script] };
    let Some(record) = watched(&served) else { return };
    is_told(&record, "remote-metadata");
}

#[test]
fn pages_of_a_mapping_that_each_wait_for_the_server_are_told() {
    for reads in ["sync", "async"] {
        let program = ["{cases}", "program", "map-touch", "{file}", "60", "random"];
        let served = Served { read_us: "5000", names_us: "0", reads, program: &program };
        let Some(record) = watched(&served) else { return };
        if is_inconclusive(reads, &record) {
            return;
        }
        is_told(&record, "mapped-over-network");
    }
}
