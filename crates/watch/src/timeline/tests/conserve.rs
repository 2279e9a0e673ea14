//! Threads do not run for longer than the kernel counted.

use super::*;

/// Thread 1 runs and sleeps in turn, 100 each, up to 1000, and then is not watched up to 2000.
fn half_watched() -> Timeline<'static> {
    let mut t = one(true);
    for n in 0..5 {
        sleep(&mut t, 200 * n + 100, 1, IO);
        wake(&mut t, 200 * n + 200, 1);
    }
    t.switches_off(2000);
    t
}

fn with_total(t: Timeline<'_>, cpu_ns: u64, taken_ns: u64) -> (Profile, f64) {
    let totals =
        Totals { end_ns: 3000, cpu_ns: Some(cpu_ns), cpu_is_exact: true, taken_ns, ..Totals::default() };
    let parts = t.finish(totals);
    let beyond_ns = parts.beyond_total_ns;
    (profile(parts), beyond_ns)
}

fn running(p: &Profile) -> u64 {
    p.threads.iter().map(|t| t.running_ns).sum()
}

#[test]
fn inferred_time_gives_way_to_the_kernels_total() {
    // 500 recorded, and half of 1000 inferred.
    let (p, beyond_ns) = with_total(half_watched(), 1000, 0);
    assert_eq!((running(&p), beyond_ns), (1000, 0.0));
    let (p, beyond_ns) = with_total(half_watched(), 620, 0);
    assert_eq!((running(&p), beyond_ns), (620, 0.0));
    near(found(&p, 1, State::Blocked, "io_wait").0, 1380.0);
    assert_eq!(p.thread_ns(), 2000);
}

#[test]
fn a_total_that_is_a_lower_bound_takes_nothing_away() {
    let parts = half_watched().finish(Totals { end_ns: 3000, cpu_ns: Some(620), ..Totals::default() });
    assert_eq!(running(&profile(parts)), 1000);
}

#[test]
fn what_readings_tell_is_not_inferred() {
    let mut t = one(true);
    t.cumulative(1, 1000, 0, 0);
    sleep(&mut t, 100, 1, IO);
    wake(&mut t, 200, 1);
    t.cumulative(1, 1200, 100, 0);
    t.switches_off(1200);
    t.cumulative(1, 2200, 900, 0);
    // Of another thread nothing is known but that it was like the first.
    let (p, beyond_ns) = with_total(t, 850, 0);
    assert_eq!(running(&p), 900, "800 of them were read");
    near(beyond_ns, 50.0);
}

#[test]
fn what_interrupts_and_the_hypervisor_took_waits_for_a_cpu() {
    let busy = || {
        let mut t = one(true);
        tick(&mut t, 10, 1, COPY);
        t
    };
    let (p, beyond_ns) = with_total(busy(), 1800, 200);
    assert_eq!((running(&p), beyond_ns), (1800, 0.0));
    near(found(&p, 1, State::Queued, "copy").0, 200.0);
    near(found(&p, 1, State::Queued, "copy").1, 200.0);
    // More than they took: it is of processes that the total lacks.
    let (p, beyond_ns) = with_total(busy(), 1800, 199);
    assert_eq!((running(&p), beyond_ns), (2000, 200.0));
}
