//! Damaged and malicious inputs: every kind of record and of trace, mutated, through every command that reads it. Whatever the
//! input: an exit code of the contract, its reason on stderr, bounded memory and time, and nothing on a screen that acts on it.
//!
//! The cases follow from `IOWHY_HOSTILE_SEED` (fixed by default); `IOWHY_HOSTILE_CASES` is how often each file is mutated.

use std::path::{Path, PathBuf};
use std::process::Command;

use iowhy_core::rng::Rng;
use iowhy_core::text::acts;
use serde_json::{Value, json};

use crate::common::{Ran, binary, directory, finish, iowhy, skipped, text};

/// Address space of a run: 512 MiB beyond any input here, and 256 MiB for code, stacks and the allocator's reserves.
const MAX_ADDRESS_KIB: u64 = 768 << 10;
/// Seconds of CPU time after which a run counts as endless.
const MAX_CPU_S: u64 = 120;
/// What an evil name holds: colours, cursor moves, titles, C1, bidirectional controls, line ends.
const EVIL: &str = "\u{1b}[31mEVIL\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}2J\u{202e}gpj\u{2066}\u{61c}\u{200f}\u{85}\u{2028}\r\n\u{8}\u{7f}";

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn rng() -> Rng {
    let seed = number("IOWHY_HOSTILE_SEED", 1);
    eprintln!("IOWHY_HOSTILE_SEED={seed}");
    Rng::new(seed)
}

fn cases() -> u64 {
    number("IOWHY_HOSTILE_CASES", 3)
}

/// The binary with limits on address space and CPU time.
fn limited(arguments: &[&str]) -> Command {
    let program = binary();
    let mut command = Command::new("prlimit");
    command.args([format!("--as={}", MAX_ADDRESS_KIB << 10), format!("--cpu={MAX_CPU_S}")]);
    // An arena of the allocator and a stack for each CPU would count as much as the input.
    command.args(["env", "MALLOC_ARENA_MAX=2", "RAYON_NUM_THREADS=2"]).arg(program.get_program());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(arguments).stdin(std::process::Stdio::null());
    command
}

fn limits_work() -> bool {
    let works = Command::new("prlimit").arg("--version").output().is_ok_and(|out| out.status.success());
    if !works {
        skipped("prlimit (util-linux) is not installed: no ceiling for memory can be set");
    }
    works
}

/// Runs under the limits and holds what every run must keep; `what` is what to look at when it does not.
fn survives(arguments: &[&str], what: &str) -> Ran {
    let ran = finish(&mut limited(arguments));
    let code = ran.status.code();
    assert!(matches!(code, Some(0..=2)), "{arguments:?} on {what}: {:?}: {}", ran.status, ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{arguments:?} on {what}: {}", ran.stderr);
    let line_ends = |c: char| matches!(c, '\n' | '\r') || c == '\t' && arguments.contains(&"report");
    for (name, out) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        let evil = out.chars().find(|c| acts(*c) && !line_ends(*c));
        assert_eq!(evil, None, "{name} of {arguments:?} on {what}");
        assert!(!out.replace("\r\n", "").contains('\r'), "{name} of {arguments:?} on {what}");
    }
    ran
}

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn files(path: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder(path)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Values that nobody expects.
fn odd(rng: &mut Rng) -> Value {
    let nested = (0..100).fold(json!(0), |inner, _| json!([inner]));
    let all = [
        json!(0),
        json!(-1),
        json!(1e-320),
        json!(1e308),
        json!(-1e308),
        json!(1u64 << 63),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.5),
        json!("NaN"),
        json!("Infinity"),
        json!("A".repeat(1 << 20)),
        json!(EVIL),
        json!(EVIL.repeat(100)),
        json!(""),
        nested,
        json!([]),
        json!({}),
        Value::Null,
        json!(true),
    ];
    all[rng.below(all.len() as u64) as usize].clone()
}

/// Pointers to all values of a record that hold no others.
fn leaves(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Array(all) if !all.is_empty() => {
            all.iter().enumerate().for_each(|(at, one)| leaves(one, format!("{path}/{at}"), found));
        }
        Value::Object(map) if !map.is_empty() => {
            for (key, one) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves(one, format!("{path}/{key}"), found);
            }
        }
        _ => found.push(path),
    }
}

