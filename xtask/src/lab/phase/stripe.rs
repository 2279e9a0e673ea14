//! Stripe truth: n disks that each serve one request in 2 ms, striped by dm and by md, move n times what one moves, and are
//! recognised as the disks they are.

use super::{Phase, ended_well};
use crate::lab::answers::Answers;
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "stripe", boots, judge };

/// Sets: label, device, members.
const SETS: [(&str, &str, &[&str]); 3] = [
    ("dm-2", "/dev/two", &["a", "b"]),
    ("dm-4", "/dev/four", &["c", "d", "e", "f"]),
    ("md-2", "/dev/md0", &["g", "h"]),
];

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new("stripe", Time::Counted);
    boot.null_disks();
    boot.module("dm_mod", "");
    boot.module("raid0", "");
    for disk in ["one"].iter().chain(SETS.iter().flat_map(|(_, _, members)| members.iter())) {
        // One request at a time: a disk with one arm.
        boot.null_disk(
            disk,
            &[
                ("size", "64"),
                ("queue_mode", "2"),
                ("irqmode", "2"),
                ("completion_nsec", "2000000"),
                ("hw_queue_depth", "1"),
            ],
        );
    }
    boot.step(&["dm", "two", "0 262144 striped 2 128 /dev/a 0 /dev/b 0"]);
    boot.step(&["dm", "four", "0 524288 striped 4 128 /dev/c 0 /dev/d 0 /dev/e 0 /dev/f 0"]);
    boot.step(&["md-raid0", "0", "65536", "/dev/g", "/dev/h"]);
    let bench = |device: &str| {
        format!("bench {device} --state direct --method uring --bs 64k --iodepth 16 --size 32m --runtime 3s")
    };
    boot.iowhy("one", "-", &bench("/dev/one"));
    for (label, device, _) in SETS {
        boot.iowhy(label, "-", &bench(device));
    }
    vec![boot]
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let one = answers.get("stripe", "one");
    ended_well(checks, "one disk", one);
    let alone = one.cell("65536").throughput();
    // 64 KiB in 2 ms, and what the kernel needs between two requests.
    checks.near("one disk: 64 KiB in 2 ms", alone, Some(65_536.0 / 2e-3), 0.05);
    for (label, _, members) in SETS {
        let run = answers.get("stripe", label);
        ended_well(checks, label, run);
        let n = members.len() as f64;
        checks.near(
            &format!("{label}: {n} times one disk"),
            run.cell("65536").throughput(),
            alone.map(|rate| n * rate),
            0.05,
        );
        let devices = run.at("/record/environment/devices");
        checks.holds(
            &format!("{label}: its disks"),
            *devices == serde_json::json!(members),
            devices.to_string(),
        );
    }
}
