//! Tests of the rule `copy-up`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{Run, bound_leaves, slow_and_repaired};

/// Changes the mode of files of a lower layer: each is copied whole, and synced.
fn chmod(copied: f64) -> Run {
    Run::new(2.0)
        .wait(Operation::CopyUp, Wait::DataWriteback, 0.4 * copied)
        .wait(Operation::CopyUp, Wait::CacheFlush, 0.2 * copied)
        .wait(Operation::CopyUp, Wait::DeviceRead, 0.1 * copied)
        .wait(Operation::CopyUp, Wait::InodeLock, 0.05 * copied)
        .busy(Operation::CopyUp, Layer::Filesystem, 0.25 * copied)
        .busy(Operation::Names, Layer::Filesystem, 0.1)
        .calls(&[("fchmodat", 3000)])
        .io((0, 0), (2, 100))
        .block(3000, 48 << 20, 0, 0)
        .with(|p| p.block.as_mut().unwrap().own_written_bytes = 56 << 20)
}

#[test]
fn what_is_copied_for_a_change_of_mode_is_named() {
    let found = slow_and_repaired(FindingId::CopyUp, &chmod(0.88), &chmod(0.04));
    bound_leaves(&found, 0.12);
    assert!(found.evidence[0].starts_with("of the wall time: CPU time 22 %, "), "{found:?}");
    assert_eq!(found.evidence[0].matches(", ").count(), 3, "the greatest three waits: {found:?}");
    assert!(found.evidence[1].contains("read 48 MiB and wrote 56 MiB"), "{found:?}");
}

#[test]
fn names_and_replaced_files_are_not_told_beside_their_copies() {
    // Beside another operation, the same names and waits have causes of their own.
    let of = |operation, share| {
        chmod(0.0)
            .met(50)
            .calls(&[("openat", 3000), ("unlink", 3000)])
            .wait(operation, Wait::DeviceWrite, share)
            .busy(operation, Layer::Filesystem, 0.3)
            .wait(Operation::Names, Wait::DeviceWrite, 0.2)
            .ids()
    };
    assert_eq!(of(Operation::CopyUp, 0.4), [FindingId::CopyUp]);
    let without = of(Operation::Names, 0.4);
    assert!(
        without.contains(&FindingId::ManySmallFiles) || without.contains(&FindingId::ReplacedFiles),
        "{without:?}"
    );
}

#[test]
fn what_the_copies_wait_for_is_no_cause_beside_them() {
    use FindingId as F;
    let of = |operation, wait| {
        let thread = |run: Run| run.wait(operation, wait, 0.6).busy(operation, Layer::Filesystem, 0.2);
        let run = Run::new(10.0).with(|p| p.pressure.cpus = 8).io((0, 0), (1000, 1 << 30));
        (1..4).fold(thread(run), |run, _| run.second_thread(thread)).device(0.99, 20.0, |d| {
            (d.writes, d.written_bytes) = (1000, 1 << 29);
        })
    };
    for (wait, cause) in [
        (Wait::InodeLock, F::InodeLock),
        (Wait::DirtyThrottle, F::DirtyThrottle),
        (Wait::DeviceWrite, F::DeviceSaturated),
    ] {
        let without = of(Operation::Write, wait).ids();
        assert!(without.contains(&cause), "{wait:?}: {without:?}");
        assert_eq!(of(Operation::CopyUp, wait).ids(), [F::CopyUp], "{wait:?}");
    }
}
