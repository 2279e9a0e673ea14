//! Seeks that no read or write follows: the library has the bytes in its buffer, or the place was right already, and makes the call all the
//! same. From counts of calls alone.

use iowhy_core::finding::{Finding, FindingId};

use super::super::facts::{self, DESCRIPTOR_CALLS, SEEK_CALL, Side};
use super::super::report::Draft;
use super::super::{Facts, loops, say};
use super::MOSTLY;
use crate::account::Entry;
use crate::classify::Operation;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let seeks = facts.counted_calls(&[SEEK_CALL])?;
    let transfers: f64 = Side::BOTH.iter().filter_map(|side| facts.counted_calls(side.call_names())).sum();
    // Each read or write has at most one seek of its own.
    let needless = seeks - transfers;
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
    let cost_ns = facts.account.entries.iter().map(|e| goes(e) * e.wall_ns).sum();
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
            "{} of the seeks have no read or write of their own (each takes at most one)",
            say::percent(needless / seeks)
        )],
        advice: "Leave out seeks to where the file is already (reading in order needs none), and read whole records, rows or blocks and \
                 pick from them in memory; or use pread, which seeks by itself; or map the file."
            .into(),
    }
    .finding(facts)
}
