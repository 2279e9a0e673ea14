//! Layer truth in the page cache: cached reads of a file, split over call, file system, cache and copy.
//!
//! What is known: loops of the guest that have nothing in common with iowhy say what a read costs in all, what one at the
//! end of the file costs (call and file system), and what a byte more within a page costs (copying alone). What is put
//! in: a CPU without fast string instructions, on which copying costs something else.

use super::{Phase, ended_well};
use crate::lab::answers::{Answers, Cell};
use crate::lab::boot::{Boot, ext4};
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "copying", boots, judge };

/// What copying may differ from what the guest's loops say. The timer's interrupt, 250 times a second, takes 2.4 % of a CPU
/// whose instructions take 4 ns, and slices of a few milliseconds, from which costs are fitted, hold less of it than long
/// ones: so these guests count 1 ns, and it takes 0.6 %.
const NEAR: f64 = 0.01;
/// The smallest read, of which iowhy's own code around the call is a part: 90 instructions in a development build.
const NEAR_SMALL: f64 = 0.025;
/// What the split may leave unexplained, as a part of the read: the timer's part, and that of the fit.
const NEAR_WHOLE: f64 = 0.015;
/// A change is the difference of two fits, and may be off by what both are.
const NEAR_CHANGE: f64 = 2.0 * NEAR;
/// A call at the end of a file is short, and iowhy's code around it is not free. `stacked` knows more of it.
const NEAR_CALL: f64 = 0.1;
/// Within one fit nothing disturbs.
const TWICE: f64 = 0.01;
const SIZES: [(&str, u64); 3] = [("4096", 4 << 10), ("65536", 64 << 10), ("131072", 128 << 10)];
const NAMES: [&str; 2] = ["copying", "copying-slow"];

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new(NAMES[0], Time::Fine);
    boot.null_disks();
    boot.null_disk("disk", &[("size", "64"), ("queue_mode", "2"), ("memory_backed", "1")]);
    boot.module("ext4", "");
    boot.file_system("ext4", ext4(64 << 20), "/dev/disk", "/mnt");
    boot.step(&["fill", "/mnt/file", "2097152"]);
    // The first pass fetches the file; the median of the batches is a cached one.
    for (label, kind, bytes) in [("end", "end", 4096), ("512", "pread", 512)]
        .into_iter()
        .chain(SIZES.map(|(key, b)| (key, "pread", b)))
    {
        boot.step(&["truth", label, kind, "/mnt/file", &bytes.to_string(), "600"]);
    }
    boot.iowhy(
        "read",
        "-",
        "bench /mnt/file --layers --state warm --bs 4k,64k,128k --size 2m --runtime 120ms",
    );
    let mut slow = boot.again(NAMES[1]);
    slow.cpu = ",-erms,-fsrm";
    vec![boot, slow]
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let [read, slow] = NAMES.map(|boot| answers.get(boot, "read"));
    for name in NAMES {
        ended_well(checks, name, answers.get(name, "read"));
    }
    for (key, bytes) in SIZES {
        let cell = read.cell(key);
        let fast = Truth { answers, boot: NAMES[0] };
        // A loop has costs of its own, and so has the harness; both are a small part of the smallest read.
        let near = if bytes == 4096 { NEAR_SMALL } else { NEAR };
        checks.near(&format!("{key} B: as a bare loop has it"), bare(cell), fast.loop_ns(key), near);
        checks.small(&format!("{key} B: unexplained"), cell.layer("unexplained"), cell.time(), NEAR_WHOLE);
        let entry = sum(cell.layer("call"), cell.layer("filesystem"));
        checks.near(&format!("{key} B: call and file system"), entry, fast.loop_ns("end"), NEAR_CALL);
        checks.near(&format!("{key} B: copy"), cell.layer("copy"), fast.copy(bytes), NEAR);
        if bytes > 4096 {
            // What is left of a large read once all else is taken off has the errors of all, so it is compared with the whole.
            let off = less(cell.layer("cache"), fast.cache(key, bytes));
            checks.small(&format!("{key} B: cache is off by"), off, cell.time(), NEAR_WHOLE);
        }

        let slow_truth = Truth { answers, boot: NAMES[1] };
        let changed = slow.cell(key);
        let put_in = less(slow_truth.loop_ns(key), fast.loop_ns(key));
        let moved = |layer: &str| less(changed.layer(layer), cell.layer(layer));
        // Each page is one call of the copying function, and what that costs counts by the page, as the cache's does.
        let in_both = sum(moved("copy"), moved("cache"));
        checks.near(&format!("other copying, {key} B: in copy and cache"), in_both, put_in, NEAR_CHANGE);
        for other in ["program", "call", "filesystem", "unexplained"] {
            checks.small(
                &format!("other copying, {key} B: not in {other}"),
                moved(other),
                put_in,
                NEAR_CHANGE,
            );
        }
    }
    let [large, larger] = ["65536", "131072"].map(|key| read.cell(key));
    let twice = large.layer("copy").map(|ns| 2.0 * ns);
    checks.near("twice the block: twice the copy", larger.layer("copy"), twice, TWICE);
    checks.near("twice the block: the same call", larger.layer("call"), large.layer("call"), TWICE);
}

/// What the loops of one boot say.
struct Truth<'a> {
    answers: &'a Answers,
    boot: &'a str,
}

impl Truth<'_> {
    /// A loop's time for one read.
    fn loop_ns(&self, label: &str) -> Option<f64> {
        self.answers.get(self.boot, label).number("/ns")
    }

    /// Copying: what bytes cost that need no other page.
    fn copy(&self, bytes: u64) -> Option<f64> {
        let (page, part) = (4096.0, 512.0);
        less(self.loop_ns("4096"), self.loop_ns("512")).map(|ns| ns / (page - part) * bytes as f64)
    }

    /// The page cache: what is neither copying nor what a read at the end of the file costs.
    fn cache(&self, key: &str, bytes: u64) -> Option<f64> {
        less(less(self.loop_ns(key), self.loop_ns("end")), self.copy(bytes))
    }
}

/// Time of a request without our own cost.
fn bare(cell: Cell<'_>) -> Option<f64> {
    less(cell.time(), cell.layer("program"))
}

fn less(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a - b)
}

fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a + b)
}
