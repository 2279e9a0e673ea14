//! A hostile machine around `iowhy`: attackers with the rights of nobody, signals at random moments, damaged inputs, full and
//! read-only disks, tight limits. Nothing may be destroyed or left, and nothing may abort.
//!
//! Goal: invariants after each of many random scenarios, and a seed that finds a failure again. Non-goal: results of
//! measurements. It works in a mount namespace and a directory of its own, as root.

mod arena;
mod attacker;
mod damage;
mod scenario;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use iowhy_core::rng::Rng;

use self::arena::Arena;
use self::attacker::Attackers;

/// How long it lasts unless it is told.
const DEFAULT_SECONDS: u64 = 60;
/// Failures after which it ends.
const MAX_FAILURES: usize = 20;

/// `cargo xtask hostile [--time SECONDS] [--seed N]`.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let (mut seconds, mut seed) = (DEFAULT_SECONDS, 0);
    let mut inside = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || rest.next().and_then(|text| text.parse::<u64>().ok());
        match (*argument, argument) {
            ("--time", _) => seconds = number().unwrap_or(DEFAULT_SECONDS),
            ("--seed", _) => seed = number().unwrap_or(0),
            ("--inside", _) => inside = true,
            _ => {
                eprintln!("usage: cargo xtask hostile [--time SECONDS] [--seed N]");
                return ExitCode::from(2);
            }
        }
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: attacks on root need root");
        return ExitCode::SUCCESS;
    }
    if inside {
        return attack(root, Duration::from_secs(seconds), seed);
    }
    if seed == 0 {
        seed = fresh_seed();
    }
    if !crate::programs::build_binary(root) {
        return ExitCode::FAILURE;
    }
    // Mounts of the arena go with this namespace, also if the run is killed.
    let Ok(own) = std::env::current_exe() else { return ExitCode::FAILURE };
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--"])
        .arg(own)
        .args(["hostile", "--inside", "--time", &seconds.to_string(), "--seed", &seed.to_string()])
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("skipped: unshare (util-linux) cannot be run: {error}");
            ExitCode::SUCCESS
        }
    }
}

/// A seed from the clock, printed so that a failure is found again.
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64 | 1)
}

fn attack(root: &Path, time: Duration, seed: u64) -> ExitCode {
    println!("hostile: {} s, seed {seed}", time.as_secs());
    let arena = match Arena::new(root) {
        Ok(arena) => arena,
        Err(error) => {
            eprintln!("cannot make the arena: {error}");
            return ExitCode::FAILURE;
        }
    };
    let machine = arena::machine_settings();
    let attackers = Attackers::start(&arena);
    let mut rng = Rng::new(seed);
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut failures = Vec::new();
    let end = Instant::now() + time;
    while Instant::now() < end && failures.len() < MAX_FAILURES {
        let own = rng.next_u64();
        let mut draw = Rng::new(own);
        let scenario = scenario::pick(&mut draw);
        *counts.entry(scenario.name).or_default() += 1;
        let mut wrong = (scenario.run)(&arena, &mut draw);
        wrong.extend(arena.harm());
        if !wrong.is_empty() {
            println!("FAILED {} (draw {own}): {}", scenario.name, wrong.join("; "));
            failures.push((scenario.name, own));
        }
    }
    let exchanges = attackers.stop();
    failures.extend(last_look(&arena, &machine).into_iter().map(|what| {
        println!("FAILED at the end: {what}");
        ("end", 0)
    }));
    for (name, count) in &counts {
        println!("{count:8}  {name}");
    }
    println!("{exchanges:8}  names that the attackers exchanged or planted");
    println!("hostile: {} scenarios, {} failures", counts.values().sum::<u64>(), failures.len());
    if failures.is_empty() && exchanges > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is left when all is over: settings of the machine, processes, names.
fn last_look(arena: &Arena, machine: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for ((name, before), (_, after)) in machine.iter().zip(arena::machine_settings()) {
        if *before != after {
            wrong.push(format!("{name} was `{before}` and is `{after}`"));
        }
    }
    wrong.extend(arena.processes_left());
    wrong.extend(arena.names_left());
    wrong.extend(arena.harm());
    wrong
}
