//! `iowhy doctor --try` on loop devices of the test's own: what is changed is put back, however the run ends. Wishes that
//! cannot be had are refused before anything is touched. Never on a disk of the machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::bad_input::assert_refused;
use crate::common::{Loop, MIB, binary, directory, finish, full_file, iowhy, is_root, names, skipped, text};

/// A loop device over a full file. Fields are dropped in order: the device goes before its file.
struct Disk {
    device: Loop,
    _directory: TempDir,
}

impl Disk {
    fn new() -> Option<Disk> {
        let directory = directory();
        let file = full_file(directory.path(), "disk", 24 * MIB);
        let disk = Disk { device: Loop::over(&file)?, _directory: directory };
        let writable = std::fs::OpenOptions::new().write(true).open(disk.file("read_ahead_kb")).is_ok();
        if !writable {
            skipped("settings of a loop device cannot be changed here (/sys is read only?)");
        }
        writable.then_some(disk)
    }

    fn name(&self) -> &str {
        self.device.device.trim_start_matches("/dev/")
    }

    fn file(&self, setting: &str) -> PathBuf {
        Path::new("/sys/block").join(self.name()).join("queue").join(setting)
    }

    fn value(&self, setting: &str) -> String {
        std::fs::read_to_string(self.file(setting)).unwrap().trim().to_owned()
    }

    fn note(&self) -> PathBuf {
        PathBuf::from(format!("/run/iowhy-setting-{}-read_ahead_kb", self.name()))
    }

