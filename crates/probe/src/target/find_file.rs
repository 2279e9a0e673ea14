//! Where no scratch file can be made: a file below the directory that can be read instead.
//!
//! Invariant: bounded in time and entries, stays on one file system, follows no symbolic link, opens nothing.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD};

/// Time after which the best file so far is taken.
const MAX_TIME: Duration = Duration::from_millis(300);
/// Directory entries after which the best file so far is taken.
const MAX_ENTRIES: usize = 20_000;

/// The largest regular file of at least `min_bytes` below `dir` that may be read and has data behind at least half
/// of its size. Breadth first; the search ends after 300 ms or 20 000 entries.
pub fn find_readable_file(dir: &Path, min_bytes: u64) -> Option<PathBuf> {
    let began = Instant::now();
    let device = fs::metadata(dir).ok()?.dev();
    let mut queue = VecDeque::from([dir.to_owned()]);
    let mut best: Option<(u64, PathBuf)> = None;
    let mut entries = 0;
    while let Some(dir) = queue.pop_front() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MAX_ENTRIES || began.elapsed() > MAX_TIME {
                return best.map(|(_, path)| path);
            }
            // Of the entry itself: a symbolic link is neither file nor directory here.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.dev() != device {
                continue;
            }
            if meta.is_dir() {
                queue.push_back(entry.path());
            } else if meta.is_file()
                && meta.len() >= best.as_ref().map_or(min_bytes.max(1), |(size, _)| size + 1)
                && meta.blocks().saturating_mul(512) >= meta.len() / 2
                && rustix::fs::accessat(CWD, entry.path(), Access::READ_OK, AtFlags::EACCESS).is_ok()
            {
                best = Some((meta.len(), entry.path()));
            }
        }
    }
    best.map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_file_with_data_is_found_and_links_and_holes_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        fs::write(elsewhere.path(), vec![1; 1 << 20]).unwrap();
        let below = dir.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(dir.path().join("small"), vec![1; 10_000]).unwrap();
        fs::write(below.join("large"), vec![1; 100_000]).unwrap();
        fs::File::create(dir.path().join("sparse")).unwrap().set_len(1 << 30).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path(), below.join("up")).unwrap();
        // The allocated size of a new file is only known once it was written back.
        for name in ["small", "a/b/large"] {
            fs::File::open(dir.path().join(name)).unwrap().sync_all().unwrap();
        }
        assert_eq!(find_readable_file(dir.path(), 1), Some(below.join("large")));
        assert_eq!(find_readable_file(dir.path(), 100_000), Some(below.join("large")));
        assert_eq!(find_readable_file(dir.path(), 100_001), None);
        assert_eq!(find_readable_file(&dir.path().join("missing"), 1), None);
    }
}
