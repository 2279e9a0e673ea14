//! The watch on kernels of Debian: the observer is loaded by each, its counts are those that programs print themselves, and a
//! delay that is put into one layer is found there and nowhere else.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::{Boot, ext4_with_journal};
use crate::lab::check::Checks;
use crate::lab::machine::Time;
use crate::lab::packages::Series;

pub(super) const PHASE: Phase = Phase { name: "kernels", boots, judge };

const KERNELS: [(&str, Series); 3] =
    [("kernel-5.10", Series::Old), ("kernel-6.1", Series::Present), ("kernel-6.12", Series::New)];

/// Completion times of the two disks, ns: long against what observing a wait costs a CPU that takes 4 ns for each instruction.
/// Virtual time that the guest sleeps through costs nothing.
const DISKS: [(&str, u64); 2] = [("fast", 20_000_000), ("slow", 60_000_000)];
/// What lies on each.
const DATA_BYTES: u64 = 4 << 20;

/// Programs that print their own counts: kind, directory, number.
const COUNTED: [(&str, u64); 3] = [("phases", 1000), ("children", 40), ("crowd", 300)];

/// What is done to a disk: name, words of the program with `DATA`, `FILE` and `DIR` in them, and how many requests it waits for
/// one after the other, where the program alone decides that.
const DELAYED: [(&str, &str, Option<u64>); 6] = [
    ("direct reads", "direct-random DATA 4096 300 1", Some(300)),
    ("reads without read-ahead", "read DATA 4096 1 random", Some(DATA_BYTES / 4096)),
    ("page faults", "map-touch DATA 300 random", None),
    ("appends with syncs", "write FILE 4096 100 1", None),
    ("transactions", "transactions DATA FILE 40 1", None),
    ("appends of two threads", "append-threads DIR 2 40 own", None),
];

/// How long dm-delay holds a request back, ms.
const HELD_MS: u64 = 40;

/// Requests of each kind on a ring.
const RING: u64 = 20;

/// Of what was put in, this share may appear elsewhere, or not at all.
const TOLERANCE: f64 = 0.02;

fn boots() -> Vec<Boot> {
    KERNELS.iter().map(|(name, series)| boot(name, *series)).collect()
}

fn boot(name: &'static str, series: Series) -> Boot {
    let mut boot = Boot::new(name, Time::Counted);
    boot.kernel = series;
    boot.module("ext4", "");
    boot.null_disks();
    let mut devices = Vec::new();
    for (disk, completion_ns) in DISKS {
        let completion = completion_ns.to_string();
        let attributes = [
            ("size", "64"),
            ("queue_mode", "2"),
            ("irqmode", "2"),
            ("completion_nsec", completion.as_str()),
            ("memory_backed", "1"),
        ];
        let (device, at) = (boot.null_disk(disk, &attributes), format!("/mnt/{disk}"));
        boot.step(&["mkdir", &at]);
        boot.file_system("ext4", ext4_with_journal(64 << 20), &device, &at);
        boot.step(&["fill", &format!("{at}/data"), &DATA_BYTES.to_string()]);
        devices.push(device);
    }
    for (kind, number) in COUNTED {
        let dir = format!("/tmp/{kind}");
        boot.step(&["mkdir", &dir]);
        watched(&mut boot, kind, &format!("truth {kind} {dir} {number}"));
    }
    boot.step(&["mkdir", "/mnt/fast/ring"]);
    watched(&mut boot, "ring", &format!("truth ring /mnt/fast/ring {RING}"));
    for (what, words, _) in DELAYED {
        for (disk, _) in DISKS {
            let at = |name: &str| format!("/mnt/{disk}/{name}");
            let words =
                words.replace("DATA", &at("data")).replace("FILE", &at("file")).replace("DIR", &at(""));
            boot.step(&["write", "/proc/sys/vm/drop_caches", "3"]);
            watched(&mut boot, &format!("{what}, {disk}"), &words);
        }
    }
    // The fast disk again, whose requests are held back before they come to it.
    boot.module("dm_delay", "");
    boot.step(&["umount", "/mnt/fast"]);
    boot.step(&["dm", "held", &format!("0 131072 delay {} 0 {HELD_MS}", devices[0])]);
    boot.step(&["mount", "ext4", "/dev/held", "/mnt/fast", ""]);
    boot.step(&["write", "/proc/sys/vm/drop_caches", "3"]);
    watched(&mut boot, "held", "direct-random /mnt/fast/data 4096 300 1");
    boot.step(&["show", "tainted", "/proc/sys/kernel/tainted"]);
    boot
}

/// Runs a program of the cases under the watch.
fn watched(boot: &mut Boot, label: &str, words: &str) {
    let mut step =
        vec!["run", label, "-", "iowhy", "--quiet", "--json", "@record", "--", "iowhy-cases", "program"];
    step.extend(words.split_ascii_whitespace());
    boot.step(&step);
}

