//! Screens of scripted calls at several widths; the expected ones stand beside those of the binary.

use iowhy_core::environment::Environment;
use iowhy_core::histogram::Histogram;
use iowhy_core::machine::{Caused, Subject};
use iowhy_core::tails::{
    CallWait, DeviceSecond, Ended, HelperWait, OperationTimes, Second, SlowCall, TailsProfile,
};
use iowhy_view::terminal::table::visible_width;

use super::*;
use crate::record::watch::Invocation;
use crate::screen::for_tests::{self, assert_expected};

const MS: u64 = 1_000_000;
/// 2026-11-26 00:41:07 UTC.
const BEGAN: u64 = 1_795_653_667_000_000_000;

fn stack(names: &str) -> Vec<String> {
    names.split(' ').map(str::to_owned).collect()
}

fn profile() -> TailsProfile {
    let subject =
        |pid: u32, name: &str| Subject { pid, name: name.to_owned(), kernel: pid == 0, ..Subject::default() };
    let mut syncs = Histogram::new();
    (1..1000_u64).for_each(|n| syncs.record(n * 20_000));
    [57, 61, 70, 83].into_iter().for_each(|ms| syncs.record(ms * MS));
    let mut writes = Histogram::new();
    writes.record_many(4000, 20_000);
    let times =
        |operation: &str, failed, times| OperationTimes { operation: operation.to_owned(), failed, times };
    TailsProfile {
        pid: 1873,
        operation: "sync".to_owned(),
        limit_ns: 50 * MS,
        wall_ns: 12_300 * MS,
        operations: vec![times("write", 3, writes), times("sync", 0, syncs)],
        subjects: vec![subject(1873, "postgres"), subject(2211, "backup"), subject(0, "jbd2/nvme0n1p2-8")],
        stacks: vec![
            stack("schedule jbd2_log_wait_commit ext4_sync_file do_fsync __x64_sys_fdatasync do_syscall_64"),
            stack(
                "io_schedule folio_wait_bit_common folio_wait_writeback __filemap_fdatawait_range \
                 file_write_and_wait_range ext4_sync_file do_fsync __x64_sys_fdatasync do_syscall_64",
            ),
            stack(
                "io_schedule folio_wait_bit_common folio_wait_writeback __filemap_fdatawait_range \
                 jbd2_journal_commit_transaction kjournald2 kthread",
            ),
        ],
        devices: vec!["nvme0n1".to_owned()],
        own_cpu_ns: 40 * MS,
        ..TailsProfile::default()
    }
}

fn call(ms: u64) -> SlowCall {
    let helper = HelperWait { stack: Some(2), device: Some(0), data_of: Some(1), time_ns: (ms - 20) * MS };
    let wait = |stack, ms: u64| CallWait {
        stack: Some(stack),
        device: Some(0),
        count: 1,
        time_ns: ms * MS,
        caused: vec![Caused { subject: 1, time_ns: ms as f64 * 0.7 * MS as f64 }],
        ..CallWait::default()
    };
    let commit = CallWait { ended_by: Some(2), helper: vec![helper], ..wait(0, ms - 10) };
    SlowCall {
        call: "fdatasync".to_owned(),
        began_unix_ns: BEGAN + ms * MS,
        time_ns: ms * MS,
        tid: 1880,
        thread: "postgres".to_owned(),
        file: Some("/var/lib/postgresql/15/main/pg_wal/000000010000000000000003".to_owned()),
        running_ns: MS,
        queued_ns: MS,
        asleep_ns: (ms - 2) * MS,
        waits: vec![commit, CallWait { queue_ns: 3 * MS, ..wait(1, 8) }],
        ..SlowCall::default()
    }
}

fn record(profile: TailsProfile) -> TailsRecord {
    let environment = Environment {
        kernel: "6.18.44".to_owned(),
        cpus: 2,
        memory_bytes: 8 << 30,
        ..Environment::default()
    };
    let subject = "process 1873 postgres".to_owned();
    TailsRecord::new(profile, Invocation { environment, subject, ..Invocation::default() })
}

/// Four slow syncs, of which two were asked for.
fn slow() -> TailsRecord {
    let seconds = (0..4).map(|n| Second {
        began_unix_ns: BEGAN - 2000 * MS + n * 1000 * MS,
        length_ns: 1000 * MS,
        calls: 110,
        devices: vec![DeviceSecond {
            requests: 2100,
            bytes: 1 << 30,
            queue_ns: 2100 * MS / 2,
            service_ns: 2100 * MS,
            users: vec![(1, 1900), (0, 200)],
            ..DeviceSecond::default()
        }],
    });
    let seconds: Vec<Second> = seconds.collect();
    record(TailsProfile {
        over: 4,
        events: vec![call(57), SlowCall { seconds, ..call(83) }],
        slowest: [83, 70, 61, 57, 48, 47].into_iter().map(call).collect(),
        ..profile()
    })
}

/// None was slow enough.
fn none() -> TailsRecord {
    let mut syncs = Histogram::new();
    syncs.record_many(2 * MS, 30);
    let times = OperationTimes { operation: "sync".to_owned(), failed: 0, times: syncs };
    record(TailsProfile { ended: Ended::Time, operations: vec![times], ..profile() })
}

fn plain(record: &TailsRecord, width: usize) -> String {
    for_tests::plain(&chapter(record, Detail::Screen), width)
}

#[test]
fn screens_are_as_expected() {
    for width in [80, 100] {
        assert_expected(&format!("tails-slow-{width}.txt"), &plain(&slow(), width));
    }
    assert_expected("tails-none-100.txt", &plain(&none(), 100));
}

#[test]
fn a_screen_has_at_most_50_lines_and_fits_the_width() {
    for record in [slow(), none()] {
        for width in [60, 80, 100, 120] {
            let text = plain(&record, width);
            assert!(text.lines().all(|line| visible_width(line) <= width), "{width}: {text}");
            assert!(width < 80 || text.lines().count() <= 50, "{width}: {text}");
        }
    }
}

#[test]
fn the_slowest_event_comes_first_and_the_shared_journal_is_named() {
    let text = plain(&slow(), 100);
    assert!(text.contains("4 of 1,003 syncs took longer than 50.0 ms, the slowest 83.0 ms"), "{text}");
    assert!(text.contains("others cause 68 % of it: backup (2211)"), "{text}");
    assert!(text.contains("6 of the 6 slowest syncs waited for a commit"), "{text}");
}

#[test]
fn without_an_event_the_slowest_call_is_named_and_nobody_is_blamed() {
    let text = plain(&none(), 100);
    assert!(
        text.contains("No sync took longer than 50.0 ms: the slowest of 30 syncs took 2.00 ms"),
        "{text}"
    );
    assert!(!text.contains("caused by"), "{text}");
}

#[test]
fn a_time_of_day_is_that_of_the_clock() {
    assert_eq!(time_of_day(BEGAN + 123 * MS), "00:41:07.123");
    assert_eq!(time_of_day(0), "00:00:00.000");
}

#[test]
fn a_name_that_a_program_chose_is_no_control_code() {
    let mut wild = slow();
    wild.profile.subjects[1].name = "\u{1b}[2J\n".to_owned();
    for call in wild.profile.events.iter_mut().chain(&mut wild.profile.slowest) {
        call.thread = "\u{1b}]0;\u{7}".to_owned();
        call.file = Some("/tmp/\u{1b}[31m".to_owned());
    }
    assert!(!plain(&wild, 100).contains('\u{1b}'));
}
