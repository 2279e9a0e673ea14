//! Settings truth: `iowhy doctor` on volumes of dm and md shows the settings of the disks below, tries one on all of them and
//! puts each back, also after a kill; limits of a control group of version 2 are told, hold, and are found by the watch.

use serde_json::Value;

use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "settings", boots, judge };

const NAME: &str = "settings";
/// Volumes: label, device, members.
const VOLUMES: [(&str, &str, [&str; 2]); 2] =
    [("dm", "/dev/two", ["a", "b"]), ("md", "/dev/md0", ["g", "h"])];
/// What the group may read in a second, and take of memory.
const LIMIT_BYTES_S: u64 = 10 << 20;
const LIMIT_MEMORY: u64 = 256 << 20;
/// The kernel hands bytes out by slices of time and rounds them up: reads of 64 KiB got 12 % more than their limit in 3 s.
const TOLERANCE_OF_LIMIT: f64 = 0.15;

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new(NAME, Time::Counted);
    boot.null_disks();
    // Where notes of what is to be put back lie.
    boot.step(&["mkdir", "/run"]);
    boot.module("dm_mod", "");
    boot.module("raid0", "");
    for disk in ["one"].iter().chain(VOLUMES.iter().flat_map(|(_, _, members)| members)) {
        boot.null_disk(
            disk,
            &[("size", "64"), ("queue_mode", "2"), ("irqmode", "2"), ("completion_nsec", "1000000")],
        );
    }
    boot.step(&["dm", "two", "0 262144 striped 2 128 /dev/a 0 /dev/b 0"]);
    boot.step(&["md-raid0", "0", "65536", "/dev/g", "/dev/h"]);
    for (label, device, _) in VOLUMES {
        let at = |what: &str| format!("{label}-{what}");
        let doctor = format!("doctor {device}");
        let tried = format!("{doctor} --try nomerges=2 --size 8m --time");
        boot.iowhy(&at("before"), "-", &doctor);
        boot.iowhy(&at("tried"), "-", &format!("{tried} 2s"));
        boot.iowhy(&at("after"), "-", &doctor);
        boot.iowhy(&at("killed"), "limit=2", &format!("{tried} 600s"));
        boot.step(&["list", &at("notes"), "/run"]);
        boot.iowhy(&at("restored"), "-", &doctor);
        boot.step(&["list", &at("notes-left"), "/run"]);
    }
    boot.step(&["mount", "cgroup2", "cgroup2", "/sys/fs/cgroup", ""]);
    boot.step(&["write", "/sys/fs/cgroup/cgroup.subtree_control", "+io +memory"]);
    boot.step(&["mkdir", "/sys/fs/cgroup/limited"]);
    boot.step(&["limit-reads", "/sys/fs/cgroup/limited", "one", &LIMIT_BYTES_S.to_string()]);
    boot.step(&["write", "/sys/fs/cgroup/limited/memory.max", &LIMIT_MEMORY.to_string()]);
    // The guest itself goes in, and all that it starts; 0 is whoever writes.
    boot.step(&["write", "/sys/fs/cgroup/limited/cgroup.procs", "0"]);
    let bench = "bench /dev/one --state direct --bs 64k --size 8m --runtime 3s";
    boot.iowhy("group", "-", "doctor /dev/one");
    boot.iowhy("limited", "-", bench);
    boot.step(&[
        "run",
        "watched",
        "-",
        "iowhy",
        "--quiet",
        "--json",
        "@record",
        "--",
        "lab-guest",
        "program",
        "read",
        "/dev/one",
        "65536",
        "1",
    ]);
    boot.step(&["write", "/sys/fs/cgroup/cgroup.procs", "0"]);
    boot.iowhy("free", "-", bench);
    vec![boot]
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let run = |label: &str| answers.get(NAME, label);
    for (label, _, members) in VOLUMES {
        let at = |what: &str| run(&format!("{label}-{what}"));
        for what in ["before", "tried", "after", "restored"] {
            ended_well(checks, &format!("{label} {what}"), at(what));
        }
        let before = settings(at("before"));
        // Disks that have the same are told in one line.
        let both = members.join(" ");
        let lacking: Vec<&str> = ["scheduler", "nr_requests", "nomerges", "iostats"]
            .into_iter()
            .filter(|key| value(at("before"), key, Some(&both)).is_none())
            .collect();
        checks.holds(&format!("{label}: settings of {both} below it"), lacking.is_empty(), lacking.join(" "));
        let tried = at("tried").at("/record/members").as_array().map_or(0, Vec::len);
        checks.holds(&format!("{label}: tried on both disks"), tried == 2, format!("{tried} members"));
        let requests = at("tried").at("/record/requests").as_array().map_or(0, Vec::len);
        let put_back = *at("tried").at("/record/put_back") == true;
        checks.holds(
            &format!("{label}: measured and put back"),
            requests > 0 && put_back,
            format!("{requests} requests"),
        );
        checks.holds(
            &format!("{label}: put back afterwards"),
            !before.is_empty() && settings(at("after")) == before,
            changed(&before, &settings(at("after"))),
        );
        let killed = at("killed").at("/timed_out") == true;
        checks.holds(&format!("{label}: killed while it tried"), killed, at("killed").stderr().to_owned());
        let notes = |what: &str| at(what).at("/names").as_array().map(Vec::len);
        checks.holds(
            &format!("{label}: a note of each disk is left, and gone with the next start"),
            (notes("notes"), notes("notes-left")) == (Some(2), Some(0)),
            format!("{:?}, {:?}", notes("notes"), notes("notes-left")),
        );
        checks.holds(
            &format!("{label}: put back by the next start after a kill"),
            settings(at("restored")) == before,
            changed(&before, &settings(at("restored"))),
        );
    }
    for label in ["group", "limited", "watched", "free"] {
        ended_well(checks, label, run(label));
    }
    for (key, limit) in [("io-limit", LIMIT_BYTES_S), ("memory-limit", LIMIT_MEMORY)] {
        let all = run("group").at("/record/settings").as_array().map_or(&[][..], Vec::as_slice);
        let told = all.iter().find(|s| s["key"] == key).unwrap_or(&Value::Null).to_string();
        checks.holds(&format!("group: {key} is told"), told.contains(&limit.to_string()), told);
    }
    let rate = |label: &str| run(label).cell("65536").throughput();
    checks.near(
        "group: reads are as fast as their limit",
        rate("limited"),
        Some(LIMIT_BYTES_S as f64),
        TOLERANCE_OF_LIMIT,
    );
    let free = rate("free").zip(rate("limited")).is_some_and(|(free, limited)| free > 3.0 * limited);
    checks.holds("group: without it they are faster", free, format!("{:?}", rate("free")));
    let first = run("watched").at("/record/findings/0");
    checks.holds("watched: throttled is found first", first["id"] == "throttled", first["id"].to_string());
    let evidence = first["evidence"].to_string();
    checks.holds("watched: by the limit of its group", evidence.contains("io.max"), evidence);
}

/// Settings that are not what they were.
fn changed(before: &[Setting], after: &[Setting]) -> String {
    let differ: Vec<String> = after
        .iter()
        .filter(|s| !before.contains(s))
        .map(|(key, of, now)| format!("{key} {of} {now}"))
        .collect();
    differ.join(", ")
}

/// Key, device, value.
type Setting = (String, String, String);

/// What each setting was: key, device, value.
fn settings(run: Answer<'_>) -> Vec<Setting> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let all = run.at("/record/settings").as_array().map_or(&[][..], Vec::as_slice);
    all.iter().map(|s| (text(&s["key"]), text(&s["subject"]), text(&s["value"]))).collect()
}

/// The value of one setting.
fn value(run: Answer<'_>, key: &str, subject: Option<&str>) -> Option<String> {
    let found =
        |(k, s, _): &&(String, String, String)| k == key && subject.is_none_or(|subject| s == subject);
    settings(run).iter().find(found).map(|(_, _, value)| value.clone())
}
