//! A SCSI disk in user space (target_core_user behind tcm_loop) that answers READ BUFFER after a time of our choice: a
//! command costs so much, and each byte so much more. Stock virtual disks do not know the command.
//!
//! The ring is `include/uapi/linux/target_core_user.h`: commands at `cmd_head`, answers up to `cmd_tail`, both offsets
//! into a ring of `cmdr_size` bytes that begins `cmdr_off` bytes into the mapped memory.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use crate::fixture;
use crate::sys;

const CORE: &str = "/sys/kernel/config/target/core/user_0";
const LOOPBACK: &str = "/sys/kernel/config/target/loopback/naa.6001405000000001";
const NEXUS: &str = "naa.6001405000000002";
/// What READ BUFFER says it holds; the largest size of the 1999 test is 488 KiB.
pub(crate) const BUFFER_BYTES: u32 = 1 << 20;

const RING_OFFSET_AT: usize = 4;
const RING_BYTES_AT: usize = 8;
const HEAD_AT: usize = 12;
/// The tail stands on a cache line of its own.
const TAIL_AT: usize = 64;

const OP_MASK: u32 = 7;
const OP_COMMAND: u32 = 1;
/// Set by us in an entry whose operation we do not know.
const UNKNOWN_OP: u8 = 1;
const FLAGS_AT: usize = 7;
const COMMAND_BLOCK_AT: usize = 24;
const VECTORS_COUNT_AT: usize = 8;
const VECTORS_AT: usize = 48;
const STATUS_AT: usize = 8;
const SENSE_AT: usize = 16;

const CHECK_CONDITION: u8 = 2;

/// The time that answers take.
#[derive(Default)]
struct Cost {
    command_ns: AtomicU64,
    ps_per_byte: AtomicU64,
}

/// The disk; its thread lives as long as the machine.
pub(crate) struct Handler {
    cost: Arc<Cost>,
}

impl Handler {
    /// Makes the disk, and waits until it is there as `/dev/sg0`.
    ///
    /// # Errors
    /// In words, with the step that failed.
    pub(crate) fn start(name: &str, bytes: u64) -> Result<Handler, String> {
        let make = |path: &str| std::fs::create_dir_all(path).map_err(|e| format!("cannot make {path}: {e}"));
        let store = format!("{CORE}/{name}");
        make(&store)?;
        let control = format!("{store}/control");
        fixture::write(&control, &format!("dev_config=lab/{name}"))?;
        fixture::write(&control, &format!("dev_size={bytes}"))?;
        fixture::write(&control, "hw_block_size=512")?;
        fixture::write(&format!("{store}/enable"), "1")?;
        let uio = fixture::entry_with("/sys/class/uio", "name", name)
            .ok_or("the kernel made no uio device for the disk")?;
        fixture::wait_for(&format!("/dev/{uio}"))?;
        let cost = Arc::new(Cost::default());
        let ring = Ring::map(&uio)?;
        let of_thread = Arc::clone(&cost);
        // The thread is not joined: it ends with the machine.
        std::thread::spawn(move || serve(ring, bytes, &of_thread));
        let group = format!("{LOOPBACK}/tpgt_1");
        make(&group)?;
        fixture::write(&format!("{group}/nexus"), NEXUS)?;
        make(&format!("{group}/lun/lun_0"))?;
        std::os::unix::fs::symlink(&store, format!("{group}/lun/lun_0/{name}"))
            .map_err(|e| format!("cannot put the disk behind a SCSI host: {e}"))?;
        fixture::wait_for("/dev/sg0")?;
        Ok(Handler { cost })
    }

    /// What a READ BUFFER costs from now on.
    pub(crate) fn cost(&self, command_ns: u64, ps_per_byte: u64) {
        self.cost.command_ns.store(command_ns, Ordering::Relaxed);
        self.cost.ps_per_byte.store(ps_per_byte, Ordering::Relaxed);
    }
}

