//! Laws for any input, and bounds of memory.

use proptest::prelude::*;

use super::*;
use crate::block::{BlockTracer, Known, Tasks};
use crate::event::{BlockRequest, Operation, Step as Way};

/// One step of a random world: what happens, to which thread, after how long.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    tid: u32,
    after: u64,
    stack: u8,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0u8..30, 1u32..9, prop_oneof![0u64..50, 0u64..100_000], 0u8..6)
        .prop_map(|(what, tid, after, stack)| Step { what, tid, after, stack });
    proptest::collection::vec(step, 0..most)
}

fn stack(of: u8) -> &'static [u64] {
    [IO, FUTEX, COPY, ROOM, LOOKUP, &[]][of as usize % 6]
}

/// Threads 1 to 4 are the program's, 5 is the kernel's.
struct OfNumbers;

impl Tasks for OfNumbers {
    fn is_own(&self, tid: u32) -> bool {
        tid < 5
    }

    fn identify(&self, _pid: u32) -> Known {
        Known::default()
    }
}

/// Anything may happen to anyone at any time.
fn anything(
    switches: bool,
    steps: &[Step],
    cpu_ns: Option<u64>,
    first_thread_ns: Option<u64>,
    taken_ns: u64,
) -> Parts {
    let mut t = one(switches);
    let mut now = 0;
    let mut ran = 0;
    let mut block = BlockTracer::new();
    for s in steps {
        now += s.after;
        ran += s.after / 2;
        let time = 1000 + now;
        let pid = 1 + s.tid / 5;
        match s.what {
            0..=5 => sleep(&mut t, now, s.tid, stack(s.stack)),
            6..=10 => wake(&mut t, now, s.tid),
            11 => preempt(&mut t, now, s.tid),
            12 | 13 => tick(&mut t, now, s.tid, stack(s.stack)),
            14 => thread(&mut t, now, s.tid),
            15 => at(&mut t, now, pid, s.tid, Kind::Fork { parent_pid: 1, parent_tid: u32::from(s.stack) }),
            16 => at(&mut t, now, pid, s.tid, Kind::Exit),
            17 => at(&mut t, now, pid, s.tid, Kind::Name { name: "n", exec: s.stack < 2 }),
            18 => t.switches_off(time),
            19 => t.switches_on(time),
            20 => t.cumulative(s.tid, time, ran, ran / 3),
            21 => t.look(time, s.tid, Found::Asleep, &["io_wait"]),
            22 => {
                t.look(time, s.tid, if s.stack < 3 { Found::Running } else { Found::Asleep }, &["futex_wait"])
            }
            23 => at(&mut t, now.saturating_sub(500), 0, 0, Kind::Lost { records: 1 }),
            step => {
                let request = BlockRequest {
                    step: [Way::Inserted, Way::Issued, Way::Done, Way::Merged][usize::from(step % 4)],
                    address: u64::from(s.stack),
                    device: (8, 0),
                    sector: u64::from(s.stack) * 8,
                    bytes: 4096,
                    operation: Operation::Read { ahead: false },
                    by_kernel: s.tid % 3 == 0,
                    metadata: false,
                    task: "any",
                    lost: u32::from(step) / 200,
                };
                let event = Event { time_ns: time, cpu: 0, pid, tid: s.tid, kind: Kind::Request(request) };
                block.event(&event, &OfNumbers, t.requests());
            }
        }
    }
    let threads = (1..5).map(|tid| ThreadTotal { tid, running_ns: ran, queued_ns: ran / 2 }).collect();
    let own = Totals { end_ns: 1000 + now + 7, threads, cpu_ns, first_thread_ns, ..Totals::default() };
    t.finish(Totals { completions_seen: true, cpu_is_exact: true, taken_ns, ..own })
}

