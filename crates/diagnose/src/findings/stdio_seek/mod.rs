//! The rule `stdio-seek`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::SampledShare;

use super::facts::{PAGE_BYTES, Side, Tally, share_of};
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, loops, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule { id: FindingId::StdioSeek, manual: include_str!("page.md"), judge };

/// A seek before this share of the reads.
const MOSTLY: f64 = 0.5;
/// Reads that fetch again what was fetched, from this share on.
const REPEATED: f64 = 0.2;
/// Mean sizes of two kinds of requests that differ so many times tell how many there are of each.
const APART: f64 = 4.0;
/// Buffers of I/O libraries: 4 KiB (C), 8 KiB (Java, Rust, Python), up to 128 KiB (newer Python).
const LARGEST_BUFFER: f64 = 131_072.0;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let (tally, part) = sought(facts);
    let after_seek = share_of(tally.after_seek).filter(|s| s.likely >= MOSTLY)?;
    let mean = (tally.calls > 0).then(|| tally.bytes as f64 / tally.calls as f64)?;
    // A library reads its whole buffer. Reads at the end of a file are shorter, so the mean is a little less.
    let whole_buffer = (0.9 * PAGE_BYTES..=1.05 * LARGEST_BUFFER).contains(&mean);
    let in_bursts = 1.0 - tally.distinct_bytes as f64 / (tally.bytes as f64).max(1.0);
    let seen = share_of(tally.repeated)?;
    // A burst is too short to meet the same bytes of a large file twice. The run cannot have read more distinct bytes of a
    // file than it holds.
    let in_all = facts.reads_beyond_sizes();
    let by_bytes = in_bursts.max(in_all);
    let repeated = Range::new(seen.low.max(in_all), seen.likely.max(in_all), seen.high.max(in_all));
    if !whole_buffer || repeated.likely < REPEATED || by_bytes < REPEATED {
        return None;
    }
    let reading = |e: &Entry| e.wall_ns > 0.0 && e.class.operation == Operation::Read;
    let seeking = |e: &Entry| e.wall_ns > 0.0 && e.class.operation == Operation::Descriptor;
    let (reads, seeks) = (facts.account.sum(reading), facts.account.sum(seeking));
    // A seek within the buffer needs no call. Reads whose bytes were there already are spared; of the others a read of
    // the record alone spares most of the copy.
    let savings = facts
        .saved_without(|e| f64::from(reading(e)))
        .part(Range::new(0.5 * repeated.low, by_bytes.max(repeated.likely), 0.999))
        .part(after_seek)
        .part(Range::exact(part))
        .and(facts.saved_without(|e| f64::from(seeking(e))).part(Range::new(0.5, 0.95, 1.0)));
    let calls = facts.all_calls().map_or(0.0, |c| c.likely);
    let spared = Range::new(0.5 * repeated.low, by_bytes.max(repeated.likely), 0.999);
    let savings = savings.and(loops::around(facts, calls, part * reads.time_ns + seeks.time_ns, spared));
    let mut evidence = vec![
        format!(
            "{} of the reads that were looked at (n = {}) came right after an lseek, {} on average",
            say::share(after_seek),
            tally.after_seek.n,
            say::bytes(mean)
        ),
        format!(
            "{} of them fetched bytes that had been fetched before in the same burst; {} were moved for {} of distinct \
             bytes in the bursts",
            say::share(seen),
            say::bytes(tally.bytes as f64),
            say::bytes(tally.distinct_bytes as f64)
        ),
        format!(
            "held against the sizes of the files, about {} of the bytes were read again in the course of the run",
            say::percent(in_all)
        ),
        format!(
            "reading takes {} of the wall time, seeking {}",
            say::percent(facts.wall_share(reads.wall_ns)),
            say::percent(facts.wall_share(seeks.wall_ns))
        ),
    ];
    if part < 1.0 {
        evidence.push(format!(
            "other files are read without seeks: by calls and bytes about {} of the reading is after a seek",
            say::percent(part)
        ));
    }
    Draft {
        id: FindingId::StdioSeek,
        cost_ns: part * reads.wall_ns + seeks.wall_ns,
        savings: Some(savings),
        sentence: format!(
            "Each seek throws the library's buffer away: {} of the reads fetch the same bytes again, {} at a time",
            say::percent(repeated.likely),
            say::bytes(mean)
        ),
        evidence,
        advice: "Seek within the buffer, or do without it: pread of just the record (C pread, Python os.pread, Java \
                 FileChannel.read(buffer, position)), Rust BufReader::seek_relative in place of seek, C setvbuf(f, \
                 NULL, _IONBF, 0) with whole records; or sort the accesses; or map the file when it is small."
            .into(),
    }
    .finding(facts)
}

