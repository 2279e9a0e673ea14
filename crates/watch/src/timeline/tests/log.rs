//! Intervals and samples with their times: known answers, and that they conserve the time of every thread.

use super::*;
use crate::event_log::{EventLog, Interval, MAX_THREADS};

/// Nanoseconds by state of each logged thread: running, queued, blocked, not recorded.
fn by_state(log: &EventLog) -> Vec<[u64; 4]> {
    let mut sums = vec![[0; 4]; log.threads.len()];
    for i in &log.intervals {
        let state = match i.state {
            Some(State::Running) => 0,
            Some(State::Queued) => 1,
            Some(State::Blocked) => 2,
            None => 3,
        };
        sums[i.thread as usize][state] += i.end_ns - i.begin_ns;
    }
    sums
}

/// Holds a log of which nothing was cut off against its laws: intervals follow each other from birth to death, samples and parts are
/// within them.
pub(super) fn holds(log: &EventLog) -> Result<(), String> {
    for (index, thread) in log.threads.iter().enumerate() {
        let mut at = thread.begin_ns;
        for i in log.intervals.iter().filter(|i| i.thread as usize == index) {
            if i.begin_ns != at || i.end_ns <= i.begin_ns {
                return Err(format!("{i:?} after {at} ns"));
            }
            if i.device_ns + i.queued_ns > i.end_ns - i.begin_ns || i.behind_others_ns > i.queued_ns {
                return Err(format!("parts of {i:?}"));
            }
            if i.device_ns + i.queued_ns > 0 && i.state != Some(State::Blocked) {
                return Err(format!("requests in {i:?}"));
            }
            at = i.end_ns;
        }
        if at != thread.end_ns {
            return Err(format!("{thread:?}: its intervals end at {at} ns"));
        }
    }
    let mut known = log.intervals.iter().map(|i| i.stack).chain(log.samples.iter().map(|s| s.stack));
    let lost = known.find(|stack| *stack as usize >= log.stacks.len());
    lost.map_or(Ok(()), |stack| Err(format!("there is no stack {stack}")))
}

/// Where no counter told more than the records, the log holds all time of the profile, state by state, and all of its samples.
pub(super) fn equals(log: &EventLog, parts: &Parts) -> Result<(), String> {
    let sums = by_state(log).into_iter().fold([0; 4], |sum, one| std::array::from_fn(|i| sum[i] + one[i]));
    let of = |time: &dyn Fn(&Thread) -> u64| parts.threads.iter().map(time).sum::<u64>();
    let expected = [of(&|t| t.running_ns), of(&|t| t.queued_ns), of(&|t| t.blocked_ns), 0];
    if sums != expected {
        return Err(format!("intervals {sums:?}, threads {expected:?}"));
    }
    let samples = of(&|t| t.samples);
    if log.samples.len() as u64 != samples {
        return Err(format!("{} samples of {samples}", log.samples.len()));
    }
    Ok(())
}

fn finish(t: Timeline<'_>, time: u64) -> Parts {
    t.finish(Totals { end_ns: 1000 + time, completions_seen: true, ..Totals::default() })
}

fn innermost<'a>(parts: &'a Parts, log: &EventLog, stack: u32) -> &'a str {
    log.stacks[stack as usize].kernel.first().map_or("", |id| &parts.symbols[*id as usize].name)
}

