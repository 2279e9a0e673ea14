//! Known answers and laws for bursts of system calls.

use iowhy_core::profile::{CallSample, FileUse, SampledShare, StepKind};
use proptest::prelude::*;

use super::*;
use crate::event::{Event, Kind, Trace};

const PID: u32 = 100;

fn name(number: i64) -> Option<&'static str> {
    Some(match number as libc::c_long {
        libc::SYS_read => "read",
        libc::SYS_write => "write",
        libc::SYS_pread64 => "pread64",
        libc::SYS_lseek => "lseek",
        libc::SYS_openat => "openat",
        _ => return None,
    })
}

/// A tracer and a clock that moves by 100 ns with every record.
struct Bench {
    tracer: CallTracer,
    now: u64,
}

impl Bench {
    fn new(open: &[(u32, Vec<OpenFile>)]) -> Self {
        let mut tracer = CallTracer::new(name, 1_000_000);
        tracer.begin(0, open);
        Bench { tracer, now: 0 }
    }

    fn event(&mut self, pid: u32, tid: u32, kind: Kind<'_>) -> bool {
        self.now += 100;
        self.tracer.event(&Event { time_ns: self.now, cpu: 0, pid, tid, kind })
    }

    fn enter(&mut self, pid: u32, tid: u32, number: i64, first: &[u64]) {
        let mut arguments = [0; 6];
        arguments[..first.len()].copy_from_slice(first);
        self.event(pid, tid, Kind::Trace(Trace::Enter { number, arguments }));
    }

    fn leave(&mut self, pid: u32, tid: u32, number: i64, value: i64) {
        self.event(pid, tid, Kind::Trace(Trace::Return { number, value }));
    }

    /// A call of the only thread.
    fn call(&mut self, number: i64, arguments: &[u64], value: i64) {
        self.enter(PID, PID, number, arguments);
        self.leave(PID, PID, number, value);
    }

    fn finish(mut self) -> (CallSample, Vec<FileUse>) {
        self.tracer.end(self.now);
        self.tracer.finish(false)
    }
}

fn regular(descriptor: i32, path: &str, flags: i32, position: u64) -> OpenFile {
    let (path, kind) = (path.to_owned(), "regular".to_owned());
    OpenFile { descriptor, path, kind, flags: flags as u32, position: Some(position) }
}

fn find<'a>(files: &'a [FileUse], path: &str) -> &'a FileUse {
    files.iter().find(|f| f.path == path).unwrap_or_else(|| panic!("{path} is not among {files:?}"))
}

fn share(hits: u64, n: u64) -> SampledShare {
    SampledShare { hits, n }
}

#[test]
fn sequential_reads_from_the_position_of_the_snapshot() {
    let mut b = Bench::new(&[(PID, vec![regular(3, "/a", 0, 8192)])]);
    for _ in 0..4 {
        b.call(libc::SYS_read, &[3, 0, 4096], 4096);
    }
    b.call(libc::SYS_read, &[3, 0, 4096], 0);
    b.call(libc::SYS_read, &[3, 0, 4096], -4);
    let (calls, files) = b.finish();
    let count = &calls.calls[0];
    assert_eq!((count.name.as_str(), count.calls, count.failed, count.bytes), ("read", 6, 1, 16_384));
    assert_eq!((count.time_ns, count.per_burst.as_slice()), (600, [6].as_slice()));
    assert_eq!((calls.bursts, calls.observed_ns), (1, 1200));
    let reads = &find(&files, "/a").reads;
    assert_eq!((reads.calls, reads.bytes, reads.distinct_bytes, reads.sizes[12]), (5, 16_384, 16_384, 5));
    assert_eq!((reads.sequential, reads.unaligned, reads.repeated), (share(3, 3), share(0, 4), share(0, 4)));
    assert_eq!((reads.direct, reads.synchronous), (share(0, 5), share(0, 5)));
}

#[test]
fn random_preads_repeat_and_are_unaligned_where_they_are() {
    let mut b = Bench::new(&[(PID, vec![regular(3, "/a", libc::O_DIRECT, 0)])]);
    for offset in [0, 40_960, 100, 0] {
        b.call(libc::SYS_pread64, &[3, 0, 4096, offset], 4096);
    }
    let (_, files) = b.finish();
    let reads = &find(&files, "/a").reads;
    assert_eq!((reads.sequential, reads.unaligned, reads.direct), (share(0, 3), share(1, 4), share(4, 4)));
    assert_eq!((reads.repeated, reads.distinct_bytes), (share(2, 4), 4096 + 4096 + 100));
}

