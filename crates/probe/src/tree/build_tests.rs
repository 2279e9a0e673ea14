//! Trees are made, taken up and removed; what is not of them stays.

use std::fs;

use super::super::removal::remove;
use super::*;

fn shape() -> Shape {
    Shape { files: 60, directories: 6, sizes: vec![930, 3030, 6102] }
}

#[test]
fn sizes_are_mixed_evenly_in_every_directory() {
    for directory in 0..6 {
        let mut counts = [0; 3];
        for file in (0..60).filter(|f| f % 6 == directory) {
            counts[shape().sizes.iter().position(|s| *s == shape().size(file)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|c| (3..=4).contains(c)), "{counts:?}");
    }
}

#[test]
fn what_is_planned_is_what_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
    let (planned, found) = (tree.files(), Files::walk(tree.root(), 1000, &mut |_| {}).unwrap());
    assert_eq!((planned.len(), planned.bytes()), (found.len(), found.bytes()));
    assert_eq!(planned.bytes(), (0..60).map(|f| shape().size(f)).sum::<u64>());
    for file in 0..60 {
        let path = planned.spot(file, false).unwrap().shown(&planned.anchors());
        let meta = fs::metadata(path).unwrap();
        assert_eq!(meta.len(), planned.size(file));
    }
    assert_eq!(tree.made(), 60);
    drop(tree);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn fewer_files_than_directories_leave_no_empty_directory() {
    let dir = tempfile::tempdir().unwrap();
    let few = Shape { files: 3, directories: 10, sizes: vec![1] };
    let tree = Tree::make(dir.path(), None, few, &mut |_, _| {}).unwrap();
    assert_eq!((tree.files().directories(), tree.files().len()), (3, 3));
}

#[test]
fn no_two_files_hold_the_same() {
    let content = Content::new(&shape());
    assert_ne!(content.of(1, 930), content.of(2, 930));
    assert_eq!((content.of(7, 6102).len(), content.of(BEGINS - 1, 6102).len()), (6102, 6102));
    assert!(content.of(3, u64::MAX).len() as u64 <= BEGINS + 6102);
}

#[test]
fn a_kept_tree_is_taken_up_and_other_things_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("news");
    let make = |shape| Tree::make(dir.path(), Some(&kept), shape, &mut |_, _| {});
    assert_eq!(make(shape()).unwrap().made(), 60);
    fs::remove_file(kept.join("d1/7")).unwrap();
    fs::write(kept.join("d2/8"), b"cut short").unwrap();
    assert_eq!(make(shape()).unwrap().made(), 2, "only what is missing or cut short is made again");
    let other = make(Shape { files: 61, ..shape() }).unwrap_err();
    assert!(other.message.contains("another tree"), "{other}");
    let full = tempfile::tempdir().unwrap();
    fs::write(full.path().join("precious"), b"data").unwrap();
    let refused = Tree::make(dir.path(), Some(full.path()), shape(), &mut |_, _| {}).unwrap_err();
    assert!(refused.message.contains("not empty"), "{refused}");
    assert!(remove(full.path(), &mut |_| {}).unwrap_err().message.contains("no tree of iowhy's"));
    assert_eq!(fs::read(full.path().join("precious")).unwrap(), b"data");
    let huge = Shape { files: 1 << 50, ..shape() };
    assert!(Tree::make(full.path(), None, huge, &mut |_, _| {}).unwrap_err().message.contains("not enough"));
    assert_eq!(fs::read_dir(full.path()).unwrap().count(), 1, "refused before anything was made");
}

#[test]
fn what_a_run_that_was_killed_at_once_has_begun_goes_with_the_next_and_not_from_under_one_that_lives() {
    let dir = tempfile::tempdir().unwrap();
    let root = |pid: &str| dir.path().join(format!("{MARK}-{pid}"));
    // No process has so high a number (proc(5): at most 2^22).
    let (bare, marked, filled, living) =
        (root("4194305"), root("4194306-2"), root("4194307"), root(&std::process::id().to_string()));
    for root in [&bare, &marked, &filled, &living] {
        fs::create_dir(root).unwrap();
    }
    fs::write(marked.join(MARK), "").unwrap();
    fs::write(filled.join("own"), "data").unwrap();
    assert_eq!(remove_left(&Dir::open(dir.path()).unwrap()), 2);
    assert!(!bare.exists() && !marked.exists() && living.is_dir());
    assert_eq!(fs::read(filled.join("own")).unwrap(), b"data");
}

#[test]
fn a_tree_that_a_killed_run_has_left_goes_with_the_next_and_one_in_use_stays() {
    let dir = tempfile::tempdir().unwrap();
    let used = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
    // As a killed process leaves it: the kernel has taken its lock.
    let mut left = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
    left.lock = None;
    let left = std::mem::ManuallyDrop::new(left);
    let others = [format!("{MARK}-"), format!("{MARK}-x"), "own".to_owned()].map(|n| dir.path().join(n));
    for other in &others {
        fs::create_dir(other).unwrap();
        fs::write(other.join(MARK), NOT_KEPT).unwrap();
    }
    let kept = dir.path().join(format!("{MARK}-1"));
    drop(Tree::make(dir.path(), Some(&kept), shape(), &mut |_, _| {}).unwrap());
    assert_ne!(used.root(), left.root());
    let next = Tree::lay_out(dir.path(), None, shape()).unwrap();
    assert!(
        used.root().join("d5/59").is_file()
            && next.root().join("d0").is_dir()
            && others.iter().all(|o| o.is_dir())
    );
    assert!(!left.root().join("d0/0").exists(), "it is gone");
    assert_eq!(remove_left(&Dir::open(dir.path()).unwrap()), 0, "nothing else is left behind");
    drop((used, next));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), others.len() + 1);
    assert!(kept.join("d5/59").is_file(), "what is kept stays whatever its name");
}

#[test]
fn removing_takes_our_files_and_leaves_others() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("news");
    drop(Tree::make(dir.path(), Some(&kept), shape(), &mut |_, _| {}).unwrap());
    fs::write(kept.join("d1/note"), b"not ours").unwrap();
    fs::rename(kept.join("d2/8"), kept.join("d2/8.moved")).unwrap();
    let stays = remove(&kept, &mut |_| {}).unwrap_err();
    assert!(stays.message.contains("60 files") && stays.message.contains("not of the tree"), "{stays}");
    assert_eq!(fs::read(kept.join("d1/note")).unwrap(), b"not ours");
    fs::remove_file(kept.join("d1/note")).unwrap();
    assert_eq!(remove(&kept, &mut |_| {}).unwrap(), 0);
    assert!(!kept.exists());
}
