//! `iowhy attach PID --when OP>TIME` on programs whose calls are known: a file of a FUSE server that answers late, and children that write
//! and sync. Counts are those of the programs; times are only compared with delays that were made.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cases_binary;
use crate::common::{Ran, binary, directory, finish, iowhy, is_root, skipped, text};

/// A program that waits for a line before it begins.
struct Waiting(Child);

impl Waiting {
    fn start(command: &mut Command) -> Waiting {
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Waiting(command.spawn().unwrap())
    }

    fn go(&mut self) {
        self.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }

    /// Its first child, once there is one.
    fn child(&self) -> u32 {
        let of = format!("/proc/{0}/task/{0}/children", self.0.id());
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let children = fs::read_to_string(&of).unwrap_or_default();
            if let Some(child) = children.split_whitespace().next() {
                return child.parse().unwrap();
            }
            assert!(Instant::now() < end, "{of} names no child");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the last program of the observer is attached: the one at the entry of calls.
fn is_timing(iowhy: u32) -> bool {
    let links = fs::read_dir(format!("/proc/{iowhy}/fdinfo")).into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_to_string(link.path()).ok()).any(|link| link.contains("sys_enter"))
}

/// The record of a watch of this process, which begins when its calls are timed; `None`: they cannot be timed here.
fn timed(pid: u32, when: &str, program: &mut Waiting) -> Option<Value> {
    let arguments = ["attach", &pid.to_string(), "--when", when, "--count", "100", "--quiet", "--json", "-"];
    let mut watch = binary().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while watch.try_wait().unwrap().is_none() && !is_timing(watch.id()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    program.go();
    let mut said = String::new();
    let reader = watch.stdout.take().map(|mut out| {
        std::thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).unwrap();
            text
        })
    });
    watch.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let (status, stdout) = (watch.wait().unwrap(), reader.unwrap().join().unwrap());
    let ran = Ran { status, stdout, stderr: said };
    if ran.code() == 2 && ran.stderr.contains("cannot time the calls") {
        skipped(&format!("calls cannot be timed here: {}", ran.stderr));
        return None;
    }
    Some(ran.done().json())
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

fn operation<'a>(record: &'a Value, name: &str) -> Option<&'a Value> {
    list(&record["profile"], "operations").iter().find(|of| of["operation"] == name)
}

/// The parts of each call sum to its time.
fn is_conserved(record: &Value) {
    for key in ["events", "slowest"] {
        let calls = list(&record["profile"], key).iter().zip(list(record, key));
        for (call, account) in calls {
            let parts: f64 =
                list(account, "parts").iter().map(|part| part["time_ns"].as_f64().unwrap()).sum();
            let time_ns = call["time_ns"].as_f64().unwrap();
            assert!((parts - time_ns).abs() < 1.0, "{parts} of {time_ns}: {account:#}");
            let sums = ["running_ns", "queued_ns", "asleep_ns"].map(|key| call[key].as_u64().unwrap());
            assert_eq!(sums.iter().sum::<u64>(), call["time_ns"].as_u64().unwrap(), "{call:#}");
        }
    }
}

