//! Tests of the repair of `sync-per-write`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Op, Role};

use crate::findings::repaired;
use crate::repair::synthetic::{READ, SYNC, action, count, moved, plan, repair};
use crate::repair::{RunFacts, Sizes};

#[test]
fn a_batch_of_records_is_made_durable_together_and_all_of_them_in_the_end() {
    let each = |i: u64| [action(Op::Write, i * 4096, 4096, 1, 0), action(SYNC, 0, 0, 1, 0)];
    let was = plan(Role::ScratchEmpty, (0..250).flat_map(each).collect());
    let now = repair(FindingId::SyncPerWrite, &was);
    assert_eq!((count(&now, Op::Write), count(&now, SYNC)), (250, 3));
    assert_eq!(now.threads[0].last().map(|a| a.op), Some(SYNC));
    assert_eq!(moved(&now, Op::Write), moved(&was, Op::Write));
    // O_DSYNC: no call of its own to leave out.
    let mut was = plan(Role::ScratchEmpty, vec![action(Op::Write, 0, 200, 250, 200)]);
    was.files[0].durable = true;
    let now = repair(FindingId::SyncPerWrite, &was);
    assert_eq!((count(&now, Op::Write), count(&now, SYNC), now.files[0].durable), (250, 3, false));
}

#[test]
fn a_batch_longer_than_the_plan_ends_with_it() {
    let each = |i: u64| [action(Op::Write, i * 4096, 4096, 1, 0), action(SYNC, 0, 0, 1, 0)];
    let was = plan(Role::ScratchEmpty, (0..50).flat_map(each).collect());
    let of = |batch| {
        let run_facts = RunFacts { sizes: Sizes { batch, ..Sizes::default() }, ..RunFacts::default() };
        repaired(FindingId::SyncPerWrite, &was, &run_facts).unwrap()
    };
    let three = of(150);
    assert_eq!((count(&three.plan, SYNC), three.how.as_str()), (1, "one fdatasync for 50 records"));
    let all = of(Sizes::ALL);
    assert_eq!((count(&all.plan, SYNC), all.how.as_str()), (1, "one fdatasync at the end"));
}

#[test]
fn what_a_batch_writes_again_at_the_same_place_is_written_once_at_best() {
    let write = |place: u64| action(Op::Write, place, 4096, 1, 0);
    // A header at its place, then a record behind the last.
    let each =
        |i: u64| [action(READ, 0, 16, 1, 0), write(0), write((1 + i) * 4096), action(SYNC, 0, 0, 1, 0)];
    let was = plan(Role::ScratchFull, (0..250).flat_map(each).collect());
    let found = repaired(FindingId::SyncPerWrite, &was, &RunFacts::default()).unwrap();
    assert_eq!((count(&found.plan, Op::Write), count(&found.plan, READ)), (500, 250));
    let best = found.at_best.unwrap();
    assert_eq!((count(&best, Op::Write), count(&best, READ), count(&best, SYNC)), (253, 3, 3));
    let last = |place| best.threads[0].iter().rposition(|a| a.op == Op::Write && a.offset == place);
    assert!(last(0) < last(250 * 4096), "in the order of the last ones");
    let appended =
        plan(Role::ScratchEmpty, (0..50).flat_map(|i| [write(i * 4096), action(SYNC, 0, 0, 1, 0)]).collect());
    assert_eq!(repaired(FindingId::SyncPerWrite, &appended, &RunFacts::default()).unwrap().at_best, None);
}
