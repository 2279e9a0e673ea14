//! Tests of the repair of `small-requests`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Action, Op, Plan, Role};

use crate::findings::{others, repaired};
use crate::repair::synthetic::{READ, action, count, file, moved, plan, repair};
use crate::repair::{RunFacts, Sizes};

#[test]
fn small_reads_in_order_become_large_ones_of_the_same_bytes() {
    let was = plan(Role::User, vec![action(READ, 0, 128, 1000, 128)]);
    let now = repair(FindingId::SmallRequests, &was);
    assert_eq!(count(&now, READ), 2);
    assert_eq!(moved(&now, READ), moved(&was, READ));
    assert!((now.think_ns() - was.think_ns()).abs() < 1e-6, "own time is neither lost nor made");
    // dd: a read, a write, a read, a write.
    let pairs = (0..1000).flat_map(|i| {
        [action(READ, i * 64, 64, 1, 0), Action { file: 1, ..action(Op::Write, i * 64, 64, 1, 0) }]
    });
    let was = Plan { files: vec![file(Role::User), file(Role::Sink)], ..plan(Role::User, pairs.collect()) };
    let now = repair(FindingId::SmallRequests, &was);
    assert_eq!((count(&now, READ), count(&now, Op::Write)), (1, 1));
}

#[test]
fn calls_that_do_not_follow_each_other_have_nothing_to_merge() {
    let was = plan(Role::User, vec![action(READ, 0, 128, 1000, 4096)]);
    let why = repaired(FindingId::SmallRequests, &was, &RunFacts::default()).unwrap_err();
    assert!(why.contains("do not follow"), "{why}");
}

#[test]
fn reads_past_the_cache_are_also_tried_through_it_and_longer() {
    let mut was = plan(Role::User, vec![action(READ, 0, 8192, 1000, 8192)]);
    assert!(others(FindingId::SmallRequests, &was, &RunFacts::default()).is_empty());
    was.files[0].direct = true;
    let hows: Vec<String> =
        others(FindingId::SmallRequests, &was, &RunFacts::default()).into_iter().map(|r| r.how).collect();
    assert_eq!(hows, ["calls that follow each other merged to 1 MiB", "through the page cache"]);
    // Who says how large the requests are is not offered others.
    let asked = RunFacts { sizes: Sizes { depth: Some(4), ..Sizes::default() }, ..RunFacts::default() };
    assert!(others(FindingId::SmallRequests, &was, &asked).is_empty());
}
