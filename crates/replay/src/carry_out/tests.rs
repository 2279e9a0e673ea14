//! Replays on files whose content and calls are known: counts and laws, never times.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use iowhy_core::profile::FileIdentity;
use iowhy_core::replay::{Action, Advice, Op, Plan, PlanFile, Role, State};

use super::*;
use iowhy_probe::{residency, ruler};

const MIB: u64 = 1 << 20;

fn data(bytes: u64) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![7u8; bytes as usize]).unwrap();
    file.as_file().sync_all().unwrap();
    file
}

/// As [`data`], and not in the cache; nothing where the file system keeps it there.
fn evictable(bytes: u64) -> Option<tempfile::NamedTempFile> {
    let file = data(bytes);
    let fd = file.as_file().as_fd();
    residency::evict(fd, 0, bytes).unwrap();
    if residency::look(fd, 0, bytes).is_ok_and(|seen| seen.resident > 0) {
        eprintln!("skipped: nothing can be evicted in the temporary directory");
        return None;
    }
    Some(file)
}

fn own(file: &tempfile::NamedTempFile, state: State) -> PlanFile {
    let m = file.as_file().metadata().unwrap();
    PlanFile {
        identity: Some(FileIdentity {
            device: m.dev(),
            inode: m.ino(),
            size_bytes: m.len(),
            modified_ns: m.mtime() * 1_000_000_000 + m.mtime_nsec(),
        }),
        size_bytes: m.len(),
        state,
        ..PlanFile::new(file.path().display().to_string(), Role::User)
    }
}

fn plan(files: Vec<PlanFile>, threads: Vec<Vec<Action>>) -> Plan {
    Plan { files, threads, passes: 1, depth: 1, ..Plan::default() }
}

fn reads(place: u64, bytes: u64, count: u32, stride: i64) -> Action {
    Action { op: Op::Read { fresh: false }, file: 0, offset: place, bytes, count, stride, think_ns: 0.0 }
}

#[test]
fn what_has_become_a_pipe_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // Opening it would wait for a writer.
    let file = PlanFile::new(path.display().to_string(), Role::User);
    assert!(files::open(&file, 0).is_err());
}

#[test]
fn more_threads_than_a_process_can_have_are_refused() {
    let plan = Plan { threads: vec![Vec::new(); 5000], ..Plan::default() };
    assert!(LocalReplay::prepare(plan).is_err_and(|problem| problem.message.contains("5000 threads")));
}

#[test]
fn calls_and_bytes_are_those_of_the_plan_over_all_threads_and_passes() {
    let file = data(MIB);
    let mut p = plan(vec![own(&file, State::Warm)], vec![vec![reads(0, 4096, 64, 4096)]; 3]);
    p.passes = 4;
    p.files[0].shift_bytes = 64 * 4096;
    let round = LocalReplay::prepare(p).unwrap().run().unwrap();
    assert_eq!((round.calls, round.bytes), (3 * 4 * 64, 3 * 4 * 64 * 4096));
    // One kind of calls: the clock is read at its end.
    assert!(round.elapsed_ns > round.think_ns && round.think_ns <= 2.0 * ruler::clock_read_ns(), "{round:?}");
}

#[test]
fn reads_in_any_order_beyond_the_end_and_backwards_stay_in_the_file() {
    let file = data(MIB);
    let actions = vec![reads(MIB - 4096, 4096, 256, -4096), reads(MIB - 100, 4096, 5, 5000)];
    let round =
        LocalReplay::prepare(plan(vec![own(&file, State::Warm)], vec![actions])).unwrap().run().unwrap();
    assert_eq!((round.calls, round.bytes), (261, 261 * 4096));
}

