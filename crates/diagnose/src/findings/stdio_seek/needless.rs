//! Far more seeks than reads and writes: the library has the bytes in its buffer, or the place was right already, and makes the call all the
//! same. From counts of calls alone.

use iowhy_core::finding::{Finding, FindingId};

use super::super::facts::{self, DESCRIPTOR_CALLS, SEEK_CALL, Side};
use super::super::report::Draft;
use super::super::{Facts, loops, say};
use super::MOSTLY;
use crate::account::Entry;
use crate::classify::Operation;

/// Seeks that a transfer may take: there and back, or where data begins and where it ends (SEEK_DATA, SEEK_HOLE).
const SEEKS_EACH: f64 = 2.0;
/// What moves bytes between files within the kernel.
const COPIES: [&str; 3] = ["copy_file_range", "sendfile", "splice"];

pub(super) fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let seeks = facts.counted_calls(&[SEEK_CALL])?;
    let moving = Side::BOTH.iter().map(|side| side.call_names()).chain([&COPIES[..]]);
    let transfers: f64 = moving.filter_map(|names| facts.counted_calls(names)).sum();
    let needless = seeks - SEEKS_EACH * transfers;
    if seeks <= 0.0 || needless < MOSTLY * seeks {
        return None;
    }
    let all: u64 = facts.profile.calls.iter().flat_map(|c| &c.calls).map(|c| c.calls).sum();
    let of_all = needless / (all as f64).max(needless);
    let of_descriptor = needless / facts.counted_calls(&DESCRIPTOR_CALLS)?.max(needless);
    let within_calls = loops::within_calls(facts);
    let goes = |e: &Entry| {
        if e.class.operation == Operation::Descriptor {
            of_descriptor
        } else {
            of_all * within_calls(e).max(f64::from(facts::entering(e)))
        }
    };
    let cost_ns = facts.wall_ns_of(goes);
    Draft {
        id: FindingId::StdioSeek,
        cost_ns,
        removable: Some(facts.removable(goes)),
        sentence: format!(
            "{} seeks for {} reads and writes take {} of wall time: most of them move nothing",
            say::count(seeks),
            say::count(transfers),
            say::percent(facts.wall_share(cost_ns))
        ),
        evidence: vec![format!(
            "{} of the seeks belong to no read or write, two allowed for each",
            say::percent(needless / seeks)
        )],
        advice: "Leave out seeks to the current position (reading in order needs none); read whole records, rows or blocks and pick \
                 values from memory; or use pread, which takes the offset itself; or map the file."
            .into(),
    }
    .finding(facts)
}
