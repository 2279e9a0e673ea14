//! Tests of the repair of `cache-thrash`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Op, Role, State};

use crate::findings::repaired;
use crate::repair::RunFacts;
use crate::repair::synthetic::{READ, action, count, plan};

#[test]
fn what_was_read_once_is_warm_afterwards_and_the_first_time_stays() {
    let mut was =
        plan(Role::User, vec![action(READ, 0, 4096, 10, 4096), action(Op::FadviseDontNeed, 0, 0, 1, 0)]);
    was.files[0].state = State::Cold;
    let run_facts = RunFacts { fetched_bytes: 5e6, distinct_bytes: 1e6, ..RunFacts::default() };
    let now = repaired(FindingId::CacheThrash, &was, &run_facts).unwrap();
    assert_eq!(
        (now.plan.files[0].state, count(&now.plan, Op::FadviseDontNeed), now.unaffected_share),
        (State::Warm, 0, 0.2)
    );
}
