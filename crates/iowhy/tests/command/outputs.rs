//! Files that results go to: complete or not there, never through a link of another, never over what CMD wrote.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::common::{binary, directory, finish, iowhy, text};

#[test]
fn a_record_that_is_kept_follows_no_link() {
    let dir = directory();
    let records = dir.path().join("iowhy/records");
    std::fs::create_dir_all(&records).unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, records.join("x.json")).unwrap();
    symlink(dir.path().join("nowhere"), records.join("y.json")).unwrap();
    for name in ["x", "y"] {
        let ran = finish(binary().env("XDG_STATE_HOME", dir.path()).args([
            "bench",
            "scripted",
            "--state",
            "warm",
            "--save-as",
            name,
        ]));
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("--save-as {name}")), "{ran:?}");
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    assert!(!dir.path().join("nowhere").exists());
}

#[test]
fn what_the_program_writes_under_the_name_stays_and_the_result_goes_beside_it() {
    let dir = directory();
    let out = dir.path().join("out.json");
    let script = format!("echo theirs > '{}'; exit 3", out.display());
    let ran = iowhy(&["--tier", "none", "--json", text(&out), "--", "sh", "-c", &script]);
    assert_ne!(ran.code(), 0, "{ran:?}");
    let beside = dir.path().join("out.json.2");
    assert!(ran.stderr.contains(text(&beside)), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "theirs\n");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&beside).unwrap()).unwrap();
    assert!(record.is_object());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn an_output_that_fails_costs_no_other() {
    let dir = directory();
    let (json, state) = (dir.path().join("json"), dir.path().join("state"));
    let mut run = binary();
    run.env("XDG_STATE_HOME", &state).args(["bench", "null", "--time", "1s", "--save-as", "x", "--json"]);
    let run = run.arg(&json).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let folder = state.join("iowhy/records");
    while !folder.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Until the output is open there: the folder alone is not it, and without it nothing is measured.
    let holds = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", run.id())).into_iter().flatten().flatten();
        let mut open = open.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        open.any(|path| path.starts_with(&folder) && path != folder)
    };
    while !holds() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::fs::remove_dir_all(&state).unwrap();
    let ran = run.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("x.json") && stdout.contains("null"), "{stdout}{stderr}");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(record.is_object());
}

#[test]
fn a_run_that_is_killed_leaves_the_old_result_or_none() {
    let dir = directory();
    let (new, old) = (dir.path().join("new.json"), dir.path().join("old.json"));
    std::fs::write(&old, "{}").unwrap();
    for out in [&new, &old] {
        let mut run = binary()
            .args(["--tier", "none", "--json", text(out), "--", "sleep", "60"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Until it has started the program, after it took its outputs.
        let children = format!("/proc/{0}/task/{0}/children", run.id());
        let child = loop {
            match std::fs::read_to_string(&children).unwrap_or_default().split_whitespace().next() {
                Some(child) => break child.to_owned(),
                None => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        run.kill().unwrap();
        run.wait().unwrap();
        std::process::Command::new("kill").arg(&child).status().unwrap();
    }
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "{}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left of the other");
}

#[test]
fn help_that_cannot_be_written_is_a_failure_with_its_reason() {
    for arguments in [&["--help"][..], &["bench", "--help"], &["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = finish(binary().args(arguments).stdout(full));
        assert!(ran.code() == 1 && ran.stderr.contains("error: cannot write to stdout"), "{ran:?}");
        assert_eq!(iowhy(arguments).code(), 0);
    }
}

#[test]
fn usage_errors_show_line_ends_of_arguments_as_escapes() {
    for arguments in
        [&["--no-such\noption"][..], &["bench", "--rw=x\nhint: y"], &["report", "-o", "a", "--x\ry"]]
    {
        let ran = finish(binary().args(arguments));
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("\\n") || ran.stderr.contains("\\r"), "{ran:?}");
        let forged = ran.stderr.lines().any(|line| line.starts_with("option") || line.starts_with("hint: y"));
        assert!(!forged && !ran.stderr.contains('\r'), "{ran:?}");
    }
}
