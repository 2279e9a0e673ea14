//! Events in a script: which device a wait belongs to, and what of it counts.

use super::*;
use crate::in_kernel::{BLOCKED, IO, MEMORY, WOKEN_BEFORE};

const DISK: (u32, u32) = (254, 0);
const READER: u32 = 11;
const JOURNAL: u32 = 30;

#[test]
fn a_cpu_that_nobody_uses_has_no_weight() {
    let times = |unused_ns| CpuTimes { unused_ns, ..CpuTimes::default() };
    let before = [times(10), times(0), times(5)];
    assert_eq!(weights(&before, &[times(110), times(50), times(55)], 100), [0.0, 0.5, 0.5]);
    assert_eq!(weights(&before, &[times(110), times(100), times(105)], 100), [0.0; 3]);
}

#[test]
fn each_reading_of_the_pressure_begins_new_weights() {
    let stall = |marks: &[(u64, Vec<CpuTimes>)]| {
        let mut collector = Collector::with(0, vec![CpuTimes::default(); 2], Subjects::default());
        collector.marks = marks.to_vec();
        let wait = waiting(READER, 0, IO);
        let end = Ended {
            wait: wait.clone(),
            at_ns: 100,
            on_cpu: 0,
            waker: (0, 0),
            waker_name: String::new(),
            waker_is_kernel: true,
            device: None,
        };
        let events = vec![(0, Event::Begin(wait)), (100, Event::End(end))];
        collector.settle_events(events, 200, unused([100, 100]), &HashSet::new());
        collector.computed.io_some_ns
    };
    // CPU 0 stalls while CPU 1 does nothing, then the other way round, without a stall.
    assert_eq!(stall(&[(100, unused([0, 100]))]), 100.0);
    assert_eq!(stall(&[]), 50.0);
}

/// Sums of two CPUs that nobody used for so long.
fn unused(ns: [u64; 2]) -> Vec<CpuTimes> {
    ns.map(|unused_ns| CpuTimes { unused_ns, ..CpuTimes::default() }).to_vec()
}

fn collector() -> Collector {
    Collector::with(0, vec![CpuTimes::default()], Subjects::default())
}

fn waiting(tid: u32, since_ns: u64, flags: u32) -> Waiting {
    Waiting { since_ns, pid: u32::MAX - 1, tid, cpu: 0, flags, stack: 1, task: "test".to_owned() }
}

/// A wait from its beginning to its end, told by a thread of the kernel.
fn waits(collector: &mut Collector, wait: &Waiting, at_ns: u64, waker_tid: u32, device: Option<(u32, u32)>) {
    let ended = Ended {
        wait: wait.clone(),
        at_ns,
        on_cpu: 0,
        waker: (waker_tid, waker_tid),
        waker_name: "kernel".to_owned(),
        waker_is_kernel: true,
        device,
    };
    collector.event(wait.since_ns, Event::Begin(wait.clone()));
    collector.event(at_ns, Event::End(ended));
}

/// A wait of a task that had been woken before it slept, by nobody who is known.
fn waits_late(collector: &mut Collector, since_ns: u64, flags: u32) {
    waits(collector, &waiting(READER, since_ns, flags | WOKEN_BEFORE), since_ns + 50, 0, None);
}

/// The device of each row.
fn devices(collector: &Collector) -> Vec<Option<u32>> {
    collector.rows.iter().map(|row| row.device).collect()
}

#[test]
fn a_waker_hands_on_its_device_only_if_it_waited_for_that_meanwhile() {
    let mut collector = collector();
    waits(&mut collector, &waiting(JOURNAL, 100, IO), 200, 0, Some(DISK));
    // The thread of the journal waits for the disk while the reader waits for it.
    waits(&mut collector, &waiting(READER, 150, IO), 210, JOURNAL, None);
    assert_eq!(devices(&collector), [Some(0)]);
    assert_eq!(collector.rows[0].count, 2);
    // It wakes somebody who began to wait long after that.
    waits(&mut collector, &waiting(READER, 900, IO), 950, JOURNAL, None);
    assert_eq!(devices(&collector), [Some(0), None]);
}

