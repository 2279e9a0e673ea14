//! The record of a watched program, at each tier that the machine allows: the promised keys, and the sums that must
//! close.

use serde_json::Value;

use crate::common::{MIB, directory, iowhy, skipped, text};

/// Sums of what was split may differ from the whole by this much of it.
const ROUNDING: f64 = 1e-6;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// The sum of a key over a list.
fn sum(of: &Value, key: &str) -> f64 {
    list(of).iter().map(|entry| number(&entry[key])).sum()
}

#[track_caller]
fn assert_near(tier: &str, what: &str, got: f64, whole: f64) {
    assert!((got - whole).abs() <= ROUNDING * whole.abs().max(1e-3), "{tier}: {what}: {got} of {whole}");
}

/// Writes 4 MiB and makes them durable, computes, sleeps, and has a child.
const PROGRAM: &str = "dd if=/dev/zero of=\"$0\" bs=64k count=64 conv=fsync 2>/dev/null; \
                       i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05; exit 3";

#[test]
fn records_keep_the_contract_and_close_at_each_tier() {
    let dir = directory();
    let (json, folded) = (dir.path().join("r.json"), dir.path().join("r.folded"));
    let data = dir.path().join("data");
    const TIERS: [&str; 4] = ["none", "stacks", "clock", "observer"];
    let height = |tier: &str| TIERS.iter().position(|each| *each == tier).expect("a tier");
    for tier in TIERS {
        let options = ["--json", text(&json), "--flamegraph", text(&folded), "--tier", tier];
        let ran = iowhy(&[&options[..], &["--", "sh", "-c", PROGRAM, text(&data)]].concat());
        assert_eq!((ran.code(), ran.stdout.as_str()), (3, ""), "{ran:?}");
        let record: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let used = record["tier"].as_str().unwrap();
        assert!(height(used) <= height(tier), "no tier above {tier} is used: {used}");
        if height(used) < height(tier) {
            assert!(!list(&record["limitations"]).is_empty(), "what is missing is said: {used} for {tier}");
            skipped(&format!("tier {tier} is not allowed here, {used} was used: {}", record["limitations"]));
        }
        keys(&record);
        sums(tier, &record);
        plausible(tier, &record);
        let stacks: f64 = std::fs::read_to_string(&folded)
            .unwrap()
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
            .sum();
        let thread_us = number(&record["thread_s"]) * 1e6;
        assert!(
            (stacks - thread_us).abs() <= 2.0 + ROUNDING * thread_us,
            "{tier}: {stacks} of {thread_us} us"
        );
        assert!(ran.stderr.contains(&format!("tier {used}")), "{ran:?}");
    }
}

/// The keys that other programs rely on.
fn keys(record: &Value) {
    let has = |value: &Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "no `{key}` in {value}");
        }
    };
    has(
        record,
        &["schema", "iowhy", "command", "environment", "warnings", "wall_s", "thread_s", "exit", "tier"],
    );
    has(record, &["observer", "io", "layers", "operations", "unexplained_share", "findings", "profile"]);
    has(&record["environment"], &["kernel", "cpus", "memory_bytes"]);
    has(&record["observer"], &["cost_share", "events", "lost"]);
    has(&record["io"], &["calls", "bytes", "device_bytes", "cache_hit_share", "files"]);
    for layer in list(&record["layers"]) {
        has(layer, &["id", "busy_s", "wait_s", "share"]);
    }
    for operation in list(&record["operations"]) {
        has(operation, &["id", "calls", "time_s", "layers"]);
    }
    assert!(!list(&record["findings"]).is_empty(), "something is always said");
    for finding in list(&record["findings"]) {
        has(finding, &["id", "share", "sentence", "evidence", "advice"]);
    }
}

/// What was split sums to the whole.
fn sums(tier: &str, record: &Value) {
    let (thread_s, wall_s) = (number(&record["thread_s"]), number(&record["wall_s"]));
    let layers = |of: &Value| sum(of, "busy_s") + sum(of, "wait_s");
    assert_near(tier, "layers", layers(&record["layers"]), thread_s);
    assert_near(tier, "shares of layers", sum(&record["layers"], "share"), 1.0);
    assert_near(tier, "operations", sum(&record["operations"], "time_s"), thread_s);
    assert_near(tier, "shares of operations", sum(&record["operations"], "share"), 1.0);
    // Idle time is shared out to the sleeps that stand for it; what none stands for is a layer's, and no operation's.
    assert_near(tier, "wall time of layers", sum(&record["layers"], "wall_s"), wall_s);
    let of_operations = sum(&record["operations"], "wall_s");
    let active = wall_s - number(&record["idle_s"]);
    let bounds = active * (1.0 - ROUNDING)..=wall_s * (1.0 + ROUNDING);
    assert!(bounds.contains(&of_operations), "{tier}: {of_operations} is not in {bounds:?}");
    for operation in list(&record["operations"]) {
        let seconds = number(&operation["time_s"]);
        assert_near(tier, "layers of an operation", layers(&operation["layers"]), seconds);
        assert!(sum(&operation["waits"], "time_s") <= seconds * (1.0 + ROUNDING), "{tier}: {operation}");
    }
    assert_near(tier, "threads", sum(&record["threads"], "lifetime_s"), thread_s);
    for thread in list(&record["threads"]) {
        let states = ["running_s", "queued_s", "blocked_s"].map(|state| number(&thread[state])).iter().sum();
        assert_near(tier, "states of a thread", states, number(&thread["lifetime_s"]));
        assert_near(tier, "layers of a thread", layers(&thread["layers"]), number(&thread["lifetime_s"]));
    }
    let unexplained: f64 = list(&record["layers"])
        .iter()
        .filter(|layer| layer["id"] == "unexplained")
        .map(|layer| number(&layer["share"]))
        .sum();
    assert!((unexplained - number(&record["unexplained_share"])).abs() < ROUNDING, "{tier}: {unexplained}");
    for of in [&record["layers"], &record["operations"], &record["call_sites"]] {
        for entry in list(of) {
            let [low, share, high] = ["share_low", "share", "share_high"].map(|key| number(&entry[key]));
            assert!(low <= share && share <= high, "{tier}: {entry}");
        }
    }
}

/// What this program is known to do.
fn plausible(tier: &str, record: &Value) {
    assert_eq!(record["exit"]["code"], 3, "{tier}");
    assert!(number(&record["wall_s"]) >= 0.05 && number(&record["cpu_s"]) > 0.0, "{tier}");
    let processes: f64 =
        record["processes"].as_array().unwrap().iter().map(|command| number(&command["count"])).sum();
    assert!(processes >= 2.0, "{tier}: sh has a child: {}", record["processes"]);
    let written = &record["io"]["written_bytes"];
    match written.as_u64() {
        Some(bytes) => assert!(bytes >= 4 * MIB, "{tier}: dd wrote 4 MiB: {bytes}"),
        None => skipped(&format!("{tier}: the kernel does not count bytes of processes")),
    }
    for finding in list(&record["findings"]) {
        let share = number(&finding["share"]);
        assert!((0.0..=1.0 + ROUNDING).contains(&share), "{tier}: {finding}");
    }
}
