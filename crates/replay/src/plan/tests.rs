//! Known answers for plans, repairs and words.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{
    CallPattern, CompleteRecord, FileIdentity, PatternFile, Step, StepKind, StepTotal, Stretch,
};
use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role, State};

use super::baseline::{Baseline, Recording};
use super::recorded::of_record as baseline;
use super::source::Source;
use super::{Bounds, Part};
use crate::fidelity::{difference, fidelity, reproduces};
use crate::parts::{Parts, Rounds};
use crate::verdict::{Gains, Measurement, Verdict, gains};
use iowhy_diagnose::classify::{Operation, Wait};
use iowhy_diagnose::findings::synthetic::Run;
use iowhy_diagnose::findings::{Facts, repaired};
use iowhy_diagnose::repair::RunFacts;

fn times(io_ns: &[f64]) -> Rounds<'_> {
    Rounds { io_ns, parts: &[] }
}

/// The gain by the times of a baseline and a repair.
fn measured(
    facts: &Facts<'_>,
    baseline: &Baseline,
    (baseline_ns, repaired_ns): (&[f64], &[f64]),
    removed_share: f64,
    unaffected_share: f64,
    seed: u64,
) -> Option<Estimate> {
    let unchanged = times(baseline_ns);
    let staying_faster = 1.0;
    let measurement = Measurement {
        baseline,
        unchanged,
        repaired_ns,
        removed_share,
        unaffected_share,
        staying_faster,
        seed,
    };
    gains(facts, &measurement).map(|gains| gains.measured)
}

const READ: Op = Op::Read { fresh: false };

fn file(role: Role) -> PlanFile {
    PlanFile { size_bytes: 1 << 30, ..PlanFile::new("/data", role) }
}

fn action(what: Op, place: u64, bytes: u64, count: u32, stride: i64) -> Action {
    Action { op: what, file: 0, offset: place, bytes, count, stride, think_ns: 10.0 }
}

fn plan(role: Role, actions: Vec<Action>) -> Plan {
    Plan { files: vec![file(role)], threads: vec![actions], passes: 1, depth: 1, ..Plan::default() }
}

fn repair(id: FindingId, plan: &Plan) -> Plan {
    repaired(id, plan, &RunFacts::default()).unwrap().plan
}

fn count(plan: &Plan, what: Op) -> u64 {
    plan.actions().filter(|a| a.op == what).map(|a| u64::from(a.count)).sum()
}

/// A record of every call: its part has `whole` times fewer calls than it.
pub(super) fn recorded(files: Vec<PatternFile>, steps: Vec<Step>, whole: u64) -> CallPattern {
    let mut totals: Vec<StepTotal> = Vec::new();
    for step in &steps {
        let calls = u64::from(step.count.max(1));
        totals.push(StepTotal {
            file: step.file,
            kind: step.kind,
            calls: calls * whole,
            bytes: step.bytes * calls * whole,
            time_ns: step.time_ns * whole,
        });
    }
    let calls = totals.iter().map(|total| total.calls).sum();
    let record = Some(CompleteRecord { calls, totals, excess_ns: Some(0.0), ..CompleteRecord::default() });
    let stretches = vec![Stretch { length_ns: 1_000_000, steps }];
    CallPattern { files, stretches, record, ..CallPattern::default() }
}

/// A program that touches a mapping of 1 GiB.
#[test]
fn a_long_mapping_without_recorded_touches_is_refused() {
    let run = Run::new(1.0)
        .wait(Operation::Fault, Wait::DeviceRead, 0.9)
        .busy(Operation::User, Layer::Program, 0.1)
        .with(|p| p.pattern = recorded(vec![], vec![], 1));
    assert!(run.facts(baseline).unwrap_err().contains("pages that it touches"));
}

/// A program that builds large texts in new memory, and writes them.
#[test]
fn what_lies_in_calls_is_shown_by_calls_though_page_faults_take_longer() {
    let run = reader().wait(Operation::Fault, Wait::DeviceRead, 2.0);
    let of = |part: Part| {
        run.facts(|facts| {
            let source = Source::record(facts)?;
            super::recorded::baseline(facts, &source, &Bounds::PROOF, part)
        })
    };
    assert!(of(Part::Mappings).unwrap_err().contains("pages that it touches"));
    assert_eq!(of(Part::Calls).map(|found| found.plan.calls()), Ok(1000));
}

