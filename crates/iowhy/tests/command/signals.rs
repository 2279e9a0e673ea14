//! Signals and limits that a shell sets: what they do to iowhy, and that the command gets them as iowhy was started with.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{MIB, binary, directory, finish, full_file, is_root, names, skipped, succeeds};

/// A shell that gets the binary's path as `$0`.
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(binary().get_program()).stdin(Stdio::null());
    command
}

#[test]
fn the_command_starts_with_the_signals_that_iowhy_was_started_with() {
    let masks = "grep ^Sig[BIC] /proc/self/status";
    for signals in ["--default-signal", "--ignore-signal=XFSZ,PIPE,USR1,QUIT,ALRM"] {
        let alone = finish(&mut shell(&format!("exec env {signals} {masks}"))).done();
        let watched =
            finish(&mut shell(&format!("exec env {signals} \"$0\" --output /dev/null -- {masks}"))).done();
        assert_eq!(watched.stdout, alone.stdout, "{signals}");
        assert!(alone.stdout.contains("SigIgn"), "{alone:?}");
    }
}

#[test]
fn a_limit_on_file_sizes_fails_a_write_with_cause_and_fix_and_is_left_to_the_command() {
    let dir = directory();
    let run = |words: &str| {
        let mut command = shell(&format!("ulimit -c 0; ulimit -f 1; exec env --default-signal=XFSZ {words}"));
        finish(command.current_dir(dir.path()))
    };
    let limited = |ran: &crate::common::Ran, what: &str| {
        assert_eq!(ran.code(), 1, "{ran:?}");
        for word in [what, "RLIMIT_FSIZE", "ulimit -f unlimited"] {
            assert!(ran.stderr.contains(word), "{word}: {ran:?}");
        }
    };
    limited(&run("\"$0\" --quiet --json record.json -- true"), "record.json");
    // A stream may lead to a file as well.
    limited(&run("\"$0\" explain small-requests > page"), "stdout");
    let ran = run("\"$0\" --output /dev/null -- dd if=/dev/zero of=made bs=64k count=1 status=none");
    assert_eq!(ran.code(), 128 + 25, "the command dies of it as it would without iowhy: {ran:?}");
}

/// Runs a script on a terminal of its own, with the binary's path in `$BIN`; to kill it is to close the terminal.
fn on_a_terminal(directory: &Path, words: &str) -> Option<Child> {
    let mut command = Command::new("script");
    let default = "env --default-signal=HUP,INT,QUIT,TERM";
    command.args(["-q", "-e", "-c", &format!("exec {default} \"$BIN\" {words}"), "/dev/null"]);
    command.env("BIN", binary().get_program()).env("TERM", "xterm").current_dir(directory);
    match command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn() {
        Ok(child) => Some(child),
        Err(error) => {
            skipped(&format!("script (util-linux) cannot be started: {error}"));
            None
        }
    }
}

/// Runs a shell script with job control on a terminal of its own, with the binary's path in `$BIN`.
fn in_a_job(script: &str) -> Option<Child> {
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", "exec bash --norc -mc \"$SCRIPT\"", "/dev/null"]);
    command.env("BIN", binary().get_program()).env("TERM", "xterm").env("SCRIPT", script);
    let started = succeeds("bash", &["-c", ":"])
        .then(|| command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok());
    if started.as_ref().is_none_or(Option::is_none) {
        skipped("bash or script (util-linux) cannot be started");
    }
    started.flatten()
}

/// Waits for the end, at most two minutes, and returns what it printed.
fn printed(mut run: Child) -> String {
    let begun = Instant::now();
    while run.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    let mut text = String::new();
    run.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    run.wait().unwrap();
    text
}

#[test]
fn a_shell_with_job_control_gets_its_prompt_and_continues_both() {
    let stops = "\"$BIN\" --output /dev/null -- sh -c 'kill -TSTP $$; echo went on'";
    let Some(run) = in_a_job(&format!("{stops}; echo prompt; fg > /dev/null; echo code $?")) else { return };
    let text = printed(run);
    let order = ["\nprompt", "\nwent on", "\ncode 0"].map(|word| text.find(word));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{text:?}");
}

#[test]
fn a_command_that_stops_itself_without_a_terminal_does_not_stop_iowhy() {
    let mut command = binary();
    // In a group of its own: for a group without a parent that could continue it the kernel ignores such signals.
    command.args(["--output", "/dev/null", "--", "sh", "-c", "echo $$; kill -TSTP $$; echo went on"]);
    let mut run = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = Vec::new();
    let mut byte = [0];
    while run.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        first.push(byte[0]);
    }
    let shell = String::from_utf8(first).unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{shell}/stat")).unwrap_or_default();
    until("the command never stopped", || stat().contains(") T "));
    // Time to follow it.
    std::thread::sleep(Duration::from_millis(500));
    assert!(succeeds("kill", &["-CONT", &shell]) || succeeds("sh", &["-c", &format!("kill -CONT {shell}")]));
    let text = printed(run);
    assert_eq!(text, "went on\n", "iowhy never went on");
}

/// Whether a child of this process has a handler for SIGHUP.
fn catches_hangup(parent: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    children.unwrap_or_default().split_whitespace().any(|child| {
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        // Bit N - 1 is signal N; SIGHUP is 1.
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
    })
}

fn close(mut terminal: Child) {
    terminal.kill().unwrap();
    terminal.wait().unwrap();
}

fn until(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The reason that a proof gives in a record, once it is written whole.
fn reason(file: &Path, proof: impl Fn(&Value) -> &Value) -> String {
    let mut found = Value::Null;
    until("no record was written", || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        found = serde_json::from_str(&text).unwrap_or_default();
        found.is_object()
    });
    proof(&found)["reason"].as_str().unwrap_or_else(|| panic!("it went on: {}", proof(&found))).to_owned()
}

#[test]
fn a_proof_ends_when_the_terminal_goes() {
    if !is_root() {
        return skipped("system calls are traced by root alone, and a replay is made of them");
    }
    let dir = directory();
    full_file(dir.path(), "data", 16 * MIB);
    let record = dir.path().join("record.json");
    // During the watch, of a command that outlives its terminal.
    let reads = "dd if=data of=/dev/null bs=32 count=500000 status=none";
    let words = format!("--prove --json record.json -- sh -c \"trap '' HUP; : > begun; exec {reads}\"");
    let Some(terminal) = on_a_terminal(dir.path(), &words) else { return };
    until("the command never began", || dir.path().join("begun").exists());
    close(terminal);
    let why = reason(&record, |record| &record["proof"]);
    assert_eq!(why, "interrupted after 0 of 9 rounds");
    // As soon as it listens, and during the replay, which tells how far it is.
    for replays in [false, true] {
        let words = "prove record.json --rounds 99 --json proof.json";
        let Some(mut terminal) = on_a_terminal(dir.path(), words) else { return };
        let proof = dir.path().join("proof.json");
        until("it never listened", || catches_hangup(terminal.id()));
        if replays {
            terminal.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
        }
        close(terminal);
        let why = reason(&proof, |proof| proof);
        assert!(why.starts_with("interrupted after") && why.ends_with("of 99 rounds"), "{why}");
        assert_eq!(names(dir.path()), ["begun", "data", "proof.json", "record.json"]);
        std::fs::remove_file(proof).unwrap();
    }
}
