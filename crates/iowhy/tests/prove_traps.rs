//! Changes that look like repairs and are none must never be `proven`; a repair that removes nearly all calls must be.
//!
//! `IOWHY_BIN` names another binary to test. What the machine cannot show is skipped aloud.

mod cases_binary;

use std::path::Path;
use std::process::{Command, Stdio};

use iowhy::run_as::CALLER_VARIABLES;
use iowhy_cases::case::{Before, Case, Condition, Need, Setup};
use iowhy_cases::{Skip, Stage, Variant};
use serde_json::Value;

const DATA: Setup = Setup::Data("data-16m", 16 << 20);
const WARM: &[Before] = &[Before::Warm("data-16m")];
const TRAP: Case = Case { setup: &[DATA], before: WARM, needs: &[Need::Root], ..Case::EMPTY };

/// Each with the change that is tempting, and further options.
const TRAPS: &[(Case, &[&str])] = &[
    (
        Case {
            name: "data-read-twice",
            what: "reads a cached file 300 times; tempting: O_DIRECT, which fetches it 300 times",
            slow: &["{program}", "read", "{dir}/data-16m", "65536", "300", "normal"],
            ..TRAP
        },
        &["--what-if", "direct"],
    ),
    (
        Case {
            name: "beyond-the-cache-of-the-cpu",
            what: "reads a cached file by 64 KiB; tempting: 16 MiB, which leave the CPU's cache before they are used",
            slow: &["{program}", "read", "{dir}/data-16m", "65536", "300", "normal"],
            ..TRAP
        },
        &["--what-if", "larger", "--request", "16m"],
    ),
    (
        Case {
            name: "small-windows",
            what: "reads a cached file by 4 KiB; tempting: mappings, one for each piece",
            slow: &["{program}", "read", "{dir}/data-16m", "4096", "100", "normal"],
            ..TRAP
        },
        &["--what-if", "windows"],
    ),
    (
        Case {
            name: "saturated-device",
            what: "reads as fast as a limit of 64 MiB a second allows; tempting: more requests in flight",
            slow: &[
                "sh",
                "-c",
                "echo $$ > {group} && exec dd if={dir}/data-64m of=/dev/null bs=128k iflag=direct status=none",
            ],
            setup: &[Setup::Data("data-64m", 64 << 20)],
            before: &[],
            needs: &[Need::Root, Need::Direct],
            condition: Condition::DiskLimit(64 << 20),
            ..TRAP
        },
        &["--what-if", "deeper"],
    ),
    (
        Case {
            name: "touches-that-fit-in-memory",
            what: "touches most pages of a cold file at random; tempting: MADV_RANDOM, against read-around that was a prefetch",
            slow: &["{program}", "map-touch", "{dir}/data-16m", "3000", "normal"],
            before: &[Before::Cold("data-16m")],
            ..TRAP
        },
        &["--what-if", "random"],
    ),
];

/// A burst that a limit lends makes a run of a third of a second at most so many times faster.
const MAX_LENT: f64 = 1.5;

fn iowhy() -> Command {
    let path = std::env::var_os("IOWHY_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_iowhy").into());
    let mut command = Command::new(path);
    // Who runs the tests under sudo is not the user to run the cases as.
    for name in CALLER_VARIABLES {
        command.env_remove(name);
    }
    command
}

/// The proof of a case; `None` where this machine cannot show it.
fn proof(case: &'static Case, options: &[&str], dir: &Path, binary: &Path) -> Option<Value> {
    let mut stage = match Stage::new(case, dir, binary) {
        Ok(stage) => stage,
        Err(Skip::Unavailable(reason)) => {
            println!("skipped: {}: {reason}", case.name);
            return None;
        }
        Err(Skip::Problem(problem)) => panic!("{}: {problem}", case.name),
    };
    stage.before(Variant::Slow).unwrap_or_else(|p| panic!("{p}"));
    let record = stage.dir().join("watched.json");
    let watched = iowhy()
        .args(["--record-calls", "--json"])
        .arg(&record)
        .arg("--")
        .args(stage.command(Variant::Slow))
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    assert!(watched.status.success(), "{}", String::from_utf8_lossy(&watched.stderr));
    let proved = iowhy()
        .arg("prove")
        .arg(&record)
        .args(options)
        .args(["--rounds", "5", "--quiet", "--json", "-"])
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    stage.after();
    let proof = serde_json::from_slice(&proved.stdout);
    if proof.is_err() {
        println!("skipped: {}: {}", case.name, String::from_utf8_lossy(&proved.stderr).trim());
    }
    proof.ok()
}

/// Whether a replay calls the tempting change a repair, and a line for people.
fn verdict(case: &'static Case, options: &[&str], dir: &Path, binary: &Path) -> Option<(bool, String)> {
    let proof = proof(case, options, dir, binary)?;
    // Where others keep the baseline from reproducing the run, no change is tried.
    if proof["what_if"][0].is_null() && proof["baseline"]["reproduces"] != true {
        println!("skipped: {}: the replay does not reproduce the run here: {}", case.name, proof["reason"]);
        return None;
    }
    let tried = &proof["what_if"][0];
    let verdict = tried["verdict"].as_str().expect("a verdict").to_owned();
    let line = format!(
        "{}: {verdict}, gain {} [{}, {}]; {} {}",
        case.name,
        tried["measured"]["value"],
        tried["measured"]["low"],
        tried["measured"]["high"],
        tried["how"].as_str().unwrap_or_default(),
        tried["reason"].as_str().unwrap_or_default()
    );
    // A limit lends a burst at the start of each run, and a deeper queue takes it sooner: that is no repair.
    let lent = if matches!(case.condition, Condition::DiskLimit(_)) { MAX_LENT } else { 1.0 };
    let gains = tried["measured"]["low"].as_f64().is_some_and(|low| low > lent);
    Some((verdict == "proven" && gains, line))
}

/// A folder for the files of the cases, on a disk.
fn folder() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("traps-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build folder is writable")
}

/// Positive control: 2.6 million calls, of which the repair leaves 5,000.
const CONTROL: Case = Case {
    name: "millions-of-small-reads",
    what: "reads a cached file by 128 bytes; repaired: by 64 KiB",
    slow: &["{program}", "read", "{dir}/data-16m", "128", "20", "normal"],
    ..TRAP
};

#[test]
fn a_repair_that_removes_nearly_all_calls_is_proven() {
    let folder = folder();
    let Some(proof) = proof(&CONTROL, &[], folder.path(), &cases_binary::build()) else { return };
    // Others on a shared machine may keep the baseline from reproducing the run.
    if proof["baseline"]["reproduces"] != true {
        let name = CONTROL.name;
        return println!("skipped: {name}: the replay does not reproduce the run here: {}", proof["reason"]);
    }
    let findings = proof["findings"].as_array().expect("findings");
    let small = findings.iter().find(|f| f["id"] == "small-requests").expect("millions of small requests");
    println!(
        "{}: gain {} [{}, {}]",
        CONTROL.name, small["measured"]["value"], small["measured"]["low"], small["measured"]["high"]
    );
    assert_eq!(small["verdict"], "proven", "{small}");
}

#[test]
fn what_looks_like_a_repair_and_is_none_is_never_proven() {
    let folder = folder();
    let binary = cases_binary::build();
    let mut fell = Vec::new();
    for (case, options) in TRAPS {
        let Some((repair, line)) = verdict(case, options, folder.path(), &binary) else { continue };
        println!("{line}");
        if repair {
            fell.push(line);
        }
    }
    assert!(fell.is_empty(), "\n{}", fell.join("\n"));
}