/// What bursts saw of the reads of files that are read after seeks, and the part of all reading that these are: all of it
/// where most reads of the run are such. A program that does this in one part of its run and something else in another is
/// not seen equally long in both; the exact counters of calls and bytes tell how often it did each, where the sizes of the
/// requests differ.
fn sought(facts: &Facts<'_>) -> (Tally, f64) {
    let all = facts.tally(Side::Read);
    let mostly = |looked: SampledShare| share_of(looked).is_some_and(|s| s.likely >= MOSTLY);
    if mostly(all.after_seek) {
        return (all, 1.0);
    }
    let these = facts.tally_of(Side::Read, |access| mostly(access.after_seek));
    let others = facts.tally_of(Side::Read, |access| !mostly(access.after_seek));
    let mean = |t: &Tally| t.bytes as f64 / (t.calls as f64).max(1.0);
    let io = &facts.profile.io;
    let seen = these.calls as f64 / (all.calls as f64).max(1.0);
    let counted = io.read_calls.zip(io.read_bytes).map(|(calls, bytes)| (calls as f64, bytes as f64));
    let calls = match counted.filter(|_| mean(&these) > APART * mean(&others)) {
        Some((calls, bytes)) if calls > 0.0 => {
            let of_these = (bytes - calls * mean(&others)) / (mean(&these) - mean(&others));
            (of_these / calls).clamp(0.0, 1.0)
        }
        _ => seen,
    };
    let weight = |part: f64, tally: &Tally| part * (PAGE_BYTES + mean(tally));
    let (mine, rest) = (weight(calls, &these), weight(1.0 - calls, &others));
    (these, mine / (mine + rest).max(1.0))
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::findings::synthetic::{Run, access, looked, slow_and_repaired};

    fn records(read: f64, seek: f64, seeks: u64, distinct: u64) -> Run {
        Run::new(10.0)
            .busy(Operation::Read, Layer::Call, read / 2.0)
            .busy(Operation::Read, Layer::Copy, read / 2.0)
            .busy(Operation::Descriptor, Layer::Call, seek)
            .busy(Operation::User, Layer::Program, 1.0 - read - seek)
            .io((8_000_000, 8_000_000 * 4096), (0, 0))
            .file(1 << 36, |f| {
                f.reads = access(1000, 1000 * 4096, 50);
                f.reads.after_seek = looked(seeks, 1000);
                f.reads.repeated = looked(if distinct < 4_096_000 { 900 } else { 0 }, 1000);
                f.reads.distinct_bytes = distinct;
            })
    }

    #[test]
    fn a_buffer_thrown_away_is_named_and_reads_of_records_not() {
        let slow = records(0.6, 0.15, 990, 409_600);
        let found = slow_and_repaired(FindingId::StdioSeek, &slow, &records(0.03, 0.0, 0, 4_096_000));
        // By hand: 90 % of 99 % of the reading, and 95 % of the seeking.
        let saved = 0.6 * 0.9 * 0.99 + 0.15 * 0.95;
        assert!((found.gain.unwrap().predicted - 1.0 / (1.0 - saved)).abs() < 1e-6);
    }

    /// 1,000 of 5,000 reads after seeks through a buffer of 64 KiB, of which bursts saw few; then small files.
    #[test]
    fn one_part_of_a_run_is_named_by_its_own_reads_and_weighed_by_the_exact_counters() {
        let (large, small) = (65_536, 150);
        let run = Run::new(10.0)
            .busy(Operation::Read, Layer::Copy, 0.6)
            .busy(Operation::Descriptor, Layer::Call, 0.05)
            .busy(Operation::User, Layer::Program, 0.35)
            .io((5000, 1000 * large + 4000 * small), (0, 0))
            .file(1 << 20, |f| {
                f.reads = access(100, 100 * large, 5);
                f.reads.after_seek = looked(100, 100);
                f.reads.repeated = looked(90, 100);
                f.reads.distinct_bytes = 10 * large;
            })
            .file(1 << 30, |f| {
                f.reads = access(900, 900 * small, 50);
                f.reads.after_seek = looked(0, 900);
                f.reads.repeated = looked(0, 900);
            });
        let (tally, part) = run.facts(sought);
        assert_eq!((tally.calls, tally.bytes), (100, 100 * large));
        // By hand: 1,000 calls of 64 KiB and 4 KiB for the call each, against 4,000 of 150 bytes.
        let (mine, rest) = (1000.0 * (65_536.0 + 4096.0), 4000.0 * (150.0 + 4096.0));
        assert!((part - mine / (mine + rest)).abs() < 1e-9, "{part}");
        assert!(run.ids().contains(&FindingId::StdioSeek), "{:?}", run.ids());
    }

    #[test]
    fn seeks_to_new_places_are_random_access_and_no_waste() {
        assert!(!records(0.6, 0.15, 990, 4_096_000).ids().contains(&FindingId::StdioSeek));
    }
}
