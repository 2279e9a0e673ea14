//! Chores of the project: the checks in three speeds, the documentation, benchmarks and packages.

mod bench;
mod bench_findings;
mod bench_servers;
mod browser;
mod capture;
mod cpio;
mod dist;
mod docs;
mod emulated;
mod hostile;
mod lab;
mod nightly;
mod observer;
mod programs;
mod python;
mod skips;
mod speeds;
mod static_target;
mod steps;
mod symbols;
mod tidy;
mod unprivileged;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask <command>
  check    while you work: rustfmt, tidy, clippy, unit and property tests
  test     before a push, and in CI: check, end-to-end tests, tests as an ordinary user, lab smoke, rustdoc, pages
  nightly [--time MINUTES] [--seed N]
           what takes long: the whole lab, labelled programs, browser, static build, attacks, fresh seeds; prints its seed
  lab [PHASE]... [--again]
           iowhy in virtual machines whose disks and clock are known; needs Debian's package tools, installs nothing;
           answers are kept under target/lab/runs, `--again` judges those
  tidy     the rules of the house alone
  docs     README and docs/ alone: links, paths, commands; builds the book where mdbook is installed
  capture [--check] [FILTER]
           runs the commands that pages name between markers and writes what they print; `--check` says which are old
  observer [--check]
           builds the observer in the kernel from crates/watch/bpf with clang; `--check` compares the committed bytes
  symbols [--check] [PACKAGE]...
           generates the table of kernel functions by source file, and its page, from what is committed; from packages of
           Debian's kernels with debug information where they are named, oldest first; `--check` compares
  browser  reports in a real browser alone; pictures of them are kept under target/report-pages
  dist [--arch x86_64|aarch64]... [--prefix DIR]
           the static binary, manual pages, shell completions, Debian and RPM packages, an archive, a Python wheel and their
           digests, under target/dist, for this machine's architecture or those named; with --prefix installed below DIR too
  emulate  the packaged binary for aarch64 under qemu-user: what it computes is what the one for x86-64 does
  python [--notebook]
           the Python package in a fresh environment; with --notebook the wheel of `dist`, in a notebook (needs the registry)
  hostile [--time SECONDS] [--seed N]
           attackers, signals, damaged inputs, full disks and tight limits around the debug binary; needs root
  bench    speed, as paired ratios within one run (fio is used where it is installed)
  bench-findings [FILTER] [--rounds N] [--again] [--account] [--prove]
           programs with a known cause: is it named, and does the repair gain what was predicted; runs are kept under
           target/cases/records, `--again` judges those by the rules of today, `--account` shows where the time went
  bench-servers [FILTER] [--rounds N]
           servers of Debian's packages: what a setting gains, beside what `iowhy attach` predicts; needs root";

/// Whether the usage above has a command of this name.
fn names_command(name: &str) -> bool {
    USAGE
        .lines()
        .skip(1)
        .filter_map(|line| line.strip_prefix("  "))
        .any(|line| line.split(' ').next() == Some(name))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["check"] => speeds::check(&root()),
        ["test"] => speeds::test(&root()),
        ["nightly", rest @ ..] => speeds::nightly(&root(), rest),
        ["browser"] => browser::check(&root()).exit_code(),
        ["observer"] => observer::build(&root()).exit_code(),
        ["observer", "--check"] => observer::check(&root()).exit_code(),
        ["symbols"] => symbols::generate(&root()).exit_code(),
        ["symbols", "--check"] => symbols::check(&root()).exit_code(),
        ["symbols", packages @ ..] => symbols::read(&root(), packages).exit_code(),
        ["python"] => python::check(&root(), false).exit_code(),
        ["python", "--notebook"] => python::check(&root(), true).exit_code(),
        ["docs"] => docs::run(&root()),
        ["capture", rest @ ..] => capture::run(&root(), rest),
        ["tidy"] => tidy::report(&root()),
        ["bench", rest @ ..] => bench::run(&root(), rest),
        ["emulate"] => speeds::emulate(&root()),
        ["dist", rest @ ..] => dist::run(&root(), rest),
        ["lab", rest @ ..] => lab::run(&root(), rest),
        ["hostile", rest @ ..] => hostile::run(&root(), rest),
        ["bench-servers", rest @ ..] => bench_servers::run(&root(), rest),
        ["bench-findings", rest @ ..] => bench_findings::run(&root(), rest),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// A command that runs the binary and its programs as the user who runs this, under sudo too.
fn iowhy(binary: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(binary);
    for name in iowhy::run_as::CALLER_VARIABLES {
        command.env_remove(name);
    }
    command
}

/// The root of the workspace: xtask's own folder is one below it.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// Where cargo builds.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
