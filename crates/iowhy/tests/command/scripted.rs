//! The scripted machine, end to end in virtual time: what was put in must come out, exactly and every time.

use std::path::{Path, PathBuf};

use iowhy_core::model::{Cost, StackModel};
use iowhy_core::workload::{CacheState, Method};
use iowhy_probe::script::Script;
use serde_json::Value;

use crate::common::{directory, iowhy, record_of, rows, text};
use crate::record::{cell, cells, holds_together, number, only_cell, same, whole, words};

/// Virtual clocks count whole nanoseconds.
const ROUNDING: f64 = 2e-3;

/// Another machine than the built-in one: old, slow, one request at a time.
const OLD_MACHINE: &str = "\
schema = 1
name = 'old'
page_bytes = 4096
device_parallelism = 1.0
read_ahead_bytes = 65536
[layers.call]
per_call_ns = 1000.0
[layers.filesystem]
per_call_ns = 700.0
[layers.cache]
per_call_ns = 300.0
per_page_ns = 150.0
[layers.copy]
per_byte_ns = 1.5
[layers.memory]
per_page_ns = 900.0
[layers.block]
per_call_ns = 9000.0
per_page_ns = 40.0
[layers.device]
per_call_ns = 5000000.0
per_byte_ns = 20.0
[parts.vfs]
per_call_ns = 200.0
[parts.insert]
per_page_ns = 800.0
[parts.zero]
per_byte_ns = 0.5
";

fn built_in() -> StackModel {
    Script::example().unwrap().model
}

fn old_machine(directory: &Path) -> (PathBuf, StackModel) {
    let path = directory.join("old.toml");
    std::fs::write(&path, OLD_MACHINE).unwrap();
    (path, toml::from_str(OLD_MACHINE).unwrap())
}

/// The record without what belongs to this process and not to the scripted machine.
fn of_the_machine(mut record: Value) -> Value {
    let map = record.as_object_mut().unwrap();
    map.remove("command");
    map.remove("environment");
    map["ruler"].as_object_mut().unwrap().remove("peak_memory_bytes");
    for cell in map["cells"].as_array_mut().unwrap() {
        for sample in cell["samples"].as_array_mut().unwrap() {
            sample.as_object_mut().unwrap().remove("start_ns");
        }
    }
    record
}

#[test]
fn the_same_command_twice_gives_the_same_result() {
    for args in [
        &["scripted"] as &[&str],
        &["scripted?noise=0.05&seed=3", "--seed", "9"],
        &["bench", "scripted?noise=0.1", "--rw", "randread", "--bs", "4k,64k", "--state", "warm,direct"],
        &["bench", "scripted", "--state", "direct", "--iodepth", "8", "--rate", "50k"],
    ] {
        let (one, two) = (iowhy(args).done(), iowhy(args).done());
        assert_eq!(one.stdout, two.stdout, "{args:?}");
        assert_eq!((one.stderr.as_str(), two.stderr.as_str()), ("", ""), "{args:?}");
        assert_eq!(of_the_machine(record_of(args)), of_the_machine(record_of(args)), "{args:?}");
    }
}

#[test]
fn noise_comes_from_its_seed() {
    let time = |target: &str| {
        let screen = iowhy(&["bench", target, "--state", "warm"]).done().stdout;
        rows(&screen).next().unwrap().join(" ")
    };
    assert_ne!(time("scripted?noise=0.2&seed=1"), time("scripted?noise=0.2&seed=2"));
    assert_ne!(time("scripted?noise=0.2"), time("scripted"));
}

#[test]
fn the_fit_finds_the_costs_that_were_put_in() {
    let dir = directory();
    let (old, old_model) = old_machine(dir.path());
    for (target, truth) in
        [("scripted".to_owned(), built_in()), (format!("scripted:{}", old.display()), old_model)]
    {
        let saved = dir.path().join("fitted.toml");
        iowhy(&[&target, "--save-model", text(&saved)]).done();
        let fitted: StackModel = toml::from_str(&std::fs::read_to_string(&saved).unwrap()).unwrap();
        assert_eq!(
            (fitted.schema, fitted.page_bytes, fitted.read_ahead_bytes),
            (truth.schema, truth.page_bytes, truth.read_ahead_bytes)
        );
        // Reads never flush: the wait for write-back is the one cost that they do not show.
        let unseen = iowhy_core::layer::Layer::Writeback;
        let layers = truth.layers.keys().filter(|&&layer| layer != unseen);
        for &layer in layers {
            assert_cost(&format!("{target} {}", layer.id()), fitted.cost(layer), truth.cost(layer));
        }
        for &part in truth.parts.keys() {
            assert_cost(&format!("{target} {part:?}"), fitted.part(part), truth.part(part));
        }
        for layer in fitted.layers.keys() {
            assert!(truth.layers.contains_key(layer), "{target}: no such layer was put in: {}", layer.id());
        }
    }
}

