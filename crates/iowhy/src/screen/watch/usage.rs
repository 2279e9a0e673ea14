//! Bytes and calls of the program, activity of the devices, waits off the I/O path.

use iowhy_core::profile::{DeviceUse, OverLimit};
use iowhy_core::units;

use iowhy_view::document::Part;

use super::{percent_of, plural, seconds, visible};
use crate::record::watch::{ColdRecord, FileKind, KindRecord, RingRecord, WatchRecord};
use crate::screen::figures::bytes;

/// Devices that are shown.
const MAX_DEVICES: usize = 3;
/// Operations of rings that are shown.
const MAX_RING_OPERATIONS: usize = 4;
/// Waits off the path that are shown.
const MAX_WAITS: usize = 3;
/// Stolen time below this share of the wall time is not shown.
const STOLEN_MATTERS: f64 = 0.01;
/// A wait off the path below this share of the wall time is not shown.
const WAIT_MATTERS: f64 = 0.02;
/// Idle time below this share of the wall time is not shown.
const IDLE_MATTERS: f64 = 0.05;
/// From here on bytes are shown however little time they took.
const MANY_BYTES: u64 = 1 << 20;
/// The same for calls.
const MANY_CALLS: u64 = 100;

/// The block, empty when nothing moved.
pub(super) fn parts(record: &WatchRecord) -> Vec<Part> {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut line = |label: &str, facts: String| {
        if !facts.is_empty() {
            lines.push((label.to_owned(), facts));
        }
    };
    let io = &record.io;
    let cache = match (io.cache_hit_share, io.device_read_bytes, io.read_bytes) {
        (_, Some(0), Some(read)) if read > 0 => "; none of it from a device".to_owned(),
        (Some(share), Some(fetched), _) => {
            format!("; {} from a device, {} from the page cache", bytes(fetched), percent_of(share))
        }
        (None, Some(fetched), Some(read)) if fetched > read.saturating_add(read / 10) => {
            let other = other_methods(record);
            if other.is_empty() {
                format!("; {} from a device, including read-ahead", bytes(fetched))
            } else {
                // The kernel counts the bytes of calls only.
                format!("; {} from a device, also through {}", bytes(fetched), other.join(" and "))
            }
        }
        (None, Some(fetched), Some(_)) => format!("; {} from a device", bytes(fetched)),
        _ => String::new(),
    };
    let matters = |moved: Option<u64>, calls: Option<u64>, operation: &str| {
        moved.is_some_and(|bytes| bytes >= MANY_BYTES)
            || calls.is_some_and(|n| n >= MANY_CALLS)
            || record.operations.iter().any(|o| o.id == operation && visible(o.share))
    };
    let reads = by_kind(record, |kind| (kind.read_bytes, kind.read_calls));
    let writes = by_kind(record, |kind| (kind.written_bytes, kind.write_calls));
    let reads = reads.or_else(|| moved(io.read_bytes, io.read_calls));
    let writes = writes.or_else(|| moved(io.written_bytes, io.write_calls));
    if matters(io.read_bytes, io.read_calls, "read") || io.device_read_bytes.is_some_and(|n| n >= MANY_BYTES)
    {
        line("read", reads.map(|m| m + &cache).unwrap_or_default());
    }
    if matters(io.written_bytes, io.write_calls, "write") {
        line("written", writes.unwrap_or_default());
    }
    line("io_uring", rings(record));
    let faults = io.major_faults.filter(|n| *n > 0);
    line(
        "faults",
        faults
            .map(|n| plural(n, "page fault read from a device", "page faults read from a device"))
            .unwrap_or_default(),
    );
    // Activity for other processes only does not concern this program.
    if io.device_bytes.is_none_or(|bytes| bytes > 0) {
        for device in
            record.devices.iter().filter(|d| (d.reads, d.writes, d.flushes) != (0, 0, 0)).take(MAX_DEVICES)
        {
            line(&device.name, device_facts(device, record.wall_s));
        }
    }
    line("cold", record.cold.as_ref().map(cold).unwrap_or_default());
    line("idle", idle(record));
    line("stolen", stolen(record));
    if !lines.is_empty() {
        return vec![Part::Facts(lines)];
    }
    vec![Part::Note(match io.bytes {
        Some(0) => "no bytes were read or written".to_owned(),
        Some(few) => format!("{} read and written in total", bytes(few)),
        None => "bytes read and written: unknown".to_owned(),
    })]
}

/// Requests through io_uring: `300 read, 1.2 MiB in all, 130 us each; 300 recv; 300 timeout`.
fn rings(record: &WatchRecord) -> String {
    let of = |ring: &RingRecord| {
        let each = ring.mean_s.map(|s| format!(", {} each", seconds(s))).unwrap_or_default();
        let moved = ring.bytes.map(|n| format!(", {} in all", bytes(n))).unwrap_or_default();
        format!("{} {}{moved}{each}", units::count(ring.requests), ring.operation)
    };
    record.io.rings.iter().take(MAX_RING_OPERATIONS).map(of).collect::<Vec<_>>().join("; ")
}

