//! Runs every check in turn and says at the end which passed, failed or were skipped. A skip is always visible.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::{browser, lab, static_target, tidy};

/// How a step ended.
enum Ending {
    Passed,
    /// What is worth repeating at the end, where it is found at once.
    Failed(String),
    Skipped(String),
}

/// A step: what it is called and what it runs.
type Step<'a> = (&'a str, Box<dyn Fn(&Path) -> Ending>);

/// Runs all steps, failing ones included, and sums up.
pub(crate) fn run(root: &Path) -> ExitCode {
    let steps: Vec<Step<'_>> = vec![
        (
            "tidy",
            Box::new(|root| if tidy::check(root).is_empty() { Ending::Passed } else { tidy_failed(root) }),
        ),
        ("rustfmt", Box::new(|root| cargo(root, &["fmt", "--all", "--check"]))),
        (
            "clippy",
            Box::new(|root| {
                cargo(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
            }),
        ),
        ("tests", Box::new(tests)),
        ("docs", Box::new(docs)),
        ("static build", Box::new(static_build)),
        ("unprivileged", Box::new(unprivileged)),
        ("browser", Box::new(in_a_browser)),
        ("lab", Box::new(in_the_lab)),
    ];
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut lines = Vec::new();
    let mut repeated = String::new();
    for (name, step) in &steps {
        println!("== {name}");
        let begun = Instant::now();
        let line = match step(root) {
            Ending::Passed => {
                passed += 1;
                "ok".to_owned()
            }
            Ending::Failed(what) => {
                failed += 1;
                if !what.is_empty() {
                    repeated.push_str(&format!("== what failed in {name}\n{}\n", what.trim_end()));
                }
                "FAILED".to_owned()
            }
            Ending::Skipped(why) => {
                skipped += 1;
                format!("skipped: {why}")
            }
        };
        println!("== {name}: {line} ({:.0} s)\n", begun.elapsed().as_secs_f64());
        lines.push(format!("{name:14} {line}"));
    }
    println!("{repeated}{}\n{passed} passed, {failed} failed, {skipped} skipped", lines.join("\n"));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tidy_failed(root: &Path) -> Ending {
    tidy::report(root);
    Ending::Failed(tidy::check(root).join("\n"))
}

fn cargo(root: &Path, arguments: &[&str]) -> Ending {
    run_command(Command::new("cargo").args(arguments).current_dir(root))
}

/// How much of a failed command's complaints is repeated at the end.
const REPEATED_LINES: usize = 60;

/// Runs a command whose complaints are shown as they come, and repeated at the end if it fails.
fn run_command(command: &mut Command) -> Ending {
    let mut child = match command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Ending::Failed(format!("cannot run {command:?}: {error}")),
    };
    let mut complaints = Vec::new();
    for line in
        child.stderr.take().into_iter().flat_map(|err| BufReader::new(err).lines()).map_while(Result::ok)
    {
        eprintln!("{line}");
        complaints.push(line);
    }
    match child.wait() {
        Ok(status) if status.success() => Ending::Passed,
        Ok(_) => {
            complaints.truncate(REPEATED_LINES);
            Ending::Failed(complaints.join("\n"))
        }
        Err(error) => Ending::Failed(format!("cannot wait for {command:?}: {error}")),
    }
}

/// Unit, property, snapshot, end-to-end and doc tests. A test that its machine cannot run prints `skipped: REASON`;
/// the harness hides that for tests that pass, so it is asked to show it, and the reasons are gathered.
fn tests(root: &Path) -> Ending {
    let child = Command::new("cargo")
        .args(["test", "--workspace", "--no-fail-fast", "--", "--show-output"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Ending::Failed(format!("cannot run cargo: {error}")),
    };
    let mut skipped = Vec::new();
    let mut heard = Heard::default();
    for line in
        child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok)
    {
        if line.trim_start().starts_with("skipped:") {
            skipped.push(line.trim().to_owned());
        }
        if heard.is_worth_showing(&line) {
            println!("{line}");
        }
    }
    println!("-- tests that this machine could not run: {}", skipped.len());
    for line in &skipped {
        println!("   {line}");
    }
    if child.wait().is_ok_and(|status| status.success()) {
        Ending::Passed
    } else {
        Ending::Failed(heard.failures)
    }
}

