//! Tests of the repair of `no-readahead`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Advice, Op, Role, State};

use crate::findings::repaired;
use crate::repair::RunFacts;
use crate::repair::synthetic::{READ, action, moved, plan, repair};

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