#[test]
fn every_late_answer_of_a_fuse_server_is_an_event_and_the_server_is_named() {
    if !is_root() {
        return skipped("calls are timed by root alone");
    }
    let dir = directory();
    let mount = dir.path().join("served");
    fs::create_dir(&mount).unwrap();
    let (cases, delay_us) = (cases_binary::build(), 60_000_u64);
    let file = mount.join("file");
    // Past the cache: each read is one request.
    let script = "read go; exec dd if=\"$0\" of=/dev/null bs=64k count=16 iflag=direct status=none";
    let mut program = Waiting::start(
        Command::new("unshare")
            .args(["--mount", "--propagation", "private", "--"])
            .arg(&cases)
            .args(["serve", text(&mount), &delay_us.to_string(), "0", "sync", "sh", "-c", script])
            .arg(&file),
    );
    let Some(record) = timed(program.child(), "read>50ms", &mut program) else { return };
    is_conserved(&record);
    let profile = &record["profile"];
    assert_eq!(profile["ended"], "process");
    // Another read may be slow on a machine that is busy; those of the file are known.
    let events = list(profile, "events").iter().zip(list(&record, "events"));
    let ours: Vec<_> = events.filter(|(call, _)| call["file"] == text(&file)).collect();
    assert_eq!(ours.len(), 16, "{:#}", profile["events"]);
    assert!(profile["over"].as_u64().unwrap() >= 16);
    for (call, account) in ours {
        assert!(call["time_ns"].as_u64().unwrap() >= delay_us * 1000, "{call:#}");
        assert_eq!(
            (&call["call"], &call["thread"], &call["waits_lost"]),
            (&"read".into(), &"dd".into(), &0.into())
        );
        let first = &account["parts"][0];
        assert_eq!(first["part"], "server", "{account:#}");
        let server = first["by"].as_u64().unwrap() as usize;
        let name = profile["subjects"][server]["name"].as_str().unwrap();
        assert!("iowhy-cases".starts_with(name), "{name}");
    }
    // The slowest calls of all are events, slowest first.
    let times = |key: &str| -> Vec<u64> {
        list(profile, key).iter().map(|call| call["time_ns"].as_u64().unwrap()).collect()
    };
    let (mut events, slowest) = (times("events"), times("slowest"));
    events.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
    assert!(slowest.starts_with(&events[..events.len().min(20)]), "{events:?} {slowest:?}");
    let reads = &operation(&record, "read").unwrap()["times"];
    assert_eq!(reads["max_ns"].as_u64().unwrap(), slowest[0], "the histogram's maximum is exact");
}

#[test]
fn calls_of_children_that_start_later_are_all_counted() {
    if !is_root() {
        return skipped("calls are timed by root alone");
    }
    let dir = directory();
    let script = "cd \"$0\"; read go; for i in 1 2 3; do dd if=/dev/zero of=f$i bs=4k count=100 conv=fsync status=none & done; wait";
    let mut program = Waiting::start(Command::new("sh").args(["-c", script]).arg(dir.path()));
    let pid = program.0.id();
    let Some(record) = timed(pid, "sync>1h", &mut program) else { return };
    is_conserved(&record);
    let count = |name| operation(&record, name).map_or(0, |of| of["times"]["count"].as_u64().unwrap());
    assert_eq!((count("write"), count("sync")), (300, 3), "{:#}", record["profile"]["operations"]);
    assert_eq!((&record["profile"]["over"], list(&record["profile"], "events").len()), (&0.into(), 0));
    let mut files: Vec<&str> = list(&record["profile"], "slowest")
        .iter()
        .map(|call| Path::new(call["file"].as_str().unwrap()).file_name().unwrap().to_str().unwrap())
        .collect();
    files.sort_unstable();
    assert_eq!(files, ["f1", "f2", "f3"]);
}

#[test]
fn what_is_no_condition_is_refused_with_the_fix() {
    for (arguments, message, fix) in [
        (&["--when", "sync"][..], "--when `sync`: the time is missing", "quote it"),
        (&["--when", "fsync>1s"], "--when `fsync>1s`: unknown operation", "write `sync>1s`"),
        (&["--when", "sync>50"], "--when `sync>50`: the time has no unit", "'sync>50ms'"),
        (&["--when", "sync>1s", "--count", "0"], "--count `0`: not a whole number", "--count"),
        (&["--when", "sync>1s", "--tier", "none"], "--tier", ""),
        (&["--count", "2"], "--when", ""),
    ] {
        let ran = iowhy(&[&["attach", "1"], arguments].concat());
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(message) && ran.stderr.contains(fix), "{message}: {ran:?}");
    }
}

#[test]
fn without_the_rights_it_is_refused_with_the_fix() {
    let mut sleeper = Command::new("sleep");
    sleeper.arg("60");
    let mut command = binary();
    if is_root() {
        use std::os::unix::process::CommandExt;
        sleeper.uid(65534).gid(65534);
        command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(binary().get_program());
    }
    let sleeper = Waiting::start(&mut sleeper);
    let pid = sleeper.0.id().to_string();
    let ran = finish(command.args(["attach", &pid, "--when", "sync>1s", "--time", "2s"]));
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert!(ran.stderr.contains(&format!("cannot time the calls of process {pid}")), "{ran:?}");
    assert!(ran.stderr.contains("sudo iowhy attach"), "{ran:?}");
    assert_eq!(ran.stdout, "");
}
