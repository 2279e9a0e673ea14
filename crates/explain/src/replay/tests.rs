//! Known answers for plans, repairs and words.

#[path = "shape_tests.rs"]
mod shape;

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{CallPattern, FileIdentity, PatternFile, Step, StepKind, Stretch};
use iowhy_core::replay::{Action, Advice, Do, Plan, PlanFile, Role, State};
use proptest::prelude::*;

use super::repair::{Beside, Sizes, others, repaired, together};
use super::verdict::{Word, fidelity, is_faithful, measured, word};
use super::{AsWas, as_was};
use crate::classify::{Operation, Wait};
use crate::finding::synthetic::Run;

const READ: Do = Do::Read { fresh: false };
const SYNC: Do = Do::Sync { whole: false };

fn file(role: Role) -> PlanFile {
    PlanFile { size_bytes: 1 << 30, ..PlanFile::new("/data", role) }
}

fn action(what: Do, place: u64, bytes: u64, count: u32, stride: i64) -> Action {
    Action { what, file: 0, place, bytes, count, stride, think_ns: 10.0 }
}

fn plan(role: Role, actions: Vec<Action>) -> Plan {
    Plan { files: vec![file(role)], threads: vec![actions], passes: 1, depth: 1, ..Plan::default() }
}

fn repair(id: FindingId, plan: &Plan) -> Plan {
    repaired(id, plan, &Beside::default()).unwrap().plan
}

fn count(plan: &Plan, what: Do) -> u64 {
    plan.actions().filter(|a| a.what == what).map(|a| u64::from(a.count)).sum()
}

/// Every byte that calls of a kind move, as often as they move it.
fn moved(plan: &Plan, what: Do) -> Vec<u64> {
    let mut bytes: Vec<u64> = plan
        .actions()
        .filter(|a| a.what == what)
        .flat_map(|a| (0..a.count).flat_map(|i| a.at(i)..a.at(i) + a.bytes))
        .collect();
    bytes.sort_unstable();
    bytes
}

#[test]
fn small_reads_in_order_become_large_ones_of_the_same_bytes() {
    let was = plan(Role::Own, vec![action(READ, 0, 128, 1000, 128)]);
    let now = repair(FindingId::SmallRequests, &was);
    assert_eq!(count(&now, READ), 2);
    assert_eq!(moved(&now, READ), moved(&was, READ));
    assert!((now.think_ns() - was.think_ns()).abs() < 1e-6, "own time is neither lost nor made");
    // dd: a read, a write, a read, a write.
    let pairs = (0..1000).flat_map(|i| {
        [action(READ, i * 64, 64, 1, 0), Action { file: 1, ..action(Do::Write, i * 64, 64, 1, 0) }]
    });
    let was = Plan { files: vec![file(Role::Own), file(Role::Sink)], ..plan(Role::Own, pairs.collect()) };
    let now = repair(FindingId::SmallRequests, &was);
    assert_eq!((count(&now, READ), count(&now, Do::Write)), (1, 1));
}

#[test]
fn calls_that_do_not_follow_each_other_have_nothing_to_merge() {
    let was = plan(Role::Own, vec![action(READ, 0, 128, 1000, 4096)]);
    let why = repaired(FindingId::SmallRequests, &was, &Beside::default()).unwrap_err();
    assert!(why.contains("do not follow"), "{why}");
}

#[test]
fn a_batch_of_records_is_made_durable_together_and_all_of_them_in_the_end() {
    let each = |i: u64| [action(Do::Write, i * 4096, 4096, 1, 0), action(SYNC, 0, 0, 1, 0)];
    let was = plan(Role::ScratchEmpty, (0..250).flat_map(each).collect());
    let now = repair(FindingId::SyncPerWrite, &was);
    assert_eq!((count(&now, Do::Write), count(&now, SYNC)), (250, 3));
    assert_eq!(now.threads[0].last().map(|a| a.what), Some(SYNC));
    assert_eq!(moved(&now, Do::Write), moved(&was, Do::Write));
    // O_DSYNC: no call of its own to leave out.
    let mut was = plan(Role::ScratchEmpty, vec![action(Do::Write, 0, 200, 250, 200)]);
    was.files[0].durable = true;
    let now = repair(FindingId::SyncPerWrite, &was);
    assert_eq!((count(&now, Do::Write), count(&now, SYNC), now.files[0].durable), (250, 3, false));
}

