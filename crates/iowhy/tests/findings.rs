//! Programs whose cause is known, end to end: the slow variant's cause is named first, the repaired variant is not
//! blamed for it, the innocent are left in peace. Only cases with a large effect; `cargo xtask bench-findings` does all.
//!
//! `IOWHY_BIN` names another binary to test. What the machine cannot show is skipped aloud.

mod cases_binary;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use iowhy::run_as::CALLER_VARIABLES;
use iowhy_cases::{Case, Skip, Stage, Variant, catalogue};
use serde_json::Value;

/// Others on this machine may cost a watched program this part of its time; beyond it, its own causes drown.
const MUCH_NOISE: f64 = 0.15;
/// So often a case is tried for a quiet run.
const ATTEMPTS: usize = 2;
/// A complaint counts when it stands in so many runs.
const TRIALS: usize = 3;
/// No further case is begun after this time: on a busy machine each takes many times as long.
const MOST_TIME: Duration = Duration::from_secs(40);

/// Runs a variant under watch; the record.
fn watched(stage: &mut Stage, variant: Variant) -> Value {
    stage.before(variant).unwrap_or_else(|p| panic!("{p}"));
    let iowhy = std::env::var_os("IOWHY_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_iowhy").into());
    let record = stage.dir().join("watched.json");
    let mut command = Command::new(iowhy);
    // Who runs the tests under sudo is not the user to run the cases as.
    for name in CALLER_VARIABLES {
        command.env_remove(name);
    }
    let output = command
        .arg("--json")
        .arg(&record)
        .arg("--")
        .args(stage.command(variant))
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    stage.after();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&record).expect("a record was written");
    serde_json::from_str(&text).expect("a record is JSON")
}

/// Names of the findings, in order, without the noise of the machine: no case here is about it.
fn names(record: &Value) -> Vec<&str> {
    let all = record["findings"].as_array().into_iter().flatten();
    all.filter_map(|f| f["id"].as_str()).filter(|id| *id != "noisy-neighbour").collect()
}

/// The part of the wall time that others on this machine cost the program.
fn noise(record: &Value) -> f64 {
    let all = record["findings"].as_array().into_iter().flatten();
    all.filter(|f| f["id"] == "noisy-neighbour").filter_map(|f| f["share"].as_f64()).sum()
}

/// Why a record cannot decide, where others disturbed the run.
fn too_busy(record: &Value) -> Option<String> {
    let share = noise(record);
    (share >= MUCH_NOISE).then(|| format!("the machine is too busy: {:.0} % of the time", 100.0 * share))
}

/// Runs a variant until a run is quiet, a few times at most.
fn quiet(stage: &mut Stage, variant: Variant) -> Value {
    let mut record = watched(stage, variant);
    for _ in 1..ATTEMPTS {
        if too_busy(&record).is_none() {
            break;
        }
        record = watched(stage, variant);
    }
    record
}

/// Why a record cannot decide, where the watcher saw too little.
fn too_little(record: &Value) -> Option<String> {
    let tier = record["tier"].as_str().unwrap_or("none");
    matches!(tier, "T0" | "T1" | "none").then(|| format!("only tier {tier} is allowed here"))
}

/// Complaints about one case; a skip is said aloud and is no complaint.
fn judge(case: &'static Case, dir: &Path, binary: &Path) -> Vec<String> {
    let mut stage = match Stage::new(case, dir, binary) {
        Ok(stage) => stage,
        Err(Skip::Unavailable(reason)) => {
            println!("skipped: {}: {reason}", case.name);
            return Vec::new();
        }
        Err(Skip::Problem(problem)) => panic!("{}: {problem}", case.name),
    };
    let slow = quiet(&mut stage, Variant::Slow);
    if let Some(reason) = too_little(&slow).or_else(|| too_busy(&slow)) {
        println!("skipped: {}: {reason}", case.name);
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let found = names(&slow);
    let right = |id: &str| case.cause.iter().chain(case.accept).any(|known| known.id() == id);
    // An innocent program may come out without any word: the machine's noise outranks a remark that is no fault.
    let silent = case.cause.is_none() && found.is_empty();
    if !silent && !found.first().is_some_and(|first| right(first)) {
        complaints.push(format!("{}: slow: named {found:?}", case.name));
    }
    if let Some(cause) = case.cause {
        let repaired = quiet(&mut stage, Variant::Repaired);
        let found = names(&repaired);
        if let Some(reason) = too_busy(&repaired) {
            println!("skipped: {} repaired: {reason}", case.name);
        } else if found.contains(&cause.id()) {
            complaints.push(format!("{}: repaired: still named {found:?}", case.name));
        }
    }
    complaints
}

/// Complaints that stand in each of [`TRIALS`] runs. A shared machine can make any single run look like something else; a
/// rule that is wrong is wrong each time.
fn judged(case: &'static Case, dir: &Path, binary: &Path) -> Vec<String> {
    let mut complaints = Vec::new();
    for _ in 0..TRIALS {
        complaints = judge(case, dir, binary);
        if complaints.is_empty() {
            break;
        }
        println!("{}", complaints.join("\n"));
    }
    complaints
}

/// One test for all: they share files, and two at a time would be each other's noisy neighbours.
#[test]
fn causes_are_named_and_repairs_are_seen() {
    let folder = tempfile::Builder::new()
        .prefix("findings-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("the build folder is writable");
    let binary = cases_binary::build();
    let start = Instant::now();
    let mut complaints = Vec::new();
    for case in catalogue::all().filter(|case| case.quick) {
        if start.elapsed() > MOST_TIME {
            println!("skipped: {}: the machine is so busy that no time is left", case.name);
        } else {
            complaints.extend(judged(case, folder.path(), &binary));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
