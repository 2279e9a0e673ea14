//! Tests of the repair of `mmap-faults`.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Advice, Op, Plan, Role, State};

use crate::findings::{others, repaired};
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

#[test]
fn touches_in_order_are_announced_and_those_at_random_are_populated_first() {
    let touch = |page: u64, count, stride| action(Op::TouchPages, page * 4096, 4096, count, stride);
    let mut was = plan(Role::User, vec![touch(0, 100, 4096), touch(101, 50, 65_536)]);
    was.files[0].advice = Advice::Random;
    let now = repair(FindingId::MmapFaults, &was);
    assert_eq!((now.files[0].advice, &now.threads), (Advice::Sequential, &was.threads));
    let mut random =
        plan(Role::User, vec![touch(70, 1, 0), touch(3, 1, 0), touch(90, 1, 0), touch(40, 1, 0)]);
    random.files[0].size_bytes = 1 << 20;
    let of = |plan: &Plan, fetched_bytes: f64| {
        repaired(FindingId::MmapFaults, plan, &RunFacts { fetched_bytes, ..RunFacts::default() })
    };
    assert!(of(&random, 1e6).unwrap_err().contains("are cached"));
    random.files[0].state = State::Cold;
    let now = of(&random, 600_000.0).unwrap().plan;
    let first = now.threads[0][0];
    assert_eq!((first.op, first.offset, first.bytes), (Op::MapReadUnmap { populate: true }, 0, 1 << 20));
    assert_eq!(now.threads[0][1..], random.threads[0]);
    assert!(of(&random, 500_000.0).unwrap_err().contains("fetched little"));
}