/// A world in which threads do only what threads can do; returns the events with the time each thread ran.
fn valid(steps: &[Step], lose_every: usize) -> (Parts, Vec<u64>) {
    let mut t = one(true);
    let mut now = 0;
    let mut running = [true; 3];
    let mut since = [0; 3];
    let mut ran = vec![0; 3];
    for tid in [2, 3] {
        thread(&mut t, 0, tid);
        wake(&mut t, 0, tid);
    }
    for (n, s) in steps.iter().enumerate() {
        now += s.after;
        let who = (s.tid % 3) as usize;
        let tid = who as u32 + 1;
        let lost = lose_every > 0 && n % lose_every == 0;
        if running[who] {
            ran[who] += now - since[who];
        }
        since[who] = now;
        running[who] = !running[who];
        match (lost, running[who]) {
            (true, _) => {}
            (false, true) => wake(&mut t, now, tid),
            (false, false) => sleep(&mut t, now, tid, stack(s.stack)),
        }
    }
    for who in 0..3 {
        if running[who] {
            ran[who] += now - since[who];
        }
    }
    let threads =
        (0..3).map(|w| ThreadTotal { tid: w as u32 + 1, running_ns: ran[w], queued_ns: 0 }).collect();
    (t.finish(Totals { end_ns: 1000 + now, threads, cpu_ns: None, ..Totals::default() }), ran)
}

proptest! {
    #[test]
    fn anything_keeps_the_laws(
        switches: bool,
        steps in steps(300),
        cpu_ns in proptest::option::of(0u64..50_000_000),
        first_ns in proptest::option::of(0u64..50_000_000),
        taken_ns in 0u64..10_000_000,
    ) {
        let parts = anything(switches, &steps, cpu_ns, first_ns, taken_ns);
        prop_assert_eq!(parts.log.as_ref().map(log::holds), Some(Ok(())));
        if let Some(counted_ns) = cpu_ns {
            let ran: u64 = parts.threads.iter().map(|t| t.running_ns).sum();
            // Threads have whole nanoseconds, and missing ones are rounded up.
            let whole_ns = 2.0 * parts.threads.len() as f64;
            prop_assert!(ran as f64 <= counted_ns as f64 + parts.beyond_total_ns + whole_ns, "{} of {}", ran, counted_ns);
        }
        for w in parts.stacks.windows(2) {
            prop_assert!(w[0].time_ns >= w[1].time_ns);
        }
        let mut p = profile(parts);
        // With the kernel's total its law holds too: no thread of nobody, none longer than the run, no time lost.
        p.end = iowhy_core::profile::End::Code(0);
        (p.io.user_ns, p.io.system_ns) = (cpu_ns, Some(0));
        prop_assert_eq!(p.check(1e-6), Ok(()));
        prop_assert!(p.threads.iter().all(|t| t.count > 0 || t.tid == 0));
    }

    #[test]
    fn what_threads_can_do_is_measured_exactly(steps in steps(200)) {
        let (parts, ran) = valid(&steps, 0);
        prop_assert_eq!(parts.gaps, 0);
        prop_assert_eq!(parts.unmeasured_ns, 0.0);
        prop_assert_eq!(parts.log.as_ref().map(|log| log::equals(log, &parts)), Some(Ok(())));
        let p = profile(parts);
        for (thread, ran) in p.threads.iter().zip(ran) {
            prop_assert_eq!(thread.running_ns, ran);
            prop_assert_eq!(thread.lifetime_ns, p.wall_ns);
        }
    }

    #[test]
    fn with_lost_records_nothing_is_counted_twice(steps in steps(200), lose_every in 2usize..9) {
        let (parts, _) = valid(&steps, lose_every);
        prop_assert_eq!(parts.log.as_ref().map(log::holds), Some(Ok(())));
        let p = profile(parts);
        for thread in &p.threads {
            prop_assert_eq!(thread.lifetime_ns, p.wall_ns);
        }
    }
}