#[test]
fn a_seek_before_each_read_is_told_and_sets_the_position() {
    let mut b = Bench::new(&[(PID, vec![regular(3, "/a", 0, 0)])]);
    for _ in 0..3 {
        b.call(libc::SYS_lseek, &[3, 0, 0], 4096);
        b.call(libc::SYS_read, &[3, 0, 4096], 4096);
    }
    b.call(libc::SYS_read, &[3, 0, 4096], 4096);
    let (_, files) = b.finish();
    let reads = &find(&files, "/a").reads;
    assert_eq!((reads.after_seek, reads.sequential), (share(3, 4), share(1, 3)));
    assert_eq!((reads.repeated, reads.distinct_bytes), (share(2, 4), 8192));
}

#[test]
fn appends_are_sequential_and_syncs_are_counted() {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_DSYNC;
    let mut b = Bench::new(&[(PID, vec![regular(3, "/log", flags, 77)])]);
    for _ in 0..3 {
        b.call(libc::SYS_write, &[3, 0, 100], 100);
        b.call(libc::SYS_fdatasync, &[3], 0);
    }
    let (_, files) = b.finish();
    let log = find(&files, "/log");
    assert_eq!((log.syncs, log.writes.sequential, log.writes.synchronous), (3, share(3, 3), share(3, 3)));
    assert_eq!((log.writes.unaligned, log.writes.distinct_bytes), (share(0, 0), 300));
}

#[test]
fn a_file_opened_in_the_burst_gets_its_path_later_and_shares_its_bytes() {
    let mut b = Bench::new(&[(PID, vec![regular(3, "/a", 0, 0)])]);
    b.call(libc::SYS_pread64, &[3, 0, 4096, 0], 4096);
    b.call(libc::SYS_openat, &[0, 0, libc::O_DIRECT as u64], 4);
    b.call(libc::SYS_read, &[4, 0, 8192], 8192);
    b.tracer.settle(b.now, &mut |pid, fd| (pid == PID && fd == 4).then(|| regular(4, "/a", 0, 999)));
    b.call(libc::SYS_close, &[4], 0);
    let (_, files) = b.finish();
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].opens, files[0].reads.bytes, files[0].reads.distinct_bytes), (1, 12_288, 8192));
    assert_eq!((files[0].reads.repeated, files[0].reads.direct), (share(1, 2), share(1, 2)));
}

#[test]
fn an_open_tells_what_it_opened_also_of_a_file_that_is_gone_before_anybody_looks() {
    let mut b = Bench::new(&[(PID, vec![])]);
    let made = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC;
    for flags in [made, libc::O_RDONLY] {
        b.call(libc::SYS_openat, &[0, 0, flags as u64], 4);
        b.call(libc::SYS_fdatasync, &[4], 0);
        b.call(libc::SYS_close, &[4], 0);
    }
    // One that fails opens nothing.
    b.call(libc::SYS_openat, &[0, 0, 0], -2);
    b.tracer.end(b.now);
    let pattern = b.tracer.take_pattern();
    let seen: Vec<(StepKind, Option<u32>)> =
        pattern.stretches[0].steps.iter().map(|s| (s.kind, s.file)).collect();
    let (open, sync, close) = (StepKind::Open, StepKind::Sync, (StepKind::Close, None));
    assert_eq!(seen, [(open, Some(0)), (sync, Some(0)), close, (open, Some(1)), (sync, Some(1)), close]);
    let flags: Vec<Option<u32>> = pattern.files.iter().map(|f| f.flags).collect();
    assert_eq!(flags, [Some((libc::O_RDWR | libc::O_CREAT) as u32), Some(0)]);
}

#[test]
fn a_path_read_after_the_close_is_not_believed() {
    let mut b = Bench::new(&[(PID, vec![])]);
    b.call(libc::SYS_openat, &[0, 0, 0], 4);
    b.call(libc::SYS_read, &[4, 0, 100], 100);
    // The answer comes at a time when the descriptor was already closed and given to another file.
    b.tracer.settle(b.now + 10_000, &mut |_, _| Some(regular(4, "/wrong", 0, 0)));
    b.call(libc::SYS_close, &[4], 0);
    let (_, files) = b.finish();
    assert_eq!(files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), [UNKNOWN]);
    assert_eq!((files[0].opens, files[0].reads.bytes), (1, 100));
}