#[test]
fn the_programs_own_time_is_spun_and_told_apart() {
    let file = data(MIB);
    let mut action = reads(0, 100, 1000, 100);
    action.think_ns = 3000.0;
    let round =
        LocalReplay::prepare(plan(vec![own(&file, State::Warm)], vec![vec![action]])).unwrap().run().unwrap();
    assert!(round.think_ns >= 3e6, "{round:?}");
    assert!(round.elapsed_ns >= round.think_ns && round.io_ns() > 0.0);
}

#[test]
fn the_users_file_is_read_only_and_unchanged() {
    let file = data(MIB);
    let before = (std::fs::read(file.path()).unwrap(), file.as_file().metadata().unwrap().mtime_nsec());
    let write = Action::one(Op::Write, 0, 0, 4096, 0.0);
    let error = LocalReplay::prepare(plan(vec![own(&file, State::Warm)], vec![vec![write]]))
        .unwrap()
        .run()
        .unwrap_err();
    assert!(error.message.contains("failed"), "{error}");
    let after = (std::fs::read(file.path()).unwrap(), file.as_file().metadata().unwrap().mtime_nsec());
    assert_eq!(before, after);
}

#[test]
fn a_file_that_was_changed_cut_or_removed_is_refused_by_name() {
    let file = data(MIB);
    let planned = own(&file, State::Warm);
    let path = file.path().display().to_string();
    let p = plan(vec![planned], vec![vec![reads(0, 4096, 1, 0)]]);
    let replay = LocalReplay::prepare(p.clone()).unwrap();
    file.as_file().set_len(4096).unwrap();
    for error in [replay.run().unwrap_err(), LocalReplay::prepare(p.clone()).unwrap_err()] {
        assert!(error.message.contains(&path) && error.message.contains("changed"), "{error}");
        assert!(error.hint.is_some());
    }
    drop(file);
    assert!(LocalReplay::prepare(p).unwrap_err().message.contains(&path));
}

#[test]
fn what_is_written_has_no_name_and_is_gone_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("log");
    std::fs::write(&target, b"the user's").unwrap();
    let file =
        |role, size_bytes| PlanFile { size_bytes, ..PlanFile::new(target.display().to_string(), role) };
    let files = vec![file(Role::ScratchEmpty, 0), file(Role::ScratchFull, MIB)];
    let write = |file, count| Action { op: Op::Write, file, stride: 4096, count, ..reads(0, 4096, 1, 0) };
    let sync = |file| Action::one(Op::Fsync { metadata: false }, file, 0, 0, 0.0);
    let replay =
        LocalReplay::prepare(plan(files, vec![vec![write(0, 10), sync(0), write(1, 10), sync(1)]])).unwrap();
    for _ in 0..2 {
        assert_eq!(replay.run().unwrap().bytes, 20 * 4096);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no name is left");
    }
    assert_eq!(std::fs::read(&target).unwrap(), b"the user's");
    // Only scratch files are emptied.
    let own = PlanFile { role: Role::User, ..file(Role::User, 10) };
    let throw = |at| Action::one(Op::Truncate, at, 0, 0, 0.0);
    let files = vec![file(Role::ScratchEmpty, 0), own];
    let replay =
        LocalReplay::prepare(plan(files, vec![vec![write(0, 10), throw(0), write(0, 5), throw(1)]])).unwrap();
    let round = replay.run().unwrap();
    assert_eq!((round.bytes, round.calls), (15 * 4096, 15));
    assert!(round.think_ns > 0.0, "throwing away takes no part in the time");
    assert_eq!(std::fs::read(&target).unwrap(), b"the user's");
}

