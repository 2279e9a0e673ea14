//! Known answers: what is counted of three programs, and the tree that stands for their files.

use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{Access, CallCount, CallPattern, FileUse, PatternFile, Step, StepKind, Stretch};
use iowhy_core::replay::{OnFile, Op, Role, State};

use super::tree;
use crate::plan::{Baseline, Bounds};
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::synthetic::Run;
use iowhy_diagnose::findings::{Facts, repaired};
use iowhy_diagnose::repair::RunFacts;

fn baseline(facts: &Facts<'_>) -> Result<Baseline, String> {
    tree::baseline(facts, &Bounds::PROOF)
}

fn access(calls: u64, bytes: u64, time_ns: u64) -> Access {
    Access { calls, bytes, time_ns, ..Access::default() }
}

/// A run of a second with these calls: done, of them failed, time of each.
fn run(calls: &[(&str, u64, u64, u64)], unnamed: FileUse, steps: Vec<Step>, flags: u32) -> Run {
    let busy = |run: Run, operation, share| run.busy(operation, Layer::Filesystem, share);
    let run =
        busy(busy(busy(Run::new(1.0), Operation::Open, 0.3), Operation::Stat, 0.1), Operation::Close, 0.1);
    let run = busy(busy(run, Operation::Read, 0.1), Operation::Write, 0.1).busy(
        Operation::User,
        Layer::Program,
        0.2,
    );
    run.calls(&[]).with(|p| {
        let sample = p.calls.as_mut().unwrap();
        sample.calls = calls
            .iter()
            .map(|&(name, calls, failed, each)| CallCount {
                name: name.to_owned(),
                calls,
                failed,
                time_ns: calls * each,
                ..CallCount::default()
            })
            .collect();
        p.files.push(FileUse { path: "?".into(), kind: "unknown".into(), ..unnamed });
        p.files.push(FileUse {
            path: "/data/tree/d1/f7".into(),
            kind: "regular".into(),
            size_bytes: Some(300),
            device_number: Some(7),
            ..FileUse::default()
        });
        let unnamed = PatternFile {
            path: "?".into(),
            kind: "unknown".into(),
            flags: Some(flags),
            ..PatternFile::default()
        };
        p.pattern = CallPattern {
            files: vec![unnamed],
            stretches: vec![Stretch { length_ns: 1_000_000, steps }],
            ..CallPattern::default()
        };
    })
}

fn step(kind: StepKind, file: Option<u32>) -> Step {
    Step { kind, file, count: 1, ..Step::default() }
}

/// Each file examined, opened, examined, read to its end, closed; 100 in a folder.
fn reader() -> Run {
    let unnamed = FileUse { opens: 200, reads: access(397, 59_700, 1000), ..FileUse::default() };
    let calls = [
        ("statx", 401, 0, 500),
        ("openat", 202, 0, 900),
        ("read", 397, 0, 300),
        ("close", 201, 0, 300),
        ("getdents64", 4, 0, 9000),
    ];
    let steps = vec![step(StepKind::Open, None), step(StepKind::Read, Some(0))];
    run(&calls, unnamed, steps, 0).io((320_000, 48_000_000), (0, 0)).with(|p| {
        p.files.push(FileUse {
            path: "/data/tree/d2".into(),
            kind: "directory".into(),
            opens: 2,
            device_number: Some(7),
            ..FileUse::default()
        });
    })
}

/// Python: open(NAME, "wb") examines, asks for a terminal and seeks.
fn maker() -> Run {
    let unnamed = FileUse { opens: 100, writes: access(100, 30_000, 1000), ..FileUse::default() };
    let calls = [
        ("openat", 100, 0, 9000),
        ("newfstatat", 100, 0, 400),
        ("ioctl", 100, 100, 300),
        ("lseek", 100, 0, 300),
        ("write", 100, 0, 3000),
        ("close", 100, 0, 900),
    ];
    let steps =
        vec![step(StepKind::Open, None), step(StepKind::Seek, Some(0)), step(StepKind::Write, Some(0))];
    run(&calls, unnamed, steps, O_TRUNC_CREAT).io((0, 0), (12_000, 3_600_000))
}

const O_TRUNC_CREAT: u32 = 0o1101;

/// cp -r: 8000 files.
fn copier() -> Run {
    let both = access(200, 30_000, 1000);
    let unnamed = FileUse { opens: 200, reads: both.clone(), writes: both, ..FileUse::default() };
    let calls = [
        ("newfstatat", 400, 100, 400),
        ("openat", 200, 0, 5000),
        ("copy_file_range", 200, 0, 3000),
        ("fadvise64", 100, 0, 300),
        ("ioctl", 100, 100, 300),
        ("close", 200, 0, 600),
    ];
    run(&calls, unnamed, vec![], 0).io((8000, 2_400_000), (8000, 2_400_000))
}