#[test]
fn more_in_flight_reads_the_same_from_a_ring_or_from_threads() {
    let mut was = plan(Role::Own, vec![action(READ, 0, 4096, 1000, 8192)]);
    let threads = repair(FindingId::QueueDepthOne, &was);
    assert_eq!((threads.threads.len(), threads.calls()), (16, 1000));
    assert_eq!(moved(&threads, READ), moved(&was, READ));
    was.files[0].direct = true;
    let ring = repair(FindingId::QueueDepthOne, &was);
    assert_eq!((ring.threads.len(), ring.depth), (1, 32));
    let writes = plan(Role::ScratchFull, vec![action(Do::Write, 0, 4096, 9, 4096)]);
    assert!(repaired(FindingId::QueueDepthOne, &writes, &Beside::default()).is_err());
}

#[test]
fn what_goes_nowhere_does_not_forbid_several_reads_in_flight() {
    // dd to /dev/null.
    let pairs = (0..100).flat_map(|i| {
        [action(READ, i * 4096, 4096, 1, 0), Action { file: 1, ..action(Do::Write, i * 4096, 4096, 1, 0) }]
    });
    let mut was = Plan { files: vec![file(Role::Own), file(Role::Sink)], ..plan(Role::Own, pairs.collect()) };
    assert_eq!(moved(&repair(FindingId::QueueDepthOne, &was), READ), moved(&was, READ));
    was.files[0].direct = true;
    assert_eq!(repair(FindingId::QueueDepthOne, &was).depth, 32);
    was.files[1].role = Role::ScratchEmpty;
    assert!(repaired(FindingId::QueueDepthOne, &was, &Beside::default()).is_err(), "their order matters");
}

#[test]
fn against_no_read_ahead_the_hint_goes_and_the_order_is_turned() {
    let mut was = plan(Role::Own, vec![action(READ, 0, 4096, 100, 4096)]);
    assert!(repaired(FindingId::NoReadahead, &was, &Beside::default()).is_err(), "nothing hinders it");
    was.files[0].advice = Advice::Random;
    assert_eq!(repair(FindingId::NoReadahead, &was).files[0].advice, Advice::Normal);
    let back = plan(Role::Own, vec![action(READ, 99 * 4096, 4096, 100, -4096)]);
    let now = repair(FindingId::NoReadahead, &back);
    assert_eq!(now.threads[0].first().map(|a| a.place), Some(0));
    assert_eq!(moved(&now, READ), moved(&back, READ));
    let mut direct = was.clone();
    direct.files[0].direct = true;
    let now = repair(FindingId::NoReadahead, &direct);
    assert_eq!((now.files[0].direct, now.files[0].state), (false, State::Cold));
}

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

#[test]
fn a_buffer_that_is_kept_serves_the_fields_it_holds() {
    // BufReader::seek to each 256th byte through a buffer of 64 KiB.
    let each = |i: u64| [action(Do::Seek, i * 256, 0, 1, 0), action(READ, i * 256, 65_536, 1, 0)];
    let was = plan(Role::Own, (0..1000).flat_map(each).collect());
    let now = repair(FindingId::StdioSeek, &was);
    assert_eq!(count(&now, Do::Seek), 0);
    assert!((4..=6).contains(&count(&now, READ)), "{}", count(&now, READ));
    assert!((now.think_ns() - was.think_ns()).abs() < 1e-6);
    // At random, each read is of 512 bytes.
    let each = |i: u64| {
        let place = i * 7_919_000 % (1 << 29);
        [action(Do::Seek, place, 0, 1, 0), action(READ, place, 65_536, 1, 0)]
    };
    let was = plan(Role::Own, (0..100).flat_map(each).collect());
    let now = repair(FindingId::StdioSeek, &was);
    assert!(now.actions().all(|a| a.bytes == 512) && now.calls() == 100);
}

