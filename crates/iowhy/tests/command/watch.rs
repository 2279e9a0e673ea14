//! `iowhy -- CMD`, `attach` and `explain` as a user runs them: what is refused, what the program keeps, where the
//! report goes.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::bad_input::assert_refused;
use crate::common::{Ran, binary, directory, finish, iowhy, names, skipped, text};

/// Runs something that watches; `None`, said aloud, where the kernel lets nobody watch.
fn watched(args: &[&str]) -> Option<Ran> {
    let ran = iowhy(args);
    if ran.stderr.contains("error: cannot watch") {
        skipped(&ran.stderr);
        return None;
    }
    Some(ran)
}

#[test]
fn options_beside_the_wrong_question_are_refused_by_name() {
    for (args, subject) in [
        (&["--budget", "5s", "--", "true"] as &[&str], "--budget"),
        (&["--seed", "1", "--", "true"], "--seed"),
        (&["--save", "x", "--", "true"], "--save"),
        (&["/tmp", "--", "true"], "PATH"),
        (&["--tier", "T1", "."], "--tier"),
        (&["--no-bursts"], "--no-bursts"),
        (&["--folded", "x"], "--folded"),
        (&["--output", "x"], "--output"),
        (&["--machine", "x"], "--machine"),
        (&["--tier", "T1", "attach", "1"], "--tier"),
        (&["--budget", "5s", "explain"], "option of the main job"),
        (&["--"], "--"),
        (&["--json", "-", "--", "true"], "--json -"),
        (&["--output", "-", "--", "true"], "--output -"),
        (&["--folded", "-", "--", "true"], "--folded -"),
        (&["--json", "/x", "--folded", "/x", "--", "true"], "--folded"),
        (&["--machine", "/no/such/file", "--", "true"], "/no/such/file"),
        (&["--machine", "/etc/passwd", "--", "true"], "/etc/passwd"),
        (&["--json", "/no/such/dir/file", "--", "true"], "/no/such/dir/file"),
        (&["attach", "0"], "0"),
        (&["attach", "-5"], "-5"),
        (&["attach", "init"], "init"),
        (&["attach", "1", "--for", "0"], "--for"),
        (&["attach", "1", "--for", "x"], "--for"),
        (&["attach", "1", "--for", "1ns"], "--for"),
        (&["explain", "sync"], "sync"),
    ] {
        assert_refused(&iowhy(args), subject);
    }
}

#[test]
fn a_forgotten_double_dash_is_seen() {
    let ran = iowhy(&["cat"]);
    assert_refused(&ran, "cat");
    assert!(ran.stderr.contains("`iowhy -- cat`"), "{ran:?}");
    let ran = iowhy(&["cat", "file"]);
    assert!(ran.code() == 2 && ran.stderr.contains("`iowhy -- cat ...`"), "{ran:?}");
}

#[test]
fn a_program_that_does_not_start_ends_as_in_a_shell() {
    let dir = directory();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).unwrap();
    let json = dir.path().join("out.json");
    for (program, code) in [
        ("no-such-program-anywhere", 127),
        ("./no/such", 127),
        ("", 127),
        (text(dir.path()), 126),
        (text(&plain), 126),
    ] {
        let ran = iowhy(&["--json", text(&json), "--", program]);
        assert_eq!((ran.code(), ran.stdout.as_str()), (code, ""), "{program}: {ran:?}");
        assert_eq!(ran.stderr.lines().filter(|l| l.starts_with("error: ")).count(), 1, "{ran:?}");
    }
    assert_eq!(names(dir.path()), ["plain"], "no output is made for a program that never ran");
}

#[test]
fn explain_lists_all_findings_and_prints_the_page_of_one() {
    let ran = iowhy(&["explain"]).done();
    assert!(ran.stdout.lines().count() == 22 && ran.stdout.contains("sync-per-write"), "{ran:?}");
    let page = iowhy(&["explain", "sync-per-write"]).done();
    assert!(page.stdout.contains("sync-per-write") && page.stderr.is_empty(), "{page:?}");
    let json = iowhy(&["explain", "--json", "-"]).done().json();
    assert_eq!(json["findings"].as_array().unwrap().len(), 21);
}

