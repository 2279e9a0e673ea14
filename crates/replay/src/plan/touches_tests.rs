//! Known answers: plans of programs that touch mapped files.

use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{FileIdentity, PatternFile, Step, StepKind};
use iowhy_core::replay::{Action, Advice, Op, Role, State};
use iowhy_diagnose::classify::{Operation, Wait};
use iowhy_diagnose::findings::repaired;
use iowhy_diagnose::findings::synthetic::Run;
use iowhy_diagnose::repair::RunFacts;

use super::recorded::of_record as baseline;
use super::tests::recorded;

const PAGES: u32 = 256;

fn file(path: &str, inode: u64) -> PatternFile {
    let identity = FileIdentity { size_bytes: u64::from(PAGES) * 4096, inode, ..FileIdentity::default() };
    PatternFile {
        path: path.into(),
        kind: "regular".into(),
        flags: Some(0),
        identity: Some(identity),
        ..PatternFile::default()
    }
}

/// All pages of the first file, from its start to its end, under MADV_RANDOM: 0.9 s of faults, and 2 us of the program before each.
fn scan() -> Step {
    Step {
        kind: StepKind::Touch,
        file: Some(0),
        place: Some(0),
        bytes: 4096,
        argument: 1,
        count: PAGES,
        stride: 4096,
        gap_ns: u64::from(PAGES) * 2000,
        time_ns: 900_000_000,
        ..Step::default()
    }
}

/// A program with these steps, 0.9 s of whose second are faults that wait for the device.
fn run(steps: Vec<Step>) -> Run {
    Run::new(1.0)
        .wait(Operation::Fault, Wait::DeviceRead, 0.9)
        .busy(Operation::User, Layer::Program, 0.1)
        .device_read(u64::from(PAGES) * 4096)
        .with(|p| {
            p.pattern = recorded(vec![file("/data", 7), file("/lib/libc.so.6", 8)], steps, 1);
            let record = p.pattern.record.as_mut().unwrap();
            (record.faults, record.fault_time_ns) = (u64::from(PAGES), 900_000_000);
        })
}

fn touch(count: u32, stride: i64, think_ns: f64) -> Action {
    Action { count, stride, ..Action::one(Op::TouchPages, 0, 0, 4096, think_ns) }
}

#[test]
fn touches_of_a_mapping_are_those_that_were_recorded() {
    let found = run(vec![scan()]).facts(baseline).unwrap();
    assert_eq!(found.plan.threads, [[touch(PAGES, 4096, 2000.0)]]);
    let file = &found.plan.files[0];
    assert_eq!((file.role, file.state, file.advice), (Role::User, State::Cold, Advice::Random));
    assert_eq!((found.scale, found.program_io_ns, found.touching_ns), (1.0, 9e8, 0.0));
    assert_eq!(found.recorded.map(|parts| parts.sum_ns()), Some(9e8));
    assert!(
        found.notes.iter().any(|note| note.contains("whose touch took a page fault")),
        "{:?}",
        found.notes
    );
    for id in [FindingId::NoReadahead, FindingId::MmapFaults] {
        let now = repaired(id, &found.plan, &RunFacts::default()).unwrap();
        assert_eq!((now.how.as_str(), now.plan.files[0].advice), ("MADV_SEQUENTIAL", Advice::Sequential));
        assert_eq!(now.plan.threads, found.plan.threads);
    }
}

#[test]
fn what_recording_adds_to_faults_is_in_no_recorded_time() {
    let found = run(vec![scan()]).with(|p| {
        let record = p.pattern.record.as_mut().unwrap();
        (record.fault_cost_ns, record.fault_excess_ns) = (Some(500.0), Some(100.0));
    });
    let found = found.facts(baseline).unwrap();
    assert_eq!(found.recorded.map(|parts| parts.sum_ns()), Some(9e8 - 100.0 * f64::from(PAGES)));
    assert_eq!(found.plan.threads, [[touch(PAGES, 4096, 2000.0 - 400.0)]]);
}

#[test]
fn cached_pages_are_warm_and_libraries_are_the_programs_own_time() {
    let library = Step { file: Some(1), count: 3, gap_ns: 500, time_ns: 1500, argument: 0, ..scan() };
    let cached = |p: &mut iowhy_core::profile::Profile| p.io.device_read_bytes = Some(0);
    let found = run(vec![library, Step { argument: 0, ..scan() }]).with(cached).facts(baseline).unwrap();
    assert_eq!(found.plan.files.len(), 1);
    assert_eq!((found.plan.files[0].state, found.plan.files[0].advice), (State::Warm, Advice::Normal));
    let think_ns = 2000.0 + 2000.0 / f64::from(PAGES);
    assert_eq!(found.plan.threads, [[touch(PAGES, 4096, think_ns)]]);
}

#[test]
fn windows_that_come_and_go_are_not_one_mapping() {
    let map = |n: u64| Step {
        kind: StepKind::Map,
        file: Some(0),
        place: Some(n * 65_536),
        bytes: 65_536,
        count: 9,
        ..Step::default()
    };
    let found = run((0..10).map(map).chain([scan()]).collect()).facts(baseline).unwrap();
    assert!(found.plan.actions().all(|a| matches!(a.op, Op::MapReadUnmap { .. })));
}

#[test]
fn faults_that_are_not_on_files_are_refused() {
    let anonymous = run(vec![Step { time_ns: 300_000_000, ..scan() }]);
    assert!(anonymous.facts(baseline).unwrap_err().contains("memory without a file"));
}

#[test]
fn who_mostly_reads_has_its_touches_between_its_reads() {
    let read = Step { kind: StepKind::Read, argument: 0, ..scan() };
    let touches = Step { gap_ns: 1000, time_ns: 9000, ..scan() };
    let run = Run::new(1.0)
        .io((512, 512 * 4096), (0, 0))
        .busy(Operation::Read, Layer::Call, 0.8)
        .busy(Operation::Fault, Layer::Memory, 0.2)
        .with(|p| p.pattern = recorded(vec![file("/data", 7)], vec![read.clone(), touches, read], 1));
    let found = run.facts(baseline).unwrap();
    let ops: Vec<(Op, f64)> = found.plan.actions().map(|a| (a.op, a.think_ns)).collect();
    let op = Op::Read { fresh: false };
    assert_eq!(ops, [(op, 2000.0), (op, 2000.0 + 10_000.0 / f64::from(PAGES))]);
    assert_eq!(found.scale, 1.0);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}
