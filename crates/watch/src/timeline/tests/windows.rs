//! Duty cycle, looks alone, lost records: known answers where not everything was seen.

use super::*;

#[test]
fn a_window_that_was_not_recorded_is_like_those_beside_it() {
    let mut t = one(true);
    let cycle = |t: &mut Timeline<'_>, from: u64| {
        for i in 0..10 {
            sleep(t, from + i * 100 + 40, 1, if i % 2 == 0 { IO } else { FUTEX });
            wake(t, from + i * 100 + 100, 1);
        }
    };
    t.cumulative(1, 1000, 0, 0);
    cycle(&mut t, 0);
    t.switches_off(2000);
    t.cumulative(1, 2000, 400, 0);
    t.switches_on(3000);
    t.cumulative(1, 3000, 900, 0);
    cycle(&mut t, 2000);
    let threads = vec![ThreadTotal { tid: 1, running_ns: 1300, queued_ns: 0 }];
    let p = profile(t.finish(Totals { end_ns: 4000, threads, cpu_ns: None, ..Totals::default() }));
    // Exactly 500 of the 1000 were running, by the counters; the other 500 are half and half.
    assert_eq!((p.threads[0].running_ns, p.threads[0].blocked_ns, p.threads[0].sleeps), (1300, 1700, 20));
    near(found(&p, 1, State::Blocked, "io_wait").0, 600.0 + 250.0);
    near(found(&p, 1, State::Blocked, "futex_wait").0, 600.0 + 250.0);
    near(found(&p, 1, State::Blocked, "io_wait").1, 850.0);
    near(p.idle_wall_ns, 850.0);
}

#[test]
fn a_reading_right_after_a_window_does_not_stand_for_all_that_follows() {
    let mut t = one(true);
    t.cumulative(1, 1000, 0, 0);
    for i in 0..10 {
        sleep(&mut t, i * 100 + 40, 1, IO);
        wake(&mut t, i * 100 + 100, 1);
    }
    t.switches_off(2000);
    // The counter has 8 more than the records of the window, and 5 have passed since.
    t.cumulative(1, 2005, 408, 0);
    let p = end(t, 2000);
    // 400 of 1000 in the window and 5 of 5 after it.
    near(p.threads[0].running_ns as f64, (400.0 + 5.0 + 995.0 * 405.0 / 1005.0_f64).round());
}

#[test]
fn a_sleep_over_a_whole_window_stays_one_sleep() {
    let mut t = one(true);
    t.cumulative(1, 1000, 0, 0);
    sleep(&mut t, 100, 1, FUTEX);
    wake(&mut t, 200, 1);
    sleep(&mut t, 300, 1, IO);
    t.switches_off(1400);
    t.cumulative(1, 1400, 200, 0);
    t.switches_on(1900);
    t.cumulative(1, 1900, 200, 0);
    wake(&mut t, 950, 1);
    let p = end(t, 1000);
    assert_eq!((p.threads[0].running_ns, p.threads[0].blocked_ns), (250, 750));
    let io = found(&p, 1, State::Blocked, "io_wait");
    near(io.0, 650.0);
    near(io.1, 650.0);
    assert_eq!(io.2, 1);
    near(p.idle_wall_ns, 100.0);
}

#[test]
fn looks_and_counters_alone_close() {
    let mut t = one(false);
    t.cumulative(1, 1000, 10_000, 0);
    for i in 1..=100 {
        let names: &[&str] = if i % 4 == 0 { &["futex_wait"] } else { &["io_wait", "read"] };
        let found = if i % 5 == 0 { Found::Running } else { Found::Asleep };
        t.look(1000 + i * 10, 1, found, names);
    }
    let threads = vec![ThreadTotal { tid: 1, running_ns: 10_250, queued_ns: 50 }];
    let p = profile(t.finish(Totals { end_ns: 2000, threads, cpu_ns: None, ..Totals::default() }));
    let th = &p.threads[0];
    assert_eq!((th.running_ns, th.queued_ns, th.blocked_ns), (250, 50, 700));
    near(found(&p, 1, State::Blocked, "io_wait").0, 525.0);
    near(found(&p, 1, State::Blocked, "futex_wait").0, 175.0);
    near(p.idle_wall_ns, 175.0);
    near(found(&p, 1, State::Running, "?").0, 250.0);
}

