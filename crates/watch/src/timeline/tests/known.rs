//! Known answers, worked out by hand.

use super::*;

#[test]
fn one_thread_runs_waits_for_io_and_waits_for_something_else() {
    let mut t = one(true);
    tick(&mut t, 10, 1, COPY);
    sleep(&mut t, 100, 1, IO);
    wake(&mut t, 300, 1);
    tick(&mut t, 310, 1, &[]);
    sleep(&mut t, 400, 1, FUTEX);
    wake(&mut t, 900, 1);
    let p = end(t, 1000);
    let th = &p.threads[0];
    assert_eq!((th.running_ns, th.queued_ns, th.blocked_ns, th.sleeps, th.samples), (300, 0, 700, 2, 2));
    assert_eq!(found(&p, 1, State::Blocked, "io_wait"), (200.0, 200.0, 1));
    assert_eq!(found(&p, 1, State::Blocked, "futex_wait"), (500.0, 0.0, 1));
    assert_eq!(found(&p, 1, State::Running, "copy"), (150.0, 150.0, 1));
    assert_eq!(found(&p, 1, State::Running, ""), (150.0, 150.0, 1));
    near(p.idle_wall_ns, 500.0);
}

#[test]
fn what_tells_of_a_switch_is_no_part_of_the_stack_of_a_sleep() {
    let mut t = one(true);
    sleep(&mut t, 100, 1, &[0xb010, 0xc011, 0xd011, 0x1001]);
    wake(&mut t, 300, 1);
    let p = end(t, 400);
    assert_eq!(found(&p, 1, State::Blocked, "io_wait"), (200.0, 200.0, 1));
}

#[test]
fn a_parent_that_waits_for_its_child_takes_no_part_in_the_wall_clock() {
    let mut t = one(true);
    at(&mut t, 100, 2, 2, Kind::Fork { parent_pid: 1, parent_tid: 1 });
    sleep(&mut t, 100, 1, FUTEX);
    at(&mut t, 150, 2, 2, Kind::In);
    at(&mut t, 150, 2, 2, Kind::Name { name: "child", exec: true });
    let code = Kind::Map { start: 4096, length: 4096, offset: 0, code: true, path: "/bin/child" };
    at(&mut t, 151, 2, 2, code);
    at(&mut t, 900, 2, 2, Kind::Exit);
    wake(&mut t, 950, 1);
    let p = end(t, 1000);
    near(found(&p, 2, State::Queued, "?").1, 50.0);
    near(found(&p, 2, State::Running, "?").1, 750.0);
    near(found(&p, 1, State::Running, "?").1, 150.0);
    near(p.idle_wall_ns, 50.0);
    assert_eq!(p.processes.len(), 2);
    assert_eq!(
        (p.processes[1].pid, p.processes[1].parent, p.processes[1].name.as_str()),
        (2, Some(1), "child")
    );
    assert_eq!(p.processes[1].program.as_deref(), Some("/bin/child"));
    assert_eq!(p.threads[1].name, "child");
    assert_eq!(p.threads[1].lifetime_ns, 800);
}

#[test]
fn two_threads_in_parallel_share_each_instant() {
    let mut t = one(true);
    thread(&mut t, 0, 2);
    wake(&mut t, 0, 2);
    sleep(&mut t, 600, 2, IO);
    wake(&mut t, 1000, 2);
    let p = end(t, 1000);
    near(found(&p, 1, State::Running, "?").1, 500.0);
    near(found(&p, 2, State::Running, "?").1, 300.0);
    near(found(&p, 2, State::Blocked, "io_wait").1, 200.0);
    near(p.idle_wall_ns, 0.0);
}

#[test]
fn who_must_make_room_is_queued() {
    let mut t = one(true);
    preempt(&mut t, 100, 1);
    wake(&mut t, 400, 1);
    let p = end(t, 500);
    assert_eq!((p.threads[0].queued_ns, p.threads[0].preemptions, p.threads[0].sleeps), (300, 1, 0));
    assert_eq!(found(&p, 1, State::Queued, "make_room"), (300.0, 300.0, 1));
}

