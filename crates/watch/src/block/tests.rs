//! Known answers and laws for block requests.

use proptest::prelude::*;

use super::*;

const DISK: (u32, u32) = (8, 0);

struct Names;

impl Tasks for Names {
    fn is_own(&self, tid: u32) -> bool {
        (1..=9).contains(&tid)
    }

    fn identify(&self, pid: u32) -> Known {
        Known { name: None, command: (pid != 52).then(|| format!("program {pid}")) }
    }
}

const READ: Operation = Operation::Read { ahead: false };

/// A request that lies in the kernel where it lies on the disk.
fn request(step: Step, task: &str, sector: u64, bytes: u64, operation: Operation) -> BlockRequest<'_> {
    let by_kernel = ["kworker", "jbd2"].contains(&task);
    let address = sector;
    let metadata = false;
    BlockRequest { step, address, device: DISK, sector, bytes, operation, by_kernel, metadata, task, lost: 0 }
}

fn take(t: &mut BlockTracer, (time_ns, tid): (u64, u32), request: BlockRequest<'_>) {
    t.event(&Event { time_ns, cpu: 0, pid: tid, tid, kind: Kind::Request(request) }, &Names, None);
}

fn feed(
    t: &mut BlockTracer,
    step: Step,
    (time_ns, tid, task): (u64, u32, &str),
    sector: u64,
    bytes: u64,
    operation: Operation,
) {
    take(t, (time_ns, tid), request(step, task, sector, bytes, operation));
}

#[test]
fn kept_requests_have_the_times_of_their_steps_and_their_owners() {
    let mut t = BlockTracer::new();
    t.keep();
    feed(&mut t, Step::Inserted, (0, 1, "dd"), 0, 8192, READ);
    feed(&mut t, Step::Issued, (10, 51, "kworker"), 0, 8192, READ);
    feed(&mut t, Step::Issued, (20, 51, "other"), 80, 4096, Operation::Write);
    // Handed back by the driver, and issued again; done in two parts.
    feed(&mut t, Step::Inserted, (30, 51, "kworker"), 0, 8192, READ);
    feed(&mut t, Step::Issued, (40, 51, "kworker"), 0, 8192, READ);
    feed(&mut t, Step::Done, (100, 0, ""), 0, 4096, READ);
    feed(&mut t, Step::Done, (120, 0, ""), 0, 4096, READ);
    feed(&mut t, Step::Done, (130, 0, ""), 80, 4096, Operation::Write);
    let KeptRequests { requests: kept, full_ns, others_full_ns } = t.requests().unwrap();
    assert_eq!((kept.len(), full_ns, others_full_ns), (2, None, None));
    let (read, write) = (&kept[0], &kept[1]);
    assert_eq!((read.owner, read.tid, read.sector, read.bytes), (Owner::Own, 1, 0, 8192));
    assert_eq!((read.inserted_ns, read.issued_ns, read.done_ns), (Some(0), 40, 120));
    assert_eq!(
        (write.owner, write.program.as_deref(), write.operation),
        (Owner::Other, Some("other"), Operation::Write)
    );
    assert_eq!((write.inserted_ns, write.issued_ns, write.done_ns), (None, 20, 130));
    assert!(t.requests().is_none());
}

#[test]
fn a_busy_neighbour_does_not_take_the_room_of_the_program() {
    let mut t = BlockTracer::new();
    t.keep();
    for n in 0..130_000 {
        feed(&mut t, Step::Issued, (n * 10, 51, "other"), 80, 4096, READ);
        feed(&mut t, Step::Done, (n * 10 + 5, 0, ""), 80, 4096, READ);
    }
    feed(&mut t, Step::Issued, (2_000_000, 1, "dd"), 0, 4096, READ);
    feed(&mut t, Step::Done, (2_000_010, 0, ""), 0, 4096, READ);
    let kept = t.requests().unwrap();
    assert_eq!(kept.requests.len(), 125_001);
    assert_eq!((kept.full_ns, kept.others_full_ns), (None, Some(1_250_005)));
}

#[test]
fn inodes_and_directories_are_told_from_files_until_the_device_has_them() {
    let mut t = BlockTracer::new();
    t.keep();
    take(&mut t, (0, 1), BlockRequest { metadata: true, ..request(Step::Issued, "dd", 0, 4096, READ) });
    feed(&mut t, Step::Done, (10, 0, ""), 0, 4096, READ);
    feed(&mut t, Step::Issued, (20, 1, "dd"), 80, 8192, READ);
    feed(&mut t, Step::Done, (30, 0, ""), 80, 8192, READ);
    let kept = t.requests().unwrap().requests;
    assert_eq!([kept[0].metadata, kept[1].metadata], [true, false]);
    let s = t.finish(None);
    assert_eq!((s.own_read_bytes, s.own_metadata_bytes), (12_288, 4096));
}

