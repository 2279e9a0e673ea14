//! Tests of the repair of `copy-bound`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Action, Op, Role, State};

use crate::findings::repaired;
use crate::repair::RunFacts;
use crate::repair::synthetic::{READ, action, count, plan};

#[test]
fn a_copy_is_spared_by_a_mapping_as_far_as_the_program_can_have_looked() {
    let was = |think_ns| plan(Role::User, vec![Action { think_ns, ..action(READ, 0, 1 << 20, 16, 1 << 20) }]);
    // 256 pages a call.
    let of = |own_ns: f64, page_load_ns| {
        let run_facts = RunFacts { page_load_ns, ..RunFacts::default() };
        repaired(FindingId::CopyBound, &was(256.0 * own_ns), &run_facts).unwrap().plan
    };
    assert_eq!(count(&of(5.0, 25.0), Op::TouchPages), 16, "no time to load all of a page");
    assert_eq!(count(&of(26.0, 25.0), Op::TouchLines), 16);
    assert_eq!(count(&of(5.0, 0.0), Op::TouchLines), 16, "nobody knows how long that takes here");
    let best = repaired(FindingId::CopyBound, &was(256.0 * 500.0), &RunFacts::default()).unwrap().at_best;
    assert_eq!(
        best.map(|plan| count(&plan, Op::TouchPages)),
        Some(16),
        "or it looked at one byte of each page"
    );
    let mut cold = was(1.0);
    cold.files[0].state = State::Cold;
    assert!(repaired(FindingId::CopyBound, &cold, &RunFacts::default()).is_err());
}
