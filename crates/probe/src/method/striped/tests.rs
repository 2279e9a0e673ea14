//! Real files turn by turn: what arrives, what is counted, what fails, and false members in virtual time.

use std::fs::File;
use std::path::Path;

use iowhy_core::workload::{Direction, Touch};

use super::*;
use crate::access::{Completion, Request};
use crate::buffer::Buffer;
use crate::hot_loop::HotAccess;
use crate::target::{Needs, resolve};

const TURN: usize = 8192;
const MEMBERS: usize = 3;
const TURNS: usize = 5;

/// Three files whose bytes, turn by turn, are `content`.
fn striped(dir: &Path) -> (Target, Vec<u8>) {
    let mut content = Buffer::new(TURN * MEMBERS * TURNS).unwrap();
    content.fill(3);
    let content = content.as_slice().to_vec();
    let mut names = Vec::new();
    for member in 0..MEMBERS {
        let own: Vec<u8> = content.chunks(TURN).skip(member).step_by(MEMBERS).flatten().copied().collect();
        let path = dir.join(format!("m{member}"));
        std::fs::write(&path, own).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        names.push(path.to_str().unwrap().to_owned());
    }
    (target(&names, false), content)
}

fn target(names: &[String], write: bool) -> Target {
    let spec = format!("stripe:{TURN}:{}", names.join(","));
    let needs = Needs { scratch_bytes: 1 << 20, write, destroy_data: write.then(|| spec.clone()) };
    resolve(&spec, &needs, &mut |_, _| {}).unwrap()
}

fn opened(
    target: &Target,
    method: Method,
    block: usize,
    depth: usize,
) -> Result<Box<dyn HotAccess>, Problem> {
    let bytes = target.facts.size_bytes;
    let state = if method == Method::Direct { CacheState::Direct } else { CacheState::Warm };
    let workload =
        Workload { touch: Touch::All, depth, ..Workload::reads(method, state, block as u64, bytes) };
    crate::method::open(&workload, target, &Clock::real())
}

/// The bytes of a request as io_uring leaves them: part behind part.
fn part_behind_part(content: &[u8], request: Request) -> Vec<u8> {
    let map = iowhy_core::stripe::Stripe::new(TURN as u64, MEMBERS).unwrap();
    let parts = map.parts(request.offset, request.bytes as u64);
    let bytes =
        parts.flat_map(|part| (part.offset..part.offset + part.bytes).map(move |at| (part.member, at)));
    bytes.map(|(member, at)| content[map.position_of(member, at).unwrap() as usize]).collect()
}

const SYNCHRONOUS: [Method; 10] = [
    Method::Read,
    Method::Pread,
    Method::PreadRandom,
    Method::Readv,
    Method::Preadv2,
    Method::Preadv2Nowait,
    Method::Mmap,
    Method::MmapPopulate,
    Method::MmapLock,
    Method::Direct,
];

#[test]
fn every_synchronous_method_brings_the_bytes_of_the_stripe_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let (target, content) = striped(dir.path());
    for method in SYNCHRONOUS {
        // Within a turn, over two, over all members and round again.
        for block in [4096, TURN, 3 * 4096, 4 * TURN] {
            let mut access = match opened(&target, method, block, 1) {
                Ok(access) => access,
                Err(problem) => {
                    eprintln!("skipped: {method:?}: {problem}");
                    continue;
                }
            };
            access.begin();
            let mut requests = 0;
            for offset in (0..=content.len() - block).step_by(block) {
                let request = Request { offset: offset as u64, bytes: block, write: false };
                assert_eq!(access.perform(request), Ok(block), "{method:?} {block}");
                assert!(
                    access.data(0).unwrap() == &content[offset..offset + block],
                    "{method:?} {block} {offset}"
                );
                requests += 1;
            }
            let sent: u64 = access.sent().iter().map(|sent| sent.bytes).sum();
            assert_eq!(sent, requests * block as u64);
            access.finish().unwrap();
        }
    }
}

