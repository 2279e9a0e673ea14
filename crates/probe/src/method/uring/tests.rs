//! Real rings over real temporary files: what arrives, what is counted, what is refused, what happens at the end.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use iowhy_core::rng::Rng;

use super::*;

const BLOCK: usize = 4096;

/// A file whose every block begins with its own number.
fn numbered_file(directory: &Path, blocks: u64) -> std::path::PathBuf {
    let path = directory.join("numbered");
    let mut file = File::create(&path).unwrap();
    for number in 0..blocks {
        let mut block = [0u8; BLOCK];
        block[..8].copy_from_slice(&number.to_le_bytes());
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
    path
}

fn plan(mode: Mode, depth: usize) -> Plan {
    Plan { mode, direct: false, writes: false, depth, block_bytes: BLOCK, first_offset: 0, seed: 1 }
}

fn read_only(path: &Path) -> OwnedFd {
    File::open(path).unwrap().into()
}

/// A ring, or the reason why this machine has none.
fn ring_or_skip(file: OwnedFd, plan: Plan) -> Option<Uring> {
    match Uring::new(file, plan) {
        Ok(uring) => Some(uring),
        Err(problem)
            if ["switched off", "EPERM", "ENOSYS", "ENOMEM"]
                .iter()
                .any(|why| problem.message.contains(why)) =>
        {
            eprintln!("skipped: {problem}");
            None
        }
        Err(problem) => panic!("{problem}"),
    }
}

fn read(block: u64) -> Request {
    Request { offset: block * BLOCK as u64, bytes: BLOCK, write: false }
}

fn number(data: &[u8]) -> u64 {
    u64::from_le_bytes(data[..8].try_into().unwrap())
}

/// Reads blocks in a seeded order with every slot busy, and checks that each arrives once, whole, in its own slot.
fn read_each_once(uring: &mut Uring, blocks: u64) {
    let mut order: Vec<u64> = (0..blocks).collect();
    Rng::new(3).shuffle(&mut order);
    let mut asked = vec![0; uring.capacity()];
    let mut free: Vec<usize> = (0..uring.capacity()).collect();
    let mut arrived = vec![0u32; blocks as usize];
    let mut done = Vec::new();
    let mut order = order.into_iter();
    while arrived.contains(&0) {
        while let Some(slot) = free.pop() {
            let Some(block) = order.next() else { break };
            asked[slot] = block;
            uring.submit(slot, read(block)).unwrap();
            assert_eq!(uring.data(slot), None, "nobody may look at a slot the kernel writes to");
        }
        uring.reap(1, &mut done).unwrap();
        assert!(!done.is_empty());
        for completion in done.drain(..) {
            assert_eq!(completion.bytes, BLOCK);
            let data = uring.data(completion.slot).unwrap();
            assert_eq!((data.len(), number(data)), (BLOCK, asked[completion.slot]));
            arrived[asked[completion.slot] as usize] += 1;
            free.push(completion.slot);
        }
    }
    assert!(arrived.iter().all(|&n| n == 1));
    assert_eq!(uring.in_flight, 0);
}

#[test]
fn every_block_arrives_once_in_its_slot_at_any_depth() {
    let directory = tempfile::tempdir().unwrap();
    let path = numbered_file(directory.path(), 100);
    for mode in [Mode::Interrupt, Mode::Sqpoll] {
        for depth in [1, 3, 32, 128] {
            let Some(mut uring) = ring_or_skip(read_only(&path), plan(mode, depth)) else { return };
            assert_eq!(uring.capacity(), depth);
            // Often enough for a submission thread to be overtaken by its own completions.
            (0..20).for_each(|_| read_each_once(&mut uring, 100));
        }
    }
}

#[test]
fn every_registration_can_be_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = numbered_file(directory.path(), 40);
    for (file, memory) in [(false, false), (false, true), (true, false)] {
        let Some(mut uring) = ring_or_skip(read_only(&path), plan(Mode::Interrupt, 8)) else { return };
        uring.registered_file &= file;
        uring.registered_memory &= memory;
        read_each_once(&mut uring, 40);
    }
}

#[test]
fn direct_reads_arrive_too_and_polling_is_used_or_said_to_be_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = numbered_file(directory.path(), 40);
    let open_direct = || OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path);
    if let Err(error) = open_direct() {
        eprintln!("skipped: no O_DIRECT in {}: {error}", directory.path().display());
        return;
    }
    for mode in [Mode::Interrupt, Mode::Iopoll] {
        let direct = Plan { direct: true, ..plan(mode, 8) };
        let Some(mut uring) = ring_or_skip(open_direct().unwrap().into(), direct) else { return };
        read_each_once(&mut uring, 40);
        let said = uring.dropped().iter().any(|note| note.starts_with("IOPOLL"));
        let polls = uring.ring.completions_are_polled();
        assert_eq!(said, mode == Mode::Iopoll && !polls, "{:?}", uring.dropped());
    }
}

