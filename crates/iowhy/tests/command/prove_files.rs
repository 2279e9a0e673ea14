//! `iowhy prove` where a program reads many small files: a scratch tree replaces them, and it is removed.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bad_input::assert_refused;
use crate::common::{alone, binary, directory, iowhy_alone, is_root, names, skipped, text};

const FILES: usize = 1000;
/// The program is watched so often for a run that others do not hide.
const ATTEMPTS: usize = 5;

/// Reads 1000 files of 300 bytes again and again, long enough to be seen; the record lies beside their folder. `None`: calls
/// cannot be traced here.
fn watched(dir: &Path) -> Option<PathBuf> {
    watched_with(dir, None)
}

/// As [`watched`], with what it prints in a log that the caller opened.
fn watched_with(dir: &Path, log: Option<&Path>) -> Option<PathBuf> {
    if !is_root() {
        skipped("system calls are traced by root alone, and a replay is made of them");
        return None;
    }
    let folder = dir.join("small");
    std::fs::create_dir(&folder).unwrap();
    for file in 0..FILES {
        std::fs::write(folder.join(format!("{file}")), [7u8; 300]).unwrap();
    }
    let record = dir.join("record.json");
    // One process reads all, so that few opens are those of a start; unlike `cat` it takes no memory anew for each file.
    let four = |words: &str| [words; 4].join(" ");
    let all = four("\"$@\"");
    let script = format!("set -- * && set -- {all} && exec cksum {}", four(&all));
    let script = if log.is_some() { script } else { format!("{script} > /dev/null") };
    let mut why = String::new();
    for _ in 0..ATTEMPTS {
        // From their folder: files that are open for a moment are looked for where the program began.
        let args = ["--json", text(&record), "--", "sh", "-c", &script];
        let mut command = binary();
        command.args(args).current_dir(&folder);
        if log.is_some() {
            // The shell of the caller opens the log, as in `iowhy -- CMD > log`.
            let opened = "exec \"$@\" > \"$LOG\"";
            let program = command;
            command = std::process::Command::new("sh");
            command.args(["-c", opened, "sh"]).arg(program.get_program()).args(program.get_args());
            command.env("LOG", log.unwrap_or(Path::new("/dev/null"))).env("LC_ALL", "C.UTF-8");
            command.current_dir(&folder).stdin(Stdio::null());
        }
        let ran = alone(&mut command);
        assert_eq!(ran.code(), 0, "{ran:?}");
        let named = |id: &str| read(&record)["findings"].as_array().unwrap().iter().any(|f| f["id"] == id);
        if !named("many-small-files") {
            continue;
        }
        // A run of which too little was recorded cannot be replayed; that is chance, and not twice and again.
        let proved = iowhy_alone(&["prove", text(&record), "--rounds", "5"]);
        if proved.stdout.contains("one packed file") {
            return Some(record);
        }
        why = format!("{proved:?}");
    }
    assert!(why.is_empty(), "it is never replayed: {why}");
    skipped("others use this machine so much that no cause of the program's own is named");
    None
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn trees(folder: &Path) -> Vec<String> {
    names(folder).into_iter().filter(|name| name.starts_with(".iowhy-tree-")).collect()
}

#[test]
fn many_small_files_are_replayed_on_a_scratch_tree_that_is_removed() {
    let dir = directory();
    let Some(record) = watched(dir.path()) else { return };
    let folder = dir.path().join("small");
    let proof = iowhy_alone(&["prove", text(&record), "--rounds", "5", "--json", "-"]).json();
    let findings = proof["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["id"] == "many-small-files").unwrap_or_else(|| panic!("{proof}"));
    assert!(found["how"].as_str().is_some_and(|how| how.contains("one packed file")), "{found}");
    assert_eq!(found["io_ns"].as_array().map(Vec::len), Some(5), "{found}");
    // 16,000 files are opened; packed they are a few calls: on no machine does that gain nothing.
    assert!(found["measured"]["value"].as_f64().is_some_and(|gain| gain > 1.0), "{found}");
    let replay = if found["baseline"].is_null() { &proof["baseline"] } else { &found["baseline"] };
    let tree = &replay["plan"]["tree"];
    assert_eq!(tree["parent"].as_str(), Some(text(&folder)), "{tree}");
    assert!(tree["bytes"].as_u64().is_some_and(|bytes| (280..=320).contains(&bytes)), "{tree}");
    assert!(replay["notes"].to_string().contains(text(&folder)), "{replay}");
    assert_eq!(names(&folder).len(), FILES, "nothing is left");
    assert_eq!(names(dir.path()), ["record.json", "small"]);
}

/// Proves until a tree is there.
fn proving(record: &Path, folder: &Path) -> Child {
    let mut command = binary();
    let rounds = ["prove", text(record), "--rounds", "99"];
    let mut child = command.args(rounds).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while trees(folder).is_empty() {
        if child.try_wait().unwrap().is_some() {
            panic!("it ended: {:?}", child.wait_with_output().unwrap());
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no tree was made");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn an_interrupt_leaves_no_tree_and_what_a_kill_leaves_goes_with_the_next_start() {
    let dir = directory();
    let Some(record) = watched(dir.path()) else { return };
    let folder = dir.path().join("small");
    // A job in the background ignores SIGINT, and so would what is tested.
    let mut child = proving(&record, &folder);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "it ends by itself");
    assert_eq!(names(&folder).len(), FILES);
    let mut child = proving(&record, &folder);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert_eq!(trees(&folder).len(), 1, "that is what the name is for");
    let ran = iowhy_alone(&["prove", text(&record), "--rounds", "5"]);
    assert!(ran.stdout.contains("many-small-files"), "{ran:?}");
    assert_eq!(names(&folder).len(), FILES);
}

#[test]
fn where_the_file_system_is_not_known_nothing_is_made_and_the_reason_is_said() {
    let dir = directory();
    let Some(record) = watched(dir.path()) else { return };
    let mut value = read(&record);
    let profile = &mut value["profile"];
    for file in profile["files"].as_array_mut().unwrap() {
        file.as_object_mut().unwrap().remove("device_number");
    }
    let nameless = dir.path().join("nameless.json");
    std::fs::write(&nameless, value.to_string()).unwrap();
    let ran = iowhy_alone(&["prove", text(&nameless)]);
    // The reads of files whose paths were recorded can be replayed, or not: that repair cannot.
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("the file system of the small files is not known"), "{ran:?}");
    assert_eq!(names(&dir.path().join("small")).len(), FILES);
}

#[test]
fn a_log_on_another_file_system_is_no_place_for_the_tree() {
    use std::os::unix::fs::MetadataExt;

    let dir = directory();
    let device = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
    let Some(memory) = device(Path::new("/dev/shm")).filter(|memory| Some(*memory) != device(dir.path()))
    else {
        skipped("there is no second file system in /dev/shm");
        return;
    };
    let elsewhere = match tempfile::tempdir_in("/dev/shm") {
        Ok(elsewhere) => elsewhere,
        Err(error) => {
            skipped(&format!("nothing can be written in /dev/shm: {error}"));
            return;
        }
    };
    let log = elsewhere.path().join("log");
    let Some(record) = watched_with(dir.path(), Some(&log)) else { return };
    let mut value = read(&record);
    let files = value["profile"]["files"].as_array_mut().unwrap();
    let seen = files.iter().find(|file| file["path"] == text(&log)).unwrap_or_else(|| panic!("{files:?}"));
    assert_eq!((&seen["inherited"], &seen["device_number"]), (&true.into(), &memory.into()), "{seen}");
    // The tree is made beside the files that the program opened itself.
    let proof = iowhy_alone(&["prove", text(&record), "--rounds", "5", "--json", "-"]).json();
    let findings = proof["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["id"] == "many-small-files").unwrap_or_else(|| panic!("{proof}"));
    let replay = if found["baseline"].is_null() { &proof["baseline"] } else { &found["baseline"] };
    assert_eq!(replay["plan"]["tree"]["parent"].as_str(), Some(text(&dir.path().join("small"))), "{proof}");
    assert_eq!(names(elsewhere.path()), ["log"], "nothing was made beside the log");
    // The same record, had the files been on another file system than their directory is now: nothing is measured.
    for file in files.iter_mut().filter(|file| file["inherited"] != true) {
        file["device_number"] = memory.into();
    }
    let moved = dir.path().join("moved.json");
    std::fs::write(&moved, value.to_string()).unwrap();
    let ran = iowhy_alone(&["prove", text(&moved), "--rounds", "5"]);
    // Where other programs disturbed the run there are more findings, and the proof says why of each.
    match ran.code() {
        0 => assert!(!ran.stdout.contains("  proven"), "{ran:?}"),
        _ => assert_refused(&ran, text(&moved)),
    }
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("is on another file system"), "{ran:?}");
}
