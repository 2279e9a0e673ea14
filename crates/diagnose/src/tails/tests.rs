//! Accounts of scripted calls.

use iowhy_core::machine::{Caused, Subject};
use iowhy_core::tails::HelperWait;

use super::*;

const MS: u64 = 1_000_000;
const WRITER: u32 = 1;
const JOURNAL: u32 = 2;

fn stack(names: &str) -> Vec<String> {
    names.split(' ').map(str::to_owned).collect()
}

fn profile() -> TailsProfile {
    let subject =
        |pid: u32, name: &str| Subject { pid, name: name.to_owned(), kernel: pid == 0, ..Subject::default() };
    TailsProfile {
        operation: "sync".to_owned(),
        subjects: vec![subject(10, "server"), subject(20, "writer"), subject(0, "jbd2/vda-8")],
        stacks: vec![
            stack("schedule jbd2_log_wait_commit ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64"),
            stack(
                "io_schedule folio_wait_bit_common folio_wait_writeback __filemap_fdatawait_range \
                 file_write_and_wait_range ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64",
            ),
            stack(
                "schedule rwsem_down_write_slowpath down_write ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64",
            ),
            stack(
                "io_schedule folio_wait_bit_common folio_wait_writeback __filemap_fdatawait_range \
                 jbd2_journal_commit_transaction kjournald2 kthread",
            ),
        ],
        devices: vec!["vda".to_owned()],
        ..TailsProfile::default()
    }
}

fn wait(stack: u32, ms: u64) -> CallWait {
    CallWait { stack: Some(stack), count: 1, time_ns: ms * MS, ..CallWait::default() }
}

fn call(waits: Vec<CallWait>, asleep_ms: u64) -> SlowCall {
    SlowCall {
        time_ns: (asleep_ms + 5) * MS,
        running_ns: 3 * MS,
        queued_ns: 2 * MS,
        asleep_ns: asleep_ms * MS,
        waits,
        ..SlowCall::default()
    }
}

fn parts(account: &CallAccount) -> Vec<(&str, u64)> {
    account.parts.iter().map(|part| (part.part.as_str(), part.time_ns as u64 / MS)).collect()
}

/// A sync that waits for a commit, and the part of it in which the journal waits for the writer's data.
fn commit(ms: u64, data_ms: u64) -> SlowCall {
    let helper = HelperWait { stack: Some(3), device: Some(0), data_of: Some(WRITER), time_ns: data_ms * MS };
    call(vec![CallWait { device: Some(0), ended_by: Some(JOURNAL), helper: vec![helper], ..wait(0, ms) }], ms)
}

#[test]
fn the_parts_of_a_call_sum_to_its_time() {
    let write = CallWait {
        device: Some(0),
        queue_ns: 10 * MS,
        caused: vec![Caused { subject: WRITER, time_ns: 20.0 * MS as f64 }],
        ..wait(1, 40)
    };
    let lock = CallWait { ended_by: Some(WRITER), ..wait(2, 15) };
    // 5 ms asleep were not told.
    let call = call(vec![write, lock], 60);
    let account = account(&profile(), &call, &Classifier::new());
    assert_eq!(
        parts(&account),
        [
            ("device", 30),
            ("lock", 15),
            ("device-queue", 10),
            ("unexplained", 5),
            ("running", 3),
            ("cpu-queue", 2)
        ]
    );
    assert_eq!(account.parts.iter().map(|part| part.time_ns).sum::<f64>(), call.time_ns as f64);
    // Half of the wait for the device, and all of that for the lock.
    assert_eq!(account.caused_by, [Part { of: WRITER, time_ns: 35.0 * MS as f64 }]);
    assert_eq!(
        account.parts[1].function.as_deref(),
        Some("ext4_sync_file"),
        "who took the lock, not the lock itself"
    );
}

#[test]
fn a_commit_names_the_journal_and_whose_data_it_wrote() {
    let account = account(&profile(), &commit(50, 40), &Classifier::new());
    let part = &account.parts[0];
    assert_eq!((part.part.as_str(), part.by, part.device), ("journal", Some(JOURNAL), Some(0)));
    let meanwhile = &part.meanwhile[0];
    assert_eq!((meanwhile.data_of, meanwhile.time_ns), (Some(WRITER), 40.0 * MS as f64));
}

fn found(calls: Vec<SlowCall>) -> Vec<TailFinding> {
    let profile = TailsProfile { slowest: calls, ..profile() };
    let classifier = Classifier::new();
    let accounts: Vec<CallAccount> =
        profile.slowest.iter().map(|call| account(&profile, call, &classifier)).collect();
    findings(&profile, &accounts)
}

#[test]
fn a_shared_journal_is_found_only_where_the_chain_is_seen() {
    let shared = TailFinding::SharedJournal { calls: 3, of: 6, subject: WRITER, journal: JOURNAL };
    let tail = |calls| TailFinding::SyncTail { calls, of: 6, part: "journal".to_owned(), device: Some(0) };
    let calls = |data_ms| {
        let slow = [commit(50, data_ms), commit(40, data_ms), commit(30, data_ms)];
        slow.into_iter().chain([commit(20, 0), commit(10, 0), call(vec![wait(2, 9)], 9)]).collect()
    };
    assert_eq!(found(calls(30)), [shared, tail(5)]);
    // The journal waited for the writer's data, but hardly.
    assert_eq!(found(calls(5)), [tail(5)]);
    // Its own data is nobody's fault.
    let own = |mut call: SlowCall| {
        call.subject = WRITER;
        call
    };
    assert_eq!(found((0..6).map(|_| own(commit(50, 40))).collect()), [tail(6)]);
    // A waker that is no thread of the kernel is no journal.
    let mut by_process = commit(50, 40);
    by_process.waits[0].ended_by = Some(WRITER);
    assert_eq!(found(vec![by_process; 6]), [tail(6)]);
}

#[test]
fn few_calls_and_other_operations_have_no_tail() {
    assert!(found(vec![commit(50, 40); 4]).is_empty());
    let profile =
        TailsProfile { operation: "read".to_owned(), slowest: vec![commit(50, 40); 6], ..profile() };
    let classifier = Classifier::new();
    let accounts: Vec<CallAccount> =
        profile.slowest.iter().map(|call| account(&profile, call, &classifier)).collect();
    assert!(findings(&profile, &accounts).is_empty());
    // Six calls, each of another kind or of none: nothing is common to most.
    let mixed = vec![
        commit(50, 0),
        commit(50, 0),
        call(vec![wait(2, 50)], 50),
        call(vec![wait(2, 50)], 50),
        call(vec![], 0),
        call(vec![wait(1, 9)], 9),
    ];
    assert!(found(mixed).is_empty());
}

#[test]
fn every_operation_that_is_timed_has_calls() {
    let classifier = Classifier::new();
    for (operation, name) in OPERATIONS.iter().zip([
        "pread64",
        "write",
        "fdatasync",
        "openat",
        "close",
        "statx",
        "unlinkat",
        "lseek",
        "mmap",
    ]) {
        assert_eq!(classifier.operation_of_call(name), *operation, "{name}");
    }
}
