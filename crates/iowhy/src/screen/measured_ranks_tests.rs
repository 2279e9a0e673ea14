//! The screen of ranks that are made up: verdict, slow rank, and what stands behind both.

use iowhy_core::environment::Environment;
use iowhy_core::workload::Direction;
use iowhy_path::ranks::RankSlice;

use super::*;
use crate::record::measured_ranks::{HostOfMeasuredRanks, MemberOfRun};
use crate::record::{Kind, SCHEMA};
use crate::screen;

/// Eight ranks on two hosts, one of them slow, measured as 1, 4 and 8; they wait for `waits` of their time, and reach this together.
fn record(waits: f64, together: impl Fn(u64) -> u64) -> MeasuredRanksRecord {
    let slice = |ranks: u64, rank: u64, round: u32| {
        let slow = ranks == 8 && rank == 5;
        let bytes = together(ranks) / ranks / if slow { 4 } else { 1 };
        RankSlice {
            rank,
            round,
            start_ns: i64::from(round) * 2_000_000_000 + rank as i64 * 1000,
            wall_ns: 1_000_000_000,
            first_done_ns: 900_000_000,
            requests: bytes >> 16,
            bytes,
            thread_ns: 1_000_000_000,
            cpu_ns: ((1.0 - waits) * 6e8) as u64,
            run_delay_ns: ((1.0 - waits) * 4e8) as u64,
        }
    };
    let slice = &slice;
    let steps: Vec<Step> = [1, 4, 8]
        .into_iter()
        .map(|ranks| {
            let slices = (0..12).flat_map(|round| (0..ranks).map(move |rank| slice(ranks, rank, round)));
            Step::new(ranks, slices, 1)
        })
        .collect();
    let host = |host: &str, ranks: std::ops::Range<u64>| HostOfMeasuredRanks {
        host: host.to_owned(),
        boot_id: None,
        ranks: ranks.collect(),
        clock_lead_ns: 0,
        clock_error_ns: 0,
        clock_was_set: false,
    };
    MeasuredRanksRecord {
        schema: SCHEMA,
        kind: Kind::MeasuredRanks,
        iowhy: "0".to_owned(),
        command: "iowhy bench --scale 1,4,8 /shared".to_owned(),
        environment: Environment::default(),
        target: "/shared".to_owned(),
        job: Some("SLURM_JOB_ID=4711 SLURM_STEP_ID=0".to_owned()),
        started_here: false,
        believed: vec!["SLURM_PROCID".to_owned(), "SLURM_NTASKS".to_owned()],
        rounds: 12,
        seed: 1,
        warnings: Vec::new(),
        ranks: (0..8)
            .map(|rank| MemberOfRun { rank, host: if rank < 4 { "node1" } else { "node2" }.to_owned() })
            .collect(),
        hosts: vec![host("node1", 0..4), host("node2", 4..8)],
        cells: vec![CellOfRanks {
            method: "direct".to_owned(),
            pattern: "permuted".to_owned(),
            direction: Direction::Read,
            state: "direct".to_owned(),
            state_check: StateCheck::Verified,
            violated: None,
            block_bytes: 64 << 10,
            region_bytes: 256 << 20,
            threads: 1,
            depth: 1,
            scale: Some(Scale::new(&steps, 1)),
            steps,
        }],
    }
}

fn shown(record: &MeasuredRanksRecord, width: usize) -> String {
    anstream::adapter::strip_str(&screen::text(&chapter(record, Detail::Screen), width)).to_string()
}

#[test]
fn the_verdict_is_first_and_names_the_slow_rank_with_its_host() {
    let text = shown(&record(0.9, |_| 800 << 20), 100);
    for words in [
        "8 ranks in /shared",
        "on 2 hosts, job SLURM_JOB_ID=4711 SLURM_STEP_ID=0, by SLURM_PROCID and SLURM_NTASKS",
        "server-bound: from 4 to 8 ranks throughput grows by the factor 0.906",
        "(in proportion: 2.0), and each rank waits 90",
        "Rank 5 on node2 is the slowest: 0.25",
        "slowest in 12 of 12 rounds",
        "of the others",
    ] {
        assert!(text.replace("\n  ", " ").contains(words), "{words}: {text}");
    }
    assert!(!text.contains("All ranks are on one host"), "{text}");
    let mut one = record(0.9, |_| 800 << 20);
    one.hosts.truncate(1);
    assert!(shown(&one, 200).contains("All ranks are on one host"));
}

#[test]
fn every_verdict_says_why_and_what_would_show_more() {
    for (waits, grows, words) in [
        (0.1, true, "client-bound: with 8 ranks each runs 54"),
        (0.9, true, "undecided: from 4 to 8 ranks throughput grows"),
        (0.5, true, "undecided: with 8 ranks each waits 50"),
    ] {
        let text = shown(&record(waits, |ranks| if grows { ranks * (100 << 20) } else { 100 << 20 }), 200);
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(shown(&record(0.9, |ranks| ranks * (100 << 20)), 200).contains("`--iodepth` show it"));
}

#[test]
fn no_line_is_wider_than_the_screen_and_many_ranks_are_cut_to_the_slowest() {
    let record = record(0.9, |_| 800 << 20);
    for width in [80, 100] {
        let text = shown(&record, width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }
    let mut many = record;
    let slices = (0..12).flat_map(|round| {
        (0..100).map(move |rank| RankSlice {
            rank,
            round,
            wall_ns: 1_000_000_000,
            bytes: if rank == 77 { 1 << 20 } else { 4 << 20 },
            thread_ns: 1_000_000_000,
            ..RankSlice::default()
        })
    });
    many.cells[0].steps = vec![Step::new(100, slices, 1)];
    many.cells[0].scale = None;
    let text = shown(&many, 100);
    assert!(
        text.contains("84 faster ranks in the record alone") && text.contains("100 ranks together: "),
        "{text}"
    );
    // The heading of the ranks is the last line with these words; a sentence above has them too.
    let lines: Vec<&str> = text.lines().collect();
    let heading = lines.iter().rposition(|line| line.contains("of the others")).unwrap();
    let first = lines[heading + 1];
    assert!(first.trim_start().starts_with("77"), "{text}");
}