#[test]
fn a_task_woken_before_it_slept_had_waited_for_its_last_request() {
    let mut collector = collector();
    request(&mut collector, 100, Step::Issued, READER);
    request(&mut collector, 150, Step::Done, READER);
    waits_late(&mut collector, 155, BLOCKED);
    assert_eq!(devices(&collector), [None], "a lock is no request");
    waits_late(&mut collector, 255, IO);
    assert_eq!(devices(&collector), [None, Some(0)]);
    // A wait was for that one.
    waits_late(&mut collector, 355, IO);
    let counts = |collector: &Collector| collector.rows.iter().map(|row| row.count).collect::<Vec<_>>();
    assert_eq!(counts(&collector), [2, 1]);
    // The interrupt that ends a request wakes a moment later: the task may have fallen asleep between the two.
    request(&mut collector, 100_000, Step::Issued, READER);
    request(&mut collector, 150_000, Step::Done, READER);
    waits(&mut collector, &waiting(READER, 151_000, IO), 152_000, 0, None);
    assert_eq!(counts(&collector), [2, 2]);
}

#[test]
fn a_sleep_inside_of_reclaim_counts_for_the_stall_and_once_for_time() {
    let mut collector = collector();
    let (reclaim, sleep) =
        (waiting(READER, 100, MEMORY | RECLAIMS), waiting(READER, 120, MEMORY | IO | IN_RECLAIM));
    collector.event(100, Event::Begin(reclaim.clone()));
    waits(&mut collector, &sleep, 180, 0, None);
    waits(&mut collector, &reclaim, 200, 0, None);
    assert_eq!(collector.rows.len(), 1);
    assert_eq!((collector.rows[0].count, collector.rows[0].time_ns), (1, 100));
    collector.settle(200, &[1.0]);
    assert_eq!((collector.computed.memory_some_ns, collector.computed.io_some_ns), (100.0, 60.0));
}

#[test]
fn a_wait_whose_end_was_lost_ends_when_the_kernel_names_it_no_more() {
    let mut collector = collector();
    let (lost, lasting) = (waiting(READER, 100, IO), waiting(READER + 1, 100, IO));
    for wait in [&lost, &lasting] {
        collector.event(100, Event::Begin(wait.clone()));
    }
    let named = HashSet::from([key(&lasting)]);
    collector.end_missing(1000, &named);
    assert!(collector.ledger.is_open(&key(&lost)), "its end may be under way");
    // Missed once while the table was read, and named again.
    collector.end_missing(2000, &HashSet::from([key(&lost), key(&lasting)]));
    collector.end_missing(3000, &named);
    assert!(collector.ledger.is_open(&key(&lost)) && collector.rows.is_empty());
    collector.end_missing(4000, &named);
    assert!(!collector.ledger.is_open(&key(&lost)) && collector.ledger.is_open(&key(&lasting)));
    assert_eq!(
        (collector.rows[0].count, collector.rows[0].time_ns),
        (1, 2900),
        "as long as it may have been"
    );
}

#[test]
fn a_wait_of_a_thread_that_is_gone_is_over_whatever_the_kernel_names() {
    let mut collector = collector();
    collector.settled_ns = 200;
    let own = Waiting { pid: std::process::id(), ..waiting(std::process::id(), 100, IO) };
    let all = vec![own.clone(), waiting(READER, 100, IO), waiting(READER, 250, IO)];
    assert_eq!(collector.still_waiting(all), [own, waiting(READER, 250, IO)], "the last may be new");
}

#[test]
fn stacks_of_a_long_watch_fit_a_small_table() {
    const PLACES: usize = 8;
    const STACKS: u64 = 3;
    let mut collector = collector();
    // The kernel's table: which stack is at each place.
    let mut table: [Option<u64>; PLACES] = [None; PLACES];
    let long = Waiting { stack: 0, ..waiting(JOURNAL, 1, IO) };
    table[0] = Some(u64::MAX);
    collector.event(1, Event::Begin(long.clone()));
    for interval in 1..=100_u64 {
        for n in 0..STACKS {
            // A stack that was never met before.
            let place = table.iter().position(Option::is_none).expect("there is room");
            table[place] = Some(interval * STACKS + n);
            let since_ns = interval * 1000 + n * 100;
            let wait = Waiting { stack: place as i32, ..waiting(READER, since_ns, IO) };
            waits(&mut collector, &wait, since_ns + 50, 0, None);
        }
        let in_use = collector.stacks_in_use(std::slice::from_ref(&long));
        let (rows, ..) = take(&mut collector, (interval + 1) * 1000, std::slice::from_ref(&long));
        for (place, stack) in (0..).zip(&mut table) {
            if !in_use.contains(&place) {
                *stack = None;
            }
        }
        assert_eq!(rows.len() as u64, STACKS + 1, "{rows:?}");
        assert!(rows.iter().all(|row| table[row.stack.unwrap() as usize].is_some()), "it can be named");
        assert_eq!(table[0], Some(u64::MAX), "a wait under way keeps its stack");
    }
}

