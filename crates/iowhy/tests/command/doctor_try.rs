//! `iowhy doctor --try` on loop devices and mounts of the test's own: what is changed is put back, however the run ends. Wishes
//! that cannot be had are refused before anything is touched. Never on a disk or a mount of the machine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process};
use tempfile::TempDir;

use crate::bad_input::assert_refused;
use crate::common::{
    Loop, MIB, Mount, binary, binary_that_listens, directory, finish, full_file, iowhy, is_root, names,
    skipped, succeeds, text,
};

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
        begun(&self.device.device, &wish, || self.value("read_ahead_kb") == value)
    }
}

/// A run that goes on for a while, seen with what it changes changed.
pub(crate) fn begun(path: &str, wish: &str, changed: impl Fn() -> bool) -> Child {
    let mut command = binary_that_listens();
    command.args(["doctor", path, "--try", wish, "--time", "60s", "--size", "16m"]);
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = silent.spawn().unwrap();
    let begun = Instant::now();
    while !changed() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the new value was never seen");
        if let Some(status) = run.try_wait().unwrap() {
            panic!("it ended before it changed anything: {status}");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    run
}

/// Signals it so often and waits for its end, which is no success. A second signal in one breath is the echo of the first.
pub(crate) fn interrupt(mut run: Child, signal: Signal, times: usize) {
    for _ in 0..times {
        send(&run, signal);
        std::thread::sleep(Duration::from_millis(250));
    }
    let status = run.wait().unwrap();
    assert!(!status.success(), "{signal:?} {times}: {status}");
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
        ["doctor", &disk.device.device, "--try", &wish, "--time", "3s", "--size", "16m", "--json", "-"];
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
        assert!(request["after_over_before"]["n"].as_u64().unwrap() <= rounds, "{request}");
        assert!(
            request["after_over_before"]["low"].as_f64() <= request["after_over_before"]["high"].as_f64(),
            "{request}"
        );
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
    let args = ["doctor", device, "--try", "scheduler=mq-deadline", "--time", "2s", "--size", "16m"];
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
    // Ctrl-C, and what a service manager sends.
    for signal in [Signal::INT, Signal::TERM] {
        for times in [1, 2] {
            interrupt(disk.begun(value), signal, times);
            let now = (disk.value("read_ahead_kb"), disk.note().exists());
            assert_eq!(now, (was.clone(), false), "{signal:?} {times}");
        }
    }
    // Ctrl-\, the end of a terminal, a limit, and what ends any program that does not expect it.
    for signal in [Signal::QUIT, Signal::HUP, Signal::XCPU, Signal::ALARM, Signal::USR1] {
        interrupt(disk.begun(value), signal, 1);
        let now = (disk.value("read_ahead_kb"), disk.note().exists());
        assert_eq!(now, (was.clone(), false), "{signal:?}");
    }
    // What a broken program gets, sent from outside: one is enough. No core file of it.
    let limit = rustix::process::Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    rustix::process::setrlimit(Resource::Core, limit).unwrap();
    for signal in [Signal::SEGV, Signal::BUS, Signal::ABORT] {
        let mut run = disk.begun(value);
        send(&run, signal);
        assert!(!run.wait().unwrap().success(), "{signal:?}");
        let now = (disk.value("read_ahead_kb"), disk.note().exists());
        assert_eq!(now, (was.clone(), false), "{signal:?}");
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
    for wish in
        ["", "scheduler", "=none", "swappiness=0", "atime=sometimes", "lazytime=1", "vda/atime=noatime"]
    {
        assert_refused(&iowhy(&["doctor", here, "--try", wish]), "--try");
    }
    let at_boot = iowhy(&["doctor", here, "--try", "mitigations=off"]);
    assert_refused(&at_boot, "mitigations");
    assert!(at_boot.stderr.contains("`mitigations=off` to the kernel's command line"), "{at_boot:?}");
    if !Path::new("/sys/devices/system/cpu/cpufreq/policy0").exists() {
        assert_refused(&iowhy(&["doctor", here, "--try", "governor=performance"]), "governor");
    }
    if Path::new("/dev/shm").is_dir() {
        assert_refused(&iowhy(&["doctor", "/dev/shm", "--try", "read_ahead_kb=0"]), "/dev/shm");
    }
    assert_refused(&iowhy(&["doctor", "/dev/null", "--try", "nomerges=2"]), "/dev/null");
    assert_refused(&iowhy(&["doctor", here, "--try", "thp=always", "--time", "1ms"]), "--time");
    let twice = iowhy(&["doctor", here, "--try", "nomerges=1", "--try", "nomerges=2"]);
    assert!(twice.code() == 2 && twice.stderr.contains("--try"), "{twice:?}");
    let alone = iowhy(&["doctor", here, "--time", "5s"]);
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
    assert_refused(&iowhy(&["doctor", device, "--try", "no-such-disk/nomerges=2"]), "no-such-disk");
    assert_refused(&iowhy(&["doctor", device, "--try", "atime=noatime"]), "of a mount");
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

/// A file system of the test's own on loop devices. Fields are dropped in order: the mount goes first, the files last.
struct Mounted {
    mount: Mount,
    disks: Vec<Loop>,
    _directory: TempDir,
}

impl Mounted {
    /// Makes it with this program and its arguments, the devices behind them.
    fn new(program: &str, arguments: &[&str], disks: usize, options: &str) -> Option<Mounted> {
        let directory = directory();
        let disks: Vec<Loop> = (0..disks)
            .map(|number| {
                let path = directory.path().join(format!("disk{number}"));
                File::create(&path).unwrap().set_len(192 * MIB).unwrap();
                Loop::over(&path)
            })
            .collect::<Option<_>>()?;
        let devices: Vec<&str> = disks.iter().map(|disk| disk.device.as_str()).collect();
        if !succeeds(program, &[arguments, &devices].concat()) {
            skipped(&format!("`{program}` is not here, or cannot make this file system"));
            return None;
        }
        let mount = Mount::of(devices[0], options)?;
        Some(Mounted { mount, disks, _directory: directory })
    }

    fn ext4() -> Option<Mounted> {
        Mounted::new("mkfs.ext4", &["-q", "-F"], 1, "nosuid,nodiratime,discard")
    }

    fn striped() -> Option<Mounted> {
        Mounted::new("mkfs.btrfs", &["-q", "-f", "-d", "raid0", "-m", "raid0"], 2, "noatime")
    }

    fn path(&self) -> &str {
        text(self.mount.path())
    }

    fn names(&self) -> Vec<&str> {
        self.disks.iter().map(|disk| disk.device.trim_start_matches("/dev/")).collect()
    }

    fn nomerges(&self) -> Vec<String> {
        let file = |name: &str| format!("/sys/block/{name}/queue/nomerges");
        self.names()
            .into_iter()
            .map(|name| std::fs::read_to_string(file(name)).unwrap().trim().to_owned())
            .collect()
    }

    fn set_nomerges(&self, values: [&str; 2]) -> bool {
        let file = |name: &str| format!("/sys/block/{name}/queue/nomerges");
        self.names().into_iter().zip(values).all(|(name, value)| std::fs::write(file(name), value).is_ok())
    }
}

/// Notes about settings of these devices or mount points.
pub(crate) fn notes(of: &str) -> usize {
    let of = of.replace('/', "-");
    names(Path::new("/run")).iter().filter(|n| n.starts_with("iowhy-setting-") && n.contains(&of)).count()
}

#[test]
fn times_of_a_mount_are_tried_and_its_line_of_the_mount_table_is_the_same_again() {
    let Some(mounted) = Mounted::ext4() else { return };
    let before = mounted.mount.line();
    assert!(before.contains("nodiratime") && before.contains("relatime"), "{before}");
    for (wish, was) in
        [("atime=strictatime", "relatime"), ("atime=noatime", "relatime"), ("lazytime=on", "off")]
    {
        let args = ["doctor", mounted.path(), "--try", wish, "--time", "3s", "--size", "16m", "--json", "-"];
        let record = iowhy(&args).measured().json();
        assert_eq!(mounted.mount.line(), before, "{wish}");
        let value = wish.split_once('=').unwrap().1;
        assert_eq!((record["before"].as_str(), record["after"].as_str()), (Some(was), Some(value)), "{wish}");
        assert!(record["keep"].as_str().unwrap().starts_with("sudo mount -o remount,"), "{record}");
        let requests = record["requests"].as_array().unwrap();
        assert_eq!(requests.iter().filter(|r| r["control"] == true).count(), 1, "{record}");
        assert!(requests.len() >= 2 && record["rounds"].as_u64() >= Some(5), "{record}");
    }
    assert_eq!(notes(mounted.path()), 0);
    // A file that is not ours is opened so that its time of access stays: nothing could be measured.
    let file = full_file(mounted.mount.path(), "file", 20 * MIB);
    assert_refused(&iowhy(&["doctor", text(&file), "--try", "atime=strictatime"]), "atime");
    assert_eq!(mounted.mount.line(), before);
}

#[test]
fn a_mount_is_put_back_by_a_second_signal_and_after_a_kill() {
    let Some(mounted) = Mounted::ext4() else { return };
    let before = mounted.mount.line();
    for (wish, option) in [("atime=noatime", "noatime"), ("lazytime=on", "lazytime")] {
        let begun = || begun(mounted.path(), wish, || mounted.mount.line().contains(option));
        for times in [1, 2] {
            interrupt(begun(), Signal::INT, times);
            assert_eq!((mounted.mount.line(), notes(mounted.path())), (before.clone(), 0), "{wish} {times}");
        }
        interrupt(begun(), Signal::KILL, 1);
        // Tests beside this one start the binary too, and may have been the next start.
        let ran = iowhy(&["explain", "healthy"]).done();
        assert_eq!((mounted.mount.line(), notes(mounted.path())), (before.clone(), 0), "{wish}: {ran:?}");
    }
}

#[test]
fn devices_of_a_stripe_are_changed_together_and_each_gets_its_own_back() {
    let Some(mounted) = Mounted::striped() else { return };
    if !mounted.set_nomerges(["0", "1"]) {
        return skipped("settings of a loop device cannot be changed here (/sys is read only?)");
    }
    let was = mounted.nomerges();
    let names = mounted.names();
    // What differs is shown device by device, and so is what would measure it.
    let screen = iowhy(&["doctor", mounted.path()]).done().stdout;
    assert!(screen.contains(&format!("device queue of {}, {}", names[0], names[1])), "{screen}");
    assert!(names.iter().all(|name| screen.contains(&format!("nomerges {name}"))), "{screen}");
    assert!(screen.contains(&format!("--try {}/nomerges=0", names[1])), "{screen}");

    let args =
        ["doctor", mounted.path(), "--try", "nomerges=2", "--time", "3s", "--size", "16m", "--json", "-"];
    let record = iowhy(&args).measured().json();
    assert_eq!(mounted.nomerges(), was);
    assert_eq!(record["members"].as_array().unwrap().len(), 2, "{record}");
    assert_eq!(record["before"], format!("{} 0, {} 1", names[0], names[1]));
    assert_eq!(names.iter().map(|name| notes(name)).sum::<usize>(), 0);

    let all = || begun(mounted.path(), "nomerges=2", || mounted.nomerges() == ["2", "2"]);
    interrupt(all(), Signal::INT, 2);
    assert_eq!(mounted.nomerges(), was);
    // What a killed run has left is undone on each.
    interrupt(all(), Signal::KILL, 1);
    iowhy(&["explain", "healthy"]).done();
    assert_eq!(mounted.nomerges(), was);

    // One of them alone.
    let wish = format!("{}/nomerges=2", names[0]);
    let one = begun(mounted.path(), &wish, || mounted.nomerges() == ["2", "1"]);
    interrupt(one, Signal::INT, 1);
    assert_eq!(mounted.nomerges(), was);
    assert!(mounted.set_nomerges(["0", "0"]));
}
