//! All control groups of the machine, by path.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::mounts;

/// Groups are not nested deeper than this in practice; the kernel's own bound (`cgroup.max.depth`) is unlimited.
const DEPTH: usize = 16;
/// So many groups are looked at.
const MAX: usize = 100_000;

/// Groups below the root of each mounted hierarchy, as paths without the root, each once.
pub fn all() -> BTreeSet<PathBuf> {
    let mounts = mounts::read();
    let of_groups = mounts.into_iter().filter(|m| m.file_system == "cgroup" || m.file_system == "cgroup2");
    let mut groups = BTreeSet::new();
    of_groups.for_each(|mount| add(&mount.point, &mut groups));
    groups
}

fn add(root: &Path, groups: &mut BTreeSet<PathBuf>) {
    let mut open = vec![(root.to_path_buf(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // A link is no group: only directories are entered, and links are not followed.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || groups.len() >= MAX {
                continue;
            }
            let path = entry.path();
            if let Ok(below) = path.strip_prefix(root) {
                groups.insert(below.to_path_buf());
            }
            if depth < DEPTH {
                open.push((path, depth + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_below_each_other_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/cgroup.procs"), "").unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("a/link")).unwrap();
        let mut groups = BTreeSet::new();
        add(dir.path(), &mut groups);
        assert_eq!(groups.into_iter().collect::<Vec<_>>(), [PathBuf::from("a"), PathBuf::from("a/b")]);
    }
}