const OTHER: u32 = 40;

/// A step of a request that a thread makes itself.
fn request(collector: &mut Collector, at_ns: u64, step: Step, tid: u32) {
    let subject = collector.subjects.process(u32::MAX - tid, "test");
    let by = Maker { subject, tid: Some(tid), charged: false };
    let operation = Operation::Read { ahead: false };
    let (address, device) = (u64::from(tid), DISK);
    let step = RequestStep { cpu: 0, step, address, device, sector: 8, bytes: 4096, operation, lost: 0, by };
    collector.event(at_ns, Event::Request(step));
}

/// Ends an interval; gives its waits, devices and stall.
fn take(collector: &mut Collector, now_ns: u64, under_way: &[Waiting]) -> (Vec<Wait>, Vec<Device>, f64) {
    collector.settle(now_ns, &[1.0]);
    collector.settled_ns = now_ns;
    collector.add_under_way(under_way.to_vec());
    let (waits, devices) = (collector.take_rows(), collector.devices.take_interval(now_ns));
    let stall_ns = std::mem::take(&mut collector.computed).io_some_ns;
    collector.begin_interval();
    (waits, devices, stall_ns)
}

#[test]
fn intervals_sum_to_the_whole_and_a_wait_over_the_end_of_one_has_its_part_in_each() {
    let reader = Waiting { pid: u32::MAX - READER, ..waiting(READER, 100, IO) };
    let run = |ends_at: Option<u64>| {
        let (mut collector, mut intervals) = (collector(), Vec::new());
        request(&mut collector, 50, Step::Issued, OTHER);
        request(&mut collector, 100, Step::Issued, READER);
        collector.event(100, Event::Begin(reader.clone()));
        intervals.extend(ends_at.map(|at_ns| take(&mut collector, at_ns, std::slice::from_ref(&reader))));
        request(&mut collector, 300, Step::Done, READER);
        waits(&mut collector, &reader, 300, 0, Some(DISK));
        request(&mut collector, 400, Step::Done, OTHER);
        intervals.push(take(&mut collector, 500, &[]));
        intervals
    };
    let facts = |intervals: &[(Vec<Wait>, Vec<Device>, f64)]| {
        let waits = || intervals.iter().flat_map(|(waits, ..)| waits);
        let devices = || intervals.iter().flat_map(|(_, devices, _)| devices);
        (
            waits().map(|wait| wait.time_ns).sum::<u64>(),
            waits().flat_map(|wait| &wait.caused).map(|cause| cause.time_ns).sum::<f64>(),
            intervals.iter().map(|(.., stall_ns)| stall_ns).sum::<f64>(),
            devices()
                .map(|device| (device.reads, device.busy_ns, device.in_flight_ns))
                .fold((0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2)),
        )
    };
    let whole = run(None);
    assert_eq!(facts(&whole), (200, 100.0, 200.0, (2, 350, 550)));
    for ends_at in [120, 200, 299] {
        let intervals = run(Some(ends_at));
        assert_eq!(facts(&intervals), facts(&whole), "{ends_at}");
        let [(first, ..), (second, ..)] = intervals.as_slice() else { panic!("two") };
        assert_eq!(
            (first[0].time_ns, first[0].device),
            (ends_at - 100, Some(0)),
            "on its own request's device"
        );
        assert_eq!((second[0].time_ns, second[0].longest_ns), (300 - ends_at, 200), "longest: all of it");
    }
}

#[test]
fn a_subject_keeps_its_name_when_others_before_it_are_forgotten() {
    let mut collector = collector();
    // One wait of a process that is never met again, then one of a process whose request stays under way.
    waits(&mut collector, &waiting(JOURNAL, 10, IO), 20, 0, None);
    request(&mut collector, 30, Step::Issued, OTHER);
    let last = |collector: &Collector| {
        let name = |wait: &Wait| collector.subjects.all[wait.subject as usize].pid;
        collector.rows.last().map(name)
    };
    for end_ns in [100, 200, 300] {
        take(&mut collector, end_ns, &[]);
    }
    assert_eq!(collector.subjects.all.len(), 1, "the first is forgotten");
    let reader = Waiting { pid: u32::MAX - READER, ..waiting(READER, 310, IO) };
    waits(&mut collector, &reader, 350, 0, Some(DISK));
    assert_eq!(last(&collector), Some(u32::MAX - READER));
    let caused = take(&mut collector, 400, &[]).0.remove(0).caused;
    assert_eq!(caused.len(), 1);
    assert_eq!((collector.subjects.all[0].pid, caused[0].subject), (u32::MAX - OTHER, 0));
}
