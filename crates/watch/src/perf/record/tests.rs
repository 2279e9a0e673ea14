//! Records made by hand, of every type, whole and broken.

use proptest::prelude::*;

use super::*;

/// A record: type, flags, and its words after the header; the size is filled in.
fn record(kind: u32, flags: u32, words: &[u64]) -> Vec<u64> {
    let size = (words.len() + 1) * 8;
    let mut header = [0u8; 8];
    header[..4].copy_from_slice(&kind.to_ne_bytes());
    header[4..6].copy_from_slice(&(flags as u16).to_ne_bytes());
    header[6..].copy_from_slice(&(size as u16).to_ne_bytes());
    let mut record = vec![u64::from_ne_bytes(header)];
    record.extend(words);
    record
}

fn two(first: u32, second: u32) -> u64 {
    let mut bytes = [0u8; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect()
}

/// Task 100/101 at 5000 ns on CPU 3.
fn trailer() -> [u64; 4] {
    [two(100, 101), 5000, two(3, 0), 9]
}

fn with_trailer(kind: u32, flags: u32, body: &[u64]) -> Vec<u64> {
    record(kind, flags, &[body, &trailer()].concat())
}

fn ids() -> Ids {
    let mut ids = Ids::default();
    ids.add(1, Role::Clock { period_ns: 1, stack_bytes: 0 });
    ids.add(3, Role::Clock { period_ns: 1, stack_bytes: 64 });
    ids.add(2, Role::Leaving);
    ids.add(9, Role::Side);
    ids
}

fn sample_of(id: u64, body: &[u64]) -> Vec<u64> {
    record(b::PERF_RECORD_SAMPLE, 1, &[&[id, two(100, 101), 5000, two(3, 0)], body].concat())
}

/// The event of a record; its CPU and thread are compared with those that every record here has.
fn event(record: &[u64]) -> (u32, u32, Kind<'_>) {
    match decode(record, 5000, &ids()) {
        Decoded::Event(event) => {
            assert_eq!((event.time_ns, event.cpu), (5000, 3));
            (event.pid, event.tid, event.kind)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn switches() {
    let out = with_trailer(b::PERF_RECORD_SWITCH, b::PERF_RECORD_MISC_SWITCH_OUT, &[]);
    assert_eq!(event(&out), (100, 101, Kind::Out { preempted: false }));
    let both = b::PERF_RECORD_MISC_SWITCH_OUT | b::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    let out = with_trailer(b::PERF_RECORD_SWITCH, both, &[]);
    assert_eq!(event(&out), (100, 101, Kind::Out { preempted: true }));
    let wide = with_trailer(b::PERF_RECORD_SWITCH_CPU_WIDE, 0, &[two(7, 8)]);
    assert_eq!(event(&wide), (100, 101, Kind::In));
}

#[test]
fn tasks_are_those_of_the_record_and_not_of_the_cpu() {
    let body = [two(200, 100), two(201, 101), 5000];
    let fork = with_trailer(b::PERF_RECORD_FORK, 0, &body);
    assert_eq!(event(&fork), (200, 201, Kind::Fork { parent_pid: 100, parent_tid: 101 }));
    assert_eq!(event(&with_trailer(b::PERF_RECORD_EXIT, 0, &body)), (200, 201, Kind::Exit));
    let name = with_trailer(
        b::PERF_RECORD_COMM,
        b::PERF_RECORD_MISC_COMM_EXEC,
        &[&[two(7, 8)][..], &words(b"dd")].concat(),
    );
    assert_eq!(event(&name), (7, 8, Kind::Name { name: "dd", exec: true }));
}

#[test]
fn maps_of_both_kinds() {
    let path = words(b"/lib/libc.so.6\0");
    let body = [&[two(7, 8), 0x1000, 0x2000, 0x3000][..], &path].concat();
    let expected =
        |code| Kind::Map { start: 0x1000, length: 0x2000, offset: 0x3000, code, path: "/lib/libc.so.6" };
    assert_eq!(event(&with_trailer(b::PERF_RECORD_MMAP, 0, &body)), (7, 8, expected(true)));
    let data = with_trailer(b::PERF_RECORD_MMAP, b::PERF_RECORD_MISC_MMAP_DATA, &body);
    assert_eq!(event(&data), (7, 8, expected(false)));
    for (protection, code) in [(1, false), (5, true)] {
        let body = [&[two(7, 8), 0x1000, 0x2000, 0x3000, 0, 0, 0, two(protection, 2)][..], &path].concat();
        assert_eq!(event(&with_trailer(b::PERF_RECORD_MMAP2, 0, &body)), (7, 8, expected(code)));
    }
}

#[test]
fn losses_and_throttling() {
    let lost = with_trailer(b::PERF_RECORD_LOST, 0, &[9, 44]);
    assert_eq!(event(&lost), (100, 101, Kind::Lost { records: 44 }));
    let lost = with_trailer(b::PERF_RECORD_LOST_SAMPLES, 0, &[45]);
    assert_eq!(event(&lost), (100, 101, Kind::Lost { records: 45 }));
    let throttle = with_trailer(b::PERF_RECORD_THROTTLE, 0, &[1, 2, 3]);
    assert_eq!(decode(&throttle, 0, &ids()), Decoded::Throttled);
    let unthrottle = with_trailer(b::PERF_RECORD_UNTHROTTLE, 0, &[1, 2, 3]);
    assert_eq!(decode(&unthrottle, 0, &ids()), Decoded::Other);
}

#[test]
fn chains_are_split_at_their_markers() {
    let body = [6, b::PERF_CONTEXT_KERNEL, 10, 11, b::PERF_CONTEXT_USER, 20, 21];
    let tick = sample_of(1, &body);
    assert_eq!(
        event(&tick),
        (100, 101, Kind::Tick(Chain { kernel: &[10, 11], user: &[20, 21], ..Chain::default() }))
    );
    let user = sample_of(1, &[2, b::PERF_CONTEXT_USER, 20]);
    assert_eq!(event(&user), (100, 101, Kind::Tick(Chain { kernel: &[], user: &[20], ..Chain::default() })));
    let leaving = sample_of(2, &[0]);
    assert_eq!(event(&leaving), (100, 101, Kind::LeavingStack(Chain::default())));
    let guest = sample_of(2, &[4, b::PERF_CONTEXT_GUEST, 1, b::PERF_CONTEXT_KERNEL, 5]);
    assert_eq!(
        event(&guest),
        (100, 101, Kind::LeavingStack(Chain { kernel: &[5], user: &[], ..Chain::default() }))
    );
    assert_eq!(decode(&sample_of(1, &[9, 1]), 0, &ids()), Decoded::Malformed, "fewer addresses than it says");
    assert_eq!(decode(&sample_of(1, &[u64::MAX]), 0, &ids()), Decoded::Malformed);
    assert_eq!(decode(&sample_of(77, &[0]), 0, &ids()), Decoded::Other, "an event that is not ours");
}

#[test]
fn a_copy_of_a_user_stack_is_cut_to_what_was_copied() {
    let chain = [2, b::PERF_CONTEXT_USER, 20];
    let of = |behind: &[u64]| sample_of(3, &[&chain, behind].concat());
    let stack = |record: &[u64]| match event(record).2 {
        Kind::Tick(Chain { user: &[20], stack, .. }) => {
            stack.map(|s| (s.instruction, s.pointer, s.frame, s.words.to_vec(), s.word(0x1008)))
        }
        other => panic!("{other:?}"),
    };
    // Frame pointer, stack pointer and place in the code; 32 bytes, 16 of them true.
    let whole = of(&[2, 7, 0x1000, 20, 32, 1, 2, 3, 4, 16]);
    assert_eq!(stack(&whole), Some((20, 0x1000, 7, vec![1, 2], Some(2))));
    assert_eq!(stack(&of(&[2, 7, 0x1000, 20, 0])), None, "nothing was copied");
    assert_eq!(stack(&of(&[0, 0])), None, "a thread of the kernel");
    assert_eq!(stack(&of(&[1, 7, 0x1000, 20, 8, 1, 8])), None, "a 32-bit process");
    for cut in [&[][..], &[2, 7], &[2, 7, 8, 9], &[2, 7, 8, 9, 32, 1, 2], &[2, 7, 8, 9, 16, 1, 2]] {
        assert_eq!(decode(&of(cut), 0, &ids()), Decoded::Malformed, "{cut:?}");
    }
}

#[test]
fn every_truncation_of_every_type_is_survived() {
    for kind in 0..30 {
        let whole = with_trailer(kind, 0, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        for length in 0..=whole.len() {
            let _ = decode(&whole[..length], 0, &ids());
        }
        if kind != b::PERF_RECORD_SAMPLE {
            assert_eq!(decode(&whole[..4], 0, &ids()), Decoded::Malformed, "type {kind} without a trailer");
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(kind in 0u32..30, id in 0u64..10, noise in prop::collection::vec(any::<u64>(), 0..40)) {
        let ids = ids();
        let _ = decode(&noise, 0, &ids);
        let _ = decode(&record(kind, 0xffff, &noise), 0, &ids);
        let _ = decode(&sample_of(id, &noise), 0, &ids);
    }

    #[test]
    fn a_chain_gives_back_what_went_in(
        kernel in prop::collection::vec(1u64..1 << 62, 0..20),
        user in prop::collection::vec(1u64..1 << 47, 0..20),
    ) {
        let all = [&[b::PERF_CONTEXT_KERNEL][..], &kernel, &[b::PERF_CONTEXT_USER], &user].concat();
        let record = sample_of(1, &[&[all.len() as u64][..], &all].concat());
        let (.., kind) = event(&record);
        prop_assert_eq!(kind, Kind::Tick(Chain { kernel: &kernel, user: &user, ..Chain::default() }));
    }
}

#[test]
fn a_task_that_was_released_already_is_no_thread() {
    // A tick or the last switch after `release_task` carries -1 for the thread, and for the process once its leader is gone.
    for (pid, tid) in [(100, u32::MAX), (u32::MAX, u32::MAX)] {
        let task = two(pid, tid);
        let mut chain = sample_of(1, &[0]);
        chain[2] = task;
        assert_eq!(decode(&chain, 5000, &ids()), Decoded::Other);
        for kind in [b::PERF_RECORD_SWITCH, b::PERF_RECORD_SWITCH_CPU_WIDE] {
            for flags in [0, b::PERF_RECORD_MISC_SWITCH_OUT] {
                let words = [&[0][..], &[task, 5000, two(3, 0), 9]].concat();
                assert_eq!(decode(&record(kind, flags, &words), 5000, &ids()), Decoded::Other);
            }
        }
        // What was lost was lost on a CPU, whatever ran there.
        let lost = record(b::PERF_RECORD_LOST, 0, &[1, 7, task, 5000, two(3, 0), 9]);
        assert!(matches!(
            decode(&lost, 5000, &ids()),
            Decoded::Event(Event { kind: Kind::Lost { records: 7 }, .. })
        ));
    }
}
