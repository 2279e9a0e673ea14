//! Tests of the repair of `unaligned-write`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Op, Role};

use crate::repair::synthetic::{action, moved, plan, repair};

#[test]
fn whole_blocks_hold_all_bytes_that_were_written() {
    let was = plan(
        Role::ScratchFull,
        vec![action(Op::Write, 4096, 4000, 3, 8192), action(Op::Write, 50, 100, 1, 0)],
    );
    let now = repair(FindingId::UnalignedWrite, &was);
    assert!(now.actions().all(|a| a.offset % 4096 == 0 && a.bytes == 4096));
    let after = moved(&now, Op::Write);
    assert!(moved(&was, Op::Write).iter().all(|b| after.binary_search(b).is_ok()));
}
