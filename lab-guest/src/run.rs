//! Runs a program of the script and answers with how it ended, what it said, and the record it wrote. Nothing of this program
//! wakes up while it runs.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sys::number;

/// Where `@record` in an argument points to.
const RECORD: &str = "/tmp/record.json";
const SAID: [&str; 2] = ["/tmp/stdout", "/tmp/stderr"];
/// More of what a program said helps nobody.
const MAX_SAID: usize = 6000;

/// How to run it.
#[derive(Debug, PartialEq)]
struct Options {
    /// As this user, without any rights of root.
    user: Option<u32>,
    /// With this many instructions before each system call.
    filter: usize,
    /// Killed after this, by the guest's clock.
    limit: Duration,
    /// Ended by this signal then.
    signal: Signal,
}

impl Options {
    /// Reads `as=65534,filter=500,limit=60`, or `-`; `fault=60` ends it as a fault in it would.
    fn read(text: &str) -> Result<Options, String> {
        let mut options =
            Options { user: None, filter: 0, limit: Duration::from_secs(600), signal: Signal::KILL };
        for word in text.split(',').filter(|word| *word != "-" && !word.is_empty()) {
            match word.split_once('=') {
                Some(("as", user)) => options.user = Some(number(user)? as u32),
                Some(("filter", n)) => options.filter = number(n)? as usize,
                Some(("limit", s)) => options.limit = Duration::from_secs(number(s)?),
                Some(("fault", s)) => {
                    (options.limit, options.signal) = (Duration::from_secs(number(s)?), Signal::SEGV);
                }
                _ => return Err(format!("`{word}` is no option of a run")),
            }
        }
        Ok(options)
    }
}

/// Runs a program.
///
/// # Errors
/// In words, when it cannot be started; how it ends is the answer.
pub(crate) fn run(label: &str, options: &str, argv: &[&str]) -> Result<Value, String> {
    let options = Options::read(options)?;
    let [program, arguments @ ..] = argv else { return Err("there is no program".to_owned()) };
    // It is not there unless the last program wrote one.
    let _ = std::fs::remove_file(RECORD);
    let file = |path: &str| File::create(path).map_err(|e| format!("cannot make {path}: {e}"));
    let mut command = Command::new(format!("/bin/{program}"));
    command
        .args(arguments.iter().map(|argument| argument.replace("@record", RECORD)))
        .env_clear()
        .envs([("PATH", "/bin"), ("HOME", "/tmp"), ("LANG", "C.UTF-8")])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(file(SAID[0])?)
        .stderr(file(SAID[1])?);
    if let Some(user) = options.user {
        command.uid(user).gid(user);
    }
    if options.filter > 0 {
        let programs = filters(options.filter);
        // SAFETY: between fork and exec only system calls are made, on memory that was made before.
        unsafe { command.pre_exec(move || programs.iter().try_for_each(|program| install(program))) };
    }
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|e| format!("cannot run {program}: {e}"))?;
    let (done, is_done) = mpsc::channel::<()>();
    let (pid, limit, signal) = (child.id(), options.limit, options.signal);
    let watch = std::thread::spawn(move || {
        let late = is_done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if late && let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
            // It is our child and not yet waited for, so the number is still its own.
            let _ = rustix::process::kill_process(pid, signal);
        }
        late
    });
    let status = child.wait().map_err(|e| format!("cannot wait for {program}: {e}"))?;
    drop(done);
    let late = watch.join().unwrap_or(false);
    let [stdout, stderr] = SAID.map(|path| tail(&std::fs::read(path).unwrap_or_default()));
    let mut answer = json!({
        "label": label,
        "command": argv.join(" "),
        "exit": status.code(),
        "signal": status.signal(),
        "timed_out": late,
        "seconds": begun.elapsed().as_secs_f64(),
        "stdout": stdout,
        "stderr": stderr,
    });
    if let Ok(text) = std::fs::read(RECORD) {
        answer["record"] = match serde_json::from_slice::<Value>(&text) {
            Ok(mut record) => {
                slim(&mut record);
                record
            }
            Err(_) => json!("not JSON"),
        };
    }
    Ok(answer)
}

/// The last part of what a program said, on a border between characters.
fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let from = (text.len().saturating_sub(MAX_SAID)..text.len()).find(|&at| text.is_char_boundary(at));
    text[from.unwrap_or(0)..].to_owned()
}

/// Takes histograms out of a record: large, and nobody on the host looks at them.
fn slim(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("histogram");
            map.values_mut().for_each(slim);
        }
        Value::Array(list) => list.iter_mut().for_each(slim),
        _ => {}
    }
}

/// Seccomp filters that allow everything, and take `instructions` together to do so: one has room for [`MAX_INSTRUCTIONS`].
fn filters(instructions: usize) -> Vec<Vec<libc::sock_filter>> {
    (0..instructions.div_ceil(MAX_INSTRUCTIONS))
        .map(|n| filter((instructions - n * MAX_INSTRUCTIONS).min(MAX_INSTRUCTIONS)))
        .collect()
}

/// Instructions of one filter; the kernel takes 4096.
const MAX_INSTRUCTIONS: usize = 4000;

/// One filter. It looks at an argument first: the kernel skips filters whose answer depends on the number of the call alone.
fn filter(instructions: usize) -> Vec<libc::sock_filter> {
    const FIRST_ARGUMENT: u32 = 16;
    let step = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let load = step((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, FIRST_ARGUMENT);
    let add = step((libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K) as u16, 1);
    let allow = step((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ALLOW);
    let mut program = vec![load];
    program.resize(1 + instructions.min(MAX_INSTRUCTIONS), add);
    program.push(allow);
    program
}

/// Puts the filter on the calling process and all it becomes.
fn install(program: &[libc::sock_filter]) -> std::io::Result<()> {
    let given = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: numbers, and a pointer to a structure that lives for the call; the kernel only reads it.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as libc::c_ulong, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER as libc::c_ulong, &raw const given)
                != 0
    };
    if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_refused() {
        let read = Options::read("as=65534,filter=500,limit=60").unwrap();
        assert_eq!((read.user, read.filter, read.limit.as_secs()), (Some(65534), 500, 60));
        assert_eq!(Options::read("-").unwrap().user, None);
        assert!(Options::read("fast").is_err() && Options::read("as=root").is_err());
    }

    #[test]
    fn a_filter_is_a_load_steps_and_an_answer() {
        assert_eq!(filter(5).len(), 7);
        assert_eq!(filter(1 << 20).len(), 4002);
        let lengths: Vec<usize> = filters(9000).iter().map(Vec::len).collect();
        assert_eq!(lengths, [4002, 4002, 1002]);
    }

    #[test]
    fn records_lose_histograms_at_any_depth() {
        let mut record = json!({"cells": [{"latency_ns": {"p50": 1, "histogram": [1, 2]}}], "histogram": 3});
        slim(&mut record);
        assert_eq!(record, json!({"cells": [{"latency_ns": {"p50": 1}}]}));
    }

    #[test]
    fn what_was_said_last_is_kept() {
        assert_eq!(tail(b"short"), "short");
        let long = "µ".repeat(MAX_SAID);
        assert!(long.ends_with(&tail(long.as_bytes())) && tail(long.as_bytes()).len() <= MAX_SAID);
    }
}
