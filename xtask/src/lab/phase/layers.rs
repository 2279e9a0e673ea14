//! Layer truth below and above the page cache: a cost that is put in appears in its own layer and nowhere else, and the
//! layers sum to the whole.
//!
//! What is put in: the completion time of a null block device (`device`), the time that dm-delay holds a request back
//! (`block`), instructions of a seccomp filter before each system call (`call`). How much that is, is measured by loops
//! of the guest that have nothing in common with iowhy, or known from the setting.

use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers, Cell, LAYERS};
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "layers", boots, judge };

/// Of what was put in, this share may appear elsewhere, or not at all.
const TOLERANCE: f64 = 0.01;
/// The same of the filter, which is small against the request that it is found in.
const TOLERANCE_OF_FILTER: f64 = 0.02;
/// Instructions of the filter: 40 us a call.
const FILTER: &str = "filter=4000";
const KEYS: [&str; 2] = ["4096", "65536"];

/// Below 2 MiB of a disk, so that fetching and evicting around each slice stays cheap in an emulated CPU. Slices of
/// 300 ms: the kernel tells request times in milliseconds.
fn split(disk: &str) -> String {
    format!("bench {disk} --layers --state direct --bs 4k,64k --size 2m --runtime 3600ms")
}

fn boots() -> Vec<Boot> {
    let mut disks = Boot::new("layers", Time::Counted);
    disks.null_disks();
    slow_disk(&mut disks, "one", "1000000");
    slow_disk(&mut disks, "two", "2000000");
    disks.iowhy("one", "-", &split("/dev/one"));
    disks.iowhy("two", "-", &split("/dev/two"));

    let mut above = Boot::new("layers-call", Time::Counted);
    above.null_disks();
    slow_disk(&mut above, "one", "1000000");
    above.step(&["run", "call", "-", "lab-guest", "patient", "call", "3000"]);
    above.step(&["run", "filtered-call", FILTER, "lab-guest", "patient", "call", "3000"]);
    above.iowhy("filtered", FILTER, &split("/dev/one"));

    let mut held = Boot::new("layers-block", Time::Counted);
    held.null_disks();
    held.module("dm_delay", "");
    slow_disk(&mut held, "one", "1000000");
    held.step(&["dm", "held", "0 131072 delay /dev/one 0 20"]);
    for (label, disk) in [("plain-read", "/dev/one"), ("held-read", "/dev/held")] {
        held.step(&["truth", label, "direct", disk, "4096", "50"]);
    }
    // Each read takes more than 20 ms: slices of half a second hold about 20.
    held.iowhy("held", "-", &split("/dev/held").replace("3600ms", "6s"));
    vec![disks, above, held]
}

fn slow_disk(boot: &mut Boot, name: &str, completion_ns: &str) {
    let attributes =
        [("size", "64"), ("queue_mode", "2"), ("irqmode", "2"), ("completion_nsec", completion_ns)];
    boot.null_disk(name, &attributes);
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let one = answers.get("layers", "one");
    let two = answers.get("layers", "two");
    let filtered = answers.get("layers-call", "filtered");
    let held = answers.get("layers-block", "held");
    for (name, run) in
        [("1 ms disk", one), ("2 ms disk", two), ("filtered calls", filtered), ("dm-delay", held)]
    {
        ended_well(checks, name, run);
    }
    let call = |label| answers.get("layers-call", label).stdout().trim().parse::<f64>().ok();
    let filter = call("filtered-call").zip(call("call")).map(|(with, without)| with - without);
    let read = |label| answers.get("layers-block", label).number("/ns");
    let delay = read("held-read").zip(read("plain-read")).map(|(with, without)| with - without);
    for key in KEYS {
        moved(checks, &format!("disk +1 ms, {key} B"), (one, two), key, "device", (Some(1e6), TOLERANCE));
        moved(
            checks,
            &format!("call +filter, {key} B"),
            (one, filtered),
            key,
            "call",
            (filter, TOLERANCE_OF_FILTER),
        );
        moved(checks, &format!("dm-delay, {key} B"), (one, held), key, "block", (delay, TOLERANCE));
        let whole = one.cell(key);
        checks.small(
            &format!("1 ms disk, {key} B: unexplained"),
            whole.layer("unexplained"),
            whole.time(),
            TOLERANCE,
        );
    }
}

/// Of two runs the second has `put_in` more in one layer, and nothing else changed.
fn moved(
    checks: &mut Checks,
    name: &str,
    (before, after): (Answer<'_>, Answer<'_>),
    key: &str,
    layer: &str,
    (put_in, tolerance): (Option<f64>, f64),
) {
    let (a, b) = (before.cell(key), after.cell(key));
    let difference = |of: &dyn Fn(Cell<'_>) -> Option<f64>| Some(of(b)? - of(a)?);
    checks.near(&format!("{name}: in the time"), difference(&|cell| cell.time()), put_in, tolerance);
    checks.near(&format!("{name}: in `{layer}`"), difference(&|cell| cell.layer(layer)), put_in, tolerance);
    for other in LAYERS.iter().filter(|id| **id != layer) {
        let moved = difference(&|cell| cell.layer(other));
        if moved != Some(0.0) {
            checks.small(&format!("{name}: not in `{other}`"), moved, put_in, tolerance);
        }
    }
    checks.near(&format!("{name}: layers sum to the whole"), b.sum(), b.time(), 1e-6);
}
