//! What the phases about the watch share: how a program of the cases is run under it, and what its record says.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ended_well;
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::{Boot, ext4_with_journal};
use crate::lab::check::Checks;

/// Bytes of `data` on a disk.
pub(super) const DATA_BYTES: u64 = 4 << 20;

/// Runs a program of the cases under the watch, which another program runs where `around` names one.
/// Nothing is repeated after the run: what that leaves in the guest's caches would be in the runs that follow.
pub(super) fn watched(boot: &mut Boot, label: &str, around: &[&str], words: &str) {
    run(boot, label, around, &["--no-calibrate"], words);
}

/// The same with a calibrated gain.
pub(super) fn calibrated(boot: &mut Boot, label: &str, words: &str) {
    run(boot, label, &[], &[], words);
}

fn run(boot: &mut Boot, label: &str, around: &[&str], options: &[&str], words: &str) {
    let mut step = vec!["run", label, "-"];
    step.extend(around);
    step.extend(["iowhy", "--quiet", "--json", "@record"]);
    step.extend(options);
    step.extend(["--", "iowhy-cases", "program"]);
    step.extend(words.split_ascii_whitespace());
    boot.step(&step);
}

/// Every count of a file is the program's own.
pub(super) fn counts(checks: &mut Checks, kind: &str, run: Answer<'_>) {
    ended_well(checks, kind, run);
    checks.holds(&format!("{kind}: by the observer"), run.at("/record/tier") == "observer", limitations(run));
    let by_perf = limitations(run).contains("observed-switches");
    checks.holds(&format!("{kind}: the observer tells of switches"), !by_perf, limitations(run));
    let ours = sleeps_in_the_observer(run);
    checks.holds(&format!("{kind}: no sleep in the observer"), ours == Some(0), format!("{ours:?} stacks"));
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

fn of_file(file: &Value) -> [u64; 5] {
    let whole = |value: &Value| value.as_u64().unwrap_or(0);
    let [reads, writes] = [&file["reads"], &file["writes"]];
    [&file["opens"], &reads["calls"], &reads["bytes"], &writes["calls"], &writes["bytes"]].map(whole)
}

/// Seconds of the wall clock in a layer; 0 where the record has none of it.
pub(super) fn layer(run: Answer<'_>, id: &str) -> Option<f64> {
    let layers = run.at("/record/layers").as_array()?;
    layers.iter().find(|layer| layer["id"] == id).map_or(Some(0.0), |layer| layer["wall_s"].as_f64())
}

pub(super) fn limitations(run: Answer<'_>) -> String {
    run.at("/record/profile/sight/limitations").to_string()
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A disk whose requests take a time. Returns its path.
pub(super) fn slow_disk(boot: &mut Boot, name: &str, completion_ns: u64, more: &[(&str, &str)]) -> String {
    let completion = completion_ns.to_string();
    let mut attributes = vec![
        ("size", "64"),
        ("queue_mode", "2"),
        ("irqmode", "2"),
        ("completion_nsec", completion.as_str()),
        ("memory_backed", "1"),
    ];
    attributes.extend(more);
    boot.null_disk(name, &attributes)
}

/// The same with a file system and `data` on it. Returns its path.
pub(super) fn disk(boot: &mut Boot, name: &str, completion_ns: u64, more: &[(&str, &str)]) -> String {
    let (device, at) = (slow_disk(boot, name, completion_ns, more), format!("/mnt/{name}"));
    boot.step(&["mkdir", &at]);
    boot.file_system("ext4", ext4_with_journal(64 << 20), &device, &at);
    boot.step(&["fill", &format!("{at}/data"), &DATA_BYTES.to_string()]);
    device
}

/// Stacks of sleeps with functions that a switch calls to tell of itself. `None`: there are no sleeps.
fn sleeps_in_the_observer(run: Answer<'_>) -> Option<usize> {
    let symbols = list(run.at("/record/profile/symbols"));
    let traces = |id: &Value| {
        let name = id.as_u64().and_then(|id| symbols.get(id as usize)?["name"].as_str());
        name.is_some_and(|name| ["bpf_", "__bpf_", "__traceiter_"].iter().any(|part| name.starts_with(part)))
    };
    let sleeps: Vec<&Value> =
        list(run.at("/record/profile/stacks")).iter().filter(|stack| stack["state"] == "blocked").collect();
    let ours = sleeps.iter().filter(|stack| list(&stack["kernel"]).iter().any(traces)).count();
    (!sleeps.is_empty()).then_some(ours)
}

/// Judges each kernel that could be had: without a complaint of its own, and by the phase. A kernel that could not be had is a skip,
/// which the lab reports at the end.
pub(super) fn each_kernel(
    answers: &Answers,
    checks: &mut Checks,
    names: [&'static str; 3],
    judge: impl Fn(&mut Checks, &str),
) {
    for name in names {
        if !answers.boots().any(|(boot, _)| boot == name) {
            continue;
        }
        checks.group(name);
        let tainted = answers.get(name, "tainted").at("/text");
        checks.holds("no complaint of the kernel", tainted == "0", tainted.to_string());
        judge(checks, name);
    }
}
