//! `iowhy sim`: virtual time, so every number is exact and the same on every machine.

use std::path::Path;

use serde_json::Value;

use crate::bad_input::assert_refused;
use crate::common::{directory, iowhy, text};

const SMALL: &str = "readers=10,files=20,sizes=930:3030:6102,dirs=40,population=20000";

fn json(args: &[&str]) -> Value {
    let mut all = vec!["sim", "--json", "-"];
    all.extend(args);
    iowhy(&all).done().json()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn one_run_as_json() {
    let record = json(&["--machine", "netbsd-1999", "--workload", SMALL]);
    assert_eq!((&record["schema"], &record["command"]), (&Value::from(1), &Value::from("sim")));
    let points = record["points"].as_array().unwrap();
    let [point] = points.as_slice() else { panic!("one point: {record}") };
    assert_eq!(point["requests"], 200);
    assert_eq!(point["set"], serde_json::json!({}));
    let (time, rate) = (number(&point["time_s"]), number(&point["requests_per_second"]));
    assert!((time * rate - 200.0).abs() < 1e-6);
    let ledger: f64 = point["ledger"].as_array().unwrap().iter().map(|part| number(&part["time_s"])).sum();
    assert!((ledger - number(&point["ledger_total_s"])).abs() < 1e-6, "the ledger closes");
    assert!((0.0..=1.0).contains(&number(&point["miss_ratio"])));
    let latency = &point["latency_ns"];
    assert!(
        number(&latency["p50"]) <= number(&latency["p99"])
            && number(&latency["p99"]) <= number(&latency["max"])
    );
    assert_eq!(point["devices"].as_array().unwrap().len(), 3);
}

#[test]
fn a_sweep_prints_its_table_and_marks_the_best() {
    let args = ["--machine", "netbsd-1999", "--workload", SMALL, "--sweep", "volume.interleave=8..64,126"];
    let record = json(&args);
    let points = record["points"].as_array().unwrap();
    let swept: Vec<u64> = points.iter().map(|p| p["set"]["volume.interleave"].as_u64().unwrap()).collect();
    assert_eq!(swept, [8, 16, 32, 64, 126]);
    let best = |p: &&Value| p["marks"].as_array().unwrap().contains(&Value::from("best"));
    let shortest = points.iter().map(|p| number(&p["time_s"])).fold(f64::MAX, f64::min);
    let marked: Vec<f64> = points.iter().filter(best).map(|p| number(&p["time_s"])).collect();
    assert_eq!(marked, [shortest]);

    let mut all = vec!["sim"];
    all.extend(args);
    let (first, again) = (iowhy(&all).done(), iowhy(&all).done());
    assert_eq!(first.stdout, again.stdout, "the same to the digit, on any number of cores");
    assert!(first.stdout.lines().all(|line| line.chars().count() <= 100), "{}", first.stdout);
    assert!(first.stdout.contains("best: volume.interleave="));
    assert_eq!((first.stderr.as_str(), first.stdout.contains('\u{1b}')), ("", false));
}

#[test]
fn what_means_nothing_here_is_said_and_defaults_are_spelled_out() {
    let load = ["--machine", "four-ssd", "--workload", "readers=2,requests=50"];
    let run = |more: &[&str]| iowhy(&[&["sim"][..], &load, more].concat()).done();
    let idle = run(&["--set", "device.rpm=5400", "--sweep", "cache.bytes=1m,2m"]);
    assert!(
        idle.stderr.contains("`--set device.rpm` has no effect: it belongs to rotating"),
        "{}",
        idle.stderr
    );
    // Where it acts at one point, it acts.
    let acts = run(&["--set", "device.read_ns=9us", "--sweep", "device.kind=null,ssd"]);
    assert_eq!(acts.stderr, "");
    let same = run(&["--sweep", "device.heads=1..4"]);
    assert!(same.stderr.contains("`--sweep device.heads` has no effect"), "{}", same.stderr);
    assert!(same.stdout.contains("no difference: every point takes"), "{}", same.stdout);
    assert!(!same.stdout.contains("knee"), "{}", same.stdout);
    let full = "readers=2,requests=50,bytes=4k,size=64m,pattern=sequential,own=no,write=0,method=read,warm=no,think=0ns,lockstep=no";
    assert_eq!(json(&load)["load_in_full"], full);
    let again = json(&["--machine", "four-ssd", "--workload", full]);
    assert_eq!(again["points"], json(&load)["points"]);
}

/// A sweep over a long trace is refused by the speed of its first requests, before a point is run.
#[test]
fn a_sweep_over_a_trace_that_would_take_hours_is_refused_first() {
    let dir = directory();
    let trace = dir.path().join("long.csv");
    let mut lines = String::from("time_ns,id,offset,size\n");
    for i in 0..400_000u64 {
        lines.push_str(&format!("{},0,{},4096\n", i * 1000, i * 7 % 9999 * 4096));
    }
    std::fs::write(&trace, lines).unwrap();
    let sweep = |values: &str| {
        let swept = format!("cache.bytes={values}");
        iowhy(&["sim", "--machine", "nvme", "--trace", text(&trace), "--sweep", &swept])
    };
    let ran = sweep("1m..100000m+1m");
    assert_refused(&ran, "by the speed of the first 20000");
    let told: u64 = ran
        .stderr
        .split_once(" points of ")
        .and_then(|(_, rest)| rest.split(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{}", ran.stderr));
    // Counted, or estimated from the share of the file that was read in time.
    assert!((300_000..=400_000).contains(&told), "{told}");
    sweep("1m,2m").done();
}

#[test]
fn a_sweep_over_recorded_times_says_that_they_set_the_total_time() {
    let dir = directory();
    let trace = dir.path().join("hot.csv");
    let mut lines = String::from("time_ms,id,offset,size\n");
    for i in 0..400u64 {
        lines.push_str(&format!("{i},0,{},4096\n", i * 7 % 64 * 4096));
    }
    std::fs::write(&trace, lines).unwrap();
    let run = |more: &[&str]| {
        let args = ["sim", "--machine", "nvme", "--trace", text(&trace), "--sweep", "cache.bytes=16k,1m"];
        iowhy(&[&args[..], more].concat()).done()
    };
    let open = run(&[]);
    assert!(open.stderr.contains("recorded times") && open.stderr.contains("`--clients 1`"), "{open:?}");
    assert!(open.stdout.contains("compare the latencies"), "{open:?}");
    assert!(!open.stdout.contains("no difference"), "{open:?}");
    let closed = run(&["--clients", "1"]);
    assert!(!closed.stderr.contains("recorded times"), "{closed:?}");
    assert!(!closed.stdout.contains("compare the latencies"), "{closed:?}");
}

#[test]
fn settings_change_the_machine_and_two_sweeps_multiply() {
    let set = ["--machine", "four-ssd", "--workload", "readers=8,requests=200,pattern=random"];
    let mut one = set.to_vec();
    one.extend(["--set", "device.read_ns=160us", "--set", "cache.bytes=0"]);
    let slow = number(&json(&one)["points"][0]["time_s"]);
    let mut other = set.to_vec();
    other.extend(["--set", "cache.bytes=0"]);
    let fast = number(&json(&other)["points"][0]["time_s"]);
    assert!(slow > 1.5 * fast, "{slow} {fast}");
    let mut both = set.to_vec();
    both.extend(["--sweep", "cache.policy=lru,fifo", "--sweep", "device.count=1..4"]);
    both.extend(["--set", "volume.kind=concat"]);
    assert_eq!(json(&both)["points"].as_array().unwrap().len(), 6);
}

#[test]
fn a_saved_model_and_a_file_are_machines() {
    let dir = directory();
    let file = |name: &str, content: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let model = file(
        "model.toml",
        "schema = 1\nname = \"saved\"\npage_bytes = 4096\ndevice_parallelism = 4.0\nread_ahead_bytes = 131072\n\
         [layers.call]\nper_call_ns = 100.0\nper_page_ns = 0.0\nper_byte_ns = 0.0\n[layers.call.low]\n[layers.call.high]\n\
         [layers.device]\nper_call_ns = 60000.0\nper_page_ns = 0.0\nper_byte_ns = 0.5\n[layers.device.low]\n[layers.device.high]\n",
    );
    let record = json(&[
        "--machine",
        text(&model),
        "--workload",
        "requests=100,bytes=4k,method=direct,pattern=random",
    ]);
    let time_ns = number(&record["points"][0]["time_s"]) * 1e9;
    assert!((time_ns / 100.0 - (100.0 + 60_000.0 + 2048.0)).abs() < 1.0, "{time_ns}");
    assert!(!record["warnings"].as_array().unwrap().is_empty(), "what the model does not know is said");
    let load = file("load.toml", "readers = 2\nrequests = 50\npattern = \"random\"\n");
    let machine = file("m.toml", "[device]\nkind = \"ssd\"\nread_ns = 1000\nbytes = \"1g\"\n");
    let record = json(&["--machine", text(&machine), "--workload", text(&load)]);
    assert_eq!(record["points"][0]["requests"], 100);
}

#[test]
fn a_trace_is_replayed_at_its_times_or_by_clients() {
    let dir = directory();
    let path = dir.path().join("t.disksim");
    let lines: String = (0..100).map(|i| format!("{}.0 0 {} 8 1\n", i * 10, i * 5000)).collect();
    std::fs::write(&path, lines).unwrap();
    let base = ["--machine", "four-ssd", "--trace", text(&path), "--format", "disksim"];
    let open = json(&base);
    assert_eq!(open["points"][0]["requests"], 100);
    let time = number(&open["points"][0]["time_s"]);
    assert!((0.99..1.0).contains(&time), "{time}");
    let said = open["warnings"].to_string();
    assert!(said.contains("below a page cache"), "{said}");
    let mut closed = base.to_vec();
    closed.extend(["--clients", "4", "--requests", "50", "--set", "cache.bytes=0"]);
    let closed = json(&closed);
    assert_eq!(closed["points"][0]["requests"], 50);
    assert!(number(&closed["points"][0]["time_s"]) < 0.01);
    assert!(!closed["warnings"].to_string().contains("below a page cache"), "there is no cache now");
}

/// Two readers, each with a file on a disk of its own: neither reads from the other's.
#[test]
fn files_of_their_own_disks_share_none() {
    let load = "readers=2,requests=20,bytes=1m,size=20m,own=yes";
    let record = json(&["--machine", "linux-1999-ide", "--workload", load]);
    let devices = record["points"][0]["devices"].as_array().unwrap();
    let of = |device: usize, key: &str| number(&devices[device][key]);
    assert_eq!(of(0, "bytes"), of(1, "bytes"));
    assert_eq!(of(0, "commands"), of(1, "commands"));
}

/// All writes fit into the cache: no answer waits, and the devices go on behind the last.
#[test]
fn where_no_time_passes_there_is_no_rate() {
    let load = ["--machine", "nvme", "--workload", "readers=1,requests=1000,write=100"];
    let record = json(&load);
    let point = &record["points"][0];
    assert_eq!(number(&point["time_s"]), 0.0);
    assert!(
        point["requests_per_second"].is_null() && point["throughput_bytes_per_second"].is_null(),
        "{point}"
    );
    assert!(number(&point["settled_s"]) > 0.0);
    assert_eq!(point["devices"][0]["units"], 64);
    let screen = iowhy(&[&["sim"], &load[..]].concat()).done().stdout;
    assert!(screen.contains("no time passed") && !screen.contains("/s,"), "{screen}");
    assert!(screen.contains("after the last answer"), "{screen}");
    assert!(screen.contains("device  busy  units  commands  work"), "{screen}");
    assert!(screen.contains("%     64  "), "{screen}");
    let nothing = ["--machine", "nvme", "--set", "device.kind=null", "--workload", "readers=1,requests=10"];
    let record = json(&nothing);
    assert!(record["points"][0]["devices"][0]["busy_share"].is_null(), "{record}");
    assert!(iowhy(&[&["sim"], &nothing[..]].concat()).done().stdout.contains("no time passed"));
}

/// Both are known before anything is run.
#[test]
fn what_takes_all_memory_or_hours_is_refused_before_it_is_run() {
    let refused = |more: &[&str], subject: &str| {
        assert_refused(&iowhy(&[&["sim", "--machine", "nvme"], more].concat()), subject);
    };
    refused(
        &[
            "--workload",
            "readers=1000000,size=1000t,bytes=1g,requests=10,warm=yes",
            "--set",
            "cache.bytes=900t",
        ],
        "of memory",
    );
    refused(
        &["--workload", "readers=1000,requests=1000000000,pattern=random", "--sweep", "device.units=1..64"],
        "would take about",
    );
}

#[test]
fn lists() {
    assert!(iowhy(&["sim", "--machine", "list"]).done().stdout.contains("netbsd-1999"));
    assert!(iowhy(&["sim", "--machine", "keys"]).done().stdout.contains("volume.interleave"));
    assert!(iowhy(&["sim", "--workload", "list"]).done().stdout.contains("news-1999"));
    for (args, key) in [
        (["--machine", "list"], "machines"),
        (["--machine", "keys"], "keys"),
        (["--workload", "list"], "workloads"),
    ] {
        let listed = json(&args)[key].as_array().map_or(0, Vec::len);
        assert!(listed > 5, "{args:?}: {listed}");
        let screen = iowhy(&[&["sim"], &args[..]].concat()).done().stdout;
        assert!(screen.lines().all(|line| line.chars().count() <= 100), "{screen}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let dir = directory();
    let bad = dir.path().join("bad.toml");
    std::fs::write(&bad, "[cache]\nbites = 3\n").unwrap();
    let with = |more: &[&str], subject: &str| {
        let mut args = vec!["sim", "--machine", "netbsd-1999", "--workload", SMALL];
        args.extend(more);
        assert_refused(&iowhy(&args), subject);
    };
    with(&["--set", "volume.interleave=0"], "volume.interleave");
    with(&["--set", "volume.interleaf=8"], "volume.interleaf");
    with(&["--set", "volume"], "--set");
    with(&["--set", "cache.bytes=1k"], "cache.bytes");
    with(&["--set", "device.count=0"], "device.count");
    with(&["--sweep", "volume.interleave=0..8"], "--sweep");
    with(&["--sweep", "volume.interleave=8,16", "--sweep", "volume.interleave=32"], "swept twice");
    with(&["--sweep", "volume.interleave=0,8"], "volume.interleave=0");
    with(&["--sweep", "volume.interleave=1..2000+1", "--sweep", "cache.bytes=16k..20m+16k"], "points");
    let refused = |args: &[&str], subject: &str| {
        let mut all = vec!["sim"];
        all.extend(args);
        assert_refused(&iowhy(&all), subject);
    };
    refused(&["--machine", text(&bad), "--workload", SMALL], "line 2: there is no key `cache.bites`");
    refused(&["--machine", "netbsd-2099", "--workload", SMALL], "netbsd-2099");
    refused(&["--machine", "nvme", "--workload", "reader=3"], "reader");
    refused(&["--machine", "nvme"], "--workload");
    refused(&["--machine", "nvme", "--workload", "random-4k,readers=2"], "stands alone");
    for (option, value) in
        [("--clients", "1"), ("--requests", "9"), ("--format", "nonsense"), ("--columns", "time=1")]
    {
        refused(&["--machine", "nvme", "--workload", SMALL, option, value], option);
    }
    let kinds = iowhy(&["sim", "--machine", "nvme", "--workload", SMALL, "--set", "device.kind=x"]);
    assert_refused(&kinds, "device.kind");
    assert!(!kinds.stderr.contains("missing"), "{kinds:?}");
    refused(&["--machine", "nvme", "--trace", "/nowhere/at/all"], "/nowhere/at/all");
    refused(&["--machine", "floppy-pool", "--workload", "size=10g,bytes=4k,requests=1"], "volume holds");
    assert!(!Path::new("/nowhere").exists());
}