#[test]
fn windows_become_one_mapping_and_fresh_memory_one_buffer() {
    let was = plan(Role::Own, vec![action(Do::Window { populate: true }, 0, 65_536, 10, 65_536)]);
    for id in [FindingId::MmapFaults, FindingId::MmapLock] {
        assert_eq!(count(&repair(id, &was), Do::Look), 10);
    }
    let reads = others(FindingId::MmapFaults, &was, &Beside::default()).remove(0).plan;
    assert_eq!(moved(&reads, READ), moved(&was, Do::Window { populate: true }));
    assert_eq!(reads.files[0].buffer_offset, 48, "a buffer of 64 KiB is on the heap");
    let looks = repair(FindingId::MmapFaults, &was);
    assert!(others(FindingId::MmapFaults, &looks, &Beside::default()).is_empty(), "no window comes and goes");
    let was = plan(Role::Own, vec![action(Do::Read { fresh: true }, 0, 1 << 20, 10, 1 << 20)]);
    assert_eq!(count(&repair(FindingId::FreshBuffers, &was), READ), 10);
}

/// A program that touches a cold mapping at random, and is read ahead: 5 faults waited, 420 did not.
fn toucher(size_bytes: u64) -> Run {
    let identity = FileIdentity { size_bytes, inode: 7, ..FileIdentity::default() };
    Run::new(1.0)
        .wait(Operation::Fault, Wait::DeviceRead, 0.9)
        .busy(Operation::User, Layer::Program, 0.1)
        .file(size_bytes, |f| (f.mapped, f.cached_before) = (true, Some(0.0)))
        .with(|p| {
            let path = p.files[0].path.clone();
            let of = PatternFile { path, kind: "regular".into(), flags: Some(0), identity: Some(identity) };
            p.pattern.files = vec![of];
            (p.io.major_faults, p.io.minor_faults) = (Some(5), Some(420));
            p.io.device_read_bytes = Some(16 << 20);
        })
}

#[test]
fn touches_of_a_mapping_are_counted_by_faults_unless_a_fault_hides_most_of_them() {
    let many = toucher(1 << 30).facts(as_was).unwrap().plan;
    assert_eq!((many.calls(), many.files[0].state), (305, State::Cold), "120 are of the start");
    let hidden = toucher(16 << 20).facts(as_was).unwrap_err();
    assert!(hidden.contains("how many pages were touched is not seen"), "{hidden}");
}

/// Bursts saw 20 of the windows that a program mapped.
#[test]
fn windows_are_as_many_as_were_mapped_and_by_bursts_where_nobody_counted() {
    let identity = FileIdentity { size_bytes: 1 << 30, inode: 7, ..FileIdentity::default() };
    let run = |mappings| {
        Run::new(1.0)
            .busy(Operation::Fault, Layer::Memory, 0.9)
            .calls(&[("mmap", 20)])
            .file(1 << 30, |f| (f.mapped, f.mappings) = (true, mappings))
            .with(|p| {
                let sample = p.calls.as_mut().expect("just given");
                (sample.complete, sample.observed_ns) = (false, p.wall_ns / 10);
                let path = p.files[0].path.clone();
                let of =
                    PatternFile { path, kind: "regular".into(), flags: Some(0), identity: Some(identity) };
                p.pattern.files = vec![of];
                let map = |n: u64| Step {
                    kind: StepKind::Map,
                    file: Some(0),
                    place: Some(n * 65_536),
                    bytes: 65_536,
                    ..Step::default()
                };
                p.pattern.stretches =
                    vec![Stretch { length_ns: 100_000_000, steps: (0..20u64).map(map).collect() }];
            })
    };
    let windows = |mappings| {
        let found = run(mappings).facts(as_was).unwrap();
        (found.scale * found.plan.calls() as f64 * f64::from(found.plan.passes)).round()
    };
    assert_eq!(windows(260), 260.0);
    assert_eq!(windows(0), 200.0, "a tenth of the run was seen");
}

#[test]
fn threads_that_share_a_file_get_one_each() {
    let of = |thread: u64| vec![action(Do::Write, thread * 4096, 4096, 10, 8 * 4096)];
    let mut was = plan(Role::ScratchEmpty, vec![]);
    was.threads = (0..4).map(of).collect();
    let now = repair(FindingId::InodeLock, &was);
    let mut files: Vec<u32> = now.threads.iter().map(|t| t[0].file).collect();
    files.dedup();
    assert_eq!((files.len(), now.files.len()), (4, 4));
    assert!(now.threads.iter().all(|t| t[0].place == 0 && t[0].stride == 4096));
}

