//! The rule `stdio-seek`. Its page of the manual:
#![doc = include_str!("page.md")]

mod needless;
mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::SampledShare;

use super::facts::{PAGE_BYTES, Side, Tally, share_of};
use super::report::Draft;
use super::{Facts, Repairs, Rule, loops, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::StdioSeek,
    claim: "each seek discards the I/O library's buffer, or is a call for nothing",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::of_calls(repair::repaired),
};

/// A seek before this share of the reads.
const MOSTLY: f64 = 0.5;
/// Reads that fetch again what was fetched, from this share on.
const REPEATED: f64 = 0.2;
/// Mean sizes of two kinds of requests that differ so many times tell how many there are of each.
const APART: f64 = 4.0;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    buffers_discarded(facts).or_else(|| needless::judge(facts))
}

fn buffers_discarded(facts: &Facts<'_>) -> Option<Finding> {
    let (tally, part) = sought(facts);
    let after_seek = share_of(tally.after_seek).filter(|s| s.value >= MOSTLY)?;
    let mean = (tally.calls > 0).then(|| tally.bytes as f64 / tally.calls as f64)?;
    // A library asks for its whole buffer, also where the file ends before.
    let whole_buffer = tally.sized > 0 && tally.buffers as f64 >= MOSTLY * tally.sized as f64;
    let by_marks = 1.0 - tally.distinct_bytes as f64 / (tally.bytes as f64).max(1.0);
    let seen = share_of(tally.repeated)?;
    // The run cannot have read more distinct bytes of a file than it holds.
    let beyond = facts.reads_beyond_sizes();
    let by_bytes = by_marks.max(beyond);
    let repeated = seen.value.max(beyond);
    if !whole_buffer || repeated < REPEATED || by_bytes < REPEATED {
        return None;
    }
    let reading = |e: &Entry| e.wall_ns > 0.0 && e.class.operation == Operation::Read;
    let seeking = |e: &Entry| e.wall_ns > 0.0 && e.class.operation == Operation::Descriptor;
    let (reads, seeks) = (facts.account.sum(reading), facts.account.sum(seeking));
    // A seek within the buffer needs no call. Reads whose bytes were there already are spared; of the others a read of
    // the record alone spares most of the copy.
    let within_calls = loops::within_calls(facts);
    let removable =
        facts.removable(|e| if reading(e) { part } else { within_calls(e).max(f64::from(seeking(e))) });
    let mut evidence = vec![
        format!(
            "{} of the reads (n = {}) follow an lseek directly, {} on average",
            say::share(after_seek),
            tally.after_seek.n,
            say::bytes(mean)
        ),
        format!(
            "{} of them fetched bytes again that the run had read; {} were moved for {} of distinct bytes",
            say::share(seen),
            say::bytes(tally.bytes as f64),
            say::bytes(tally.distinct_bytes as f64)
        ),
        format!(
            "compared with the file sizes, about {} of the bytes were read again during the run",
            say::percent(beyond)
        ),
        format!(
            "reads take {} of wall time, seeks {}",
            say::percent(facts.wall_share(reads.wall_ns)),
            say::percent(facts.wall_share(seeks.wall_ns))
        ),
    ];
    if part < 1.0 {
        evidence.push(format!(
            "other files are read without seeks: about {} of the reading, by calls and bytes, follows a seek",
            say::percent(part)
        ));
    }
    Draft {
        id: FindingId::StdioSeek,
        cost_ns: part * reads.wall_ns + seeks.wall_ns,
        removable: Some(removable),
        sentence: format!(
            "Each seek discards the library's buffer: {} of the reads fetch the same bytes again, {} at a time",
            say::percent(repeated),
            say::bytes(mean)
        ),
        evidence,
        advice: "Seek within the buffer, or read without it: pread of just the record (C pread, Python os.pread, \
                 Java \
                 FileChannel.read(buffer, position)), Rust BufReader::seek_relative in place of seek, C setvbuf(f, \
                 NULL, _IONBF, 0) with whole records; or sort the accesses; or map the file when it is small."
            .into(),
    }
    .finding(facts)
}

/// The reads of files that are read after seeks, and the part of all reading that these are: all of it
/// where most reads of the run are such. A program that does this in one part of its run and something else in another is
/// not seen equally long in both; the exact counters of calls and bytes tell how often it did each, where the sizes of the
/// requests differ.
fn sought(facts: &Facts<'_>) -> (Tally, f64) {
    let all = facts.tally(Side::Read);
    let mostly = |looked: SampledShare| share_of(looked).is_some_and(|s| s.value >= MOSTLY);
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