/// A record with some of its values exchanged, or with its bytes damaged.
fn mutated(record: &Value, rng: &mut Rng) -> Vec<u8> {
    let mut whole = record.clone();
    let mut found = Vec::new();
    leaves(record, String::new(), &mut found);
    match rng.below(8) {
        0 => return damaged(&serde_json::to_vec(record).unwrap(), rng),
        // Every text evil, every structure whole.
        1 => {
            for path in &found {
                let value = whole.pointer_mut(path).unwrap();
                if value.is_string() && rng.below(2) == 0 {
                    *value = json!(format!("{}{EVIL}", value.as_str().unwrap_or_default()));
                }
            }
        }
        // Every number of one name.
        2 | 3 => {
            let name = found[rng.below(found.len() as u64) as usize].rsplit('/').next().unwrap().to_owned();
            let new = odd(rng);
            for path in found.iter().filter(|path| path.rsplit('/').next() == Some(&name)) {
                *whole.pointer_mut(path).unwrap() = new.clone();
            }
        }
        _ => {
            for _ in 0..1 + rng.below(4) {
                let path = &found[rng.below(found.len() as u64) as usize];
                *whole.pointer_mut(path).unwrap() = odd(rng);
            }
        }
    }
    serde_json::to_vec(&whole).unwrap()
}

/// Bytes with bits flipped, numbers exchanged, pieces cut out, repeated or nested.
fn damaged(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let place = |bytes: &[u8], rng: &mut Rng| rng.below(bytes.len().max(1) as u64) as usize;
    match rng.below(7) {
        0 => {
            for _ in 0..1 + rng.below(8) {
                let at = place(&bytes, rng);
                bytes[at] ^= 1 << rng.below(8);
            }
        }
        1 => bytes.truncate(place(&bytes, rng)),
        2 => {
            let (at, value) = (place(&bytes, rng), [0, 0xff, 0x7f, 0x80][rng.below(4) as usize]);
            let end = (at + 1 + rng.below(64) as usize).min(bytes.len());
            bytes[at..end].fill(value);
        }
        3 => bytes = exchanged(&bytes, rng),
        4 => {
            let copies = 1 + rng.below((1 << 18) / bytes.len().max(1) as u64 + 1) as usize;
            let (whole, at) = (bytes.clone(), place(&bytes, rng));
            bytes.splice(at..at, whole.repeat(copies));
        }
        5 => {
            let at = place(&bytes, rng);
            let new = [b"[".repeat(1 << 16), EVIL.as_bytes().to_vec(), b"9".repeat(1 << 16)];
            bytes.splice(at..at, new[rng.below(3) as usize].clone());
        }
        _ => {
            for _ in 0..8 {
                let at = place(&bytes, rng);
                let value = [u64::MAX, 1 << 63, 1 << 32, u64::from(u32::MAX), 0][rng.below(5) as usize];
                let size = [4, 8][rng.below(2) as usize];
                let end = (at + size).min(bytes.len());
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
        }
    }
    bytes
}

/// A text with some of its numbers exchanged.
fn exchanged(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    const NEW: [&str; 9] = [
        "0",
        "-1",
        "1e-320",
        "1e308",
        "NaN",
        "9223372036854775808",
        "18446744073709551615",
        "4294967296",
        "inf",
    ];
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && rng.below(4) == 0 {
            out.extend_from_slice(NEW[rng.below(NEW.len() as u64) as usize].as_bytes());
        } else {
            out.extend_from_slice(&bytes[at..at + digits.max(1)]);
        }
        at += digits.max(1);
    }
    out
}

#[test]
fn damaged_records() {
    if !limits_work() {
        return;
    }
    let mut rng = rng();
    let dir = directory();
    let path = dir.path().join("damaged.json");
    let damaged = text(&path);
    for golden in files("tests/command/records/1") {
        let record: Value = serde_json::from_slice(&std::fs::read(&golden).unwrap()).unwrap();
        let kind = golden.file_stem().unwrap().to_str().unwrap().to_owned();
        for case in 0..cases() {
            std::fs::write(&path, mutated(&record, &mut rng)).unwrap();
            let what = format!("{kind}, case {case}");
            let page = dir.path().join("page.html");
            survives(&["report", damaged, "--markdown"], &what);
            survives(&["report", damaged, "-o", text(&page)], &what);
            if let Ok(page) = std::fs::read_to_string(&page) {
                assert!(!page.contains(|c| acts(c) && !matches!(c, '\n' | '\t')), "page of {what}");
                std::fs::remove_file(dir.path().join("page.html")).unwrap();
            }
            survives(&["export", damaged], &what);
            survives(&["export", damaged, "--format", "fio-json"], &what);
            survives(&["export", damaged, "--format", "fio-job"], &what);
            survives(&["compare", damaged, text(&golden), "--force"], &what);
            survives(&["compare", text(&golden), damaged, "--force", "--json", "-"], &what);
            survives(&["merge", damaged], &what);
            survives(&["history", text(dir.path()), "--all"], &what);
            // Of another machine: refused before anything of it is replayed.
            let proved = survives(&["prove", damaged], &what);
            assert_ne!(proved.code(), 0, "{what}");
            let replayed = survives(&["replay", damaged, "--on", text(dir.path())], &what);
            assert_ne!(replayed.code(), 0, "{what}");
        }
    }
}

