//! Changes that look like repairs and are none: a replay of them must never say `proven`.
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
const MOST_LENT: f64 = 1.5;

fn iowhy() -> Command {
    let path = std::env::var_os("IOWHY_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_iowhy").into());
    let mut command = Command::new(path);
    // Who runs the tests under sudo is not the user to run the cases as.
    for name in CALLER_VARIABLES {
        command.env_remove(name);
    }
    command
}

/// Whether a replay calls the tempting change a repair, and a line for people.
fn word(case: &'static Case, options: &[&str], dir: &Path, binary: &Path) -> Option<(bool, String)> {
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
        .arg("--json")
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
    let Ok(proof) = serde_json::from_slice::<Value>(&proved.stdout) else {
        println!("skipped: {}: {}", case.name, String::from_utf8_lossy(&proved.stderr).trim());
        return None;
    };
    let tried = &proof["what_if"][0];
    let word = tried["verdict"].as_str().expect("a word").to_owned();
    let line = format!(
        "{}: {word}, gain {} [{}, {}]; {} {}",
        case.name,
        tried["measured"]["value"],
        tried["measured"]["low"],
        tried["measured"]["high"],
        tried["how"].as_str().unwrap_or_default(),
        tried["reason"].as_str().unwrap_or_default()
    );
    // A limit lends a burst at the start of each run, and a deeper queue takes it sooner: that is no repair.
    let lent = if matches!(case.condition, Condition::DiskLimit(_)) { MOST_LENT } else { 1.0 };
    let gains = tried["measured"]["low"].as_f64().is_some_and(|low| low > lent);
    Some((word == "proven" && gains, line))
}

#[test]
fn what_looks_like_a_repair_and_is_none_is_never_proven() {
    let folder = tempfile::Builder::new()
        .prefix("traps-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("the build folder is writable");
    let binary = cases_binary::build();
    let mut fell = Vec::new();
    for (case, options) in TRAPS {
        let Some((repair, line)) = word(case, options, folder.path(), &binary) else { continue };
        println!("{line}");
        if repair {
            fell.push(line);
        }
    }
    assert!(fell.is_empty(), "\n{}", fell.join("\n"));
}
