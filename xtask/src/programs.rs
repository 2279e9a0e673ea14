//! The test programs of the workspace: built once by cargo, then run one by one, each in the folder of its package as cargo
//! does. What failed is repeated at the end; the output of tests that passed is read for skips only.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::steps::{Ending, Run, is_root};

/// One test program.
pub(crate) struct Program {
    /// `core`, `sim queueing`: the package, and the file under `tests/`.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) executable: PathBuf,
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Unit tests of a library, a binary or an example.
    Unit,
    /// A file under `tests/`.
    Whole,
}

/// Builds the test programs, and the binaries that they run.
pub(crate) fn build(run: &Run) -> Result<Vec<Program>, String> {
    let built = Command::new("cargo")
        .args(["test", "--workspace", "--no-run", "--quiet", "--message-format=json-render-diagnostics"])
        .current_dir(&run.root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !built.status.success() {
        return Err("the tests do not build".to_owned());
    }
    Ok(listed(&String::from_utf8_lossy(&built.stdout)))
}

/// The test programs in cargo's messages.
fn listed(messages: &str) -> Vec<Program> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|m| m["reason"] == "compiler-artifact" && m["profile"]["test"] == true)
        .filter_map(|m| {
            let folder = Path::new(m["manifest_path"].as_str()?).parent()?.to_owned();
            let target = m["target"]["name"].as_str()?;
            let package = folder.file_name()?.to_str()?.to_owned();
            let whole = m["target"]["kind"][0] == "test";
            let own = target == package || target.replace('_', "-") == format!("iowhy-{package}");
            Some(Program {
                name: if own { package } else { format!("{package} {target}") },
                kind: if whole { Kind::Whole } else { Kind::Unit },
                executable: m["executable"].as_str()?.into(),
                folder,
            })
        })
        .collect()
}

/// The debug binary.
pub(crate) fn binary(root: &Path) -> PathBuf {
    crate::target(root).join("debug/iowhy")
}

/// Builds the debug binary. Whether it is there.
pub(crate) fn build_binary(root: &Path) -> bool {
    let arguments = ["build", "--quiet", "--package", "iowhy"];
    Command::new("cargo").args(arguments).current_dir(root).status().is_ok_and(|status| status.success())
}

/// Runs programs one after the other, with these words for each.
pub(crate) fn run_all(
    run: &mut Run,
    programs: &[&Program],
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Ending {
    let mut failures = String::new();
    for program in programs {
        let mut command = Command::new(&program.executable);
        command.args(arguments).current_dir(&program.folder).envs(variables.iter().copied());
        if let Err(what) = run_one(run, &program.name, &mut command, is_root()) {
            failures.push_str(&what);
        }
    }
    if failures.is_empty() { Ending::Passed } else { Ending::Failed(failures) }
}

/// Runs one test program and prints its time. What failed, if it does.
pub(crate) fn run_one(run: &mut Run, name: &str, command: &mut Command, as_root: bool) -> Result<(), String> {
    println!("-- {name}");
    let begun = Instant::now();
    let spawned = command
        .arg("--show-output")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| format!("{name}: cannot be run: {error}\n"))?;
    // Tests whose skip must be seen at once write past the harness.
    let stderr = child.stderr.take();
    let said = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let mut heard = Heard::default();
    for line in
        child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok)
    {
        run.skips.hear(&line, as_root);
        if heard.is_worth_showing(&line) {
            println!("{line}");
        }
    }
    let passed = child.wait().is_ok_and(|status| status.success());
    let said = said.join().unwrap_or_default();
    for line in said.lines() {
        run.skips.hear(line, as_root);
    }
    println!("   {:.1} s", begun.elapsed().as_secs_f64());
    if passed {
        return Ok(());
    }
    eprintln!("{said}");
    Err(format!("-- {name}\n{}", if heard.failures.is_empty() { said } else { heard.failures }))
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
                    return !(line.is_empty()
                        || line.starts_with("running ")
                        || line.starts_with("test ") && line.ends_with(" ... ok"));
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
        for line in ["test b ... FAILED", "thread 'b' panicked", "test result: FAILED. 1 passed"] {
            assert!(shown.contains(&line), "{line} is missing in {shown:?}");
        }
    }

    #[test]
    fn programs_are_named_by_package_and_file() {
        let message = |folder: &str, target: &str, kind: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"profile\":{{\"test\":true}},\"executable\":\"/t/x\",\
                 \"manifest_path\":\"/r/{folder}/Cargo.toml\",\"target\":{{\"name\":\"{target}\",\"kind\":[\"{kind}\"]}}}}"
            )
        };
        let messages = [
            message("crates/core", "iowhy_core", "lib"),
            message("crates/sim", "queueing", "test"),
            message("xtask", "xtask", "bin"),
        ];
        let programs = listed(&messages.join("\n"));
        let named: Vec<(&str, Kind)> = programs.iter().map(|p| (p.name.as_str(), p.kind)).collect();
        assert_eq!(named, [("core", Kind::Unit), ("sim queueing", Kind::Whole), ("xtask", Kind::Unit)]);
    }
}