/// What a second run would take.
fn cold(run: &ColdRecord) -> String {
    let mut came = format!("{} came from a device", bytes(run.device_bytes));
    if run.metadata_bytes > run.device_bytes / 10 {
        came.push_str(&format!(", {} of it inodes and directories", bytes(run.metadata_bytes)));
    }
    match run.memory_bytes.filter(|memory| *memory < run.device_bytes) {
        Some(memory) => {
            let room = bytes(memory);
            format!(
                "{came}, more than the page cache has room for ({room}): a second run cannot find all of it there"
            )
        }
        None => {
            let takes = match run.warm_low_s {
                Some(least) => format!("{} to {}", seconds(least), seconds(run.warm_high_s)),
                None => format!("at most {}", seconds(run.warm_high_s)),
            };
            format!("{came}; a run that finds them in the page cache takes {takes} (inferred)")
        }
    }
}

/// Idle time, and what the program slept for meanwhile.
fn idle(record: &WatchRecord) -> String {
    let part = |seconds: f64| if record.wall_s > 0.0 { seconds / record.wall_s } else { 0.0 };
    if part(record.idle_s) < IDLE_MATTERS {
        return String::new();
    }
    let asleep: Vec<String> = record
        .waits
        .iter()
        .filter(|wait| !wait.on_path && part(wait.wall_s) >= WAIT_MATTERS)
        .take(MAX_WAITS)
        .map(|wait| format!("{} {}", wait.words, percent_of(part(wait.wall_s))))
        .collect();
    let idle = format!("{} of wall time", percent_of(part(record.idle_s)));
    if asleep.is_empty() { idle } else { format!("{idle}, waiting for {}", asleep.join(", ")) }
}

/// CPU time that the hypervisor took, where it matters.
fn stolen(record: &WatchRecord) -> String {
    let Some(stolen_s) = record.stolen_s.filter(|s| *s > 0.0 && *s >= STOLEN_MATTERS * record.wall_s) else {
        return String::new();
    };
    let cpus = record.environment.cpus.max(1) as f64;
    let share = (stolen_s / (record.wall_s * cpus).max(1e-9)).min(1.0);
    format!(
        "{} of CPU time taken by the hypervisor: {} of the time of all CPUs of the machine",
        seconds(stolen_s),
        percent_of(share)
    )
}

/// Bytes and calls by kind of file: `files 11 KiB in 2,000 calls, 5 B each; sockets 292 KiB in 22,000 calls`.
/// `None`: calls were not all counted with their file, or nothing moved.
fn by_kind(record: &WatchRecord, of: impl Fn(&KindRecord) -> (u64, u64)) -> Option<String> {
    let mut parts = Vec::new();
    for kind in &record.io.by_kind {
        let (moved, calls) = of(kind);
        if calls == 0 || (moved == 0 && calls < MANY_CALLS) {
            continue;
        }
        let what = match kind.kind {
            FileKind::Files => "files",
            FileKind::Sockets => "sockets",
            FileKind::Pipes => "pipes",
            FileKind::CharacterDevices => "terminals and devices",
            FileKind::Others => "others",
        };
        let calls_words = plural(calls, "call", "calls");
        let each = if kind.kind == FileKind::Files && moved > 0 {
            format!(", {} each", bytes(moved / calls))
        } else {
            String::new()
        };
        parts.push(format!("{what} {} in {calls_words}{each}", bytes(moved)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Access methods beside the read family, where they take visible time.
fn other_methods(record: &WatchRecord) -> Vec<&'static str> {
    [("ring", "io_uring"), ("aio", "libaio"), ("fault", "mapped files")]
        .into_iter()
        .filter(|(id, _)| record.operations.iter().any(|o| o.id == *id && visible(o.share)))
        .map(|(_, words)| words)
        .collect()
}

/// `12 MiB in 3,000 calls of 4 KiB (mean)`; nothing when nothing moved.
fn moved(moved: Option<u64>, calls: Option<u64>) -> Option<String> {
    let (moved, calls) = (moved?, calls?);
    if calls == 0 || (moved == 0 && calls < 100) {
        return None;
    }
    let mean = if moved == 0 { String::new() } else { format!(", {} each", bytes(moved / calls)) };
    Some(format!("{} in {}{mean}", bytes(moved), plural(calls, "call", "calls")))
}

/// Activity of a device, requests of all processes included.
fn device_facts(device: &DeviceUse, wall_s: f64) -> String {
    let mut facts = Vec::new();
    if device.busy_ns > 0 && wall_s > 0.0 {
        facts.push(format!("busy {}", percent_of((device.busy_ns as f64 / 1e9 / wall_s).min(1.0))));
    }
    let mut requests = |n: u64, moved: u64, time_ns: u64, verb: &str| {
        if n > 0 {
            let each = if time_ns > 0 {
                format!(" of {}", units::time(time_ns as f64 / n as f64))
            } else {
                String::new()
            };
            facts.push(format!("{verb} {} in {}{each}", bytes(moved), plural(n, "request", "requests")));
        }
    };
    requests(device.reads, device.read_bytes, device.read_ns, "read");
    requests(device.writes, device.written_bytes, device.write_ns, "wrote");
    if device.flushes > 0 {
        facts.push(plural(device.flushes, "flush", "flushes"));
    }
    if let Some((limit, ns)) = device.over_limit.and_then(OverLimit::longest) {
        facts.push(format!("over {limit} for {}", units::time(ns as f64)));
    }
    if let Some(throttle) = &device.throttle {
        facts.push(format!("limit {throttle}"));
    }
    format!("all processes: {}", facts.join(", "))
}
