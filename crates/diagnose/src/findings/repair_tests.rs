//! Tests of the repairs of all findings.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Action, Op, Plan, Role};
use proptest::prelude::*;

use crate::findings::{repaired, together};
use crate::repair::RunFacts;
use crate::repair::synthetic::{READ, SYNC, action, count, file, moved, plan};

#[test]
fn each_finding_has_a_repair_or_a_reason() {
    let nothing = plan(Role::User, vec![]);
    let mut reasons = 0;
    for id in FindingId::ALL {
        match repaired(*id, &nothing, &RunFacts::default()) {
            Err(why) => {
                reasons += 1;
                assert!(why.len() > 10 && !why.ends_with('.'), "{}: {why}", id.id());
            }
            Ok(repaired) => assert!(!repaired.how.is_empty(), "{}", id.id()),
        }
    }
    assert!(reasons > 10, "{reasons}: most repairs need something to repair");
}

#[test]
fn all_repairs_go_into_one_plan() {
    let each = |i: u64| {
        [
            action(Op::Write, i * 512, 512, 1, 0),
            action(SYNC, 0, 0, 1, 0),
            Action { file: 1, ..action(READ, i * 64, 64, 1, 0) },
        ]
    };
    let was = Plan {
        files: vec![file(Role::ScratchEmpty), file(Role::User)],
        ..plan(Role::User, (0..100).flat_map(each).collect())
    };
    let ids = [FindingId::SyncPerWrite, FindingId::SmallRequests, FindingId::Throttled];
    let (done, all) = together(&ids, &was, &RunFacts::default()).unwrap();
    assert_eq!(done, ids[..2]);
    assert_eq!((count(&all.plan, Op::Write), count(&all.plan, READ), count(&all.plan, SYNC)), (1, 1, 1));
    assert!(together(&ids[1..], &was, &RunFacts::default()).is_none(), "one alone is not together");
}

proptest! {
    #[test]
    fn no_repair_loses_a_byte_or_own_time(
        steps in prop::collection::vec((0..3u8, 0..64u64, 1..5u64, 1..6u32), 1..60),
    ) {
        let mut end = 0;
        let actions: Vec<Action> = steps.iter().map(|&(how, place, bytes, count)| {
            let place = if how == 0 { place * 512 } else { end };
            let a = action(READ, place, bytes * 512, count, (bytes * 512) as i64);
            end = a.at(count);
            a
        }).collect();
        let was = plan(Role::User, actions);
        for id in [FindingId::SmallRequests, FindingId::ReadaheadWaste, FindingId::QueueDepthOne] {
            if let Ok(now) = repaired(id, &was, &RunFacts::default()) {
                prop_assert_eq!(moved(&now.plan, READ), moved(&was, READ));
                prop_assert!((now.plan.think_ns() - was.think_ns()).abs() < 1e-3);
            }
        }
    }
}