/// The memory that the kernel and we share.
struct Ring {
    uio: File,
    memory: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to the one thread that the ring is moved to.
unsafe impl Send for Ring {}

impl Ring {
    fn map(uio: &str) -> Result<Ring, String> {
        let size = format!("/sys/class/uio/{uio}/maps/map0/size");
        let text = std::fs::read_to_string(&size).map_err(|e| format!("cannot read {size}: {e}"))?;
        let bytes = usize::from_str_radix(text.trim().trim_start_matches("0x"), 16)
            .map_err(|_| format!("{size} holds no number"))?;
        let path = format!("/dev/{uio}");
        let file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|e| format!("cannot open {path}: {e}"))?;
        // SAFETY: a new mapping of a file, wherever the kernel likes; it is never unmapped.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(format!("cannot map {path}: {}", std::io::Error::last_os_error()));
        }
        Ok(Ring { uio: file, memory: memory.cast(), bytes })
    }

    /// The place of `bytes` bytes, if they lie inside; otherwise the kernel wrote nonsense.
    fn place(&self, at: usize, bytes: usize) -> Option<*mut u8> {
        (at.checked_add(bytes)? <= self.bytes).then(|| self.memory.wrapping_add(at))
    }

    fn read<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let place = self.place(at, N)?;
        // SAFETY: inside the mapping; the kernel does not change an entry that is ours.
        Some(unsafe { place.cast::<[u8; N]>().read_unaligned() })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.read(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: usize) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.read(at)?)).ok()
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.place(at, bytes.len()) {
            // SAFETY: inside the mapping, and the entry is ours until the tail passes it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        }
    }

    fn shared(&self, at: usize) -> Option<&AtomicU32> {
        let place = self.place(at, 4)?;
        // SAFETY: inside the mapping, which begins on a page, and `at` is a multiple of four; both sides only ever read
        // and write the whole word.
        Some(unsafe { AtomicU32::from_ptr(place.cast()) })
    }
}

/// Answers commands until the machine ends. Returns only if the ring is damaged, which then shows as a hanging command.
fn serve(mut ring: Ring, disk_bytes: u64, cost: &Cost) -> Option<()> {
    sys::exact_timers();
    let base = ring.u32(RING_OFFSET_AT)? as usize;
    let size = ring.u32(RING_BYTES_AT)?.max(1);
    loop {
        loop {
            let tail = ring.shared(TAIL_AT)?.load(Ordering::Acquire);
            if tail == ring.shared(HEAD_AT)?.load(Ordering::Acquire) {
                break;
            }
            let entry = base + tail as usize;
            let operation = ring.u32(entry)?;
            match operation & OP_MASK {
                OP_COMMAND => answer(&ring, entry, disk_bytes, cost)?,
                // Padding at the end of the ring.
                0 => {}
                _ => ring.write(entry + FLAGS_AT, &[UNKNOWN_OP]),
            }
            fence(Ordering::Release);
            let next = (tail + (operation & !OP_MASK)) % size;
            ring.shared(TAIL_AT)?.store(next, Ordering::Release);
            ring.uio.write_all(&[0; 4]).ok()?;
        }
        let mut count = [0; 4];
        ring.uio.read_exact(&mut count).ok()?;
    }
}

fn answer(ring: &Ring, entry: usize, disk_bytes: u64, cost: &Cost) -> Option<()> {
    let vectors = ring.u32(entry + VECTORS_COUNT_AT)? as usize;
    let block: [u8; 16] = ring.read(ring.u64(entry + COMMAND_BLOCK_AT)?)?;
    let reply = reply(&block, disk_bytes);
    if let Reply::Buffer(bytes) = reply {
        let per_byte = cost.ps_per_byte.load(Ordering::Relaxed).saturating_mul(u64::from(bytes)) / 1000;
        let wait = cost.command_ns.load(Ordering::Relaxed).saturating_add(per_byte);
        if wait > 0 {
            std::thread::sleep(Duration::from_nanos(wait));
        }
    }
    match reply {
        Reply::Data(data) => {
            scatter(ring, entry, vectors, &data)?;
            ring.write(entry + STATUS_AT, &[0, 0, 0, 0]);
        }
        // The bytes are what the shared memory holds.
        Reply::Buffer(_) | Reply::Good => ring.write(entry + STATUS_AT, &[0, 0, 0, 0]),
        Reply::Unknown => {
            // Illegal request, invalid operation code; fixed format.
            let mut sense = [0u8; 18];
            (sense[0], sense[2], sense[7], sense[12]) = (0x70, 0x05, 10, 0x20);
            ring.write(entry + SENSE_AT, &sense);
            ring.write(entry + STATUS_AT, &[CHECK_CONDITION, 0, 0, 0]);
        }
    }
    Some(())
}