#[test]
fn a_journal_is_recreated_in_a_scratch_directory_that_goes_with_the_replay() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("base");
    std::fs::write(&target, b"the user's").unwrap();
    let journal = PlanFile::new(target.display().to_string(), Role::ScratchEmpty);
    let renew = Action::one(Op::MakeFile { stays: false }, 0, 0, 0, 0.0);
    let write = |place| Action { op: Op::Write, ..reads(place, 4096, 1, 0) };
    let sync = Action::one(Op::Fsync { metadata: true }, 0, 0, 0, 0.0);
    // Each is empty when it is made: what is read behind the first block is not there.
    let actions = vec![renew, write(0), write(4096), sync, renew, write(0), reads(4096, 4096, 1, 0)];
    let replay =
        LocalReplay::prepare(Plan { passes: 3, ..plan(vec![journal.clone()], vec![actions]) }).unwrap();
    let names = || std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names(), 2, "a scratch directory beside the file");
    for _ in 0..2 {
        let round = replay.run().unwrap();
        assert_eq!((round.calls, round.bytes), (3 * 7, 3 * 3 * 4096));
    }
    drop(replay);
    assert_eq!((names(), std::fs::read(&target).unwrap().as_slice()), (1, b"the user's".as_slice()));
    // Only scratch files are made again.
    let own = PlanFile { size_bytes: 10, ..PlanFile::new(journal.path, Role::User) };
    let error = LocalReplay::prepare(plan(vec![own], vec![vec![renew]])).unwrap().run().unwrap_err();
    assert!(error.message.contains("base"), "{error}");
    assert_eq!(std::fs::read(&target).unwrap(), b"the user's");
}

#[test]
fn files_that_stay_are_there_until_the_run_ends() {
    let dir = tempfile::tempdir().unwrap();
    let beside = PlanFile::new(dir.path().join("known").display().to_string(), Role::ScratchEmpty);
    let make = Action { count: 2, ..Action::one(Op::MakeFile { stays: true }, 0, 0, 0, 0.0) };
    let write = Action { op: Op::Write, ..reads(0, 4096, 1, 0) };
    let plan = Plan { passes: 3, ..plan(vec![beside], vec![vec![make, write]]) };
    let replay = LocalReplay::prepare(plan).unwrap();
    let folder = || std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.path()).find(|p| p.is_dir());
    let root = folder().unwrap();
    let inside = || {
        let below = std::fs::read_dir(&root).unwrap().flatten().find(|e| e.path().is_dir()).unwrap();
        std::fs::read_dir(below.path()).unwrap().count()
    };
    for _ in 0..2 {
        let round = replay.run().unwrap();
        assert_eq!((round.calls, round.bytes, inside()), (3 * 3, 3 * 4096, 0));
    }
    // As in the midst of a run: as many as it makes, and not one more.
    for made in 1..=6 {
        replay.files[0].make(true).unwrap();
        assert_eq!(inside(), made);
    }
    assert!(replay.files[0].make(true).is_err());
    drop(replay);
    assert!(folder().is_none(), "it goes with its files");
}

#[test]
fn the_journal_of_a_killed_replay_is_recognised_as_scratch() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("base");
    std::fs::write(&target, b"the user's").unwrap();
    let journal = PlanFile::new(target.display().to_string(), Role::ScratchEmpty);
    let renew = Action::one(Op::MakeFile { stays: false }, 0, 0, 0, 0.0);
    let replay = LocalReplay::prepare(plan(vec![journal], vec![vec![renew]])).unwrap();
    // As in the midst of a run.
    replay.files[0].make(false).unwrap();
    let ours =
        std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.path()).find(|p| p.is_dir()).unwrap();
    // As `iowhy tree --remove` does, and the next start after a kill.
    assert_eq!(iowhy_probe::tree::remove(&ours, &mut |_| ()), Ok(1));
    assert!(!ours.exists() && target.exists());
}

#[test]
fn a_plan_begins_cold_where_it_says_so() {
    let Some(file) = evictable(4 * MIB) else { return };
    let mut planned = own(&file, State::Cold);
    planned.advice = Advice::Random;
    let replay =
        LocalReplay::prepare(plan(vec![planned], vec![vec![reads(0, 4096, 4, MIB as i64)]])).unwrap();
    residency::fetch(file.as_file().as_fd(), 0, 4 * MIB).unwrap();
    replay.run().unwrap();
    let seen = residency::look(file.as_file().as_fd(), 0, 4 * MIB).unwrap();
    assert_eq!(seen.resident, 4, "only what was asked for came back");
}

