//! Ladder truth: the five steps of 1989 with a real null block device, on a disk whose request takes 1 ms.

use super::{Phase, ended_well};
use crate::lab::answers::Answers;
use crate::lab::boot::{Boot, ext4};
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "ladder", boots, judge };

const BLOCKS: [u32; 5] = [512, 1024, 2048, 8192, 16_384];
const REQUEST_NS: f64 = 1e6;

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new("ladder", Time::Counted);
    boot.null_disks();
    // The name under which the experiment looks for it.
    boot.null_disk("nullb0", &[("size", "64"), ("queue_mode", "2"), ("irqmode", "0")]);
    boot.null_disk(
        "disk",
        &[
            ("size", "64"),
            ("queue_mode", "2"),
            ("irqmode", "2"),
            ("completion_nsec", "1000000"),
            ("memory_backed", "1"),
        ],
    );
    boot.module("ext4", "");
    boot.file_system("ext4", ext4(64 << 20), "/dev/disk", "/mnt");
    boot.step(&["fill", "/mnt/file", "4194304"]);
    boot.iowhy("ladder", "-", "classic minix-1989 /mnt/file --time 12s");
    vec![boot]
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let run = answers.get("ladder", "ladder");
    ended_well(checks, "minix-1989", run);
    let time = |step: &str, block: u32| run.cell(&format!("{step}-{block}")).time();
    checks.holds(
        "bnull is the null block device",
        run.cell("bnull-512").text("target") == "/dev/nullb0",
        run.cell("bnull-512").text("target"),
    );
    for block in BLOCKS {
        checks.near(&format!("null, {block} B: one price"), time("null", block), time("null", 512), 0.01);
        // The disk's millisecond and what the kernel does for a request, which grows with its bytes.
        let beyond = time("rhd2", block).map(|ns| ns - REQUEST_NS);
        if block <= 2048 {
            let room = Some(REQUEST_NS);
            checks.small(&format!("rhd2, {block} B: a request and little more"), beyond, room, 0.07);
        }
        checks.holds(
            &format!("rhd2, {block} B: not faster than the disk"),
            beyond.is_some_and(|ns| ns >= 0.0),
            beyond.map_or_else(|| "missing".to_owned(), |ns| format!("{ns:.0} ns beyond it")),
        );
        let order = [time("null", block), time("bnull", block), time("file", block), time("rhd2", block)];
        let rising = order.windows(2).all(|pair| matches!(pair, [Some(a), Some(b)] if a < b));
        checks.holds(
            &format!("{block} B: null < bnull < file < rhd2"),
            rising || block > 2048,
            format!("{order:.0?}"),
        );
    }
}