fn life(run: &Run) -> Vec<(OnFile, u64, f64)> {
    let tree = run.facts(baseline).unwrap().plan.tree.unwrap();
    tree.life.iter().map(|t| (t.what, t.bytes, t.each)).collect()
}

#[test]
fn a_tree_that_is_read_has_the_files_calls_and_folders_of_the_program() {
    use OnFile::*;
    let found = reader().facts(baseline).unwrap();
    let tree = found.plan.tree.clone().unwrap();
    assert_eq!((tree.files, tree.bytes, tree.state, tree.statx), (4000, 301, State::Warm, true));
    assert_eq!((tree.parent.as_str(), tree.folders), ("/data/tree", 40));
    let expected = [
        (List, 0, 0.01),
        (Examine, 0, 1.0),
        (Open, 0, 1.0),
        (ExamineOpen, 0, 1.0),
        (Read, 301, 2.0),
        (Close, 0, 1.0),
    ];
    assert_eq!(life(&reader()).len(), expected.len());
    for ((what, bytes, each), found) in expected.iter().zip(&tree.life) {
        assert_eq!((found.what, found.bytes), (*what, *bytes));
        assert!((found.each - each).abs() < 0.011, "{found:?}");
    }
    // 160,000 files, by the kernel's own count of reads; 0.6 s of the run are calls on them.
    let all = found.scale * f64::from(found.plan.passes) * 4000.0;
    assert!((all - 160_000.0).abs() < 1.0, "{all}");
    assert!((found.program_io_ns - 0.6e9).abs() < 1e7, "{}", found.program_io_ns);
    assert!((found.plan.think_ns() * found.scale * f64::from(found.plan.passes) - 0.2e9).abs() < 2e7);
    assert!(
        found.notes[0].contains("4,000 files of 301 B") && found.notes[0].contains("`/data/tree`"),
        "{found:?}"
    );
}

#[test]
fn what_each_made_or_copied_file_takes_is_in_the_plan() {
    use OnFile::*;
    let expected = [
        (Make, 0, 1.0),
        (ExamineOpen, 0, 1.0),
        (Ask, 0, 1.0),
        (Seek, 0, 1.0),
        (Write, 300, 1.0),
        (Close, 0, 1.0),
    ];
    assert_eq!(life(&maker()), expected);
    // The start of an interpreter lists folders and reads its own files: they are not the program's.
    let started = maker().with(|p| {
        let listed = CallCount { name: "getdents64".into(), calls: 8, time_ns: 8000, ..CallCount::default() };
        p.calls.as_mut().unwrap().calls.push(listed);
        p.files[0].reads = access(2, 1_300_000, 1000);
        p.files[0].opens += 4;
    });
    assert_eq!(life(&started), expected);
    assert_eq!(started.facts(baseline).unwrap().plan.tree.unwrap().folders, 1);
    let made = maker().facts(baseline).unwrap();
    assert_eq!((made.plan.passes, made.scale), (1, 3.0));
    let expected = [
        (Examine, 0, 1.0),
        (Miss, 0, 1.0),
        (Open, 0, 1.0),
        (ExamineOpen, 0, 1.0),
        (Make, 0, 1.0),
        (ExamineOpen, 0, 1.0),
        (Ask, 0, 1.0),
        (Advise, 0, 1.0),
        (Copy, 300, 2.0),
        (Close, 0, 2.0),
    ];
    assert_eq!(life(&copier()), expected);
    let copied = copier().facts(baseline).unwrap();
    assert_eq!((copied.plan.tree.unwrap().files, copied.scale), (4000, 2.0));
}

#[test]
fn packed_the_same_bytes_are_read_written_or_copied() {
    let bytes = |run: &Run, what: Op| {
        let was = run.facts(baseline).unwrap().plan;
        let now = repaired(FindingId::ManySmallFiles, &was, &RunFacts::default()).unwrap();
        assert!(now.plan.calls() < was.calls() / 50 && now.how.contains("one packed file"), "{}", now.how);
        assert!((now.plan.think_ns() - was.think_ns()).abs() < 1.0, "own time is neither lost nor made");
        let roles: Vec<Role> = now.plan.files.iter().map(|f| f.role).collect();
        assert!(now.plan.actions().all(|a| a.bytes <= 65_536));
        (roles, now.plan.bytes(|d| d == what))
    };
    let read = Op::Read { fresh: false };
    assert_eq!(bytes(&reader(), read), (vec![Role::ScratchFull], 4000 * 301));
    assert_eq!(bytes(&maker(), Op::Write), (vec![Role::ScratchEmpty], 4000 * 300));
    assert_eq!(bytes(&copier(), read), (vec![Role::ScratchFull, Role::ScratchEmpty], 4000 * 300));
    assert_eq!(bytes(&copier(), Op::Write).1, 4000 * 300);
    // Other causes are none of the tree's.
    let was = reader().facts(baseline).unwrap().plan;
    assert!(repaired(FindingId::SmallRequests, &was, &RunFacts::default()).is_err());
}

