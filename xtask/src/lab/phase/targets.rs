//! Target truth: XFS, a disk in memory, a compressed disk, a loop device: each is told as what it is, its layers close, and
//! only where there is a disk with a time of its own is there time in `device`.

use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::{Boot, ext4, xfs};
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "targets", boots, judge };

const NAME: &str = "targets";
/// What the disk under XFS and under the loop device takes for a request.
const REQUEST_NS: f64 = 1e6;
const TOLERANCE: f64 = 0.01;
/// What is lost between two readings of a clock.
const NONE: f64 = 1e-4;
const TOLERANCE_OF_LOOP: f64 = 0.05;
/// What the timer's interrupt takes of an emulated CPU that runs without a pause stands in the time and not in the fit.
const NEAR_WHOLE: f64 = 0.05;
const SIZE: u64 = 2 << 20;

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new(NAME, Time::Counted);
    boot.null_disks();
    for (name, mib) in [("large", "320"), ("small", "64")] {
        boot.null_disk(
            name,
            &[
                ("size", mib),
                ("queue_mode", "2"),
                ("irqmode", "2"),
                ("completion_nsec", "1000000"),
                ("memory_backed", "1"),
            ],
        );
    }
    boot.module("xfs", "");
    boot.module("ext4", "");
    boot.module("brd", "rd_nr=1 rd_size=16384");
    boot.module("lzo", "");
    boot.module("lzo_rle", "");
    boot.module("zram", "num_devices=1");
    boot.module("loop", "max_loop=1");
    let size = SIZE.to_string();
    boot.file_system("xfs", xfs(), "/dev/large", "/xfs");
    boot.step(&["fill", "/xfs/file", &size]);
    boot.file_system("ext4", ext4(64 << 20), "/dev/small", "/mnt");
    boot.step(&["fill", "/mnt/file", &size]);
    boot.step(&["wait", "/dev/loop0"]);
    boot.step(&["loop", "0", "/mnt/file"]);
    boot.step(&["wait", "/dev/ram0"]);
    boot.step(&["fill", "/dev/ram0", &size]);
    boot.step(&["write", "/sys/block/zram0/disksize", "16777216"]);
    boot.step(&["fill", "/dev/zram0", &size]);
    let split = |target: &str, states: &str, runtime: &str| {
        format!("bench {target} --layers --state {states} --bs 4k --size 2m --runtime {runtime}")
    };
    boot.iowhy("xfs", "-", &split("/xfs/file", "warm,direct", "3600ms"));
    boot.iowhy("loop", "-", &split("/dev/loop0", "direct", "3600ms"));
    boot.iowhy("brd", "-", &split("/dev/ram0", "warm,direct", "1200ms"));
    boot.iowhy("zram", "-", &split("/dev/zram0", "direct", "1200ms"));
    vec![boot]
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let run = |label| answers.get(NAME, label);
    for (label, device) in [("xfs", "large"), ("loop", "loop0"), ("brd", "ram0"), ("zram", "zram0")] {
        ended_well(checks, label, run(label));
        told(checks, label, run(label), "device", device);
        checks.holds(
            &format!("{label}: one disk alone"),
            *run(label).at("/record/environment/devices") == serde_json::json!([device]),
            run(label).at("/record/environment/devices").to_string(),
        );
    }
    told(checks, "xfs", run("xfs"), "file_system", "xfs");
    told(checks, "loop", run("loop"), "device_model", "loop on /mnt/file");

    let (warm, direct) = ("pread-sequential-warm", "direct-sequential-direct");
    for (label, cells) in [
        ("xfs", [warm, direct].as_slice()),
        ("loop", &[direct]),
        ("brd", &[warm, direct]),
        ("zram", &[direct]),
    ] {
        for key in cells {
            let (name, cell) = (format!("{label} {key}"), run(label).cell(key));
            checks.near(&format!("{name}: layers sum to the whole"), cell.sum(), cell.time(), 1e-6);
            checks.small(&format!("{name}: unexplained"), cell.layer("unexplained"), cell.time(), NEAR_WHOLE);
            // The disk's own time where there is a disk, and none where memory answers.
            let device = cell.layer("device");
            if *key == direct && ["xfs", "loop"].contains(&label) {
                // Below a loop device stand a file system and a second queue, which are part of it.
                let tolerance = if label == "loop" { TOLERANCE_OF_LOOP } else { TOLERANCE };
                checks.near(
                    &format!("{name}: the disk's time in `device`"),
                    device,
                    Some(REQUEST_NS),
                    tolerance,
                );
            } else {
                checks.small(&format!("{name}: no time of a device"), device, cell.time(), NONE);
            }
        }
    }
    // Disks in memory do not count what they move in this kernel: then nothing may be claimed to be checked.
    for (label, key, verdict) in [
        ("xfs", warm, "ok"),
        ("xfs", direct, "ok"),
        ("loop", direct, "ok"),
        ("brd", direct, "inconclusive"),
        ("zram", direct, "inconclusive"),
    ] {
        let found = run(label).cell(key).text("verdict");
        checks.holds(&format!("{label} {key}: the verdict"), found == verdict, found);
    }
}

/// A fact of the environment.
fn told(checks: &mut Checks, label: &str, run: Answer<'_>, fact: &str, expected: &str) {
    let found = run.at(&format!("/record/environment/{fact}"));
    checks.holds(&format!("{label}: {fact}"), found == expected, found.to_string());
}