#[test]
fn waiting_for_a_cpu_after_a_wake_up_is_taken_from_the_sleeps() {
    let mut t = one(true);
    t.cumulative(1, 1000, 5000, 70);
    sleep(&mut t, 100, 1, IO);
    wake(&mut t, 200, 1);
    sleep(&mut t, 300, 1, FUTEX);
    wake(&mut t, 310, 1);
    // 40 ns more than the preemptions say: 20 for each sleep, but the second is only 10 long.
    let threads = vec![ThreadTotal { tid: 1, running_ns: 5890, queued_ns: 110 }];
    let p = profile(t.finish(Totals { end_ns: 2000, threads, cpu_ns: None, ..Totals::default() }));
    assert_eq!((p.threads[0].queued_ns, p.threads[0].blocked_ns), (40, 70));
    near(found(&p, 1, State::Queued, "futex_wait").0, 10.0);
    near(found(&p, 1, State::Queued, "io_wait").0, 30.0);
    near(found(&p, 1, State::Blocked, "io_wait").0, 70.0);
    // Queued is active, so the second sleep's ten are no longer idle.
    near(p.idle_wall_ns, 0.0);
}

#[test]
fn few_samples_borrow_from_threads_of_the_same_name_and_many_do_not() {
    let mut t = one(true);
    for tid in [2, 3] {
        thread(&mut t, 0, tid);
        at(&mut t, 0, 1, tid, Kind::Name { name: "worker", exec: false });
        wake(&mut t, 0, tid);
    }
    for i in 0..1000 {
        tick(&mut t, i, 2, COPY);
    }
    for i in 0..500 {
        tick(&mut t, 500 + i, 1, LOOKUP);
    }
    let p = end(t, 1000);
    // Thread 3 has no samples: it does what thread 2 does. The main thread has enough, and another name.
    near(found(&p, 3, State::Running, "copy").0, 1000.0);
    assert_eq!(found(&p, 3, State::Running, "copy").2, 0);
    near(found(&p, 1, State::Running, "lookup").0, 1000.0);
}

#[test]
fn sleeps_without_a_stack_are_like_those_of_their_length() {
    let mut t = one(true);
    let mut now = 0;
    let mut nap = |t: &mut Timeline<'_>, length: u64, kernel: &[u64]| {
        sleep(t, now, 1, kernel);
        wake(t, now + length, 1);
        now += length;
    };
    nap(&mut t, 1000, IO);
    nap(&mut t, 1010, &[]);
    nap(&mut t, 10, FUTEX);
    nap(&mut t, 11, &[]);
    let p = end(t, 2031);
    near(found(&p, 1, State::Blocked, "io_wait").0, 2010.0);
    near(found(&p, 1, State::Blocked, "futex_wait").0, 21.0);
    near(found(&p, 1, State::Blocked, "?").0, 0.0);
}

#[test]
fn a_look_gives_a_sleep_its_stack() {
    let mut t = one(true);
    sleep(&mut t, 100, 1, &[]);
    t.look(1300, 1, Found::Asleep, &["io_wait", "read"]);
    wake(&mut t, 600, 1);
    let p = end(t, 1000);
    assert_eq!(found(&p, 1, State::Blocked, "io_wait").0, 500.0);
    // It is on the path from the look on; before it, that was not known and the time was idle.
    near(found(&p, 1, State::Blocked, "io_wait").1, 300.0);
    near(p.idle_wall_ns, 200.0);
}

#[test]
fn ticks_of_others_are_counted_by_task() {
    let mut t = one(true);
    tick(&mut t, 1, 1, COPY);
    at(&mut t, 2, 50, 50, Kind::Tick(Chain { kernel: &[0x3000, 0x6000], user: &[], ..Chain::default() }));
    for i in 3..6 {
        at(&mut t, i, 60, 61, Kind::Tick(Chain { kernel: &[], user: &[1, 2], ..Chain::default() }));
    }
    at(&mut t, 6, 60, 61, Kind::Name { name: "neighbour", exec: false });
    at(&mut t, 7, 0, 0, Kind::Tick(Chain::default()));
    let ticks = t.finish(Totals::default()).ticks;
    assert_eq!((ticks.own, ticks.kernel, ticks.others, ticks.idle), (1, 1, 3, 1));
    assert_eq!((ticks.by_task[0].name.as_deref(), ticks.by_task[0].ticks), (Some("neighbour"), 3));
    assert!(ticks.by_task[1].kernel);
}

