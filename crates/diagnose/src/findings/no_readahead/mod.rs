//! The rule `no-readahead`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::profile::DeviceUse;

use super::facts::Side;
use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::NoReadahead,
    claim: "sequential reads without read-ahead",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { choices: repair::CHOICES, ..Repairs::one(repair::repaired) },
};

/// What read-ahead asks of the device in one request when it works: 128 KiB, the kernel's default window.
const WINDOW_BYTES: f64 = 131_072.0;
/// Requests at the device of more than this were read ahead.
const SMALL_BYTES: f64 = 32_768.0;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let backward = facts.backward_reads().filter(|s| s.value >= MOSTLY);
    let sequential = backward.or_else(|| facts.sequential_reads().filter(|s| s.value >= MOSTLY))?;
    let mean = facts.device_read_bytes_mean().filter(|b| *b <= SMALL_BYTES)?;
    // That read-ahead asked for the requests is no sign that it works: with a hint against it the kernel sends each page
    // by the same way, one at a time. Their size tells.
    let fetched = facts.profile.io.device_read_bytes.unwrap_or(0) as f64;
    // Not even page-sized steps: many small files, each read from its start. Mapped files are read by faults alone, so
    // what the device gave counts where it is more.
    let per_open = facts
        .counted_calls(&["open", "openat"])
        .map(|opens| facts.bytes(Side::Read).unwrap_or(0.0).max(fetched) / opens.max(1.0));
    if facts.direct_share(Side::Read) >= MOSTLY || per_open.is_some_and(|bytes| bytes < WINDOW_BYTES) {
        return None;
    }
    let waiting = |e: &Entry| {
        e.class.wait == Some(Wait::DeviceRead)
            && matches!(e.class.operation, Operation::Read | Operation::Fault)
    };
    let sum = facts.account.sum(waiting);
    // Pages from swap are of no file, and their order is not that of reads.
    if facts.short_memory().swap_waiting.wall_ns >= MOSTLY * sum.wall_ns {
        return None;
    }
    // With each request of the device that is spared go its waits and the CPU time of its way there and back. What is
    // left of the waits goes on while the program works, when read-ahead is a window in front.
    let reads = |e: &Entry| matches!(e.class.operation, Operation::Read | Operation::Fault);
    let transfers = |e: &Entry| {
        waiting(e) || (e.busy && reads(e) && matches!(e.class.layer, Layer::Block | Layer::Device))
    };
    // Pages come into the cache many at a time; only bytes that come from the device are put there. Mapped files are in no count of
    // bytes read.
    let inserting = |e: &Entry| {
        e.busy && reads(e) && matches!(e.class.layer, Layer::Cache | Layer::Filesystem | Layer::Memory)
    };
    let missed = fetched / facts.bytes(Side::Read).unwrap_or(0.0).max(fetched).max(1.0);
    let goes = |e: &Entry| f64::from(transfers(e)).max(missed * f64::from(inserting(e)));
    let removable = facts.removable(goes);
    let device = facts.device();
    let window = device.and_then(|d| d.read_ahead_bytes);
    let mapped = facts.waiting(Operation::Fault, Wait::DeviceRead).wall_ns > 0.5 * sum.wall_ns;
    let mut evidence = vec![
        match backward {
            Some(_) => format!("{} of the reads end where the previous one began", say::share(sequential)),
            None => format!("{} of the reads are sequential", say::share(sequential)),
        },
        format!(
            "but the mean read request at the device is {}, and waiting takes {} of wall time",
            say::bytes(mean),
            say::percent(facts.wall_share(sum.wall_ns))
        ),
    ];
    evidence.extend(device.zip(window).map(|(d, w)| match w {
        0 => format!("read-ahead is switched off on {} (window 0)", d.name),
        w => format!("the read-ahead window of {} is {}", d.name, say::bytes(w as f64)),
    }));
    Draft {
        id: FindingId::NoReadahead,
        cost_ns: facts.wall_ns_of(goes),
        removable: Some(removable),
        sentence: format!(
            "{} reads without read-ahead: {} per device request, {} of wall time is waiting",
            if backward.is_some() { "Backward" } else { "Sequential" },
            say::bytes(mean),
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice: advice(device, backward.is_some(), mapped),
    }
    .finding(facts)
}

fn advice(device: Option<&DeviceUse>, backward: bool, mapped: bool) -> String {
    let window = device.and_then(|d| d.read_ahead_bytes);
    match (device, window) {
        _ if backward => "Read from start to end, or prefetch: pieces of 128 KiB or more, or \
                                    posix_fadvise(POSIX_FADV_WILLNEED) for the piece before."
            .to_owned(),
        (Some(d), Some(w)) if (w as f64) < SMALL_BYTES => format!(
            "Restore the read-ahead window: `echo 128 > /sys/block/{}/queue/read_ahead_kb` (or `blockdev --setra \
             256`).",
            d.name
        ),
        _ if mapped => {
            "Remove MADV_RANDOM, or call madvise(MADV_SEQUENTIAL) or MADV_POPULATE_READ before the pass."
                .into()
        }
        _ => "Do not open with POSIX_FADV_RANDOM for a sequential pass: call posix_fadvise(fd, 0, 0, \
              POSIX_FADV_SEQUENTIAL), or read 128 KiB or more at a time."
            .to_owned(),
    }
}
