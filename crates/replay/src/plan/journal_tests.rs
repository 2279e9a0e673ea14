//! Known answers for programs that make a journal for each transaction, and for asking a device for less.

use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{CallCount, CallCounts, FileIdentity, FileUse, PatternFile, Step, StepKind};
use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role};

use super::super::recorded::of_record as baseline;
use super::super::tests::recorded;
use iowhy_diagnose::classify::{Operation, Wait};
use iowhy_diagnose::findings::repaired;
use iowhy_diagnose::findings::synthetic::Run;
use iowhy_diagnose::repair::{RunFacts, Sizes};

const SYNC: Op = Op::Fsync { metadata: false };
const O_RDWR: u32 = 0o2;
const O_CREAT: u32 = 0o100;

fn pattern_file(path: &str, kind: &str, flags: u32, inode: Option<u64>) -> PatternFile {
    let identity = inode.map(|inode| FileIdentity { inode, size_bytes: 8192, ..FileIdentity::default() });
    PatternFile { path: path.into(), kind: kind.into(), flags: Some(flags), identity, made: None }
}

/// 10 of 100 transactions of a data base: a journal is made, written and synced, a directory is synced, a page is written
/// and synced, and the journal is removed.
fn data_base(journal: PatternFile) -> Run {
    let step = |kind, file, bytes| Step {
        kind,
        file: Some(file),
        bytes,
        place: (bytes > 0).then_some(0),
        count: 1,
        gap_ns: 1000,
        time_ns: 10_000,
        ..Step::default()
    };
    let transaction = [
        Step { argument: journal.flags.unwrap_or(0), ..step(StepKind::Open, 1, 0) },
        step(StepKind::Write, 1, 512),
        Step { place: Some(512), ..step(StepKind::Write, 1, 4096) },
        step(StepKind::Sync, 1, 0),
        step(StepKind::Open, 2, 0),
        step(StepKind::Sync, 2, 0),
        step(StepKind::Write, 0, 4096),
        step(StepKind::Sync, 0, 0),
    ];
    let steps: Vec<Step> = std::iter::repeat_n(transaction, 10).flatten().collect();
    let files = vec![
        pattern_file("/base", "regular", O_RDWR, Some(7)),
        journal,
        pattern_file("?", "unknown", 0, None),
    ];
    Run::new(1.0)
        .io((0, 0), (300, 100 * (512 + 4096 + 4096)))
        .wait(Operation::Sync, Wait::DeviceWrite, 0.6)
        .wait(Operation::Names, Wait::DeviceWrite, 0.2)
        .busy(Operation::Write, Layer::Filesystem, 0.1)
        .busy(Operation::User, Layer::Program, 0.1)
        .with(|p| p.pattern = recorded(files, steps, 10))
}

fn count(plan: &Plan, what: Op) -> u64 {
    plan.actions().filter(|a| a.op == what).map(|a| u64::from(a.count)).sum()
}

#[test]
fn a_journal_that_is_made_for_each_transaction_is_made_again_and_its_names_count() {
    // Its name was looked up too late, or in time, or when it was gone.
    for (path, kind) in
        [("?", "unknown"), ("/base-journal", "regular"), ("/base-journal (deleted)", "regular")]
    {
        let found = data_base(pattern_file(path, kind, O_RDWR | O_CREAT, None)).facts(baseline).unwrap();
        let plan = &found.plan;
        assert_eq!(
            (count(plan, Op::MakeFile { stays: false }), count(plan, SYNC), count(plan, Op::Write)),
            (10, 30, 30),
            "{path}"
        );
        let renewed = plan.actions().find(|a| a.op == Op::MakeFile { stays: false }).unwrap().file;
        let journal = &plan.files[renewed as usize];
        assert_eq!((journal.role, journal.size_bytes, journal.shift_bytes), (Role::ScratchEmpty, 0, 0));
        assert!(journal.identity.is_none());
        assert!(plan.threads[0].iter().any(|a| a.file == renewed && a.offset == 512), "places stay");
        // An open, three writes and three syncs of 10 µs, 100 times.
        assert!((found.program_io_ns - 7e6).abs() < 1.0, "{}", found.program_io_ns);
    }
}

#[test]
fn a_directory_is_synced_where_a_journal_is_made_in_it() {
    let journal = || pattern_file("/data/base-journal", "unknown", O_RDWR | O_CREAT, None);
    let directory = |path: &'static str| {
        data_base(journal()).with(|p| p.pattern.files[2] = pattern_file(path, "directory", 0, None))
    };
    let found = directory("/data").facts(baseline).unwrap();
    let plan = &found.plan;
    let file_of = |what: Op| plan.actions().find(|a| a.op == what).map(|a| a.file);
    assert_eq!((count(plan, Op::SyncDirectory), count(plan, SYNC)), (10, 20));
    assert_eq!(file_of(Op::SyncDirectory), file_of(Op::MakeFile { stays: false }));
    assert_eq!(plan.files.len(), 2, "{:?}", plan.files);
    // An open, three writes and three syncs of 10 µs, 100 times.
    assert!((found.program_io_ns - 7e6).abs() < 1.0, "{}", found.program_io_ns);
    let run_facts = RunFacts { sizes: Sizes { batch: 15, ..Sizes::default() }, ..RunFacts::default() };
    let five = repaired(FindingId::SyncPerWrite, plan, &run_facts).unwrap().plan;
    assert_eq!(
        (count(&five, Op::SyncDirectory), count(&five, SYNC), count(&five, Op::MakeFile { stays: false })),
        (2, 4, 2)
    );
    // Nothing that a replay makes is in another one.
    let elsewhere = directory("/other").facts(baseline).unwrap();
    assert_eq!((count(&elsewhere.plan, Op::SyncDirectory), count(&elsewhere.plan, SYNC)), (0, 20));
}

