//! Which costs the measured rungs and sizes can tell apart, and a note for each one that they cannot.

use std::collections::BTreeSet;

use crate::ladder::{Rung, RungRun};
use crate::per_request::mean_pages;
use crate::rows::Term;

/// Which terms the measured rungs and sizes can tell apart. Notes what cannot be.
pub(super) fn identified(runs: &[&RungRun<'_>], page_bytes: u64, notes: &mut Vec<String>) -> Vec<Term> {
    use Term::*;
    let sizes = |rungs: &[Rung]| -> BTreeSet<u64> {
        runs.iter().filter(|r| rungs.contains(&r.rung)).map(|r| r.run.workload.block_bytes).collect()
    };
    let has = |rung| runs.iter().any(|r| r.rung == rung);
    // Pages and bytes are proportional for every size: nothing tells the two costs apart.
    let proportional = |s: &BTreeSet<u64>| {
        s.iter().all(|&b| (mean_pages(b, page_bytes) * page_bytes as f64 - b as f64).abs() < 0.5)
    };
    let mut note = |text: &str| notes.push(text.to_owned());
    let mut terms = Vec::new();

    if has(Rung::Syscall) {
        terms.push(Call);
    } else {
        note("no bare system call was measured: `call` is booked under the next layer above the gap");
    }
    if has(Rung::NullDevice) || sizes(&[Rung::ZeroDevice]).len() > 1 {
        terms.push(Vfs);
    } else {
        note("no /dev/null rung: the VFS is not separated from `cache` and `block`");
    }
    if has(Rung::ZeroDevice) {
        terms.push(Zero);
    }

    let cached = sizes(&[Rung::Memory, Rung::CachedFile]);
    if !cached.is_empty() {
        terms.push(CacheCall);
        if cached.len() > 1 {
            terms.push(Copy);
        } else {
            note("one cached block size: `copy` is not separated from `cache`");
        }
        if cached.len() > 2 && !proportional(&cached) {
            terms.push(CachePage);
        } else if cached.len() > 1 && has(Rung::Copy) {
            terms.push(CachePage);
            note("no cached size below the page: `copy` is taken from a copy in user memory");
        } else if cached.len() > 1 {
            note("no cached size below the page: the cache's cost per page is booked under `copy`");
        }
    }
    match (has(Rung::Memory), has(Rung::CachedFile)) {
        (true, true) => {
            terms.push(FileCall);
            if sizes(&[Rung::CachedFile]).intersection(&sizes(&[Rung::Memory])).count() > 1 {
                terms.push(FilePage);
            }
        }
        (false, true) => note("no memory-file rung: the file system's own cost is booked under `cache`"),
        _ => {}
    }

    let mapped = sizes(&[Rung::MappedFile]);
    if !mapped.is_empty() {
        terms.push(MapPage);
        if mapped.len() > 1 {
            terms.push(MapCall);
        }
        if mapped.len() > 2 && !proportional(&mapped) {
            terms.push(MapByte);
        }
    }

    let direct = sizes(&[Rung::DirectFile, Rung::RawDevice]);
    if direct.is_empty() {
        note("no direct rung: `block` and `device` are not in the model");
    } else {
        terms.extend([BlockCall, DeviceCall]);
        if direct.len() > 1 {
            terms.extend([BlockPage, DeviceByte]);
        } else {
            note(
                "one direct block size: costs per page and byte of `block` and `device` are booked per call",
            );
        }
        if direct.len() > 2 && !proportional(&direct) {
            terms.push(BlockByte);
        } else if direct.len() > 1 {
            note("no direct size below the page: the block layer's cost per byte is booked per page");
        }
    }
    terms
}
