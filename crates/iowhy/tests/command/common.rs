//! Runs the binary, makes targets for it and looks at what is left. No assertion about results: those are the tests'.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock};

use iowhy::run_as::CALLER_VARIABLES;
use serde_json::Value;
use tempfile::TempDir;

/// Runs share it; a run that needs the machine for itself takes it alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// One mebibyte.
pub(crate) const MIB: u64 = 1 << 20;

/// The binary under test, with no terminal, nothing on stdin, no colour wish in its environment and a locale of UTF-8. Who runs
/// the tests under sudo is not the user to run programs as.
pub(crate) fn binary() -> Command {
    let path = std::env::var_os("IOWHY_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_iowhy").into());
    let mut command = Command::new(path);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"].iter().chain(&CALLER_VARIABLES) {
        command.env_remove(name);
    }
    command.env("COLUMNS", "100").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

/// [`binary`] with signals as a terminal gives them: a test that was started in the background may have interrupts ignored,
/// and what is ignored at the start stays so. `env` puts the binary in its own place.
pub(crate) fn binary_that_listens() -> Command {
    let program = binary();
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,QUIT,TERM,HUP", "--"]).arg(program.get_program());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    command
}

/// Reasons for exit code 1 that others who use the same machine can cause.
const BUSY: [&str; 5] = [
    "was not what it claims",
    "not what they claim",
    "cells failed",
    "before every round",
    "cannot be compared",
];

/// What a run ended with.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The exit code; a death by signal has none and is shown.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("died: {self:?}"))
    }

    /// Asserts that it ended as done.
    pub(crate) fn done(self) -> Ran {
        assert_eq!(self.code(), 0, "{self:?}");
        self
    }

    /// Asserts that it measured something. On a machine where others use the device a cell may fail to be what it
    /// claims, which is exit code 1.
    pub(crate) fn measured(self) -> Ran {
        let errors: Vec<&str> = self.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        match (self.code(), errors.as_slice()) {
            (0, []) => {}
            (1, [only]) if BUSY.iter().any(|reason| only.contains(reason)) => {}
            _ => panic!("{self:?}"),
        }
        self
    }

    /// Stdout as the one JSON object that it must be.
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is no single JSON value ({error}): {self:?}"));
        assert!(value.is_object());
        value
    }
}

/// Waits for a command and keeps all it said.
pub(crate) fn finish(command: &mut Command) -> Ran {
    let _shared = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    wait_for(command)
}

