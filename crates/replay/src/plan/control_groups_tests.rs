//! Known answers for plans in control groups, and for the repairs outside of them.

use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{FileIdentity, GroupLimit, Limited, LimitedGroup, PatternFile, Step, StepKind};
use iowhy_core::replay::{Action, Op, Placed, Plan, PlanFile, Role, State};

use super::super::recorded::of_record as baseline;
use super::super::tests::recorded;
use super::*;
use iowhy_diagnose::classify::{Operation, Wait};
use iowhy_diagnose::findings::synthetic::Run;
use iowhy_diagnose::findings::{first_time, others, repaired};
use iowhy_diagnose::repair::RunFacts;

const MIB: u64 = 1 << 20;
const READ: Op = Op::Read { fresh: false };

fn limit(of: Limited, set_by: &str) -> GroupLimit {
    GroupLimit { of, set_by: set_by.to_owned(), words: format!("{of:?} is limited") }
}

fn group(directory: &str, limits: Vec<GroupLimit>) -> LimitedGroup {
    LimitedGroup { directory: directory.to_owned(), limits }
}

/// A program that goes over a file of 256 MiB eight times in pieces of 256 KiB, each time from the device.
fn passes(groups: Vec<LimitedGroup>) -> Run {
    let step = Step {
        kind: StepKind::Read,
        file: Some(0),
        place: Some(64 * MIB),
        bytes: 256 << 10,
        count: 40,
        stride: 256 << 10,
        gap_ns: 1000,
        time_ns: 10_000_000,
        ..Step::default()
    };
    let identity = FileIdentity { size_bytes: 256 * MIB, inode: 7, ..FileIdentity::default() };
    let of = PatternFile {
        path: "/data".into(),
        kind: "regular".into(),
        flags: Some(0),
        identity: Some(identity),
        ..PatternFile::default()
    };
    Run::new(2.0)
        .io((8192, 2048 * MIB), (0, 0))
        .device_read(2048 * MIB)
        .wait(Operation::Read, Wait::DeviceRead, 0.8)
        .busy(Operation::User, Layer::Program, 0.2)
        .with(|p| {
            p.pattern = recorded(vec![of], vec![step], 200);
            p.groups = groups;
        })
}

fn run_facts() -> RunFacts {
    RunFacts { fetched_bytes: 8e6, distinct_bytes: 1e6, ..RunFacts::default() }
}

#[test]
fn a_run_without_limits_is_replayed_where_we_are() {
    let found = passes(Vec::new()).facts(baseline).unwrap();
    assert_eq!((found.plan.placed, found.plan.files[0].state), (None, State::Cold));
    assert!(found.notes.iter().all(|note| !note.contains("replayed inside")), "{:?}", found.notes);
}

#[test]
fn what_memory_did_not_hold_is_as_warm_as_memory_allows_inside_and_repaired_outside() {
    let limits = vec![limit(Limited::Memory, "/cg/memory/top")];
    let found = passes(vec![group("/cg/memory/top/job", limits.clone())]).facts(baseline).unwrap();
    let inside = PlacedGroup { directory: "/cg/memory/top/job".to_owned(), limits };
    assert_eq!(found.plan.placed, Some(Placed { inside: vec![inside], outside: Vec::new() }));
    assert_eq!(found.plan.files[0].state, State::Warm);
    assert!(found.notes.iter().any(|n| n == "replayed inside `/cg/memory/top/job`: Memory is limited"));
    let now = repaired(FindingId::CacheThrash, &found.plan, &run_facts()).unwrap();
    let outside = Placed { inside: Vec::new(), outside: vec!["/cg/memory/top".to_owned()] };
    assert_eq!((now.plan.placed.as_ref(), now.unaffected_share), (Some(&outside), 0.125));
    assert_eq!((now.plan.files[0].state, &now.plan.threads), (State::Warm, &found.plan.threads));
    assert!(now.how.starts_with("without the limit of `/cg/memory/top`: nothing was changed"), "{}", now.how);
    let first = first_time(FindingId::CacheThrash, &found.plan).unwrap();
    assert_eq!((first.plan.placed, first.plan.files[0].state), (Some(outside), State::Cold));
    assert_eq!(first_time(FindingId::Throttled, &found.plan), None);
    // Of one run that goes around the file four times the first time is a fourth.
    let mut around = found.plan.clone();
    around.threads[0].truncate(1);
    (around.threads[0][0].count, around.passes) = (4096, 1);
    let times = |plan: &Plan| first_time(FindingId::CacheThrash, plan).unwrap().times_around;
    assert_eq!(times(&around), 4.0);
    around.threads[0][0].op = Op::MapReadUnmap { populate: false };
    assert_eq!(times(&around), 4.0, "windows fetch, too");
    assert_eq!(
        repaired(FindingId::CacheThrash, &around, &run_facts()).unwrap().unaffected_share,
        0.125,
        "of all times around"
    );
    (around.threads[0][0].count, around.passes) = (40, 2);
    assert_eq!(times(&around), 1.0);
}