#[test]
fn unknown_files_share_no_bytes() {
    let mut b = Bench::new(&[(PID, vec![])]);
    for _ in 0..3 {
        b.call(libc::SYS_openat, &[0, 0, 0], 4);
        b.call(libc::SYS_read, &[4, 0, 100], 100);
        b.call(libc::SYS_close, &[4], 0);
    }
    let (_, files) = b.finish();
    assert_eq!((files[0].opens, files[0].reads.distinct_bytes), (3, 300));
    assert_eq!((files[0].reads.repeated, files[0].reads.sequential), (share(0, 3), share(0, 0)));
}

#[test]
fn duplicates_and_children_share_the_position_until_exec_closes_it() {
    let mut b = Bench::new(&[(PID, vec![regular(3, "/a", libc::O_CLOEXEC, 4096)])]);
    b.call(libc::SYS_dup, &[3], 7);
    b.call(libc::SYS_read, &[7, 0, 4096], 4096);
    b.enter(PID, PID, libc::SYS_clone, &[0]);
    // The child comes first.
    b.leave(200, 200, libc::SYS_clone, 0);
    b.enter(200, 200, libc::SYS_read, &[3, 0, 4096]);
    b.leave(200, 200, libc::SYS_read, 4096);
    b.leave(PID, PID, libc::SYS_clone, 200);
    b.call(libc::SYS_read, &[3, 0, 4096], 4096);
    b.enter(200, 200, libc::SYS_execve, &[]);
    b.leave(200, 200, libc::SYS_execve, 0);
    b.enter(200, 200, libc::SYS_read, &[3, 0, 512]);
    b.leave(200, 200, libc::SYS_read, 512);
    let (_, files) = b.finish();
    let reads = &find(&files, "/a").reads;
    assert_eq!((reads.bytes, reads.distinct_bytes, reads.sequential), (12_288, 12_288, share(2, 2)));
    assert_eq!(find(&files, UNKNOWN).reads.bytes, 512, "what exec closed is another file now");
}

#[test]
fn threads_share_the_table_and_a_threads_clone3_makes_none() {
    let mut b = Bench::new(&[(PID, vec![regular(3, "/a", 0, 0)])]);
    b.call(libc::SYS_clone3, &[], 101);
    b.enter(PID, 101, libc::SYS_read, &[3, 0, 10]);
    b.leave(PID, 101, libc::SYS_read, 10);
    b.call(libc::SYS_clone3, &[], 102);
    b.enter(102, 102, libc::SYS_read, &[3, 0, 10]);
    b.leave(102, 102, libc::SYS_read, 10);
    let (_, files) = b.finish();
    assert_eq!((files.len(), files[0].reads.bytes, files[0].reads.distinct_bytes), (1, 20, 20));
}

#[test]
fn a_relay_counts_at_both_ends() {
    let files = vec![regular(3, "/in", 0, 0), regular(4, "/out", libc::O_WRONLY, 0)];
    let mut b = Bench::new(&[(PID, files)]);
    b.call(libc::SYS_sendfile, &[4, 3, 0, 1 << 20], 65_536);
    b.call(libc::SYS_copy_file_range, &[3, 1234, 4, 0, 65_536], 65_536);
    let (calls, files) = b.finish();
    assert_eq!(calls.calls.iter().map(|c| c.bytes).sum::<u64>(), 131_072);
    let (input, output) = (&find(&files, "/in").reads, &find(&files, "/out").writes);
    assert_eq!((input.bytes, output.bytes), (131_072, 131_072));
    assert_eq!((input.sequential, output.sequential), (share(0, 0), share(1, 1)));
}