/// MADV_RANDOM on a file that fits in memory takes the read-around away, which was a prefetch: more faults wait.
#[test]
fn against_read_around_every_page_of_a_mapping_is_waited_for() {
    let Some(file) = evictable(8 * MIB) else { return };
    // 1500 pages in an order that jumps: 997 is prime to 2048.
    let touch = |i: u64| Action::one(Op::TouchPages, 0, i * 997 % 2048 * 4096, 1, 0.0);
    let run = |advice| {
        let mut planned = own(&file, State::Cold);
        planned.advice = advice;
        LocalReplay::prepare(plan(vec![planned], vec![(0..1500).map(touch).collect()]))
            .unwrap()
            .run()
            .unwrap()
    };
    let (around, random) = (run(Advice::Normal), run(Advice::Random));
    assert_eq!((around.calls, random.calls), (1500, 1500));
    assert_eq!(random.major_faults, 1500, "every page");
    assert!(around.major_faults < 750, "{around:?}");
}

#[test]
fn windows_fresh_memory_and_seeks_are_carried_out() {
    let file = data(MIB);
    let actions = vec![
        Action { op: Op::MapReadUnmap { populate: false }, ..reads(0, 65536, 16, 65536) },
        Action { op: Op::MapReadUnmap { populate: true }, ..reads(0, MIB, 2, 0) },
        Action { op: Op::Read { fresh: true }, ..reads(0, 65536, 16, 65536) },
        Action::one(Op::Seek, 0, 77, 0, 0.0),
    ];
    let round =
        LocalReplay::prepare(plan(vec![own(&file, State::Warm)], vec![actions])).unwrap().run().unwrap();
    assert_eq!((round.calls, round.bytes), (16 + 2 + 16 + 1, 4 * MIB));
}

