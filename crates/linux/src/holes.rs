//! Holes of a sparse file: ranges that hold no data, which are read as zeros and copied like others (lseek(2), SEEK_DATA).
//!
//! Invariant: what is opened is the regular file that was looked at before, for an instant, and no byte of it is read.

use std::fs::File;
use std::path::Path;

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;

use crate::file_facts::FileFacts;
use crate::names::Regular;

/// Ranges of one file that are looked at.
const MAX_OF_A_FILE: u32 = 16_384;

/// Bytes of holes in the file that `at` leads to. `left`: how many more ranges of data may be looked at; those that were are taken from it.
/// `None`: it is not that file any more, we may not read it, others than we and root may write it, its file system does not tell, or it has more
/// ranges than that. (Asking waits for a lock of the file that a writer holds: with a buffer that never arrives, for ever.)
pub fn bytes(at: &Path, facts: &FileFacts, left: &mut u32) -> Option<u64> {
    let found = Regular::find(at, OFlags::empty()).ok()?;
    if found.identity() != facts.identity || !found.is_written_by_us_alone() {
        return None;
    }
    let most = (*left).min(MAX_OF_A_FILE);
    let mut of_file = most;
    let holes = in_file(&found.open_quietly().ok()?, found.bytes(), &mut of_file);
    *left -= most - of_file;
    holes
}

fn in_file(file: &File, size: u64, left: &mut u32) -> Option<u64> {
    let (mut holes, mut end) = (0, 0);
    while end < size {
        *left = left.checked_sub(1)?;
        let data = match rustix::fs::seek(file, SeekFrom::Data(end)) {
            Ok(data) => data.min(size),
            // No data from there to the end.
            Err(Errno::NXIO) => size,
            Err(_) => return None,
        };
        holes += data.checked_sub(end)?;
        if data == size {
            break;
        }
        end = rustix::fs::seek(file, SeekFrom::Hole(data)).ok().filter(|hole| *hole > data)?;
    }
    Some(holes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A file of 64 MiB with 1 MiB of data at each of these places; `None` where the file system keeps no holes.
    fn sparse(at: &[u64]) -> Option<File> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 * MIB).unwrap();
        for place in at {
            file.write_all_at(&vec![7; MIB as usize], place * MIB).unwrap();
        }
        if in_file(&file, 64 * MIB, &mut 100) == Some(0) {
            eprintln!("skipped: this file system does not tell holes");
            return None;
        }
        Some(file)
    }

    #[test]
    fn holes_are_what_is_no_data() {
        for (at, data) in [(&[][..], 0), (&[0], 1), (&[63], 1), (&[0, 1, 7, 63], 4), (&[5, 40], 2)] {
            let Some(file) = sparse(at) else { return };
            let mut left = 100;
            assert_eq!(in_file(&file, 64 * MIB, &mut left), Some((64 - data) * MIB), "{at:?}");
            assert!(left < 100);
        }
        let empty = tempfile::tempfile().unwrap();
        assert_eq!(in_file(&empty, 0, &mut 0), Some(0));
    }

    #[test]
    fn of_more_ranges_than_may_be_looked_at_nothing_is_said() {
        let Some(file) = sparse(&[1, 3, 5, 7]) else { return };
        let mut left = 3;
        assert_eq!((in_file(&file, 64 * MIB, &mut left), left), (None, 0));
        assert_eq!(in_file(&file, 64 * MIB, &mut 5), Some(60 * MIB));
    }

    #[test]
    fn another_file_of_that_name_is_left_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let other = FileFacts { identity: (0, 0), ..FileFacts::default() };
        assert_eq!(bytes(file.path(), &other, &mut 10), None);
    }
}