#[test]
fn threads_share_the_files_and_cold_files_are_read_once() {
    let run = reader().device_read(700_000_000).with(|p| {
        let open = |thread| Step { thread, ..step(StepKind::Open, None) };
        p.pattern.stretches[0].steps.extend([open(1), open(2)]);
    });
    let found = run.facts(baseline).unwrap();
    assert_eq!((found.plan.threads.len(), found.plan.passes), (3, 1));
    let handled: u64 = found.plan.actions().map(|a| u64::from(a.count)).sum();
    let tree = found.plan.tree.unwrap();
    assert_eq!((handled, tree.state), (tree.files, State::Cold));
    assert!(found.notes.iter().any(|n| n.contains("only root")), "{:?}", found.notes);
}

#[test]
fn files_beside_others_are_only_their_part() {
    // As many bytes again, and half of the time in reads, went to a file with a name.
    let run = reader().with(|p| {
        p.files.push(FileUse {
            path: "/data/big".into(),
            kind: "regular".into(),
            size_bytes: Some(1 << 30),
            reads: access(397, 59_700, 1000),
            opens: 1,
            ..FileUse::default()
        });
    });
    let found = run.facts(baseline).unwrap();
    let all = found.scale * f64::from(found.plan.passes) * 4000.0;
    assert!((all - 80_000.0).abs() < 1.0, "{all}");
    assert!((found.program_io_ns - 0.55e9).abs() < 1e7, "{}", found.program_io_ns);
}

#[test]
fn files_that_were_open_for_a_moment_have_their_part_of_the_time_by_calls() {
    // Only the file with a name has a time of its own: a half of the calls, and of the time in reads, is still not its.
    let run = reader().with(|p| {
        p.files[0].reads.time_ns = 0;
        p.files.push(FileUse {
            path: "/data/big".into(),
            kind: "regular".into(),
            size_bytes: Some(1 << 30),
            reads: access(397, 59_700, 1000),
            opens: 1,
            ..FileUse::default()
        });
    });
    let found = run.facts(baseline).unwrap();
    assert!((found.program_io_ns - 0.55e9).abs() < 1e7, "{}", found.program_io_ns);
}

#[test]
fn an_open_file_does_not_tell_that_it_was_made_and_the_call_does() {
    let of = |argument| {
        let run = maker().with(|p| {
            // As the kernel tells the flags of an open file: without O_CREAT and O_TRUNC.
            p.pattern.files[0].flags = Some(0o100001);
            p.pattern.stretches[0].steps[0] = Step { argument, ..step(StepKind::Open, Some(0)) };
        });
        run.facts(baseline).map(|found| found.plan.tree.is_some())
    };
    assert_eq!(of(O_TRUNC_CREAT), Ok(true));
    assert!(of(1).unwrap_err().contains("overwritten"));
}

#[test]
fn folders_go_with_the_files_that_are_packed() {
    let of = |run: Run| run.busy(Operation::Names, Layer::Filesystem, 0.2).facts(baseline).unwrap();
    let folders = maker().with(|p| {
        let call = |name: &str, calls, time_ns| CallCount {
            name: name.into(),
            calls,
            time_ns,
            ..CallCount::default()
        };
        p.calls.as_mut().unwrap().calls.extend([call("mkdir", 3, 30_000), call("rename", 3, 10_000)]);
    });
    assert_eq!(of(maker()).goes_along_ns, 0.0);
    let found = of(folders);
    assert!((found.goes_along_ns - 0.15e9).abs() < 1e6, "{}", found.goes_along_ns);
    assert!((found.program_io_ns - of(maker()).program_io_ns).abs() < 1e6, "they are not replayed");
}

#[test]
fn where_too_little_is_known_the_reason_is_said() {
    let why = |run: Run| run.facts(baseline).unwrap_err();
    assert!(why(reader().with(|p| p.calls = None)).contains("no counts of system calls"));
    assert!(why(reader().with(|p| p.files[0].opens = 3)).contains("too few opens"));
    assert!(why(reader().with(|p| p.files[0].reads.bytes = 1 << 40)).contains("not small"));
    assert!(why(reader().with(|p| p.files.truncate(1))).contains("not known"));
    let flags = |flags: u32| maker().with(|p| p.pattern.files[0].flags = Some(flags));
    assert!(why(flags(0o2101)).contains("append"));
    assert!(why(flags(0o1)).contains("overwritten"));
    let empty = maker().with(|p| p.files[0].writes = access(0, 0, 0));
    let was = empty.facts(baseline).unwrap().plan;
    assert!(
        repaired(FindingId::ManySmallFiles, &was, &RunFacts::default())
            .unwrap_err()
            .contains("nothing can be packed")
    );
}