/// No number of a sound record makes a chart that never ends.
#[test]
fn odd_numbers_in_every_place_of_a_chart() {
    if !limits_work() {
        return;
    }
    let dir = directory();
    let path = dir.path().join("odd.json");
    for (name, key) in
        [("ratios", "blocks"), ("ratios", "miss_ratio"), ("simulated", "time_ns"), ("path", "value")]
    {
        let golden = folder("tests/command/records/1").join(format!("{name}.json"));
        let record: Value = serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
        let mut found = Vec::new();
        leaves(&record, String::new(), &mut found);
        let last = |path: &&String| path.rsplit('/').next() == Some(key);
        for new in [json!(1e-320), json!(1e308), json!(-1e308), json!(-1), json!(0)] {
            for (number, place) in found.iter().filter(last).enumerate().take(3) {
                let mut odd = record.clone();
                *odd.pointer_mut(place).unwrap() = new.clone();
                std::fs::write(&path, serde_json::to_vec(&odd).unwrap()).unwrap();
                let page = dir.path().join("page.html");
                survives(
                    &["report", text(&path), "-o", text(&page)],
                    &format!("{name} {key} {number} {new}"),
                );
            }
        }
    }
}

#[test]
fn damaged_traces() {
    if !limits_work() {
        return;
    }
    let mut rng = rng();
    let dir = directory();
    for golden in files("../trace/tests/golden") {
        let whole = std::fs::read(&golden).unwrap();
        let name = golden.file_name().unwrap().to_str().unwrap().to_owned();
        let format = iowhy(&["trace", "stat", text(&golden), "--json", "-"]).done().json();
        let format = format["format"].as_str().unwrap().to_owned();
        let path = dir.path().join(&name);
        for case in 0..cases() {
            std::fs::write(&path, damaged(&whole, &mut rng)).unwrap();
            let what = format!("{name}, case {case}");
            // By its content, and as what it was.
            let forced = ["--format", format.as_str()];
            let out = dir.path().join("out.csv");
            for more in [&[][..], &forced] {
                let run = |args: &[&str]| survives(&[args, &[text(&path)], more].concat(), &what);
                run(&["trace", "stat"]);
                run(&["mrc"]);
            }
            let run = |args: &[&str]| survives(&[args, &forced].concat(), &what);
            run(&["trace", "head", text(&path)]);
            run(&["trace", "convert", "--force", text(&path), text(&out)]);
            run(&["sim", "--machine", "nvme", "--trace", text(&path)]);
            run(&["sim", "--machine", "netbsd-1999", "--clients", "3", "--trace", text(&path)]);
        }
    }
}

/// A few MiB of requests that are each as large as the format allows, come all at once, or touch everything once.
#[test]
fn small_traces_of_large_requests() {
    if !limits_work() {
        return;
    }
    let dir = directory();
    let path = dir.path().join("large.oracleGeneral");
    let mut rng = rng();
    let mut write = |size: &mut dyn FnMut(&mut Rng) -> u32, objects: u64| {
        let mut bytes = Vec::new();
        for _ in 0..60_000 {
            bytes.extend_from_slice(&1u32.to_le_bytes());
            bytes.extend_from_slice(&rng.below(objects).to_le_bytes());
            bytes.extend_from_slice(&size(&mut rng).to_le_bytes());
            bytes.extend_from_slice(&(-1i64).to_le_bytes());
        }
        std::fs::write(&path, bytes).unwrap();
    };
    let format = ["--format", "oracleGeneral"];
    let run = |args: &[&str], what: &str| survives(&[args, &[text(&path)], &format].concat(), what);
    let all = |what: &str| {
        run(&["trace", "stat"], what);
        let curves = run(&["mrc"], what);
        let open = run(&["sim", "--machine", "nvme", "--trace"], what);
        let unlimited =
            ["sim", "--machine", "nvme", "--set", "cache.bytes=unlimited", "--clients", "3", "--trace"];
        let closed = run(&unlimited, what);
        [curves, open, closed]
    };
    write(&mut |_| u32::MAX, 4);
    let [curves, open, closed] = all("4 objects of 4 GiB");
    assert!(curves.code() == 2 && curves.stderr.contains("--block"), "{curves:?}");
    for ran in [open, closed] {
        assert!(
            ran.code() == 2 && ran.stderr.contains("--force") && ran.stderr.contains("--requests"),
            "{ran:?}"
        );
    }
    write(&mut |rng| rng.below(1 << 32) as u32, 1 << 40);
    let [curves, ..] = all("random sizes");
    assert!(curves.code() == 2 && curves.stderr.contains("--block"), "{curves:?}");
    write(&mut |_| 1 << 16, 1 << 40);
    all("everything once");
}