#[test]
fn windows_are_those_that_were_mapped() {
    let identity = FileIdentity { size_bytes: 1 << 30, inode: 7, ..FileIdentity::default() };
    let of = PatternFile {
        path: "/data".into(),
        kind: "regular".into(),
        flags: Some(0),
        identity: Some(identity),
        ..PatternFile::default()
    };
    let map = |n: u64| Step {
        kind: StepKind::Map,
        file: Some(0),
        place: Some(n * 65_536),
        bytes: 65_536,
        count: 1,
        ..Step::default()
    };
    let run = Run::new(1.0)
        .busy(Operation::Fault, Layer::Memory, 0.9)
        .with(|p| p.pattern = recorded(vec![of], (0..20).map(map).collect(), 13));
    let found = run.facts(baseline).unwrap();
    assert_eq!((found.plan.calls(), found.scale), (20, 13.0));
    assert_eq!(found.plan.threads[0][19].offset, 19 * 65_536);
}

/// A mapping that stays is faulted in once, however often the same windows are used.
#[test]
fn windows_that_come_again_are_repeated_in_one_run() {
    let passes = |size_bytes: u64, windows: u64| {
        let identity = FileIdentity { size_bytes, inode: 7, ..FileIdentity::default() };
        let of = PatternFile {
            path: "/data".into(),
            kind: "regular".into(),
            flags: Some(0),
            identity: Some(identity),
            ..PatternFile::default()
        };
        let map = |n: u64| Step {
            kind: StepKind::Map,
            file: Some(0),
            place: Some(n % windows * 65_536),
            bytes: 65_536,
            count: 1,
            ..Step::default()
        };
        let run = Run::new(0.1)
            .busy(Operation::Fault, Layer::Memory, 0.9)
            .with(|p| p.pattern = recorded(vec![of], (0..20).map(map).collect(), 12));
        let found = run.facts(baseline).unwrap();
        (found.plan.passes, found.scale)
    };
    // A file of 20 windows, all of which are in the plan; half of them; one of 2,000 windows.
    assert_eq!(passes(20 * 65_536, 20), (12, 1.0));
    assert_eq!(passes(20 * 65_536, 10), (6, 2.0));
    assert_eq!(passes(2000 * 65_536, 20), (1, 12.0));
}

/// A program that reads a warm file by 128 bytes: 1,000 calls of 100,000 are in the part of the record.
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
        ..PatternFile::default()
    };
    Run::new(0.1)
        .io((100_000, 12_800_000), (0, 0))
        .busy(Operation::Read, Layer::Call, 0.8)
        .busy(Operation::User, Layer::Program, 0.2)
        .with(|p| p.pattern = recorded(vec![of], vec![step], 100))
}

#[test]
fn the_plan_is_the_recorded_calls_and_no_others() {
    let found = reader().facts(baseline).unwrap();
    let plan = &found.plan;
    assert_eq!((plan.files.len(), plan.threads.len(), plan.passes), (1, 1, 1));
    assert_eq!((plan.files[0].role, plan.files[0].state), (Role::User, State::Warm));
    let read = Action { think_ns: 100.0, ..action(READ, 1 << 20, 128, 1000, 128) };
    assert_eq!(plan.threads[0], [read]);
    assert_eq!((found.scale, found.program_io_ns), (100.0, 9e7));
    assert_eq!(found.recorded.map(|parts| parts.reads_ns), Some(900_000.0));
    assert!(found.notes.iter().any(|note| note.starts_with("replayed: 1,000 of 100,000 recorded calls")));
}