#[test]
fn maps_of_data_are_told_and_maps_of_code_are_not() {
    let mut b = Bench::new(&[(PID, vec![regular(3, "/data", 0, 0), regular(4, "/lib", 0, 0)])]);
    b.call(libc::SYS_mmap, &[0, 4096, 1, 1, 3, 0], 0x7000_0000);
    b.call(libc::SYS_mmap, &[0, 4096, 1, 2, 4, 0], 0x7100_0000);
    b.call(libc::SYS_mmap, &[0, 4096, 5, 2, 4, 0], 0x7200_0000);
    b.call(libc::SYS_mmap, &[0, 4096, 3, 0x22, u64::MAX, 0], 0x7300_0000);
    let (_, files) = b.finish();
    assert!(find(&files, "/data").mapped && !find(&files, "/lib").mapped);
    assert_eq!(files.len(), 2);
}

#[test]
fn calls_across_the_edges_of_a_burst_count_with_the_part_inside() {
    let mut b = Bench::new(&[(PID, vec![])]);
    b.leave(PID, PID, libc::SYS_read, 10);
    b.enter(PID, PID, libc::SYS_read, &[0, 0, 10]);
    b.now += 300;
    let tally = b.tracer.tally();
    assert_eq!((tally.entries, tally.returns, tally.paired), (1, 1, 0));
    let (calls, files) = b.finish();
    let count = &calls.calls[0];
    assert_eq!((count.calls, count.time_ns, count.bytes), (1, 100 + 300, 10));
    assert_eq!(files[0].reads.bytes, 10);
}

#[test]
fn a_burst_is_cut_by_losses_and_by_its_number_of_records() {
    let mut b = Bench::new(&[(PID, vec![])]);
    b.call(libc::SYS_read, &[0, 0, 1], 1);
    assert!(!b.event(0, 0, Kind::Lost { records: 5 }));
    b.call(libc::SYS_read, &[0, 0, 1], 1);
    assert_eq!(b.tracer.end(b.now), (200, 1));
    let mut tracer = CallTracer::new(name, 4);
    tracer.begin(0, &[]);
    let mut b = Bench { tracer, now: 0 };
    for _ in 0..10 {
        b.call(libc::SYS_read, &[0, 0, 1], 1);
    }
    assert_eq!(b.tracer.end(b.now), (400, 2));
    assert!(!b.tracer.finish(true).0.complete);
}

#[test]
fn entries_by_burst_are_pooled_and_keep_their_sum() {
    let mut tracer = CallTracer::new(name, 100);
    for burst in 0..1000_u64 {
        tracer.begin(burst * 1000, &[]);
        let mut b = Bench { tracer, now: burst * 1000 };
        b.call(libc::SYS_read, &[0, 0, 1], 1);
        tracer = b.tracer;
        tracer.end(burst * 1000 + 500);
    }
    let (calls, _) = tracer.finish(false);
    let per_burst = &calls.calls[0].per_burst;
    assert_eq!((per_burst.len(), per_burst[0], per_burst.iter().sum::<u32>()), (250, 4, 1000));
    assert_eq!((calls.bursts, calls.observed_ns), (1000, 500_000));
    assert_eq!((calls.burst_lengths_ns.len(), calls.burst_lengths_ns[249]), (250, 2000));
}

#[test]
fn two_hundred_files_and_the_rest() {
    let open = (0..300).map(|i| regular(i, &format!("/f{i}"), 0, 0)).collect();
    let mut b = Bench::new(&[(PID, open)]);
    for fd in 0..300_u64 {
        b.call(libc::SYS_read, &[fd, 0, 1000], 1000 - fd as i64);
    }
    let (_, files) = b.finish();
    assert_eq!((files.len(), files[0].path.as_str(), files[200].path.as_str()), (201, "/f0", OTHERS));
    assert_eq!(files[200].reads.calls, 100);
    assert_eq!(files.iter().map(|f| f.reads.bytes).sum::<u64>(), (701..=1000).sum::<u64>());
}

/// Calls that matter, and one that does not.
const NUMBERS: [i64; 20] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_close_range,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_exit_group,
    libc::SYS_mmap,
    libc::SYS_socket,
    libc::SYS_fsync,
    libc::SYS_sendfile,
    libc::SYS_getpid,
];

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![9 => prop::sample::select(NUMBERS.to_vec()), 1 => any::<i64>()]
}

fn argument() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..8, 2 => 0_u64..100_000, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn value() -> impl Strategy<Value = i64> {
    prop_oneof![6 => 0_i64..8, 3 => 0_i64..1_000_000, 1 => -600_i64..0]
}

