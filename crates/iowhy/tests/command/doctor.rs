//! `iowhy doctor`: what is read agrees with the files, what cannot be looked at is refused, and nothing is changed.

use serde_json::Value;

use crate::bad_input::assert_refused;
use crate::common::{binary, directory, finish, iowhy, is_root, skipped, text};

fn setting<'a>(record: &'a Value, key: &str) -> Option<&'a Value> {
    record["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == key)
}

#[test]
fn what_is_said_is_what_the_files_hold() {
    let dir = directory();
    let record = iowhy(&["doctor", text(dir.path()), "--json", "-"]).done().json();
    assert_eq!(record["schema"], 1);
    let mut read = 0;
    for setting in record["settings"].as_array().unwrap() {
        assert_ne!(
            setting["value"].is_null(),
            setting["limitation"].is_null(),
            "a value or a reason: {setting}"
        );
        // Files with one plain value; lists and counts are told otherwise.
        let plain =
            setting["offered"].is_null() && setting["key"] != "mitigations" && setting["key"] != "governor";
        let Some(file) = setting["file"].as_str().filter(|f| plain && !f.ends_with("mountinfo")) else {
            continue;
        };
        if let Ok(held) = std::fs::read_to_string(file) {
            assert_eq!(setting["value"], held.trim(), "{file}");
            read += 1;
        }
    }
    assert!(read >= 5, "at least the dirty limits and swappiness: {record}");
    for key in ["governor", "mitigations", "thp", "swappiness", "io-limit", "memory-limit"] {
        assert!(setting(&record, key).is_some(), "{key}");
    }
    let tier = record["rights"]["tier"].as_str().unwrap();
    assert_eq!(tier == "observer", record["rights"]["next"].is_null(), "{record}");
}

#[test]
fn the_screen_has_every_group_and_leaves_nothing_behind() {
    let dir = directory();
    let ran = iowhy(&["doctor", text(dir.path())]).done();
    for title in ["profiling rights", "CPU", "memory", "device queue", "file system", "control group"] {
        assert!(ran.stdout.lines().any(|line| line.starts_with(title)), "{title}: {ran:?}");
    }
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
}

#[test]
fn a_path_without_a_device_says_why() {
    if !std::path::Path::new("/dev/shm").is_dir() {
        return skipped("there is no /dev/shm");
    }
    let record = iowhy(&["doctor", "/dev/shm", "--json", "-"]).done().json();
    assert!(record["no_device"].as_str().is_some_and(|why| why.contains("memory")), "{record}");
    assert!(setting(&record, "scheduler").is_none());
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let dir = directory();
    let missing = dir.path().join("missing");
    assert_refused(&iowhy(&["doctor", text(&missing)]), text(&missing));
    let stray = finish(binary().args(["--time", "5s", "doctor"]));
    assert_refused(&stray, "--time");
}

#[test]
fn without_rights_the_next_tier_has_a_command() {
    if !is_root() {
        return skipped("the test as an ordinary user is the one that runs as one");
    }
    let dir = directory();
    let args = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let iowhy = binary();
    let mut command = std::process::Command::new("setpriv");
    command.args(args).arg(iowhy.get_program()).args(["doctor", "/", "--json", "-"]).current_dir(dir.path());
    let Ok(output) = command.output() else { return skipped("there is no setpriv") };
    let Ok(record) = serde_json::from_slice::<Value>(&output.stdout) else {
        return skipped("an ordinary user may not run this binary where it lies");
    };
    let next = &record["rights"]["next"];
    if record["rights"]["tier"] == "observer" {
        return skipped("here everybody may see everything");
    }
    assert!(next["reason"].is_string() && next["tier"].is_string(), "{record}");
}