fn judge(answers: &Answers, checks: &mut Checks) {
    for (name, _) in KERNELS {
        // A kernel that could not be had is a skip, which is told at the end.
        if !answers.boots().any(|(boot, _)| boot == name) {
            continue;
        }
        checks.group(name);
        let tainted = answers.get(name, "tainted").at("/text");
        checks.holds("no complaint of the kernel", tainted == "0", tainted.to_string());
        for (kind, _) in COUNTED {
            counts(checks, kind, answers.get(name, kind));
        }
        ring(checks, answers.get(name, "ring"));
        let held = answers.get(name, "held");
        ended_well(checks, "held", held);
        let alone = answers.get(name, "direct reads, fast");
        let added = |of: &dyn Fn(Answer<'_>) -> Option<f64>| of(held).zip(of(alone)).map(|(b, a)| b - a);
        let wall = added(&|run| run.number("/record/wall_s"));
        // dm-delay counts in ticks of 4 ms and works in a thread, which takes its turn at the guest's one CPU: twice the tolerance.
        checks.near("held: found in `block`", added(&|run| layer(run, "block")), wall, 2.0 * TOLERANCE);
        for (what, _, requests) in DELAYED {
            let [fast, slow] = DISKS.map(|(disk, _)| answers.get(name, &format!("{what}, {disk}")));
            delayed(checks, what, (fast, slow), requests);
        }
    }
}

/// Every count of a file is the program's own.
fn counts(checks: &mut Checks, kind: &str, run: Answer<'_>) {
    ended_well(checks, kind, run);
    checks.holds(&format!("{kind}: by the observer"), run.at("/record/tier") == "observer", limitations(run));
    // The report follows what the program printed.
    let truth = run.stdout().lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
    let truth = truth.unwrap_or_default();
    let told: BTreeMap<&str, [u64; 5]> = list(run.at("/record/profile/files"))
        .iter()
        .filter_map(|file| Some((file["path"].as_str()?, of_file(file))))
        .collect();
    let wrong: Vec<String> = truth["files"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(path, counts)| {
            told.get(path.as_str()).is_none_or(|told| serde_json::json!(told) != **counts)
        })
        .map(|(path, counts)| format!("{path}: {:?}, should be {counts}", told.get(path.as_str())))
        .collect();
    let files = truth["files"].as_object().map_or(0, serde_json::Map::len);
    checks.holds(&format!("{kind}: {files} files"), files > 0 && wrong.is_empty(), wrong.join("; "));
    let calls = list(run.at("/record/profile/calls/calls"));
    let failed: u64 = calls.iter().filter_map(|call| call["errors"]["ENOTDIR"].as_u64()).sum();
    checks.holds(
        &format!("{kind}: failed calls"),
        truth["failed_opens"].as_u64() == Some(failed),
        format!("{failed}, should be {}", truth["failed_opens"]),
    );
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

fn of_file(file: &Value) -> [u64; 5] {
    let whole = |value: &Value| value.as_u64().unwrap_or(0);
    let [reads, writes] = [&file["reads"], &file["writes"]];
    [&file["opens"], &reads["calls"], &reads["bytes"], &writes["calls"], &writes["bytes"]].map(whole)
}

/// What the slower disk adds is in `device`, or in what waits for the device itself while the program waits for it (a commit of the
/// journal, another thread's lock), and nowhere else.
fn delayed(checks: &mut Checks, what: &str, (fast, slow): (Answer<'_>, Answer<'_>), requests: Option<u64>) {
    ended_well(checks, &format!("{what}, fast"), fast);
    ended_well(checks, &format!("{what}, slow"), slow);
    let number = |run: Answer<'_>, at: &str| run.number(&format!("/record/{at}"));
    let added = number(slow, "wall_s").zip(number(fast, "wall_s")).map(|(b, a)| b - a);
    let each = (DISKS[1].1 - DISKS[0].1) as f64 / 1e9;
    if let Some(requests) = requests {
        checks.near(
            &format!("{what}: added to the wall time"),
            added,
            Some(requests as f64 * each),
            TOLERANCE,
        );
    }
    let below =
        |run: Answer<'_>| ["device", "journal", "lock"].iter().map(|id| layer(run, id)).sum::<Option<f64>>();
    let found = below(slow).zip(below(fast)).map(|(b, a)| b - a);
    checks.near(&format!("{what}: found in `device`"), found, added, TOLERANCE);
    for id in ["block", "filesystem", "cache", "elsewhere", "unexplained"] {
        let moved = layer(slow, id).zip(layer(fast, id)).map(|(b, a)| b - a);
        checks.small(&format!("{what}: not in `{id}`"), moved, added, TOLERANCE);
    }
}

/// Seconds of the wall clock in a layer; 0 where the record has none of it.
fn layer(run: Answer<'_>, id: &str) -> Option<f64> {
    let layers = run.at("/record/layers").as_array()?;
    layers.iter().find(|layer| layer["id"] == id).map_or(Some(0.0), |layer| layer["wall_s"].as_f64())
}

fn limitations(run: Answer<'_>) -> String {
    run.at("/record/profile/sight/limitations").to_string()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
