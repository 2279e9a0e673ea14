//! The kernel's total of CPU time against what the records showed.

use super::*;

const FREES: &[u64] = &[0x8000, 0x7001];

/// A shell (thread 1) that waits from 100 to 1000 for a child, which runs from 100 to 400 and then frees its memory, which
/// no record shows.
fn shell() -> Timeline<'static> {
    let mut t = one(true);
    at(&mut t, 100, 2, 2, Kind::Fork { parent_pid: 1, parent_tid: 1 });
    sleep(&mut t, 100, 1, FUTEX);
    at(&mut t, 100, 2, 2, Kind::In);
    at(&mut t, 400, 2, 2, Kind::Exit);
    t
}

fn end_with(t: Timeline<'_>, cpu_ns: u64) -> Profile {
    profile(t.finish(Totals { end_ns: 2000, threads: vec![], cpu_ns: Some(cpu_ns), ..Totals::default() }))
}

fn running(p: &Profile) -> u64 {
    p.threads.iter().map(|t| t.running_ns).sum()
}

#[test]
fn time_after_the_record_of_an_exit_is_the_exits_and_not_idle() {
    let mut t = shell();
    wake(&mut t, 900, 1);
    let p = end_with(t, 800);
    assert_eq!(running(&p), 800);
    // 100 and 100 of the shell, 300 of the child: 300 are missing, 500 were idle.
    assert_eq!(found(&p, 2, State::Running, "do_exit"), (300.0, 300.0, 0));
    assert_eq!(p.threads[1].lifetime_ns, 600);
    near(p.idle_wall_ns, 200.0);
}

#[test]
fn without_a_total_or_with_a_smaller_one_nothing_changes() {
    for total in [None, Some(0), Some(500)] {
        let mut t = shell();
        wake(&mut t, 900, 1);
        let p =
            profile(t.finish(Totals { end_ns: 2000, threads: vec![], cpu_ns: total, ..Totals::default() }));
        assert_eq!(running(&p), 500);
        near(p.idle_wall_ns, 500.0);
    }
}

#[test]
fn samples_of_the_exit_say_where_it_went_and_belong_to_the_program() {
    let mut t = shell();
    let tick = |t: &mut Timeline<'_>, time, tid, kernel| {
        at(t, time, tid, tid, Kind::Tick(Chain { kernel, user: &[], ..Chain::default() }));
    };
    tick(&mut t, 500, 2, FREES);
    tick(&mut t, 510, 2, FREES);
    tick(&mut t, 520, 2, &[0x3000, 0x7001]);
    // Neither another process with the number of the dead child nor one that exits itself is of the program.
    tick(&mut t, 530, 2, COPY);
    tick(&mut t, 540, 9, FREES);
    let parts = t.finish(Totals { end_ns: 2000, threads: vec![], cpu_ns: Some(700), ..Totals::default() });
    assert_eq!((parts.ticks.own, parts.ticks.others), (3, 2));
    let p = profile(parts);
    near(found(&p, 2, State::Running, "exit_mm").0, 200.0);
    near(found(&p, 2, State::Running, "copy").0, 100.0);
}

#[test]
fn no_share_is_counted_twice() {
    // A child beside a shell that never waits: nothing was idle, so the time after its exit has no share of its own.
    let mut t = one(true);
    at(&mut t, 100, 2, 2, Kind::Fork { parent_pid: 1, parent_tid: 1 });
    at(&mut t, 100, 2, 2, Kind::In);
    at(&mut t, 400, 2, 2, Kind::Exit);
    let p = end_with(t, 1500);
    assert_eq!((running(&p), p.idle_wall_ns), (1500, 0.0));
    assert_eq!(found(&p, 2, State::Running, "do_exit").1, 0.0);
    // More than the idle time holds.
    let p = end_with(shell(), 5000);
    assert_eq!((running(&p), p.idle_wall_ns), (2000, 0.0), "no thread runs for longer than the run");
    assert_eq!(p.thread_ns(), 2000);
    // Two children that always ran side by side did so to the end.
    let mut t = one(true);
    sleep(&mut t, 0, 1, FUTEX);
    for pid in [2, 3] {
        at(&mut t, 0, pid, pid, Kind::Fork { parent_pid: 1, parent_tid: 1 });
        at(&mut t, 0, pid, pid, Kind::In);
    }
    for pid in [2, 3] {
        at(&mut t, 400, pid, pid, Kind::Exit);
    }
    let p = end_with(t, 1200);
    near(found(&p, 2, State::Running, "do_exit").0, 200.0);
    near(found(&p, 2, State::Running, "do_exit").1, 100.0);
    near(p.idle_wall_ns, 400.0);
}