/// Copies an answer into the vectors of a command.
fn scatter(ring: &Ring, entry: usize, vectors: usize, data: &[u8]) -> Option<()> {
    let mut left = data;
    for index in 0..vectors {
        let at = ring.u64(entry + VECTORS_AT + 16 * index)?;
        let room = ring.u64(entry + VECTORS_AT + 16 * index + 8)?;
        let (now, rest) = left.split_at(room.min(left.len()));
        ring.write(at, now);
        left = rest;
    }
    Some(())
}

/// What the disk answers.
#[derive(Debug, PartialEq)]
enum Reply {
    /// These bytes.
    Data(Vec<u8>),
    /// So many bytes of the buffer, after its time.
    Buffer(u32),
    /// Nothing is wrong, and there is nothing to say.
    Good,
    /// No such command.
    Unknown,
}

fn reply(block: &[u8; 16], disk_bytes: u64) -> Reply {
    let last = (disk_bytes / 512).saturating_sub(1);
    match block[0] {
        // TEST UNIT READY, SYNCHRONIZE CACHE; reads and writes of a disk that is never looked at.
        0x00 | 0x35 | 0x08 | 0x0a | 0x28 | 0x2a | 0x88 | 0x8a => Reply::Good,
        // INQUIRY without a page: a disk by SPC-3.
        0x12 if block[1] & 1 == 0 => {
            let mut data = vec![0, 0, 5, 2, 31, 0, 0, 2];
            data.extend_from_slice(b"IOWHY   LAB BUFFER      1.0 ");
            data.truncate(usize::from(u16::from_be_bytes([block[3], block[4]])));
            Reply::Data(data)
        }
        // MODE SENSE (6): no pages.
        0x1a => Reply::Data(vec![3, 0, 0, 0]),
        // READ CAPACITY (10) and (16).
        0x25 => {
            let last = u32::try_from(last).unwrap_or(u32::MAX);
            Reply::Data([last.to_be_bytes(), 512u32.to_be_bytes()].concat())
        }
        0x9e if block[1] & 0x1f == 0x10 => {
            let mut data = last.to_be_bytes().to_vec();
            data.extend_from_slice(&512u32.to_be_bytes());
            data.resize(32, 0);
            Reply::Data(data)
        }
        // READ BUFFER: descriptor, or data.
        0x3c if block[1] & 0x1f == 3 => {
            let [_, high, middle, low] = BUFFER_BYTES.to_be_bytes();
            Reply::Data(vec![0, high, middle, low])
        }
        0x3c if block[1] & 0x1f == 2 => Reply::Buffer(u32::from_be_bytes([0, block[6], block[7], block[8]])),
        _ => Reply::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: &[u8]) -> [u8; 16] {
        let mut block = [0; 16];
        block[..bytes.len()].copy_from_slice(bytes);
        block
    }

    #[test]
    fn the_disk_answers_as_the_standard_says() {
        let disk = 1 << 20;
        assert_eq!(reply(&block(&[0x00]), disk), Reply::Good);
        assert_eq!(reply(&block(&[0x25]), disk), Reply::Data(vec![0, 0, 7, 255, 0, 0, 2, 0]));
        assert_eq!(reply(&block(&[0x3c, 2, 0, 0, 0, 0, 0, 0x10, 0]), disk), Reply::Buffer(4096));
        assert_eq!(reply(&block(&[0x3c, 3]), disk), Reply::Data(vec![0, 0x10, 0, 0]));
        assert_eq!(reply(&block(&[0xff]), disk), Reply::Unknown);
        assert_eq!(reply(&block(&[0x12, 1]), disk), Reply::Unknown);
        let Reply::Data(inquiry) = reply(&block(&[0x12, 0, 0, 0, 36]), disk) else { panic!("no data") };
        assert_eq!((inquiry.len(), &inquiry[8..13]), (36, b"IOWHY".as_slice()));
        let Reply::Data(short) = reply(&block(&[0x12, 0, 0, 0, 5]), disk) else { panic!("no data") };
        assert_eq!(short.len(), 5);
    }
}
