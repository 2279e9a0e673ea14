//! `iowhy trace`: screens, JSON, conversions, and refusals, on the golden files of the readers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::bad_input::{assert_refused, fingerprint};
use crate::common::{Ran, binary, directory, finish, iowhy, names, text};
use crate::scripted::assert_expected;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/golden")
}

/// Runs where the golden files are, so that screens hold short names.
fn beside(args: &[&str]) -> Ran {
    finish(binary().args(args).current_dir(golden()))
}

#[test]
fn screens_are_as_expected() {
    for (name, args) in [
        ("trace-formats.txt", &["trace", "formats"] as &[&str]),
        ("trace-stat-strace.txt", &["trace", "stat", "program.strace"]),
        ("trace-stat-vscsi.txt", &["trace", "stat", "small.vscsi2"]),
        ("trace-stat-fiu.txt", &["trace", "stat", "fiu.txt"]),
        ("trace-head-blktrace.txt", &["trace", "head", "small.blktrace", "--action", "issue"]),
        ("trace-head-keys.txt", &["trace", "head", "small.twrNS", "-n", "2"]),
        ("trace-help.txt", &["trace", "convert", "--help"]),
    ] {
        let ran = beside(args).done();
        assert_eq!(ran.stderr, "", "{args:?}");
        assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
        assert_expected(
            name,
            &format!("$ iowhy {}\n{}exit code {}\n", args.join(" "), ran.stdout, ran.code()),
        );
    }
}

fn json(args: &[&str]) -> Value {
    beside(&[args, &["--json", "-"]].concat()).done().json()
}

