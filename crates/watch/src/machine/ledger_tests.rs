//! Known answers and conservation laws of the ledger.

use proptest::prelude::*;

use super::*;

const ALONE: u32 = 1;
const NEIGHBOUR: u32 = 2;

fn key(tid: u32) -> Key {
    (tid, false, 0)
}

#[test]
fn an_instant_that_two_wait_for_is_shared_and_counted_once() {
    let mut ledger = Ledger::new(0, 2);
    ledger.begin(10, key(1), ALONE, 0, IO);
    ledger.begin(20, key(2), NEIGHBOUR, 0, IO);
    assert_eq!(ledger.end(30, &key(1)).unwrap().time_ns, 20);
    assert_eq!(ledger.end(50, &key(2)).unwrap().time_ns, 30);
    let period = ledger.close_period(100);
    assert_eq!(period.stalls, [[40, 0], [0, 0]]);
    let part = |of| period.parts.iter().find(|p| p.0 == of).unwrap().2[0];
    assert_eq!((part(ALONE), part(NEIGHBOUR)), (15.0, 25.0));
}

#[test]
fn a_wait_over_two_periods_has_its_part_in_each() {
    let mut ledger = Ledger::new(0, 1);
    ledger.begin(40, key(1), ALONE, 0, IO | MEMORY);
    let first = ledger.close_period(100);
    assert_eq!((first.stalls[0], first.parts[0].2), ([60, 60], [60.0, 60.0]));
    assert_eq!(ledger.end(130, &key(1)).unwrap().time_ns, 90);
    let second = ledger.close_period(200);
    assert_eq!((second.stalls[0], second.parts[0].2), ([30, 30], [30.0, 30.0]));
    assert!(ledger.end(210, &key(1)).is_none(), "it is over");
}

#[test]
fn the_neighbour_is_charged_by_its_part_of_the_requests_and_nobody_by_his_own() {
    let mut ledger = Ledger::new(0, 1);
    ledger.load(0, 0, NEIGHBOUR, 1);
    ledger.load(0, 0, NEIGHBOUR, 1);
    ledger.load(0, 0, NEIGHBOUR, 1);
    ledger.begin(100, key(1), ALONE, 0, IO);
    ledger.load(100, 0, ALONE, 1);
    ledger.load(200, 0, ALONE, -1);
    let closed = ledger.end(200, &key(1)).unwrap();
    assert_eq!(ledger.causes(&closed, 0), [(Some(NEIGHBOUR), 75.0)]);
    assert_eq!(ledger.causes(&closed, 1), [], "nothing was at another device");
    // Alone at the device: nobody else is the cause.
    (0..3).for_each(|_| ledger.load(200, 0, NEIGHBOUR, -1));
    ledger.begin(300, key(1), ALONE, 0, IO);
    ledger.load(300, 0, ALONE, 1);
    let closed = ledger.end(400, &key(1)).unwrap();
    assert_eq!(ledger.causes(&closed, 0), []);
}

#[test]
fn a_wait_is_without_requests_only_while_the_device_has_none_of_anybody() {
    let mut ledger = Ledger::new(0, 1);
    // Never heard of: it may have been busy.
    ledger.begin(0, key(1), ALONE, 0, IO);
    ledger.load(100, 0, NEIGHBOUR, 1);
    let closed = ledger.end(150, &key(1)).unwrap();
    assert_eq!(ledger.without_requests(&closed, 0), 0.0);
    ledger.begin(150, key(1), ALONE, 0, IO);
    ledger.begin(150, key(2), ALONE, 0, IO);
    ledger.load(200, 0, NEIGHBOUR, -1);
    ledger.load(270, 0, ALONE, 1);
    ledger.load(280, 0, ALONE, -1);
    // Two threads of one process: each has its own.
    for tid in [1, 2] {
        let closed = ledger.end(280, &key(tid)).unwrap();
        assert_eq!((closed.time_ns, ledger.without_requests(&closed, 0)), (130, 70.0));
    }
    assert_eq!(ledger.without_requests(&Closed::default(), 0), 0.0, "its marks are not known");
}

#[test]
fn a_waiter_that_is_not_told_apart_is_not_delayed_by_the_pool_that_it_may_be_in() {
    let mut ledger = Ledger::new(0, 1);
    let named = MAX_OWNERS as u32 - 1;
    (0..named).for_each(|subject| ledger.load(0, 0, subject, 1));
    assert_eq!(ledger.pooled, 0);
    let (pooled, apart) = (named + 5, 0);
    ledger.begin(0, key(1), pooled, 0, IO);
    ledger.begin(0, key(2), apart, 0, IO);
    ledger.load(0, 0, pooled, 1);
    assert_eq!(ledger.pooled, 1);
    let causes = |ledger: &mut Ledger, tid| {
        let closed = ledger.end(32, &key(tid)).unwrap();
        ledger.causes(&closed, 0)
    };
    let own = causes(&mut ledger, 1);
    assert_eq!((own.len(), own.iter().any(|cause| cause.0.is_none())), (MAX_OWNERS - 1, false));
    let other = causes(&mut ledger, 2);
    assert_eq!((other.len(), other.contains(&(None, 1.0))), (MAX_OWNERS - 1, true));
}

