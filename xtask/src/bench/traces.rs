//! How fast traces are read: one core, files in the page cache, every request looked at. What may not enter: what is done
//! with the requests.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use iowhy_core::rng::Rng;
use iowhy_core::stats;
use serde_json::Value;

use super::{Arm, Outcome, SEED, Scratch, Unit, interleave};

/// Requests of a file.
const REQUESTS: u64 = 5_000_000;
/// Different ids.
const IDS: u64 = 1_000_000;

/// Measures reading of text and of records.
pub(super) fn measure(root: &Path, target: &Path, rounds: usize) -> Outcome<()> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "iowhy-trace", "--example", "read_speed"])
        .current_dir(root)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !built.success() {
        return Err("the example did not build".to_owned());
    }
    let example = target.join("release/examples/read_speed");
    let name = |ending: &str| target.join(format!(".iowhy-bench-{}.{ending}", std::process::id()));
    let text = Scratch::make(name("csv"), csv().as_bytes())?;
    let records = Scratch::make(name("oracleGeneral"), &oracle_general())?;
    let mut arms = [
        Arm::new("csv", || read(&example, &text.0)),
        Arm::new("oracleGeneral", || read(&example, &records.0)),
    ];
    interleave(&mut arms, rounds)?;
    println!("traces of {REQUESTS} requests `time,id,size`, millions read per second on one core");
    for (arm, aim) in arms.iter().zip([" (aim: at least 15)", ""]) {
        match stats::bootstrap_median(&arm.values, SEED, Unit::PerSecond) {
            Some(e) => println!("  {:14} {:>6.1} [{:.1}, {:.1}]{aim}", arm.name, e.value, e.low, e.high),
            None => println!("  {:14} inconclusive", arm.name),
        }
    }
    println!();
    Ok(())
}

/// Millions of requests a second.
fn read(example: &Path, file: &Path) -> Outcome<f64> {
    let output = Command::new(example)
        .arg(file)
        .output()
        .map_err(|e| format!("cannot run {}: {e}", example.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let record: Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("its JSON: {e}"))?;
    if record["requests"].as_u64() != Some(REQUESTS) {
        return Err(format!("it read {} requests instead of {REQUESTS}", record["requests"]));
    }
    record["ns_per_request"].as_f64().map(|ns| 1e3 / ns).ok_or_else(|| "no time in its JSON".to_owned())
}

fn csv() -> String {
    let mut rng = Rng::new(SEED);
    let mut text = String::from("time,id,size\n");
    for i in 0..REQUESTS {
        // Writing into a String does not fail.
        let _ = writeln!(text, "{},{},4096", i / 5000, rng.below(IDS));
    }
    text
}

fn oracle_general() -> Vec<u8> {
    let mut rng = Rng::new(SEED);
    let mut bytes = Vec::with_capacity(24 * REQUESTS as usize);
    for i in 0..REQUESTS {
        bytes.extend_from_slice(&((i / 5000) as u32).to_le_bytes());
        bytes.extend_from_slice(&rng.below(IDS).to_le_bytes());
        bytes.extend_from_slice(&4096u32.to_le_bytes());
        bytes.extend_from_slice(&(-1i64).to_le_bytes());
    }
    bytes
}