/// Names of files, of processes and in traces: on screens, in messages and hints, with colours on.
#[test]
fn evil_names_reach_no_screen() {
    let dir = directory();
    // A name holds no `/` and no NUL.
    let name = format!("{EVIL}.csv");
    let path = dir.path().join(&name);
    std::fs::write(&path, "time,id,size\n1,1,512\n2,2,512\n").unwrap();
    let missing = dir.path().join(format!("{EVIL}missing"));
    let (path, missing) = (text(&path), text(&missing));
    let golden = folder("tests/command/records/1/measured.json");
    let record = std::fs::read_to_string(&golden).unwrap();
    let mut record: Value = serde_json::from_str(&record).unwrap();
    let mut found = Vec::new();
    leaves(&record, String::new(), &mut found);
    for place in &found {
        let value = record.pointer_mut(place).unwrap();
        if ["name", "target", "command", "cpu", "kernel", "device_model"].iter().any(|k| place.ends_with(k))
            && value.is_string()
        {
            *value = json!(EVIL);
        }
    }
    let evil = dir.path().join("evil.json");
    std::fs::write(&evil, serde_json::to_vec(&record).unwrap()).unwrap();
    let evil = text(&evil);
    for arguments in [
        &["trace", "stat", path][..],
        &["trace", "head", path],
        &["mrc", path],
        &["sim", "--machine", "nvme", "--clients", "1", "--trace", path],
        &["bench", "--runtime", "1ms", "--method", "pread", path],
        &["bench", missing],
        &[missing],
        &["report", missing],
        &["report", evil, "--markdown"],
        &["compare", evil, evil],
        &["compare", missing, missing],
        &["export", evil],
        &["export", evil, "--format", "fio-job"],
        &["export", evil, "--format", "fio-json"],
        &["history", text(dir.path()), "--all"],
        &["prove", evil],
        &["replay", evil, "--on", missing],
        &["attach", EVIL],
        &["explain", EVIL],
        &["stripe", "lint", missing],
        &["tree", "--from", missing],
        &["doctor", missing],
        &["classic", EVIL],
        &["sim", "--machine", EVIL, "--workload", EVIL],
        &["sim", "--set", EVIL, "--workload", "random-4k"],
        &["bench", EVIL, EVIL, EVIL],
        &[EVIL, EVIL],
        &["--", EVIL],
    ] {
        for colour in ["never", "always"] {
            let ran = finish(
                binary()
                    .args(arguments.iter().take_while(|a| **a != "--"))
                    .args(["--color", colour])
                    .args(arguments.iter().skip_while(|a| **a != "--")),
            );
            for (stream, out) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
                let shown = anstream_free(out);
                let evil = shown.chars().find(|c| acts(*c) && !matches!(c, '\n' | '\r'));
                assert_eq!(evil, None, "{stream} of {arguments:?} with colour {colour}: {out:?}");
                assert!(
                    !out.contains("\u{1b}[31mEVIL"),
                    "{stream} of {arguments:?} with colour {colour}: {out:?}"
                );
                assert!(!shown.replace("\r\n", "").contains('\r'), "{stream} of {arguments:?}: {out:?}");
            }
        }
    }
}

/// Without the colours that iowhy itself sets.
fn anstream_free(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        out.push_str(&rest[..at]);
        let code = &rest[at + 2..];
        let end = code.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(code.len());
        if code[end..].starts_with('m') {
            rest = &code[end + 1..];
        } else {
            out.push('\u{1b}');
            rest = code;
        }
    }
    out.push_str(rest);
    out
}