fn wait_for(command: &mut Command) -> Ran {
    // A shell or setpriv(1) that runs the binary passes its environment on.
    let given: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    for name in CALLER_VARIABLES.iter().filter(|name| !given.iter().any(|given| given == **name)) {
        command.env_remove(name);
    }
    let switches = command.get_args().any(|word| word == "--user");
    let mut detached = switches.then(|| without_terminal(command)).flatten();
    let output = detached.as_mut().unwrap_or(command).output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    // With `-- CMD` the code may be that of CMD.
    let words = |text: &std::ffi::OsStr| text.to_string_lossy().split_whitespace().any(|word| word == "--");
    let watches = command.get_args().any(words);
    // `script` runs it on a terminal of its own, and shows that as its stdout.
    let said = if command.get_program() == "script" { &output.stdout } else { &output.stderr };
    let named = String::from_utf8_lossy(said).lines().any(|line| line.contains("error:"));
    let silent = output.status.code().is_some_and(|code| code != 0) && !named && !watches;
    assert!(!silent, "a non-zero exit code without its reason on stderr: {command:?}: {output:?}");
    Ran { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The same command in a session of its own, so that it has no terminal: on one of root's, iowhy refuses to run a program as
/// another user. `None` where there is no setsid(1).
pub(crate) fn without_terminal(command: &Command) -> Option<Command> {
    if !succeeds("setsid", &["--wait", "true"]) {
        return None;
    }
    let mut detached = Command::new("setsid");
    detached.arg("--wait").arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => detached.env(name, value),
            None => detached.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        detached.current_dir(directory);
    }
    Some(detached)
}

/// Runs with arguments.
pub(crate) fn iowhy(args: &[&str]) -> Ran {
    finish(binary().args(args))
}

/// Runs with arguments while no other test of this program runs the binary.
pub(crate) fn iowhy_alone(args: &[&str]) -> Ran {
    alone(binary().args(args))
}

/// Runs a command while no other test works.
pub(crate) fn alone(command: &mut Command) -> Ran {
    let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    wait_for(command)
}

/// Runs with arguments and reads the JSON that comes to stdout; the record must hold together.
pub(crate) fn record_of(args: &[&str]) -> Value {
    let ran = iowhy(&[args, &["--json", "-"]].concat()).measured();
    let record = ran.json();
    crate::record::holds_together(&record);
    record
}

/// The rows of the table on a screen, below its header.
pub(crate) fn rows(screen: &str) -> impl Iterator<Item = Vec<&str>> {
    let below = screen.lines().skip_while(|line| !line.starts_with("method ")).skip(1);
    below.map(|line| line.split_whitespace().collect())
}

/// An empty directory of the test's own, in `$TMPDIR`.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("$TMPDIR can be written")
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

/// A file full of bytes that do not repeat, on its device.
pub(crate) fn full_file(directory: &Path, name: &str, bytes: u64) -> PathBuf {
    let path = directory.join(name);
    let mut file = File::create(&path).unwrap();
    let mut word = 0x9e37_79b9_7f4a_7c15u64;
    let mut block = vec![0u8; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        for chunk in block.chunks_exact_mut(8) {
            // xorshift64: any sequence that does not compress will do.
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        let now = left.min(block.len() as u64);
        file.write_all(&block[..now as usize]).unwrap();
        left -= now;
    }
    file.sync_all().unwrap();
    path
}

/// Names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Says that a test, or a part of it, could not be made here. Past `eprintln!`, whose output is swallowed for tests
/// that pass.
pub(crate) fn skipped(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Whether files in a directory live in memory, where nothing can be cold.
pub(crate) fn lives_in_memory(directory: &Path) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    rustix::fs::statfs(directory).is_ok_and(|fs| fs.f_type as u64 == TMPFS_MAGIC)
}

/// Whether we may do what only root may.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs another program; whether it was there and succeeded.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A mounted file system that is unmounted when the test ends, however it ends.
#[derive(Debug)]
pub(crate) struct Mount {
    point: TempDir,
}

impl Mount {
    /// A tmpfs with these options; `None`, said aloud, where we may not mount.
    pub(crate) fn tmpfs(options: &str) -> Option<Mount> {
        let point = directory();
        let args = ["-t", "tmpfs", "-o", options, "iowhy-test", text(point.path())];
        if is_root() && succeeds("mount", &args) {
            return Some(Mount { point });
        }
        skipped("a small file system cannot be mounted here (needs root)");
        None
    }

    /// What is on this device, with these options; `None`, said aloud, where we may not mount.
    pub(crate) fn of(device: &str, options: &str) -> Option<Mount> {
        let point = directory();
        if is_root() && succeeds("mount", &["-o", options, device, text(point.path())]) {
            return Some(Mount { point });
        }
        skipped(&format!("`{device}` cannot be mounted here with `{options}`"));
        None
    }

    /// Its line of the mount table.
    pub(crate) fn line(&self) -> String {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let point = format!(" {} ", self.path().display());
        table.lines().find(|line| line.contains(&point)).expect("it is mounted").to_owned()
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        self.point.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        succeeds("umount", &[text(self.point.path())]);
    }
}

/// A loop device over a file, detached when the test ends.
#[derive(Debug)]
pub(crate) struct Loop {
    /// `/dev/loopN`.
    pub(crate) device: String,
}

impl Loop {
    /// Attaches a file; `None`, said aloud, where that cannot be done.
    pub(crate) fn over(file: &Path) -> Option<Loop> {
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok();
        match attached.filter(|output| is_root() && output.status.success()) {
            Some(output) => Some(Loop { device: String::from_utf8_lossy(&output.stdout).trim().to_owned() }),
            None => {
                skipped("no loop device can be attached here (needs root and losetup)");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        succeeds("losetup", &["-d", &self.device]);
    }
}
