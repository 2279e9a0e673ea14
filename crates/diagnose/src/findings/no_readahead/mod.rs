//! The rule `no-readahead`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::Side;
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule { id: FindingId::NoReadahead, manual: include_str!("page.md"), judge };

/// What read-ahead asks of the device in one request when it works: 128 KiB, the kernel's default window.
const WINDOW_BYTES: f64 = 131_072.0;
/// A larger window is sent in parts of about this many bytes.
const LARGEST_REQUEST: f64 = 524_288.0;
/// Requests at the device of more than this were read ahead.
const SMALL_BYTES: f64 = 32_768.0;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let backward = facts.backward_reads().filter(|s| s.likely >= MOSTLY);
    let sequential = backward.or_else(|| facts.sequential_reads().filter(|s| s.likely >= MOSTLY))?;
    let mean = facts.device_read_bytes_mean().filter(|b| *b <= SMALL_BYTES)?;
    // That read-ahead asked for the requests is no sign that it works: with a hint against it the kernel sends each page
    // by the same way, one at a time. Their size tells.
    let fetched = facts.profile.io.device_read_bytes.unwrap_or(0) as f64;
    // Not even page-sized steps: many small files, each read from its start. Mapped files are read by faults alone, so
    // what the device gave counts where it is more.
    let per_open = facts
        .scaled_calls(&["open", "openat"])
        .map(|opens| facts.bytes(Side::Read).unwrap_or(0.0).max(fetched) / opens.likely.max(1.0));
    if facts.direct_share(Side::Read) >= MOSTLY || per_open.is_some_and(|bytes| bytes < WINDOW_BYTES) {
        return None;
    }
    let waiting = |e: &Entry| {
        e.class.wait == Some(Wait::DeviceRead)
            && matches!(e.class.operation, Operation::Read | Operation::Fault)
    };
    let sum = facts.account.sum(waiting);
    // With each request of the device that is spared go its waits and the CPU time of its way there and back. What is
    // left of the waits goes on while the program works, when read-ahead is a window in front.
    let transfers = |e: &Entry| {
        waiting(e)
            || (e.busy
                && matches!(e.class.operation, Operation::Read | Operation::Fault)
                && matches!(e.class.layer, Layer::Block | Layer::Device))
    };
    // Pages come into the cache many at a time.
    let inserting = |e: &Entry| {
        e.busy
            && matches!(e.class.operation, Operation::Read | Operation::Fault)
            && matches!(e.class.layer, Layer::Cache | Layer::Filesystem | Layer::Memory)
    };
    let device = facts.device();
    let window = device.and_then(|d| d.read_ahead_bytes);
    let larger = facts.saved_by_larger(mean, WINDOW_BYTES);
    // The window in force, where it is open: it is what a hint keeps closed.
    let windowed = facts.saved_by_larger(mean, (window.unwrap_or(0) as f64).clamp(mean, LARGEST_REQUEST));
    let in_order = Range::new(sequential.low, sequential.likely, 1.0);
    let savings = facts
        .saved_without(|e| f64::from(transfers(e)))
        .part(Range::new(larger.low, larger.likely.max(windowed.likely), 0.999))
        .and(facts.saved_without(|e| f64::from(inserting(e))).part(Range::new(0.0, 0.5, 0.9)))
        .part(in_order);
    let mapped = facts.waiting(Operation::Fault, Wait::DeviceRead).wall_ns > 0.5 * sum.wall_ns;
    let mut evidence = vec![
        match backward {
            Some(_) => format!("{} of the reads end where the one before began", say::share(sequential)),
            None => format!("{} of the reads follow each other", say::share(sequential)),
        },
        format!(
            "yet the device's read requests are {} on average, and waiting for them takes {} of the wall time",
            say::bytes(mean),
            say::percent(facts.wall_share(sum.wall_ns))
        ),
    ];
    evidence.extend(device.zip(window).map(|(d, w)| match w {
        0 => format!("read-ahead is switched off on {} (window 0)", d.name),
        w => format!("the read-ahead window of {} is {}", d.name, say::bytes(w as f64)),
    }));
    let advice = match (device, window) {
        _ if backward.is_some() => {
            "Read from front to end, or ask for what comes next yourself: pieces of 128 KiB or more, or \
                                    posix_fadvise(POSIX_FADV_WILLNEED) for the piece before."
                .to_owned()
        }
        (Some(d), Some(w)) if (w as f64) < SMALL_BYTES => format!(
            "Give the device its window back: `echo 128 > /sys/block/{}/queue/read_ahead_kb` (or `blockdev --setra 256`).",
            d.name
        ),
        _ if mapped => {
            "Take MADV_RANDOM away, or say madvise(MADV_SEQUENTIAL) or MADV_POPULATE_READ before the pass."
                .into()
        }
        _ => "Do not open with POSIX_FADV_RANDOM for a sequential pass: say posix_fadvise(fd, 0, 0, \
              POSIX_FADV_SEQUENTIAL), or read 128 KiB or more at a time."
            .to_owned(),
    };
    Draft {
        id: FindingId::NoReadahead,
        cost_ns: sum.wall_ns,
        savings: Some(savings),
        sentence: format!(
            "{} reads are not read ahead: the device is asked for {} at a time, and {} of the time is waiting",
            if backward.is_some() { "Backward" } else { "Sequential" },
            say::bytes(mean),
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice,
    }
    .finding(facts)
}