/// The canonical requests that a workload of the simulator says, each with its workload.
const AS_WORKLOADS: [(&str, &str); 6] = [
    ("cached 4 KiB, random", "readers=1,requests=2000,bytes=4k,size=16m,pattern=random,warm=yes"),
    ("cached 1 MiB", "readers=1,requests=200,bytes=1m,size=16m,warm=yes"),
    ("mapped, a page a time", "readers=1,requests=4096,bytes=4k,size=16m,warm=yes,method=mapped"),
    ("cold sequential, 128 KiB", "readers=1,requests=1000,bytes=128k,size=128m"),
    ("direct 4 KiB, random", "readers=1,requests=2000,bytes=4k,size=128m,pattern=permuted,method=direct"),
    ("direct 4 KiB, depth 32", "readers=32,requests=500,bytes=4k,size=128m,pattern=permuted,method=direct"),
];

/// The simulator on a saved model takes the time of the requests that it was measured beside: virtual time against virtual time.
#[test]
fn a_saved_model_predicts_the_requests_on_the_screen() {
    let dir = directory();
    let (old, _) = old_machine(dir.path());
    for target in
        ["scripted".to_owned(), format!("scripted:{}", old.display()), "scripted?noise=0.1".to_owned()]
    {
        let saved = dir.path().join("saved.toml");
        let ran = iowhy(&[&target, "--save-model", text(&saved), "--json", "-"]).done();
        let record: Value = serde_json::from_str(&ran.stdout).unwrap();
        for (label, workload) in AS_WORKLOADS {
            let request =
                record["requests"].as_array().unwrap().iter().find(|request| request["label"] == label);
            let Some(key) = request.map(|request| &request["key"]) else {
                panic!("{target}: no {label}");
            };
            let cell = cells(&record).iter().find(|cell| cell["key"] == *key).unwrap();
            let measured_ns = number(&cell["time_per_request"]["value"]);
            let args = ["sim", "--machine", text(&saved), "--workload", workload, "--quiet", "--json", "-"];
            let simulated: Value = serde_json::from_str(&iowhy(&args).done().stdout).unwrap();
            let point = &simulated["points"][0];
            let simulated_ns = number(&point["time_s"]) * 1e9 / number(&point["requests"]);
            assert!(
                (simulated_ns / measured_ns - 1.0).abs() < 0.05,
                "{target}, {label}: measured {measured_ns} ns, simulated {simulated_ns} ns"
            );
        }
    }
}

fn assert_cost(name: &str, fitted: Cost, truth: Cost) {
    let parts = |cost: Cost| [cost.per_call_ns, cost.per_page_ns, cost.per_byte_ns];
    for (fitted, truth) in parts(fitted).into_iter().zip(parts(truth)) {
        // A thousandth of a nanosecond is below every cost here and above what arithmetic loses.
        assert!(
            same(fitted, truth, 1e-3) || (fitted - truth).abs() < 1e-3,
            "{name}: {fitted} is not {truth}"
        );
    }
}

