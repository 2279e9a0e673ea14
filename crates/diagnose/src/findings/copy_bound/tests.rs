//! Tests of the rule `copy-bound`.

use iowhy_core::profile::Stretch;

use super::*;
use crate::classify::Operation;
use crate::findings::synthetic::{Run, bound_leaves, slow_and_repaired};

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
    // By hand: 75 % copying, 15 % of the same calls beside it.
    bound_leaves(&found, 0.1);
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
