//! Replays of many small files: what is done is counted, and nothing is left.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use iowhy_core::replay::{Action, OnFile, Op, Plan, PlanTree, State, Touch};

use super::*;

const FILES: u64 = 60;
const BYTES: u64 = 300;

fn plan(parent: &Path, life: &[(OnFile, u64, f64)]) -> Plan {
    let life = life.iter().map(|&(what, bytes, each)| Touch { what, bytes, each }).collect();
    let tree = PlanTree {
        file_system: None,
        parent: parent.display().to_string(),
        files: FILES,
        folders: 6,
        bytes: BYTES,
        state: State::Warm,
        statx: true,
        life,
    };
    let action = |place: u64, count: u64| Action {
        count: count as u32,
        stride: 1,
        ..Action::one(Op::SmallFile, 0, place, 0, 0.0)
    };
    let half = FILES / 2;
    let threads = vec![vec![action(0, half)], vec![action(half, half)]];
    Plan { files: Vec::new(), threads, passes: 1, depth: 1, tree: Some(tree), ..Plan::default() }
}

const READ: [(OnFile, u64, f64); 8] = [
    (OnFile::List, 0, 0.1),
    (OnFile::Examine, 0, 1.0),
    (OnFile::Miss, 0, 0.5),
    (OnFile::Open, 0, 1.0),
    (OnFile::ExamineOpen, 0, 1.0),
    (OnFile::Read, BYTES, 2.0),
    (OnFile::Seek, 0, 1.0),
    (OnFile::Close, 0, 1.0),
];
const MADE: [(OnFile, u64, f64); 6] = [
    (OnFile::List, 0, 0.1),
    (OnFile::Make, 0, 1.0),
    (OnFile::Ask, 0, 1.0),
    (OnFile::Write, 100, 3.0),
    (OnFile::Close, 0, 1.0),
    (OnFile::Remove, 0, 0.5),
];

fn names(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

/// Files in all scratch trees.
fn files(dir: &Path) -> Vec<u64> {
    let list = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().collect::<Vec<_>>();
    let folders = list(dir).into_iter().flat_map(|tree| list(&tree.path()));
    folders.flat_map(|folder| list(&folder.path())).map(|file| file.metadata().unwrap().len()).collect()
}

#[test]
fn files_that_are_read_are_made_once_and_every_call_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut p = plan(dir.path(), &READ);
    p.passes = 3;
    let planned = p.calls() * 3;
    let replay = LocalReplay::prepare(p).unwrap();
    let there = files(dir.path());
    assert_eq!((there.len() as u64, there.iter().sum::<u64>()), (FILES, FILES * BYTES));
    for _ in 0..2 {
        let round = replay.run().unwrap();
        assert_eq!((round.calls, round.bytes), (planned, 3 * FILES * BYTES));
        assert_eq!(round.calls, 3 * (6 * 4 + FILES / 2 + 7 * FILES));
    }
    assert_eq!(names(dir.path()), 1, "one tree");
    drop(replay);
    assert_eq!(names(dir.path()), 0, "nothing is left");
}

#[test]
fn files_are_made_anew_in_every_run_and_go_with_the_stage() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("own"), b"the user's").unwrap();
    let replay = LocalReplay::prepare(plan(dir.path(), &MADE)).unwrap();
    for run in 1..=3 {
        let round = replay.run().unwrap();
        assert_eq!((round.calls, round.bytes), (6 * 4 + FILES * 6 + FILES / 2, FILES * 300));
        assert_eq!(files(dir.path()), vec![300; (run * FILES / 2) as usize]);
    }
    drop(replay);
    assert_eq!(names(dir.path()), 1);
    assert_eq!(std::fs::read(dir.path().join("own")).unwrap(), b"the user's");
}

#[test]
fn a_copy_has_the_bytes_of_what_was_read() {
    let dir = tempfile::tempdir().unwrap();
    let life = [
        (OnFile::Miss, 0, 1.0),
        (OnFile::Open, 0, 1.0),
        (OnFile::ExamineOpen, 0, 1.0),
        (OnFile::Make, 0, 1.0),
        (OnFile::Advise, 0, 1.0),
        (OnFile::Copy, 4096, 2.0),
        (OnFile::Close, 0, 2.0),
    ];
    let replay = LocalReplay::prepare(plan(dir.path(), &life)).unwrap();
    let round = replay.run().unwrap();
    assert_eq!((round.calls, round.bytes), (FILES * 9, 2 * FILES * BYTES));
    assert_eq!(files(dir.path()), vec![BYTES; 2 * FILES as usize]);
    drop(replay);
    assert_eq!(names(dir.path()), 0);
}

#[test]
fn a_tree_begins_cold_where_the_plan_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut p = plan(dir.path(), &READ);
    p.tree.as_mut().unwrap().state = State::Cold;
    match LocalReplay::prepare(p).unwrap().run() {
        Ok(round) => assert_eq!(round.bytes, FILES * BYTES),
        Err(error) if error.message.contains("page cache") => eprintln!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
    assert_eq!(names(dir.path()), 0);
}

#[test]
fn what_fails_is_named_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let error = LocalReplay::prepare(plan(&gone, &READ)).unwrap_err();
    assert!(error.message.contains("gone") && error.hint.is_some(), "{error}");
    // A file that is read before it is opened.
    let replay =
        LocalReplay::prepare(plan(dir.path(), &[(OnFile::Open, 0, 0.0), (OnFile::Read, 1, 1.0)])).unwrap();
    let error = replay.run().unwrap_err();
    assert!(error.message.contains("reading file") && error.message.contains("scratch tree"), "{error}");
    drop(replay);
    // A tree that somebody else has taken a file out of.
    let replay = LocalReplay::prepare(plan(dir.path(), &READ)).unwrap();
    let tree = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(tree.join("d0/6")).unwrap();
    assert!(replay.run().is_err());
    drop(replay);
    assert_eq!(names(dir.path()), 0);
    let huge = Plan {
        tree: plan(dir.path(), &READ).tree.map(|t| PlanTree { files: 1 << 50, ..t }),
        ..Plan::default()
    };
    assert!(LocalReplay::prepare(huge).unwrap_err().message.contains("not enough"));
    let locked = dir.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    match LocalReplay::prepare(plan(&locked, &MADE)).and_then(|replay| replay.run()) {
        Err(error) => assert!(error.message.contains("locked"), "{error}"),
        Ok(_) => assert!(rustix::process::geteuid().is_root(), "only root writes where nobody may"),
    }
    assert_eq!(names(&locked), 0);
}