#[test]
fn a_limit_of_a_disk_is_left_and_the_others_stay() {
    let groups = vec![
        group("/cg/blkio/a", vec![limit(Limited::Disk, "/cg/blkio/a")]),
        group("/cg/cpu/a", vec![limit(Limited::Cpu, "/cg/cpu/a")]),
    ];
    let plan = passes(groups).facts(baseline).unwrap().plan;
    assert_eq!(plan.files[0].state, State::Cold, "no limit of memory");
    let now = repaired(FindingId::Throttled, &plan, &run_facts()).unwrap();
    let placed = now.plan.placed.unwrap();
    assert_eq!((placed.inside.len(), placed.inside[0].directory.as_str()), (1, "/cg/cpu/a"));
    assert_eq!(placed.outside, ["/cg/blkio/a"]);
    assert_eq!((now.plan.threads, now.unaffected_share), (plan.threads.clone(), 0.0));
    assert_eq!(first_time(FindingId::CacheThrash, &plan), None);
    // Version 2: one group for all; its other limits go with it, and that is said.
    let both = vec![limit(Limited::Disk, "/cg/a"), limit(Limited::Memory, "/cg")];
    let plan = passes(vec![group("/cg/a", both)]).facts(baseline).unwrap().plan;
    let now = repaired(FindingId::Throttled, &plan, &run_facts()).unwrap();
    assert_eq!(now.plan.placed.unwrap().outside, ["/cg/a"]);
    assert!(now.how.starts_with("without the limits of `/cg/a`"), "{}", now.how);
}

#[test]
fn a_limit_of_cpu_time_and_one_that_was_not_seen_have_no_repair() {
    let cpu = vec![group("/cg/cpu/a", vec![limit(Limited::Cpu, "/cg/cpu/a")])];
    for (groups, word) in [(cpu, "CPU limit"), (Vec::new(), "no control group")] {
        let plan = passes(groups).facts(baseline).unwrap().plan;
        let why = repaired(FindingId::Throttled, &plan, &run_facts()).unwrap_err();
        assert!(why.contains(word), "{why}");
    }
}

#[test]
fn write_back_begins_for_all_that_is_written_in_order_and_in_pieces() {
    let write = |place: u64, count| Action {
        op: Op::Write,
        file: 0,
        offset: place,
        bytes: 256 << 10,
        count,
        stride: 256 << 10,
        think_ns: 5.0,
    };
    let plan =
        Plan { threads: vec![vec![write(0, 9), write(64 * MIB, 1)]], passes: 2, depth: 1, ..Plan::default() };
    let now = repaired(FindingId::DirtyThrottle, &plan, &run_facts()).unwrap().plan;
    let begun: Vec<(u64, u64)> =
        now.actions().filter(|a| a.op == Op::SyncFileRange).map(|a| (a.offset, a.bytes)).collect();
    assert_eq!(begun, [(0, MIB), (MIB, MIB), (2 * MIB, MIB / 4), (64 * MIB, MIB / 4)]);
    let places = |p: &Plan| -> Vec<u64> {
        p.actions().filter(|a| a.op == Op::Write).flat_map(|a| (0..a.count).map(|i| a.at(i))).collect()
    };
    assert_eq!(places(&now), places(&plan));
    assert!((now.think_ns() - plan.think_ns()).abs() < 1e-9);
    // Where memory could hold all of it, what is dirty is thrown away beside it, unless somebody waits for it.
    let raised = |plan: &Plan, can_stay_dirty| {
        others(FindingId::DirtyThrottle, plan, &RunFacts { can_stay_dirty, ..run_facts() })
    };
    assert!(raised(&plan, true).is_empty(), "the plan has no scratch file");
    let file = PlanFile::new("/out", Role::ScratchEmpty);
    let plan = Plan { files: vec![file], ..plan };
    assert!(raised(&plan, false).is_empty());
    let unlimited = raised(&plan, true).remove(0).plan;
    let thrown = unlimited.actions().filter(|a| a.op == Op::Truncate).count();
    assert_eq!((thrown, places(&unlimited)), (1, places(&plan)), "after each 2 MiB");
    let mut synced = plan.clone();
    synced.threads[0].push(Action::one(Op::Fsync { metadata: false }, 0, 0, 0, 0.0));
    assert!(raised(&synced, true).is_empty());
    let reads = Plan { threads: vec![vec![Action { op: READ, ..write(0, 1) }]], ..Plan::default() };
    assert!(repaired(FindingId::DirtyThrottle, &reads, &run_facts()).is_err());
}
