//! The packaged binary of the other architecture under qemu-user, beside the one of this machine. What is computed must be the same
//! to the byte, tests with a scripted device must pass, and a path report must come to its end.
//! It says nothing about speed, nor about other kernels: qemu-user passes system calls on to this one.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use iowhy::record::Kind;

use crate::dist;
use crate::programs::{self, Kind as ProgramKind, Program};
use crate::static_target::{self, Arch};
use crate::steps::{Ending, Run};
use crate::unprivileged::END_TO_END;

/// Tests of the whole program whose results depend on no machine.
const TESTS: [&str; 4] = ["scripted::", "schema::", "mrc::", "sim::"];

/// Builds the packages of both, and compares and tests.
pub(crate) fn check(run: &mut Run) -> Ending {
    match checked(run) {
        Ok(ending) | Err(ending) => ending,
    }
}

fn checked(run: &mut Run) -> Result<Ending, Ending> {
    let here = Arch::here().map_err(Ending::Skipped)?;
    let other = if here == Arch::X86_64 { Arch::Aarch64 } else { Arch::X86_64 };
    let emulator = format!("qemu-{}", other.name());
    if !Command::new(&emulator).arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        return Err(Ending::Skipped(format!("`{emulator}` does not run (Debian package `qemu-user`)")));
    }
    static_target::ensure(&run.root, &other.target()).map_err(Ending::Skipped)?;
    dist::make(&run.root, &[here, other], None).map_err(Ending::Failed)?;
    let failed =
        |error: std::io::Error| Ending::Failed(format!("cannot prepare the emulated binary: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let emulated = wrapper(folder.path(), &emulator, &dist::binary(&run.root, other)).map_err(failed)?;
    let trace = folder.path().join("trace.txt");
    std::fs::write(&trace, trace_text()).map_err(failed)?;
    let compared = compare(&dist::binary(&run.root, here), &emulated, &trace).map_err(Ending::Failed)?;
    println!("-- {compared} outputs of {} are those of {}", other.name(), here.name());
    report(&emulated, folder.path()).map_err(Ending::Failed)?;
    let programs = programs::build(run).map_err(Ending::Failed)?;
    let whole: Vec<&Program> =
        programs.iter().filter(|p| p.name == END_TO_END && p.kind == ProgramKind::Whole).collect();
    Ok(programs::run_all(run, &whole, &TESTS, &[("IOWHY_BIN", &emulated.display().to_string())]))
}

/// A program that runs the binary in the emulator.
fn wrapper(folder: &Path, emulator: &str, binary: &Path) -> std::io::Result<PathBuf> {
    let path = folder.join("iowhy");
    std::fs::write(&path, format!("#!/bin/sh\nexec {emulator} '{}' \"$@\"\n", binary.display()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// References to some objects often and to many seldom, of which each policy makes another curve.
fn trace_text() -> String {
    let mut state = 1_u64;
    let mut id = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let often = state >> 63 == 0;
        (state >> 33) % if often { 100 } else { 5000 }
    };
    (0..20_000).map(|_| format!("{}\n", id())).collect()
}

/// Runs both with the same words. How many outputs were the same.
fn compare(here: &Path, emulated: &Path, trace: &Path) -> Result<usize, String> {
    let trace = trace.display().to_string();
    let kinds: Vec<String> = Kind::value_variants().iter().map(|kind| kind.id()).collect();
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["--version"],
        vec!["--help"],
        vec!["bench", "--help"],
        vec!["explain"],
        vec!["explain", "sync-per-write"],
        vec!["mrc", &trace, "--objects", "--policy", "lru,fifo,arc,s3-fifo,belady"],
        vec!["trace", "stat", &trace],
        vec!["sim", "--machine", "netbsd-1999", "--workload", "readers=4,requests=500,bytes=8k,size=64m"],
        vec![
            "sim",
            "--machine",
            "four-ssd",
            "--workload",
            "readers=8,requests=500,bytes=4k,size=64m,pattern=random",
        ],
    ];
    commands.extend(kinds.iter().map(|kind| vec!["schema", kind]));
    for words in &commands {
        let [mine, other] = [here, emulated].map(|program| {
            let ran = crate::iowhy(program).args(words).env("COLUMNS", "100").stdin(Stdio::null()).output();
            ran.map_err(|error| format!("{}: {error}", program.display()))
        });
        let (mine, other) = (mine?, other?);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !mine.status.success() || mine.stdout.is_empty() {
            return Err(format!("`iowhy {}` fails: {}", words.join(" "), shown(&mine.stderr)));
        }
        if mine.stdout != other.stdout || mine.status != other.status {
            return Err(format!(
                "`iowhy {}` is another one under emulation, {}:\n{}{}instead of\n{}",
                words.join(" "),
                other.status,
                shown(&other.stdout),
                shown(&other.stderr),
                shown(&mine.stdout)
            ));
        }
    }
    Ok(commands.len())
}

/// A path report of a directory. Its cells may be anything here: the emulator takes more time than a request does.
fn report(emulated: &Path, directory: &Path) -> Result<(), String> {
    let ran = crate::iowhy(emulated)
        .args(["--time", "5s", "--size", "16m", "--json", "-"])
        .arg(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", emulated.display()))?;
    let record: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
    let cells = record["cells"].as_array().map_or(0, Vec::len);
    if cells == 0 {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(format!("a path report under emulation has no cells, {}: {said}", ran.status));
    }
    println!("-- path report of {cells} cells");
    Ok(())
}
