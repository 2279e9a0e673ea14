//! The steps of `cargo xtask nightly` without an end of their own: property tests from fresh seeds, and many damaged inputs.
//! The seed is printed first and repeats a night with `--seed`; a case that is found becomes a test by hand.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::programs::{self, Program};
use crate::steps::{Ending, Run};
use crate::tidy::rust_files;
use crate::unprivileged::END_TO_END;

/// How long a night lasts unless it is told, in minutes.
const DEFAULT_MINUTES: u64 = 60;
/// Each open-ended step gets this much, however late it is.
const MIN_TIME: Duration = Duration::from_secs(120);
/// How often each golden file is mutated in one pass; `test` does it a few times.
const CASES: &str = "60";

pub(crate) const USAGE: &str = "usage: cargo xtask nightly [--time MINUTES] [--seed N]";

#[derive(Clone, Copy)]
pub(crate) struct Night {
    pub(crate) seed: u64,
    pub(crate) limit: Duration,
}

impl Night {
    /// What is left of the night, divided by the steps that share it.
    pub(crate) fn share_of_rest(self, begun: Instant, steps: u32) -> Duration {
        (self.limit.saturating_sub(begun.elapsed()) / steps).max(MIN_TIME)
    }
}

/// `None`: an option that is none, or a value that is no number.
pub(crate) fn parse(arguments: &[&str]) -> Option<Night> {
    let (mut seed, mut minutes) = (fresh_seed(), DEFAULT_MINUTES);
    let mut left = arguments.iter();
    while let Some(option) = left.next() {
        let value = left.next()?.parse().ok()?;
        match *option {
            "--seed" => seed = value,
            "--time" => minutes = value,
            _ => return None,
        }
    }
    Some(Night { seed, limit: Duration::from_secs(60 * minutes) })
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() << 20 ^ u64::from(now.subsec_nanos()) ^ u64::from(std::process::id())
}

/// Golden files, mutated: passes with further seeds until half of the rest is over.
pub(crate) fn damaged_inputs(run: &mut Run, night: Night) -> Ending {
    let time = night.share_of_rest(run.begun, 2);
    passes(run, night.seed, time, |run, programs, seed| {
        let whole: Vec<&Program> = programs.iter().filter(|program| program.name == END_TO_END).collect();
        let variables = [("IOWHY_HOSTILE_SEED", seed), ("IOWHY_HOSTILE_CASES", CASES)];
        let ending = programs::run_all(run, &whole, &["hostile::"], &variables);
        let again = format!(
            "IOWHY_HOSTILE_SEED={seed} IOWHY_HOSTILE_CASES={CASES} cargo test -p iowhy --test command hostile::"
        );
        (ending, again)
    })
}

/// All property tests, round after round, each from a seed of its own, until the night is over.
pub(crate) fn property_tests(run: &mut Run, night: Night) -> Ending {
    let names = property_test_names(&run.root);
    println!("-- {} property tests", names.len());
    let time = night.share_of_rest(run.begun, 1);
    passes(run, night.seed, time, |run, programs, seed| {
        let all: Vec<&Program> = programs.iter().collect();
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let ending = programs::run_all(run, &all, &words, &[("PROPTEST_RNG_SEED", seed)]);
        (ending, format!("PROPTEST_RNG_SEED={seed} cargo test --workspace --lib --tests"))
    })
}

/// One pass at least; each has the next seed. The failures, each with the command that repeats it.
fn passes(
    run: &mut Run,
    seed: u64,
    time: Duration,
    pass: impl Fn(&mut Run, &[Program], &str) -> (Ending, String),
) -> Ending {
    let programs = match programs::build(run) {
        Ok(programs) => programs,
        Err(why) => return Ending::Failed(why),
    };
    let end = Instant::now() + time;
    let mut failures = String::new();
    let mut count = 0;
    while count == 0 || Instant::now() < end {
        let seed = seed.wrapping_add(count).to_string();
        if let (Ending::Failed(what), again) = pass(run, &programs, &seed) {
            failures.push_str(&format!("again with: {again}\n{what}\n"));
        }
        count += 1;
    }
    println!("   {count} passes in {} s", time.as_secs());
    if failures.is_empty() { Ending::Passed } else { Ending::Failed(failures) }
}

/// Names of all functions in blocks of `proptest!`, and of those that hold its closure form.
fn property_test_names(root: &Path) -> Vec<String> {
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
        let night = parse(&["--seed", "7", "--time", "2"]).unwrap();
        assert_eq!((night.seed, night.limit), (7, Duration::from_secs(120)));
        assert_eq!(parse(&[]).unwrap().limit, Duration::from_secs(3600));
        for bad in [&["--seed"][..], &["--seed", "x"], &["--more", "1"]] {
            assert!(parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn open_ended_steps_share_what_is_left() {
        let night = Night { seed: 1, limit: Duration::from_secs(3600) };
        let share = night.share_of_rest(Instant::now(), 3);
        assert!((1190..=1200).contains(&share.as_secs()), "{share:?}");
        assert_eq!(Night { limit: Duration::ZERO, ..night }.share_of_rest(Instant::now(), 3), MIN_TIME);
    }

    #[test]
    fn both_forms_are_found_and_helpers_outside_are_not() {
        let block = concat!("propte", "st! {\n    #[test]\n    fn a(x: u64) {\n    }\n}\nfn helper() {}\n");
        let closure = concat!("#[test]\nfn b() {\n    propte", "st!(config, |(x in 0..3)| {\n    });\n}\n");
        assert_eq!(names_in(&format!("{block}{closure}")), ["a", "b"]);
        let found = property_test_names(&crate::root());
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
