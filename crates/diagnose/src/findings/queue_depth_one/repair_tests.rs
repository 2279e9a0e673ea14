//! Tests of the repair of `queue-depth-one`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Action, Op, Plan, Role, State};

use crate::findings::{self, repaired};
use crate::repair::RunFacts;
use crate::repair::synthetic::{READ, action, file, moved, plan, repair};

#[test]
fn more_in_flight_reads_the_same_from_a_ring_or_from_threads() {
    let mut was = plan(Role::User, vec![action(READ, 0, 4096, 1000, 8192)]);
    let threads = repair(FindingId::QueueDepthOne, &was);
    assert_eq!((threads.threads.len(), threads.calls()), (16, 1000));
    assert_eq!(moved(&threads, READ), moved(&was, READ));
    was.files[0].direct = true;
    let ring = repair(FindingId::QueueDepthOne, &was);
    assert_eq!((ring.threads.len(), ring.depth), (1, 32));
    let writes = plan(Role::ScratchFull, vec![action(Op::Write, 0, 4096, 9, 4096)]);
    assert!(repaired(FindingId::QueueDepthOne, &writes, &RunFacts::default()).is_err());
}

#[test]
fn what_goes_nowhere_does_not_forbid_several_reads_in_flight() {
    // dd to /dev/null.
    let pairs = (0..100).flat_map(|i| {
        [action(READ, i * 4096, 4096, 1, 0), Action { file: 1, ..action(Op::Write, i * 4096, 4096, 1, 0) }]
    });
    let mut was =
        Plan { files: vec![file(Role::User), file(Role::Sink)], ..plan(Role::User, pairs.collect()) };
    assert_eq!(moved(&repair(FindingId::QueueDepthOne, &was), READ), moved(&was, READ));
    was.files[0].direct = true;
    assert_eq!(repair(FindingId::QueueDepthOne, &was).depth, 32);
    was.files[1].role = Role::ScratchEmpty;
    assert!(repaired(FindingId::QueueDepthOne, &was, &RunFacts::default()).is_err(), "their order matters");
}

/// Each block of a file once, out of order.
#[test]
fn reads_of_known_places_are_also_tried_in_their_order() {
    let others = |plan: &Plan| {
        let all = findings::others(FindingId::QueueDepthOne, plan, &RunFacts::default());
        all.into_iter().find(|other| other.how.contains("order of their places")).map(|other| other.plan)
    };
    let shuffled = |blocks: u64, apart: u64| {
        let read =
            |i: u64| Action { think_ns: i as f64, ..action(READ, i * 37 % blocks * apart, 4096, 1, 0) };
        let mut was = plan(Role::User, (0..100).map(read).collect());
        was.files[0].state = State::Cold;
        was
    };
    let was = shuffled(100, 4096);
    let sorted = others(&was).unwrap();
    let places = |plan: &Plan| plan.threads[0].iter().map(|a| a.offset).collect::<Vec<_>>();
    assert_eq!(places(&sorted), (0..100).map(|i| i * 4096).collect::<Vec<_>>());
    assert_eq!((sorted.think_ns(), moved(&sorted, READ)), (was.think_ns(), moved(&was, READ)));
    assert_eq!(others(&shuffled(100, 65_536)), None, "most of the file would be read for nothing");
    assert_eq!(others(&plan(Role::User, vec![action(READ, 0, 4096, 100, 4096)])), None, "in order, and warm");
    let mut writes = was.clone();
    writes.threads[0].push(action(Op::Write, 0, 1, 1, 0));
    assert_eq!(others(&writes), None, "what is written may decide what is read");
}

#[test]
fn reads_between_writes_are_announced_and_none_is_made_earlier() {
    let each = |i: u64| {
        [action(READ, i * 8192, 4096, 1, 0), Action { file: 1, ..action(Op::Write, i * 512, 512, 1, 0) }]
    };
    let mut was = Plan {
        files: vec![file(Role::User), file(Role::ScratchEmpty)],
        ..plan(Role::User, (0..100).flat_map(each).collect())
    };
    assert!(repaired(FindingId::QueueDepthOne, &was, &RunFacts::default()).is_err(), "nothing is cold");
    was.files[0].state = State::Cold;
    let now = repair(FindingId::QueueDepthOne, &was);
    assert_eq!(moved(&now, Op::FadviseWillNeed), moved(&was, READ));
    let without: Vec<Action> =
        now.threads[0].iter().copied().filter(|a| a.op != Op::FadviseWillNeed).collect();
    assert_eq!(without, was.threads[0]);
    assert!(now.threads[0][..64].iter().all(|a| a.op == Op::FadviseWillNeed));
}