#[test]
fn every_cell_takes_the_time_that_the_model_predicts_layer_by_layer() {
    let record = record_of(&["scripted"]);
    let model = built_in();
    let mut compared = 0;
    for cell in cells(&record) {
        let (depth, threads) = (whole(&cell["depth"]), whole(&cell["threads"]));
        let state = match words(&cell["state"]) {
            "warm" => CacheState::Warm,
            "cold" => CacheState::Cold,
            "direct" => CacheState::Direct,
            _ => continue,
        };
        // The memory cell has no file system; several in flight queue at the device.
        if depth * threads > 1 || words(&cell["key"]).starts_with("memory") {
            continue;
        }
        let method = Method::from_id(words(&cell["method"])).unwrap();
        let predicted = model.predict(method, state, whole(&cell["block_bytes"])).unwrap();
        let (measured, key) = (number(&cell["time_per_request"]["value"]), &cell["key"]);
        assert!(same(measured, predicted.total_ns(), ROUNDING), "{key}: {measured} {predicted:?}");
        // Cells that calibrate parts of blocks have no account.
        let Some(layers) = cell["layers"].as_array() else { continue };
        // Not every account tells look-up, copy and allocation of pages apart.
        let together = ["cache", "copy", "block"];
        let whole = |wanted: &dyn Fn(&str) -> bool| -> (f64, f64) {
            let seen = layers.iter().filter(|entry| wanted(words(&entry["id"])));
            let truth = predicted.entries().iter().filter(|entry| wanted(entry.id.id()));
            (
                seen.map(|entry| number(&entry["busy_ns"]) + number(&entry["wait_ns"])).sum(),
                truth.map(|entry| entry.total_ns()).sum(),
            )
        };
        let mut groups = vec![whole(&|id| together.contains(&id))];
        let apart = layers.iter().map(|entry| words(&entry["id"])).filter(|id| !together.contains(id));
        groups.extend(apart.map(|only| whole(&|id| id == only)));
        for (ns, truth) in groups {
            assert!(
                (ns - truth).abs() <= ROUNDING * predicted.total_ns(),
                "{key}: {ns}, not {truth}: {layers:?}"
            );
        }
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} cells could be compared");
}

#[test]
fn sizes_left_out_of_the_fit_are_predicted() {
    let record = record_of(&["scripted"]);
    let held_out = record["held_out"].as_array().unwrap();
    assert!(held_out.len() >= 4);
    for held in held_out {
        assert!(number(&held["error_percent"]).abs() < 0.2, "{held}");
        assert!(same(number(&held["predicted_ns"]), number(&held["measured_ns"]), ROUNDING), "{held}");
    }
}

#[test]
fn the_limit_is_what_the_model_dictates() {
    let dir = directory();
    let machine = |name: &str, from: &str, to: &str| {
        assert!(OLD_MACHINE.contains(from));
        let path = dir.path().join(name);
        std::fs::write(&path, OLD_MACHINE.replace(from, to)).unwrap();
        format!("scripted:{}", path.display())
    };
    let parallel = machine("parallel", "device_parallelism = 1.0", "device_parallelism = 256.0");
    let serial = machine("serial", "schema = 1", "schema = 1");
    let busy = machine("busy", "per_call_ns = 5000000.0\nper_byte_ns = 20.0", "per_call_ns = 10.0");
    let cases = [(parallel, "random", "depth"), (serial, "random", "device"), (busy, "random", "one-thread")];
    for (target, question, limit) in cases {
        let record = record_of(&[&target]);
        let found = record["limits"].as_array().unwrap().iter().find(|l| l["question"] == question).unwrap();
        assert_eq!(found["id"], limit, "{target}: {found}");
        assert!(!found["evidence"].as_array().unwrap().is_empty(), "{target}: {found}");
    }
}

#[test]
fn virtual_throughput_times_time_is_bytes() {
    let record = record_of(&["bench", "scripted", "--bs", "512..1m", "--state", "warm,direct"]);
    assert_eq!(cells(&record).len(), 24);
    for cell in cells(&record) {
        let ns = number(&cell["time_per_request"]["value"]);
        let bytes = number(&cell["throughput"]["value"]) * ns / 1e9;
        assert!(same(bytes, number(&cell["block_bytes"]), 1e-6), "{}: {bytes}", cell["key"]);
        assert!(same(number(&cell["requests_per_second"]["value"]) * ns, 1e9, 1e-6));
        assert_eq!(cell["verdict"], "ok");
    }
}

#[test]
fn a_request_that_fails_ends_its_cell_and_what_was_measured_is_kept() {
    let args = ["bench", "scripted?fail-at=1000", "--state", "direct", "--bs", "4k"];
    let ran = iowhy(&[&args[..], &["--json", "-"]].concat());
    assert_eq!(ran.code(), 1);
    let record = ran.json();
    holds_together(&record);
    let cell = only_cell(&record);
    assert_eq!((&cell["verdict"], whole(&cell["claimed_bytes"])), (&"failed".into(), 1000 * 4096));
    assert_eq!(cell["samples"].as_array().unwrap().len(), 1);
    assert_eq!(whole(&cell["latency_ns"]["n"]), 1000);
    let failure = as_glibc(words(&cell["failure"]));
    assert!(
        failure.contains(&(1000 * 4096).to_string()) && failure.contains("Input/output error"),
        "{failure}"
    );
    let screen = iowhy(&args);
    assert_eq!(screen.code(), 1);
    let shown = as_glibc(&screen.stdout);
    assert!(shown.contains("failed: ") && shown.contains("Input/output error"), "{screen:?}");
}

