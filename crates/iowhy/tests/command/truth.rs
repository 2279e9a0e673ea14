//! Programs that print what they did themselves: each count that iowhy prints as exact is theirs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cases_binary;
use crate::common::{binary, directory, iowhy, is_root, lives_in_memory, skipped, text};
use crate::record::{whole, words};

/// What the program says that it did, and the record of that run; `None`, with a reason: calls are not counted here.
fn watched(kind: &str, dir: &Path, number: u64) -> Option<(Value, Value)> {
    if !is_root() {
        skipped("system calls cannot be counted here: only root may load the observer");
        return None;
    }
    std::fs::create_dir(dir.join("files")).unwrap();
    told_by(Command::new(binary().get_program()), kind, dir, number)
}

/// The same, with iowhy run by this command.
fn told_by(mut command: Command, kind: &str, dir: &Path, number: u64) -> Option<(Value, Value)> {
    let (files, record) = (dir.join("files"), dir.join("run.json"));
    let ran = command
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
    for (kind, number) in [("phases", 10_000), ("children", 200), ("crowd", 4096), ("forks", 10_000)] {
        let dir = directory();
        let Some((truth, record)) = watched(kind, dir.path(), number) else { continue };
        are_equal(kind, &truth, &record);
    }
}

/// Counts by file, and of calls that failed.
fn are_equal(kind: &str, truth: &Value, record: &Value) {
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

#[test]
fn files_of_an_overlay_are_counted_where_the_program_sees_them() {
    let dir = directory();
    if !is_root() {
        return skipped("only root may mount an overlay");
    }
    for folder in ["lower", "upper", "work", "files"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
    }
    let mount = "cd \"$0\" && mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none files || exit 77; \
                 cd /; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", mount]).arg(dir.path()).arg(binary().get_program());
    let tried =
        Command::new("unshare").args(["--mount", "sh", "-c", mount]).arg(dir.path()).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return skipped("an overlay cannot be mounted here");
    }
    let Some((truth, record)) = told_by(command, "phases", dir.path(), 1000) else { return };
    are_equal("phases", &truth, &record);
}

/// The watch ends with the program; what it left behind runs on, and is said to.
#[test]
fn a_process_that_outlives_the_watch_runs_on_and_is_told_of() {
    let dir = directory();
    if !is_root() {
        return skipped("system calls cannot be counted here: only root may load the observer");
    }
    let (begun, done, record) =
        (dir.path().join("begun"), dir.path().join("done"), dir.path().join("run.json"));
    let script = format!(
        "setsid sh -c 'echo > {0}; sleep 2; echo > {1}' & while [ ! -e {0} ]; do sleep 0.01; done",
        text(&begun),
        text(&done)
    );
    let ran = Command::new(binary().get_program())
        .args(["--quiet", "--json", text(&record), "--", "sh", "-c", &script])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    let limitations = record["profile"]["sight"]["limitations"].to_string();
    assert!(limitations.contains("descendants-left"), "{limitations}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done.exists() {
        assert!(Instant::now() < deadline, "what the program left behind did not run on");
        std::thread::sleep(Duration::from_millis(20));
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
    assert_eq!((whole(&of("read")["bytes"]), &of("recv")["bytes"]), (REQUESTS * 4096, &Value::Null));
    // The steps of time hold its calls and its requests: the phases are told by them.
    let course =
        |key: &str| -> u64 { record["profile"]["course"][key].as_array().unwrap().iter().map(whole).sum() };
    // The kernel reads the beginning of the program before any call is counted.
    let by_calls = whole(&record["profile"]["io"]["read_bytes"]);
    let by_ring = REQUESTS * 4096;
    assert!((by_ring..=by_ring + by_calls).contains(&course("read_bytes")), "{by_calls}");
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

/// Runs iowhy below a shell that first does this to its own view of the machine; `None`, with a reason: it may not.
fn where_first(prepare: &str, dir: &Path) -> Option<(Value, String)> {
    if !is_root() {
        skipped("only root may have mounts of its own");
        return None;
    }
    let record = dir.join("run.json");
    let script = format!("{prepare} || exit 77; exec \"$@\"");
    let ran = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, "sh", binary().get_program().to_str().unwrap()])
        .args(["--quiet", "--json", text(&record), "--", "sh", "-c", "echo own words; exit 5"])
        .output()
        .ok()?;
    if ran.status.code() == Some(77) {
        skipped(&format!("`{prepare}` fails here: {}", String::from_utf8_lossy(&ran.stderr)));
        return None;
    }
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(5), b"own words\n" as &[u8]), "{ran:?}");
    let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    let limitations = record["profile"]["sight"]["limitations"].to_string();
    Some((record, limitations))
}

#[test]
fn without_types_of_the_kernel_the_program_runs_and_the_reason_is_told() {
    let dir = directory();
    let without = ["mount -t tmpfs none /sys/kernel/btf", "mount --bind /dev/null /sys/kernel/btf/vmlinux"];
    for prepare in without {
        let Some((record, limitations)) = where_first(prepare, dir.path()) else { return };
        assert_ne!(record["tier"], "observer", "{prepare}");
        assert!(
            record["profile"]["calls"].is_null() && limitations.contains("/sys/kernel/btf/vmlinux"),
            "{limitations}"
        );
    }
}

#[test]
fn without_the_right_to_load_programs_the_program_runs_and_the_right_is_named() {
    let dir = directory();
    let Some((record, limitations)) = where_first(
        "command -v capsh >/dev/null && set -- capsh --drop=cap_bpf,cap_sys_admin -- -c 'exec \"$@\"' sh \"$@\"",
        dir.path(),
    ) else {
        return;
    };
    assert_ne!(record["tier"], "observer");
    assert!(limitations.contains("CAP_BPF"), "{limitations}");
}

/// Threads that switch so often that only windows of them are recorded: what is inferred between the windows agrees with the time that
/// the shell was told for its child. Six times as much was once inferred.
#[test]
fn cpu_time_between_windows_is_the_kernels() {
    if !is_root() {
        return skipped("system calls cannot be counted here: only root may load the observer");
    }
    let dir = directory();
    let record = dir.path().join("run.json");
    let cases = cases_binary::build();
    let script = format!("{} program append-threads {} 8 2000 shared; times", text(&cases), text(dir.path()));
    let shell =
        iowhy(&["--quiet", "--no-calibrate", "--json", text(&record), "--", "sh", "-c", &script]).done();
    let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    let told: f64 = shell.stdout.split_ascii_whitespace().filter_map(seconds).sum();
    let cpu = record["cpu_s"].as_f64().unwrap();
    // Threads did not run for longer than the kernel counted, apart from whole nanoseconds.
    let profile = &record["profile"];
    let threads = profile["threads"].as_array().unwrap();
    let ran: u64 = threads.iter().map(|thread| whole(&thread["running_ns"])).sum();
    let counted = whole(&profile["io"]["user_ns"]) + whole(&profile["io"]["system_ns"]);
    let limits = profile["sight"]["limitations"].to_string();
    assert!(ran <= counted + 2 * threads.len() as u64, "{ran} of {counted} ns: {limits}");
    // The start of the programs and the shell's ticks of 10 ms are in one of them only.
    assert!(
        told > 0.0 && cpu < 1.5 * told + 0.1,
        "{cpu} s, and the shell was told {told} s: {}",
        record["profile"]["observer"]
    );
}

/// `0m1.250s`, as the shell's `times` prints it.
fn seconds(word: &str) -> Option<f64> {
    let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
    Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
}
