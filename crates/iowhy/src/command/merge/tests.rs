//! Merges of records whose ranks are known: made of one record of a real run, each a little different. Screens are compared with
//! the expected ones of the binary.

use std::path::{Path, PathBuf};

use iowhy_core::layer::Layer;
use iowhy_core::rng::Rng;
use iowhy_view::document::Detail;
use iowhy_view::terminal::{screen, sparkline::Marks};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::{merged, reasons};
use super::*;
use crate::screen::merge::chapter;

const EXPECTED: &str = "tests/command/expected";

/// The run that all ranks are made of.
fn sample() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/records/1/watched.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The rank of a job of so many on hosts of four, and its record: each part a little longer or shorter.
fn of_rank(rank: u64, ranks: u64) -> Value {
    let mut record = sample();
    let mut rng = Rng::new(rank + 1);
    let mut noise = || 1.0 + 0.02 * (rng.unit() + rng.unit() - 1.0);
    let mut wall = 0.0;
    for operation in record["operations"].as_array_mut().unwrap() {
        for layer in operation["layers"].as_array_mut().unwrap() {
            let time = layer["wall_s"].as_f64().unwrap() * noise();
            layer["wall_s"] = time.into();
            wall += time;
        }
    }
    record["wall_s"] = wall.into();
    let host = rank / 4;
    record["rank"] = json!({
        "rank": rank, "ranks": ranks, "believed": ["PMI_RANK", "PMI_SIZE"], "host": format!("node{host}"),
        "boot_id": format!("boot-{host}"), "job": "SLURM_JOB_ID=4711 SLURM_STEP_ID=0",
        "started_unix_s": 1_790_000_000.0 + 0.01 * rank as f64
    });
    record
}

/// Adds time to the device's part of the first operation.
fn slower(record: &mut Value, seconds: f64) {
    let layers = record["operations"][0]["layers"].as_array_mut().unwrap();
    let device = layers.iter_mut().find(|layer| layer["id"] == "device").unwrap();
    device["wall_s"] = (device["wall_s"].as_f64().unwrap() + seconds).into();
    record["wall_s"] = (record["wall_s"].as_f64().unwrap() + seconds).into();
}

/// Records of a job in files of a directory.
struct Job {
    folder: TempDir,
    files: Vec<PathBuf>,
}

impl Job {
    fn new(ranks: u64, change: impl Fn(u64, &mut Value)) -> Job {
        let mut job = Job { folder: tempfile::tempdir().unwrap(), files: Vec::new() };
        for rank in 0..ranks {
            let mut record = of_rank(rank, ranks);
            change(rank, &mut record);
            job.put(&format!("run-{rank}.json"), record.to_string().as_bytes());
        }
        job
    }

    fn put(&mut self, name: &str, text: &[u8]) {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        if !self.files.contains(&path) {
            self.files.push(path);
        }
    }

    fn merged(&self) -> Result<MergeRecord, Problem> {
        merged(&self.files, 0.05, true)
    }

    /// The record, without the directory of the test.
    fn record(&self) -> MergeRecord {
        let mut record = self.merged().unwrap();
        let short =
            |text: &mut String| *text = text.replace(&format!("{}/", self.folder.path().display()), "");
        record.command = "iowhy merge 'run-*.json'".to_owned();
        record.ranks.iter_mut().for_each(|line| short(&mut line.file));
        record.left_out.iter_mut().for_each(|left| {
            short(&mut left.file);
            short(&mut left.reason);
        });
        record
    }

    fn refused(&self, says: &[&str]) {
        let problem = self.merged().expect_err("it is refused");
        assert_eq!(problem.exit_code(), 2, "{problem}");
        assert!(problem.hint.is_some(), "{problem}");
        assert!(says.iter().all(|word| problem.message.contains(word)), "{problem}");
    }
}

