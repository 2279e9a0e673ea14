//! Writing over what was there before: only with the name typed twice, and never over a known signature.

use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use crate::bad_input::{assert_refused, fingerprint};
use crate::common::{Loop, MIB, Ran, binary, directory, full_file, iowhy, succeeds, text};

const WRITE: [&str; 7] = ["bench", "--rw", "write", "--runtime", "20ms", "--size", "1m"];

#[test]
fn a_file_named_twice_is_written_and_keeps_its_size() {
    let dir = directory();
    let file = full_file(dir.path(), "scrap", 2 * MIB);
    let before = fingerprint(&file);
    let name = text(&file);
    let ran = iowhy(&[&WRITE[..], &["--destroy-data", name, name]].concat()).measured();
    says_what_is_destroyed(&ran, name, "file", "2 MiB");
    let after = fingerprint(&file);
    assert_eq!(after.0.len(), before.0.len());
    assert_ne!(after.0, before.0, "it was asked to be destroyed");
    assert_eq!(after.0[MIB as usize..], before.0[MIB as usize..], "beyond --size nothing is written");
}

/// Stderr names what is destroyed, and no heading claims that it is only read.
fn says_what_is_destroyed(ran: &Ran, name: &str, kind: &str, size: &str) {
    let said: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("destroying: ")).collect();
    assert_eq!(said.len(), 1, "{ran:?}");
    for word in [name, kind, size, "its data is lost", "on it: "] {
        assert!(said[0].contains(word), "{word} is not in {said:?}");
    }
    assert!(ran.stdout.contains("its data is lost") && !ran.stdout.contains("read only"), "{ran:?}");
}

#[test]
fn quiet_runs_say_what_they_destroy_and_reads_destroy_nothing() {
    let dir = directory();
    let file = full_file(dir.path(), "scrap", 2 * MIB);
    let name = text(&file);
    let quiet = [&WRITE[..], &["--quiet", "--destroy-data", name, name]].concat();
    says_what_is_destroyed(&iowhy(&quiet).measured(), name, "file", "2 MiB");
    let before = fingerprint(&file);
    let reads = ["bench", "--rw", "read", "--runtime", "20ms", "--size", "1m", "--destroy-data", name, name];
    let ran = iowhy(&reads).measured();
    assert!(!ran.stderr.contains("destroying") && ran.stdout.contains("file, read only"), "{ran:?}");
    assert_eq!(fingerprint(&file), before);
}

/// Nothing is written before the announcement: its reader sees the old content.
#[test]
fn what_is_destroyed_is_said_before_the_first_write() {
    let dir = directory();
    let file = full_file(dir.path(), "scrap", 2 * MIB);
    let before = fingerprint(&file).0;
    let name = text(&file);
    let mut command = binary();
    command.args([&WRITE[..], &["--destroy-data", name, name]].concat());
    // A pipe that is full: the announcement cannot be written, and so nothing behind it happens.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut filled = writer.try_clone().unwrap();
    let capacity = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    filled.write_all(&vec![b'x'; capacity]).unwrap();
    drop(filled);
    let mut child = command.stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    drop(command);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it waits for its reader");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(said.trim_start_matches('x').starts_with("destroying: "), "{}", said.trim_start_matches('x'));
    child.wait().unwrap();
    assert_ne!(std::fs::read(&file).unwrap(), before, "it was asked to be destroyed");
}

#[test]
fn the_disks_of_a_stripe_that_is_advised_are_named_before_they_are_written() {
    let dir = directory();
    let files = ["one", "two"].map(|name| full_file(dir.path(), name, 8 * MIB));
    let [one, two] = files.each_ref().map(|file| text(file));
    let load = "readers=2,bytes=64k,size=1m,pattern=random,requests=50,write=50";
    let disks = ["stripe", "advise", one, two, "--time", "2s", "--interleave", "64k", "--workload", load];
    let ran = iowhy(&[&disks[..], &["--destroy-data", one, "--destroy-data", two]].concat());
    let said = |name: &str| {
        let of = |line: &&str| line.starts_with("destroying: ") && line.contains(name);
        ran.stderr.lines().filter(of).count()
    };
    assert_eq!((said(one), said(two)), (1, 1), "{ran:?}");
    if ran.code() == 0 {
        assert_eq!(ran.stdout.matches("written over by this run: its data is lost").count(), 2, "{ran:?}");
    }
    let reads = load.replace(",write=50", "");
    let disks = ["stripe", "advise", one, two, "--time", "2s", "--interleave", "64k", "--workload", &reads];
    let ran = iowhy(&[&disks[..], &["--destroy-data", one]].concat());
    assert!(!ran.stderr.contains("destroying") && !ran.stdout.contains("written over"), "{ran:?}");
}

