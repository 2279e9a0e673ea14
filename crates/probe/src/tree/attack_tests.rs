//! A hostile user against trees that root makes: nothing outside of a tree is written or removed.
//!
//! The attacker is a thread with the rights of nobody, who owns the directory that the trees are in and exchanges a tree
//! against links to a directory of root's, as fast as it can.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iowhy_linux::names::{Dir, owner};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, Uid};

use super::mark::{MARK, NOT_KEPT};
use super::removal::remove_left;
use super::{Phase, Shape, Tree, run};

const NOBODY: u32 = 65534;
const FILES: u64 = 60;
const FOLDERS: u64 = 3;
/// In all, over the phases of the attack.
const ATTACK: Duration = Duration::from_secs(10);

/// A directory of the attacker's and one of root's.
struct Arena {
    _top: tempfile::TempDir,
    hostile: PathBuf,
    victim: PathBuf,
}

impl Arena {
    /// `None`, said aloud, where this process is not root.
    fn new() -> Option<Arena> {
        if !owner().is_root() {
            println!("skipped: only root has files that another user may not change");
            return None;
        }
        let top = tempfile::tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (hostile, victim) = (top.path().join("hostile"), top.path().join("victim"));
        fs::create_dir(&hostile).unwrap();
        chown(&hostile, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::create_dir(&victim).unwrap();
        // Names as trees have them, and as databases do.
        for number in 0..FILES {
            fs::write(victim.join(number.to_string()), format!("precious {number}")).unwrap();
        }
        fs::write(victim.join(format!("0{}", super::mark::MOVED)), "precious").unwrap();
        Some(Arena { _top: top, hostile, victim })
    }

    fn check(&self) {
        let names = fs::read_dir(&self.victim).unwrap().count() as u64;
        assert_eq!(names, FILES + 1, "a name was made or removed in root's directory");
        for number in 0..FILES {
            let text = fs::read_to_string(self.victim.join(number.to_string()));
            assert_eq!(text.ok(), Some(format!("precious {number}")));
        }
    }
}

fn shape() -> Shape {
    Shape { files: FILES, directories: FOLDERS, sizes: vec![100] }
}

/// Takes the rights of nobody, for this thread alone.
fn become_nobody() {
    rustix::thread::set_thread_groups(&[]).unwrap();
    rustix::thread::set_thread_res_gid(None, rustix::fs::Gid::from_raw(NOBODY), None).unwrap();
    let nobody = Uid::from_raw(NOBODY);
    rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
}

/// Links that look like a tree: each of its directories leads to root's.
fn make_farm(farm: &Path, victim: &Path) {
    fs::create_dir(farm).unwrap();
    fs::write(farm.join(MARK), NOT_KEPT).unwrap();
    for number in 0..FOLDERS {
        symlink(victim, farm.join(format!("d{number}"))).unwrap();
    }
}

/// Exchanges every tree that appears in the directory against the farm, and back, until told to stop. How often.
fn attack(hostile: &Path, victim: &Path, stop: &AtomicBool, exchanges: &AtomicU64) {
    become_nobody();
    let farm = hostile.join("farm");
    make_farm(&farm, victim);
    let exchange = |one: &Path, other: &Path| {
        rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
    };
    while !stop.load(Ordering::Relaxed) {
        for entry in fs::read_dir(hostile).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(MARK) {
                let done = exchange(&entry.path(), &farm);
                exchanges.fetch_add(u64::from(done), Ordering::Relaxed);
                std::thread::yield_now();
                exchange(&entry.path(), &farm);
            }
        }
    }
}