/// git and rsync: made under a name, written, synced and renamed; names beyond the bound are all the same.
#[test]
fn files_that_are_renamed_are_made_anew_in_their_directory() {
    let renamed = |first: PatternFile| {
        let run = data_base(pattern_file("?", "unknown", O_RDWR | O_CREAT, None)).with(|p| {
            let open = Step { argument: O_CREAT, file: Some(0), ..p.pattern.stretches[0].steps[0].clone() };
            p.pattern.files[0] = first;
            p.pattern.stretches[0].steps.insert(0, open);
        });
        run.with(|p| {
            p.files.push(FileUse { path: "/data/known".into(), device_number: Some(5), ..FileUse::default() })
        })
    };
    let call =
        |name: &str, calls| CallCount { name: name.into(), calls, time_ns: 1000, ..CallCount::default() };
    let with = |calls: Vec<CallCount>| {
        renamed(pattern_file("/data/.f1.x (deleted)", "regular", O_RDWR, None))
            .with(|p| p.calls = Some(CallCounts { calls, ..CallCounts::default() }))
            .facts(baseline)
            .unwrap()
    };
    // A name is taken from each, and it has another: git links, rsync renames. Else they are removed.
    for (stays, calls) in [
        (true, vec![call("link", 11), call("unlink", 12)]),
        (true, vec![call("renameat", 11)]),
        (false, vec![call("rename", 2), call("unlinkat", 11)]),
        (false, vec![]),
    ] {
        assert_eq!(count(&with(calls).plan, Op::MakeFile { stays }), 11, "{stays}");
    }
    let found = with(vec![call("rename", 11)]);
    // All of them are made where there is one sync for all, and written back while the next is made.
    let run_facts =
        RunFacts { sizes: Sizes { batch: Sizes::ALL, ..Sizes::default() }, ..RunFacts::default() };
    let once = repaired(FindingId::SyncPerWrite, &found.plan, &run_facts).unwrap();
    let counts = |plan: &Plan| {
        let made = count(plan, Op::MakeFile { stays: true });
        (made, count(plan, Op::SyncFileRange), count(plan, SYNC), count(plan, Op::Write))
    };
    assert_eq!((counts(&found.plan), counts(&once.plan)), ((11, 0, 30, 30), (11, 20, 2, 30)));
    assert_eq!(once.at_best.as_ref().map(counts), None, "each file is written once");
    assert!(found.plan.files.iter().all(|file| file.path == "/data/.f1.x"), "{:?}", found.plan.files);
    // Nothing tells where they were: most of the time is in no plan, and there is no verdict on the rest.
    let nowhere = renamed(pattern_file("/etc/passwd", "regular", 0, Some(3))).with(|p| {
        p.pattern.stretches[0].steps.retain(|s| s.file != Some(0) || s.kind == StepKind::Write);
        for step in p.pattern.stretches[0].steps.iter_mut().filter(|s| s.file == Some(0)) {
            (step.kind, step.time_ns) = (StepKind::Read, 1);
        }
    });
    let why = nowhere.facts(baseline).unwrap_err();
    assert!(why.contains("most of it"), "{why}");
}

#[test]
fn a_file_that_stays_or_was_there_is_not_made_anew() {
    for journal in [
        pattern_file("/log", "regular", O_RDWR | O_CREAT, Some(8)),
        pattern_file("?", "unknown", O_RDWR, None),
    ] {
        let found = data_base(journal.clone()).facts(baseline).unwrap();
        assert_eq!(count(&found.plan, Op::MakeFile { stays: false }), 0, "{journal:?}");
        assert!((found.program_io_ns - 6e6).abs() < 1.0, "no open: {}", found.program_io_ns);
    }
}

#[test]
fn a_batch_of_transactions_has_one_journal() {
    let journal = pattern_file("?", "unknown", O_RDWR | O_CREAT, None);
    let was = data_base(journal).facts(baseline).unwrap().plan;
    let of = |batch| {
        let run_facts = RunFacts { sizes: Sizes { batch, ..Sizes::default() }, ..RunFacts::default() };
        repaired(FindingId::SyncPerWrite, &was, &run_facts).unwrap().plan
    };
    // 30 syncs are 10 transactions: five of them together.
    let five = of(15);
    assert_eq!(
        (count(&five, Op::MakeFile { stays: false }), count(&five, SYNC), count(&five, Op::Write)),
        (2, 6, 30)
    );
    let all = of(Sizes::ALL);
    assert_eq!(
        (count(&all, Op::MakeFile { stays: false }), count(&all, SYNC)),
        (1, 3),
        "of the journal, of its directory, of the data"
    );
    let think = |plan: &Plan| plan.think_ns();
    assert!((think(&five) - think(&was)).abs() < 1.0, "own time is neither lost nor made");
}

