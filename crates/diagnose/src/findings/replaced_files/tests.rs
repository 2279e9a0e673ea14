//! Tests of the rule `replaced-files`.

use iowhy_core::layer::Layer;

use super::*;
use crate::classify::Operation;
use crate::findings::synthetic::{Run, slow_and_repaired};

/// A file that is truncated and written again and again: these shares of the run free its blocks.
fn cursor(discard: f64, written: f64) -> Run {
    Run::new(2.0)
        .wait(Operation::Open, Wait::DeviceWrite, discard)
        .wait(Operation::Open, Wait::DataWriteback, written)
        .busy(Operation::Write, Layer::Copy, 0.1)
        .busy(Operation::User, Layer::Program, 0.9 - discard - written)
        .calls(&[("openat", 5_000), ("close", 5_000), ("write", 5_000)])
        .io((0, 0), (5_000, 300_000))
}

#[test]
fn a_file_that_is_replaced_again_and_again_is_named_and_one_that_is_kept_open_is_not() {
    let found = slow_and_repaired(FindingId::ReplacedFiles, &cursor(0.34, 0.22), &cursor(0.01, 0.0));
    assert!(found.gain.is_none(), "files are not removed to find out");
    assert!(found.advice.contains("discard") && found.advice.contains("in place"), "{found:?}");
    assert!(found.evidence.iter().any(|e| e.starts_with("34 % of wall time")), "{found:?}");
}

#[test]
fn without_discards_nobody_is_told_to_mount_without_them() {
    let found = &cursor(0.0, 0.5).findings()[0];
    assert_eq!(found.id, FindingId::ReplacedFiles);
    assert!(!found.advice.contains("discard"), "{found:?}");
}

#[test]
fn large_files_that_are_removed_are_no_small_files() {
    let mailbox = Run::new(2.0)
        .wait(Operation::Close, Wait::DeviceWrite, 0.44)
        .busy(Operation::Write, Layer::Copy, 0.2)
        .busy(Operation::User, Layer::Program, 0.36)
        .calls(&[("openat", 300), ("close", 300), ("rename", 90), ("write", 4_000)])
        .io((7_000, 1 << 30), (4_000, 1 << 30));
    let ids = mailbox.ids();
    assert_eq!(ids[0], FindingId::ReplacedFiles, "{ids:?}");
    assert!(!ids.contains(&FindingId::ManySmallFiles), "{ids:?}");
}