#[test]
fn a_signature_is_refused_even_when_named_twice() {
    let dir = directory();
    let file = full_file(dir.path(), "xfs", 2 * MIB);
    std::fs::File::options().write(true).open(&file).unwrap().write_all_at(b"XFSB", 0).unwrap();
    let before = fingerprint(&file);
    let name = text(&file);
    let ran = iowhy(&[&WRITE[..], &["--destroy-data", name, name]].concat());
    assert_refused(&ran, name);
    assert!(ran.stderr.contains("signature of xfs") && ran.stderr.contains("wipefs"), "{ran:?}");
    assert_eq!(fingerprint(&file), before);
}

#[test]
fn a_block_device_is_written_only_when_named_twice_free_and_empty() {
    let dir = directory();
    let file = dir.path().join("disk");
    std::fs::File::create(&file).unwrap().set_len(16 * MIB).unwrap();
    let Some(device) = Loop::over(&file) else { return };
    let name = device.device.as_str();
    let before = fingerprint(&file);
    let write = |destroy: &[&str]| iowhy(&[&WRITE[..], destroy, &[name]].concat());
    assert_refused(&write(&[]), name);
    assert_refused(&write(&["--destroy-data", "/dev/loop"]), name);
    assert_refused(&write(&["--destroy-data", &format!("{name}/")]), name);
    // The file under an attached device is the device's.
    let path = text(&file);
    assert_refused(&iowhy(&[&WRITE[..], &["--destroy-data", path, path]].concat()), path);
    // Reading needs no permission and changes nothing.
    iowhy(&["bench", "--runtime", "20ms", "--direct", name]).measured();
    assert_eq!(fingerprint(&file), before);
    if succeeds("mkfs.ext4", &["-q", "-F", name]) {
        let formatted = std::fs::read(&file).unwrap();
        let ran = write(&["--destroy-data", name]);
        assert_refused(&ran, name);
        assert!(ran.stderr.contains("signature of ext"), "{ran:?}");
        assert_eq!(std::fs::read(&file).unwrap(), formatted);
        assert!(succeeds("wipefs", &["-q", "-a", name]));
    } else {
        crate::common::skipped("no mkfs.ext4: a formatted device is not tried");
    }
    says_what_is_destroyed(&write(&["--destroy-data", name]).measured(), name, "block device", "16 MiB");
    assert!(succeeds("sync", &[]));
    assert_ne!(std::fs::read(&file).unwrap(), before.0, "it was asked to be destroyed");
}

#[test]
fn a_device_that_is_set_read_only_is_refused_before_anything_is_announced() {
    let dir = directory();
    let file = full_file(dir.path(), "backing", 2 * MIB);
    let Some(device) = Loop::over(&file) else { return };
    let name = device.device.as_str();
    succeeds("blockdev", &["--setro", name]);
    let ran = iowhy(&[&WRITE[..], &["--destroy-data", name, name]].concat());
    succeeds("blockdev", &["--setrw", name]);
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert!(ran.stderr.contains("read-only") && ran.stderr.contains("--setrw"), "{ran:?}");
    assert!(!ran.stderr.contains("destroying"), "{ran:?}");
}

#[test]
fn a_permission_for_one_of_two_targets_names_what_can_be_done() {
    let dir = directory();
    let files = ["one", "two"].map(|name| full_file(dir.path(), name, 2 * MIB));
    let [one, two] = files.each_ref().map(|file| text(file));
    let before = files.each_ref().map(|file| fingerprint(file));
    let both = format!("{one}:{two}");
    for given in [one, two, both.as_str()] {
        let ran = iowhy(&[&WRITE[..], &["--destroy-data", given, &both]].concat());
        assert_eq!(ran.code(), 2, "{ran:?}");
        let stripe = format!("--destroy-data stripe:64k:{one},{two} stripe:64k:{one},{two}");
        for word in [stripe, format!("--destroy-data {one} {one}"), format!("--destroy-data {two} {two}")] {
            assert!(ran.stderr.contains(&word), "{word} is not in {ran:?}");
        }
    }
    assert_eq!(files.each_ref().map(|file| fingerprint(file)), before);
    // The command of the hint does it.
    let stripe = format!("stripe:64k:{one},{two}");
    iowhy(&[&WRITE[..], &["--destroy-data", &stripe, &stripe]].concat()).measured();
}
