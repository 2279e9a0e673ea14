//! Known answers: records of calls, and the steps that come of them.

use super::*;

const REGULAR: u64 = (libc::S_IFREG as u64) << 32;
const SOCKET: u64 = (libc::S_IFSOCK as u64) << 32;

fn file(inode: u64) -> Option<FileKey> {
    let low_half_first = u64::from_ne_bytes([1, 0, 0, 0, 0, 0, 0, 0]) == 1;
    let key = |kind: u64| if low_half_first { kind | 8 } else { (kind >> 32) | 8 << 32 };
    Some(FileKey([inode, key(REGULAR)]))
}

/// A call that takes 5 ns.
fn call(number: libc::c_long, entered_ns: u64, arguments: [u64; 6], value: i64) -> CallRecord {
    CallRecord {
        entered_ns,
        returned_ns: entered_ns + 5,
        pid: 1,
        tid: 1,
        number: number as u32,
        value,
        arguments,
        file: file(3),
        ..CallRecord::default()
    }
}

fn pread(entered_ns: u64, offset: u64, bytes: u64, memory: u64) -> CallRecord {
    call(libc::SYS_pread64, entered_ns, [7, memory, bytes, offset, 0, 0], bytes as i64)
}

fn path(key: FileKey) -> Option<String> {
    Some(format!("/{}", key.0[0]))
}

/// What comes of these calls, recorded without a gap from a time on.
fn logged(from_ns: u64, calls: &[CallRecord]) -> (CallPattern, Durations) {
    let mut log = CallLog::new(0, false);
    log.begin(from_ns);
    calls.iter().for_each(|call| log.take(call));
    log.finish(path)
}

#[test]
fn calls_of_one_kind_in_a_row_are_one_step_with_the_time_between() {
    let mut calls: Vec<_> = (0..10).map(|i| pread(110 + i * 10, i * 64, 64, 0)).collect();
    calls.push(call(libc::SYS_fdatasync, 300, [7, 0, 0, 0, 0, 0], 0));
    calls.push(call(libc::SYS_fallocate, 310, [7, 1, 4096, 8192, 0, 0], 0));
    let (pattern, durations) = logged(100, &calls);
    let stretch = &pattern.stretches[0];
    assert_eq!((stretch.steps.len(), stretch.length_ns), (3, 215));
    let [reads, sync, allocated] = stretch.steps.as_slice() else { panic!("{stretch:?}") };
    assert_eq!((reads.kind, reads.count, reads.place, reads.stride), (StepKind::Read, 10, Some(0), 64));
    assert_eq!((reads.gap_ns, reads.time_ns), (10 + 9 * 5, 50));
    assert_eq!((sync.kind, sync.argument, sync.gap_ns), (StepKind::Sync, 0, 300 - 205));
    let Step { kind, place, bytes, argument, .. } = *allocated;
    assert_eq!((kind, place, bytes, argument), (StepKind::Allocate, Some(4096), 8192, 1));
    assert_eq!((pattern.files[0].path.as_str(), pattern.files[0].kind.as_str()), ("/3", "regular"));
    assert_eq!((reads.file, sync.file), (Some(0), Some(0)));
    assert_eq!(durations.by_name["pread64"].of(100), 500);
    assert_eq!(durations.by_path["/3"][0].of(3), 15);
    assert_eq!(durations.by_path["/3"][1].of(3), 0, "nothing was written");
}

#[test]
fn offsets_are_those_at_which_the_calls_began() {
    let at = |record: CallRecord, flags: i32, position: u64| CallRecord {
        flags: flags as u32,
        position,
        ..record
    };
    let buffer = [7, 0, 100, 0, 0, 0];
    let vector = [7, 0, 1, u64::MAX, 0, 0];
    let calls = [
        at(call(libc::SYS_read, 10, buffer, 100), 0, 4196),
        at(call(libc::SYS_read, 20, [7, 0, 200, 0, 0, 0], 30), 0, 8030),
        at(call(libc::SYS_write, 30, buffer, 100), libc::O_APPEND, 5000),
        at(call(libc::SYS_preadv2, 40, vector, 100), 0, 600),
        CallRecord {
            file: Some(FileKey([9, file(9).unwrap().0[1] ^ REGULAR ^ SOCKET])),
            ..at(call(libc::SYS_read, 50, buffer, 100), 0, 0)
        },
        call(libc::SYS_lseek, 60, [7, 12345, 0, 0, 0, 0], 12345),
    ];
    let (pattern, _) = logged(0, &calls);
    let places: Vec<_> = pattern.stretches[0].steps.iter().map(|s| (s.kind, s.place, s.bytes)).collect();
    let expected = [
        (StepKind::Read, Some(4096), 100),
        (StepKind::Read, Some(8000), 200),
        (StepKind::Write, Some(4900), 100),
        (StepKind::Read, Some(500), 100),
        (StepKind::Read, None, 100),
        (StepKind::Seek, Some(12345), 0),
    ];
    assert_eq!(places, expected);
}