#[test]
fn what_was_read_once_is_warm_afterwards_and_the_first_time_stays() {
    let mut was = plan(Role::Own, vec![action(READ, 0, 4096, 10, 4096), action(Do::Forget, 0, 0, 1, 0)]);
    was.files[0].state = State::Cold;
    let beside = Beside { fetched_bytes: 5e6, distinct_bytes: 1e6, ..Beside::default() };
    let now = repaired(FindingId::CacheThrash, &was, &beside).unwrap();
    assert_eq!((now.plan.files[0].state, count(&now.plan, Do::Forget), now.kept), (State::Warm, 0, 0.2));
}

#[test]
fn each_finding_has_a_repair_or_a_reason() {
    for id in FindingId::ALL {
        if let Err(why) = repaired(*id, &plan(Role::Own, vec![]), &Beside::default()) {
            assert!(why.len() > 10 && !why.ends_with('.'), "{}: {why}", id.id());
        }
    }
}

proptest! {
    #[test]
    fn no_repair_loses_a_byte_or_own_time(
        steps in prop::collection::vec((0..3u8, 0..64u64, 1..5u64, 1..6u32), 1..60),
    ) {
        let mut end = 0;
        let actions: Vec<Action> = steps.iter().map(|&(how, place, bytes, count)| {
            let place = if how == 0 { place * 512 } else { end };
            let a = action(READ, place, bytes * 512, count, (bytes * 512) as i64);
            end = a.at(count);
            a
        }).collect();
        let was = plan(Role::Own, actions);
        for id in [FindingId::SmallRequests, FindingId::ReadaheadWaste, FindingId::QueueDepthOne] {
            if let Ok(now) = repaired(id, &was, &Beside::default()) {
                prop_assert_eq!(moved(&now.plan, READ), moved(&was, READ));
                prop_assert!((now.plan.think_ns() - was.think_ns()).abs() < 1e-3);
            }
        }
    }
}

/// A program that reads a warm file by 128 bytes: 1,000 calls of 100,000 were seen in their order.
fn reader() -> Run {
    let step = Step {
        kind: StepKind::Read,
        file: Some(0),
        place: Some(1 << 20),
        bytes: 128,
        count: 1000,
        stride: 128,
        gap_ns: 100_000,
        time_ns: 900_000,
        ..Step::default()
    };
    let identity = FileIdentity { size_bytes: 1 << 30, inode: 7, ..FileIdentity::default() };
    let of = PatternFile {
        path: "/data".into(),
        kind: "regular".into(),
        flags: Some(0),
        identity: Some(identity),
    };
    let stretch = Stretch { length_ns: 1_000_000, steps: vec![step] };
    Run::new(0.1)
        .io((100_000, 12_800_000), (0, 0))
        .busy(Operation::Read, Layer::Call, 0.8)
        .busy(Operation::User, Layer::Program, 0.2)
        .with(|p| p.pattern = CallPattern { files: vec![of], stretches: vec![stretch] })
}

#[test]
fn the_run_as_it_was_is_the_calls_that_were_seen_scaled_to_the_run() {
    let found = reader().facts(as_was).unwrap();
    let plan = &found.plan;
    assert_eq!((plan.files.len(), plan.threads.len()), (1, 1));
    assert_eq!((plan.files[0].role, plan.files[0].state), (Role::Own, State::Warm));
    // Stretches that go on where the one before ended are one long pass, a single run of calls.
    let calls = plan.calls();
    assert_eq!((plan.threads[0].len(), calls % 1000), (1, 0));
    assert!(calls > 10_000, "{calls}");
    assert_eq!(plan.files[0].shift_bytes, calls * 128);
    assert!((found.scale * f64::from(plan.passes) * calls as f64 - 100_000.0).abs() < 1e-3);
    assert!((found.program_io_ns - 8e7).abs() < 1.0);
    // Tracing is in the gaps; the account knows the own time: 0.02 s of 100,000 calls.
    assert!((plan.think_ns() - 100.0 * calls as f64).abs() < 1e-3);
}

#[test]
fn a_file_that_is_written_is_replayed_on_a_file_of_ours() {
    let run = reader().with(|p| {
        p.pattern.stretches[0].steps[0].kind = StepKind::Write;
        p.io.write_calls = Some(100_000);
        p.io.read_calls = Some(0);
    });
    let found = run.facts(as_was).unwrap();
    assert_eq!(found.plan.files[0].role, Role::ScratchEmpty);
    assert_eq!(found.plan.threads[0][0].place, 0, "it is appended to an empty file");
}