#[test]
fn missing_time_of_a_single_thread_is_its_own_and_no_second_thread() {
    // Its own counter and the kernel's total say the same: 40 ms more than the readings in the run, of 100 ms.
    let alone = |total_ms: u64, own_ms| {
        let mut t = one(false);
        t.cumulative(1, 1000, 0, 0);
        t.cumulative(1, 100_001_000, 20_000_000, 50_000_000);
        profile(t.finish(Totals {
            end_ns: 100_001_000,
            cpu_ns: Some(total_ms * 1_000_000),
            first_thread_ns: Some(own_ms * 1_000_000),
            ..Totals::default()
        }))
    };
    for (total_ms, running_ms) in [(60, 60), (25, 25), (100, 100), (165, 100)] {
        let p = alone(total_ms, total_ms);
        assert_eq!((p.threads.len(), p.thread_count()), (1, 1), "{total_ms}");
        assert_eq!((p.threads[0].running_ns, p.thread_ns()), (running_ms * 1_000_000, p.wall_ns));
        let wall: f64 = p.stacks.iter().filter(|s| s.state == State::Running).map(|s| s.wall_ns).sum();
        assert!(wall >= 0.99 * p.threads[0].running_ns as f64, "{wall}");
    }
    // 30 ms of it are not that thread's: of a process that nobody saw, which is no thread.
    let p = alone(60, 30);
    assert_eq!((p.threads.len(), p.thread_count()), (2, 1));
    assert_eq!((p.threads[0].running_ns, p.threads[1].running_ns), (30_000_000, 30_000_000));
}

#[test]
fn processes_that_no_record_showed_have_an_entry_without_a_stack() {
    let scanned = |cpu_ns| {
        let mut t = one(false);
        t.cumulative(1, 1000, 0, 0);
        let threads = vec![ThreadTotal { tid: 1, running_ns: 20_000_000, queued_ns: 0 }];
        profile(t.finish(Totals { end_ns: 100_001_000, threads, cpu_ns: Some(cpu_ns), ..Totals::default() }))
    };
    let p = scanned(70_000_000);
    let running: Vec<u64> = p.threads.iter().map(|t| t.running_ns).collect();
    assert_eq!(running, [20_000_000, 50_000_000]);
    assert_eq!((p.threads[1].name.as_str(), p.threads[1].count), ("(not seen)", 0));
    assert_eq!((p.threads[1].tid, p.thread_count()), (0, 1), "it is no thread");
    let known = |s: &&StackTime| s.thread == 1 && s.known;
    assert_eq!(p.stacks.iter().filter(known).count(), 0);
    near(p.idle_wall_ns, 30_000_000.0);
    assert_eq!(scanned(29_000_000).threads.len(), 1, "less than a tick of the accounting");
}

#[test]
fn the_last_counter_of_a_thread_tells_what_it_ran_for_after_its_exit() {
    let mut t = one(true);
    at(&mut t, 0, 1, 1, Kind::Name { name: "main", exec: true });
    // The counter began before the program did.
    t.cumulative(1, 1050, 80, 0);
    sleep(&mut t, 100, 1, FUTEX);
    wake(&mut t, 300, 1);
    assert_eq!(t.ran_after_exit_ns(1, 1400, 80 + 50 + 100), 0);
    assert_eq!(t.ran_after_exit_ns(1, 1400, 80 + 50 + 100 + 60), 60);
    assert_eq!(t.ran_after_exit_ns(7, 1400, 1000), 0);
}