#[test]
fn root_makes_no_tree_where_another_user_may_exchange_it() {
    let Some(scene) = Arena::new() else { return };
    let refused = Tree::make(&scene.hostile, None, shape(), &mut |_, _| {}).unwrap_err();
    assert!(refused.message.contains("another user") && refused.hint.is_some(), "{refused}");
    let kept = scene.hostile.join("kept");
    assert!(Tree::make(&scene.hostile, Some(&kept), shape(), &mut |_, _| {}).is_err());
    // A tree of the attacker's is not taken up, and not removed.
    make_farm(&kept, &scene.victim);
    chown(&kept, Some(NOBODY), Some(NOBODY)).unwrap();
    assert!(Tree::make(&scene.hostile, Some(&kept), shape(), &mut |_, _| {}).is_err());
    assert!(super::remove(&kept, &mut |_| {}).is_err());
    let open = scene.hostile.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(Tree::make(&open, None, shape(), &mut |_, _| {}).is_err());
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    drop(Tree::make(&open, None, shape(), &mut |_, _| {}).unwrap());
    scene.check();
}

/// Below the check of the directory, as if it had been passed: what is made and removed stays in the tree all the same.
#[test]
fn a_tree_that_is_exchanged_while_it_is_used_harms_nothing() {
    let Some(scene) = Arena::new() else { return };
    let (stop, exchanges) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut rounds = 0u64;
    std::thread::scope(|scope| {
        scope.spawn(|| attack(&scene.hostile, &scene.victim, &stop, &exchanges));
        let end = Instant::now() + ATTACK;
        while Instant::now() < end {
            // What is refused, because a name had been exchanged, is no harm.
            let parent = Dir::open(&scene.hostile).unwrap();
            if let Ok(mut tree) = Tree::lay_out_in(parent, shape()) {
                rounds += 1;
                let _ = tree.fill(&mut |_, _| {});
                let mut files = tree.files();
                let lists = files.lists(2, None, super::Order::Directory, 1);
                for phase in [Phase::Rename, Phase::Read, Phase::Rename, Phase::Delete, Phase::Create] {
                    let _ = run(phase, &mut files, &lists, Some(&tree), &mut |_| {});
                }
                // As a replay makes a journal again and again.
                let (dir, name) = tree.spot(7).unwrap();
                for _ in 0..100 {
                    let _ = dir.remove_file(&name);
                    let _ = dir.create_new(&name, OFlags::RDWR, Mode::RUSR | Mode::WUSR);
                }
            }
            remove_left(&Dir::open(&scene.hostile).unwrap());
        }
        stop.store(true, Ordering::Relaxed);
    });
    scene.check();
    let exchanges = exchanges.into_inner();
    assert!(rounds > 0 && exchanges > 0, "{rounds} trees, {exchanges} exchanges: nothing was attacked");
}

#[test]
fn what_another_user_plants_is_not_taken_for_left_behind() {
    let Some(scene) = Arena::new() else { return };
    // No process has so high a number (proc(5): at most 2^22).
    let planted = scene.hostile.join(format!("{MARK}-4194305"));
    make_farm(&planted, &scene.victim);
    fs::create_dir(planted.join("d7")).unwrap();
    fs::write(planted.join("d7/1"), "theirs").unwrap();
    for path in [planted.clone(), planted.join(MARK), planted.join("d7"), planted.join("d7/1")] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let parent = Dir::open(&scene.hostile).unwrap();
    assert_eq!(remove_left(&parent), 0);
    // Neither is one of root's whose mark, or which itself, others may write to.
    let name = CString::new(format!("{MARK}-4194306")).unwrap();
    let ours = parent.make_dir(&name).unwrap();
    fs::write(ours.path().join(MARK), NOT_KEPT).unwrap();
    fs::create_dir(ours.path().join("d0")).unwrap();
    fs::write(ours.path().join("d0/1"), "x").unwrap();
    chown(ours.path().join(MARK), Some(NOBODY), None).unwrap();
    assert_eq!(remove_left(&parent), 0);
    chown(ours.path().join(MARK), Some(0), None).unwrap();
    fs::set_permissions(ours.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(remove_left(&parent), 0);
    fs::set_permissions(ours.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(remove_left(&parent), 1, "that one is ours");
    assert_eq!(fs::read(planted.join("d7/1")).unwrap(), b"theirs");
    scene.check();
}