/// Sixteen ranks of which one is slow, and a job in which much went wrong.
fn jobs() -> [(&'static str, MergeRecord); 2] {
    let slow = Job::new(16, |rank, record| {
        if rank == 13 {
            slower(record, 0.4);
            record["findings"][0]["id"] = "throttled".into();
        }
    });
    let mut wrong = Job::new(9, |rank, record| match rank {
        3 => record["exit"] = json!({"signal": 9}),
        5 => record["iowhy"] = "0.0.9".into(),
        6 => record["rank"]["started_unix_s"] = 1_790_000_100.0.into(),
        7 => record["tier"] = "stacks".into(),
        _ => {}
    });
    wrong.files.remove(1);
    let whole = std::fs::read(&wrong.files[1]).unwrap();
    wrong.put("run-2.json", &whole[..whole.len() / 2]);
    wrong.put("notes.json", b"[1, 2]");
    [("slow", slow.record()), ("wrong", wrong.record())]
}

#[test]
fn screens_are_as_expected() {
    for (name, record) in jobs() {
        for width in [80, 100] {
            let got = screen(&chapter(&record, Detail::Screen), width, Marks::Blocks);
            let got = anstream::adapter::strip_str(&got).to_string();
            assert!(got.lines().all(|line| line.chars().count() <= width), "{width}: {got}");
            let file = format!("merge-{name}-{width}.txt");
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(EXPECTED).join(&file);
            if std::env::var_os("IOWHY_UPDATE").is_some() {
                std::fs::write(&path, &got).unwrap();
            }
            let expected = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(expected == got, "{file} differs from (IOWHY_UPDATE=1 rewrites it):\n{got}");
        }
    }
}

/// The record of the slow rank is kept for the tests of all records; the same code made it.
#[test]
fn the_kept_record_is_what_a_merge_writes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/records/1/merged.json");
    let [(_, record), _] = jobs();
    let written = serde_json::to_string_pretty(&record).unwrap() + "\n";
    if std::env::var_os("IOWHY_UPDATE").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == written, "merged.json differs (IOWHY_UPDATE=1 rewrites it)");
    assert!(serde_json::from_str::<MergeRecord>(&kept).is_ok());
}

#[test]
fn a_slow_rank_is_named_with_layer_and_host_and_the_account_closes() {
    let [(_, record), _] = jobs();
    let [slow] = record.stragglers.as_slice() else { panic!("{:?}", record.stragglers) };
    assert_eq!((slow.rank, slow.host.as_str(), slow.layer), (13, "node3", Some(Layer::Device)));
    assert!((slow.layer_excess_s.unwrap() - 0.4).abs() < 0.05, "{slow:?}");
    assert_eq!(record.hosts.iter().map(|host| host.stragglers).collect::<Vec<_>>(), [0, 0, 0, 1]);
    let throttled = record.findings.iter().find(|finding| finding.id == FindingId::Throttled).unwrap();
    assert_eq!(throttled.ranks, [13]);
    let median: f64 = record.layers.iter().map(|layer| layer.time.median_ns).sum();
    assert!((median / record.wall.median_ns - 1.0).abs() < 0.05, "layers make up the wall time");
    assert_eq!(reasons(&record), []);
}

#[test]
fn what_went_wrong_is_named_and_the_rest_is_merged() {
    let [_, (_, record)] = jobs();
    assert_eq!(record.ranks.len(), 7);
    assert_eq!(record.missing, [RankRange { first: 1, last: 2 }]);
    let files: Vec<&str> = record.left_out.iter().map(|left| left.file.as_str()).collect();
    assert_eq!(files, ["run-2.json", "notes.json"]);
    assert!(record.left_out[0].reason.contains("cut off"), "{:?}", record.left_out);
    assert!(record.left_out[1].reason.contains("no record of iowhy"), "{:?}", record.left_out);
    let codes: Vec<&str> = record.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["versions", "clocks"]);
    assert!(record.parts_doubt.as_ref().is_some_and(|doubt| doubt.contains("stacks")));
    let told: Vec<String> = reasons(&record).into_iter().map(|reason| reason.message).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("2 files were left out") && told[1].contains("ranks 1-2 of 9"), "{told:?}");
    assert!(told[2].contains("rank 3: killed by signal 9"), "{told:?}");
}

#[test]
fn contradictions_between_files_are_refused() {
    let mut twice = Job::new(3, |_, _| {});
    twice.put("other.json", of_rank(1, 3).to_string().as_bytes());
    twice.refused(&["rank 1 stands in two records", "run-1.json", "other.json"]);
    let job = |rank: u64, record: &mut Value| {
        if rank == 2 {
            record["rank"]["job"] = "SLURM_JOB_ID=4712 SLURM_STEP_ID=0".into();
        }
    };
    Job::new(3, job).refused(&["of two jobs", "4711", "4712"]);
    let ranks = |rank: u64, record: &mut Value| {
        if rank == 2 {
            record["rank"]["ranks"] = 8.into();
        }
    };
    Job::new(3, ranks).refused(&["of two jobs", "3 ranks and 8 ranks"]);
    let beyond = |rank: u64, record: &mut Value| {
        if rank == 2 {
            record["rank"]["rank"] = 7.into();
        }
    };
    Job::new(3, beyond).refused(&["is of rank 7", "has 3"]);
}

