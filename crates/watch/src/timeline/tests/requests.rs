//! Sleeps divided by the requests in flight.

use iowhy_core::profile::{RequestTime, StackTime};

use super::*;
use crate::block::{BlockTracer, Known, Tasks};
use crate::event::{BlockRequest, Operation, Step};

/// Threads 1 to 8 are the program's.
struct Numbers;

impl Tasks for Numbers {
    fn is_own(&self, tid: u32) -> bool {
        tid < 9
    }

    fn identify(&self, pid: u32) -> Known {
        Known { name: Some(format!("p{pid}")), command: None }
    }
}

fn block(t: &mut Timeline<'_>, b: &mut BlockTracer, time: u64, tid: u32, step: Step) {
    // Each thread has a request of its own.
    let request = BlockRequest {
        step,
        address: u64::from(tid),
        device: (8, 0),
        sector: u64::from(tid) * 8,
        bytes: 4096,
        operation: Operation::Read { ahead: false },
        by_kernel: false,
        metadata: false,
        task: "x",
        lost: 0,
    };
    let kind = Kind::Request(request);
    b.event(&Event { time_ns: 1000 + time, cpu: 0, pid: tid, tid, kind }, &Numbers, t.requests());
}

/// The sleep of the one thread with this innermost function.
fn asleep<'a>(p: &'a Profile, function: &str) -> &'a StackTime {
    let of = |s: &&StackTime| s.state == State::Blocked && p.kernel_names(s).next() == Some(function);
    p.stacks.iter().find(of).unwrap()
}

#[test]
fn a_read_is_queued_served_and_woken_up_and_readings_do_not_cut_it() {
    let (mut t, mut b) = (one(true), BlockTracer::new());
    block(&mut t, &mut b, 10, 1, Step::Inserted);
    sleep(&mut t, 20, 1, IO);
    block(&mut t, &mut b, 25, 9, Step::Issued);
    t.cumulative(1, 1030, 20, 0);
    block(&mut t, &mut b, 40, 1, Step::Issued);
    t.cumulative(1, 1050, 20, 0);
    block(&mut t, &mut b, 60, 9, Step::Done);
    block(&mut t, &mut b, 80, 1, Step::Done);
    wake(&mut t, 95, 1);
    let parts = t.finish(Totals { end_ns: 1100, completions_seen: true, ..Totals::default() });
    let charge = parts.charges.as_ref().unwrap()[&Some(0)];
    assert_eq!((charge.behind_ns, charge.beside_ns), (15.0, 20.0));
    let log = parts.log.clone().unwrap();
    let slept = log.intervals.iter().find(|i| i.state == Some(State::Blocked)).unwrap();
    assert_eq!((slept.begin_ns, slept.end_ns, log.requests_followed), (20, 95, true));
    assert_eq!((slept.device_ns, slept.queued_ns, slept.behind_others_ns), (40, 20, 15));
    let others = b.finish(parts.charges.as_ref()).others;
    assert_eq!((others[0].pid, others[0].behind_ns, others[0].beside_ns), (9, Some(15), Some(20)));
    let p = profile(parts);
    let s = asleep(&p, "io_wait");
    assert_eq!((s.time_ns, s.seen_ns), (75.0, 75.0));
    let expected = RequestTime {
        device_ns: 40.0,
        queued_ns: 20.0,
        behind_others_ns: 15.0,
        beside_others_ns: 20.0,
        ring_ns: None,
    };
    assert_eq!(s.requests, Some(expected));
}

#[test]
fn the_part_of_a_sleep_that_was_not_recorded_is_marked() {
    let (mut t, mut b) = (one(true), BlockTracer::new());
    block(&mut t, &mut b, 0, 1, Step::Issued);
    sleep(&mut t, 0, 1, IO);
    t.cumulative(1, 1100, 0, 0);
    t.switches_off(1100);
    t.cumulative(1, 1300, 0, 0);
    t.switches_on(1300);
    block(&mut t, &mut b, 340, 1, Step::Done);
    wake(&mut t, 400, 1);
    let p = end(t, 400);
    let s = asleep(&p, "io_wait");
    assert_eq!((s.time_ns, s.seen_ns), (400.0, 200.0));
    // 100 ns before the gap; of the 100 ns after it, 40 until the completion.
    assert_eq!(s.requests, Some(RequestTime { device_ns: 140.0, ..RequestTime::default() }));
}

#[test]
fn without_completions_nothing_is_known_of_requests() {
    let (mut t, mut b) = (one(true), BlockTracer::new());
    block(&mut t, &mut b, 0, 1, Step::Issued);
    sleep(&mut t, 0, 1, IO);
    wake(&mut t, 50, 1);
    let parts = t.finish(Totals { end_ns: 1050, ..Totals::default() });
    assert!(parts.charges.is_none());
    let p = profile(parts);
    assert_eq!((asleep(&p, "io_wait").requests, asleep(&p, "io_wait").seen_ns), (None, 50.0));
}

#[test]
fn sleeps_off_the_path_charge_nobody() {
    let (mut t, mut b) = (one(true), BlockTracer::new());
    block(&mut t, &mut b, 0, 1, Step::Issued);
    block(&mut t, &mut b, 0, 9, Step::Issued);
    sleep(&mut t, 0, 1, FUTEX);
    block(&mut t, &mut b, 40, 1, Step::Done);
    block(&mut t, &mut b, 50, 9, Step::Done);
    wake(&mut t, 50, 1);
    let parts = t.finish(Totals { end_ns: 1050, completions_seen: true, ..Totals::default() });
    assert!(parts.charges.as_ref().unwrap().is_empty());
    let p = profile(parts);
    assert_eq!(asleep(&p, "futex_wait").requests.unwrap().beside_others_ns, 40.0);
}

/// A thread of a server that waits at an empty ring is idle, as one is that waits at a socket.
#[test]
fn a_ring_without_requests_on_files_is_off_the_path() {
    let mut t = one(true);
    sleep(&mut t, 0, 1, RING);
    wake(&mut t, 100, 1);
    t.requests().unwrap().ring_files(1110, true);
    sleep(&mut t, 120, 1, RING);
    t.requests().unwrap().ring_files(1160, false);
    wake(&mut t, 170, 1);
    let p = end(t, 200);
    let of = |s: &&StackTime| s.state == State::Blocked && p.kernel_names(s).next() == Some("io_cqring_wait");
    let mut times: Vec<(f64, f64)> = p.stacks.iter().filter(of).map(|s| (s.time_ns, s.wall_ns)).collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(times, [(50.0, 50.0), (100.0, 0.0)]);
    assert_eq!(p.idle_wall_ns, 100.0);
}