#[test]
fn calls_bytes_and_times_of_a_record_are_those_of_its_plan() {
    let kinds = [StepKind::Read, StepKind::Write, StepKind::Seek, StepKind::Sync];
    let run = reader().with(|p| {
        let like = p.pattern.stretches[0].steps[0].clone();
        let step = |n: u32| Step {
            thread: n % 3,
            kind: kinds[n as usize % 4],
            place: Some(u64::from(n * n)),
            bytes: if n % 4 < 2 { u64::from(n) + 1 } else { 0 },
            count: n % 5 + 1,
            ..like.clone()
        };
        p.pattern = recorded(p.pattern.files.clone(), (0..100).map(step).collect(), 1);
    });
    let found = run.facts(baseline).unwrap();
    let record = run.profile.pattern.record.clone().unwrap();
    let sum = |of: fn(&StepTotal) -> u64| record.totals.iter().map(of).sum::<u64>();
    assert_eq!((found.plan.calls(), found.plan.bytes(|_| true)), (sum(|t| t.calls), sum(|t| t.bytes)));
    assert_eq!((found.scale, found.plan.threads.len()), (1.0, 3));
    assert_eq!(found.recorded.map(|parts| parts.sum_ns()), Some(sum(|t| t.time_ns) as f64));
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn who_begins_when_another_has_ended_goes_on_in_its_place() {
    let threads = |order: &[u32]| {
        let run = reader().with(|p| {
            let like = p.pattern.stretches[0].steps[0].clone();
            let steps = order.iter().map(|thread| Step { thread: *thread, ..like.clone() }).collect();
            p.pattern = recorded(p.pattern.files.clone(), steps, 1);
        });
        run.facts(baseline).unwrap().plan.threads.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(threads(&[0, 0, 1, 2, 2]), [5], "children one after the other");
    assert_eq!(threads(&[0, 1, 1, 2, 0]), [2, 3], "and their shell, which goes on");
    assert_eq!(threads(&[0, 1, 0, 1]), [2, 2]);
}

#[test]
fn what_recording_adds_is_in_no_recorded_time() {
    let run = reader().with(|p| {
        p.observer.in_program_ns = 100_000.0 * 60.0;
        p.pattern.record.as_mut().unwrap().excess_ns = Some(20.0);
    });
    let found = run.facts(baseline).unwrap();
    assert_eq!(found.recorded.map(|parts| parts.reads_ns), Some(900_000.0 - 20.0 * 1000.0));
    assert!((found.plan.threads[0][0].think_ns - (100.0 - 40.0)).abs() < 1e-9);
}

#[test]
fn a_record_with_an_end_before_the_end_of_the_run_says_so() {
    let run = reader().with(|p| {
        let record = p.pattern.record.as_mut().unwrap();
        (record.missing, record.length_ns) = (12_000, 2_500_000_000);
    });
    let notes = run.facts(baseline).unwrap().notes;
    assert!(
        notes.iter().any(|n| n.contains("complete up to 2.50 s") && n.contains("12,000 system calls")),
        "{notes:?}"
    );
}

#[test]
fn a_file_that_is_written_is_replayed_on_a_scratch_file() {
    let run = reader().with(|p| {
        p.pattern.stretches[0].steps[0].kind = StepKind::Write;
        p.io.write_calls = Some(100_000);
        p.io.read_calls = Some(0);
    });
    let found = run.facts(baseline).unwrap();
    assert_eq!(found.plan.files[0].role, Role::ScratchEmpty);
    assert_eq!(found.plan.threads[0][0].offset, 0, "it is appended to an empty file");
}

/// What fio does before it writes; and a program that gives blocks back.
#[test]
fn room_that_is_allocated_beforehand_is_allocated_in_the_replay() {
    let plan_of = |mode: u32, then: StepKind, bytes: u64| {
        let run = reader().with(|p| {
            let like = p.pattern.stretches[0].steps[0].clone();
            let (gap_ns, time_ns, count, stride) = (0, 50_000, 1, 0);
            let allocate = Step {
                kind: StepKind::Allocate,
                argument: mode,
                bytes,
                gap_ns,
                time_ns,
                count,
                stride,
                ..like.clone()
            };
            p.pattern = recorded(p.pattern.files.clone(), vec![allocate, Step { kind: then, ..like }], 1);
        });
        run.facts(baseline).unwrap()
    };
    for (mode, keep_size) in [(0, false), (1, true)] {
        let found = plan_of(mode, StepKind::Write, 1 << 24);
        let first = found.plan.threads[0][0];
        assert_eq!((first.op, first.offset, first.bytes), (Op::Allocate { keep_size }, 0, 1 << 24));
        assert_eq!((found.plan.files[0].role, found.plan.threads[0][1].offset), (Role::ScratchEmpty, 0));
        assert_eq!(found.recorded.map(|parts| parts.metadata_ns), Some(50_000.0));
    }
    assert_eq!(
        plan_of(0, StepKind::Write, 1 << 40).plan.threads[0][0].bytes,
        512 << 20,
        "no more is written"
    );
    let punched = plan_of(3, StepKind::Write, 4096).plan;
    assert!(punched.threads[0].iter().all(|a| a.op == Op::Write), "{punched:?}");
    // Only read: nobody allocates in the user's file.
    assert_eq!(plan_of(0, StepKind::Read, 4096).plan.files[0].role, Role::ScratchFull);
}

#[test]
fn runs_that_cannot_be_replayed_say_why() {
    let why = |run: Run| run.facts(baseline).unwrap_err();
    assert!(why(reader().with(|p| p.pattern = CallPattern::default())).contains("no record of every call"));
    assert!(why(reader().with(|p| p.pattern.files[0].identity = None)).contains("gone"));
    assert!(why(reader().with(|p| p.pattern.files[0].path = "?".into())).contains("regular"));
    assert!(why(reader().with(|p| p.pattern.files[0].kind = "pipe".into())).contains("regular"));
    let ring = Run::new(1.0).wait(Operation::Ring, Wait::Completion, 1.0);
    let ring = ring.with(|p| p.pattern = recorded(vec![], vec![], 1));
    assert!(why(ring).contains("io_uring"));
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
    let plan = run.facts(baseline).unwrap().plan;
    let of = |f: &PlanFile| (f.path.clone(), f.role, f.identity.is_some());
    let files: Vec<_> = plan.files.iter().map(of).collect();
    let path = "/data".to_owned();
    assert_eq!(files, [(path.clone(), Role::ScratchEmpty, true), (path, Role::ScratchEmpty, false)]);
}

#[test]
fn a_file_that_was_there_is_written_over_and_one_that_was_made_begins_empty() {
    let updates_of = |flags: u32, stride: i64, made: Option<bool>| {
        let run = reader().with(|p| {
            p.pattern.files[0].made = made;
            let like = p.pattern.stretches[0].steps[0].clone();
            let write = Step { kind: StepKind::Write, place: Some(0), stride, ..like };
            let open =
                Step { kind: StepKind::Open, argument: flags, file: Some(0), count: 1, ..Step::default() };
            p.pattern = recorded(p.pattern.files.clone(), vec![open, write], 1);
        });
        run.facts(baseline).unwrap().plan.files[0].role
    };
    let updates = |flags: u32, stride: i64| updates_of(flags, stride, None);
    assert_eq!(updates_of(0o101, 65_536, Some(false)), Role::ScratchFull, "O_CREAT alone does not tell");
    assert_eq!(updates_of(0o101, 65_536, Some(true)), Role::ScratchEmpty, "its time of birth does");
    assert_eq!(updates(1, 128), Role::ScratchEmpty, "only appended to");
    assert_eq!(updates_of(1, 128, Some(false)), Role::ScratchFull, "from its start, and it was there");
    assert_eq!(updates_of(0o2001, 128, Some(false)), Role::ScratchEmpty, "at its end, wherever that was");
    assert_eq!(updates_of(0o1001, 128, Some(false)), Role::ScratchEmpty, "emptied when it was opened");
    let waiting = |fetched: u64| {
        let run = reader().wait(Operation::Write, Wait::DeviceRead, 0.2).with(|p| {
            (p.io.device_read_bytes, p.io.written_bytes) = (Some(fetched), Some(1 << 30));
            p.pattern.files[0].made = Some(false);
            let write =
                Step { kind: StepKind::Write, place: None, ..p.pattern.stretches[0].steps[0].clone() };
            p.pattern = recorded(p.pattern.files.clone(), vec![write], 1);
        });
        run.facts(baseline).unwrap().plan.files[0].role
    };
    assert_eq!(waiting(1 << 30), Role::ScratchFull, "behind its end there is nothing to read");
    assert_eq!(waiting(1 << 16), Role::ScratchEmpty, "maps of free blocks");
    assert_eq!(updates(1, 65_536), Role::ScratchFull, "gaps are no append");
    assert_eq!(updates(0o1001, 65_536), Role::ScratchEmpty, "emptied when it was opened");
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
        p.pattern = recorded(vec![], steps, 10);
    });
    let found = run.facts(baseline).unwrap();
    let populated = Op::MmapAnon { populate: true };
    assert_eq!((found.plan.threads.len(), count(&found.plan, populated)), (4, 40));
    let now = repair(FindingId::MmapLock, &found.plan);
    assert_eq!((now.threads.len(), count(&now, populated)), (4, 4));
    assert_eq!(repair(FindingId::FreshBuffers, &found.plan), now);
}

