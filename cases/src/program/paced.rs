//! Programs whose waits are known when the disk's time for a request is: each waits for one thing, and prints what it did to its
//! files as those of `truth` do. `DIR` holds a file `data` of whole pages.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use iowhy_core::problem::Problem;
use rustix::fs::OFlags;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use super::truth::{Count, O_DIRECT};
use super::{Outcome, failed};

const PAGE: usize = 4096;
/// Threads that share a lock.
const CONVOY: u64 = 4;
/// How long a sleep is.
const SLEEP: Duration = Duration::from_millis(20);

/// Runs one of them and prints what it did.
pub(super) fn run(kind: &str, dir: &str, number: u64) -> Outcome<()> {
    let dir = Path::new(dir);
    match kind {
        "direct" => direct(dir, number),
        "dsync" => dsync(dir, number),
        "msync" => msync(dir, number),
        "names" => names(dir, number),
        "pipe" => pipe(dir, number),
        "produce" => return produce(dir, number),
        "convoy" => convoy(dir, number),
        "aio" => aio(dir, number),
        "sleep" => sleep(dir, number),
        "again" => again(dir, number),
        "anonymous" => anonymous(dir, number),
        "copy" => copy(dir, number),
        _ => return Err(Problem::refused(format!("no program is called `{kind}`"))),
    }?
    .print();
    Ok(())
}

/// A page at a multiple of its size, as reads past the page cache need it.
#[repr(align(4096))]
struct Page([u8; PAGE]);

fn place(n: u64) -> u64 {
    n * PAGE as u64
}

/// One read past the page cache after the other.
fn direct(dir: &Path, number: u64) -> Outcome<Count> {
    let path = dir.join("data");
    let file = opened(&path, O_DIRECT)?;
    let mut page = Page([0; PAGE]);
    for n in 0..number {
        file.read_exact_at(&mut page.0, place(n)).map_err(failed("read"))?;
    }
    Ok(Count::of(path, [1, number, place(number), 0, 0]))
}

fn opened(path: &Path, flags: i32) -> Outcome<File> {
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(failed("open a file"))
}

/// Each write is durable when it returns.
fn dsync(dir: &Path, number: u64) -> Outcome<Count> {
    let path = dir.join("data");
    let file = opened(&path, OFlags::DSYNC.bits() as i32)?;
    for n in 0..number {
        file.write_all_at(&[5; PAGE], place(n)).map_err(failed("write"))?;
    }
    Ok(Count::of(path, [1, 0, 0, number, place(number)]))
}

/// Each change of a mapped page is made durable by itself.
fn msync(dir: &Path, number: u64) -> Outcome<Count> {
    let path = dir.join("data");
    let file = opened(&path, 0)?;
    let (bytes, access) = (place(number) as usize, ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: no address is asked for, so the kernel picks one that is free; the file is that long and nobody cuts it.
    let mapped = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0) };
    let mapped = mapped.map_err(|e| failed("map a file")(e.into()))?.cast::<u8>();
    for n in 0..number {
        // SAFETY: a page of the mapping above, which nobody else has.
        let changed = unsafe {
            let page = mapped.add(place(n) as usize);
            page.write_volatile(9);
            rustix::mm::msync(page.cast(), PAGE, MsyncFlags::SYNC)
        };
        changed.map_err(|e| failed("sync a page")(e.into()))?;
    }
    Ok(Count::of(path, [1, 0, 0, 0, 0]))
}

/// New files get their last names, the folder is made durable, and they are removed again: a commit of the journal each time.
fn names(dir: &Path, number: u64) -> Outcome<Count> {
    let folder = File::open(dir).map_err(failed("open a folder"))?;
    let mut all = Count::default();
    for n in 0..number {
        let (first, last) = (dir.join(format!("first{n}")), dir.join(format!("last{n}")));
        File::create(&first).map_err(failed("make a file"))?;
        fs::rename(&first, &last).map_err(failed("rename a file"))?;
        folder.sync_all().map_err(failed("sync a folder"))?;
        fs::remove_file(&last).map_err(failed("remove a file"))?;
        all.add(Count::of(first, [1, 0, 0, 0, 0]));
    }
    Ok(all)
}

/// This program; it is also its own child.
fn this() -> Outcome<PathBuf> {
    std::env::current_exe().map_err(failed("find this program"))
}

/// Waits on a pipe for a child that waits for the disk.
fn pipe(dir: &Path, number: u64) -> Outcome<Count> {
    let mut child = Command::new(this()?)
        .args(["program", "paced", "produce"])
        .arg(dir)
        .arg(number.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed("start a child"))?;
    let mut page = [0; PAGE];
    let mut from = child.stdout.take().ok_or_else(|| Problem::failed("there is no pipe"))?;
    for _ in 0..number {
        from.read_exact(&mut page).map_err(failed("read from the pipe"))?;
    }
    let ended = child.wait().map_err(failed("wait for a child"))?;
    let count = Count::of(dir.join("data"), [1, number, place(number), 0, 0]);
    if ended.success() { Ok(count) } else { Err(Problem::failed("the child failed")) }
}

/// The child: what it reads goes into the pipe.
fn produce(dir: &Path, number: u64) -> Outcome<()> {
    let file = opened(&dir.join("data"), O_DIRECT)?;
    let mut page = Page([0; PAGE]);
    let mut to = io::stdout().lock();
    for n in 0..number {
        file.read_exact_at(&mut page.0, place(n)).map_err(failed("read"))?;
        to.write_all(&page.0).and_then(|()| to.flush()).map_err(failed("write into the pipe"))?;
    }
    Ok(())
}

