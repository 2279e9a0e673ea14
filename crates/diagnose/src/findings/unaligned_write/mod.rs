//! The rule `unaligned-write`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{Side, share_of};
use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::UnalignedWrite,
    claim: "writes of partial blocks, which must be read first",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::of_calls(repair::repaired),
};

/// With fewer unaligned writes than this, the reads are for something else (block maps, bitmaps).
const ENOUGH: f64 = 0.1;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let waiting = |e: &Entry| e.class.operation == Operation::Write && e.class.wait == Some(Wait::DeviceRead);
    let sum = facts.account.sum(waiting);
    let tally = facts.tally(Side::Write);
    let unaligned = share_of(tally.unaligned);
    if sum.wall_ns <= 0.0 || unaligned.is_some_and(|s| s.high < ENOUGH) {
        return None;
    }
    // A buffered write sends nothing to the device itself: what it does there is to read. The page that is read is also looked for, made
    // and mapped to blocks.
    let buffered = facts.direct_share(Side::Write) < 0.5;
    let reading = |e: &Entry| {
        let around = e.busy && e.class.operation == Operation::Write && e.class.layer != Layer::Copy;
        waiting(e) || (buffered && around)
    };
    let removable = facts.removable(|e| f64::from(reading(e)));
    let share = say::percent(facts.wall_share(sum.wall_ns));
    let mut evidence = vec![format!(
        "{}: {share} of wall time",
        facts.waits_in_words(
            sum,
            "write that waited for a device read",
            "writes that waited for a device read"
        )
    )];
    evidence.push(match unaligned {
        Some(s) => format!(
            "{} of the sampled writes (n = {}) do not begin and end at a multiple of 4 KiB",
            say::share(s),
            tally.unaligned.n
        ),
        None => {
            "the alignment of the writes is unknown; reads of the file's block map are possible too".into()
        }
    });
    evidence.extend(facts.mean_bytes(Side::Write).map(|b| format!("mean write size: {}", say::bytes(b))));
    Draft {
        id: FindingId::UnalignedWrite,
        cost_ns: sum.wall_ns,
        removable: Some(removable),
        sentence: format!(
            "Partial-block writes wait until the blocks are read: {share} of wall time"
        ),
        evidence,
        advice: "Write whole blocks: offset and length multiples of 4 KiB (or of the file system's block size, if \
                 larger: `stat -f`), records padded or collected to such blocks; or read the region in once before \
                 (posix_fadvise(POSIX_FADV_WILLNEED)) so that its pages are in the cache."
            .into(),
    }
    .finding(facts)
}