fn replayed(io_s: f64) -> Baseline {
    Baseline {
        plan: plan(Role::User, vec![action(READ, 0, 128, 1000, 128)]),
        scale: 100.0,
        program_io_ns: io_s * 1e9,
        recorded: None,
        recording: None,
        touching_ns: 0.0,
        goes_along_ns: 0.0,
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
        run.facts(|f| measured(f, &replayed(8.0), (&was, &now), 0.0, kept, 1))
            .map(|gain| (gain.value, Verdict::of_gain(&gain)))
    };
    let (whole, verdict) = gain(0.0).unwrap();
    assert!((whole - 10.0 / 6.0).abs() < 1e-9 && verdict == Verdict::Proven);
    let (part, _) = gain(0.5).unwrap();
    assert!((part - 10.0 / 8.0).abs() < 1e-9, "half of the run is unaffected");
    let slower = run.facts(|f| measured(f, &replayed(4.0), (&now, &was), 0.0, 0.0, 1)).unwrap();
    assert!((slower.value - 10.0 / 14.0).abs() < 1e-9 && Verdict::of_gain(&slower) == Verdict::Contradicted);
    // Interrupts come with time: a run that is half as long has half of them.
    let often = Run::new(10.0)
        .busy(Operation::Read, Layer::Call, 0.8)
        .busy(Operation::User, Layer::Program, 0.1)
        .busy(Operation::Interrupt, Layer::Elsewhere, 0.1);
    let with = often.facts(|f| measured(f, &replayed(8.0), (&was, &now), 0.0, 0.0, 1)).unwrap();
    assert!((with.value - 10.0 / (10.0 - 4.0 - 4.0 / 9.0)).abs() < 1e-9, "{}", with.value);
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
        run(looks).facts(|f| measured(f, &replayed(program_s), times, 0.0, 0.0, 1)).unwrap()
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
    let watched =
        Baseline { recording: Some(Recording { share: 0.1, ..Recording::default() }), ..replayed(7.2) };
    let times = (&[72e6; 9][..], &[7.2e6; 9][..]);
    let found = run(100_000).facts(|f| measured(f, &watched, times, 0.0, 0.0, 1)).unwrap();
    assert!((found.value - 9.0 / (1.8 + 0.72)).abs() < 1e-9, "{found:?}");
    // Of the 1.8 s beside the calls samples saw another figure: it is in the interval, on its side.
    let seen = |beside_ns| {
        let watched = Baseline { recording: Some(Recording { share: 0.1, beside_ns }), ..replayed(7.2) };
        run(100_000).facts(|f| measured(f, &watched, times, 0.0, 0.0, 1)).unwrap()
    };
    let (same, more, less) = (seen(1.8e9), seen(3e9), seen(1e9));
    assert!(more.low < same.low && (more.high - same.high).abs() < 1e-9, "{more:?} {same:?}");
    assert!(less.high > same.high && (less.low - same.low).abs() < 1e-9, "{less:?} {same:?}");
    assert!(more.low <= 9.0 / (1.8 + 0.72 + 1.2) + 1e-9, "{more:?}");
}

