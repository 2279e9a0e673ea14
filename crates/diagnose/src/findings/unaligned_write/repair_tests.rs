//! Tests of the repair of `unaligned-write`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Do, Role};

use crate::repair::synthetic::{action, moved, plan, repair};

#[test]
fn whole_blocks_hold_all_bytes_that_were_written() {
    let was = plan(
        Role::ScratchFull,
        vec![action(Do::Write, 4096, 4000, 3, 8192), action(Do::Write, 50, 100, 1, 0)],
    );
    let now = repair(FindingId::UnalignedWrite, &was);
    assert!(now.actions().all(|a| a.place % 4096 == 0 && a.bytes == 4096));
    let after = moved(&now, Do::Write);
    assert!(moved(&was, Do::Write).iter().all(|b| after.binary_search(b).is_ok()));
}
