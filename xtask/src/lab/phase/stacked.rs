//! File-system truth: the same file read where it lies, and through an overlay file system, which adds its own code to
//! every call and changes nothing else. What it adds is measured by loops of the guest at the end of the file; it must
//! appear in `filesystem`, and nowhere else.

use super::{Phase, ended_well, moved};
use crate::lab::answers::Answers;
use crate::lab::boot::{Boot, ext4};
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "stacked", boots, judge };

const NAME: &str = "stacked";
/// Of what was put in, this share may appear elsewhere, or not at all.
const TOLERANCE: f64 = 0.02;
/// iowhy's own code around a call is a part of its figures: some 80 instructions around the smallest, 55 around a read, in
/// a development build. In what the overlay adds there is none of it.
const TOLERANCE_OF_CALL: f64 = 0.2;
const TOLERANCE_OF_READ: f64 = 0.1;
const FILES: [(&str, &str); 2] = [("plain", "/mnt/files/file"), ("overlay", "/over/file")];

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new(NAME, Time::Fine);
    boot.null_disks();
    boot.null_disk("disk", &[("size", "64"), ("queue_mode", "2"), ("memory_backed", "1")]);
    boot.module("ext4", "");
    boot.module("overlay", "");
    boot.file_system("ext4", ext4(64 << 20), "/dev/disk", "/mnt");
    for folder in ["/mnt/files", "/mnt/none"] {
        boot.step(&["mkdir", folder]);
    }
    boot.step(&["fill", FILES[0].1, "262144"]);
    boot.step(&["mount", "overlay", "overlay", "/over", "lowerdir=/mnt/files:/mnt/none"]);
    for (label, file) in FILES {
        boot.step(&["truth", &end(label), "end", file, "4096", "2000"]);
        boot.step(&["truth", &getfd(label), "getfd", file, "2000"]);
        boot.iowhy(
            label,
            "-",
            &format!("bench {file} --layers --state warm --bs 4k --size 256k --runtime 120ms"),
        );
    }
    vec![boot]
}

fn end(label: &str) -> String {
    format!("{label}-end")
}

fn getfd(label: &str) -> String {
    format!("{label}-getfd")
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let runs = FILES.map(|(label, _)| answers.get(NAME, label));
    let of = |label: &str| answers.get(NAME, label).number("/ns");
    let less = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a - b);
    for ((label, _), run) in FILES.into_iter().zip(runs) {
        ended_well(checks, label, run);
        let cell = run.cell("4096");
        let call = of(&getfd(label));
        checks.near(
            &format!("{label}: call as a bare loop has it"),
            cell.layer("call"),
            call,
            TOLERANCE_OF_CALL,
        );
        let beyond = less(of(&end(label)), call);
        let found = cell.layer("filesystem");
        let name = format!("{label}: file system as bare loops have it");
        checks.near(&name, found, beyond, TOLERANCE_OF_READ);
    }
    let kind = runs[1].at("/record/environment/file_system");
    checks.holds("overlay: is told", kind == "overlay", kind.to_string());
    let put_in = less(of(&end("overlay")), of(&end("plain")));
    moved(checks, "overlay", (runs[0], runs[1]), "4096", "filesystem", (put_in, TOLERANCE));
}
