//! `iowhy doctor` on a file system that a program serves: the read-ahead of its mount is told, tried and put back, however the run
//! ends. The mount is the test's own.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::bad_input::assert_refused;
use crate::cases_binary;
use crate::common::{directory, iowhy, is_root, skipped, text};
use crate::doctor_try::{begun, interrupt, notes};

/// A FUSE file system with one file. It is unmounted when its server ends, which waits for the end of its input.
struct Served {
    server: Child,
    mount: PathBuf,
    _directory: TempDir,
}

impl Served {
    /// `read_us`: how long the server takes for a read.
    fn mount(read_us: &str) -> Option<Served> {
        if !is_root() {
            skipped("a small file system cannot be mounted here (needs root)");
            return None;
        }
        let directory = directory();
        let mount = directory.path().join("served");
        let mut server = Command::new(cases_binary::build())
            .args(["serve", text(&mount), read_us, "0", "sync", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !mount.join("file").exists() {
            if server.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(60) {
                let _ = server.kill();
                let _ = server.wait();
                skipped("no FUSE server can be mounted here: `iowhy-cases serve` has ended");
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let served = Served { server, mount, _directory: directory };
        let writable = std::fs::OpenOptions::new().write(true).open(served.window()).is_ok();
        if !writable {
            skipped("the read-ahead of a mount cannot be changed here (/sys is read only?)");
        }
        writable.then_some(served)
    }

    fn file(&self) -> String {
        text(&self.mount.join("file")).to_owned()
    }

    /// The file with its read-ahead.
    fn window(&self) -> String {
        let number = self.mount.metadata().unwrap().dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")
    }

    fn value(&self) -> String {
        std::fs::read_to_string(self.window()).unwrap().trim().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

#[test]
fn the_read_ahead_of_a_served_mount_is_told_with_its_file() {
    let Some(served) = Served::mount("0") else { return };
    let record = iowhy(&["doctor", &served.file(), "--json", "-"]).done().json();
    assert!(record["no_device"].as_str().is_some_and(|why| why.contains("user space")), "{record}");
    let queue: Vec<_> =
        record["settings"].as_array().unwrap().iter().filter(|s| s["group"] == "queue").collect();
    assert_eq!(queue.len(), 1, "{queue:?}");
    let found = (queue[0]["key"].as_str(), queue[0]["value"].as_str(), queue[0]["file"].as_str());
    assert_eq!(found, (Some("read_ahead_kb"), Some(served.value().as_str()), Some(served.window().as_str())));
    assert_eq!(queue[0]["subject"], text(&served.mount));
    let screen = iowhy(&["doctor", &served.file()]).done().stdout;
    let flowed = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowed.contains("no other: fuse.iowhylab"), "{screen}");
    // It has no queue, and so no scheduler.
    assert_refused(&iowhy(&["doctor", &served.file(), "--try", "nomerges=2"]), "nomerges");
    assert_refused(&iowhy(&["doctor", &served.file(), "--try", "vda/read_ahead_kb=4"]), "vda");
}

#[test]
fn it_is_tried_and_put_back_and_both_values_were_in_force() {
    // Each request takes 3 ms, whatever it asks for.
    let Some(served) = Served::mount("3000") else { return };
    let (was, window) = (served.value(), served.window());
    let args = [
        "doctor",
        &served.file(),
        "--try",
        "read_ahead_kb=4",
        "--time",
        "10s",
        "--size",
        "4m",
        "--json",
        "-",
    ];
    let record = iowhy(&args).measured().json();
    assert_eq!((served.value(), notes(text(&served.mount))), (was.clone(), 0));
    let values = (record["before"].as_str(), record["after"].as_str(), record["setting"]["file"].as_str());
    assert_eq!(values, (Some(was.as_str()), Some("4"), Some(window.as_str())));
    assert_eq!(record["put_back"], true);
    assert!(record["keep"].as_str().unwrap().contains(&window), "{record}");
    let requests = record["requests"].as_array().unwrap();
    let mapped = requests.iter().find(|request| request["key"] == "cold-way-mmap");
    // Page faults read ahead 128 KiB at a time, or 4 KiB. (A read of 128 KiB is one request with either: the kernel then takes the
    // size of the read.)
    let ratio = mapped.and_then(|request| request["after_over_before"]["value"].as_f64());
    assert!(ratio.is_some_and(|ratio| ratio > 4.0), "{requests:?}");
}

#[test]
fn it_is_put_back_by_a_second_signal_and_after_a_kill() {
    let Some(served) = Served::mount("1000") else { return };
    let (was, path) = (served.value(), text(&served.mount).to_owned());
    let begun = || begun(&served.file(), "read_ahead_kb=8", || served.value() == "8");
    for times in [1, 2] {
        interrupt(begun(), Signal::INT, times);
        assert_eq!((served.value(), notes(&path)), (was.clone(), 0), "{times}");
    }
    interrupt(begun(), Signal::KILL, 1);
    // Tests beside this one start the binary too, and may have been the next start.
    let ran = iowhy(&["explain", "healthy"]).done();
    assert_eq!((served.value(), notes(&path)), (was, 0), "{ran:?}");
    // A note of a mount that is gone changes nothing, and goes too.
    interrupt(begun(), Signal::KILL, 1);
    drop(served);
    iowhy(&["explain", "healthy"]).done();
    assert_eq!(notes(&path), 0);
}
