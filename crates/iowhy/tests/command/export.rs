//! Records for other programs: CSV, fio's JSON, fio's job files out and in.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{directory, iowhy, text};
use crate::old_records::{RECORDS, record};
use crate::record::{cells, whole, words};

fn keys(record: &Value) -> Vec<String> {
    cells(record).iter().map(|cell| words(&cell["key"]).to_owned()).collect()
}

#[test]
fn cells_go_to_fio_and_come_back_as_the_same_cells() {
    let folder = directory();
    let (record, job) = (folder.path().join("record.json"), folder.path().join("cells.fio"));
    let sweep = [
        "--bs",
        "4k,16k",
        "--method",
        "pread,uring,mmap",
        "--state",
        "warm",
        "--size",
        "1m",
        "--rw",
        "randread",
    ];
    let rest = ["--runtime", "50ms", "--threads", "1,2", "--json", text(&record), "--export-fio", text(&job)];
    iowhy(&[&["bench", text(folder.path())][..], &sweep, &rest].concat()).measured();
    let measured: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    let written = std::fs::read_to_string(&job).unwrap();
    assert_eq!(written, iowhy(&["export", text(&record), "--format", "fio-job"]).done().stdout);
    for key in keys(&measured) {
        assert!(written.contains(&format!("[{key}]")), "{written}");
        let back = ["bench", "--fio", text(&job), "--job", &key, "--json", "-", "--precision", "99%"];
        let ran = iowhy(&back).measured();
        assert_eq!(keys(&ran.json()), [key], "{written}\n{ran:?}");
    }
    // fio itself understands each line.
    match Command::new("fio").arg("--parse-only").arg(&job).stdin(Stdio::null()).output() {
        Ok(parsed) => {
            let said = String::from_utf8_lossy(&parsed.stderr).into_owned()
                + &String::from_utf8_lossy(&parsed.stdout);
            assert!(parsed.status.success() && !said.contains("Bad option"), "{said}\n{written}");
        }
        Err(_) => println!("skipped: fio is not installed"),
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn cells_without_a_counterpart_are_named() {
    let folder = directory();
    let record = folder.path().join("record.json");
    iowhy(&["bench", "scripted", "--state", "warm", "--json", text(&record)]).done();
    let job = iowhy(&["export", text(&record), "--format", "fio-job"]).done().stdout;
    assert!(job.contains("fio has no counterpart: the target `scripted`"), "{job}");
}

#[test]
fn a_job_of_fio_is_carried_out_and_what_is_not_is_named() {
    let folder = directory();
    let job = folder.path().join("jobs.fio");
    std::fs::write(
        &job,
        "[global]\nioengine=null\nruntime=200ms\ntime_based\n[a]\nbs=8k\n[b]\nbs=4k\nverify=md5\n",
    )
    .unwrap();
    let of = |rest: &[&str]| iowhy(&[&["bench", "--fio", text(&job)][..], rest].concat());
    let record = of(&["--job", "a", "--json", "-"]).done().json();
    assert_eq!(keys(&record), ["null-sequential-none-8192-t1-d1"]);
    let refused = |rest: &[&str], says: &[&str]| {
        let ran = of(rest);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(says.iter().all(|says| ran.stderr.contains(says)) && ran.stderr.contains("hint:"), "{ran:?}");
    };
    refused(&[], &["2 jobs", "`a`, `b`", "--job"]);
    refused(&["--job", "c"], &["--job c", "`a`"]);
    refused(&["--job", "b"], &["verify=md5"]);
    refused(&["--job", "a", "--export-fio", text(&job)], &["overwrite"]);
    let both = of(&["--job", "a", "--bs", "4k"]);
    assert!(both.code() == 2 && both.stderr.contains("--bs"), "{both:?}");
    let missing = iowhy(&["bench", "--fio", "/nowhere/x.fio"]);
    assert!(missing.code() == 2 && missing.stderr.contains("/nowhere/x.fio"), "{missing:?}");
    // A job that would write to a file that is there needs the same permission as ever.
    let file = folder.path().join("precious");
    std::fs::write(&file, vec![7u8; 1 << 16]).unwrap();
    let write = format!("[w]\nrw=write\nruntime=1\nfilename={}\n", text(&file));
    std::fs::write(&job, write).unwrap();
    refused(&[], &["precious"]);
    assert_eq!(std::fs::read(&file).unwrap(), vec![7u8; 1 << 16]);
}

#[test]
fn latencies_keep_their_number_in_fios_classes() {
    let folder = directory();
    let record = folder.path().join("record.json");
    iowhy(&["bench", "scripted", "--state", "warm,direct", "--json", text(&record)]).done();
    let measured: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    let told: Value =
        serde_json::from_str(&iowhy(&["export", text(&record), "--format", "fio-json"]).done().stdout)
            .unwrap();
    let jobs = told["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), cells(&measured).len());
    for (job, cell) in jobs.iter().zip(cells(&measured)) {
        assert_eq!(job["jobname"], cell["key"]);
        let clat = &job["read"]["clat_ns"];
        let bins: u64 = clat["bins"].as_object().unwrap().values().map(whole).sum();
        assert_eq!(
            (bins, whole(&clat["N"])),
            (whole(&cell["latency_ns"]["n"]), whole(&cell["latency_ns"]["n"]))
        );
        assert_eq!(clat["percentile"]["50.000000"], cell["latency_ns"]["p50"]);
        assert_eq!(clat["max"], cell["latency_ns"]["max"]);
    }
}

#[test]
fn any_table_becomes_csv() {
    let folder = directory();
    let record = folder.path().join("record.json");
    iowhy(&["bench", "scripted", "--bs", "4k,8k", "--state", "warm", "--json", text(&record)]).done();
    let csv = iowhy(&["export", text(&record)]).done().stdout;
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines.len(), 4, "{csv}");
    let columns: Vec<&str> = lines[0].split(',').collect();
    assert_eq!(columns[0], "key");
    let place = columns.iter().rev().position(|name| *name == "time_per_request.value").expect("the time");
    let measured: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    for (line, cell) in lines[1..].iter().zip(cells(&measured)) {
        assert!(line.contains(words(&cell["key"])));
        // Texts with commas stand before this column: counted from the end it is the same in every line.
        let value: f64 = line.rsplit(',').nth(place).unwrap().parse().unwrap_or(f64::NAN);
        assert_eq!(Some(value), cell["time_per_request"]["value"].as_f64(), "{csv}");
    }
    let named = iowhy(&["export", text(&record), "--table", "targets"]).done().stdout;
    assert!(named.lines().next().unwrap().split(',').any(|column| column == "size_bytes"), "{named}");
    let none = iowhy(&["export", text(&record), "--table", "nothing"]);
    assert!(none.code() == 2 && none.stderr.contains("cells (2)"), "{none:?}");
    let watch = folder.path().join("watch.json");
    iowhy(&["--json", text(&watch), "--", "true"]).done();
    let layers = iowhy(&["export", text(&watch), "--table", "layers"]).done().stdout;
    assert!(layers.starts_with("id,busy_s,"), "{layers}");
    let wrong = iowhy(&["export", text(&watch), "--format", "fio-json"]);
    assert!(wrong.code() == 2 && wrong.stderr.contains("no measured cells"), "{wrong:?}");
}

/// Rules of OpenMetrics 1.0 that a reader enforces: one block for each metric, no series twice, a mark at the end.
#[test]
fn every_kind_of_record_becomes_metrics() {
    let mut series = 0;
    for (name, ..) in RECORDS {
        let metrics = iowhy(&["export", &record(name), "--format", "openmetrics"]).done().stdout;
        let mut lines: Vec<&str> = metrics.lines().collect();
        assert_eq!(lines.pop(), Some("# EOF"), "{name}");
        let (mut metric, mut metrics, mut points) = ("", BTreeSet::new(), BTreeSet::new());
        for line in lines {
            if let Some((named, _)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
                assert!(metrics.insert(named), "{name}: {named} twice");
                metric = named;
            } else if let Some(unit) = line.strip_prefix("# UNIT ") {
                let (named, unit) = unit.split_once(' ').unwrap();
                assert!(named == metric && named.ends_with(&format!("_{unit}")), "{name}: {line}");
            } else {
                let (point, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{name}: {line}");
                assert!(point.split('{').next().unwrap().starts_with(metric), "{name}: {line}");
                assert!(points.insert(point), "{name}: {point} twice");
            }
        }
        series += points.len();
    }
    assert!(series > 500, "{series}");
}

/// Keys of a row with those below them, as CSV joins them; lists included, which CSV leaves out.
fn paths(row: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    for (key, value) in row.as_object().into_iter().flatten() {
        let path = format!("{prefix}{key}");
        match value {
            Value::Array(entries) => {
                entries.iter().for_each(|entry| paths(entry, &format!("{path}."), found))
            }
            Value::Object(_) => paths(value, &format!("{path}."), found),
            _ => {}
        }
        found.insert(path);
    }
}

/// The words of a heading or of a key.
fn parts(name: &str) -> Vec<String> {
    let name = name.replace(" / ", " over ").replace("/s", " per second").to_lowercase();
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether the heading is words of the key, in its order.
fn is_headed(key: &str, heading: &str) -> bool {
    // Follows from the interval beside it and from the threshold of the record: no key of its own.
    if heading == "visible" {
        return key == "after_over_before";
    }
    let mut key = parts(key).into_iter();
    parts(heading).iter().all(|word| key.any(|other| other == *word))
}

/// Tables of reports by their first heading, which names a row, and the lists of the record that they show.
const TABLES: [(&str, &str, &str); 15] = [
    ("measured", "cells", "method"),
    ("path", "methods", "method"),
    ("watched", "operations", "operation"),
    ("watched", "devices", "device"),
    ("compared", "cells", "cell"),
    ("compared-layers", "layers", "cell"),
    ("compared-programs", "parts", "part"),
    ("compared-programs", "findings", "finding"),
    ("proof", "findings", "finding"),
    ("swept", "points", "bytes"),
    ("ratios", "curves", "policy"),
    ("classic", "rows", "block"),
    ("tree", "phases", "phase"),
    ("advice", "points", "interleave"),
    ("advice", "rules", "rule"),
];

#[test]
fn headings_are_the_words_of_keys_and_columns_are_keys() {
    let folder = directory();
    let swept = folder.path().join("swept.json");
    let load = ["--machine", "nvme", "--workload", "readers=2,requests=50"];
    let sweep = ["--sweep", "cache.bytes=1m,4m", "--json", text(&swept)];
    iowhy(&[&["sim"][..], &load, &sweep].concat()).done();
    for (name, list, first) in TABLES {
        let record = if name == "swept" { text(&swept).to_owned() } else { crate::old_records::record(name) };
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
        let rows = json[list].as_array().unwrap();
        let mut keys = BTreeSet::new();
        rows.iter().for_each(|row| paths(row, "", &mut keys));

        let report = iowhy(&["report", &record, "--markdown"]).done().stdout;
        let headings = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|heading| heading.trim().to_owned()).collect()
        };
        let is_table = |headings: &Vec<String>| {
            headings[0] == first && headings[1..].iter().all(|h| keys.iter().any(|key| is_headed(key, h)))
        };
        let tables: Vec<_> = report.lines().filter(|line| line.starts_with('|')).map(headings).collect();
        assert!(tables.iter().any(is_table), "{name}, {list}: {keys:?}\n{report}");

        let csv = iowhy(&["export", &record, "--table", list]).done().stdout;
        let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        assert!(
            columns.len() > 1 && columns.iter().all(|column| keys.contains(*column)),
            "{name}: {columns:?}"
        );
        let nested = |column: &str| columns.iter().any(|other| other.starts_with(&format!("{column}.")));
        assert!(!columns.iter().any(|column| nested(column)), "{name}: {columns:?}");
    }
}