/// What the harness says: of tests that failed what stands in each of its sections `failures:`, of tests that passed
/// nothing. What those printed can look like a failure (a panic that a test wants), and would hide a real one.
#[derive(Default)]
struct Heard {
    section: Section,
    failures: String,
}

/// Which part of the harness's output a line stands in.
#[derive(Default, PartialEq)]
enum Section {
    /// One line for each test, and the sum at the end.
    #[default]
    Tests,
    /// What tests printed that passed, and their names.
    Successes,
    /// What tests printed that failed, and their names.
    Failures,
}

impl Heard {
    /// Takes the next line in; whether people should see it.
    fn is_worth_showing(&mut self, line: &str) -> bool {
        self.section = match line {
            "failures:" => Section::Failures,
            "successes:" => Section::Successes,
            _ if line.starts_with("test result:") => Section::Tests,
            _ => match self.section {
                Section::Tests => {
                    return !(line.is_empty() || line.starts_with("test ") && line.ends_with(" ... ok"));
                }
                Section::Successes => return false,
                Section::Failures => {
                    if !line.is_empty() {
                        self.failures.push_str(line);
                        self.failures.push('\n');
                    }
                    return true;
                }
            },
        };
        line != "successes:"
    }
}

fn docs(root: &Path) -> Ending {
    run_command(
        Command::new("cargo")
            .args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .current_dir(root),
    )
}

/// The binary must also link statically, so that it runs in a guest or a container without a C library.
fn static_build(root: &Path) -> Ending {
    match static_target::ensure(root) {
        Ok(()) => run_command(&mut static_target::build(root)),
        Err(why) => Ending::Skipped(why),
    }
}

/// Reports, as a browser shows them.
fn in_a_browser(root: &Path) -> Ending {
    match browser::check(root) {
        browser::Ending::Passed => Ending::Passed,
        browser::Ending::Failed(why) => Ending::Failed(why),
        browser::Ending::Skipped(why) => Ending::Skipped(why),
    }
}

/// In virtual machines whose disks and clock are known.
fn in_the_lab(root: &Path) -> Ending {
    match lab::lab(root, &[], false) {
        lab::Ending::Passed => Ending::Passed,
        lab::Ending::Failed(why) => Ending::Failed(why),
        lab::Ending::Skipped(why) => Ending::Skipped(why),
    }
}

/// Test programs that write where the build does.
const NEED_THE_BUILD_FOLDER: [&str; 3] = ["cases", "findings", "prove_traps"];

/// The end-to-end tests again as an ordinary user: rights are half of what they test.
fn unprivileged(root: &Path) -> Ending {
    let id = Command::new("id").arg("-u").output();
    if id.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).trim() != "0") {
        return Ending::Skipped("already run as an ordinary user".to_owned());
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        return Ending::Skipped("setpriv (util-linux) is not installed".to_owned());
    }
    // The tests' own executables are run directly: an ordinary user may not be able to read root's toolchain.
    let built = Command::new("cargo")
        .args(["test", "--workspace", "--no-run", "--message-format=json"])
        .current_dir(root)
        .stderr(Stdio::null())
        .output();
    let Ok(built) = built else { return Ending::Failed("cannot run cargo".to_owned()) };
    let programs = executables(&String::from_utf8_lossy(&built.stdout));
    let Ok(folder) = public_copy(&programs, root) else {
        return Ending::Skipped("no folder that an ordinary user can read could be made".to_owned());
    };
    let mut heard = Heard::default();
    let mut failed = false;
    for (name, binary) in &folder.programs {
        if NEED_THE_BUILD_FOLDER.contains(&name.as_str()) {
            println!("-- {name} as nobody: skipped: it works in the build folder, which belongs to root");
            continue;
        }
        println!("-- {name} as nobody");
        let run = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
            .arg(binary)
            .env("IOWHY_BIN", &folder.iowhy)
            .env("TMPDIR", &folder.scratch)
            .env("HOME", &folder.scratch)
            .current_dir(&folder.scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let good = run.and_then(|mut child| {
            for line in child
                .stdout
                .take()
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines())
                .map_while(Result::ok)
            {
                if heard.is_worth_showing(&line) {
                    println!("{line}");
                }
            }
            child.wait()
        });
        failed |= !good.is_ok_and(|status| status.success());
    }
    if let Err(error) = std::fs::remove_dir_all(&folder.root) {
        eprintln!("cannot remove {}: {error}", folder.root.display());
    }
    if failed { Ending::Failed(heard.failures) } else { Ending::Passed }
}

