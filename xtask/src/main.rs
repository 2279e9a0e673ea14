//! Project chores. `cargo xtask test` runs every test there is; `cargo xtask nightly` looks for new cases;
//! `cargo xtask bench` prints speed as paired ratios; `cargo xtask tidy` checks the rules of the house that no compiler knows.

mod bench;
mod bench_findings;
mod browser;
mod dist;
mod hostile;
mod lab;
mod nightly;
mod static_target;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask <command>
  test     every test: format, tidy, clippy, unit, property, snapshot, doc, end-to-end, static build
  lab [PHASE]... [--again]
           iowhy in virtual machines whose disks and clock are known; needs Debian's package tools, installs nothing;
           answers are kept under target/lab/runs, `--again` judges those
  nightly [--seed N] [--rounds N] [--cases N]
           property tests from fresh seeds and many damaged inputs; prints the seed, which repeats it
  tidy     the rules of the house alone
  browser  reports in a real browser alone; pictures of them are kept under target/report-pages
  dist [--prefix DIR]
           the static binary, manual pages, shell completions and a Debian package, under target/dist; with --prefix
           installed below DIR too
  hostile [--time SECONDS] [--seed N]
           attackers, signals, damaged inputs, full disks and tight limits around the debug binary; needs root
  bench    speed, as paired ratios within one run (fio is used where it is installed)
  bench-findings [FILTER] [--rounds N] [--again] [--account]
           programs with a known cause: is it named, and does the repair gain what was predicted; runs are kept under
           target/cases/records, `--again` judges those by the rules of today, `--account` shows where the time went";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["test"] => test::run(&root()),
        ["browser"] => match browser::check(&root()) {
            browser::Ending::Passed => ExitCode::SUCCESS,
            browser::Ending::Failed(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
            browser::Ending::Skipped(why) => {
                println!("skipped: {why}");
                ExitCode::SUCCESS
            }
        },
        ["nightly", rest @ ..] => nightly::run(&root(), rest),
        ["tidy"] => tidy::report(&root()),
        ["bench", rest @ ..] => bench::run(&root(), rest),
        ["dist", rest @ ..] => dist::run(&root(), rest),
        ["lab", rest @ ..] => lab::run(&root(), rest),
        ["hostile", rest @ ..] => hostile::run(&root(), rest),
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