#[cfg(test)]
mod tests {
    use iowhy_core::finding::FindingId;
    use iowhy_core::layer::Layer;
    use iowhy_core::profile::{Step, StepKind, Stretch};

    use super::*;
    use crate::findings::synthetic::{Run, access, slow_and_repaired};

    /// A sequential pass over 400 MiB by requests of so many bytes at the device.
    fn pass(request: u64, wait: f64, ahead: u64, window: u64) -> Run {
        let bytes = 409_600_000;
        Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, wait)
            .busy(Operation::User, Layer::Program, 1.0 - wait)
            .io((bytes / 4096, bytes), (0, 0))
            .device_read(bytes)
            .file(bytes, |f| f.reads = access(1000, 4_096_000, 1000))
            .block(bytes / request, bytes, bytes / request, ahead)
            .device(wait, 1.0, |d| {
                (d.reads, d.read_bytes, d.read_ahead_bytes) = (bytes / request, bytes, Some(window));
            })
    }

    #[test]
    fn a_pass_without_a_window_is_named_and_with_one_not() {
        let repaired = pass(131_072, 0.1, 400_000_000, 131_072);
        let found = slow_and_repaired(FindingId::NoReadahead, &pass(4096, 0.8, 0, 0), &repaired);
        assert!(found.advice.contains("read_ahead_kb"));
        // By hand: 1/32 of the requests, each 1.3 times as long, 1000 of 1000 in order.
        let saved = 8.0 * (1.0 - 1.3 / 32.0);
        assert!((found.gain.unwrap().predicted - 10.0 / (10.0 - saved)).abs() < 0.01, "{:?}", found.gain);
    }

    /// Reads in the order in which a burst saw them: places and how many follow each by the same stride.
    fn in_this_order(run: Run, runs: &[(u64, i64, u32)]) -> Run {
        let steps = runs.iter().map(|&(place, stride, count)| Step {
            kind: StepKind::Read,
            file: Some(0),
            place: Some(place),
            bytes: 4096,
            count,
            stride,
            ..Step::default()
        });
        let stretch = Stretch { length_ns: 1_000_000, steps: steps.collect() };
        run.with(|p| {
            p.pattern.stretches = vec![stretch];
            p.files[0].reads = access(1000, 4_096_000, 0);
            if let Some(block) = &mut p.block {
                block.own_reads_adjacent = 0;
            }
        })
    }

    #[test]
    fn reads_from_the_end_to_the_front_are_named_and_random_ones_are_not() {
        let back = in_this_order(pass(4096, 0.8, 0, 131_072), &[(1 << 27, -4096, 1000)]);
        let found = back.findings();
        let found = found.iter().find(|f| f.id == FindingId::NoReadahead).expect("it is named");
        assert!(found.sentence.starts_with("Backward reads") && found.advice.contains("front to end"));
        // Pairs of reads at random places: each second pair goes back.
        let pairs: Vec<_> = (0..500u64)
            .map(|i| (i * 7919 * 4096 % (1 << 27), if i % 2 == 0 { -9_000_000 } else { 5_000_000 }, 2))
            .collect();
        let random = in_this_order(pass(4096, 0.8, 0, 131_072), &pairs);
        assert!(!random.ids().contains(&FindingId::NoReadahead), "{:?}", random.ids());
    }

    #[test]
    fn a_hint_against_read_ahead_is_what_remains_where_the_window_is_open() {
        let run = pass(4096, 0.8, 0, 131_072);
        assert_eq!(run.ids(), [FindingId::NoReadahead]);
        assert!(run.findings()[0].advice.contains("POSIX_FADV_RANDOM"));
    }
}
