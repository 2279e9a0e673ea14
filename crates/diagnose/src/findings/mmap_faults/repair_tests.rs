//! Tests of the repair of `mmap-faults`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Op, Role};

use crate::findings::others;
use crate::repair::RunFacts;
use crate::repair::synthetic::{READ, action, count, moved, plan, repair};

#[test]
fn windows_become_one_mapping_and_fresh_memory_one_buffer() {
    let was = plan(Role::User, vec![action(Op::MapReadUnmap { populate: true }, 0, 65_536, 10, 65_536)]);
    for id in [FindingId::MmapFaults, FindingId::MmapLock] {
        assert_eq!(count(&repair(id, &was), Op::TouchPages), 10);
    }
    let reads = others(FindingId::MmapFaults, &was, &RunFacts::default()).remove(0).plan;
    assert_eq!(moved(&reads, READ), moved(&was, Op::MapReadUnmap { populate: true }));
    assert_eq!(reads.files[0].buffer_offset, 48, "a buffer of 64 KiB is on the heap");
    let looks = repair(FindingId::MmapFaults, &was);
    assert!(
        others(FindingId::MmapFaults, &looks, &RunFacts::default()).is_empty(),
        "no window comes and goes"
    );
    let was = plan(Role::User, vec![action(Op::Read { fresh: true }, 0, 1 << 20, 10, 1 << 20)]);
    assert_eq!(count(&repair(FindingId::FreshBuffers, &was), READ), 10);
}