#[test]
fn a_ring_moves_the_same_bytes_and_leaves_nothing_in_flight() {
    let file = data(MIB);
    let mut p = plan(vec![own(&file, State::Warm)], vec![vec![reads(0, 4096, 1000, 4096)]]);
    p.depth = 32;
    match LocalReplay::prepare(p).unwrap().run() {
        Ok(round) => assert_eq!((round.calls, round.bytes), (1000, 1000 * 4096)),
        Err(error) if error.message.contains("ring") => eprintln!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn memory_is_taken_and_given_back_and_a_mapping_is_looked_at_whole() {
    let take = |populate| Action { op: Op::MmapAnon { populate }, ..reads(0, MIB, 5, 0) };
    let scan = Action { op: Op::TouchLines, ..reads(100, MIB - 100, 1, 0) };
    let file = data(MIB);
    let all = plan(vec![own(&file, State::Warm)], vec![vec![take(true), take(false), scan]]);
    let round = LocalReplay::prepare(all).unwrap().run().unwrap();
    assert_eq!((round.calls, round.bytes), (11, MIB - 100));
}

#[test]
fn touches_before_the_time_begins_are_not_counted() {
    let file = data(MIB);
    let scan = Action { op: Op::TouchPages, think_ns: 500.0, ..reads(0, 65_536, 16, 65_536) };
    let plan = plan(vec![own(&file, State::Warm)], vec![vec![scan]]);
    let round =
        LocalReplay::prepare(Plan { passes: 2, touched_before: true, ..plan }).unwrap().run().unwrap();
    assert_eq!((round.calls, round.bytes), (32, 2 * MIB));
    assert_eq!(round.parts.sum_ns(), round.parts.reads_ns);
}

/// Reading changes no access time that `relatime` would leave, and O_NOATIME serves where it would not.
#[test]
fn a_replay_leaves_the_access_time_as_it_is() {
    let file = data(MIB);
    let times = |f: &tempfile::NamedTempFile| {
        let m = f.as_file().metadata().unwrap();
        (m.atime(), m.atime_nsec(), m.mtime(), m.mtime_nsec())
    };
    let before = times(&file);
    let replay =
        LocalReplay::prepare(plan(vec![own(&file, State::Warm)], vec![vec![reads(0, 4096, 64, 4096)]]))
            .unwrap();
    replay.run().unwrap();
    assert_eq!(times(&file), before, "not read since it was written: opened with O_NOATIME");
    // As a program that has just read it.
    std::fs::read(file.path()).unwrap();
    let read = times(&file);
    let replay =
        LocalReplay::prepare(plan(vec![own(&file, State::Warm)], vec![vec![reads(0, 4096, 64, 4096)]]))
            .unwrap();
    replay.run().unwrap();
    assert_eq!(times(&file), read);
}

/// The next run reads what comes next, as the program did: nothing of it is in any cache.
#[test]
fn runs_go_on_where_the_run_before_ended() {
    let Some(file) = evictable(4 * MIB) else { return };
    let mut planned = own(&file, State::Cold);
    (planned.advice, planned.shift_bytes) = (Advice::Random, MIB);
    let replay = LocalReplay::prepare(plan(vec![planned], vec![vec![reads(0, 4096, 4, 4096)]])).unwrap();
    for run in [0, 1, 2, 3, 0] {
        replay.run().unwrap();
        let of = |mib: u64| residency::look(file.as_file().as_fd(), mib * MIB, MIB).unwrap().resident;
        let there: Vec<u64> = (0..4).map(of).collect();
        assert_eq!(there, (0..4).map(|mib| if mib == run { 4 } else { 0 }).collect::<Vec<u64>>());
    }
}

/// What is said of a whole file is said of all of it, however far the passes have moved on.
#[test]
fn a_whole_file_is_forgotten_whole() {
    let Some(file) = evictable(4 * MIB) else { return };
    let mut planned = own(&file, State::Warm);
    planned.shift_bytes = MIB;
    let forget = Action::one(Op::FadviseDontNeed, 0, 0, 0, 0.0);
    let mut p = plan(vec![planned], vec![vec![reads(0, 4096, 4, 4096), forget]]);
    p.passes = 3;
    LocalReplay::prepare(p).unwrap().run().unwrap();
    // Pages that a CPU still holds in its lists stay; most of three quarters would, were a part forgotten only.
    let seen = residency::look(file.as_file().as_fd(), 0, 4 * MIB).unwrap();
    assert!(seen.resident * 10 < seen.pages, "{seen:?}");
}

/// What earlier calls brought is there before each run, at the places of that run, and nothing around it.
#[test]
fn ranges_of_a_cold_file_are_cached_before_each_run() {
    let Some(file) = evictable(4 * MIB) else { return };
    let cached = vec![[MIB, 8192], [3 * MIB, 4096]];
    let planned = PlanFile { cached, shift_bytes: 16_384, ..own(&file, State::Cold) };
    let opened = files::open(&planned, 0).unwrap();
    for passes in [0, 1] {
        opened.prepare(&planned).unwrap();
        opened.bring_cached(&planned, passes).unwrap();
        let resident = |offset: u64, bytes| {
            let offset = offset + passes * 16_384;
            residency::look(file.as_file().as_fd(), offset, bytes).unwrap().share()
        };
        assert_eq!((resident(MIB, 8192), resident(3 * MIB, 4096)), (1.0, 1.0), "pass {passes}");
        assert!(resident(0, 4 * MIB - passes * 16_384) < 0.5, "pass {passes}: it was not read ahead");
        assert_eq!(resident(2 * MIB, 4096), 0.0, "pass {passes}");
    }
    let replay = LocalReplay::prepare(plan(vec![planned], vec![vec![reads(MIB, 8192, 1, 0)]])).unwrap();
    assert_eq!(replay.run().unwrap().calls, 1);
}