#[test]
fn runs_that_cannot_be_replayed_say_why() {
    let why = |run: Run| run.facts(as_was).unwrap_err();
    assert!(why(reader().with(|p| p.pattern = CallPattern::default())).contains("no calls in their order"));
    assert!(why(reader().with(|p| p.pattern.files[0].identity = None)).contains("gone"));
    assert!(why(reader().with(|p| p.pattern.files[0].path = "?".into())).contains("not known"));
    assert!(why(reader().with(|p| p.pattern.files[0].kind = "pipe".into())).contains("regular"));
    let ring = Run::new(1.0).wait(Operation::Ring, Wait::Completion, 1.0);
    assert!(why(ring).contains("io_uring"));
}

#[test]
fn calls_weigh_by_their_bytes_where_few_large_ones_are_the_run() {
    // Ten reads of 64 MiB among ninety of 1 KiB: two of the large ones were seen.
    let large = 64 << 20;
    let run = reader().with(|p| {
        let step = &mut p.pattern.stretches[0].steps[0];
        (step.bytes, step.count, step.stride) = (large, 2, large as i64);
        p.io.read_calls = Some(100);
        p.io.read_bytes = Some(10 * large + 90 * 1024);
        (p.io.write_calls, p.io.written_bytes) = (Some(0), Some(0));
    });
    let found = run.facts(as_was).unwrap();
    let of_run = found.scale * f64::from(found.plan.passes);
    assert!((of_run - 5.0).abs() < 0.01, "{of_run} and not 50");
}

#[test]
fn a_file_that_was_there_for_a_moment_is_replayed_beside_one_that_is_known() {
    let run = reader().with(|p| {
        p.pattern.stretches[0].steps[0].kind = StepKind::Write;
        let mut journal = p.pattern.stretches[0].steps[0].clone();
        (journal.file, journal.place) = (Some(1), Some(0));
        p.pattern.stretches[0].steps.push(journal);
        p.pattern.files.push(PatternFile {
            path: "?".into(),
            kind: "unknown".into(),
            ..PatternFile::default()
        });
    });
    let plan = run.facts(as_was).unwrap().plan;
    let of = |f: &PlanFile| (f.path.clone(), f.role, f.identity.is_some());
    let files: Vec<_> = plan.files.iter().map(of).collect();
    let path = "/data".to_owned();
    assert_eq!(files, [(path.clone(), Role::ScratchEmpty, true), (path, Role::ScratchEmpty, false)]);
}

#[test]
fn the_direction_of_which_less_was_seen_is_made_as_long_as_it_was() {
    // 100,000 reads and 2,000 writes; 1,000 reads and 500 writes were seen.
    let run = reader().with(|p| {
        let mut write = p.pattern.stretches[0].steps[0].clone();
        (write.kind, write.file, write.place, write.count) = (StepKind::Write, Some(1), Some(0), 500);
        p.pattern.stretches[0].steps.push(write);
        p.pattern.files.push(PatternFile { path: "/out".into(), ..p.pattern.files[0].clone() });
        p.io.write_calls = Some(2000);
        p.io.written_bytes = Some(2000 * 128);
    });
    let found = run.facts(as_was).unwrap();
    let (reads, writes) = (count(&found.plan, READ), count(&found.plan, Do::Write));
    assert_eq!(reads, 50 * writes);
    let of_run = found.scale * f64::from(found.plan.passes);
    assert!((of_run * reads as f64 - 100_000.0).abs() < 200.0, "{of_run} times {reads} reads");
}

#[test]
fn parts_of_blocks_that_were_there_are_written_over_a_file_that_is_full() {
    let updates = |fetched: u64, stride: i64| {
        let run = reader().with(|p| {
            let step = &mut p.pattern.stretches[0].steps[0];
            (step.kind, step.stride) = (StepKind::Write, stride);
            (p.io.write_calls, p.io.read_calls) = (Some(100_000), Some(0));
            (p.io.written_bytes, p.io.device_read_bytes) = (Some(12_800_000), Some(fetched));
        });
        run.facts(as_was).unwrap().plan.files[0].role
    };
    assert_eq!(updates(0, 128), Role::ScratchEmpty);
    assert_eq!(updates(0, 65_536), Role::ScratchFull, "gaps are no append");
    assert_eq!(updates(400_000_000, 129), Role::ScratchFull, "each block came from the device first");
}

