//! Bytes and calls: from the kernel's counters to the record's, and what part came from the cache.

use std::collections::BTreeMap;

use iowhy_core::profile::Profile;
use iowhy_core::units;
use iowhy_diagnose::findings::{Side, counted_with_their_file};

use super::{FileKind, IoRecord, KindRecord, RingRecord};

/// The record's block of counters.
pub(super) fn io(profile: &Profile) -> IoRecord {
    let io = &profile.io;
    let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    IoRecord {
        calls: sum(io.read_calls, io.write_calls),
        bytes: sum(io.read_bytes, io.written_bytes),
        device_bytes: sum(io.device_read_bytes, reached_devices(profile)),
        read_calls: io.read_calls,
        write_calls: io.write_calls,
        read_bytes: io.read_bytes,
        written_bytes: io.written_bytes,
        device_read_bytes: io.device_read_bytes,
        device_written_bytes: io.device_written_bytes,
        by_kind: by_kind(profile),
        rings: rings(profile),
        cache_hit_share: cache_hit_share(profile),
        major_faults: io.major_faults,
        files: profile.files.clone(),
    }
}

/// Requests through io_uring.
fn rings(profile: &Profile) -> Vec<RingRecord> {
    let requests = profile.rings.iter().flat_map(|rings| &rings.requests);
    requests
        .map(|r| RingRecord {
            operation: r.operation.clone(),
            requests: r.requests,
            mean_s: (r.done > 0).then(|| r.time_ns as f64 / r.done as f64 / 1e9),
            bytes: (r.bytes > 0).then_some(r.bytes),
        })
        .collect()
}

/// Calls by kind of file, where every call was counted with its file.
pub(super) fn by_kind(profile: &Profile) -> Vec<KindRecord> {
    if !counted_by_file(profile) {
        return Vec::new();
    }
    let mut kinds: BTreeMap<FileKind, KindRecord> = BTreeMap::new();
    for of in &profile.kinds {
        let kind = kind(&of.kind);
        let none = KindRecord { kind, read_calls: 0, read_bytes: 0, write_calls: 0, written_bytes: 0 };
        let sum = kinds.entry(kind).or_insert(none);
        sum.read_calls += of.read_calls;
        sum.read_bytes += of.read_bytes;
        sum.write_calls += of.write_calls;
        sum.written_bytes += of.written_bytes;
    }
    kinds.into_values().collect()
}

fn kind(of: &str) -> FileKind {
    match of {
        "regular" | "directory" | "block-device" => FileKind::Files,
        "socket" => FileKind::Sockets,
        "pipe" => FileKind::Pipes,
        "character-device" => FileKind::CharacterDevices,
        _ => FileKind::Others,
    }
}

/// Whether the calls on the files are all calls of the read and write families.
fn counted_by_file(profile: &Profile) -> bool {
    [Side::Read, Side::Write].into_iter().all(|side| counted_with_their_file(profile, side))
}

/// Bytes that were made dirty, but not more than the devices wrote for anybody: what is made dirty again and again is
/// counted by the kernel each time, whole folios of it.
fn reached_devices(profile: &Profile) -> Option<u64> {
    let dirtied = profile.io.device_written_bytes?;
    if profile.devices.is_empty() {
        return Some(dirtied);
    }
    Some(dirtied.min(units::total(profile.devices.iter().map(|d| d.written_bytes))))
}

/// Part of the bytes read from regular files that no device had to deliver. Known where nothing was fetched, and where
/// every call was seen, so that the bytes from pipes and sockets can be told from those from files. Not where files
/// are mapped: their bytes are fetched, but never read by a call.
pub(super) fn cache_hit_share(profile: &Profile) -> Option<f64> {
    let read = profile.io.read_bytes.filter(|bytes| *bytes > 0)?;
    let fetched = profile.io.device_read_bytes?;
    let regular = |kind: &str| kind == "regular" || kind == "block-device";
    let complete = profile.calls.as_ref().is_some_and(|calls| calls.complete);
    let from_files =
        units::total(profile.files.iter().filter(|file| regular(&file.kind)).map(|file| file.reads.bytes));
    if from_files == 0 {
        // No file was seen to be read: what was read may have come from pipes and sockets.
        return None;
    }
    if fetched == 0 {
        return Some(1.0);
    }
    if !complete || profile.files.iter().any(|file| file.mapped) {
        return None;
    }
    Some((1.0 - fetched as f64 / from_files.min(read) as f64).max(0.0))
}
