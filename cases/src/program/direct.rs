//! Reads past the page cache: one at a time, and many in flight on one ring.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use io_uring::{IoUring, opcode, types};
use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;

use super::{Outcome, SEED, failed, sample};

/// Requests of the neighbour in flight.
const NEIGHBOUR_DEPTH: usize = 32;
/// Bytes of each.
const NEIGHBOUR_BYTES: usize = 128 << 10;
/// Requests in flight of a stream.
const STREAM_DEPTH: usize = 16;

/// Reads `count` pieces of `bytes` at random places, `depth` of them in flight.
pub(super) fn random(path: &str, bytes: usize, count: u64, depth: usize) -> Outcome<u64> {
    let file = open(path)?;
    let pieces = pieces(&file, bytes)?;
    let mut rng = Rng::new(SEED);
    let places: Vec<u64> = (0..count).map(|_| rng.below(pieces) * bytes as u64).collect();
    if depth > 1 {
        return deep(&file, bytes, depth, &places, u64::MAX);
    }
    let mut space = Space::new(bytes, 1);
    let mut sum = 0;
    for place in places {
        let buffer = space.slot(0);
        file.read_exact_at(buffer, place).map_err(failed("read"))?;
        sum += sample(buffer);
    }
    Ok(sum)
}

/// Reads the file from front to end as fast as the device gives it, and uses only the first `used` bytes of it.
pub(super) fn stream(path: &str, bytes: usize, used: u64) -> Outcome<u64> {
    let file = open(path)?;
    let pieces = pieces(&file, bytes)?;
    let places: Vec<u64> = (0..pieces).map(|i| i * bytes as u64).collect();
    deep(&file, bytes, STREAM_DEPTH, &places, used)
}

/// Keeps the device busy until the process that started it is gone.
pub(super) fn load(path: &str) -> Outcome<u64> {
    let file = open(path)?;
    let pieces = pieces(&file, NEIGHBOUR_BYTES)?;
    let parent = std::os::unix::process::parent_id();
    let mut rng = Rng::new(SEED);
    let mut sum = 0u64;
    while std::os::unix::process::parent_id() == parent {
        let places: Vec<u64> = (0..256).map(|_| rng.below(pieces) * NEIGHBOUR_BYTES as u64).collect();
        sum = sum.wrapping_add(deep(&file, NEIGHBOUR_BYTES, NEIGHBOUR_DEPTH, &places, u64::MAX)?);
    }
    Ok(sum)
}

fn open(path: &str) -> Outcome<File> {
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new()
        .read(true)
        .custom_flags(direct)
        .open(path)
        .map_err(failed("open the file for direct reads"))
}

/// Whole pieces in the file, at least one.
fn pieces(file: &File, bytes: usize) -> Outcome<u64> {
    // The size of a block device is where it ends, not what its node says.
    let end = rustix::fs::seek(file, rustix::fs::SeekFrom::End(0)).map_err(|e| failed("seek")(e.into()))?;
    let pieces = end / bytes.max(1) as u64;
    if pieces == 0 { Err(Problem::refused("the file is shorter than one request")) } else { Ok(pieces) }
}

/// Reads all places, `depth` in flight, each slot of the ring with its own buffer. Sums up what lies before `used`.
fn deep(file: &File, bytes: usize, depth: usize, places: &[u64], used: u64) -> Outcome<u64> {
    let mut ring = IoUring::new(depth.next_power_of_two() as u32).map_err(failed("make a ring"))?;
    let mut space = Space::new(bytes, depth);
    let (mut next, mut sum) = (0, 0u64);
    let mut place_of = vec![0; depth];
    let mut free: Vec<usize> = (0..depth).collect();
    let mut in_flight = 0;
    while next < places.len() || in_flight > 0 {
        while next < places.len()
            && let Some(slot) = free.pop()
        {
            let buffer = space.slot(slot);
            let read =
                opcode::Read::new(types::Fd(file.as_raw_fd()), buffer.as_mut_ptr(), buffer.len() as u32)
                    .offset(places[next])
                    .build()
                    .user_data(slot as u64);
            // SAFETY: the file and the buffer of this slot live until the ring has said that the read is done: the
            // loop does not end, by error or otherwise, without `drain`.
            let pushed = unsafe { ring.submission().push(&read) };
            if pushed.is_err() {
                free.push(slot);
                break;
            }
            place_of[slot] = places[next];
            next += 1;
            in_flight += 1;
        }
        if let Err(error) = ring.submit_and_wait(1)
            && error.kind() != std::io::ErrorKind::Interrupted
        {
            drain(ring, space, in_flight);
            return Err(failed("submit")(error));
        }
        let done: Vec<(usize, i32)> =
            ring.completion().map(|c| (c.user_data() as usize, c.result())).collect();
        in_flight -= done.len();
        for (slot, result) in done {
            if result != bytes as i32 {
                drain(ring, space, in_flight);
                return Err(Problem::failed(format!("a direct read of {bytes} bytes returned {result}")));
            }
            if place_of[slot] < used {
                sum += sample(space.slot(slot));
            }
            free.push(slot);
        }
    }
    Ok(sum)
}

/// Waits for what is still in flight. Where the ring will not even wait, buffers and ring are given up for good,
/// so that the kernel never writes to memory of others.
fn drain(mut ring: IoUring, space: Space, mut in_flight: usize) {
    while in_flight > 0 {
        if ring.submit_and_wait(1).is_err() {
            std::mem::forget(space);
            std::mem::forget(ring);
            return;
        }
        in_flight = in_flight.saturating_sub(ring.completion().count());
    }
}

/// Buffers for direct I/O, each at a multiple of 4096.
struct Space {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Space {
    fn new(bytes: usize, slots: usize) -> Space {
        let memory = vec![0u8; bytes * slots + 4096];
        let start = memory.as_ptr().align_offset(4096);
        Space { memory, start, bytes }
    }

    fn slot(&mut self, slot: usize) -> &mut [u8] {
        let from = self.start + slot * self.bytes;
        &mut self.memory[from..from + self.bytes]
    }
}
