//! Records kept by name: `--save-as`, `@NAME`, `--baseline`, `iowhy history`.

use crate::common::{Ran, binary, directory, finish, iowhy, text};

#[test]
fn a_kept_record_is_read_by_its_name_and_never_overwritten() {
    let folder = directory();
    let iowhy = |args: &[&str]| -> Ran { finish(binary().args(args).env("XDG_STATE_HOME", folder.path())) };
    assert!(iowhy(&["history"]).done().stdout.contains("no record is saved"));
    let bench = ["bench", "scripted", "--state", "warm", "--save-as"];
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
    refused(&[&bench[..], &["before"]].concat(), &["--save-as before", "history --remove before"]);
    refused(&[&bench[..], &["../x"]].concat(), &["../x", "no name"]);
    refused(&["report", "@nothing"], &["`nothing`", "after.2", "before"]);
    refused(&["compare", "@before"], &["--baseline"]);
    refused(&["compare", "--baseline", "before", "@before", "@after.2"], &["one too many"]);
    refused(&["history", "--remove", "before", "--remove", "nothing"], &["nothing"]);
    refused(&["report", "@before", "--save-as", "x"], &["--save-as"]);
    let listed = iowhy(&["history", "--remove", "before"]).done().stdout;
    assert!(!listed.contains("@before") && listed.contains("@after.2"), "{listed}");
    // A run that fails keeps nothing.
    refused(&["bench", "/nowhere/at-all", "--save-as", "failed"], &["/nowhere/at-all"]);
    assert!(!iowhy(&["history"]).done().stdout.contains("failed"));
    // Another machine is said, a damaged record too.
    let records = folder.path().join("iowhy/records");
    let text = std::fs::read_to_string(records.join("after.2.json")).unwrap();
    let mut other: serde_json::Value = serde_json::from_str(&text).unwrap();
    other["environment"]["cpu"] = "Another CPU".into();
    std::fs::write(records.join("other.json"), other.to_string()).unwrap();
    std::fs::write(records.join("cut.json"), &text[..100]).unwrap();
    let screen = iowhy(&["history"]).done().stdout;
    assert!(!screen.contains("@other") && screen.contains("1 record of other machines: `--all`"), "{screen}");
    assert!(screen.contains("cut off"), "{screen}");
    let screen = iowhy(&["history", "--all"]).done().stdout;
    // The remark is folded in its column.
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains("another machine: Another CPU") && screen.contains("cut off"), "{screen}");
}

#[test]
fn the_hint_for_an_unknown_name_lists_each_kept_name_once() {
    use std::time::{Duration, SystemTime};
    let folder = directory();
    let records = folder.path().join("iowhy/records");
    std::fs::create_dir_all(&records).unwrap();
    // Runs of two programs, measured in turns.
    for (n, name) in ["before", "after", "before+2", "after+2", "before+3"].iter().enumerate() {
        let file = std::fs::File::create(records.join(format!("{name}.json"))).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + n as u64)).unwrap();
    }
    let ran = finish(binary().args(["compare", "@nope", "@x"]).env("XDG_STATE_HOME", folder.path()));
    assert_eq!(ran.code(), 2, "{ran:?}");
    let hint = ran.stderr.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default();
    assert_eq!(hint, "hint: kept are before, after", "{ran:?}");
}

