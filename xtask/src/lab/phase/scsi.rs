//! Ladder truth of 1999: READ BUFFER through a real /dev/sg. The disk is a program of the guest that takes a known time
//! for a command and for a byte; the two-parameter fit must recover both.

use serde_json::Value;

use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "scsi", boots, judge };

const TOLERANCE: f64 = 0.02;
/// Nanoseconds of a command and picoseconds of a byte, of two disks.
const DISKS: [(&str, u64, u64); 2] = [("fast", 10_000_000, 20_000), ("slow", 20_000_000, 50_000)];

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new("scsi", Time::Counted);
    for module in ["sd_mod", "sg", "target_core_user", "tcm_loop"] {
        boot.module(module, "");
    }
    boot.step(&["mount", "configfs", "configfs", "/sys/kernel/config", ""]);
    boot.step(&["tcmu", "buffer", "16777216"]);
    for (label, command_ns, ps_per_byte) in DISKS {
        boot.step(&["tcmu-cost", &command_ns.to_string(), &ps_per_byte.to_string()]);
        boot.iowhy(label, "-", "classic linux-sg-1999 /dev/sg0 --time 20s");
    }
    vec![boot]
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let [fast, slow] = DISKS.map(|(label, ..)| answers.get("scsi", label));
    let [(_, fast_ns, fast_ps), (_, slow_ns, slow_ps)] = DISKS;
    for ((label, command_ns, _), run) in DISKS.into_iter().zip([fast, slow]) {
        ended_well(checks, label, run);
        let command = fitted(run, "command-overhead");
        checks.near(&format!("{label}: the command's time"), command, Some(command_ns as f64), TOLERANCE);
    }
    let commands = fitted(slow, "command-overhead").zip(fitted(fast, "command-overhead"));
    checks.near(
        "slow - fast: the command's time",
        commands.map(|(slow, fast)| slow - fast),
        Some((slow_ns - fast_ns) as f64),
        TOLERANCE,
    );
    // What the kernel itself takes for a byte is in both.
    let rates = fitted(slow, "bus-rate").zip(fitted(fast, "bus-rate"));
    checks.near(
        "slow - fast: a byte's time, ns",
        rates.map(|(slow, fast)| 1e9 / slow - 1e9 / fast),
        Some((slow_ps - fast_ps) as f64 / 1000.0),
        TOLERANCE,
    );
}

/// A number of the fit.
fn fitted(run: Answer<'_>, number: &str) -> Option<f64> {
    let rows = run.at("/record/rows").as_array()?;
    let row =
        rows.iter().find(|row: &&Value| row["key"]["table"] == "fit" && row["key"]["number"] == number)?;
    row["measured"]["value"].as_f64()
}
