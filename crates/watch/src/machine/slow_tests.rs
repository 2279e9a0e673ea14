//! Calls and sleeps in a script: every part of a call is found once, and the parts sum to its time.

use super::*;

const TID: u32 = 7;
const JOURNAL: u32 = 30;

fn called(entered_ns: u64, at_ns: u64, queued_ns: u64, slept_ns: u64, sleeps: u64) -> Called {
    Called {
        entered_ns,
        at_ns,
        pid: 7,
        tid: TID,
        number: 74,
        queued_ns,
        slept_ns,
        sleeps,
        value: 0,
        file: None,
        task: "test".to_owned(),
    }
}

fn sleep(since_ns: u64, at_ns: u64, first: bool, stack: u32) -> Sleep {
    Sleep { tid: TID, since_ns, at_ns, first, stack: Some(stack), ..Sleep::default() }
}

fn returned(slow: &mut Slow, called: &Called) -> bool {
    slow.told(called.time_ns());
    slow.returned(called, SlowCall::default())
}

#[test]
fn the_parts_of_a_call_sum_to_its_time_and_each_sleep_counts_once() {
    let mut slow = Slow::new(500, 2);
    slow.slept(sleep(110, 200, true, 1));
    slow.slept(Sleep { queue_ns: 30, caused: vec![(3, 40.0)], ..sleep(250, 650, false, 2) });
    slow.slept(Sleep { queue_ns: 5, caused: vec![(3, 1.0), (4, 2.0)], ..sleep(700, 800, false, 2) });
    assert!(returned(&mut slow, &called(100, 1000, 60, 590, 3)));
    let call = &slow.events[0].call;
    assert_eq!((call.time_ns, call.asleep_ns, call.queued_ns, call.running_ns), (900, 590, 60, 250));
    assert_eq!(call.waits.iter().map(|wait| wait.time_ns).sum::<u64>(), call.asleep_ns);
    assert_eq!((call.waits[1].count, call.waits[1].time_ns, call.waits[1].queue_ns), (2, 500, 35));
    assert_eq!(call.waits[1].caused.iter().map(|caused| caused.time_ns).sum::<f64>(), 43.0);
    assert_eq!((call.waits_lost, slow.over), (0, 1));
}

#[test]
fn sleeps_of_a_call_that_was_not_told_are_not_those_of_the_next() {
    let mut slow = Slow::new(500, 2);
    // A fast call, of which nothing is told; then a slow one.
    slow.slept(sleep(10, 40, true, 1));
    slow.slept(sleep(110, 700, true, 2));
    returned(&mut slow, &called(100, 800, 0, 590, 1));
    let waits = &slow.events[0].call.waits;
    assert_eq!((waits.len(), waits[0].stack, waits[0].time_ns), (1, Some(2), 590));
    // One whose first sleep was lost keeps none of an older call.
    slow.slept(sleep(810, 820, true, 1));
    slow.slept(sleep(1300, 1700, false, 2));
    returned(&mut slow, &called(1000, 1800, 0, 600, 2));
    let call = &slow.events[1].call;
    assert_eq!((call.waits.len(), call.waits_lost, call.asleep_ns, call.running_ns), (0, 2, 600, 200));
}

#[test]
fn a_sleep_that_was_lost_is_missing_from_the_waits_alone() {
    let mut slow = Slow::new(0, 1);
    slow.slept(sleep(110, 200, true, 1));
    returned(&mut slow, &called(100, 1000, 0, 590, 3));
    let call = &slow.events[0].call;
    assert_eq!((call.waits_lost, call.asleep_ns, call.waits[0].time_ns), (2, 590, 90));
    assert_eq!(call.running_ns + call.queued_ns + call.asleep_ns, call.time_ns);
}

#[test]
fn what_the_journals_thread_waited_for_is_cut_to_the_wait_for_it() {
    let mut slow = Slow::new(0, 1);
    let wait = |data_of| HelperWait { stack: Some(9), device: Some(0), data_of, time_ns: 0 };
    slow.helper_waited(JOURNAL, 10, 90, wait(Some(4)));
    slow.helper_waited(JOURNAL, 95, 150, wait(Some(4)));
    slow.helper_waited(JOURNAL, 160, 190, wait(None));
    slow.helper_waited(JOURNAL, 195, 260, wait(Some(4)));
    slow.slept(Sleep { ended_by: Some((5, Some(JOURNAL))), ..sleep(100, 250, true, 1) });
    returned(&mut slow, &called(100, 260, 0, 150, 1));
    let wait = &slow.events[0].call.waits[0];
    let mut parts: Vec<(Option<u32>, u64)> =
        wait.helper.iter().map(|helped| (helped.data_of, helped.time_ns)).collect();
    parts.sort_unstable();
    // Before 100 it worked for others; the last one is cut at the end of the sleep.
    assert_eq!(parts, [(None, 30), (Some(4), 50 + 55)]);
    assert!(parts.iter().map(|part| part.1).sum::<u64>() <= wait.time_ns);
}

#[test]
fn the_slowest_are_kept_in_order_and_nothing_below_them_is_asked_for() {
    let mut slow = Slow::new(1_000_000, 1);
    assert_eq!(slow.tell_from_ns(), 1, "whatever comes first");
    for n in 1..=100_u64 {
        // A permutation of 1..=100.
        let time_ns = n * 37 % 101;
        returned(&mut slow, &called(0, time_ns, 0, 0, 0));
    }
    let times: Vec<u64> = slow.slowest.iter().map(|kept| kept.call.time_ns).collect();
    assert_eq!(times, (81..=100).rev().collect::<Vec<_>>());
    assert_eq!((slow.tell_from_ns(), slow.over, slow.events.len()), (82, 0, 0));
    // An event below the slowest is still asked for.
    let mut low = Slow::new(50, 1);
    (100..140).for_each(|time_ns| low.told(time_ns));
    assert_eq!(low.tell_from_ns(), 51);
}

#[test]
fn an_event_has_the_seconds_around_it_and_those_beyond_the_number_are_counted() {
    let mut slow = Slow::new(500, 1);
    let second = |n: u64| Second { began_unix_ns: n, length_ns: 1, ..Second::default() };
    (0..6).for_each(|n| slow.second(second(n)));
    assert!(returned(&mut slow, &called(0, 1000, 0, 0, 0)));
    assert!(!returned(&mut slow, &called(1000, 3000, 0, 0, 0)), "one is enough");
    slow.second(second(6));
    assert!(!slow.is_complete());
    slow.second(second(7));
    slow.second(second(8));
    assert!(slow.is_complete());
    let around: Vec<u64> = slow.events[0].call.seconds.iter().map(|second| second.began_unix_ns).collect();
    assert_eq!(around, [4, 5, 6, 7], "two before, its own, one after");
    assert_eq!((slow.over, slow.slowest.len()), (2, 2));
}
