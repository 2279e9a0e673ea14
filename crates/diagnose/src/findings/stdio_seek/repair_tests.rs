//! Tests of the repair of `stdio-seek`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Op, Role};

use crate::repair::synthetic::{READ, action, count, plan, repair};

#[test]
fn a_buffer_that_is_kept_serves_the_fields_it_holds() {
    // BufReader::seek to each 256th byte through a buffer of 64 KiB.
    let each = |i: u64| [action(Op::Seek, i * 256, 0, 1, 0), action(READ, i * 256, 65_536, 1, 0)];
    let was = plan(Role::User, (0..1000).flat_map(each).collect());
    let now = repair(FindingId::StdioSeek, &was);
    assert_eq!(count(&now, Op::Seek), 0);
    assert!((4..=6).contains(&count(&now, READ)), "{}", count(&now, READ));
    assert!((now.think_ns() - was.think_ns()).abs() < 1e-6);
    // At random, each read is of 512 bytes.
    let each = |i: u64| {
        let place = i * 7_919_000 % (1 << 29);
        [action(Op::Seek, place, 0, 1, 0), action(READ, place, 65_536, 1, 0)]
    };
    let was = plan(Role::User, (0..100).flat_map(each).collect());
    let now = repair(FindingId::StdioSeek, &was);
    assert!(now.actions().all(|a| a.bytes == 512) && now.calls() == 100);
}

#[test]
fn seeks_that_move_nothing_go_and_the_reads_stay() {
    // fseek and fread of 2 bytes each, in order, through a buffer of 4 KiB.
    let each = |i: u64| [action(Op::Seek, i * 4096, 0, 2048, 0), action(READ, i * 4096, 4096, 1, 0)];
    let was = plan(Role::User, (0..100).flat_map(each).collect());
    let now = repair(FindingId::StdioSeek, &was);
    assert_eq!((count(&now, Op::Seek), count(&now, READ)), (0, 100));
    // The last one has none behind it that tells.
    assert_eq!(now.actions().filter(|a| a.bytes == 4096).count(), 99);
}