#[test]
fn a_thread_that_executes_becomes_the_first_thread_and_the_others_are_gone() {
    let mut t = one(true);
    thread(&mut t, 100, 2);
    thread(&mut t, 100, 3);
    wake(&mut t, 110, 3);
    at(&mut t, 150, 1, 1, Kind::Exit);
    at(&mut t, 200, 1, 1, Kind::Name { name: "new", exec: true });
    let p = end(t, 300);
    assert_eq!(p.processes.len(), 1);
    assert_eq!((p.threads[1].lifetime_ns, p.threads[2].lifetime_ns), (100, 100));
    let new = p.threads.iter().find(|t| t.name == "new").unwrap();
    assert_eq!((new.tid, new.lifetime_ns, new.running_ns), (1, 100, 100));
}

#[test]
fn the_last_switch_of_a_dead_thread_does_not_revive_it_and_its_number_may_come_again() {
    let mut t = one(true);
    thread(&mut t, 0, 2);
    wake(&mut t, 0, 2);
    at(&mut t, 100, 1, 2, Kind::Exit);
    sleep(&mut t, 101, 2, IO);
    assert!(!t.follows(2));
    thread(&mut t, 200, 2);
    assert!(t.follows(2));
    // And once more, without an end.
    thread(&mut t, 300, 2);
    let p = end(t, 400);
    assert_eq!(
        p.threads.iter().filter(|t| t.tid == 2).map(|t| t.lifetime_ns).collect::<Vec<_>>(),
        [100, 100, 100]
    );
}

#[test]
fn nothing_makes_a_thread_of_a_number_that_stands_for_none() {
    let mut t = one(true);
    thread(&mut t, 10, 2);
    wake(&mut t, 20, 2);
    at(&mut t, 90, 1, 2, Kind::Exit);
    // What the kernel writes when the thread is no longer on its lists.
    tick(&mut t, 91, u32::MAX, COPY);
    sleep(&mut t, 92, u32::MAX, IO);
    wake(&mut t, 93, u32::MAX);
    at(&mut t, 94, 1, u32::MAX, Kind::Name { name: "x", exec: true });
    thread(&mut t, 95, u32::MAX);
    t.existing(1096, Existing { pid: 1, tid: u32::MAX, name: "x", found: Found::Running, names: &[] });
    let p = end(t, 1000);
    assert_eq!(p.threads.iter().map(|t| t.tid).collect::<Vec<_>>(), [1, 2]);
    near(found(&p, 1, State::Running, "?").1, 10.0 + 10.0 / 2.0 + 70.0 / 2.0 + 910.0);
}

#[test]
fn what_a_hidden_thread_does_is_not_seen_and_its_time_not_idle() {
    let mut t = one(true);
    t.cumulative(1, 1000, 0, 0);
    at(&mut t, 100, 2, 2, Kind::Fork { parent_pid: 1, parent_tid: 1 });
    sleep(&mut t, 100, 1, FUTEX);
    at(&mut t, 110, 2, 2, Kind::In);
    // What it waited for before says nothing of later.
    at(&mut t, 120, 2, 2, Kind::LeavingStack(Chain { kernel: FUTEX, user: &[], ..Chain::default() }));
    at(&mut t, 120, 2, 2, Kind::Out { preempted: false });
    at(&mut t, 150, 2, 2, Kind::In);
    at(&mut t, 200, 2, 2, Kind::Name { name: "su", exec: true });
    t.hide(1200, 2);
    // Clocks of the CPUs and windows of recording go on.
    at(&mut t, 100_000, 2, 2, Kind::Tick(Chain { kernel: COPY, user: &[], ..Chain::default() }));
    t.switches_off(201_000);
    t.switches_on(201_000);
    t.cumulative(2, 901_000, 60 + 300, 10);
    t.gone(901_000, 2);
    let p = end(t, 1_000_000);
    let th = &p.threads[1];
    assert_eq!((th.lifetime_ns, th.running_ns, th.queued_ns), (899_900, 360, 10));
    near(found(&p, 2, State::Blocked, "futex_wait").0, 30.0);
    near(found(&p, 2, State::Blocked, "?").0, 899_500.0);
    near(found(&p, 2, State::Blocked, "?").1, 899_800.0);
    near(p.idle_wall_ns, 100_030.0);
}
