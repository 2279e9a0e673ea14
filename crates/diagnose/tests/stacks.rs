//! Real stacks and known answers: does the table say what these stacks mean?
//!
//! `tests/stacks/known.txt` holds one stack a line with its meaning, checked by hand. The other files are profiles of
//! real programs (a line: state, samples or sleeps, functions innermost first), recorded on Linux 6.18.

use std::path::Path;

use iowhy_core::layer::Layer;
use iowhy_core::profile::State;
use iowhy_diagnose::classify::{Class, Classifier, Operation, Wait};

/// Part of each profile that must be given a meaning. The whole profiles that these files are the most frequent
/// stacks of had 99.1 % and more.
const MIN_CLASSIFIED: f64 = 0.987;

fn state(text: &str) -> State {
    match text {
        "R" => State::Running,
        "Q" => State::Queued,
        "B" => State::Blocked,
        other => panic!("no state is called {other}"),
    }
}

fn layer(id: &str) -> Layer {
    Layer::ALL.into_iter().find(|l| l.id() == id).unwrap_or_else(|| panic!("no layer is called {id}"))
}

fn directory() -> std::path::PathBuf {
    match std::env::var_os("IOWHY_STACKS") {
        Some(path) => path.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stacks"),
    }
}

/// One line of a profile: state, samples or sleeps, functions innermost first.
type Stack = (State, u64, Vec<String>);

/// The profiles: name and stacks.
fn profiles() -> Vec<(String, Vec<Stack>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "stacks") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let stacks = text
            .lines()
            .map(|line| {
                let mut words = line.split(' ');
                let state = state(words.next().unwrap());
                let count = words.next().unwrap().parse().unwrap();
                let frames = words.next().unwrap_or("").split(';').filter(|f| !f.is_empty());
                (state, count, frames.map(str::to_owned).collect())
            })
            .collect();
        found.push((path.file_stem().unwrap().to_string_lossy().into_owned(), stacks));
    }
    found.sort();
    found
}

#[test]
fn nearly_all_of_every_profile_has_a_meaning() {
    let classifier = Classifier::new();
    let profiles = profiles();
    assert!(profiles.len() >= 10);
    let mut short = Vec::new();
    for (name, stacks) in &profiles {
        let (mut all, mut known) = (0, 0);
        for (state, count, frames) in stacks {
            let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
            let class = classifier.classify(&frames, *state);
            all += count;
            let clear = class.layer != Layer::Unexplained && class.wait != Some(Wait::Unknown);
            known += if clear { *count } else { 0 };
            println!(
                "{}{name} {count} {:?} {} {} {} {}",
                if clear { "" } else { "UNCLEAR " },
                state,
                class.operation.id(),
                class.layer.id(),
                class.wait.map_or("-", Wait::id),
                frames.join(";")
            );
        }
        let share = known as f64 / all as f64;
        println!("{name}: {:.2} % of {all} have a meaning", share * 100.0);
        if share < MIN_CLASSIFIED {
            short.push(format!("{name}: {share}"));
        }
    }
    assert!(short.is_empty(), "{short:?}");
}

#[test]
fn known_stacks_have_their_known_meaning() {
    let classifier = Classifier::new();
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stacks/known.txt"))
        .unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        // A misread line must fail the test, not be passed over.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kernel, st, operation, place, wait, frames] = words[..] else { panic!("not a case: {line}") };
        let expected = Class {
            operation: Operation::from_id(operation).unwrap_or_else(|| panic!("operation in: {line}")),
            layer: layer(place),
            wait: (wait != "-").then(|| Wait::from_id(wait).unwrap_or_else(|| panic!("wait in: {line}"))),
        };
        let frames: Vec<&str> = frames.split(';').filter(|f| !f.is_empty() && *f != "-").collect();
        let got = classifier.classify(&frames, state(st));
        if got != expected {
            wrong.push(format!("{kernel} {}\n  is {got:?}\n  should be {expected:?}", frames.join(" < ")));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 60, "only {count} cases");
}

#[test]
fn the_names_of_the_table_exist_in_the_running_kernel() {
    let Ok(text) = std::fs::read_to_string("/proc/kallsyms") else {
        println!("skipped: /proc/kallsyms cannot be read");
        return;
    };
    let here: std::collections::BTreeSet<&str> = text
        .lines()
        .filter_map(|l| l.split_whitespace().nth(2))
        .map(|n| n.split('.').next().unwrap_or(n))
        .collect();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        println!("skipped: the kernel does not say its version: {release:?}");
        return;
    };
    if here.len() < 10_000 || !cfg!(target_arch = "x86_64") {
        println!("skipped: only {} kernel symbols on {}", here.len(), std::env::consts::ARCH);
        return;
    }
    let begins = |prefix: &str| here.range(prefix..).next().is_some_and(|n| n.starts_with(prefix));
    let version: (u32, u32) = (major, minor);
    let classifier = Classifier::new();
    let (mut all, mut missing) = (0u32, Vec::new());
    let mut parts: std::collections::BTreeMap<&str, (u32, u32)> = Default::default();
    for name in classifier.listed() {
        let old = name.since.is_some_and(|s| version < s) || name.until.is_some_and(|u| version > u);
        let absent = name.part.as_deref().is_some_and(|p| !begins(p));
        if old || absent || name.pattern.contains('*') {
            continue;
        }
        all += 1;
        let entry = parts.entry(name.pattern.split('_').find(|w| !w.is_empty()).unwrap_or("")).or_default();
        entry.0 += 1;
        if !here.contains(name.pattern.as_str()) {
            entry.1 += 1;
            missing.push(name.pattern.as_str());
        }
    }
    missing.sort_unstable();
    missing.dedup();
    println!("not in Linux {major}.{minor}: {}", missing.join(" "));
    let share = 1.0 - missing.len() as f64 / f64::from(all);
    println!("{:.1} % of {all} exact names exist", share * 100.0);
    // The table also serves older kernels, other processors and parts that are not built in here.
    assert!(share > 0.60, "only {share}: has the table gone stale?");
}