#[test]
fn reads_between_writes_are_announced_and_none_is_made_earlier() {
    let each = |i: u64| {
        [action(READ, i * 8192, 4096, 1, 0), Action { file: 1, ..action(Do::Write, i * 512, 512, 1, 0) }]
    };
    let mut was = Plan {
        files: vec![file(Role::Own), file(Role::ScratchEmpty)],
        ..plan(Role::Own, (0..100).flat_map(each).collect())
    };
    assert!(repaired(FindingId::QueueDepthOne, &was, &Beside::default()).is_err(), "nothing is cold");
    was.files[0].state = State::Cold;
    let now = repair(FindingId::QueueDepthOne, &was);
    assert_eq!(moved(&now, Do::Announce), moved(&was, READ));
    let without: Vec<Action> = now.threads[0].iter().copied().filter(|a| a.what != Do::Announce).collect();
    assert_eq!(without, was.threads[0]);
    assert!(now.threads[0][..64].iter().all(|a| a.what == Do::Announce));
}

#[test]
fn memory_that_comes_and_goes_is_replayed_and_kept_once() {
    let take = Step { kind: StepKind::MmapAnon, bytes: 1 << 23, argument: 0x8022, ..Step::default() };
    let steps: Vec<Step> = (0..40).map(|i| Step { thread: i % 4, count: 1, ..take.clone() }).collect();
    let of = |part: f64| {
        let run = Run::new(1.0).busy(Operation::Map, Layer::Memory, part);
        run.busy(Operation::User, Layer::Program, 1.0 - part).calls(&[("mmap", 400)])
    };
    let run = of(0.9).with(|p| {
        p.pattern = CallPattern { files: vec![], stretches: vec![Stretch { length_ns: 100_000_000, steps }] };
    });
    let found = run.facts(as_was).unwrap();
    let populated = Do::Take { populate: true };
    assert_eq!((found.plan.threads.len(), count(&found.plan, populated)), (4, 40));
    let now = repair(FindingId::MmapLock, &found.plan);
    assert_eq!((now.threads.len(), count(&now, populated)), (4, 4));
    assert_eq!(repair(FindingId::FreshBuffers, &found.plan), now);
}

#[test]
fn a_batch_longer_than_a_pass_ends_with_every_so_many_passes() {
    let each = |i: u64| [action(Do::Write, i * 4096, 4096, 1, 0), action(SYNC, 0, 0, 1, 0)];
    let was = plan(Role::ScratchEmpty, (0..50).flat_map(each).collect());
    let of = |batch| {
        let beside = Beside { sizes: Sizes { batch, ..Sizes::default() }, ..Beside::default() };
        repaired(FindingId::SyncPerWrite, &was, &beside).unwrap()
    };
    let three = of(150);
    assert_eq!((count(&three.plan, Do::SyncAfter { passes: 3 }), count(&three.plan, SYNC)), (1, 0));
    assert_eq!(three.how, "one fdatasync for 150 records");
    let all = of(Sizes::ALL);
    assert_eq!(count(&all.plan, Do::SyncAfter { passes: u32::MAX }), 1);
    assert_eq!(all.how, "one fdatasync at the end");
}

#[test]
fn a_copy_is_spared_by_a_mapping_as_far_as_the_program_can_have_looked() {
    let was = |think_ns| plan(Role::Own, vec![Action { think_ns, ..action(READ, 0, 1 << 20, 16, 1 << 20) }]);
    // 256 pages a call.
    assert_eq!(count(&repair(FindingId::CopyBound, &was(256.0 * 5.0)), Do::Look), 16);
    assert_eq!(count(&repair(FindingId::CopyBound, &was(256.0 * 500.0)), Do::Scan), 16);
    let mut cold = was(1.0);
    cold.files[0].state = State::Cold;
    assert!(repaired(FindingId::CopyBound, &cold, &Beside::default()).is_err());
}

