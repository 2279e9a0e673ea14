//! Known answers and laws for block requests.

use proptest::prelude::*;

use super::*;

const DISK: (u32, u32) = (8, 0);

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert,
    Issue,
    Complete,
}

struct Names;

impl Tasks for Names {
    fn owner(&self, _pid: u32, tid: u32, name: &str) -> Owner {
        match (tid, name) {
            (1..=9, _) => Owner::Own,
            (_, "kworker" | "jbd2") => Owner::Kernel,
            _ => Owner::Other,
        }
    }

    fn identify(&self, pid: u32) -> Known {
        Known { name: None, command: (pid != 52).then(|| format!("program {pid}")) }
    }
}

fn feed(
    t: &mut BlockTracer,
    step: Step,
    (time_ns, tid, task): (u64, u32, &str),
    sector: u64,
    bytes: u64,
    flags: &str,
) {
    let request = BlockRequest { device: DISK, sector, bytes, flags, task };
    let trace = match step {
        Step::Insert => Trace::BlockInsert(request),
        Step::Issue => Trace::BlockIssue(request),
        Step::Complete => Trace::BlockComplete(request),
    };
    t.event(&Event { time_ns, cpu: 0, pid: tid, tid, kind: Kind::Trace(trace) }, &Names, None);
}

#[test]
fn two_overlapping_reads_of_the_program() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Insert, (0, 1, "dd"), 0, 4096, "R");
    feed(&mut t, Step::Issue, (10, 1, "dd"), 0, 4096, "R");
    feed(&mut t, Step::Issue, (20, 1, "dd"), 8, 8192, "RA");
    feed(&mut t, Step::Complete, (110, 0, ""), 0, 4096, "R");
    feed(&mut t, Step::Complete, (120, 0, ""), 8, 8192, "RA");
    let s = t.finish(None);
    assert_eq!((s.own_requests, s.own_reads, s.own_reads_adjacent), (2, 2, 1));
    assert_eq!((s.own_read_bytes, s.own_read_ahead_bytes, s.own_written_bytes), (12_288, 8192, 0));
    assert_eq!((s.queue_ns, s.device_ns, s.pairs), (Some(10.0), Some(100.0), 2));
    // 200 ns of requests in 110 ns of busy time.
    assert!((s.in_flight.unwrap() - 200.0 / 110.0).abs() < 1e-12);
    assert!(s.completions_seen);
}

#[test]
fn the_task_that_inserted_owns_what_a_kernel_thread_issues() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Insert, (0, 1, "pg"), 64, 512, "WS");
    feed(&mut t, Step::Issue, (5, 40, "kworker"), 64, 512, "WS");
    feed(&mut t, Step::Issue, (6, 41, "jbd2"), 128, 1024, "WS");
    feed(&mut t, Step::Issue, (7, 0, "swapper/0"), 256, 1024, "W");
    feed(&mut t, Step::Issue, (8, 50, "cp"), 512, 2048, "R");
    feed(&mut t, Step::Issue, (9, 51, "tar"), 1024, 512, "R");
    feed(&mut t, Step::Insert, (10, 52, "tar"), 2048, 512, "R");
    feed(&mut t, Step::Issue, (11, 1, "pg"), 2048, 512, "R");
    let s = t.finish(None);
    assert_eq!((s.own_requests, s.own_written_bytes, s.kernel_requests), (1, 512, 2));
    let others: Vec<_> = s.others.iter().map(|o| (o.name.as_str(), o.pid, o.requests, o.bytes)).collect();
    assert_eq!(others, [("cp", 50, 1, 2048), ("tar", 51, 1, 512), ("tar", 52, 1, 512)]);
    assert_eq!((s.others[0].command.as_deref(), s.others[2].command.as_deref()), (Some("program 50"), None));
}

