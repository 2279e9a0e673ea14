//! Repeatability: the same boot twice, cold, warm and direct reads, gives the same figures to the digit.

use super::{Phase, ended_well};
use crate::lab::answers::Answers;
use crate::lab::boot::{Boot, ext4};
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "repeat", boots, judge };

const NAMES: [&str; 2] = ["repeat", "repeat-again"];

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new(NAMES[0], Time::Counted);
    boot.null_disks();
    boot.null_disk("disk", &[("size", "16"), ("queue_mode", "2"), ("memory_backed", "1")]);
    boot.module("ext4", "");
    boot.file_system("ext4", ext4(16 << 20), "/dev/disk", "/mnt");
    boot.step(&["fill", "/mnt/file", "1048576"]);
    boot.iowhy("read", "-", "bench /mnt/file --state cold,warm,direct --bs 4k,64k --size 1m --runtime 240ms");
    let again = boot.again(NAMES[1]);
    vec![boot, again]
}

fn judge(answers: &Answers, checks: &mut Checks) {
    for name in NAMES {
        ended_well(checks, name, answers.get(name, "read"));
    }
    let [first, second] = NAMES.map(|boot| {
        let of_cell = |cell: &serde_json::Value| {
            ["key", "time_per_request", "cpu_per_request"].map(|key| cell[key].to_string()).join(" ")
        };
        answers.get(boot, "read").cells().iter().map(of_cell).collect::<Vec<_>>()
    });
    let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    let said = format!("{same} of {} cells with their intervals", first.len());
    checks.holds("run twice: the same to the digit", first.len() == 6 && first == second, said);
}