#[test]
fn a_device_is_asked_for_one_request_in_so_many() {
    let read = Action {
        count: 640,
        stride: 1 << 20,
        ..Action::one(Op::Read { fresh: false }, 0, 0, 1 << 20, 100.0)
    };
    let file = PlanFile { size_bytes: 1 << 30, direct: true, ..PlanFile::new("/data", Role::User) };
    let was =
        Plan { files: vec![file], threads: vec![vec![read]; 2], passes: 3, depth: 1, ..Plan::default() };
    let of = |subsample| {
        let run_facts = RunFacts { sizes: Sizes { subsample, ..Sizes::default() }, ..RunFacts::default() };
        repaired(FindingId::DeviceSaturated, &was, &run_facts)
    };
    let now = of(16).unwrap();
    assert_eq!((now.plan.calls(), now.plan.passes), (80, 3));
    assert!(now.plan.threads.iter().all(|t| t.iter().all(|a| a.stride == 1 << 20 && a.offset == 0)));
    assert!(now.how.contains("1/16 of the bytes"), "{}", now.how);
    assert_eq!(of(Sizes::default().subsample).unwrap().plan.calls(), 640, "half of them");
    assert!(of(1000).unwrap_err().contains("too few calls"));
}

#[test]
fn who_asks_for_more_than_there_is_needs_no_memory_for_it_and_endless_records_are_refused() {
    let asked = |bytes, count| {
        let run = data_base(pattern_file("/base-journal", "regular", O_RDWR | O_CREAT, None)).with(|p| {
            for step in p.pattern.stretches[0].steps.iter_mut().filter(|s| s.file == Some(0)) {
                (step.kind, step.bytes, step.count) = (StepKind::Read, bytes, count);
            }
        });
        run.facts(baseline).map(|found| {
            let read = |a: &&Action| matches!(a.op, Op::Read { .. });
            found.plan.actions().find(read).map(|a| a.bytes)
        })
    };
    assert_eq!(asked(6 << 30, 1), Ok(Some(16 << 20)), "of a file of 8 KiB");
    assert_eq!(asked(1 << 20, 1), Ok(Some(1 << 20)), "left as it is");
    assert!(asked(4096, u32::MAX).is_err_and(|why| why.contains("more than")));
}

#[test]
fn each_thread_has_its_own_journal_and_a_sink_is_none() {
    let journal = || pattern_file("?", "unknown", O_RDWR | O_CREAT, None);
    let run = |file: PatternFile| {
        data_base(file).with(|p| {
            let steps = &mut p.pattern.stretches[0].steps;
            *steps = steps.iter().flat_map(|s| [s.clone(), Step { thread: 1, ..s.clone() }]).collect();
        })
    };
    let plan = run(journal()).facts(baseline).unwrap().plan;
    assert_eq!((plan.threads.len(), count(&plan, Op::MakeFile { stays: false })), (2, 20));
    let renewed =
        |at: usize| plan.threads[at].iter().find(|a| a.op == Op::MakeFile { stays: false }).map(|a| a.file);
    assert_ne!(renewed(0), renewed(1));
    for (thread, at) in plan.threads.iter().zip(0..) {
        // What it writes at 512 goes to its own.
        assert!(thread.iter().filter(|a| a.offset == 512).all(|a| Some(a.file) == renewed(at)));
    }
    // A thread that only works on what another makes has none of its own.
    let handed = data_base(journal()).with(|p| {
        for step in &mut p.pattern.stretches[0].steps {
            step.thread = u32::from(step.kind == StepKind::Sync);
        }
    });
    let plan = handed.facts(baseline).unwrap().plan;
    assert_eq!(
        (plan.threads.len(), count(&plan, Op::MakeFile { stays: false }), count(&plan, SYNC)),
        (2, 10, 30)
    );
    let renewed =
        plan.threads[0].iter().find(|a| a.op == Op::MakeFile { stays: false }).map(|a| a.file).unwrap();
    assert!(plan.threads[1].iter().filter(|a| a.file == renewed).count() >= 10, "{plan:?}");
    assert_eq!(plan.files.len(), 3, "the base, one journal, and the directory: {:?}", plan.files);
    // A shell opens it with O_CREAT, too.
    let null = pattern_file("/dev/null", "character-device", O_RDWR | O_CREAT, None);
    let plan = data_base(null).facts(baseline).unwrap().plan;
    assert_eq!(count(&plan, Op::MakeFile { stays: false }), 0);
    assert!(plan.files.iter().any(|f| f.role == Role::Sink), "{:?}", plan.files);
}
