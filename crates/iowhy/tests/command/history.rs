//! Records kept by name: `--keep-as`, `@NAME`, `--baseline`, `iowhy history`.

use crate::common::{Ran, binary, directory, finish};

#[test]
fn a_kept_record_is_read_by_its_name_and_never_overwritten() {
    let folder = directory();
    let iowhy = |args: &[&str]| -> Ran { finish(binary().args(args).env("XDG_STATE_HOME", folder.path())) };
    assert!(iowhy(&["history"]).done().stdout.contains("no record is kept"));
    let bench = ["bench", "scripted", "--state", "warm", "--keep-as"];
    iowhy(&[&bench[..], &["before"]].concat()).done();
    iowhy(&[&bench[..], &["after.2"]].concat()).done();
    let listed = iowhy(&["history", "--json", "-"]).done().json();
    let names: Vec<&str> =
        listed["records"].as_array().unwrap().iter().filter_map(|r| r["name"].as_str()).collect();
    assert_eq!((names.len(), names.contains(&"before")), (2, true), "{listed}");
    assert_eq!(listed["records"][0]["kind"], "measurement");
    let screen = iowhy(&["history"]).done().stdout;
    assert!(screen.contains("@before") && screen.contains("measurement"), "{screen}");
    // Wherever a record is read.
    let with = iowhy(&["compare", "@before", "@after.2"]).done().stdout;
    assert_eq!(with, iowhy(&["compare", "--baseline", "before", "@after.2"]).done().stdout);
    assert!(iowhy(&["report", "@before"]).done().stdout.contains("<html"));
    assert!(iowhy(&["export", "@before"]).done().stdout.contains("time_per_request.value"));
    let refused = |args: &[&str], says: &[&str]| {
        let ran = iowhy(args);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(says.iter().all(|says| ran.stderr.contains(says)) && ran.stderr.contains("hint:"), "{ran:?}");
    };
    refused(&[&bench[..], &["before"]].concat(), &["--keep-as before", "history --remove before"]);
    refused(&[&bench[..], &["../x"]].concat(), &["../x", "no name"]);
    refused(&["report", "@nothing"], &["`nothing`", "after.2", "before"]);
    refused(&["compare", "@before"], &["--baseline"]);
    refused(&["compare", "--baseline", "before", "@before", "@after.2"], &["one too many"]);
    refused(&["history", "--remove", "before", "--remove", "nothing"], &["nothing"]);
    refused(&["report", "@before", "--keep-as", "x"], &["--keep-as"]);
    let listed = iowhy(&["history", "--remove", "before"]).done().stdout;
    assert!(!listed.contains("@before") && listed.contains("@after.2"), "{listed}");
    // A run that fails keeps nothing.
    refused(&["bench", "/nowhere/at-all", "--keep-as", "failed"], &["/nowhere/at-all"]);
    assert!(!iowhy(&["history"]).done().stdout.contains("failed"));
    // Another machine is said, a damaged record too.
    let records = folder.path().join("iowhy/records");
    let text = std::fs::read_to_string(records.join("after.2.json")).unwrap();
    let mut other: serde_json::Value = serde_json::from_str(&text).unwrap();
    other["environment"]["cpu"] = "Another CPU".into();
    std::fs::write(records.join("other.json"), other.to_string()).unwrap();
    std::fs::write(records.join("cut.json"), &text[..100]).unwrap();
    let screen = iowhy(&["history"]).done().stdout;
    assert!(screen.contains("another machine: Another CPU") && screen.contains("cut off"), "{screen}");
}

#[test]
fn a_watched_program_can_be_kept_too() {
    let folder = directory();
    let iowhy = |args: &[&str]| -> Ran { finish(binary().args(args).env("XDG_STATE_HOME", folder.path())) };
    iowhy(&["--keep-as", "run", "--", "true"]).done();
    assert!(iowhy(&["history"]).done().stdout.contains("watched program"));
    let nowhere = finish(
        binary().args(["--keep-as", "run", "--", "true"]).env_remove("XDG_STATE_HOME").env_remove("HOME"),
    );
    assert!(nowhere.code() == 2 && nowhere.stderr.contains("XDG_STATE_HOME"), "{nowhere:?}");
}
