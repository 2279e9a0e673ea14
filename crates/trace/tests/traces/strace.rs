//! strace's output: what is known of descriptors, positions and processes.

use iowhy_core::request::{Marks, Op, Request};
use iowhy_trace::Options;

use crate::common::{Read, open, read_golden, to_end};

fn read(text: &str) -> Read {
    to_end(open(text.as_bytes().to_vec(), &Options::default()).unwrap(), 100).unwrap()
}

/// Operation, file, offset, bytes.
fn moves(read: &Read) -> Vec<(Op, &str, u64, u64)> {
    read.requests
        .iter()
        .filter(|r| matches!(r.op, Op::Read | Op::Write | Op::Sync | Op::Discard))
        // cat tries copy_file_range first, which fails on a file that is open for appending.
        .filter(|r| r.bytes > 0 || r.op == Op::Sync || r.op == Op::Discard)
        .map(|r| (r.op, read.names.get(r.object).unwrap(), r.offset, r.bytes))
        .collect()
}

#[test]
fn a_captured_program() {
    // sort -r in.txt > out.txt beside dd if=in.txt of=copy.txt bs=1000 count=4 skip=2 seek=1 conv=notrunc,fdatasync; then
    // cat in.txt >> copy.txt; rm out.txt. in.txt has 8893 bytes.
    let read = read_golden("program.strace", &Options::default());
    let on = |name: &str, op: Op| -> Vec<(u64, u64)> {
        moves(&read).into_iter().filter(|m| m.1 == name && m.0 == op).map(|m| (m.2, m.3)).collect()
    };
    let dd: Vec<(u64, u64)> = (0..4).map(|i| (2000 + i * 1000, 1000)).collect();
    assert!(
        on("in.txt", Op::Read).windows(4).any(|four| four == dd)
            || contains_all(&on("in.txt", Op::Read), &dd)
    );
    let written: Vec<(u64, u64)> = (0..4).map(|i| (1000 + i * 1000, 1000)).chain([(5000, 8893)]).collect();
    assert_eq!(on("copy.txt", Op::Write), written);
    assert_eq!(on("copy.txt", Op::Sync), [(0, 0)]);
    let sorted: u64 = on("out.txt", Op::Write).iter().map(|m| m.1).sum();
    assert_eq!((sorted, on("out.txt", Op::Discard).len()), (8893, 1));
    assert!(read.requests.is_sorted_by_key(|r| r.time_ns));
    assert_eq!(read.lost("not a line of"), 0);
    // Four processes asked for something.
    let mut askers: Vec<u32> = read.requests.iter().map(|r| r.stream).collect();
    askers.sort_unstable();
    askers.dedup();
    assert!(askers.len() >= 4, "{askers:?}");
}

fn contains_all(list: &[(u64, u64)], wanted: &[(u64, u64)]) -> bool {
    wanted.iter().all(|w| list.contains(w))
}

#[test]
fn positions_follow_reads_seeks_duplicates_and_forks() {
    let read = read(
        r#"10 1.000001 openat(AT_FDCWD, "/a", O_RDWR) = 3 <0.000010>
10 1.000002 read(3, "x"..., 100) = 100 <0.000005>
10 1.000003 dup(3) = 4 <0.000001>
10 1.000004 lseek(4, 1000, SEEK_SET) = 1000 <0.000001>
10 1.000005 write(3, "y", 10) = 10 <0.000002>
10 1.000006 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 11 <0.000050>
11 1.000007 read(4, "z", 5) = 5 <0.000001>
11 1.000008 close(3) = 0 <0.000001>
11 1.000009 pread64(4, "z", 7, 4096) = 7 <0.000001>
10 1.000010 read(3, "w", 1) = 1 <0.000001>
10 1.000011 preadv2(3, [{iov_base="", iov_len=3}], 1, -1, 0) = 3 <0.000001>
10 1.000012 pwritev(3, [{iov_base="a,b)", iov_len=4}], 1, 8192) = 4 <0.000001>
10 1.000013 read(3, "", 10) = -1 EIO (Input/output error) <0.000001>
10 1.000014 fsync(3) = 0 <0.001000>
"#,
    );
    let expected = [
        (Op::Read, "/a", 0, 100),
        (Op::Write, "/a", 1000, 10),
        (Op::Read, "/a", 1010, 5),
        (Op::Read, "/a", 4096, 7),
        (Op::Read, "/a", 1015, 1),
        (Op::Read, "/a", 1016, 3),
        (Op::Write, "/a", 8192, 4),
        (Op::Sync, "/a", 0, 0),
    ];
    assert_eq!(moves(&read), expected);
    let failed: Vec<&Request> = read.requests.iter().filter(|r| r.marks.has(Marks::FAILED)).collect();
    assert_eq!((failed.len(), failed[0].time_ns), (1, 1_000_013_000));
    let sync = read.requests.last().unwrap();
    assert_eq!((sync.latency_ns, sync.stream), (1_000_000, 10));
    assert!(read.losses.is_empty(), "{:?}", read.losses);
}