#[test]
fn methods_that_leave_nothing_in_memory_move_all_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (target, _) = striped(dir.path());
    for method in [Method::Splice, Method::Sendfile] {
        let mut access = opened(&target, method, 3 * TURN, 1).unwrap();
        assert_eq!(
            access.perform(Request { offset: 0, bytes: 3 * TURN, write: false }),
            Ok(3 * TURN),
            "{method:?}"
        );
    }
    // One call, whatever the length of the request.
    let mut call = opened(&target, Method::Syscall, 3 * TURN, 1).unwrap();
    call.begin();
    assert_eq!(call.perform(Request { offset: 0, bytes: 3 * TURN, write: false }), Ok(0));
    assert_eq!(call.sent().iter().map(|sent| sent.requests).sum::<u64>(), 1);
    let problem = opened(&target, Method::Sg, TURN, 1).err().unwrap();
    assert!(problem.message.contains("several targets"), "{problem}");
}

#[test]
fn the_ring_ends_every_request_once_with_the_bytes_of_all_its_parts() {
    const DEPTH: usize = 4;
    let dir = tempfile::tempdir().unwrap();
    let (target, content) = striped(dir.path());
    for block in [4096, TURN, 3 * 4096, 4 * TURN] {
        let mut access = match opened(&target, Method::Uring, block, DEPTH) {
            Ok(access) => access,
            Err(problem) => {
                eprintln!("skipped: {problem}");
                return;
            }
        };
        access.begin();
        let offsets: Vec<usize> = (0..=content.len() - block).step_by(block).collect();
        for batch in offsets.chunks(DEPTH) {
            for (slot, offset) in batch.iter().enumerate() {
                let request = Request { offset: *offset as u64, bytes: block, write: false };
                access.submit(slot, request).unwrap();
                assert!(access.submit(slot, request).is_err(), "the slot is in use");
            }
            let mut done: Vec<Completion> = Vec::new();
            while done.len() < batch.len() {
                access.reap(1, &mut done).unwrap();
            }
            done.sort_by_key(|completion| completion.slot);
            let expected: Vec<_> = (0..batch.len()).map(|slot| Completion { slot, bytes: block }).collect();
            assert_eq!(done, expected);
            for (slot, offset) in batch.iter().enumerate() {
                let request = Request { offset: *offset as u64, bytes: block, write: false };
                assert!(
                    access.data(slot).unwrap() == part_behind_part(&content, request),
                    "{block} {offset}"
                );
            }
        }
        let sent = access.sent();
        assert_eq!(sent.iter().map(|sent| sent.bytes).sum::<u64>(), (offsets.len() * block) as u64);
        assert!(sent.iter().all(|sent| sent.requests > 0));
    }
}

#[test]
fn what_is_written_is_on_its_member() {
    let dir = tempfile::tempdir().unwrap();
    let (before, _) = striped(dir.path());
    let names: Vec<String> = before.member_names();
    drop(before);
    let target = target(&names, true);
    for (method, depth) in [(Method::Pwrite, 1), (Method::PwriteFdatasync, 1), (Method::Uring, 2)] {
        for name in &names {
            std::fs::write(name, vec![0; TURN * TURNS]).unwrap();
        }
        let workload = Workload {
            direction: Direction::Write,
            depth,
            ..Workload::reads(method, CacheState::None, 2 * TURN as u64, target.facts.size_bytes)
        };
        let mut access = match crate::method::open(&workload, &target, &Clock::real()) {
            Ok(access) => access,
            Err(problem) => {
                eprintln!("skipped: {method:?}: {problem}");
                continue;
            }
        };
        let request = Request { offset: TURN as u64, bytes: 2 * TURN, write: true };
        assert_eq!(access.perform(request), Ok(2 * TURN));
        drop(access);
        let zeros = |name: &String, range: std::ops::Range<usize>| {
            std::fs::read(name).unwrap()[range].iter().filter(|byte| **byte == 0).count()
        };
        assert_eq!(
            zeros(&names[0], 0..TURN * TURNS),
            TURN * TURNS,
            "{method:?}: the first member is not touched"
        );
        for name in &names[1..] {
            assert!(zeros(name, 0..TURN) < TURN / 50, "{method:?}: a turn of noise on {name}");
            assert_eq!(
                zeros(name, TURN..TURN * TURNS),
                TURN * (TURNS - 1),
                "{method:?}: and nothing behind it"
            );
        }
    }
}