#[test]
fn requests_that_were_lost_from_sight_are_charged_to_nobody() {
    let mut ledger = Ledger::new(0, 1);
    ledger.load(0, 0, NEIGHBOUR, 1);
    ledger.forget_loads(10);
    ledger.begin(10, key(1), ALONE, 0, IO);
    ledger.load(20, 0, NEIGHBOUR, -1);
    let closed = ledger.end(30, &key(1)).unwrap();
    assert_eq!(ledger.causes(&closed, 0), []);
}

#[test]
fn memory_is_bounded_and_what_does_not_fit_is_counted() {
    let mut ledger = Ledger::new(0, 1);
    let waits = MAX_OPEN as u32 + 10;
    (0..waits).for_each(|tid| ledger.begin(1, key(tid), ALONE, 0, IO));
    assert_eq!(ledger.open.len(), MAX_OPEN);
    assert_eq!(ledger.marked, MAX_MARKED);
    assert_eq!(ledger.lost, 10 + (MAX_OPEN - MAX_MARKED) as u64);
    (0..100).for_each(|subject| ledger.load(2, 0, subject, 1));
    assert_eq!((ledger.loads[0].owners.len(), ledger.loads[0].requests), (MAX_OWNERS, 100));
}

#[derive(Clone, Debug)]
enum Step {
    Begin { tid: u32, cpu: u32, flags: u32 },
    End { tid: u32 },
    Load { device: usize, subject: u32, change: i32 },
    Period,
    Interval,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        (0_u32..6, 0_u32..3, 0_u32..4).prop_map(|(tid, cpu, flags)| Step::Begin { tid, cpu, flags }),
        (0_u32..6).prop_map(|tid| Step::End { tid }),
        (0_usize..2, 0_u32..6, prop_oneof![Just(1), Just(-1)])
            .prop_map(|(device, subject, change)| Step::Load { device, subject, change }),
        Just(Step::Period),
        Just(Step::Interval),
    ];
    prop::collection::vec((0_u64..50, step), 0..120)
}

proptest! {
    #[test]
    fn parts_sum_to_the_stalls_and_causes_to_no_more_than_the_wait(steps in steps()) {
        let (mut ledger, mut now) = (Ledger::new(0, 3), 0);
        let (mut stalled, mut parted, mut waited, mut closed_ns) = ([0.0; 2], [0.0; 2], 0_u64, 0_u64);
        let mut add = |period: Period| {
            for kind in 0..2 {
                stalled[kind] += period.stalls.iter().map(|s| s[kind] as f64).sum::<f64>();
                parted[kind] += period.parts.iter().map(|p| p.2[kind]).sum::<f64>();
            }
        };
        for (passed, step) in steps {
            waited += passed * ledger.open.len() as u64;
            now += passed;
            match step {
                Step::Begin { tid, cpu, flags } => ledger.begin(now, key(tid), tid, cpu, flags),
                Step::End { tid } => {
                    if let Some(closed) = ledger.end(now, &key(tid)) {
                        closed_ns += closed.time_ns;
                        let causes: f64 = ledger.causes(&closed, 0).iter().map(|c| c.1).sum();
                        prop_assert!(causes <= closed.time_ns as f64 + 1e-6);
                    }
                }
                Step::Load { device, subject, change } => ledger.load(now, device, subject, change),
                Step::Period => add(ledger.close_period(now)),
                Step::Interval => {
                    add(ledger.close_period(now));
                    for (_, closed) in ledger.so_far() {
                        closed_ns += closed.time_ns;
                        let causes: f64 = ledger.causes(&closed, 0).iter().map(|c| c.1).sum();
                        prop_assert!(causes <= closed.time_ns as f64 + 1e-6);
                    }
                    ledger.begin_interval();
                }
            }
        }
        let rest = ledger.so_far();
        closed_ns += rest.iter().map(|(_, closed)| closed.time_ns).sum::<u64>();
        add(ledger.close_period(now));
        prop_assert_eq!(closed_ns, waited, "every instant of every wait is in one");
        for kind in 0..2 {
            prop_assert!((stalled[kind] - parted[kind]).abs() < 1e-6, "{} {}", stalled[kind], parted[kind]);
        }
    }
}