#[test]
fn a_million_short_threads_fit() {
    let mut t = one(true);
    let mut now = 0;
    for n in 0..1_000_000u32 {
        let tid = 10 + n % 30_000;
        thread(&mut t, now, tid);
        wake(&mut t, now + 1, tid);
        if n % 1000 == 0 {
            at(&mut t, now + 1, 1, tid, Kind::Name { name: &format!("worker-{n}"), exec: false });
        }
        sleep(&mut t, now + 3, tid, IO);
        wake(&mut t, now + 7, tid);
        at(&mut t, now + 10, 1, tid, Kind::Exit);
        now += 10;
    }
    assert!(t.accounts.held() < 2 * accounts::MAX_INDIVIDUAL + 300, "{}", t.accounts.held());
    assert!(t.live.len() < 10 && t.by_tid.len() == 1);
    assert!(t.accounts.tallies < 10_000 && t.stacks.len() < 10);
    let p = end(t, now);
    assert!(p.threads.len() <= accounts::MAX_INDIVIDUAL + 257, "{}", p.threads.len());
    assert_eq!(p.threads.iter().map(|t| t.count).sum::<u64>(), 1_000_001);
    assert_eq!(p.threads.iter().map(|t| t.lifetime_ns).sum::<u64>(), now + 10_000_000);
    assert_eq!(p.threads[0].name, "main");
}

#[test]
fn more_living_threads_than_accounts_are_pooled_as_they_come() {
    let mut t = one(true);
    for tid in 2..20_000 {
        thread(&mut t, 10, tid);
    }
    assert!(t.accounts.held() < 9000);
    let p = end(t, 100);
    assert_eq!(p.threads.iter().map(|t| t.count).sum::<u64>(), 19_999);
    assert_eq!(p.thread_ns(), 100 + 19_998 * 90);
}

#[test]
fn more_processes_than_places_are_pooled_by_name() {
    let mut t = one(true);
    for n in 0..2000u64 {
        let pid = 10 + n as u32;
        at(&mut t, n, pid, pid, Kind::Fork { parent_pid: 1, parent_tid: 1 });
        at(&mut t, n, pid, pid, Kind::Name { name: if n % 2 == 0 { "cc" } else { "as" }, exec: true });
        at(&mut t, n + 1, pid, pid, Kind::Exit);
    }
    let p = end(t, 3000);
    assert_eq!(p.processes[0].pid, 1);
    assert_eq!(p.processes.iter().map(|p| p.count).sum::<u64>(), 2001);
    assert!(p.processes.len() <= 258);
}

#[test]
fn stacks_without_end_are_cut_and_then_forgotten() {
    let mut t = one(true);
    for n in 0..200_000u64 {
        let user = [0x10_0000 + n, n];
        let kernel = [0x1000 + (n % 5) * 0x1000, 0x1000 + (n / 5 % 5) * 0x1000];
        // No object is mapped, so the names are few; every sleep is booked all the same.
        at(
            &mut t,
            n * 10,
            1,
            1,
            Kind::LeavingStack(Chain { kernel: &kernel, user: &user, ..Chain::default() }),
        );
        at(&mut t, n * 10, 1, 1, Kind::Out { preempted: false });
        wake(&mut t, n * 10 + 5, 1);
    }
    assert!(t.stacks.len() <= 100, "{}", t.stacks.len());
    for n in 0..100_000u32 {
        let name = format!("f{n}");
        sleep(&mut t, 2_000_000 + u64::from(n) * 10, 1, &[]);
        t.look(1000 + 2_000_001 + u64::from(n) * 10, 1, Found::Asleep, &["io_wait", &name]);
        wake(&mut t, 2_000_005 + u64::from(n) * 10, 1);
    }
    assert!(t.stacks.len() <= 65_536);
    let p = end(t, 3_000_000);
    assert!(p.stacks.len() <= 65_536 + 3);
    assert_eq!(p.threads[0].sleeps, 300_000);
}