#[test]
fn the_four_words() {
    let of = |value, low, high| Verdict::of_gain(&Estimate { value, low, high, unit: Unit::Ratio, n: 9 });
    assert_eq!(of(2.0, 1.5, 3.0), Verdict::Proven);
    assert_eq!(of(0.4, 0.3, 0.5), Verdict::Contradicted);
    assert_eq!(of(1.0, 0.98, 1.02), Verdict::NotConfirmed);
    assert_eq!(of(1.3, 0.9, 1.8), Verdict::Inconclusive);
    assert_eq!(Verdict::Inconclusive.words(), "inconclusive");
}

#[test]
fn a_replay_that_is_another_run_is_not_believed() {
    let near = |ns: f64| fidelity(&replayed(8.0), &times(&[ns; 9]), 1).is_some_and(|f| reproduces(&f));
    assert!(near(8e7) && near(9e7) && near(7e7));
    assert!(!near(2e8) && !near(2e7));
    let wide = fidelity(&replayed(8.0), &times(&[2e7, 3e7, 4e7, 9e7, 3e8]), 1).unwrap();
    assert!(wide.high > 1.0 && !reproduces(&wide), "half of the time, however wide: {wide:?}");
    assert_eq!(fidelity(&replayed(0.0), &times(&[1.0; 9]), 1), None);
}

