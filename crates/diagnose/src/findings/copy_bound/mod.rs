//! The rule `copy-bound`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::profile::{Step, StepKind, buffer_offset};

use super::facts::{Side, share_of};
use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::CopyBound,
    claim: "copying bytes between kernel and program dominates",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { others: repair::others, ..Repairs::of_calls(repair::repaired) },
};

/// Copying is the limit from this share of the wall time on.
const BOUND: f64 = 0.5;
/// With smaller requests the call counts more than the copy.
const LARGE_BYTES: f64 = 32_768.0;
/// Memory that begins so few bytes behind the beginning of a page is slow to copy into on some CPUs
/// (`replay/buffers.rs`).
const NEAR_BYTES: u16 = 32;
/// A buffer of more than this leaves the second-level cache of most CPUs between copying and use.
const BUFFER_BYTES: f64 = 524_288.0;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let copying = |e: &Entry| e.busy && e.class.layer == Layer::Copy;
    let sum = facts.account.sum(copying);
    if facts.share_without_queueing(sum.wall_ns) < BOUND {
        return None;
    }
    let moved = |side: Side| facts.bytes(side).unwrap_or(0.0);
    let bytes = moved(Side::Read) + moved(Side::Write);
    let calls: f64 = Side::BOTH.iter().filter_map(|s| facts.calls(*s)).sum();
    if calls < 1.0 || bytes / calls < LARGE_BYTES {
        return None;
    }
    let mean = bytes / calls;
    // A program that looks at few of the bytes needs hardly any of it, nor of the calls around it.
    let around = |e: &Entry| e.busy && matches!(e.class.operation, Operation::Read | Operation::Write);
    let removable = facts.removable(|e| f64::from(copying(e) || around(e)));
    let mut evidence = vec![
        format!(
            "copying {} takes {} of wall time, at {} in each thread that copies",
            say::bytes(bytes),
            say::percent(facts.wall_share(sum.wall_ns)),
            say::rate(bytes, sum.time_ns)
        ),
        format!(
            "{} calls of {} on average: the cost of the calls themselves is small",
            say::count(calls),
            say::bytes(mean)
        ),
    ];
    let known = facts.model.map(|m| m.cost(Layer::Copy).per_byte_ns).filter(|ns| *ns > 0.0);
    evidence.extend(
        known.map(|ns| format!("this machine copies {} in the cache (measured)", say::rate(1.0, ns))),
    );
    let mut advice = if copies_files(facts) {
        "Leave the copy to the kernel or avoid it: copy_file_range (shares blocks where the file system can), splice or \
         sendfile; Python shutil.copyfile, Java FileChannel.transferTo."
            .to_owned()
    } else {
        "Avoid the copy: map the file (mmap with MADV_POPULATE_READ), or bypass the cache with O_DIRECT where the \
         data is read once."
            .to_owned()
    };
    if mean > BUFFER_BYTES {
        advice.push_str(" A buffer of 128 to 256 KiB stays in the CPU's cache until its bytes are used.");
    }
    if let Some(offset) = near_page_start(facts) {
        evidence.push(format!("most bytes move through buffers that begin {offset} bytes into a page"));
        advice.push_str(
            " Some CPUs copy several times faster if the buffer begins at a page (posix_memalign) than a few bytes behind, \
             where malloc puts large buffers: `--prove` tries it.",
        );
    }
    let seeks = share_of(facts.tally(Side::Read).after_seek).filter(|s| s.value >= BOUND);
    if let Some(seeks) = seeks {
        evidence.push(format!("{} of the reads follow an lseek directly", say::share(seeks)));
        advice.push_str(
            " If only a record of each buffer is used after a seek, read just the record (pread): \
             then there is little to copy.",
        );
    }
    Draft {
        id: FindingId::CopyBound,
        cost_ns: sum.wall_ns,
        removable: Some(removable),
        sentence: format!(
            "Copying bytes between kernel and program takes {} of wall time",
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice,
    }
    .finding(facts)
}

/// Where most buffers begin behind the start of their page, if that is close to it.
fn near_page_start(facts: &Facts<'_>) -> Option<u16> {
    let moves = |s: &&Step| matches!(s.kind, StepKind::Read | StepKind::Write);
    let steps = facts.profile.pattern.stretches.iter().flat_map(|s| &s.steps);
    buffer_offset(steps.filter(moves)).filter(|at| (1..NEAR_BYTES).contains(at))
}

/// From file to file: the kernel can copy. From elsewhere (/dev/zero) it cannot.
fn copies_files(facts: &Facts<'_>) -> bool {
    let stored = |side: Side| facts.storage_bytes(side).unwrap_or(0.0);
    stored(Side::Read).min(stored(Side::Write)) > 0.4 * stored(Side::Read).max(stored(Side::Write))
}