#[test]
fn a_request_that_the_driver_handed_back_is_still_the_programs_and_counted_once() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Insert, (0, 1, "dd"), 0, 4096, "R");
    feed(&mut t, Step::Issue, (10, 1, "dd"), 0, 4096, "R");
    feed(&mut t, Step::Issue, (40, 41, "kworker"), 0, 4096, "R");
    feed(&mut t, Step::Issue, (50, 60, "cp"), 0, 4096, "R");
    feed(&mut t, Step::Complete, (90, 0, ""), 0, 4096, "R");
    assert_eq!(t.issued(), Issued { own: 1, completed: 1, ..Issued::default() });
    // Without a scheduler nothing is inserted: a thread that issues has a request of its own.
    feed(&mut t, Step::Issue, (100, 1, "dd"), 8, 4096, "R");
    feed(&mut t, Step::Issue, (200, 60, "cp"), 8, 4096, "R");
    assert_eq!((t.issued().own, t.issued().others), (2, 1));
    assert_eq!(t.finish(None).device_ns, None);
}

#[test]
fn lost_completions_are_said_and_give_no_times() {
    let mut t = BlockTracer::new();
    for i in 0..100 {
        feed(&mut t, Step::Issue, (i * 100, 1, "dd"), i * 8, 4096, "R");
        if i % 50 == 0 {
            feed(&mut t, Step::Complete, (i * 100 + 60, 0, ""), i * 8, 4096, "R");
        }
    }
    let s = t.finish(None);
    assert!(!s.completions_seen);
    assert_eq!((s.pairs, s.device_ns, s.in_flight), (2, None, None));
    assert_eq!((s.own_reads, s.own_reads_adjacent), (100, 99));
}

#[test]
fn a_request_that_completes_in_parts_is_one_pair_and_strays_are_tolerated() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Complete, (1, 0, ""), 4, 512, "R");
    feed(&mut t, Step::Issue, (10, 1, "dd"), 0, 4096, "R");
    feed(&mut t, Step::Complete, (20, 0, ""), 0, 1024, "R");
    feed(&mut t, Step::Complete, (30, 0, ""), 2, 3072, "R");
    let s = t.finish(None);
    assert_eq!((s.pairs, s.device_ns, s.in_flight), (1, Some(20.0), Some(1.0)));
}

#[test]
fn a_program_that_leaves_writing_to_the_kernel_gets_the_kernels_times() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Issue, (0, 40, "kworker"), 0, 4096, "W");
    feed(&mut t, Step::Complete, (70, 0, ""), 0, 4096, "W");
    let s = t.finish(None);
    assert_eq!((s.own_requests, s.kernel_requests, s.device_ns), (0, 1, Some(70.0)));
}

#[test]
fn flushes_count_as_requests_without_bytes() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Issue, (0, 1, "pg"), 0, 0, "FF");
    feed(&mut t, Step::Complete, (9, 0, ""), 0, 0, "FF");
    let s = t.finish(None);
    assert_eq!((s.own_requests, s.own_reads, s.own_written_bytes, s.device_ns), (1, 0, 0, Some(9.0)));
}

proptest! {
    #[test]
    fn random_streams_conserve_requests(steps in prop::collection::vec(
        (0_u8..3, any::<u64>(), 0_u32..60, 0_usize..4, prop_oneof![0_u64..64, any::<u64>()], prop_oneof![0_u64..8192, any::<u64>()], 0_usize..6),
        0..300,
    )) {
        let mut t = BlockTracer::new();
        let mut issues = 0;
        let mut again = 0;
        for (step, time, tid, task, sector, bytes, flags) in steps {
            let step = [Step::Insert, Step::Issue, Step::Complete][step as usize];
            let before = t.issued();
            issues += u64::from(matches!(step, Step::Issue));
            let (task, flags) = (["dd", "kworker", "cp", ""][task], ["R", "RA", "W", "FF", "FWS", ""][flags]);
            feed(&mut t, step, (time, tid, task), sector, bytes, flags);
            again += u64::from(matches!(step, Step::Issue) && t.issued() == before);
        }
        let issued = t.issued();
        let s = t.finish(None);
        prop_assert_eq!(s.own_requests + s.kernel_requests + issued.others + again, issues);
        prop_assert_eq!(s.others.iter().map(|o| o.requests).sum::<u64>(), issued.others);
        prop_assert!(issued.completed <= issues && s.pairs <= issued.completed);
        prop_assert!(s.own_read_ahead_bytes <= s.own_read_bytes && s.own_reads_adjacent <= s.own_reads);
        if let Some(depth) = s.in_flight {
            prop_assert!(depth.is_finite() && depth >= 0.0);
        }
    }
}