#[test]
fn two_overlapping_reads_of_the_program() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Inserted, (0, 1, "dd"), 0, 4096, READ);
    feed(&mut t, Step::Issued, (10, 1, "dd"), 0, 4096, READ);
    feed(&mut t, Step::Issued, (20, 1, "dd"), 8, 8192, Operation::Read { ahead: true });
    feed(&mut t, Step::Done, (110, 0, ""), 0, 4096, READ);
    feed(&mut t, Step::Done, (120, 0, ""), 8, 8192, Operation::Read { ahead: true });
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
    feed(&mut t, Step::Inserted, (0, 1, "pg"), 64, 512, Operation::Write);
    feed(&mut t, Step::Issued, (5, 40, "kworker"), 64, 512, Operation::Write);
    feed(&mut t, Step::Issued, (6, 41, "jbd2"), 128, 1024, Operation::Write);
    feed(&mut t, Step::Issued, (7, 0, "swapper/0"), 256, 1024, Operation::Write);
    feed(&mut t, Step::Issued, (8, 50, "cp"), 512, 2048, READ);
    feed(&mut t, Step::Issued, (9, 51, "tar"), 1024, 512, READ);
    feed(&mut t, Step::Inserted, (10, 52, "tar"), 2048, 512, READ);
    feed(&mut t, Step::Issued, (11, 1, "pg"), 2048, 512, READ);
    let s = t.finish(None);
    assert_eq!((s.own_requests, s.own_written_bytes, s.kernel_requests), (1, 512, 2));
    let others: Vec<_> = s.others.iter().map(|o| (o.name.as_str(), o.pid, o.requests, o.bytes)).collect();
    assert_eq!(others, [("cp", 50, 1, 2048), ("tar", 51, 1, 512), ("tar", 52, 1, 512)]);
    assert_eq!((s.others[0].command.as_deref(), s.others[2].command.as_deref()), (Some("program 50"), None));
}

#[test]
fn a_request_that_the_driver_handed_back_is_still_the_programs_and_counted_once() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Inserted, (0, 1, "dd"), 0, 4096, READ);
    feed(&mut t, Step::Issued, (10, 1, "dd"), 0, 4096, READ);
    feed(&mut t, Step::Issued, (40, 41, "kworker"), 0, 4096, READ);
    feed(&mut t, Step::Inserted, (50, 41, "kworker"), 0, 4096, READ);
    feed(&mut t, Step::Issued, (70, 60, "cp"), 0, 4096, READ);
    feed(&mut t, Step::Done, (90, 0, ""), 0, 4096, READ);
    assert_eq!(t.issued(), Issued { own: 1, completed: 1, ..Issued::default() });
    let s = t.finish(None);
    // Queued for 10 ns and for 20 ns, at the device since it was issued last.
    assert_eq!((s.queue_ns, s.device_ns, s.own_requests), (Some(15.0), Some(20.0), 1));
}

#[test]
fn memory_that_is_used_again_holds_another_request() {
    let mut t = BlockTracer::new();
    let at = |step, sector| BlockRequest { address: 7, ..request(step, "dd", sector, 4096, READ) };
    take(&mut t, (0, 1), at(Step::Issued, 8));
    take(&mut t, (10, 1), at(Step::Issued, 64));
    take(&mut t, (30, 0), at(Step::Done, 64));
    assert_eq!(t.issued(), Issued { own: 2, completed: 1, ..Issued::default() });
    assert_eq!(t.own.device.value(), Some(20.0));
    // It grew at both ends while it was queued.
    take(&mut t, (31, 1), at(Step::Inserted, 128));
    let grown = BlockRequest { bytes: 16_384, ..at(Step::Issued, 120) };
    take(&mut t, (33, 41), grown);
    take(&mut t, (37, 0), BlockRequest { step: Step::Done, ..grown });
    assert_eq!((t.issued().own, t.own.queue.value()), (3, Some(2.0)));
    // What was merged is never issued.
    take(&mut t, (40, 1), at(Step::Inserted, 128));
    take(&mut t, (50, 1), at(Step::Merged, 128));
    assert!(t.under_way.is_empty() && t.issued().own == 3);
}