#[test]
fn calls_that_were_interrupted_in_print_are_joined() {
    let read = read(
        r#"10 1.000001 openat(AT_FDCWD, "/a", O_RDONLY <unfinished ...>
11 1.000002 openat(AT_FDCWD, "/b", O_RDONLY) = 3 <0.000001>
10 1.000003 <... openat resumed>) = 3 <0.000009>
10 1.000004 read(3,  <unfinished ...>
11 1.000005 read(3, "b", 10) = 10 <0.000001>
10 1.000006 <... read resumed>"a"..., 4096) = 4096 <0.000300>
11 1.000007 read(3,  <unfinished ...>
12 1.000008 <... read resumed>"", 1) = 1 <0.000001>
"#,
    );
    assert_eq!(moves(&read), [(Op::Read, "/a", 0, 4096), (Op::Read, "/b", 0, 10)]);
    let reads: Vec<(u64, u64)> =
        read.requests.iter().filter(|r| r.op == Op::Read).map(|r| (r.time_ns, r.latency_ns)).collect();
    assert_eq!(reads, [(1_000_004_000, 300_000), (1_000_005_000, 1000)]);
    assert_eq!((read.lost("beginning is not"), read.lost("without an end")), (1, 1));
}

#[test]
fn a_child_that_speaks_before_its_birth_is_printed_inherits() {
    let read = read(
        r#"10 1.000001 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000001>
10 1.000002 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
11 1.000003 read(3, "a", 10) = 10 <0.000001>
10 1.000004 <... clone resumed>) = 11 <0.000100>
10 1.000005 read(3, "a", 10) = 10 <0.000001>
"#,
    );
    assert_eq!(moves(&read), [(Op::Read, "/a", 0, 10), (Op::Read, "/a", 10, 10)]);
}

#[test]
fn what_is_no_file_or_not_known_is_told_apart() {
    let read = read(
        r#"1.000001 read(0, "typed", 100) = 5 <0.000001>
1.000002 pipe2([3, 4], O_CLOEXEC) = 0 <0.000001>
1.000003 read(3, "piped", 100) = 5 <0.000001>
1.000004 socket(AF_INET, SOCK_STREAM, 0) = 5 <0.000001>
1.000005 write(5, "sent", 4) = 4 <0.000001>
1.000006 read(7</etc/hosts>, "127", 3) = 3 <0.000001>
1.000007 read(8<pipe:[123]>, "x", 3) = 3 <0.000001>
1.000008 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 7</etc/hosts>, 0x2000) = 0x7f00 <0.000001>
1.000009 io_uring_enter(6, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1 <0.000001>
1.000010 openat(AT_FDCWD, "/log", O_WRONLY|O_APPEND|O_DSYNC) = 9 <0.000001>
1.000011 write(9, "line", 4) = 4 <0.000001>
1.000012 fstat(9, {st_mode=S_IFREG|0644, st_size=100, ...}) = 0 <0.000001>
1.000013 write(9, "line", 4) = 4 <0.000001>
1.000014 sendfile(5, 7, [2048] => [2058], 10) = 10 <0.000001>
1.000015 fallocate(9, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 50) = 0 <0.000001>
1.000016 exit_group(0) = ?
"#,
    );
    let expected = [
        (Op::Read, "/etc/hosts", 0, 3),
        (Op::Write, "/log", 0, 4),
        (Op::Write, "/log", 100, 4),
        (Op::Read, "/etc/hosts", 2048, 10),
        (Op::Discard, "/log", 0, 50),
    ];
    assert_eq!(moves(&read), expected);
    for (words, count) in
        [("before the trace began", 1), ("mapped", 1), ("asynchronous", 1), ("appending", 2), ("left out", 1)]
    {
        assert_eq!(read.lost(words), count, "{words}: {:?}", read.losses);
    }
    let map = read.requests.iter().find(|r| r.op == Op::Other && r.offset == 0x2000);
    assert!(map.is_some());
    assert!(read.requests.iter().filter(|r| r.op == Op::Write).all(|r| r.marks.has(Marks::SYNC)));
}