#[test]
fn writes_land_where_they_were_sent() {
    let directory = tempfile::tempdir().unwrap();
    let path = numbered_file(directory.path(), 16);
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let writing = Plan { writes: true, ..plan(Mode::Interrupt, 4) };
    let Some(mut uring) = ring_or_skip(file.into(), writing) else { return };
    let sent: Vec<Vec<u8>> =
        (0..4).map(|slot| uring.memory.as_slice()[slot * BLOCK..][..BLOCK].to_vec()).collect();
    let mut done = Vec::new();
    for slot in 0..4 {
        uring.submit(slot, Request { offset: (slot * 2 * BLOCK) as u64, bytes: BLOCK, write: true }).unwrap();
    }
    uring.reap(4, &mut done).unwrap();
    assert_eq!(done.iter().map(|c| c.bytes).sum::<usize>(), 4 * BLOCK);
    let now = std::fs::read(&path).unwrap();
    for (slot, bytes) in sent.iter().enumerate() {
        assert!(&now[slot * 2 * BLOCK..][..BLOCK] == bytes, "block {} holds what slot {slot} sent", slot * 2);
        assert_eq!(
            number(&now[(slot * 2 + 1) * BLOCK..]),
            (slot * 2 + 1) as u64,
            "its neighbour is untouched"
        );
    }
}

#[test]
fn the_end_of_the_file_is_a_short_completion_and_not_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("short");
    std::fs::write(&path, vec![7u8; BLOCK + 100]).unwrap();
    let Some(mut uring) = ring_or_skip(read_only(&path), plan(Mode::Interrupt, 1)) else { return };
    assert_eq!(uring.perform(read(1)), Ok(100));
    assert_eq!(uring.data(0), Some(&[7u8; 100][..]));
    assert_eq!(uring.perform(read(2)), Ok(0));
    assert_eq!(uring.data(0), Some(&[][..]));
}

#[test]
fn a_failed_request_names_its_call_offset_and_cause_and_the_others_still_count() {
    let directory = tempfile::tempdir().unwrap();
    let path = numbered_file(directory.path(), 8);
    let write_only = OpenOptions::new().write(true).open(&path).unwrap();
    let Some(mut uring) = ring_or_skip(write_only.into(), plan(Mode::Interrupt, 4)) else { return };
    uring.submit(0, Request { write: true, ..read(0) }).unwrap();
    uring.submit(1, read(5)).unwrap();
    uring.submit(2, Request { write: true, ..read(2) }).unwrap();
    let mut done = Vec::new();
    let failure = uring.reap(3, &mut done).unwrap_err();
    assert_eq!(failure, Failure::Io { call: "io_uring read", offset: 5 * BLOCK as u64, errno: Errno::BADF });
    let mut slots: Vec<usize> = done.iter().map(|c| c.slot).collect();
    slots.sort_unstable();
    assert_eq!((slots.as_slice(), uring.in_flight), (&[0, 2][..], 0));
}

#[test]
fn a_request_that_breaks_the_contract_never_reaches_the_kernel() {
    let directory = tempfile::tempdir().unwrap();
    let path = numbered_file(directory.path(), 8);
    let Some(mut uring) = ring_or_skip(read_only(&path), plan(Mode::Interrupt, 2)) else { return };
    let refused = |errno| Err(Failure::Io { call: "io_uring submit", offset: 0, errno });
    assert_eq!(uring.submit(2, read(0)), refused(Errno::INVAL));
    assert_eq!(uring.submit(0, Request { bytes: BLOCK + 1, ..read(0) }), refused(Errno::INVAL));
    uring.submit(0, read(0)).unwrap();
    assert_eq!(uring.submit(0, read(0)), refused(Errno::BUSY));
    let mut done = Vec::new();
    uring.reap(1, &mut done).unwrap();
    assert_eq!(done, [Completion { slot: 0, bytes: BLOCK }]);
}

#[test]
fn a_ring_may_go_with_requests_in_every_stage_and_leaves_nothing_registered() {
    let directory = tempfile::tempdir().unwrap();
    let path = numbered_file(directory.path(), 256);
    // More rings in a row than a thread may register (16): none may be refused what the first one was given.
    let mut refused_at_first = None;
    for round in 0..40 {
        let mode = if round % 4 == 3 { Mode::Sqpoll } else { Mode::Interrupt };
        let Some(mut uring) = ring_or_skip(read_only(&path), plan(mode, 64)) else { return };
        let refused = uring.dropped().iter().any(|note| note.starts_with("registered ring"));
        assert_eq!(refused, *refused_at_first.get_or_insert(refused), "round {round}: {:?}", uring.dropped());
        let mut done = Vec::new();
        (0..32).for_each(|slot| uring.submit(slot, read(slot as u64 * 3)).unwrap());
        uring.reap(round % 3, &mut done).unwrap();
        (32..64).for_each(|slot| uring.submit(slot, read(slot as u64)).unwrap());
        assert_eq!(uring.in_flight, 64 - done.len());
    }
}