    /// A run that goes on for a while, seen with the new value set.
    fn begun(&self, value: &str) -> Child {
        let wish = format!("read_ahead_kb={value}");
        let mut command = binary();
        command.args(["doctor", &self.device.device, "--try", &wish, "--budget", "60s"]);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while self.value("read_ahead_kb") != value {
            assert!(begun.elapsed() < Duration::from_secs(60), "the new value was never seen");
            if let Some(status) = run.try_wait().unwrap() {
                panic!("it ended before it changed anything: {status}");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        run
    }
}

fn send(run: &Child, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill_process(Pid::from_child(run), signal);
}

/// Another read-ahead than the present one.
fn other(present: &str) -> &'static str {
    if present == "256" { "512" } else { "256" }
}

#[test]
fn a_setting_is_tried_told_and_put_back() {
    let Some(disk) = Disk::new() else { return };
    let (was, value) = (disk.value("read_ahead_kb"), other(&disk.value("read_ahead_kb")));
    let wish = format!("read_ahead_kb={value}");
    let args =
        ["doctor", &disk.device.device, "--try", &wish, "--budget", "3s", "--size", "16m", "--json", "-"];
    let ran = iowhy(&args).measured();
    assert_eq!(disk.value("read_ahead_kb"), was);
    assert!(!disk.note().exists());
    let record = ran.json();
    assert_eq!((record["before"].as_str(), record["after"].as_str()), (Some(was.as_str()), Some(value)));
    assert_eq!((&record["put_back"], &record["setting"]["key"]), (&true.into(), &"read_ahead_kb".into()));
    let rounds = record["rounds"].as_u64().unwrap();
    assert!(rounds >= 5, "{record}");
    let requests = record["requests"].as_array().unwrap();
    let of = |control: bool| requests.iter().filter(|r| r["control"] == control).count();
    assert!(of(false) >= 1 && of(true) == 1, "{record}");
    for (index, request) in requests.iter().enumerate() {
        assert!(request["ratio"]["n"].as_u64().unwrap() <= rounds, "{request}");
        assert!(request["ratio"]["low"].as_f64() <= request["ratio"]["high"].as_f64(), "{request}");
        for side in ["cells_before", "cells_after"] {
            let samples = record[side][index]["samples"].as_array().unwrap();
            assert_eq!(samples.len() as u64, rounds, "every round is kept, of both values");
        }
    }
}

#[test]
fn a_scheduler_is_put_back_with_what_hangs_on_it() {
    let Some(disk) = Disk::new() else { return };
    let text_of = |setting: &str| std::fs::read_to_string(disk.file(setting)).unwrap_or_default();
    let before = ["scheduler", "nr_requests", "wbt_lat_usec"].map(text_of);
    if !before[0].contains("[none]") || !before[0].contains("mq-deadline") {
        return skipped("this kernel offers no other scheduler for loop devices");
    }
    let device = disk.device.device.as_str();
    let args = ["doctor", device, "--try", "scheduler=mq-deadline", "--budget", "2s", "--size", "16m"];
    let ran = iowhy(&args).measured();
    assert_eq!(["scheduler", "nr_requests", "wbt_lat_usec"].map(text_of), before);
    assert!(
        ran.stdout.starts_with(&format!("scheduler of {}, none -> mq-deadline: ", disk.name())),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("is none again."), "{ran:?}");
}

#[test]
fn an_interrupt_ends_it_and_a_second_one_at_once_and_both_put_back() {
    let Some(disk) = Disk::new() else { return };
    let (was, value) = (disk.value("read_ahead_kb"), other(&disk.value("read_ahead_kb")));
    for signals in [1, 2] {
        let mut run = disk.begun(value);
        for _ in 0..signals {
            // Handled as Ctrl-C is, but not ignored by what was started in the background.
            send(&run, Signal::TERM);
            // A second signal in one breath is the echo of the first.
            std::thread::sleep(Duration::from_millis(250));
        }
        let status = run.wait().unwrap();
        assert!(!status.success(), "{signals}: {status}");
        assert_eq!((disk.value("read_ahead_kb"), disk.note().exists()), (was.clone(), false), "{signals}");
    }
}

#[test]
fn what_a_killed_run_left_is_put_back_by_the_next_start_of_any_command() {
    let Some(disk) = Disk::new() else { return };
    let (was, value) = (disk.value("read_ahead_kb"), other(&disk.value("read_ahead_kb")));
    let mut run = disk.begun(value);
    // Another run of the same has to wait; it changes nothing.
    let wish = format!("read_ahead_kb={value}1");
    assert_refused(&iowhy(&["doctor", &disk.device.device, "--try", &wish]), "another run");
    send(&run, Signal::KILL);
    run.wait().unwrap();
    // Tests beside this one start the binary too, and may have been the next start.
    let ran = iowhy(&["explain", "healthy"]).done();
    assert_eq!((disk.value("read_ahead_kb"), disk.note().exists()), (was, false), "{ran:?}");
}

#[test]
fn wishes_that_cannot_be_had_are_refused_and_change_nothing() {
    let dir = directory();
    let here = text(dir.path());
    let unknown = iowhy(&["doctor", here, "--try", "elevator=none"]);
    assert_refused(&unknown, "elevator");
    assert!(unknown.stderr.contains("scheduler, read_ahead_kb, nr_requests"), "{unknown:?}");
    for wish in ["", "scheduler", "=none", "governor=performance"] {
        assert_refused(&iowhy(&["doctor", here, "--try", wish]), "--try");
    }
    if Path::new("/dev/shm").is_dir() {
        assert_refused(&iowhy(&["doctor", "/dev/shm", "--try", "read_ahead_kb=0"]), "/dev/shm");
    }
    assert_refused(&iowhy(&["doctor", "/dev/null", "--try", "nomerges=2"]), "/dev/null");
    assert_refused(&iowhy(&["doctor", here, "--try", "thp=always", "--budget", "1ms"]), "--budget");
    let twice = iowhy(&["doctor", here, "--try", "nomerges=1", "--try", "nomerges=2"]);
    assert!(twice.code() == 2 && twice.stderr.contains("--try"), "{twice:?}");
    let alone = iowhy(&["doctor", here, "--budget", "5s"]);
    assert!(alone.code() == 2 && alone.stderr.contains("--try"), "{alone:?}");
    assert!(names(dir.path()).is_empty());

    let Some(disk) = Disk::new() else { return };
    let was = disk.value("nomerges");
    let device = disk.device.device.as_str();
    for wish in ["nomerges=3", "scheduler=elevator", "nr_requests=1", "read_ahead_kb=much"] {
        assert_refused(&iowhy(&["doctor", device, "--try", wish]), wish);
    }
    let same = format!("nomerges={was}");
    assert_refused(&iowhy(&["doctor", device, "--try", &same]), "already");
    // In the range that can be written, and still too many for the device: the kernel has the last word.
    assert_refused(&iowhy(&["doctor", device, "--try", "nr_requests=4000000"]), "nr_requests");
    // A device is only read: nothing there leaves dirty pages behind.
    assert_refused(&iowhy(&["doctor", device, "--try", "dirty_bytes=64m"]), "dirty_bytes");
    assert_eq!(disk.value("nomerges"), was);
}

#[test]
fn without_rights_the_command_that_has_them_is_named() {
    let dir = directory();
    if !is_root() {
        let wish = iowhy(&["doctor", text(dir.path()), "--try", "thp=never"]);
        // Set already, or no rights.
        return assert_refused(&wish, "thp=never");
    }
    let Some(disk) = Disk::new() else { return };
    let program = binary();
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program.get_program());
    command.args(["doctor", &disk.device.device, "--try", "nomerges=2"]);
    let probe = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(program.get_program())
        .arg("--version")
        .output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skipped("an ordinary user may not run this binary where it lies, or there is no setpriv");
    }
    let ran = finish(&mut command);
    assert_refused(&ran, "needs root");
    assert!(ran.stderr.contains("hint: `sudo ") && ran.stderr.contains("--try nomerges=2"), "{ran:?}");
    assert_eq!(disk.value("nomerges"), "0");
}
