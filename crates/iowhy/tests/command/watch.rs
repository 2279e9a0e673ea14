//! `iowhy -- CMD`, `attach` and `explain` as a user runs them: what is refused, what the program keeps, where the
//! report goes.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::bad_input::assert_refused;
use crate::common::{Mount, binary, directory, finish, iowhy, names, text};

#[test]
fn options_beside_the_wrong_question_are_refused_by_name() {
    for (args, subject) in [
        (&["--time", "5s", "--", "true"] as &[&str], "--time"),
        (&["--seed", "1", "--", "true"], "--seed"),
        (&["--save-model", "x", "--", "true"], "--save-model"),
        (&["/tmp", "--", "true"], "PATH"),
        (&["--tier", "stacks", "."], "--tier"),
        (&["--no-counts"], "--no-counts"),
        (&["--flamegraph", "x"], "--flamegraph"),
        (&["--profile", "x"], "--profile"),
        (&["--perfetto", "x"], "--perfetto"),
        (&["--output", "x"], "--output"),
        (&["--model", "x"], "--model"),
        (&["--tier", "stacks", "attach", "1"], "--tier"),
        (&["--time", "5s", "explain"], "--time"),
        (&[".", "attach", "1"], "PATH"),
        (&["--tier", "stacks", "explain"], "--tier"),
        (&["--"], "--"),
        (&["--json", "-", "--", "true"], "--json -"),
        (&["--output", "-", "--", "true"], "--output -"),
        (&["--flamegraph", "-", "--", "true"], "--flamegraph -"),
        (&["--json", "/x", "--flamegraph", "/x", "--", "true"], "--flamegraph"),
        (&["--profile", "-", "--", "true"], "--profile -"),
        (&["--profile", "/x", "--perfetto", "/x", "--", "true"], "--perfetto"),
        (&["--perfetto", "/no/such/dir/file", "--", "true"], "/no/such/dir/file"),
        (&["attach", "1", "--json", "/x", "--profile", "/x"], "--profile"),
        (&["--model", "/no/such/file", "--", "true"], "/no/such/file"),
        (&["--model", "/etc/passwd", "--", "true"], "/etc/passwd"),
        (&["--json", "/no/such/dir/file", "--", "true"], "/no/such/dir/file"),
        (&["attach", "0"], "0"),
        (&["attach", "-5"], "-5"),
        (&["attach", "init"], "init"),
        (&["attach", "1", "--time", "0"], "--time"),
        (&["attach", "1", "--time", "x"], "--time"),
        (&["attach", "1", "--time", "1ns"], "--time"),
        (&["explain", "sync"], "sync"),
    ] {
        assert_refused(&iowhy(args), subject);
    }
}