#[test]
fn looks_tell_how_threads_that_take_turns_share_the_wall_clock() {
    let mut t = one(false);
    t.existing(1000, Existing { pid: 1, tid: 2, name: "b", found: Found::Running, names: &[] });
    t.cumulative(1, 1000, 0, 0);
    t.cumulative(2, 1000, 0, 0);
    for i in 1..=100 {
        let one = if i % 2 == 0 { Found::Running } else { Found::Asleep };
        let two = if i % 2 == 0 { Found::Asleep } else { Found::Running };
        t.look(1000 + i * 10, 1, one, &["futex_wait"]);
        t.look(1000 + i * 10, 2, two, &["futex_wait"]);
    }
    let half = |tid| ThreadTotal { tid, running_ns: 500, queued_ns: 0 };
    let p = profile(t.finish(Totals {
        end_ns: 2000,
        threads: vec![half(1), half(2)],
        cpu_ns: None,
        ..Totals::default()
    }));
    near(found(&p, 1, State::Running, "?").1, 500.0);
    near(found(&p, 2, State::Running, "?").1, 500.0);
    near(p.idle_wall_ns, 0.0);
}

#[test]
fn counters_alone_take_threads_to_be_independent() {
    let mut t = one(false);
    t.existing(1000, Existing { pid: 1, tid: 2, name: "b", found: Found::Running, names: &[] });
    t.cumulative(1, 1000, 0, 0);
    t.cumulative(2, 1000, 0, 0);
    let half = |tid| ThreadTotal { tid, running_ns: 500, queued_ns: 0 };
    let p = profile(t.finish(Totals {
        end_ns: 2000,
        threads: vec![half(1), half(2)],
        cpu_ns: None,
        ..Totals::default()
    }));
    near(found(&p, 1, State::Running, "?").1, 375.0);
    near(p.idle_wall_ns, 250.0);
    near(found(&p, 1, State::Blocked, "?").0, 500.0);
}

#[test]
fn a_thread_of_which_nothing_is_known_is_not_explained() {
    let p = end(one(false), 1000);
    assert_eq!((p.threads[0].lifetime_ns, p.threads[0].blocked_ns), (1000, 1000));
    assert_eq!(found(&p, 1, State::Blocked, "?").0, 1000.0);
    near(p.idle_wall_ns, 1000.0);
}

#[test]
fn a_lost_record_makes_a_gap_that_readings_close() {
    let mut t = one(true);
    t.cumulative(1, 1000, 0, 0);
    sleep(&mut t, 100, 1, IO);
    // The record of its return at 150 was lost.
    sleep(&mut t, 300, 1, IO);
    wake(&mut t, 400, 1);
    let threads = vec![ThreadTotal { tid: 1, running_ns: 850, queued_ns: 0 }];
    let parts = t.finish(Totals { end_ns: 2000, threads, cpu_ns: None, ..Totals::default() });
    assert_eq!((parts.gaps, parts.unmeasured_ns), (1, 200.0));
    let p = profile(parts);
    assert_eq!((p.threads[0].running_ns, p.threads[0].blocked_ns), (850, 150));
    near(found(&p, 1, State::Blocked, "io_wait").0, 150.0);
}

#[test]
fn records_lost_on_its_cpu_put_the_running_interval_in_doubt() {
    let mut t = one(true);
    sleep(&mut t, 100, 1, IO);
    wake(&mut t, 200, 1);
    t.event(&Event { time_ns: 1250, cpu: 0, pid: 0, tid: 0, kind: Kind::Lost { records: 7 } });
    sleep(&mut t, 300, 1, IO);
    wake(&mut t, 400, 1);
    let parts = t.finish(Totals { end_ns: 1500, threads: vec![], cpu_ns: None, ..Totals::default() });
    assert_eq!((parts.lost, parts.gaps), (7, 1));
    near(parts.unmeasured_ns, 100.0);
    // No reading: as its other time, of which half was running.
    let p = profile(parts);
    assert_eq!((p.threads[0].running_ns, p.threads[0].blocked_ns), (250, 250));
}
