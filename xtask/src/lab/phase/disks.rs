//! Disks of the emulator's, throttled in the host's time, alone and striped, and one with credits for a burst. The host may be busy, so only
//! what a throttle cannot do is checked: let much more pass than it allows; that two of them are not one; and that the end of the credits is
//! told.

use super::watched::watched;
use super::{Phase, ended_well};
use crate::lab::answers::Answers;
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::{Throttled, Time};

pub(super) const PHASE: Phase = Phase { name: "disks", boots, judge };

const NAME: &str = "disks";
/// What a disk may give in a second.
const RATE: u64 = 10 << 20;
/// A tenth of the rate passes at once after a pause; and while a busy host lets the guest wait, its clock stands and the
/// throttle's does not: 1.4 times the rate was seen at a load of five for each CPU. Without a throttle it is a hundred.
const BURST: f64 = 2.0;
/// The bytes of two disks come at most twice as fast; on a busy host less, but never as slowly as one.
const TWO: f64 = 1.3;
const DISKS: [&str; 2] = ["left", "right"];
const BYTES: u64 = 64 << 20;

const CREDITS: &str = "credits";
/// Requests in a second when the credits are used up, and until then.
const PACE: u64 = 100;
const BURST_PACE: u64 = 500;
/// Seconds that the credits last, and for which the program goes on.
const BURST_S: u64 = 3;
const AFTER_S: u64 = 5;
const IN_FLIGHT: u64 = 8;

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new(NAME, Time::Real);
    boot.disks = DISKS
        .iter()
        .map(|&name| Throttled { name, bytes: BYTES, limits: vec![("bps-read", RATE)] })
        .collect();
    for module in ["virtio_pci", "virtio_blk", "dm_mod"] {
        boot.module(module, "");
    }
    for node in ["/dev/vda", "/dev/vdb"] {
        boot.step(&["wait", node]);
    }
    boot.step(&["dm", "both", "0 262144 striped 2 128 /dev/vda 0 /dev/vdb 0"]);
    for (label, device) in [("one", "/dev/vda"), ("both", "/dev/both")] {
        boot.iowhy(
            label,
            "limit=120",
            &format!("bench {device} --state direct --bs 1m --size 48m --runtime 4s"),
        );
    }
    vec![boot, with_credits()]
}

/// A disk that gives a burst until its credits are used up, beneath a program that asks for more than that all the time.
fn with_credits() -> Boot {
    let mut boot = Boot::new(CREDITS, Time::Real);
    let limits =
        vec![("iops-total", PACE), ("iops-total-max", BURST_PACE), ("iops-total-max-length", BURST_S)];
    boot.disks = vec![Throttled { name: CREDITS, bytes: BYTES, limits }];
    for module in ["virtio_pci", "virtio_blk"] {
        boot.module(module, "");
    }
    boot.step(&["wait", "/dev/vda"]);
    let reads = BURST_PACE * BURST_S + PACE * AFTER_S;
    watched(&mut boot, "credits", &[], &format!("direct-random /dev/vda 4096 {reads} {IN_FLIGHT}"));
    boot
}

/// The change of pace is told, with the pace that is the limit.
fn credits(answers: &Answers, checks: &mut Checks) {
    let run = answers.get(CREDITS, "credits");
    ended_well(checks, "credits", run);
    let told = run.at("/record/slower_devices/0");
    let of = |key: &str| told.pointer(key).and_then(serde_json::Value::as_f64);
    checks.holds("credits: their end is told", told["device"] == "vda", told.to_string());
    let (before, after) = (of("/before/requests_per_second"), of("/after/requests_per_second"));
    let held = after.is_some_and(|after| after <= BURST * PACE as f64);
    checks.holds("credits: the limit is told", held, format!("{after:?}, at most {BURST} times {PACE}"));
    let more = before.zip(after).is_some_and(|(before, after)| before > after);
    checks.holds("credits: the burst was faster", more, format!("{before:?}"));
}

fn judge(answers: &Answers, checks: &mut Checks) {
    credits(answers, checks);
    let [one, both] = ["one", "both"].map(|label| answers.get(NAME, label));
    ended_well(checks, "one throttled disk", one);
    ended_well(checks, "a stripe over two", both);
    let rates = [one, both].map(|run| run.cell("1048576").throughput());
    for ((name, rate), disks) in [("one", rates[0]), ("both", rates[1])].into_iter().zip([1.0, 2.0]) {
        let limit = disks * RATE as f64 * BURST;
        let said = rate.map_or_else(
            || "missing".to_owned(),
            |rate| format!("{:.1} MiB/s, at most {:.1}", rate / 1048576.0, limit / 1048576.0),
        );
        checks.holds(&format!("{name}: the limit holds"), rate.is_some_and(|rate| rate <= limit), said);
    }
    let gain = rates[1].zip(rates[0]).map(|(both, one)| both / one);
    checks.holds(
        "both: faster than one",
        gain.is_some_and(|gain| gain > TWO),
        gain.map_or_else(|| "missing".to_owned(), |gain| format!("{gain:.2} times one")),
    );
    let devices = both.at("/record/environment/devices");
    checks.holds("both: its disks", *devices == serde_json::json!(["vda", "vdb"]), devices.to_string());
}