#[test]
fn a_member_that_is_cut_short_meanwhile_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (target, content) = striped(dir.path());
    let last = target.member_names().remove(2);
    let whole =
        Request { offset: (content.len() - MEMBERS * TURN) as u64, bytes: MEMBERS * TURN, write: false };
    let single = Request { offset: (content.len() - TURN) as u64, bytes: TURN, write: false };
    let mut methods: Vec<_> = [Method::Pread, Method::Uring, Method::Mmap]
        .into_iter()
        .filter_map(|method| Some((method, opened(&target, method, MEMBERS * TURN, 2).ok()?)))
        .collect();
    File::options().write(true).open(&last).unwrap().set_len(TURN as u64).unwrap();
    for (method, access) in &mut methods {
        for request in [whole, single] {
            let text = access.perform(request).unwrap_err().to_string();
            assert!(
                text.contains(&format!("member `{last}`")) && text.contains("truncated"),
                "{method:?}: {text}"
            );
        }
        // The others go on.
        let fine = Request { offset: 0, bytes: 2 * TURN, write: false };
        assert_eq!(access.perform(fine), Ok(2 * TURN), "{method:?}");
    }
}

#[test]
fn direct_requests_that_turns_would_cut_off_their_alignment_are_refused_before_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let (before, _) = striped(dir.path());
    let Some(alignment) = before.facts.direct_alignment_bytes.filter(|bytes| *bytes > 512) else {
        eprintln!("skipped: direct requests need no more than a sector here");
        return;
    };
    let spec = format!("stripe:7s:{}", before.member_names().join(","));
    let target = resolve(&spec, &Needs::default(), &mut |_, _| {}).unwrap();
    assert_eq!(target.facts.direct_supported, Some(false));
    let problem = opened(&target, Method::Direct, 4096, 1).err().unwrap();
    assert!(problem.message.contains(&format!("multiple of {alignment} bytes")), "{problem}");
    assert!(opened(&target, Method::Pread, 4096, 1).is_ok());
}

/// Members that each take 80 us for 64 KiB and longer for more: two parts at once take as long as one, and one CPU's work for
/// both.
#[test]
fn parts_of_false_members_overlap_to_the_nanosecond() {
    let time = |spec: &str, method: Method, bytes: usize| {
        let target = resolve(spec, &Needs::default(), &mut |_, _| {}).unwrap();
        let clock = Clock::virtual_time();
        let workload = Workload::reads(method, CacheState::Direct, bytes as u64, 1 << 30);
        let mut access = crate::method::open(&workload, &target, &clock).unwrap();
        access.perform(Request { offset: 0, bytes, write: false }).unwrap();
        let time = clock.virtual_time_of().unwrap();
        (time.now_ns.get(), time.busy_ns.get())
    };
    let two = "stripe:64k:scripted,scripted";
    for method in [Method::Direct, Method::Uring] {
        let (alone, busy) = time("scripted", method, 65_536);
        assert_eq!(time(two, method, 65_536), (alone, busy), "one part is the member itself");
        let (both, both_busy) = time(two, method, 131_072);
        let whole = time("scripted", method, 131_072).0;
        assert!(both_busy.abs_diff(2 * busy) <= 2, "{both_busy} {busy}");
        assert!(both.abs_diff(alone + busy) <= 2, "{both} {alone} {busy}");
        assert!(both < whole, "{method:?}: two members beat one: {both} {whole}");
    }
}
