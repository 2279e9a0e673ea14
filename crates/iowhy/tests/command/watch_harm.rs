//! Harm: what the program, the machine or the user may do to `iowhy -- CMD`, and what must come of it: the program's own
//! exit code, a clear refusal, nothing left behind.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Ran, binary, binary_that_listens, directory, finish, iowhy, skipped, text};

/// A shell that gets the binary's path as `$0`, where the environment is to be odd.
fn in_shell(script: &str) -> Ran {
    let iowhy = binary();
    finish(Command::new("sh").args(["-c", script]).arg(iowhy.get_program()).stdin(Stdio::null()))
}

/// An executable file with this content.
fn executable(folder: &Path, content: &[u8]) -> String {
    let file = folder.join("file");
    std::fs::write(&file, content).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    text(&file).to_owned()
}

#[test]
fn what_fails_only_at_exec_ends_as_in_a_shell() {
    let folder = directory();
    for (content, code, words) in [
        (b"#!/no/such/interpreter\n" as &[u8], 127, "interpreter"),
        (b"\x7fELF and no more", 126, "no program"),
        (b"MZ\0\0\0", 126, "no program"),
        (b"exit 5\n", 5, "exit code 5"),
    ] {
        let ran = iowhy(&["--", &executable(folder.path(), content)]);
        assert!(ran.code() == code && ran.stderr.contains(words), "{content:?}: {ran:?}");
        assert!(code == 5 || ran.stderr.contains("hint: "), "{ran:?}");
    }
}

#[test]
fn closed_streams_stay_closed() {
    let ran = in_shell(
        "\"$0\" -- sh -c 'for s in 0 1; do [ -e /proc/self/fd/$s ] && exit 9; done; exit 4' <&- >&-",
    );
    assert_eq!(ran.code(), 4, "{ran:?}");
    let ran = in_shell("\"$0\" -- sh -c '[ -e /proc/self/fd/2 ] && exit 9; echo out; exit 4' 2>&-");
    assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (4, "out\n", ""), "{ran:?}");
}

#[test]
fn every_death_by_signal_gives_the_code_of_a_shell() {
    // Not 1, 2 and 3: whoever starts these tests in the background may have had them ignored, and a program inherits that.
    for signal in [6, 9, 10, 11, 12, 13, 14, 15, 34, 64] {
        let ran = iowhy(&["--tier", "none", "--", "sh", "-c", &format!("ulimit -c 0; kill -{signal} $$")]);
        assert_eq!(ran.code(), 128 + signal, "{ran:?}");
    }
}

#[test]
fn watching_in_watching_keeps_the_code() {
    let inner = binary();
    let path = text(Path::new(inner.get_program())).to_owned();
    let ran = iowhy(&["--", &path, "--", "sh", "-c", "echo once; exit 6"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (6, "once\n"), "{ran:?}");
}

#[test]
fn a_proc_of_another_user_is_refused_and_nothing_runs() {
    for script in [
        "unshare --pid --fork \"$0\" -- sh -c 'echo ran'",
        "unshare --mount sh -c 'umount -l /proc && exec \"$0\" -- sh -c \"echo ran\"' \"$0\"",
    ] {
        let ran = in_shell(script);
        if !ran.stderr.contains("error: ") {
            skipped(&format!("no name spaces here: {}", ran.stderr));
            return;
        }
        assert!(ran.code() == 2 && ran.stdout.is_empty(), "{ran:?}");
        assert!(ran.stderr.contains("/proc") && ran.stderr.contains("mount -t proc"), "{ran:?}");
    }
}

#[test]
fn few_open_files_never_change_the_code() {
    for limit in [16, 24, 64] {
        let ran = in_shell(&format!("ulimit -n {limit}; \"$0\" -- sh -c 'exit 3'"));
        assert_eq!(ran.code(), 3, "{limit}: {ran:?}");
    }
}

#[test]
fn timeout_asks_once_and_not_twice() {
    if !Path::new("/usr/bin/timeout").exists() {
        skipped("there is no timeout(1)");
        return;
    }
    let folder = directory();
    let log = folder.path().join("log");
    // A program that counts what it is asked and ends a while later.
    let script = format!(
        "trap 'echo asked >> {0}' TERM; echo ready >> {0}; i=0; while [ $i -lt 400 ]; do sleep 0.05; i=$((i+1)); \
         [ $(grep -c asked {0}) -gt 0 ] && break; done; sleep 0.3; exit 0",
        log.display()
    );
    let iowhy = binary();
    let mut timeout = Command::new("/usr/bin/timeout");
    timeout.arg("5").arg(iowhy.get_program()).args(["--tier", "none", "--", "sh", "-c", &script]);
    let ran = finish(timeout.stdin(Stdio::null()).env("COLUMNS", "100"));
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    if !said.contains("ready") {
        skipped("the program did not start in time");
        return;
    }
    assert_eq!(said.matches("asked").count(), 1, "{said} {ran:?}");
}

#[test]
fn an_interrupt_of_the_group_does_not_end_the_watch_of_a_program_that_lives_on() {
    let folder = directory();
    let log = folder.path().join("log");
    let script = format!(
        "trap 'echo asked >> {0}' TERM INT; echo ready > {0}; sleep 1; sleep 1; exit 7",
        log.display()
    );
    // A group of its own, which is signalled as a whole.
    let mut watch = binary_that_listens();
    watch.args(["--tier", "none", "--", "sh", "-c", &script]).process_group(0);
    let mut watch = watch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !log.exists() {
        assert!(Instant::now() < deadline, "the program does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    let group = format!("-{}", watch.id());
    assert!(Command::new("sh").args(["-c", &format!("kill -INT {group}")]).status().unwrap().success());
    assert_eq!(watch.wait().unwrap().code(), Some(7));
    assert!(std::fs::read_to_string(&log).unwrap().contains("asked"));
}