/// Threads that each read with the same lock in their hands: one reads, the others wait for it.
fn convoy(dir: &Path, number: u64) -> Outcome<Count> {
    let path = dir.join("data");
    let file = Mutex::new((opened(&path, O_DIRECT)?, 0));
    let work = || {
        let mut page = Page([0; PAGE]);
        for _ in 0..number / CONVOY {
            let mut held = file.lock().map_err(|_| Problem::failed("a thread died"))?;
            held.0.read_exact_at(&mut page.0, place(held.1)).map_err(failed("read"))?;
            held.1 += 1;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..CONVOY).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Problem::failed("a thread died"))))
    })?;
    let reads = number / CONVOY * CONVOY;
    Ok(Count::of(path, [1, reads, place(reads), 0, 0]))
}

/// `struct iocb` of `include/uapi/linux/aio_abi.h` on little-endian machines; `IOCB_CMD_PREAD` is 0.
#[repr(C)]
#[derive(Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: i16,
    descriptor: u32,
    memory: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event_descriptor: u32,
}

/// Reads past the page cache by io_submit(2), each waited for in io_getevents(2).
fn aio(dir: &Path, number: u64) -> Outcome<Count> {
    let path = dir.join("data");
    let file = opened(&path, O_DIRECT)?;
    let mut page = Page([0; PAGE]);
    let mut context: libc::c_ulong = 0;
    // SAFETY: the pointer is to a word of this function.
    let made = unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) };
    if made != 0 {
        return Err(failed("set asynchronous I/O up")(io::Error::last_os_error()));
    }
    for n in 0..number {
        let mut block = ControlBlock {
            descriptor: file.as_raw_fd() as u32,
            memory: page.0.as_mut_ptr() as u64,
            bytes: PAGE as u64,
            // Out of order, within the first 4 MiB.
            offset: place(n * 389 % 1024) as i64,
            ..ControlBlock::default()
        };
        let mut blocks = [&raw mut block];
        let mut event = [0_i64; 4];
        // SAFETY: the block, the page and the event live until the request is done: it is waited for here.
        let (sent, came) = unsafe {
            let sent = libc::syscall(libc::SYS_io_submit, context, 1, blocks.as_mut_ptr());
            let no_limit = std::ptr::null::<libc::timespec>();
            (sent, libc::syscall(libc::SYS_io_getevents, context, 1, 1, event.as_mut_ptr(), no_limit))
        };
        if (sent, came, event[2]) != (1, 1, PAGE as i64) {
            return Err(Problem::failed(format!("sent {sent}, came {came}, read {}", event[2])));
        }
    }
    // The calls name no file: only the open is one of it.
    Ok(Count::of(path, [1, 0, 0, 0, 0]))
}

/// Waits for nothing but the time.
fn sleep(dir: &Path, number: u64) -> Outcome<Count> {
    let path = dir.join("data");
    let _file = opened(&path, 0)?;
    for _ in 0..number {
        std::thread::sleep(SLEEP);
    }
    Ok(Count::of(path, [1, 0, 0, 0, 0]))
}

/// Reads the file from front to end, again and again.
fn again(dir: &Path, number: u64) -> Outcome<Count> {
    const BYTES: usize = 64 << 10;
    let path = dir.join("data");
    let file = File::open(&path).map_err(failed("open a file"))?;
    let size = file.metadata().map_err(failed("examine a file"))?.len();
    let mut memory = vec![0; BYTES];
    let mut counts = [1, 0, 0, 0, 0];
    for _ in 0..number {
        let mut at = 0;
        while at < size {
            let read = file.read_at(&mut memory, at).map_err(failed("read"))? as u64;
            (counts[1], counts[2], at) = (counts[1] + 1, counts[2] + read, at + read);
        }
    }
    Ok(Count::of(path, counts))
}

/// Changes each page of memory that no file stands behind, in order, again and again.
fn anonymous(dir: &Path, number: u64) -> Outcome<Count> {
    const PASSES: u8 = 3;
    let path = dir.join("data");
    let _file = opened(&path, 0)?;
    let mut memory = vec![0_u8; place(number) as usize];
    for pass in 1..=PASSES {
        for page in memory.chunks_mut(PAGE) {
            // The optimiser would keep the last pass alone.
            std::hint::black_box(page)[0] = pass;
        }
    }
    Ok(Count::of(path, [1, 0, 0, 0, 0]))
}

/// The kernel copies the file, and the copy is made durable.
fn copy(dir: &Path, number: u64) -> Outcome<Count> {
    let (path, to) = (dir.join("data"), dir.join("copy"));
    let bytes = place(number);
    let file = File::open(&path).map_err(failed("open a file"))?;
    let copy = File::create(&to).map_err(failed("make a file"))?;
    let (mut done, mut calls) = (0, 0);
    while done < bytes {
        let left = (bytes - done) as usize;
        let moved = rustix::fs::copy_file_range(&file, None, &copy, None, left);
        let moved = moved.map_err(|e| failed("copy")(e.into()))? as u64;
        if moved == 0 {
            return Err(Problem::failed("the file is too short"));
        }
        (done, calls) = (done + moved, calls + 1);
    }
    copy.sync_all().map_err(failed("sync"))?;
    let mut all = Count::of(path, [1, calls, bytes, 0, 0]);
    all.add(Count::of(to, [1, 0, 0, calls, bytes]));
    Ok(all)
}