#[test]
fn reads_past_the_cache_are_also_tried_through_it_and_longer() {
    let mut was = plan(Role::Own, vec![action(READ, 0, 8192, 1000, 8192)]);
    assert!(others(FindingId::SmallRequests, &was, &Beside::default()).is_empty());
    was.files[0].direct = true;
    let hows: Vec<String> =
        others(FindingId::SmallRequests, &was, &Beside::default()).into_iter().map(|r| r.how).collect();
    assert_eq!(hows, ["calls that follow each other merged to 1 MiB", "through the page cache"]);
    // Who says how large the requests are is not offered others.
    let asked = Beside { sizes: Sizes { depth: Some(4), ..Sizes::default() }, ..Beside::default() };
    assert!(others(FindingId::SmallRequests, &was, &asked).is_empty());
}

#[test]
fn all_repairs_go_into_one_plan() {
    let each = |i: u64| {
        [
            action(Do::Write, i * 512, 512, 1, 0),
            action(SYNC, 0, 0, 1, 0),
            Action { file: 1, ..action(READ, i * 64, 64, 1, 0) },
        ]
    };
    let was = Plan {
        files: vec![file(Role::ScratchEmpty), file(Role::Own)],
        ..plan(Role::Own, (0..100).flat_map(each).collect())
    };
    let ids = [FindingId::SyncPerWrite, FindingId::SmallRequests, FindingId::Throttled];
    let (done, all) = together(&ids, &was, &Beside::default()).unwrap();
    assert_eq!(done, ids[..2]);
    assert_eq!((count(&all.plan, Do::Write), count(&all.plan, READ), count(&all.plan, SYNC)), (1, 1, 1));
    assert!(together(&ids[1..], &was, &Beside::default()).is_none(), "one alone is not together");
}

fn replayed(io_s: f64) -> AsWas {
    AsWas {
        plan: plan(Role::Own, vec![action(READ, 0, 128, 1000, 128)]),
        scale: 100.0,
        program_io_ns: io_s * 1e9,
        recording: 0.0,
        notes: vec![],
    }
}

#[test]
fn half_of_the_io_time_gone_is_half_of_the_io_time_gone_from_the_run() {
    let run =
        Run::new(10.0).busy(Operation::Read, Layer::Call, 0.8).busy(Operation::User, Layer::Program, 0.2);
    let was = [80e6; 9];
    let now = [40e6; 9];
    let gain = |kept| {
        run.facts(|f| measured(f, &replayed(8.0), (&was, &now), 0.0, kept, 1)).map(|m| (m.gain.value, m.word))
    };
    let (whole, verdict) = gain(0.0).unwrap();
    assert!((whole - 10.0 / 6.0).abs() < 1e-9 && verdict == Word::Proven);
    let (part, _) = gain(0.5).unwrap();
    assert!((part - 10.0 / 8.0).abs() < 1e-9, "half of the run stays as it was");
    let slower = run.facts(|f| measured(f, &replayed(4.0), (&now, &was), 0.0, 0.0, 1)).unwrap();
    assert!((slower.gain.value - 10.0 / 14.0).abs() < 1e-9 && slower.word == Word::Contradicted);
    // Interrupts come with time: a run that is half as long has half of them.
    let often = Run::new(10.0)
        .busy(Operation::Read, Layer::Call, 0.8)
        .busy(Operation::User, Layer::Program, 0.1)
        .busy(Operation::Interrupt, Layer::Elsewhere, 0.1);
    let with = often.facts(|f| measured(f, &replayed(8.0), (&was, &now), 0.0, 0.0, 1)).unwrap();
    assert!((with.gain.value - 10.0 / (10.0 - 4.0 - 4.0 / 9.0)).abs() < 1e-9, "{}", with.gain.value);
    let few = run.facts(|f| measured(f, &replayed(8.0), (&was[..2], &now[..2]), 0.0, 0.0, 1));
    assert_eq!(few, None);
}

