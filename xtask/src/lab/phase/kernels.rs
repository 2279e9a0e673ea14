//! The watch on kernels of Debian: the observer is loaded by each, its counts are those that programs print themselves, and a
//! delay that is put into one layer is found there and nowhere else.

use serde_json::Value;

use super::watched::{counts, disk, each_kernel, layer, limitations, list, watched};
use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;
use crate::lab::packages::Series;

pub(super) const PHASE: Phase = Phase { name: "kernels", boots, judge };

const KERNELS: [(&str, Series); 3] =
    [("kernel-5.10", Series::Old), ("kernel-6.1", Series::Present), ("kernel-6.12", Series::New)];

/// Completion time of the disk, ns.
const DISK_NS: u64 = 20_000_000;

/// Programs that print their own counts: kind, directory, number.
const COUNTED: [(&str, u64); 3] = [("phases", 1000), ("children", 40), ("crowd", 300)];

/// Direct reads, one after the other.
const READS: &str = "direct-random /mnt/fast/data 4096 300 1";
/// How long dm-delay holds a request back, ms.
const HELD_MS: u64 = 40;

/// Requests of each kind on a ring.
const RING: u64 = 20;

/// Of what was put in, this share may appear elsewhere, or not at all.
const TOLERANCE: f64 = 0.02;

fn boots() -> Vec<Boot> {
    KERNELS.iter().map(|(name, series)| boot(name, *series)).collect()
}

/// The program runs as it would alone, nothing is counted, and the reason is told.
fn locked_down(checks: &mut Checks, run: Answer<'_>) {
    ended_well(checks, "locked down", run);
    let own = run.stdout();
    checks.holds("locked down: the program's own words", own.contains("/tmp/children/shared"), own);
    let (tier, limits) = (run.at("/record/tier"), limitations(run));
    let below = tier.is_string() && tier != "observer";
    checks.holds("locked down: below the observer", below, tier.to_string());
    checks.holds("locked down: the reason is told", limits.contains("lockdown"), limits);
}

fn boot(name: &'static str, series: Series) -> Boot {
    let mut boot = Boot::new(name, Time::Counted);
    boot.kernel = series;
    boot.module("ext4", "");
    boot.null_disks();
    let device = disk(&mut boot, "fast", DISK_NS, &[]);
    for (kind, number) in COUNTED {
        let dir = format!("/tmp/{kind}");
        boot.step(&["mkdir", &dir]);
        watched(&mut boot, kind, &[], &format!("truth {kind} {dir} {number}"));
    }
    // The guest's first process: its calls are of no interest, but the programs that time calls must be taken.
    boot.step(&[
        "run", "timed", "-", "iowhy", "--quiet", "--json", "@record", "attach", "1", "--when", "sync>1h",
        "--time", "500ms",
    ]);
    boot.step(&["mkdir", "/mnt/fast/ring"]);
    watched(&mut boot, "ring", &[], &format!("truth ring /mnt/fast/ring {RING}"));
    boot.step(&["write", "/proc/sys/vm/drop_caches", "3"]);
    watched(&mut boot, "alone", &[], READS);
    // The fast disk again, whose requests are held back before they come to it.
    boot.module("dm_delay", "");
    boot.step(&["umount", "/mnt/fast"]);
    boot.step(&["dm", "held", &format!("0 131072 delay {device} 0 {HELD_MS}")]);
    boot.step(&["mount", "ext4", "/dev/held", "/mnt/fast", ""]);
    boot.step(&["write", "/proc/sys/vm/drop_caches", "3"]);
    watched(&mut boot, "held", &[], READS);
    boot.step(&["show", "tainted", "/proc/sys/kernel/tainted"]);
    // From here on nobody may read the kernel's memory, root included.
    boot.step(&["mount", "securityfs", "securityfs", "/sys/kernel/security", ""]);
    boot.step(&["write", "/sys/kernel/security/lockdown", "confidentiality"]);
    watched(&mut boot, "locked down", &[], "truth children /tmp/children 3");
    boot
}

fn judge(answers: &Answers, checks: &mut Checks) {
    each_kernel(answers, checks, KERNELS.map(|(name, _)| name), |checks, name| {
        for (kind, _) in COUNTED {
            counts(checks, kind, answers.get(name, kind));
        }
        ring(checks, answers.get(name, "ring"));
        timed(checks, answers.get(name, "timed"));
        locked_down(checks, answers.get(name, "locked down"));
        let held = answers.get(name, "held");
        ended_well(checks, "held", held);
        let alone = answers.get(name, "alone");
        ended_well(checks, "alone", alone);
        let added = |of: &dyn Fn(Answer<'_>) -> Option<f64>| of(held).zip(of(alone)).map(|(b, a)| b - a);
        let wall = added(&|run| run.number("/record/wall_s"));
        // dm-delay counts in ticks of 4 ms and works in a thread, which takes its turn at the guest's one CPU: twice the tolerance.
        checks.near("held: found in `block`", added(&|run| layer(run, "block")), wall, 2.0 * TOLERANCE);
    });
}

/// The programs that time calls are taken, and nothing is lost.
fn timed(checks: &mut Checks, run: Answer<'_>) {
    ended_well(checks, "timed", run);
    let profile = run.at("/record/profile");
    checks.holds("timed: to the end of its time", profile["ended"] == "time", profile["ended"].to_string());
    let lost = profile["lost"].as_object().map(|lost| lost.values().all(|n| n == 0));
    checks.holds("timed: nothing is lost", lost == Some(true), profile["lost"].to_string());
}

/// Requests of a ring are those that the program made, where the kernel tells of them.
fn ring(checks: &mut Checks, run: Answer<'_>) {
    ended_well(checks, "ring", run);
    if limitations(run).contains("older than Linux 6.0") {
        return checks.holds("ring: it says that it cannot follow one", true, "");
    }
    let rings = list(run.at("/record/io/rings"));
    for operation in ["recv", "read", "timeout"] {
        let told = rings.iter().find(|ring| ring["operation"] == operation).map(|ring| &ring["requests"]);
        let said = format!("{told:?}, should be {RING}");
        checks.holds(&format!("ring: {operation}"), told.and_then(Value::as_u64) == Some(RING), said);
    }
}
