//! The rule `copy-bound`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::profile::{Step, StepKind, buffer_offset};

use super::facts::{Side, share_of};
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule { id: FindingId::CopyBound, manual: include_str!("page.md"), judge };

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
    let calls: f64 = Side::BOTH.iter().filter_map(|s| facts.calls(*s)).map(|c| c.likely).sum();
    if calls < 1.0 || bytes / calls < LARGE_BYTES {
        return None;
    }
    let mean = bytes / calls;
    let ns_per_byte = sum.time_ns / bytes.max(1.0);
    // Without the copy each page must be mapped instead, where the cost of that is known.
    let part = facts.model.filter(|m| m.cost(Layer::Memory).per_page_ns > 0.0).map(|m| {
        let mapping = m.cost(Layer::Memory).per_page_ns / m.page_bytes.max(1) as f64;
        let saved = 1.0 - mapping / ns_per_byte.max(1e-9);
        Range::new(0.7 * saved, saved, 1.0)
    });
    // A program that looks at few of the bytes needs hardly any of it, nor of the calls around it.
    let beside = |e: &Entry| {
        e.busy
            && e.class.layer != Layer::Copy
            && matches!(e.class.operation, Operation::Read | Operation::Write)
    };
    let savings = facts
        .saved_without(|e| f64::from(copying(e)))
        .part(part.unwrap_or(Range::new(0.1, 0.4, 0.999)))
        .and(facts.saved_without(|e| f64::from(beside(e))).part(Range::new(0.0, 0.0, 0.999)));
    // From file to file: the kernel can copy by itself. What comes from elsewhere (/dev/zero) it cannot.
    let stored = |side: Side| facts.storage_bytes(side).unwrap_or(0.0);
    let both =
        stored(Side::Read).min(stored(Side::Write)) > 0.4 * stored(Side::Read).max(stored(Side::Write));
    let mut evidence = vec![
        format!(
            "copying {} takes {} of the wall time, at {} in each thread that copies",
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
        known.map(|ns| format!("this machine was measured to copy {} in the cache", say::rate(1.0, ns))),
    );
    let mut advice = if both {
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
    let moves = |s: &&Step| matches!(s.kind, StepKind::Read | StepKind::Write);
    let steps = facts.profile.pattern.stretches.iter().flat_map(|s| &s.steps);
    if let Some(offset) = buffer_offset(steps.filter(moves)).filter(|at| (1..NEAR_BYTES).contains(at)) {
        evidence.push(format!("most bytes go to or come from memory that begins {offset} bytes into a page"));
        advice.push_str(
            " Some CPUs copy several times faster where the program's memory begins at a page (posix_memalign) instead of \
             a few bytes behind, where malloc puts large buffers: `--prove` tries it.",
        );
    }
    let seeks = share_of(facts.tally(Side::Read).after_seek).filter(|s| s.likely >= BOUND);
    if let Some(seeks) = seeks {
        evidence.push(format!("{} of the reads came right after an lseek", say::share(seeks)));
        advice.push_str(
            " Where each seek is followed by a whole buffer of which only a record is used, read just the record (pread): \
             then there is little to copy.",
        );
    }
    Draft {
        id: FindingId::CopyBound,
        cost_ns: sum.wall_ns,
        savings: Some(savings),
        sentence: format!(
            "{} of the time goes in moving bytes between kernel and program",
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice,
    }
    .finding(facts)
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::Stretch;

    use super::*;
    use crate::classify::Operation;
    use crate::findings::synthetic::{Run, model, slow_and_repaired};

    fn reader(copy: f64) -> Run {
        Run::new(10.0)
            .busy(Operation::Read, Layer::Copy, copy)
            .busy(Operation::Read, Layer::Cache, 0.15)
            .busy(Operation::User, Layer::Program, 0.85 - copy)
            .io((40_000, 40_000 << 20), (0, 0))
    }

    #[test]
    fn a_reader_that_only_copies_is_named_and_one_that_computes_not() {
        let found = slow_and_repaired(FindingId::CopyBound, &reader(0.75), &reader(0.1));
        assert!((found.gain.unwrap().predicted - 1.0 / (1.0 - 0.3)).abs() < 1e-6);
    }

    #[test]
    fn memory_a_few_bytes_behind_the_beginning_of_a_page_is_said() {
        let said = |offset: Option<u16>| {
            let step = Step { bytes: 1 << 20, count: 9, buffer_offset: offset, ..Step::default() };
            let stretch = Stretch { length_ns: 1, steps: vec![step] };
            let run = reader(0.75).with(|p| p.pattern.stretches = vec![stretch]);
            let found = run.findings().into_iter().find(|f| f.id == FindingId::CopyBound).unwrap();
            (
                found.evidence.iter().any(|e| e.contains("16 bytes into a page")),
                found.advice.contains("posix_memalign"),
            )
        };
        assert_eq!(said(Some(16)), (true, true));
        for other in [None, Some(0), Some(48)] {
            assert_eq!(said(other), (false, false), "{other:?}");
        }
    }

    #[test]
    fn where_faults_cost_as_much_as_copying_nothing_is_advised() {
        let mut run = reader(0.75);
        // 250 ns a page to map against 180 ns a page that were copied.
        run.model = Some(model());
        run.profile.io.read_bytes = Some(170 << 30);
        assert!(!run.ids().contains(&FindingId::CopyBound), "{:?}", run.findings());
    }
}