/// Names and paths of the test executables in cargo's messages.
fn executables(messages: &str) -> Vec<(String, String)> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|m| m["reason"] == "compiler-artifact" && m["profile"]["test"] == true)
        .filter_map(|m| {
            Some((m["target"]["name"].as_str()?.to_owned(), m["executable"].as_str()?.to_owned()))
        })
        // xtask's own tests read the source tree, which an ordinary user may not be able to.
        .filter(|(name, _)| name != "xtask")
        .collect()
}

/// Where the debug binary is.
pub(crate) fn binary(root: &Path) -> std::path::PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    target.join("debug/iowhy")
}

/// Builds the debug binary. Whether it is there.
pub(crate) fn build_binary(root: &Path) -> bool {
    matches!(cargo(root, &["build", "--quiet", "--package", "iowhy"]), Ending::Passed)
}

/// Copies of the test programs where an ordinary user can run them.
struct PublicCopy {
    root: std::path::PathBuf,
    scratch: std::path::PathBuf,
    iowhy: std::path::PathBuf,
    programs: Vec<(String, std::path::PathBuf)>,
}

fn public_copy(programs: &[(String, String)], root: &Path) -> std::io::Result<PublicCopy> {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("iowhy-test-{}", std::process::id()));
    let scratch = folder.join("scratch");
    std::fs::create_dir_all(&scratch)?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755))?;
    std::fs::set_permissions(&scratch, std::fs::Permissions::from_mode(0o777))?;
    let copy = |from: &Path, name: &str| -> std::io::Result<std::path::PathBuf> {
        let to = folder.join(name);
        std::fs::copy(from, &to)?;
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o755))?;
        Ok(to)
    };
    let iowhy = copy(&binary(root), "iowhy")?;
    let mut copies = Vec::new();
    for (index, (name, path)) in programs.iter().enumerate() {
        copies.push((name.clone(), copy(Path::new(path), &format!("{name}-{index}"))?));
    }
    Ok(PublicCopy { root: folder, scratch, iowhy, programs: copies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_repeated_and_of_what_passed_nothing_is_shown() {
        let said = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nsuccesses:\n\n---- a stdout ----\n\
                    thread 'a' panicked\n\nsuccesses:\n    a\n\nfailures:\n\n---- b stdout ----\n\
                    thread 'b' panicked\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed\nrunning 2 tests";
        let mut heard = Heard::default();
        let shown: Vec<&str> = said.lines().filter(|line| heard.is_worth_showing(line)).collect();
        assert_eq!(heard.failures, "---- b stdout ----\nthread 'b' panicked\n    b\n");
        assert!(
            !shown.iter().any(|line| line.contains("'a' panicked") || *line == "test a ... ok"),
            "{shown:?}"
        );
        for line in
            ["running 2 tests", "test b ... FAILED", "thread 'b' panicked", "test result: FAILED. 1 passed"]
        {
            assert!(shown.contains(&line), "{line} is missing in {shown:?}");
        }
    }
}
