//! Layer truth below and above the page cache: a cost that is put in appears in its own layer and nowhere else, and the
//! layers sum to the whole.
//!
//! What is put in: the completion time of a null block device and of a SCSI disk
//! (`device`), the time that dm-delay holds a request back
//! (`block`), instructions of a seccomp filter before each system call (`call`). How much that is, is measured by loops
//! of the guest that have nothing in common with iowhy, or known from the setting.

use super::{Phase, ended_well, moved};
use crate::lab::answers::Answers;
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "layers", boots, judge };

/// Of what was put in, this share may appear elsewhere, or not at all.
const TOLERANCE: f64 = 0.01;
/// The same for the filter. It runs on the CPU, where the timer's tick interrupts it: in the emulator 3 % of the calls take 10 us
/// more, so that their mean is 0.3 % above their median. The request's time holds its ticks, calibration cells are medians of
/// blocks of a millisecond and leave them out: 1.0 to 1.1 % of the filter were told as `block` in three runs, whatever its length.
const TOLERANCE_OF_CPU: f64 = 0.02;
/// Instructions of the filters, some 50 us a call. What two runs differ by anyway (0.04 % of a request of a millisecond) must
/// be small against it. It must be small against the 4 ms between two ticks: a thread that is woken in the middle of a call
/// gets the CPU at its end, but the kernel's clock of the CPU still shows when it was woken, so that half a call on average is
/// booked to the wrong thread. With 32,000 instructions that was up to 3.4 % of `call`.
const FILTER: &str = "filter=12000";
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
    above.step(&["run", "call", "-", "lab-guest", "program", "call", "3000"]);
    above.step(&["run", "filtered-call", FILTER, "lab-guest", "program", "call", "3000"]);
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

    // The same disk tells its time anew between two runs.
    let mut scsi = Boot::new("layers-scsi", Time::Counted);
    scsi.module("scsi_debug", "dev_size_mb=64 ndelay=1000000");
    scsi.module("sd_mod", "");
    scsi.step(&["wait", "/dev/sda"]);
    scsi.iowhy("one", "-", &split("/dev/sda"));
    scsi.step(&["write", "/sys/bus/pseudo/drivers/scsi_debug/ndelay", "2000000"]);
    scsi.iowhy("two", "-", &split("/dev/sda"));
    vec![disks, above, held, scsi]
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
    let [scsi_one, scsi_two] = ["one", "two"].map(|label| answers.get("layers-scsi", label));
    for (name, run) in [
        ("1 ms disk", one),
        ("2 ms disk", two),
        ("filtered calls", filtered),
        ("dm-delay", held),
        ("1 ms SCSI disk", scsi_one),
        ("2 ms SCSI disk", scsi_two),
    ] {
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
            &format!("SCSI disk +1 ms, {key} B"),
            (scsi_one, scsi_two),
            key,
            "device",
            (Some(1e6), TOLERANCE),
        );
        moved(
            checks,
            &format!("call +filter, {key} B"),
            (one, filtered),
            key,
            "call",
            (filter, TOLERANCE_OF_CPU),
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