#[test]
fn memory_that_is_taken_for_a_read_is_fresh_once() {
    let anonymous = libc::MAP_ANONYMOUS as u64;
    let map =
        |at: u64, bytes: u64, time| call(libc::SYS_mmap, time, [0, bytes, 0, anonymous, 0, 0], at as i64);
    let unmap = |at: u64, bytes: u64, time| call(libc::SYS_munmap, time, [at, bytes, 0, 0, 0, 0], 0);
    let calls = [
        map(4096, 1 << 20, 10),
        pread(20, 20, 100, 5000),
        pread(30, 20, 100, 5000),
        unmap(4096, 1 << 20, 40),
        // Neither small pieces nor memory that was there before are told.
        map(1 << 30, 4096, 50),
        unmap(1 << 31, 4096, 60),
    ];
    let steps = logged(0, &calls).0.stretches.remove(0).steps;
    let kinds: Vec<_> = steps.iter().map(|s| (s.kind, s.fresh, s.buffer_offset)).collect();
    let offset = Some(5000 - 4096);
    let expected = [
        (StepKind::MmapAnon, false, None),
        (StepKind::Read, true, offset),
        (StepKind::Read, false, offset),
        (StepKind::Munmap, false, None),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn calls_that_fail_have_a_duration_and_no_step() {
    let failed = CallRecord { file: None, ..call(libc::SYS_openat, 10, [0; 6], -2) };
    let (pattern, durations) = logged(0, &[failed]);
    assert!(pattern.stretches.is_empty());
    assert_eq!(durations.by_name["openat"].of(2), 10);
}

#[test]
fn a_call_that_began_before_the_window_is_left_out() {
    let (pattern, durations) = logged(100, &[pread(99, 0, 64, 0), pread(110, 0, 64, 0)]);
    assert_eq!(pattern.stretches[0].calls(), 1);
    assert_eq!(durations.by_name["pread64"].of(1), 5);
}

#[test]
fn loading_a_program_is_told_only_where_it_did_nothing_else() {
    let mut log = CallLog::new(0, true);
    log.begin(0);
    log.take(&pread(10, 0, 832, 0));
    let mut short = CallLog::new(0, true);
    short.begin(0);
    short.take(&pread(10, 0, 832, 0));
    assert_eq!(short.finish(path).0.stretches[0].steps[0].bytes, 832);
    log.take(&pread(LOADING_NS, 0, 4096, 0));
    log.take(&pread(LOADING_NS + MAX_STRETCH_NS - 10, 4096, 4096, 0));
    log.take(&pread(LOADING_NS + MAX_STRETCH_NS + 10, 8192, 4096, 0));
    let stretches = log.finish(path).0.stretches;
    assert_eq!(stretches.iter().map(Stretch::calls).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(stretches[1].steps[0].gap_ns, 15, "a stretch begins where the one before ends");
}

#[test]
fn the_files_with_most_calls_keep_their_names() {
    let calls: Vec<CallRecord> = (0..300)
        .flat_map(|n| {
            let times = if n == 299 { 3 } else { 1 };
            (0..times)
                .map(move |i| CallRecord { file: file(n + 1), ..pread(n * 100 + i * 10, i * 4096, 64, 0) })
        })
        .collect();
    let (pattern, _) = logged(0, &calls);
    assert_eq!(pattern.files.len(), MAX_FILES + 1);
    assert_eq!(pattern.files[0].path, "/300");
    assert_eq!(
        (pattern.files[MAX_FILES].path.as_str(), pattern.files[MAX_FILES].kind.as_str()),
        ("?", "unknown")
    );
    assert!(pattern.stretches[0].steps.iter().all(|step| step.file.is_some()));
}

#[test]
fn a_stretch_is_bounded() {
    let calls: Vec<_> =
        (0..2 * CallPattern::MAX_STRETCH_STEPS as u64).map(|i| pread(i * 10, i * i, 1, 0)).collect();
    assert_eq!(logged(0, &calls).0.stretches[0].steps.len(), CallPattern::MAX_STRETCH_STEPS);
}

#[test]
fn threads_that_take_turns_are_told_from_those_that_call_at_the_same_time() {
    let of = |tid, entered_ns, returned_ns| CallRecord { tid, returned_ns, ..pread(entered_ns, 0, 64, 0) };
    let overlap = |calls: &[CallRecord]| logged(0, calls).0.overlap;
    assert_eq!(overlap(&[of(1, 10, 110), of(2, 120, 220), of(1, 220, 320)]), Some(0.0));
    // Thread 2 is in the kernel for half of the time of the first call, and all of its own.
    assert_eq!(overlap(&[of(1, 0, 100), of(2, 50, 150), of(2, 160, 260)]), Some(50.0 / 300.0));
    let socket =
        CallRecord { file: Some(FileKey([9, file(9).unwrap().0[1] ^ REGULAR ^ SOCKET])), ..of(2, 0, 900) };
    assert_eq!(overlap(&[of(1, 10, 110), socket, of(1, 120, 220)]), Some(0.0), "who waits for others");
    assert_eq!(overlap(&[socket]), None);
    let fault_of = |tid, entered_ns| CallRecord { tid, ..fault(entered_ns, MAPPED) };
    let faults = recorded(&[map_file(1), fault_of(1, 10), fault_of(2, 10)]);
    assert_eq!(faults.overlap, Some(7.0 / 19.0), "and 5 ns of mmap");
}

#[test]
fn a_record_of_every_call_has_all_of_them_and_the_time_between_without_other_calls() {
    let mut log = CallLog::of_all(100);
    let nap = call(libc::SYS_nanosleep, 150, [0; 6], 0);
    let calls = [
        pread(99, 0, 64, 0),
        pread(110, 0, 64, 0),
        CallRecord { returned_ns: 950, file: None, ..nap },
        pread(960, 64, 64, 0),
        call(libc::SYS_fsync, 1000, [7, 0, 0, 0, 0, 0], 0),
    ];
    calls.iter().for_each(|call| log.take(call));
    let (pattern, durations) = log.finish(path);
    let record = pattern.record.clone().expect("it was asked for");
    assert_eq!((record.calls, record.length_ns, record.missing), (4, 905, 0), "one began earlier");
    let [reads, sync] = pattern.stretches[0].steps.as_slice() else { panic!("{pattern:?}") };
    // 35 ns before the nap, and 10 after it.
    assert_eq!((reads.count, reads.gap_ns, reads.time_ns), (2, 45, 10));
    assert_eq!((sync.gap_ns, sync.argument), (35, 1));
    let totals: Vec<_> = record.totals.iter().map(|t| (t.kind, t.calls, t.bytes, t.time_ns)).collect();
    assert_eq!(totals, [(StepKind::Read, 2, 128, 10), (StepKind::Sync, 1, 0, 5)]);
    assert_eq!(durations.by_name["nanosleep"].of(1), 800);
}

/// A page fault that takes 7 ns.
fn fault(entered_ns: u64, address: u64) -> CallRecord {
    let arguments = [address, 0, 0, 0, 0, 0];
    CallRecord { number: FAULT, returned_ns: entered_ns + 7, file: None, ..call(0, entered_ns, arguments, 0) }
}

const MAPPED: u64 = 1 << 30;

/// 64 pages of the file from its fourth page on.
fn map_file(entered_ns: u64) -> CallRecord {
    call(libc::SYS_mmap, entered_ns, [0, 64 * PAGE, 1, 1, 7, 4 * PAGE], MAPPED as i64)
}

/// What comes of these records, all calls being recorded.
fn recorded(records: &[CallRecord]) -> CallPattern {
    let mut log = CallLog::of_all(0);
    records.iter().for_each(|record| log.take(record));
    log.finish(path).0
}

#[test]
fn faults_on_a_mapped_file_are_touches_and_no_calls() {
    let mut records = vec![pread(10, 0, 64, 0), map_file(20)];
    records.extend((0..3).map(|n| fault(100 + n * 10, MAPPED + n * 2 * PAGE + 77)));
    // Anonymous memory: the program's own time.
    records.extend([fault(130, 5000), pread(150, 0, 64, 0)]);
    let pattern = recorded(&records);
    let record = pattern.record.clone().unwrap();
    assert_eq!((record.calls, record.faults, record.fault_time_ns), (3, 4, 28));
    let of = |kind| record.totals.iter().find(|t| t.kind == kind).map(|t| (t.calls, t.bytes, t.time_ns));
    assert_eq!(of(StepKind::Touch), Some((3, 3 * PAGE, 21)));
    assert_eq!(of(StepKind::Read), Some((2, 128, 10)));
    let steps = &pattern.stretches[0].steps;
    let kinds: Vec<StepKind> = steps.iter().map(|step| step.kind).collect();
    assert_eq!(kinds, [StepKind::Read, StepKind::Map, StepKind::Touch, StepKind::Read]);
    let touches = &steps[2];
    assert_eq!((touches.place, touches.stride, touches.count), (Some(4 * PAGE), 2 * PAGE as i64, 3));
    // 75 ns since mmap returned, and twice 3 ns.
    assert_eq!((touches.gap_ns, touches.time_ns, touches.file), (75 + 6, 21, steps[1].file));
    assert_eq!(steps[3].gap_ns, 150 - 127, "with the fault on anonymous memory");
}

#[test]
fn touches_know_the_last_advice_for_their_place() {
    let advise = |at: u64, pages: u64, advice: u64| {
        let arguments = [MAPPED + at * PAGE, pages * PAGE, advice, 0, 0, 0];
        CallRecord { file: None, ..call(libc::SYS_madvise, 30, arguments, 0) }
    };
    let argument = |advices: &[CallRecord], page: u64| {
        let mut records = vec![map_file(10)];
        records.extend_from_slice(advices);
        records.push(fault(100, MAPPED + page * PAGE));
        let steps = recorded(&records).stretches.remove(0).steps;
        let touch = steps.last().map(|step| (step.kind, step.place, step.argument)).unwrap();
        assert_eq!((touch.0, touch.1), (StepKind::Touch, Some((4 + page) * PAGE)));
        assert!(steps[1..].iter().all(|step| step.file == Some(0) && step.place.is_some()));
        touch.2
    };
    assert_eq!(argument(&[], 9), 0);
    assert_eq!(argument(&[advise(0, 64, 1)], 9), 1);
    assert_eq!(argument(&[advise(0, 64, 1), advise(0, 64, 3)], 9), 1, "MADV_WILLNEED changes no order");
    assert_eq!(argument(&[advise(0, 64, 1), advise(8, 4, 2)], 9), 2);
    assert_eq!(argument(&[advise(0, 64, 1), advise(8, 4, 2)], 12), 1, "behind that part");
}

#[test]
fn what_is_unmapped_or_anonymous_is_no_touch_and_children_have_the_mappings_of_their_parent() {
    let touches = |records: &[CallRecord]| {
        let pattern = recorded(records);
        let totals = pattern.record.unwrap().totals;
        totals.iter().filter(|t| t.kind == StepKind::Touch).map(|t| t.calls).sum::<u64>()
    };
    let unmap = call(libc::SYS_munmap, 30, [MAPPED, 64 * PAGE, 0, 0, 0, 0], 0);
    let shared = libc::MAP_ANONYMOUS as u64;
    let over = call(libc::SYS_mmap, 30, [0, 32 * PAGE, 0, shared, 0, 0], MAPPED as i64);
    let touch = |page: u64| fault(100, MAPPED + page * PAGE);
    assert_eq!(touches(&[map_file(10), touch(3)]), 1);
    assert_eq!(touches(&[map_file(10), unmap, touch(3)]), 0);
    assert_eq!(touches(&[map_file(10), CallRecord { file: None, ..over }, touch(3), touch(40)]), 1);
    let forks = CallRecord { file: None, ..call(libc::SYS_clone, 30, [17, 0, 0, 0, 0, 0], 2) };
    let by_child = |record: CallRecord| CallRecord { pid: 2, tid: 2, ..record };
    let executes = by_child(CallRecord { file: None, ..call(libc::SYS_execve, 40, [0; 6], 0) });
    assert_eq!(touches(&[map_file(10), forks, by_child(touch(3))]), 1);
    assert_eq!(touches(&[map_file(10), by_child(touch(3))]), 0, "of another program");
    assert_eq!(touches(&[map_file(10), forks, executes, by_child(touch(3))]), 0);
}

#[test]
fn windows_of_calls_have_no_touches() {
    let (pattern, _) = logged(0, &[map_file(10), fault(20, MAPPED), pread(40, 0, 64, 0)]);
    let kinds: Vec<StepKind> = pattern.stretches[0].steps.iter().map(|step| step.kind).collect();
    assert_eq!(kinds, [StepKind::Map, StepKind::Read]);
}