#[test]
fn where_events_were_lost_nothing_is_known_of_what_was_under_way() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Issued, (0, 1, "dd"), 0, 4096, READ);
    take(&mut t, (500, 1), BlockRequest { lost: 3, ..request(Step::Issued, "dd", 8, 4096, READ) });
    take(&mut t, (510, 0), BlockRequest { lost: 3, ..request(Step::Done, "", 0, 4096, READ) });
    take(&mut t, (520, 0), BlockRequest { lost: 3, ..request(Step::Done, "", 8, 4096, READ) });
    assert_eq!((t.issued().own, t.issued().completed, t.own.device.value()), (2, 1, Some(20.0)));
}

#[test]
fn lost_completions_are_said_and_give_no_times() {
    let mut t = BlockTracer::new();
    for i in 0..100 {
        feed(&mut t, Step::Issued, (i * 100, 1, "dd"), i * 8, 4096, READ);
        if i % 50 == 0 {
            feed(&mut t, Step::Done, (i * 100 + 60, 0, ""), i * 8, 4096, READ);
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
    feed(&mut t, Step::Done, (1, 0, ""), 4, 512, READ);
    feed(&mut t, Step::Issued, (10, 1, "dd"), 0, 4096, READ);
    feed(&mut t, Step::Done, (20, 0, ""), 0, 1024, READ);
    take(&mut t, (30, 0), BlockRequest { address: 0, ..request(Step::Done, "", 2, 3072, READ) });
    let s = t.finish(None);
    assert_eq!((s.pairs, s.device_ns, s.in_flight), (1, Some(20.0), Some(1.0)));
}

#[test]
fn a_program_that_leaves_writing_to_the_kernel_gets_the_kernels_times() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Issued, (0, 40, "kworker"), 0, 4096, Operation::Write);
    feed(&mut t, Step::Done, (70, 0, ""), 0, 4096, Operation::Write);
    let s = t.finish(None);
    assert_eq!((s.own_requests, s.kernel_requests, s.device_ns), (0, 1, Some(70.0)));
}

#[test]
fn flushes_count_as_requests_without_bytes() {
    let mut t = BlockTracer::new();
    feed(&mut t, Step::Issued, (0, 1, "pg"), 0, 0, Operation::Other);
    feed(&mut t, Step::Done, (9, 0, ""), 0, 0, Operation::Other);
    let s = t.finish(None);
    assert_eq!((s.own_requests, s.own_reads, s.own_written_bytes, s.device_ns), (1, 0, 0, Some(9.0)));
}

proptest! {
    #[test]
    fn random_streams_conserve_requests(steps in prop::collection::vec(
        (0_usize..4, any::<u64>(), 0_u32..60, 0_usize..4, 0_u64..8, prop_oneof![0_u64..64, any::<u64>()],
         prop_oneof![0_u64..8192, any::<u64>()], 0_usize..4, 0_u32..40),
        0..300,
    )) {
        let mut t = BlockTracer::new();
        let mut issues = 0;
        let mut again = 0;
        for (step, time, tid, task, address, sector, bytes, operation, lost) in steps {
            let step = [Step::Inserted, Step::Issued, Step::Done, Step::Merged][step];
            let operation = [READ, Operation::Read { ahead: true }, Operation::Write, Operation::Other][operation];
            let before = t.issued();
            issues += u64::from(step == Step::Issued);
            let request = request(step, ["dd", "kworker", "cp", ""][task], sector, bytes, operation);
            take(&mut t, (time, tid), BlockRequest { address, lost: lost / 39, ..request });
            again += u64::from(step == Step::Issued && t.issued() == before);
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

#[test]
fn a_loop_device_hands_on_and_the_disk_below_has_the_time() {
    let mut t = BlockTracer::new();
    let mut in_flight = InFlight::default();
    let mut tell = |time_ns, tid, task, step, device| {
        let request = BlockRequest { device, ..request(step, task, 0, 4096, READ) };
        let kind = Kind::Request(BlockRequest { address: u64::from(device.0), ..request });
        let event = Event { time_ns, cpu: 0, pid: tid, tid, kind };
        t.event(&event, &Names, Some(&mut in_flight));
    };
    tell(0, 1, "dd", Step::Issued, (LOOP, 1));
    tell(40, 40, "kworker", Step::Issued, DISK);
    tell(50, 0, "", Step::Done, DISK);
    tell(52, 0, "", Step::Done, (LOOP, 1));
    assert_eq!(in_flight.end(60, 1, &Marks::default(), true).device_ns, 10);
    let s = t.finish(None);
    assert_eq!((s.own_requests, s.kernel_requests), (0, 1));
}