#[test]
fn a_thread_runs_sleeps_and_makes_room_at_known_times() {
    let mut t = one(true);
    tick(&mut t, 10, 1, COPY);
    sleep(&mut t, 100, 1, IO);
    wake(&mut t, 300, 1);
    preempt(&mut t, 350, 1);
    wake(&mut t, 380, 1);
    tick(&mut t, 390, 1, LOOKUP);
    at(&mut t, 395, 1, 1, Kind::Name { name: "renamed", exec: false });
    let mut parts = finish(t, 400);
    let log = parts.log.take().unwrap();
    holds(&log).unwrap();
    equals(&log, &parts).unwrap();
    let thread = &log.threads[0];
    assert_eq!((thread.pid, thread.tid, thread.name.as_str()), (1, 1, "renamed"));
    assert_eq!((log.start_ns, thread.begin_ns, thread.end_ns, log.full_ns), (1000, 0, 400, None));
    let told: Vec<_> = log
        .intervals
        .iter()
        .map(|i| (i.begin_ns, i.end_ns, i.state, innermost(&parts, &log, i.stack)))
        .collect();
    let (running, queued, blocked) = (Some(State::Running), Some(State::Queued), Some(State::Blocked));
    assert_eq!(
        told,
        [
            (0, 100, running, ""),
            (100, 300, blocked, "io_wait"),
            (300, 350, running, ""),
            (350, 380, queued, "make_room"),
            (380, 400, running, ""),
        ]
    );
    let samples: Vec<_> = log.samples.iter().map(|s| (s.time_ns, innermost(&parts, &log, s.stack))).collect();
    assert_eq!(samples, [(10, "copy"), (390, "lookup")]);
}

#[test]
fn readings_cut_no_interval_and_two_sleeps_stay_two() {
    let mut t = one(true);
    t.cumulative(1, 1000, 0, 0);
    t.cumulative(1, 1050, 50, 0);
    sleep(&mut t, 100, 1, IO);
    t.cumulative(1, 1150, 100, 0);
    wake(&mut t, 200, 1);
    // It runs for less than the clock tells.
    sleep(&mut t, 200, 1, IO);
    wake(&mut t, 260, 1);
    let parts = finish(t, 300);
    let log = parts.log.unwrap();
    holds(&log).unwrap();
    let times: Vec<_> = log.intervals.iter().map(|i| (i.begin_ns, i.end_ns)).collect();
    assert_eq!(times, [(0, 100), (100, 200), (200, 260), (260, 300)]);
}

#[test]
fn what_was_not_recorded_is_an_interval_without_a_state() {
    let mut t = one(true);
    t.switches_off(1100);
    t.switches_on(1300);
    let parts = finish(t, 400);
    let log = parts.log.unwrap();
    holds(&log).unwrap();
    let gaps: Vec<&Interval> = log.intervals.iter().filter(|i| i.state.is_none()).collect();
    assert_eq!(gaps.iter().map(|i| (i.begin_ns, i.end_ns)).collect::<Vec<_>>(), [(100, 300)]);
}

#[test]
fn a_full_log_ends_at_one_time_for_everything() {
    let mut t = one(true);
    let threads = 2 * MAX_THREADS as u64;
    for n in 0..threads {
        let tid = 10 + n as u32;
        thread(&mut t, n * 10, tid);
        wake(&mut t, n * 10 + 1, tid);
        tick(&mut t, n * 10 + 2, tid, COPY);
        at(&mut t, n * 10 + 9, 1, tid, Kind::Exit);
    }
    let mut log = finish(t, threads * 10).log.unwrap();
    log.cut();
    // The first thread was there before.
    assert_eq!(log.threads.len(), MAX_THREADS);
    let full_ns = (MAX_THREADS as u64 - 1) * 10;
    assert_eq!(log.full_ns, Some(full_ns));
    assert_eq!(log.samples.len(), MAX_THREADS - 1);
    assert!(log.intervals.iter().all(|i| i.end_ns < full_ns) && log.intervals.len() == 2 * (MAX_THREADS - 1));
    assert!(log.threads.iter().all(|thread| thread.end_ns <= full_ns));
}

#[test]
fn nothing_is_kept_unless_it_is_asked_for() {
    let begin = Begin {
        start_ns: 1000,
        on_path: &on_path,
        switches: true,
        kernel_stacks: true,
        requests: false,
        rings: false,
        log: false,
        symbols: Symbols::with_kernel(Kernel::parse(KERNEL)),
    };
    let mut t = Timeline::new(begin);
    thread(&mut t, 0, 2);
    assert!(finish(t, 10).log.is_none());
}