#[test]
fn the_record_of_stat_holds_what_the_file_holds() {
    let record = json(&["trace", "stat", "small.vscsi2"]);
    for (key, value) in [
        ("schema", Value::from(1)),
        ("command", "trace stat".into()),
        ("format", "vscsi".into()),
        ("content", "blocks".into()),
        ("below_page_cache", true.into()),
        ("requests", 6.into()),
        ("losses", Value::Array(Vec::new())),
        ("span_ns", 7_000_005_000u64.into()),
    ] {
        assert_eq!(record[key], value, "{key}");
    }
    let bytes: Vec<u64> =
        record["operations"].as_array().unwrap().iter().map(|op| op["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [8804, 4608]);
    assert_eq!(
        (&record["latency_ns"]["min"], &record["latency_ns"]["max"]),
        (&250_000.into(), &255_000.into())
    );
    assert_eq!(record["footprint_bytes"]["exact"], true);
    // What a file does not say is null, never a number.
    let record = json(&["trace", "stat", "ids.txt"]);
    for key in ["span_ns", "requests_per_second", "latency_ns", "footprint_bytes", "below_page_cache"] {
        assert!(record[key].is_null(), "{key}: {}", record[key]);
    }
    let record = json(&["trace", "stat", "msr.csv"]);
    assert_eq!(record["losses"][0]["first"], "line 4");
}

#[test]
fn head_shows_the_first_requests_only() {
    let record = json(&["trace", "head", "fio2.iolog", "-n", "3"]);
    let list = record["requests"].as_array().unwrap();
    let ops: Vec<&str> = list.iter().map(|r| r["op"].as_str().unwrap()).collect();
    assert_eq!(
        (ops, &list[2]["name"], &list[2]["time_ns"]),
        (vec!["open", "write", "read"], &"/data/a".into(), &1_500_000.into())
    );
}

#[test]
fn conversions_say_what_is_lost_and_leave_a_whole_file() {
    let dir = directory();
    let out = dir.path().join("out.oracleGeneral");
    let ran = beside(&["trace", "convert", "small.vscsi2", text(&out)]).done();
    assert!(
        ran.stdout.contains("6 requests") && ran.stdout.contains("6 x latency: dropped"),
        "{}",
        ran.stdout
    );
    assert_eq!(std::fs::metadata(&out).unwrap().len(), 6 * 24);
    // The names of formats and of compressed files do not matter, content does.
    let renamed = dir.path().join("renamed.csv");
    std::fs::rename(&out, &renamed).unwrap();
    let record: Value = iowhy(&["trace", "stat", text(&renamed), "--json", "-"]).done().json();
    assert_eq!((&record["format"], &record["objects"]["value"]), (&"oracleGeneral".into(), &3.0.into()));
    assert_eq!(names(dir.path()), ["renamed.csv"]);
}

#[test]
fn stdin_and_stdout_are_files_like_others() {
    let bytes = std::fs::read(golden().join("small.vscsi2")).unwrap();
    let through = |args: &[&str], input: &[u8]| {
        let mut child = binary()
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        (output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    let (csv, report) = through(&["trace", "convert", "-", "-", "--to", "csv"], &bytes);
    assert!(report.contains("stdin (vscsi): 6 requests to stdout"), "{report}");
    let (back, _) = through(&["trace", "convert", "-", "-", "--to", "vscsi", "--quiet"], &csv);
    assert_eq!(back, bytes);
    // A format with a second pass goes through a temporary file.
    let (records, _) = through(&["trace", "convert", "-", "-", "--to", "lcs", "--quiet"], &csv);
    assert_eq!(records.len(), 8192 + 6 * 36);
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("empty"), b"").unwrap();
    std::fs::write(at("rubbish"), b"\x01\x02\x03rubbish").unwrap();
    std::fs::write(at("columns.csv"), b"1,2,3\n4,5,6\n").unwrap();
    let good = golden().join("small.vscsi2");
    std::fs::copy(&good, at("mine")).unwrap();
    let before = (names(dir.path()), fingerprint(&at("mine")));
    let (good, mine) = (text(&good).to_owned(), text(&at("mine")).to_owned());
    let path = |name: &str| text(&at(name)).to_owned();
    for (args, subject) in [
        (vec!["stat", &path("missing")], "missing"),
        (vec!["stat", &path("empty")], "empty"),
        (vec!["head", &path("rubbish")], "rubbish"),
        (vec!["stat", text(dir.path())], text(dir.path())),
        (vec!["stat", &path("columns.csv")], "columns.csv"),
        (vec!["stat", &path("columns.csv"), "--columns", "id=0"], "--columns"),
        (vec!["stat", &good, "--columns", "id=1"], "--columns"),
        (vec!["stat", &good, "--format", "oracle"], "--format `oracle`"),
        (vec!["stat", &good, "--action", "sideways"], "--action"),
        (vec!["stat", &good, "--action", "issue"], "`--action` is for blktrace"),
        (vec!["convert", &good, &path("out")], "out"),
        (vec!["convert", &good, &path("out"), "--to", "nothing"], "--to `nothing`"),
        (vec!["convert", &good, &path("out"), "--to", "strace"], "strace"),
        (vec!["convert", &good, &mine, "--to", "csv"], "mine"),
        (vec!["convert", &mine, &mine, "--to", "csv", "--force"], "mine"),
        (vec!["convert", &good, &path("no/such/folder.csv")], "folder.csv"),
        (vec!["convert", &good, "-", "--to", "csv", "--json", "-"], "--json"),
    ] {
        assert_refused(&iowhy(&[vec!["trace"], args].concat()), subject);
    }
    assert_eq!((names(dir.path()), fingerprint(&at("mine"))), before);
}

#[test]
fn a_trace_that_breaks_off_fails_with_its_place() {
    let dir = directory();
    let broken = dir.path().join("broken.blktrace");
    let mut bytes = std::fs::read(golden().join("small.blktrace")).unwrap();
    bytes.extend_from_slice(&[0xee; 60]);
    std::fs::write(&broken, &bytes).unwrap();
    let ran = iowhy(&["trace", "stat", text(&broken)]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains(&format!("byte {}", bytes.len() - 60)), "{}", ran.stderr);
    // Half a conversion does not stay.
    let out = dir.path().join("out.csv");
    let ran = iowhy(&["trace", "convert", text(&broken), text(&out)]);
    assert_eq!(ran.code(), 1);
    assert_eq!(names(dir.path()), ["broken.blktrace"]);
}

#[test]
fn a_wrong_format_by_force_is_seen() {
    let ran = beside(&["trace", "stat", "program.strace", "--format", "msr"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("no line of it is of this format"), "{}", ran.stderr);
}

#[test]
fn strace_without_times_is_told_how_to_record_it() {
    let dir = directory();
    let plain = dir.path().join("plain.strace");
    std::fs::write(&plain, "openat(AT_FDCWD, \"a\", O_RDONLY) = 3\nread(3, \"x\", 4096) = 1\n").unwrap();
    for args in [&["mrc"] as &[&str], &["trace", "stat"], &["trace", "stat", "--format", "strace"]] {
        let ran = iowhy(&[args, &[text(&plain)]].concat());
        assert!(ran.code() != 0 && ran.stdout.is_empty(), "{ran:?}");
        assert!(ran.stderr.contains("`strace -f -ttt -T -o FILE CMD`"), "{ran:?}");
        assert!(!ran.stderr.contains("--columns"), "{ran:?}");
    }
}

#[test]
fn no_output_ever_replaces_a_trace_that_is_read() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("a.csv"), "time,id,size\n1,2,4096\n2,3,4096\n").unwrap();
    std::fs::hard_link(at("a.csv"), at("hard")).unwrap();
    std::os::unix::fs::symlink(at("a.csv"), at("soft")).unwrap();
    let before = (names(dir.path()), fingerprint(&at("a.csv")));
    let path = |name: &str| text(&at(name)).to_owned();
    let (trace, out) = (path("a.csv"), path("out.csv"));
    for json in ["a.csv", "hard", "soft"].map(path) {
        for args in [
            vec!["mrc", &trace],
            vec!["trace", "stat", &trace],
            vec!["trace", "head", &trace],
            vec!["trace", "convert", &trace, &out],
            vec!["sim", "--machine", "nvme", "--trace", &trace],
        ] {
            assert_refused(&iowhy(&[&args[..], &["--json", &json]].concat()), "--json");
        }
    }
    assert_refused(&iowhy(&["trace", "convert", &trace, &out, "--json", &out]), "--json");
    assert_eq!((names(dir.path()), fingerprint(&at("a.csv"))), before);
}
