//! Writing over what was there before: only with the name typed twice, and never over a known signature.

use std::os::unix::fs::FileExt;

use crate::bad_input::{assert_refused, fingerprint};
use crate::common::{Loop, MIB, directory, full_file, iowhy, succeeds, text};

const WRITE: [&str; 7] = ["bench", "--rw", "write", "--runtime", "20ms", "--size", "1m"];

#[test]
fn a_file_named_twice_is_written_and_keeps_its_size() {
    let dir = directory();
    let file = full_file(dir.path(), "scrap", 2 * MIB);
    let before = fingerprint(&file);
    let name = text(&file);
    iowhy(&[&WRITE[..], &["--destroy-data", name, name]].concat()).measured();
    let after = fingerprint(&file);
    assert_eq!(after.0.len(), before.0.len());
    assert_ne!(after.0, before.0, "it was asked to be destroyed");
    assert_eq!(after.0[MIB as usize..], before.0[MIB as usize..], "beyond --size nothing is written");
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
    write(&["--destroy-data", name]).measured();
    assert!(succeeds("sync", &[]));
    assert_ne!(std::fs::read(&file).unwrap(), before.0, "it was asked to be destroyed");
}
