//! The checks in three speeds: `check` while working, `test` before a push and in CI, `nightly` for what takes long. `test`
//! begins with all of `check`; `nightly` has what neither runs. Every check of the project is in one of them.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::programs::{self, Kind, Program};
use crate::steps::{self, Ending, Run, Step, cargo, step};
use crate::unprivileged::{self, END_TO_END, Which};
use crate::{browser, docs, emulated, lab, nightly, observer, static_target, symbols, tidy};

const CHECK_AIM: Duration = Duration::from_secs(4 * 60);
const EMULATED_AIM: Duration = Duration::from_secs(10 * 60);
const TEST_AIM: Duration = Duration::from_secs(12 * 60);

const EMULATED: &str = "other architecture";

/// Live runs of the labelled programs, which take minutes and depend on the machine.
const LIVE: [&str; 2] = ["iowhy findings", "iowhy prove_traps"];

/// rustfmt, tidy, clippy, unit and property tests.
pub(crate) fn check(root: &Path) -> ExitCode {
    steps::run(root, CHECK_AIM, &check_steps())
}

fn check_steps() -> Vec<Step> {
    vec![
        step("rustfmt", |run| cargo(run, &["fmt", "--all", "--check"])),
        step("tidy", |run| match tidy::check(&run.root) {
            complaints if complaints.is_empty() => Ending::Passed,
            complaints => Ending::Failed(complaints.join("\n")),
        }),
        step("observer's bytes", |run| observer::check(&run.root)),
        step("kernel functions", |run| symbols::check(&run.root)),
        step("clippy", |run| {
            cargo(run, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
        }),
        step("build of the tests", |run| match programs::build(run) {
            Ok(_) => Ending::Passed,
            Err(why) => Ending::Failed(why),
        }),
        step("unit and property tests", |run| {
            some(run, |program| !is_live(program) && program.name != END_TO_END)
        }),
    ]
}

/// All of `check`, end-to-end tests, tests as an ordinary user, the Python package, two phases of the lab, and the documentation.
pub(crate) fn test(root: &Path) -> ExitCode {
    let mut steps = check_steps();
    steps.extend([
        step("end-to-end tests", |run| some(run, |program| program.name == END_TO_END)),
        step("ordinary user", |run| unprivileged::run(run, Which::AboutRights)),
        step("Python package", |run| steps::own(run, &["python"])),
        step("lab smoke", |run| lab::lab(&run.root, &lab::SMOKE, false)),
        step("rustdoc", rustdoc),
        step("pages", |run| docs::check(&run.root)),
    ]);
    steps::run(root, TEST_AIM, &steps)
}

/// What `test` leaves out. Steps without an end of their own share the time that the others leave.
pub(crate) fn nightly(root: &Path, arguments: &[&str]) -> ExitCode {
    let Some(night) = nightly::parse(arguments) else {
        eprintln!("{}", nightly::USAGE);
        return ExitCode::from(2);
    };
    println!("-- nightly --time {} --seed {}", night.limit.as_secs() / 60, night.seed);
    let steps = [
        step("build of the tests", |run| match programs::build(run) {
            Ok(_) => Ending::Passed,
            Err(why) => Ending::Failed(why),
        }),
        step("labelled programs, live", |run| some(run, is_live)),
        step("ordinary user, the rest", |run| unprivileged::run(run, Which::Others)),
        step("doc tests", |run| cargo(run, &["test", "--quiet", "--doc", "--workspace"])),
        step("static build", static_build),
        step("packages and notebook", |run| steps::own(run, &["python", "--notebook"])),
        step(EMULATED, emulated::check),
        step("browser", |run| browser::check(&run.root)),
        step("whole lab", |run| lab::lab(&run.root, &[], false)),
        step("bench-findings", |run| steps::own(run, &["bench-findings", "--rounds", "3"])),
        step("hostile", move |run| {
            let seconds = night.share_of_rest(run.begun, 3).as_secs().to_string();
            steps::own(run, &["hostile", "--time", &seconds, "--seed", &night.seed.to_string()])
        }),
        step("damaged inputs", move |run| nightly::damaged_inputs(run, night)),
        step("property tests", move |run| nightly::property_tests(run, night)),
    ];
    steps::run(root, night.limit, &steps)
}

/// One step of `nightly` alone.
pub(crate) fn emulate(root: &Path) -> ExitCode {
    steps::run(root, EMULATED_AIM, &[step(EMULATED, emulated::check)])
}

fn is_live(program: &Program) -> bool {
    LIVE.contains(&program.name.as_str())
}

/// Builds (after the first time: finds) the test programs and runs some of them.
fn some(run: &mut Run, wanted: impl Fn(&Program) -> bool) -> Ending {
    match programs::build(run) {
        Ok(all) => {
            let wanted: Vec<&Program> = all.iter().filter(|program| wanted(program)).collect();
            programs::run_all(run, &wanted, &[], &[])
        }
        Err(why) => Ending::Failed(why),
    }
}

fn rustdoc(run: &mut Run) -> Ending {
    steps::command(
        Command::new("cargo")
            .args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .current_dir(&run.root),
    )
}

/// The binary must also link statically, so that it runs in a guest or a container without a C library; its screens are those
/// of the other build.
fn static_build(run: &mut Run) -> Ending {
    if let Err(why) = static_target::ensure(&run.root, static_target::TARGET) {
        return Ending::Skipped(why);
    }
    match steps::command(&mut static_target::build(&run.root)) {
        Ending::Passed => {}
        other => return other,
    }
    let binary = static_target::binary(&run.root).display().to_string();
    match programs::build(run) {
        Ok(all) => {
            let whole: Vec<&Program> =
                all.iter().filter(|p| p.name == END_TO_END && p.kind == Kind::Whole).collect();
            programs::run_all(run, &whole, &["scripted::"], &[("IOWHY_BIN", &binary)])
        }
        Err(why) => Ending::Failed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A renamed file would run in `check`, where it has no time.
    #[test]
    fn live_runs_are_files() {
        for name in LIVE.iter().chain(&[END_TO_END]) {
            let (package, file) = name.split_once(' ').unwrap();
            let folder = crate::root().join("crates").join(package).join("tests");
            assert!(folder.join(format!("{file}.rs")).exists() || folder.join(file).exists(), "{name}");
        }
    }
}
