//! `cargo xtask nightly`: property tests with fresh seeds, and longer runs of damaged inputs. Deliberately absent: everything that
//! `test` runs. The seed is printed first and repeats a night with `--seed`; a case that is found becomes a test by hand.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::tidy::rust_files;

/// Rounds of all property tests, each from a seed of its own, where nobody says otherwise.
const ROUNDS: u64 = 20;
/// How often each golden file is mutated; `test` does it a few times.
const HOSTILE_CASES: u64 = 60;

const USAGE: &str = "usage: cargo xtask nightly [--seed N] [--rounds N] [--cases N]";

struct Night {
    seed: u64,
    rounds: u64,
    cases: u64,
}

/// Runs a night; fails if anything did.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let Some(night) = parse(arguments, fresh_seed()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let names = property_tests(root);
    println!("-- nightly --seed {} --rounds {} --cases {}", night.seed, night.rounds, night.cases);
    println!("-- {} property tests, {} rounds", names.len(), night.rounds);
    let mut failed = Vec::new();
    for round in 0..night.rounds {
        let seed = night.seed.wrapping_add(round).to_string();
        let mut command = Command::new("cargo");
        command
            .args(["test", "--quiet", "--workspace", "--lib", "--tests", "--no-fail-fast", "--"])
            .args(&names)
            .env("PROPTEST_RNG_SEED", &seed);
        if !passes(command.current_dir(root)) {
            failed.push(format!("PROPTEST_RNG_SEED={seed} cargo test --workspace --lib --tests"));
        }
    }
    let (seed, cases) = (night.seed.to_string(), night.cases.to_string());
    println!("-- damaged inputs, {cases} of each golden file");
    let mut command = Command::new("cargo");
    command
        .args(["test", "--quiet", "-p", "iowhy", "--test", "command", "hostile::"])
        .env("IOWHY_HOSTILE_SEED", &seed)
        .env("IOWHY_HOSTILE_CASES", &cases);
    if !passes(command.current_dir(root)) {
        failed.push(format!(
            "IOWHY_HOSTILE_SEED={seed} IOWHY_HOSTILE_CASES={cases} cargo test -p iowhy --test command hostile::"
        ));
    }
    for command in &failed {
        println!("-- FAILED, again with: {command}");
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn passes(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// `None`: an option that is none, or a value that is no number.
fn parse(arguments: &[&str], seed: u64) -> Option<Night> {
    let mut night = Night { seed, rounds: ROUNDS, cases: HOSTILE_CASES };
    let mut left = arguments.iter();
    while let Some(option) = left.next() {
        let value = left.next()?.parse().ok()?;
        match *option {
            "--seed" => night.seed = value,
            "--rounds" => night.rounds = value,
            "--cases" => night.cases = value,
            _ => return None,
        }
    }
    Some(night)
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() << 20 ^ u64::from(now.subsec_nanos()) ^ u64::from(std::process::id())
}

/// Names of all functions in blocks of `proptest!`, and of those that hold its closure form.
fn property_tests(root: &Path) -> Vec<String> {
    let sources = rust_files(root);
    let names: BTreeSet<String> = sources
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|text| names_in(&text))
        .collect();
    names.into_iter().collect()
}

/// rustfmt indents a block deeper than its `proptest! {` and closes it at the same depth.
fn names_in(text: &str) -> Vec<String> {
    let opens = concat!("propte", "st!");
    let name = |line: &str| {
        let behind = line.trim_start().strip_prefix("fn ")?;
        Some(behind.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?.to_owned())
    };
    let mut names = Vec::new();
    let mut within: Option<usize> = None;
    let mut last = None;
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        if let Some(outer) = within {
            if depth == outer && line.trim_start().starts_with('}') {
                within = None;
            } else {
                names.extend(name(line));
            }
            continue;
        }
        if let Some(name) = name(line) {
            last = Some(name);
        }
        let code = line.trim_start();
        if code.starts_with(&format!("{opens} {{")) {
            within = Some(depth);
        } else if code.starts_with(&format!("{opens}(")) {
            names.extend(last.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_numbers() {
        let night = parse(&["--seed", "7", "--rounds", "2"], 1).unwrap();
        assert_eq!((night.seed, night.rounds, night.cases), (7, 2, HOSTILE_CASES));
        assert_eq!(parse(&[], 3).unwrap().seed, 3);
        for bad in [&["--seed"][..], &["--seed", "x"], &["--more", "1"]] {
            assert!(parse(bad, 1).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn both_forms_are_found_and_helpers_outside_are_not() {
        let block = concat!("propte", "st! {\n    #[test]\n    fn a(x: u64) {\n    }\n}\nfn helper() {}\n");
        let closure = concat!("#[test]\nfn b() {\n    propte", "st!(config, |(x in 0..3)| {\n    });\n}\n");
        assert_eq!(names_in(&format!("{block}{closure}")), ["a", "b"]);
        let found = property_tests(&crate::root());
        assert!(found.contains(&"any_machine_and_workload".to_owned()), "{found:?}");
    }

    /// A fresh clone must not fail by luck, and nothing writes into the source tree.
    #[test]
    fn cargo_gives_property_tests_a_fixed_seed_and_no_memory() {
        let config = std::fs::read_to_string(crate::root().join(".cargo/config.toml")).unwrap();
        for name in ["PROPTEST_RNG_SEED", "PROPTEST_DISABLE_FAILURE_PERSISTENCE"] {
            let line = config.lines().find(|line| line.starts_with(name));
            assert!(line.is_some_and(|line| line.contains("force = false")), "{name}: {config}");
        }
    }
}