#[test]
fn a_recorded_run_is_compared_with_its_own_calls_and_the_part_that_differs_is_named() {
    let recorded = Parts { reads_ns: 6e6, syncs_ns: 2e6, ..Parts::default() };
    let baseline = Baseline { recorded: Some(recorded), ..replayed(8.0) };
    let of = |syncs_ns| {
        let parts = Parts { reads_ns: 6e6, syncs_ns, ..Parts::default() };
        let times = Rounds { io_ns: &[8e7; 9], parts: &[parts; 9] };
        let found = fidelity(&baseline, &times, 1).unwrap();
        (found.value, difference(&baseline, &times, &found))
    };
    assert_eq!(of(2.4e6), (1.05, None));
    let (value, difference) = of(4e6);
    assert_eq!(value, 1.25);
    assert!(difference.is_some_and(|words| words.contains("syncs") && words.contains("2.00 ms recorded")));
}

#[test]
fn no_more_of_the_programs_own_code_goes_than_was_between_the_calls() {
    // A half of 10 s is the program's own, but between the calls there is only a tenth of their time.
    let run =
        Run::new(10.0).busy(Operation::Read, Layer::Call, 0.5).busy(Operation::User, Layer::Program, 0.5);
    let recorded = Parts { reads_ns: 1e6, ..Parts::default() };
    let mut baseline = Baseline { recorded: Some(recorded), ..replayed(5.0) };
    baseline.plan.threads[0][0].think_ns = 100.0;
    assert_eq!(baseline.between_calls_ns(), Some(5e8));
    let measurement = Measurement {
        baseline: &baseline,
        unchanged: Rounds { io_ns: &[1e6; 9], parts: &[recorded; 9] },
        repaired_ns: &[1e3; 9],
        removed_share: 1.0,
        unaffected_share: 0.0,
        staying_faster: 1.0,
        seed: 1,
    };
    let most = |measurement: &Measurement<'_>| {
        let Gains { measured, modelled } = run.facts(|facts| gains(facts, measurement)).unwrap();
        assert!((measured.value - 10.0 / 5.005).abs() < 1e-6, "{measured:?}");
        modelled.unwrap().value.powi(2) / measured.value
    };
    assert!((most(&measurement) - 10.0 / (5.005 - 0.5)).abs() < 1e-6);
    // Where 0.6 of the calls go, 0.2 s of it stay, and take a fifth of the time at best.
    let faster = Measurement { removed_share: 0.6, staying_faster: 5.0, ..measurement };
    assert!((most(&faster) - 10.0 / (5.005 - 0.3 - 0.16)).abs() < 1e-6, "{}", most(&faster));
}

#[test]
fn touches_of_pages_are_in_the_replay_and_in_the_programs_own_code() {
    // The replay takes 7 s of 5 s in faults and 4 s in the program's own code.
    let baseline = Baseline { touching_ns: 4e9, ..replayed(5.0) };
    let of = |replayed_s: f64| {
        let io_ns = [replayed_s * 1e9 / baseline.scale; 9];
        fidelity(&baseline, &times(&io_ns), 1).unwrap()
    };
    assert_eq!((of(7.0).value, of(5.0).value, of(2.5).value), (1.0, 1.0, 0.5));
    assert!((of(18.0).value - 2.0).abs() < 1e-9);
    // How much of the 4 s it is, nobody saw.
    assert!((of(7.0).low - 7.0 / 9.0).abs() < 1e-9 && (of(7.0).high - 7.0 / 5.0).abs() < 1e-9);
    assert_eq!(baseline.io_ns(7e9 / baseline.scale), 7e9);
}

#[test]
fn what_the_programs_own_code_saves_is_a_figure_of_its_own() {
    let run =
        Run::new(10.0).busy(Operation::Read, Layer::Call, 0.5).busy(Operation::User, Layer::Program, 0.5);
    let (unchanged, baseline) = (times(&[50e6; 9]), replayed(5.0));
    let found = |removed_share| {
        run.facts(|facts| {
            let repaired_ns = &[25e6; 9];
            let measurement = Measurement {
                baseline: &baseline,
                unchanged,
                repaired_ns,
                removed_share,
                unaffected_share: 0.0,
                staying_faster: 1.0,
                seed: 1,
            };
            gains(facts, &measurement).unwrap()
        })
    };
    let Gains { measured, modelled } = found(0.9);
    // That any of it goes was not seen; at most 0.9 of the other half does. In the middle the factor to both ends is the same.
    assert!((measured.value - 10.0 / 7.5).abs() < 1e-9);
    let modelled = modelled.unwrap();
    let most = modelled.value.powi(2) / measured.value;
    assert!(modelled.low <= measured.value && most <= modelled.high, "{modelled:?}");
    assert!(most > 10.0 / (7.5 - 4.4), "{modelled:?}");
    assert_eq!(found(0.0), Gains { measured, modelled: None });
}