#[derive(Clone, Debug)]
enum Step {
    Enter(i64, [u64; 6]),
    Return(i64, i64),
    Both(i64, [u64; 6], i64),
    Exit,
    Fork(u32),
    Settle(u64),
    Burst,
}

fn step() -> impl Strategy<Value = Step> {
    let arguments = || [argument(), argument(), argument(), argument(), argument(), argument()];
    prop_oneof![
        4 => (number(), arguments()).prop_map(|(n, a)| Step::Enter(n, a)),
        4 => (number(), value()).prop_map(|(n, v)| Step::Return(n, v)),
        12 => (number(), arguments(), value()).prop_map(|(n, a, v)| Step::Both(n, a, v)),
        1 => Just(Step::Exit),
        1 => (0_u32..6).prop_map(Step::Fork),
        1 => (0_u64..500).prop_map(Step::Settle),
        1 => Just(Step::Burst),
    ]
}

proptest! {
    #[test]
    fn random_streams_keep_the_laws(steps in prop::collection::vec((0_u32..4, 0_u32..6, step()), 0..400)) {
        let snapshot = [(0, vec![regular(0, "/a", libc::O_APPEND, 5), regular(1, "/a", 0, 5)]), (1, vec![regular(2, "/b", 0, 0)])];
        let mut b = Bench::new(&snapshot);
        let (mut entries, mut returns) = (0, 0);
        for (pid, tid, step) in steps {
            match step {
                Step::Enter(number, arguments) => {
                    b.enter(pid, tid, number, &arguments);
                    entries += 1;
                }
                Step::Return(number, value) => {
                    b.leave(pid, tid, number, value);
                    returns += 1;
                }
                Step::Both(number, arguments, value) => {
                    b.enter(pid, tid, number, &arguments);
                    b.leave(pid, tid, number, value);
                    (entries, returns) = (entries + 1, returns + 1);
                }
                Step::Exit => { b.event(pid, tid, Kind::Exit); }
                Step::Fork(parent) => { b.event(pid, tid, Kind::Fork { parent_pid: parent, parent_tid: parent }); }
                Step::Settle(later) => {
                    let kind = ["regular", "pipe"][(later % 2) as usize].to_owned();
                    let ask = &mut |_, fd: i32| (fd % 3 != 0).then(|| OpenFile { kind: kind.clone(), ..regular(fd, "/c", 0, 0) });
                    b.tracer.settle(b.now + later, ask);
                }
                Step::Burst => {
                    b.tracer.end(b.now);
                    b.tracer.begin(b.now, &snapshot);
                }
            }
        }
        b.tracer.end(b.now);
        let tally = b.tracer.tally();
        prop_assert_eq!((tally.entries, tally.returns), (entries, returns));
        prop_assert_eq!(tally.entries, tally.paired + tally.open);
        let now = b.now;
        let (calls, files) = b.finish();
        prop_assert_eq!(calls.observed_ns, now);
        // A relay is counted once as a call and at both ends as use of files.
        let times = |c: &iowhy_core::profile::CallCount| {
            let relays = [libc::SYS_sendfile, libc::SYS_copy_file_range, libc::SYS_splice];
            if relays.iter().any(|n| c.name == format!("syscall_{n}")) { 2 } else { 1 }
        };
        let by_calls: u64 = calls.calls.iter().map(|c| c.bytes * times(c)).sum();
        let by_files: u64 = files.iter().map(|f| f.reads.bytes + f.writes.bytes).sum();
        prop_assert_eq!(by_calls, by_files);
        for call in &calls.calls {
            prop_assert_eq!(call.per_burst.iter().map(|c| u64::from(*c)).sum::<u64>(), call.calls);
            prop_assert!(call.failed <= call.calls);
        }
        for access in files.iter().flat_map(|f| [&f.reads, &f.writes]) {
            prop_assert!(access.distinct_bytes <= access.bytes);
            prop_assert_eq!(access.sizes.iter().sum::<u64>(), access.calls);
            // Bytes are repeated exactly where some call repeated them.
            prop_assert_eq!(access.repeated.hits > 0, access.distinct_bytes < access.bytes);
            for s in [access.sequential, access.unaligned, access.repeated, access.after_seek, access.direct] {
                prop_assert!(s.hits <= s.n && s.n <= access.calls);
            }
        }
    }
}