#[test]
fn without_a_usable_file_the_first_reason_is_told() {
    let alone = |_: u64, record: &mut Value| {
        record.as_object_mut().unwrap().remove("rank");
    };
    Job::new(2, alone).refused(&["run-0.json", "holds no rank", "1 other file is of no use either"]);
    for (text, says) in [
        ("", "is empty"),
        ("{", "cut off"),
        ("hello", "is no JSON"),
        ("{\"kind\": \"doctor\", \"schema\": 1}", "a record of another kind: doctor"),
        ("{\"kind\": \"watched-program\", \"schema\": 99}", "has format 99"),
        ("{\"kind\": \"watched-program\", \"schema\": 1}", "is a damaged record"),
    ] {
        let mut job = Job::new(0, |_, _| {});
        job.put("run.json", text.as_bytes());
        job.refused(&["run.json", says]);
    }
    let mut job = Job::new(0, |_, _| {});
    job.files.push(job.folder.path().join("not-there.json"));
    job.refused(&["cannot read", "not-there.json"]);
    Job::new(0, |_, _| {}).refused(&["no record to merge"]);
}

#[test]
fn figures_that_no_measurement_gives_cost_their_rank_alone() {
    let job = Job::new(4, |rank, record| match rank {
        0 => record["wall_s"] = 1e300.into(),
        1 => record["operations"][0]["layers"][0]["wall_s"] = (-1.0).into(),
        2 => record["rank"]["ranks"] = u64::MAX.into(),
        _ => record["rank"]["ranks"] = Value::Null,
    });
    let record = job.record();
    assert_eq!(record.left_out.iter().map(|left| left.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(record.missing, [RankRange { first: 4, last: u64::MAX - 1 }]);
}

#[test]
fn two_machines_of_one_name_and_other_programs_are_told() {
    let record = Job::new(6, |rank, record| {
        record["rank"]["host"] = "localhost".into();
        record["subject"] = if rank < 3 { "./solver" } else { "./writer" }.into();
        slower(record, rank as f64);
    })
    .record();
    assert_eq!(
        record.warnings.iter().map(|warning| warning.code.as_str()).collect::<Vec<_>>(),
        ["host-names"]
    );
    assert_eq!(record.hosts.len(), 2);
    assert!(record.stragglers.is_empty() && record.stragglers_doubt.unwrap().contains("different programs"));
    let record = Job::new(2, |rank, record| slower(record, 9.0 * rank as f64)).record();
    assert!(record.stragglers_doubt.unwrap().contains("2 ranks are too few"));
}

/// Names and texts of a record may come from anybody.
#[test]
fn what_acts_on_a_terminal_is_escaped() {
    let record = Job::new(3, |rank, record| {
        record["rank"]["host"] = format!("node\u{1b}[2J{rank}").into();
        record["subject"] = "a\u{1b}]0;x\u{7}".into();
    })
    .record();
    let shown = screen(&chapter(&record, Detail::Screen), 100, Marks::Blocks);
    assert!(!anstream::adapter::strip_str(&shown).to_string().contains('\u{7}'));
    assert!(record.hosts.iter().all(|host| !host.host.contains('\u{1b}')), "{:?}", record.hosts);
}

/// What is kept of a rank does not grow with its record, and ten thousand are merged as four are.
#[test]
fn ten_thousand_ranks_are_one_account() {
    const RANKS: u64 = 10_000;
    let mut gathered = Gathered::default();
    let mut rng = Rng::new(23);
    for rank in (0..RANKS).filter(|rank| *rank != 77) {
        let mut record = of_rank_short();
        // Three uniform draws have tails as a sum of times has.
        let noise = 1.0 + 0.01 * (rng.unit() + rng.unit() + rng.unit() - 1.5);
        let slow = if rank % 2500 == 1200 { 1.0 } else { 0.0 };
        record.operations[0].layers[0].wall_s = noise + slow;
        record.wall_s = noise + slow;
        let place = RankRecord {
            rank,
            ranks: Some(RANKS),
            host: format!("node{}", rank / 64),
            ..RankRecord::default()
        };
        gathered.keep(format!("run-{rank}.json"), place, record).unwrap();
    }
    let record = gathered.finish(0.05).unwrap();
    assert_eq!((record.ranks.len(), record.hosts.len()), (9999, 157));
    assert_eq!(record.missing, [RankRange { first: 77, last: 77 }]);
    let mut slow: Vec<u64> = record.stragglers.iter().map(|straggler| straggler.rank).collect();
    slow.sort_unstable();
    assert_eq!(slow, [1200, 3700, 6200, 8700]);
    assert!((record.wall.median_ns / 1e9 - 1.0).abs() < 0.01);
}

fn of_rank_short() -> OfRank {
    serde_json::from_value(json!({
        "iowhy": "0.1.0", "subject": "./app", "wall_s": 1.0, "exit": {"code": 0}, "tier": "observer",
        "operations": [{"id": "read", "layers": [{"id": "device", "wall_s": 1.0}]}], "findings": []
    }))
    .unwrap()
}