#[test]
fn words_of_a_screen_are_explained() {
    for (words, what) in [
        (&["one-thread"] as &[&str], "a limit"),
        (&["depth"], "a limit"),
        (&["cpu-queue"], "a layer"),
        (&["where", "it", "goes"], "a column"),
        (&["mislabelled"], "a verdict"),
    ] {
        let ran = iowhy(&[&["explain"], words].concat()).done();
        assert!(ran.stdout.starts_with(&words.join(" ")) && ran.stdout.contains(what), "{ran:?}");
    }
    let json = iowhy(&["explain", "device", "--json", "-"]).done().json();
    let kinds: Vec<&str> =
        json["words"].as_array().unwrap().iter().map(|w| w["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["layer", "limit"]);
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
    let findings = iowhy_core::finding::FindingId::ALL.len();
    assert!(ran.stdout.lines().count() == findings + 1 && ran.stdout.contains("sync-per-write"), "{ran:?}");
    let page = iowhy(&["explain", "sync-per-write"]).done();
    assert!(page.stdout.contains("sync-per-write") && page.stderr.is_empty(), "{page:?}");
    let json = iowhy(&["explain", "--json", "-"]).done().json();
    assert_eq!(json["findings"].as_array().unwrap().len(), findings);
}

#[test]
fn the_program_keeps_its_output_and_its_code() {
    for (script, code) in [
        ("echo out; exit 0", 0),
        ("echo out; exit 7", 7),
        ("echo out; kill -9 $$", 137),
        ("echo out; kill -TERM $$", 143),
    ] {
        let ran = iowhy(&["--", "sh", "-c", script]);
        assert_eq!((ran.code(), ran.stdout.as_str()), (code, "out\n"), "{ran:?}");
        assert!(ran.stderr.contains("\ntier "), "the report is on stderr: {ran:?}");
    }
    let dir = directory();
    let report = dir.path().join("report");
    let ran = iowhy(&["--output", text(&report), "--", "sh", "-c", "echo err >&2; exit 3"]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (3, "err\n"), "{ran:?}");
    assert!(std::fs::read_to_string(&report).unwrap().contains("sh -c"));
}

#[test]
fn a_full_output_is_said_and_the_code_still_comes() {
    for (script, code) in [("exit 0", 1), ("exit 5", 5)] {
        let ran = iowhy(&["--json", "/dev/full", "--", "sh", "-c", script]);
        assert_eq!(ran.code(), code, "{ran:?}");
        assert!(
            ran.stderr.contains("error: cannot write `/dev/full`") && ran.stderr.contains("\ntier "),
            "{ran:?}"
        );
    }
}

#[test]
fn a_report_that_its_file_does_not_take_is_printed_and_the_code_is_the_programs() {
    for code in [0, 5] {
        let script = format!("exit {code}");
        let ran = iowhy(&["--output", "/dev/full", "--", "sh", "-c", &script]);
        assert_eq!(ran.code(), code, "{ran:?}");
        assert!(ran.stderr.contains("cannot write `/dev/full`") && ran.stderr.contains("\ntier "), "{ran:?}");
        assert!(ran.stderr.contains("printed here instead"), "{ran:?}");
    }
    // A full disk, and a record that is lost beside it.
    let dir = directory();
    let Some(full) = Mount::tmpfs("size=16k") else { return };
    let (report, json) = (full.path().join("report"), full.path().join("run.json"));
    let fill = format!(
        "cat /dev/zero > '{}' 2> '{}'; true",
        text(&full.path().join("fill")),
        text(&dir.path().join("why"))
    );
    let ran = iowhy(&["--output", text(&report), "--json", text(&json), "--", "sh", "-c", &fill]);
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(ran.stderr.contains("\ntier ") && ran.stderr.contains("printed here instead"), "{ran:?}");
    assert!(ran.stderr.contains("run.json"), "{ran:?}");
}

#[test]
fn attach_reports_on_stdout() {
    let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let ran = iowhy(&["attach", &pid, "--time", "200ms"]);
    // It is our own child, and still there: killing it cannot fail.
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(ran.stdout.contains("still running") && ran.stdout.contains("\ntier "), "{ran:?}");
}

/// Who starts it for a part of a program waits for the line, and ends it by a signal.
#[test]
fn attach_says_when_it_has_begun_and_a_signal_ends_it() {
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let mut attach = binary();
    attach.args(["attach", &sleeper.id().to_string()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut attached = attach.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(attached.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with(&format!("watching process {}; ", sleeper.id())), "{line}");
    // A test in the background of a shell inherits that SIGINT is ignored, and so does iowhy.
    let ended = Command::new("kill").args(["-TERM", &attached.id().to_string()]).status().unwrap();
    assert!(ended.success());
    let ran = attached.wait_with_output().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("still running"), "{ran:?}");
}

#[test]
fn colour_of_the_report_follows_stderr_and_never_enters_a_file() {
    let ran = iowhy(&["--color", "always", "--", "true"]);
    assert!(ran.stderr.contains('\u{1b}'), "{ran:?}");
    let dir = directory();
    let report = dir.path().join("report");
    let ran = finish(binary().args(["--output", text(&report), "--", "true"]).env("CLICOLOR_FORCE", "1"));
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert!(!std::fs::read_to_string(&report).unwrap().contains('\u{1b}'));
    let no_colour = finish(binary().args(["--", "true"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"));
    assert!(no_colour.stderr.contains("\ntier ") && !no_colour.stderr.contains('\u{1b}'), "{no_colour:?}");
}

#[test]
fn quiet_keeps_the_report_and_the_programs_own_words() {
    let ran = iowhy(&["--quiet", "--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "out\n"), "{ran:?}");
    assert!(ran.stderr.contains("err\n") && ran.stderr.contains("\ntier "), "{ran:?}");
}

#[test]
fn the_program_reads_what_stdin_holds() {
    let dir = directory();
    let input = dir.path().join("input");
    std::fs::write(&input, "a line\n").unwrap();
    let ran = finish(binary().args(["--", "cat"]).stdin(std::fs::File::open(&input).unwrap()));
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "a line\n"), "{ran:?}");
}

/// A title can be copied: what a shell makes of it is the command that ran.
#[test]
fn the_title_of_a_shell_command_can_be_copied() {
    let ran = iowhy(&["--tier", "none", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(ran.code(), 137, "{ran:?}");
    assert!(ran.stderr.contains("sh -c 'kill -9 $$'"), "{ran:?}");
    let dir = directory();
    let json = dir.path().join("run.json");
    iowhy(&["--tier", "none", "--json", text(&json), "--", "sh", "-c", "exit 0"]).done();
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(record["subject"], "sh -c 'exit 0'");
    assert!(record["command"].as_str().is_some_and(|line| line.ends_with(" -- sh -c 'exit 0'")), "{record}");
}
