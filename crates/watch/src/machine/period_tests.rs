//! Events in a script: which device a wait belongs to, and what of it counts.

use super::*;
use crate::in_kernel::{IO, MEMORY};

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