#[test]
fn the_interval_of_a_gain_holds_how_like_the_replay_is_and_how_often_the_run_was_looked_at() {
    let run = |looks| {
        Run::new(10.0).busy_sampled(Operation::Read, Layer::Call, 0.8, 4 * looks).busy_sampled(
            Operation::User,
            Layer::Program,
            0.2,
            looks,
        )
    };
    let gain = |looks, program_s, now| {
        let times = (&[80e6; 9][..], &[now; 9][..]);
        run(looks).facts(|f| measured(f, &replayed(program_s), times, 0.0, 0.0, 1)).unwrap().gain
    };
    // Nothing but looks: of 100,000 that saw something else in a fifth.
    let sure = gain(100_000, 8.0, 8e6);
    assert!((sure.value - 10.0 / 2.8).abs() < 1e-9 && sure.high / sure.low < 1.02, "{sure:?}");
    // Of 40 looks eight saw something else: 10.5 to 34.8 % of the run (Wilson), of whose other part nine tenths go.
    let few = gain(8, 8.0, 8e6);
    assert!((few.low - 1.0 / (1.0 - 0.72 + 0.9 * 0.148)).abs() < 0.01, "{few:?}");
    assert!((few.high - 1.0 / (1.0 - 0.72 - 0.9 * 0.095)).abs() < 0.02, "{few:?}");
    assert_eq!(few.value, sure.value);
    // The replay took 1.25 of the program's time: repaired it takes 0.8 s or, if the difference is in both arms alike, less.
    let slower = gain(100_000, 6.4, 8e6);
    assert!((slower.value - 10.0 / (10.0 - 6.4 * 0.9)).abs() < 1e-9, "{slower:?}");
    // What it saves, 7.2 s, cannot be more than the program has.
    let all = 10.0 / (10.0 - 6.4);
    assert!(
        (slower.low - 10.0 / (10.0 - 6.4 + 0.8)).abs() < 0.02 && (slower.high - all).abs() < 0.02,
        "{slower:?}"
    );
    // It took 0.8 of the program's time, and saved 0.72 of it: the rest is not touched, or less than a tenth is left of all.
    let faster = gain(100_000, 10.0, 8e6);
    assert!((faster.value - 10.0).abs() < 1e-9 && (faster.low - 10.0 / 2.8).abs() < 0.02, "{faster:?}");
    assert!((faster.high - 10.0 / 0.8).abs() < 0.3, "{faster:?}");
    // A repair that is slower loses more where more of the run is I/O.
    let worse = |looks: u64| gain(looks, 8.0, 240e6);
    assert!((worse(8).value - 10.0 / 26.0).abs() < 1e-9, "{:?}", worse(8));
    let wide = |e: Estimate| e.high - e.low;
    assert!(wide(worse(8)) > 3.0 * wide(worse(100_000)) && worse(8).low < worse(8).value, "{:?}", worse(8));
    // What recording took is in neither run.
    let mut watched = replayed(8.0);
    watched.recording = 0.1;
    let times = (&[72e6; 9][..], &[7.2e6; 9][..]);
    let found = run(100_000).facts(|f| measured(f, &watched, times, 0.0, 0.0, 1)).unwrap().gain;
    assert!((found.value - 9.2 / (2.0 + 0.72)).abs() < 1e-9, "{found:?}");
}

#[test]
fn the_four_words() {
    let of = |value, low, high| word(&Estimate { value, low, high, unit: Unit::Ratio, n: 9 });
    assert_eq!(of(2.0, 1.5, 3.0), Word::Proven);
    assert_eq!(of(0.4, 0.3, 0.5), Word::Contradicted);
    assert_eq!(of(1.0, 0.98, 1.02), Word::NotConfirmed);
    assert_eq!(of(1.3, 0.9, 1.8), Word::CannotTell);
    assert_eq!(Word::CannotTell.words(), "cannot tell");
}

#[test]
fn a_replay_that_is_another_run_is_not_believed() {
    let near = |ns: f64| fidelity(&replayed(8.0), &[ns; 9], 1).is_some_and(|f| is_faithful(&f));
    assert!(near(8e7) && near(9e7) && near(7e7));
    assert!(!near(2e8) && !near(2e7));
    let wide = fidelity(&replayed(8.0), &[2e7, 3e7, 4e7, 9e7, 3e8], 1).unwrap();
    assert!(wide.high > 1.0 && !is_faithful(&wide), "half of the time, however wide: {wide:?}");
    assert_eq!(fidelity(&replayed(0.0), &[1.0; 9], 1), None);
    // What watching cost is no time of the program's, but for more than it can be known.
    let watched = |recording| fidelity(&AsWas { recording, ..replayed(8.0) }, &[8e7; 9], 1).unwrap().value;
    assert!((watched(0.1) - 1.0 / 0.9).abs() < 1e-9 && (watched(0.9) - 1.0 / 0.85).abs() < 1e-9);
}