#[test]
fn a_failing_cell_does_not_stop_the_others() {
    // Fails in the 300th request of a slice: the slow direct cells never come that far.
    let ran = iowhy(&[
        "bench",
        "scripted?fail-at=300",
        "--bs",
        "4k,1m",
        "--state",
        "direct",
        "--runtime",
        "1s",
        "--json",
        "-",
    ]);
    assert_eq!(ran.code(), 1);
    let record = ran.json();
    holds_together(&record);
    assert_eq!(cell(&record, "direct-sequential-direct-4096-t1-d1")["verdict"], "failed");
    let other = cell(&record, "direct-sequential-direct-1048576-t1-d1");
    assert_eq!(other["verdict"], "ok");
    assert!(other["samples"].as_array().unwrap().len() >= 5);
}

#[test]
fn an_open_loop_that_asks_too_much_says_how_late_it_is() {
    // The built-in device ends a direct 4 KiB in 71 us: 5 k/s can be kept, 100 k/s cannot.
    let lateness = |rate: &str| {
        let record = record_of(&["bench", "scripted", "--state", "direct", "--rate", rate]);
        number(&only_cell(&record)["lateness"]["value"])
    };
    assert_eq!(lateness("5k"), 0.0);
    assert!(lateness("100k") > 1e6, "a slice of many milliseconds ends that much behind its plan");
}

#[test]
fn screens_are_as_expected() {
    for (name, args) in [
        ("path.txt", &["scripted", "--verbose"] as &[&str]),
        ("bench.txt", &["bench", "scripted", "--bs", "4k,64k,1m", "--state", "cold,warm,direct"]),
        (
            "bench-deep.txt",
            &["bench", "scripted", "--state", "direct", "--iodepth", "1,8,64", "--threads", "1,2"],
        ),
        ("bench-failed.txt", &["bench", "scripted?fail-at=1000"]),
        ("help.txt", &["--help"]),
        ("bench-help.txt", &["bench", "--help"]),
        ("classic-list.txt", &["classic", "list"]),
        ("classic-minix.txt", &["classic", "minix-1989", "scripted", "--time", "1s"]),
        ("classic-sg.txt", &["classic", "linux-sg-1999", "scripted", "--time", "1s"]),
        ("method-list.txt", &["bench", "--method", "list"]),
    ] {
        let ran = iowhy(args);
        assert_eq!(ran.stderr.is_empty(), ran.code() == 0, "{ran:?}");
        let screen = format!("$ iowhy {}\n{}", args.join(" "), ran.stdout);
        assert_expected(name, &as_glibc(&format!("{screen}{}exit code {}\n", ran.stderr, ran.code())));
    }
}

/// The words of EIO are the C library's: a static binary has those of musl.
fn as_glibc(text: &str) -> String {
    text.replace(": I/O error (os error 5)", ": Input/output error (os error 5)")
}

/// Holds text against a file of the repository; with `IOWHY_UPDATE=1` writes it there instead.
pub(crate) fn assert_expected(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/expected").join(name);
    if std::env::var_os("IOWHY_UPDATE").is_some() {
        return std::fs::write(&path, got).unwrap();
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; IOWHY_UPDATE=1 writes it", path.display()));
    assert!(
        got == expected,
        "{} differs; IOWHY_UPDATE=1 rewrites it, `git diff` shows what changed. Now it is:\n{got}",
        path.display()
    );
}

#[test]
fn virtual_time_has_no_cross_check() {
    for args in [&["scripted"] as &[&str], &["bench", "scripted", "--layers", "--state", "warm,direct"]] {
        let done = iowhy(args).done();
        assert!(!done.stdout.contains("cross-check"), "{}", done.stdout);
        let record = record_of(args);
        assert!(record.get("cross_check_limitation").is_none());
        assert!(cells(&record).iter().all(|cell| cell.get("cross_check").is_none()));
    }
}
