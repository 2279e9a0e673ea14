//! Tests of the rule `repeated-reads`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::{PatternFile, Profile, State, Step, StepKind, Stretch, Thread};

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
fn decompressing_the_same_bytes_goes_with_their_reads() {
    // 720 of 960 samples of the own code are in such a function; all own time follows reads of this file.
    let changed = |function: &str, path: &str, change: fn(&mut Profile)| {
        let run = polls(15, 0.04, |_| ()).stack(&[function, "main"], State::Running, 0.72, 720);
        run.stack(&["main"], State::Running, 0.24, 240).with(|p| {
            // The builder makes kernel stacks.
            p.stacks.iter_mut().for_each(|s| s.user = std::mem::take(&mut s.kernel));
            let read =
                |gap_ns| Step { kind: StepKind::Read, file: Some(0), count: 1, gap_ns, ..Step::default() };
            let path = if path.is_empty() { p.files[0].path.clone() } else { path.to_owned() };
            p.pattern.files = vec![PatternFile { path, ..PatternFile::default() }];
            p.pattern.stretches = vec![Stretch { length_ns: 9000, steps: vec![read(4000), read(1000)] }];
            change(p);
        })
    };
    let decompressed = |function, path| changed(function, path, |_| ());
    let found = decompressed("inflate_fast", "").findings().remove(0);
    assert_eq!(found.id, FindingId::RepeatedReads);
    let left = found.prediction.as_ref().map(|p| p.remaining).unwrap();
    // Of 4 s, three quarters of the program's 96 % decompress, and 14 of 15 parts follow the same bytes: two thirds at least are both.
    assert!((4e9 * 0.33..4e9 * 0.42).contains(&left.high) && left.low < 0.4e9, "{left:?}");
    assert!(found.evidence.iter().any(|e| e.contains("720 of 960 samples")), "{found:?}");
    assert_eq!(ids(&decompressed("simulate", "")), [FindingId::CpuBound]);
    assert_eq!(ids(&decompressed("inflate_fast", "/data/read-once.gz")), [FindingId::CpuBound]);
    // A third of the time follows other reads, so that all of the decompression may; reads at any place, and sleeps between them.
    let computes = |change| assert_eq!(ids(&changed("inflate_fast", "", change)), [FindingId::CpuBound]);
    computes(|p| {
        let other = Step { kind: StepKind::Read, file: None, gap_ns: 0, ..Step::default() };
        let after = Step { gap_ns: 4000, ..p.pattern.stretches[0].steps[0].clone() };
        p.pattern.stretches[0].steps.extend([other, after]);
    });
    computes(|p| p.files[0].reads.sequential.hits = 0);
    computes(|p| p.threads = vec![Thread { lifetime_ns: 4_000, blocked_ns: 3_700, ..Thread::default() }]);
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