#[test]
fn records_in_files_and_folders_are_listed_and_other_files_are_not() {
    let folder = directory();
    let at = |name: &str| folder.path().join(name);
    iowhy(&["bench", "scripted", "--state", "warm", "--json", text(&at("bench.json"))]).done();
    iowhy(&["--json", text(&at("run.json")), "--", "true"]).done();
    std::fs::write(at("notes.txt"), "not a record").unwrap();
    std::fs::write(at("package.json"), "{\"name\": \"x\", \"schema\": 3}").unwrap();
    assert!(crate::common::succeeds("mkfifo", &[text(&at("pipe"))]));
    let whole = std::fs::read_to_string(at("bench.json")).unwrap();
    std::fs::write(at("cut.json"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(at("newer.json"), whole.replacen("\"schema\":1", "\"schema\":99", 1)).unwrap();
    std::fs::write(at("damaged.json"), whole.replacen("\"rounds\"", "\"runds\"", 1)).unwrap();
    let mut other: serde_json::Value = serde_json::from_str(&whole).unwrap();
    other["environment"]["cpu"] = "Another CPU".into();
    std::fs::write(at("other.json"), other.to_string()).unwrap();
    let list = |args: &[&str]| iowhy(&[&["history"], args, &["--json", "-"]].concat()).done().json();
    let here = list(&[text(folder.path())]);
    let names = |list: &serde_json::Value| -> Vec<String> {
        let name = |r: &serde_json::Value| r["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let mut names: Vec<String> = list["records"].as_array().unwrap().iter().map(name).collect();
        names.sort();
        names
    };
    assert_eq!(names(&here), ["bench.json", "cut.json", "damaged.json", "newer.json", "run.json"]);
    assert_eq!(here["of_other_machines"], 1);
    let of = |file: &str| {
        let records = here["records"].as_array().unwrap();
        records.iter().find(|r| r["path"].as_str().unwrap().ends_with(file)).unwrap().clone()
    };
    let bench = of("bench.json");
    assert_eq!((&bench["kind"], &bench["this_machine"]), (&"measurement".into(), &true.into()));
    assert_eq!(bench["subject"], "scripted");
    assert_eq!(bench["figure"]["estimate"]["unit"], "ns");
    let run = of("run.json");
    assert_eq!((&run["kind"], &run["subject"]), (&"watched program".into(), &"true".into()));
    assert!(run["figure"]["once_ns"].as_f64().unwrap() > 0.0 && run["figure"]["estimate"].is_null());
    for (file, says) in [("/cut.json", "cut off"), ("newer.json", "format 99"), ("damaged.json", "damaged")] {
        assert!(of(file)["remark"].as_str().unwrap().contains(says), "{}", of(file));
    }
    // A file named twice is one record; those of other machines come when they are asked for.
    let all = list(&[text(folder.path()), text(&at("other.json")), "--all"]);
    assert_eq!(names(&all).len(), 6);
    // A file that is no record is passed over, one that is not there is refused.
    let none = iowhy(&["history", text(&at("notes.txt"))]).done();
    assert!(none.stdout.contains("no record of iowhy in") && none.stdout.contains("notes.txt"), "{none:?}");
    for args in [&["/nowhere/at-all"] as &[&str], &[text(folder.path()), "--remove", "x"]] {
        let ran = iowhy(&[&["history"], args].concat());
        assert!(ran.code() == 2 && ran.stderr.contains("hint:"), "{ran:?}");
    }
}

#[test]
fn a_watched_program_can_be_kept_too() {
    let folder = directory();
    let iowhy = |args: &[&str]| -> Ran { finish(binary().args(args).env("XDG_STATE_HOME", folder.path())) };
    for _ in 0..3 {
        iowhy(&["--save-as", "run", "--", "true"]).done();
    }
    let screen = iowhy(&["history"]).done().stdout;
    assert!(screen.contains("watched program") && screen.contains("@run (3 runs)"), "{screen}");
    assert!(screen.contains("wall time: ") && screen.contains("n = 3"), "{screen}");
    let refused = |args: &[&str], says: &[&str]| {
        let ran = iowhy(args);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(says.iter().all(|says| ran.stderr.contains(says)) && ran.stderr.contains("hint:"), "{ran:?}");
    };
    refused(&["--save-as", "run", "--", "echo", "x"], &["another program", "`true`", "--remove run"]);
    refused(&["bench", "scripted", "--save-as", "run"], &["--save-as run", "--remove run"]);
    refused(&["--save-as", "run+7", "--", "true"], &["run+7", "no name"]);
    // Where one record is wanted, one is named; a report shows all.
    refused(&["export", "@run"], &["3 runs", "@run+1"]);
    assert!(iowhy(&["export", "@run+2"]).done().stdout.starts_with("id,"));
    refused(&["export", "@run+4"], &["`run+4`"]);
    let page = iowhy(&["report", "@run", "--markdown"]).done().stdout;
    assert_eq!(page.lines().filter(|line| line.starts_with("# ")).count(), 3, "{page}");
    iowhy(&["history", "--remove", "run+2"]).done();
    assert!(iowhy(&["history"]).done().stdout.contains("@run (2 runs)"));
    iowhy(&["--save-as", "run", "--", "true"]).done();
    let listed = iowhy(&["history", "--json", "-"]).done().json();
    let names: Vec<&str> =
        listed["records"].as_array().unwrap().iter().filter_map(|r| r["name"].as_str()).collect();
    assert!(names.contains(&"run+4") && !names.contains(&"run+2"), "a number is not used twice: {names:?}");
    iowhy(&["history", "--remove", "run"]).done();
    assert!(iowhy(&["history"]).done().stdout.contains("no record is saved"));
    let nowhere = finish(
        binary().args(["--save-as", "run", "--", "true"]).env_remove("XDG_STATE_HOME").env_remove("HOME"),
    );
    assert!(nowhere.code() == 2 && nowhere.stderr.contains("XDG_STATE_HOME"), "{nowhere:?}");
}
