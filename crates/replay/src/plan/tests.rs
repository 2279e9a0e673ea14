//! Known answers for plans, repairs and words.

#[path = "ring_reads_tests.rs"]
mod ring_reads;

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{CallPattern, FileIdentity, PatternFile, Step, StepKind, Stretch};
use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role, State};

use super::Baseline;
use super::recorded::baseline;
use crate::fidelity::{fidelity, reproduces};
use crate::verdict::{Measurement, Verdict, gain};
use iowhy_diagnose::classify::{Operation, Wait};
use iowhy_diagnose::findings::synthetic::Run;
use iowhy_diagnose::findings::{Facts, repaired};
use iowhy_diagnose::repair::RunFacts;

/// The gain by the times of a baseline and a repair.
fn measured(
    facts: &Facts<'_>,
    baseline: &Baseline,
    (baseline_ns, repaired_ns): (&[f64], &[f64]),
    removed_share: f64,
    unaffected_share: f64,
    seed: u64,
) -> Option<Estimate> {
    gain(facts, &Measurement { baseline, baseline_ns, repaired_ns, removed_share, unaffected_share, seed })
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
    let many = toucher(1 << 30).facts(baseline).unwrap().plan;
    assert_eq!((many.calls(), many.files[0].state), (305, State::Cold), "120 are of the start");
    let hidden = toucher(16 << 20).facts(baseline).unwrap_err();
    assert!(hidden.contains("touched pages are not visible"), "{hidden}");
}

/// 20 of the windows that a program mapped were recorded.
#[test]
fn windows_are_as_many_as_were_mapped() {
    let identity = FileIdentity { size_bytes: 1 << 30, inode: 7, ..FileIdentity::default() };
    let run = |mappings| {
        Run::new(1.0)
            .busy(Operation::Fault, Layer::Memory, 0.9)
            .calls(&[("mmap", 200)])
            .file(1 << 30, |f| (f.mapped, f.mappings) = (true, mappings))
            .with(|p| {
                let sample = p.calls.as_mut().expect("just given");
                sample.complete = true;
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
        let found = run(mappings).facts(baseline).unwrap();
        (found.scale * found.plan.calls() as f64 * f64::from(found.plan.passes)).round()
    };
    assert_eq!(windows(260), 260.0);
    assert_eq!(windows(0), 200.0, "by the calls, which may map other files too");
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
    let found = reader().facts(baseline).unwrap();
    let plan = &found.plan;
    assert_eq!((plan.files.len(), plan.threads.len()), (1, 1));
    assert_eq!((plan.files[0].role, plan.files[0].state), (Role::User, State::Warm));
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

#[test]
fn runs_that_cannot_be_replayed_say_why() {
    let why = |run: Run| run.facts(baseline).unwrap_err();
    assert!(why(reader().with(|p| p.pattern = CallPattern::default())).contains("no recorded calls"));
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
    let found = run.facts(baseline).unwrap();
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
    let plan = run.facts(baseline).unwrap().plan;
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
    let found = run.facts(baseline).unwrap();
    let (reads, writes) = (count(&found.plan, READ), count(&found.plan, Op::Write));
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
        run.facts(baseline).unwrap().plan.files[0].role
    };
    assert_eq!(updates(0, 128), Role::ScratchEmpty);
    assert_eq!(updates(0, 65_536), Role::ScratchFull, "gaps are no append");
    assert_eq!(updates(400_000_000, 129), Role::ScratchFull, "each block came from the device first");
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
        overhead: 0.0,
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
    let mut watched = replayed(8.0);
    watched.overhead = 0.1;
    let times = (&[72e6; 9][..], &[7.2e6; 9][..]);
    let found = run(100_000).facts(|f| measured(f, &watched, times, 0.0, 0.0, 1)).unwrap();
    assert!((found.value - 9.2 / (2.0 + 0.72)).abs() < 1e-9, "{found:?}");
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
    let near = |ns: f64| fidelity(&replayed(8.0), &[ns; 9], 1).is_some_and(|f| reproduces(&f));
    assert!(near(8e7) && near(9e7) && near(7e7));
    assert!(!near(2e8) && !near(2e7));
    let wide = fidelity(&replayed(8.0), &[2e7, 3e7, 4e7, 9e7, 3e8], 1).unwrap();
    assert!(wide.high > 1.0 && !reproduces(&wide), "half of the time, however wide: {wide:?}");
    assert_eq!(fidelity(&replayed(0.0), &[1.0; 9], 1), None);
    // What watching cost is no time of the program's, but for more than it can be known.
    let watched = |overhead| fidelity(&Baseline { overhead, ..replayed(8.0) }, &[8e7; 9], 1).unwrap().value;
    assert!((watched(0.1) - 1.0 / 0.9).abs() < 1e-9 && (watched(0.9) - 1.0 / 0.85).abs() < 1e-9);
}