#[test]
fn the_program_keeps_its_output_and_its_code() {
    for (script, code) in [("echo out; exit 0", 0), ("echo out; exit 7", 7), ("echo out; kill -9 $$", 137)] {
        let Some(ran) = watched(&["--", "sh", "-c", script]) else { return };
        assert_eq!((ran.code(), ran.stdout.as_str()), (code, "out\n"), "{ran:?}");
        assert!(ran.stderr.contains("tier T"), "the report is on stderr: {ran:?}");
    }
    let dir = directory();
    let report = dir.path().join("report");
    let Some(ran) = watched(&["--output", text(&report), "--", "sh", "-c", "echo err >&2; exit 3"]) else {
        return;
    };
    assert_eq!((ran.code(), ran.stderr.as_str()), (3, "err\n"), "{ran:?}");
    assert!(std::fs::read_to_string(&report).unwrap().contains("sh -c"));
}

#[test]
fn records_of_programs_keep_the_contract_and_close() {
    let dir = directory();
    let (json, folded) = (dir.path().join("r.json"), dir.path().join("r.folded"));
    for tier in ["T0", "T1", "T2", "T3"] {
        let args = ["--json", text(&json), "--folded", text(&folded), "--tier", tier];
        let program = ["--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05"];
        let Some(ran) = watched(&[&args[..], &program].concat()) else { return };
        assert_eq!(ran.code(), 0, "{ran:?}");
        let record: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
        let thread_s = number(&record["thread_s"]);
        let layers: f64 = record["layers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| number(&l["busy_s"]) + number(&l["wait_s"]))
            .sum();
        assert!(
            (layers - thread_s).abs() <= 1e-6 * thread_s,
            "{tier}: layers {layers} s, threads {thread_s} s"
        );
        let stacks: f64 = std::fs::read_to_string(&folded)
            .unwrap()
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
            .sum();
        assert!((stacks / 1e6 - thread_s).abs() <= 2e-6 + 1e-6 * thread_s, "{tier}: {stacks} us");
        assert!(number(&record["wall_s"]) >= 0.05 && record["exit"]["code"] == 0, "{tier}");
        assert!(words_of(&record["tier"]) <= tier, "no tier above {tier} is used: {}", record["tier"]);
    }
}

fn words_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn a_full_output_is_said_and_the_code_still_comes() {
    for (script, code) in [("exit 0", 1), ("exit 5", 5)] {
        let Some(ran) = watched(&["--json", "/dev/full", "--", "sh", "-c", script]) else { return };
        assert_eq!(ran.code(), code, "{ran:?}");
        assert!(
            ran.stderr.contains("error: cannot write `/dev/full`") && ran.stderr.contains("tier T"),
            "{ran:?}"
        );
    }
}

#[test]
fn attach_reports_on_stdout() {
    let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let ran = watched(&["attach", &pid, "--for", "200ms"]);
    // It is our own child, and still there: killing it cannot fail.
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let Some(ran) = ran else { return };
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(ran.stdout.contains("still running") && ran.stdout.contains("tier T"), "{ran:?}");
}

#[test]
fn colour_of_the_report_follows_stderr_and_never_enters_a_file() {
    let Some(ran) = watched(&["--color", "always", "--", "true"]) else { return };
    assert!(ran.stderr.contains('\u{1b}'), "{ran:?}");
    let dir = directory();
    let report = dir.path().join("report");
    let ran = finish(binary().args(["--output", text(&report), "--", "true"]).env("CLICOLOR_FORCE", "1"));
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert!(!std::fs::read_to_string(&report).unwrap().contains('\u{1b}'));
}
