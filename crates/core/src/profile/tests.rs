//! Known answers for the profile's own laws.

use super::*;

fn one_thread() -> Profile {
    let stack = |state, time_ns, wall_ns| StackTime {
        thread: 0,
        state,
        kernel: vec![0],
        user: vec![],
        known: true,
        time_ns,
        wall_ns,
        events: 1,
        seen_ns: time_ns,
        requests: None,
    };
    Profile {
        wall_ns: 100,
        threads: vec![Thread {
            count: 1,
            lifetime_ns: 100,
            running_ns: 60,
            queued_ns: 10,
            blocked_ns: 30,
            ..Thread::default()
        }],
        stacks: vec![
            stack(State::Running, 60.0, 60.0),
            stack(State::Queued, 10.0, 10.0),
            stack(State::Blocked, 30.0, 0.0),
        ],
        symbols: vec![Symbol { name: "schedule".to_owned(), ..Symbol::default() }],
        idle_wall_ns: 30.0,
        ..Profile::default()
    }
}

#[test]
fn a_profile_that_closes_passes_and_each_broken_law_is_named() {
    assert_eq!(one_thread().check(1e-6), Ok(()));
    let mut p = one_thread();
    p.stacks[0].time_ns = 50.0;
    assert!(p.check(1e-6).unwrap_err().contains("Running"));
    let mut p = one_thread();
    p.threads[0].lifetime_ns = 200;
    assert!(p.check(1e-6).unwrap_err().contains("states sum"));
    let mut p = one_thread();
    p.idle_wall_ns = 0.0;
    assert!(p.check(1e-6).unwrap_err().contains("wall shares"));
    let mut p = one_thread();
    p.stacks[2].thread = 7;
    assert!(p.check(1e-6).is_err());
}

#[test]
fn requests_take_part_of_the_sleeps_that_were_seen() {
    let with =
        |stack: usize, seen_ns, [device_ns, queued_ns, behind_others_ns, beside_others_ns]: [f64; 4]| {
            let mut p = one_thread();
            p.stacks[stack].seen_ns = seen_ns;
            p.stacks[stack].requests =
                Some(RequestTime { device_ns, queued_ns, ring_ns: None, behind_others_ns, beside_others_ns });
            p.check(1e-6)
        };
    assert_eq!(with(2, 30.0, [20.0, 10.0, 10.0, 20.0]), Ok(()));
    assert!(with(0, 60.0, [0.0; 4]).unwrap_err().contains("Running time"));
    for broken in
        [[25.0, 10.0, 0.0, 0.0], [20.0, 5.0, 6.0, 0.0], [20.0, 5.0, 0.0, 21.0], [-1.0, 0.0, 0.0, 0.0]]
    {
        assert!(with(2, 30.0, broken).is_err(), "{broken:?}");
    }
    assert!(with(2, 20.0, [20.0, 10.0, 0.0, 0.0]).is_err(), "in more time than was seen");
    assert!(with(2, 31.0, [0.0; 4]).is_err(), "more was seen than there was");
}

#[test]
fn threads_live_no_longer_than_the_run_and_an_entry_of_no_thread_is_cpu_time() {
    let mut p = one_thread();
    p.wall_ns = 80;
    p.idle_wall_ns = 10.0;
    assert!(p.check(1e-6).unwrap_err().contains("lived 100 ns of 80"), "{:?}", p.check(1e-6));
    let nobody = |tid, count| {
        let mut p = one_thread();
        p.threads.push(Thread { tid, count, lifetime_ns: 20, running_ns: 20, ..Thread::default() });
        p.stacks.push(StackTime {
            thread: 1,
            time_ns: 20.0,
            seen_ns: 20.0,
            wall_ns: 0.0,
            ..p.stacks[0].clone()
        });
        (p.check(1e-6).is_ok(), p.thread_count())
    };
    assert_eq!([nobody(0, 0), nobody(7, 0), nobody(7, 1)], [(true, 1), (false, 1), (true, 2)]);
}

#[test]
fn cpu_time_that_the_kernel_counted_is_in_the_profile() {
    const MS: u64 = 1_000_000;
    let with = |end, counted_ms: u64, cpus| {
        let mut p = one_thread();
        p.wall_ns *= MS;
        p.idle_wall_ns *= MS as f64;
        let t = &mut p.threads[0];
        for ns in [&mut t.lifetime_ns, &mut t.running_ns, &mut t.queued_ns, &mut t.blocked_ns] {
            *ns *= MS;
        }
        for s in &mut p.stacks {
            (s.time_ns, s.wall_ns) = (s.time_ns * MS as f64, s.wall_ns * MS as f64);
        }
        p.end = end;
        (p.io.user_ns, p.io.system_ns) = (Some(counted_ms * MS), Some(0));
        p.pressure.cpus = cpus;
        p.check(1e-6)
    };
    // The thread ran for 60 ms of 100 ms.
    assert_eq!(with(End::Code(0), 60, 2), Ok(()));
    assert_eq!(with(End::Code(0), 69, 2), Ok(()), "a tick of the accounting");
    assert!(with(End::Code(0), 90, 2).unwrap_err().contains("CPU time"));
    assert!(with(End::Signal(9), 90, 0).is_err(), "the number of CPUs is not known");
    assert!(with(End::Code(0), 500, 1).is_err());
    assert_eq!(with(End::Running, 90, 2), Ok(()), "it was not waited for");
}

#[test]
fn size_classes_hold_their_power_of_two() {
    assert_eq!([0, 1, 2, 3, 4, 4096, 4097].map(size_class), [0, 0, 1, 2, 2, 12, 13]);
    assert_eq!([u64::MAX / 2, u64::MAX].map(size_class), [SIZE_CLASSES - 1; 2]);
}

#[test]
fn wilson_interval_of_half_of_hundred() {
    let (low, high) = SampledShare { hits: 50, n: 100 }.interval().unwrap();
    assert!((low - 0.404).abs() < 0.001 && (high - 0.596).abs() < 0.001, "{low} {high}");
    assert_eq!(SampledShare::default().interval(), None);
    assert!(SampledShare { hits: 10, n: 10 }.interval().unwrap().0 < 1.0);
}
