//! How the command behaves as a process: signals, closed and full outputs, colours, progress, and the promise that a
//! file of the user's is only ever read.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iowhy_core::workload::Method;
use rustix::process::{Pid, Signal, kill_process};

use crate::bad_input::fingerprint;
use crate::common::{
    MIB, Ran, binary, binary_that_listens, directory, finish, full_file, iowhy, lives_in_memory, names,
    skipped, succeeds, text,
};
use crate::record::{holds_together, only_cell, whole, words};

/// Long enough for any test; a run that is not stopped fails it.
const LONG: [&str; 2] = ["--runtime", "600s"];

/// A run that goes on until somebody stops it.
struct Running(Child);

impl Running {
    /// Starts it and waits until a measuring thread is at work.
    fn measuring(args: &[&str]) -> Running {
        let child =
            binary_that_listens().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Running(child);
        let tasks = format!("/proc/{}/task", running.0.id());
        let begun = Instant::now();
        while std::fs::read_dir(&tasks).map_or(0, Iterator::count) < 2 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no measuring thread within a minute");
            assert!(running.0.try_wait().unwrap().is_none(), "ended by itself: {:?}", running.ended());
            std::thread::sleep(Duration::from_millis(5));
        }
        // So that some requests are done.
        std::thread::sleep(Duration::from_millis(200));
        running
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn ended(&mut self) -> Ran {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ran { status: self.0.wait().unwrap(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_interrupt_prints_what_is_known_and_leaves_nothing() {
    let dir = directory();
    for signal in [Signal::INT, Signal::TERM] {
        let args = ["bench", text(dir.path()), "--size", "4m", "--state", "warm", "--quiet", "--json", "-"];
        let mut running = Running::measuring(&[&args[..], &LONG].concat());
        assert!(names(dir.path()).is_empty(), "the scratch file has no name while it is in use");
        running.signal(signal);
        let ran = running.ended();
        assert_eq!(ran.code(), 1, "{ran:?}");
        assert!(ran.stderr.starts_with("error: interrupted") && ran.stderr.lines().count() == 2, "{ran:?}");
        let record = ran.json();
        holds_together(&record);
        assert_eq!(record["interrupted"], true);
        assert!(whole(&only_cell(&record)["latency_ns"]["n"]) > 0, "what was measured is kept");
        assert!(names(dir.path()).is_empty());
    }
}

#[test]
fn the_path_report_can_be_interrupted_too() {
    let dir = directory();
    let mut running = Running::measuring(&[text(dir.path()), "--size", "16m", "--time", "600s"]);
    running.signal(Signal::INT);
    let ran = running.ended();
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(ran.stdout.starts_with(text(dir.path())) && ran.stderr.contains("error: interrupted"), "{ran:?}");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_kill_leaves_nothing() {
    let dir = directory();
    let mut running = Running::measuring(&[&["bench", text(dir.path()), "--size", "4m"], &LONG[..]].concat());
    running.signal(Signal::KILL);
    assert_eq!(running.ended().status.code(), None);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_file_cut_short_while_it_is_read_fails_its_cell_and_not_the_tool() {
    for method in ["mmap", "pread"] {
        let dir = directory();
        let file = full_file(dir.path(), "short", 8 * MIB);
        // Slow enough to be cut in the middle of a pass.
        let slow = ["--state", "warm", "--rate", "50", "--method", method, "--json", "-"];
        let mut running = Running::measuring(&[&["bench", text(&file)], &slow[..], &LONG].concat());
        std::fs::File::options().write(true).open(&file).unwrap().set_len(0).unwrap();
        let ran = running.ended();
        assert_eq!(ran.code(), 1, "{ran:?}");
        let record = ran.json();
        holds_together(&record);
        let cell = only_cell(&record);
        assert_eq!(cell["verdict"], "failed");
        assert!(words(&cell["failure"]).contains("truncated"), "{}", cell["failure"]);
    }
}

/// Runs the binary through a shell that redirects its descriptors.
fn redirected(how: &str, args: &[&str]) -> Ran {
    let mut shell = Command::new("sh");
    let program = binary().get_program().to_owned();
    finish(shell.arg("-c").arg(format!("exec \"$0\" \"$@\" {how}")).arg(program).args(args))
}

const QUICK: [&str; 4] = ["bench", "scripted", "--state", "warm"];

#[test]
fn closed_descriptors_do_no_harm() {
    let dir = directory();
    for how in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let ran = redirected(how, &QUICK);
        assert!(ran.code() <= 1 && !ran.stderr.contains("panicked"), "{how}: {ran:?}");
        let ran = redirected(how, &["bench", text(dir.path()), "--size", "1m", "--runtime", "20ms"]);
        assert!(ran.code() <= 1 && !ran.stderr.contains("panicked"), "{how}: {ran:?}");
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [
        &QUICK as &[&str],
        &["bench", "--method", "list"],
        &["--help"],
        &["bench", "scripted", "--json", "-"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child =
            binary().args(args).stdout(writer).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_output_is_an_error() {
    for args in [&QUICK as &[&str], &["bench", "--method", "list"], &["bench", "scripted", "--json", "-"]] {
        let ran = redirected(">/dev/full", args);
        assert_eq!(ran.code(), 1, "{ran:?}");
        assert!(ran.stderr.contains("error: cannot write to stdout: "), "{ran:?}");
        // What was measured is not lost.
        assert_eq!(ran.stderr.contains("percentiles over all requests"), !args.contains(&"list"), "{ran:?}");
    }
    let ran = iowhy(&["bench", "scripted", "--json", "/dev/full"]);
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(ran.stderr.starts_with("error: cannot write `/dev/full`: "), "{ran:?}");
    assert!(ran.stdout.contains("percentiles over all requests"), "{ran:?}");
}

#[test]
fn colour_only_where_it_is_wanted() {
    let coloured = |args: &[&str], env: &[(&str, &str)]| {
        finish(binary().args(QUICK).args(args).envs(env.iter().copied())).done().stdout.contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]), "stdout is no terminal");
    assert!(coloured(&["--color", "always"], &[]));
    assert!(coloured(&["--color", "always"], &[("NO_COLOR", "1")]), "the option was typed for this run");
    assert!(!coloured(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["--color", "auto"], &[("NO_COLOR", "1")]));
}

#[test]
fn quiet_silences_warnings_but_not_the_result_and_not_errors() {
    let args = ["bench", "scripted", "--method", "pread", "--iodepth", "4", "--state", "warm"];
    assert!(!iowhy(&args).done().stderr.is_empty());
    let quiet = iowhy(&[&args[..], &["--quiet"]].concat()).done();
    assert!(quiet.stderr.is_empty() && !quiet.stdout.is_empty(), "{quiet:?}");
    assert!(iowhy(&["bench", "-q", "--bs", "0", "scripted"]).stderr.starts_with("error: "));
}

#[test]
fn progress_only_on_a_terminal() {
    let dir = directory();
    let line = |extra: &str| {
        let program = binary().get_program().to_string_lossy().into_owned();
        format!("{program} bench {} --size 4m --state warm --runtime 500ms {extra}", text(dir.path()))
    };
    let on_terminal = |line: &str| {
        finish(Command::new("script").args(["-qec", line, "/dev/null"]).stdin(Stdio::null())).stdout
    };
    if succeeds("script", &["-qec", "true", "/dev/null"]) {
        assert!(on_terminal(&line("")).contains(" s left"), "a terminal is told how long it takes");
        assert!(!on_terminal(&line("--quiet")).contains(" s left"));
    } else {
        skipped("script(1) gives no terminal here");
    }
    let piped = iowhy(&["bench", text(dir.path()), "--size", "4m", "--state", "warm", "--runtime", "300ms"]);
    assert!(!piped.measured().stderr.contains(" left"));
}

/// Methods that read a plain file through the cache. The kernel's submission thread is not allowed everywhere.
fn reads() -> String {
    let past_files = |method: &Method| {
        let special =
            [Method::Null, Method::Syscall, Method::Direct, Method::UringIopoll, Method::UringSqpoll];
        method.scsi() || special.contains(method)
    };
    let reads = Method::ALL.iter().filter(|method| method.can_read() && !past_files(method));
    reads.map(|method| method.id()).collect::<Vec<_>>().join(",")
}

/// The cached states that a file there can have.
fn states(directory: &Path) -> &'static str {
    if lives_in_memory(directory) { "warm" } else { "cold,warm" }
}

#[test]
fn reading_never_changes_a_file() {
    let dir = directory();
    let file = full_file(dir.path(), "precious", 2 * MIB);
    let before = fingerprint(&file);
    let name = text(&file);
    for args in [
        &["bench", "--method", &reads(), "--state", states(dir.path()), "--runtime", "20ms", name]
            as &[&str],
        &["bench", "--direct", "--iodepth", "1,4", "--runtime", "20ms", name],
        &["--time", "2s", name],
    ] {
        let ran = iowhy(args);
        assert!(ran.status.code().is_some_and(|code| code <= 1), "{ran:?}");
        assert!(fingerprint(&file) == before, "{args:?} changed the file");
    }
    assert_eq!(names(dir.path()), ["precious"]);
}

#[test]
fn a_users_file_is_only_ever_opened_for_reading() {
    let dir = directory();
    let file = full_file(dir.path(), "precious", 2 * MIB);
    let log = dir.path().join("log");
    let trace = ["-f", "-e", "trace=open,openat,openat2,creat,truncate", "-o", text(&log)];
    if !succeeds("strace", &[&trace[..], &["true"]].concat()) {
        return skipped("strace(1) is not here or may not trace");
    }
    let program = binary().get_program().to_owned();
    let args = [
        "bench",
        "--method",
        "pread,mmap,uring",
        "--state",
        states(dir.path()),
        "--runtime",
        "20ms",
        text(&file),
    ];
    finish(Command::new("strace").args(trace).arg(program).args(args).stdin(Stdio::null())).measured();
    let openings = openings_of(&file, &log);
    assert!(!openings.is_empty());
    for opening in openings {
        assert!(opening.contains("O_RDONLY") && !opening.contains("O_TRUNC"), "{opening}");
    }
}

fn openings_of(file: &Path, log: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(log).unwrap();
    log.lines().filter(|line| line.contains(text(file))).map(str::to_owned).collect()
}
