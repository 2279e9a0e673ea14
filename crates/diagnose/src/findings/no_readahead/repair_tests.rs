//! Tests of the repair of `no-readahead`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Advice, Op, Role, State};

use crate::findings::repaired;
use crate::repair::synthetic::{READ, action, moved, plan, repair};
use crate::repair::{RunFacts, Sizes};

#[test]
fn against_no_read_ahead_the_hint_goes_and_the_order_is_turned() {
    let mut was = plan(Role::User, vec![action(READ, 0, 4096, 100, 4096)]);
    assert!(repaired(FindingId::NoReadahead, &was, &RunFacts::default()).is_err(), "nothing hinders it");
    was.files[0].advice = Advice::Random;
    assert_eq!(repair(FindingId::NoReadahead, &was).files[0].advice, Advice::Normal);
    let back = plan(Role::User, vec![action(READ, 99 * 4096, 4096, 100, -4096)]);
    let now = repair(FindingId::NoReadahead, &back);
    assert_eq!(now.threads[0].first().map(|a| a.offset), Some(0));
    assert_eq!(moved(&now, READ), moved(&back, READ));
    let mut direct = was.clone();
    direct.files[0].direct = true;
    let now = repair(FindingId::NoReadahead, &direct);
    assert_eq!((now.files[0].direct, now.files[0].state), (false, State::Cold));
}

#[test]
fn the_hint_against_read_ahead_of_a_mapping_goes() {
    let mut was = plan(Role::User, vec![action(Op::TouchPages, 0, 4096, 100, 4096)]);
    assert!(repaired(FindingId::NoReadahead, &was, &RunFacts::default()).is_err(), "nothing hinders it");
    was.files[0].advice = Advice::Random;
    let now = repair(FindingId::NoReadahead, &was);
    assert_eq!((now.files[0].advice, &now.threads), (Advice::Sequential, &was.threads));
}

#[test]
fn what_must_come_from_the_end_comes_in_pieces() {
    let back = plan(Role::User, vec![action(READ, 511 * 4096, 4096, 512, -4096)]);
    let sizes = Sizes { request_bytes: 1 << 20, ..Sizes::USUAL };
    let facts = RunFacts { sizes, ..RunFacts::default() };
    let now = repaired(FindingId::NoReadahead, &back, &facts).unwrap().plan;
    let pieces: Vec<_> = now.threads[0].iter().map(|a| (a.offset, a.bytes, a.count)).collect();
    assert_eq!(pieces, [(1 << 20, 1 << 20, 1), (0, 1 << 20, 1)]);
    assert_eq!(moved(&now, READ), moved(&back, READ));
    let own = |plan: &iowhy_core::replay::Plan| {
        plan.actions().map(|a| a.think_ns * f64::from(a.count)).sum::<f64>()
    };
    assert!((own(&now) - own(&back)).abs() < 1.0);
    // Every other block, and fewer bytes than a piece, make none.
    for (stride, count) in [(-8192, 256), (-4096, 200)] {
        let apart = plan(Role::User, vec![action(READ, 511 * 4096, 4096, count, stride)]);
        let now = repaired(FindingId::NoReadahead, &apart, &facts).unwrap();
        assert_eq!(now.plan, repair(FindingId::NoReadahead, &apart), "{stride}");
    }
    // What is read from the front has no choice of sizes.
    let mut front = plan(Role::User, vec![action(READ, 0, 4096, 100, 4096)]);
    front.files[0].advice = Advice::Random;
    let usual = repair(FindingId::NoReadahead, &front);
    assert_eq!(repaired(FindingId::NoReadahead, &front, &facts).unwrap().plan, usual);
}
