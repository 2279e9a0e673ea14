//! Tests of the repair of `inode-lock`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Op, Role};

use crate::repair::synthetic::{action, plan, repair};

#[test]
fn threads_that_share_a_file_get_one_each() {
    let of = |thread: u64| vec![action(Op::Write, thread * 4096, 4096, 10, 8 * 4096)];
    let mut was = plan(Role::ScratchEmpty, vec![]);
    was.threads = (0..4).map(of).collect();
    let now = repair(FindingId::InodeLock, &was);
    let mut files: Vec<u32> = now.threads.iter().map(|t| t[0].file).collect();
    files.dedup();
    assert_eq!((files.len(), now.files.len()), (4, 4));
    assert!(now.threads.iter().all(|t| t[0].offset == 0 && t[0].stride == 4096));
}
