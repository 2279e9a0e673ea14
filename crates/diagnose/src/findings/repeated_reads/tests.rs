//! Tests of the rule `repeated-reads`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{Run, access, bound_leaves, slow_and_repaired};

const LOG: u64 = 19 << 20;

/// A log that is read from its first byte at each of so many polls, 256 KiB a call.
fn polls(polls: u64, share: f64, change: impl FnOnce(&mut FileUse)) -> Run {
    let bytes = polls * LOG;
    let calls = bytes >> 18;
    Run::new(4.0)
        .busy(Operation::Read, Layer::Copy, share)
        .busy(Operation::User, Layer::Program, 1.0 - share)
        .io((calls, bytes), (0, 0))
        .file(LOG, |f| {
            f.reads = access(calls, bytes, calls);
            f.reads.distinct_bytes = LOG;
            f.opens = polls;
            change(f);
        })
}

fn ids(run: &Run) -> Vec<FindingId> {
    run.ids()
}

#[test]
fn a_log_read_from_its_first_byte_is_named_and_one_read_on_is_not() {
    let found = slow_and_repaired(FindingId::RepeatedReads, &polls(200, 0.4, |_| ()), &polls(1, 0.4, |_| ()));
    bound_leaves(&found, 1.0 - 0.4 * 199.0 / 200.0);
    let left = found.prediction.as_ref().map(|p| p.remaining).unwrap();
    // 4 s, of which 1.6 are reads, but for the first pass; what works on the bytes goes at most.
    assert!((2.408e9..2.5e9).contains(&left.high) && left.low < 0.04e9, "{left:?}");
    assert!(found.evidence.iter().any(|e| e.contains("200 times each byte")), "{found:?}");
    assert!(found.evidence.iter().any(|e| e.contains("opened 200 times")), "{found:?}");
}

#[test]
fn half_of_the_bytes_is_the_least() {
    assert!(!ids(&polls(1, 0.4, |f| f.size_bytes = Some(LOG * 6 / 10))).contains(&FindingId::RepeatedReads));
    assert!(ids(&polls(2, 0.4, |_| ())).contains(&FindingId::RepeatedReads));
    assert!(!ids(&polls(200, 0.04, |_| ())).contains(&FindingId::RepeatedReads));
}

#[test]
fn files_without_a_size_of_their_own_repeat_nothing() {
    let none = |change: fn(&mut FileUse)| {
        let found = ids(&polls(200, 0.4, change));
        assert!(!found.contains(&FindingId::RepeatedReads), "{found:?}");
    };
    none(|f| f.size_bytes = None);
    none(|f| f.size_bytes = Some(0));
    none(|f| (f.size_bytes, f.file_system) = (Some(4096), Some("sysfs".to_owned())));
    none(|f| f.kind = "pipe".to_owned());
    // Written anew before each time that it is read.
    none(|f| (f.writes.bytes, f.writes.distinct_bytes) = (f.reads.bytes, LOG));
    // Cut off to nothing but a header after all of it was read.
    none(|f| (f.size_bytes, f.reads.distinct_bytes) = (Some(4096), f.reads.bytes));
}
