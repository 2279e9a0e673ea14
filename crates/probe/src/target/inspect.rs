//! Inspects a target before anything is timed: what lies behind its bytes, whether it can be read directly, whether
//! its cache can be seen. Reads at most a few blocks. Fills [`TargetFacts`]; judging them is not done here.

use std::os::fd::{AsFd, BorrowedFd};

use iowhy_core::environment::{TargetFacts, TargetKind};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::extents::{self, Layout};
use super::status::Status;
use crate::residency;

/// The smallest and largest alignment that is tried where statx does not tell.
const PROBED_ALIGNMENTS: [usize; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];

/// How much of the cache is looked at to learn whether it can be seen.
const GLANCE_BYTES: u64 = 4096;

/// Gathers the facts about an open target of `size_bytes`.
pub(super) fn facts(
    kind: TargetKind,
    name: String,
    file: BorrowedFd<'_>,
    status: &Status,
    size_bytes: u64,
) -> TargetFacts {
    let seekable = kind != TargetKind::CharDevice;
    let is_file = seekable && kind != TargetKind::BlockDevice;
    let layout =
        if is_file { extents::layout(file, size_bytes, status.allocated_bytes) } else { Layout::default() };
    let alignment = if seekable { direct_alignment_bytes(file, status) } else { Some(0) };
    TargetFacts {
        kind,
        name,
        size_bytes,
        hole_bytes: layout.hole_bytes,
        unwritten_bytes: layout.unwritten_bytes,
        shared_bytes: layout.shared_bytes,
        encoded_bytes: layout.encoded_bytes,
        extents: layout.extents,
        memory_backed: status.memory_backed,
        served_by: status.served_by.map(str::to_owned),
        overwritten: None,
        direct_supported: alignment.map(|bytes| bytes > 0),
        direct_alignment_bytes: alignment.filter(|&bytes| bytes > 0),
        cache_visible: seekable && residency::look(file, 0, size_bytes.min(GLANCE_BYTES)).is_ok(),
        stripe: None,
    }
}

/// The facts about a target that has no file behind it.
pub(super) fn made_up(kind: TargetKind, name: &str, size_bytes: u64) -> TargetFacts {
    TargetFacts {
        kind,
        name: name.to_owned(),
        size_bytes,
        hole_bytes: None,
        unwritten_bytes: None,
        shared_bytes: None,
        encoded_bytes: None,
        extents: None,
        memory_backed: false,
        served_by: None,
        overwritten: None,
        direct_supported: None,
        direct_alignment_bytes: None,
        cache_visible: false,
        stripe: None,
    }
}

/// Alignment that direct requests need; 0: none needed, `None`: unknown.
fn direct_alignment_bytes(file: BorrowedFd<'_>, status: &Status) -> Option<u64> {
    let direct = match super::reopen(file, OFlags::RDONLY | OFlags::DIRECT) {
        Ok(direct) => direct,
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Some(0),
        Err(_) => return None,
    };
    // A file system may accept the flag and then go through the cache all the same (ext4 with data=journal): statx
    // says so with 0.
    status.direct_alignment_bytes.or_else(|| probe_alignment(direct.as_fd()))
}

/// Reads one aligned block at an offset that is aligned no better, with each alignment in turn. Where none will do the
/// file system takes the flag and then serves no read (minix): 0.
fn probe_alignment(direct: BorrowedFd<'_>) -> Option<u64> {
    let largest = PROBED_ALIGNMENTS[PROBED_ALIGNMENTS.len() - 1];
    let mut memory = vec![0u8; 4 * largest];
    let start = memory.as_ptr().align_offset(2 * largest).min(2 * largest);
    for bytes in PROBED_ALIGNMENTS {
        let block = memory.get_mut(start + bytes..start + 2 * bytes)?;
        match rustix::io::pread(direct, block, bytes as u64) {
            Ok(_) => return Some(bytes as u64),
            Err(Errno::INVAL) => {}
            Err(_) => return None,
        }
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts_of(file: &std::fs::File) -> TargetFacts {
        let status = Status::from_fd(file.as_fd()).unwrap();
        facts(TargetKind::File, "t".into(), file.as_fd(), &status, status.size_bytes)
    }

    #[test]
    fn a_sparse_file_is_all_hole_and_a_written_one_has_none() {
        let sparse = tempfile::tempfile().unwrap();
        sparse.set_len(1 << 20).unwrap();
        assert_eq!(facts_of(&sparse).hole_bytes, Some(1 << 20));

        let full = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(full.path(), vec![1; 1 << 20]).unwrap();
        full.as_file().sync_all().unwrap();
        let facts = facts_of(full.as_file());
        assert_eq!(facts.hole_bytes, Some(0));
        assert!(facts.cache_visible, "our own file");
    }

    #[test]
    fn the_probed_alignment_is_accepted_and_no_coarser_than_what_statx_says() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1; 1 << 20]).unwrap();
        let Ok(direct) = crate::target::reopen(file.as_fd(), OFlags::RDONLY | OFlags::DIRECT) else {
            eprintln!("skipped: no O_DIRECT in the temporary directory");
            return;
        };
        let probed = probe_alignment(direct.as_fd()).unwrap();
        assert!(probed.is_power_of_two() && probed >= 512);
        match Status::from_fd(file.as_fd()).unwrap().direct_alignment_bytes {
            Some(told) if told > 0 => assert!(probed <= told.max(512), "probed {probed}, told {told}"),
            _ => eprintln!("skipped: statx does not tell the alignment here"),
        }
    }
}
