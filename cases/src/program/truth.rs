//! Programs that count what they do themselves, and print it: what a tool says of them is compared with that.
//!
//! One line of JSON: by file `[opens, reads, bytes read, writes, bytes written]`, and how many opens failed with ENOTDIR, an
//! error that nothing else in such a process meets.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use iowhy_core::problem::Problem;
use rustix::fs::OFlags;

use super::{Outcome, failed};

/// Past the page cache.
pub(super) const O_DIRECT: i32 = OFlags::DIRECT.bits() as i32;

/// What was done.
#[derive(Default)]
pub(super) struct Count {
    files: BTreeMap<PathBuf, [u64; 5]>,
    failed_opens: u64,
}

impl Count {
    /// Opens, reads, bytes read, writes and bytes written of one file.
    pub(super) fn of(path: PathBuf, counts: [u64; 5]) -> Count {
        Count { files: BTreeMap::from([(path, counts)]), failed_opens: 0 }
    }

    fn open(&mut self, path: &Path) -> Outcome<File> {
        let file = File::open(path).map_err(failed("open a file"))?;
        self.files.entry(path.to_owned()).or_default()[0] += 1;
        Ok(file)
    }

    fn open_in_vain(&mut self, file: &Path) -> Outcome<()> {
        match File::open(file.join("below")) {
            Err(error) if error.kind() == ErrorKind::NotADirectory => self.failed_opens += 1,
            _ => return Err(Problem::failed("a file has become a directory")),
        }
        Ok(())
    }

    fn read(&mut self, path: &Path, file: &File, bytes: usize, offset: u64) -> Outcome<()> {
        let mut memory = vec![0; bytes];
        let count = self.files.entry(path.to_owned()).or_default();
        count[2] += file.read_at(&mut memory, offset).map_err(failed("read a file"))? as u64;
        count[1] += 1;
        Ok(())
    }

    pub(super) fn add(&mut self, other: Count) {
        self.failed_opens += other.failed_opens;
        for (path, counts) in other.files {
            let sums = self.files.entry(path).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }

    /// Prints the counts as JSON; names of files that the tests make need no escapes.
    pub(super) fn print(&self) {
        let file = |(path, counts): (&PathBuf, &[u64; 5])| format!("\"{}\": {counts:?}", path.display());
        let files: Vec<String> = self.files.iter().map(file).collect();
        println!("{{\"files\": {{{}}}, \"failed_opens\": {}}}", files.join(", "), self.failed_opens);
    }
}

/// A file of 64 KiB.
fn made(dir: &str, name: &str) -> Outcome<PathBuf> {
    let path = Path::new(dir).join(name);
    std::fs::write(&path, [7; 65_536]).map_err(failed("write a file"))?;
    Ok(path)
}

/// Opens, reads and fails to open in `threads` threads: slowly, as fast as it can, and slowly again.
fn phases(dir: &str, threads: usize, calls: u64) -> Outcome<Count> {
    let mut all = Count::default();
    let work = |path: PathBuf| {
        let mut count = Count::default();
        for phase in [calls / 100, calls, calls / 100] {
            for n in 0..phase {
                let file = count.open(&path)?;
                count.read(&path, &file, 100, n * 4099 % 65_000)?;
                if n % 5 == 0 {
                    count.open_in_vain(&path)?;
                }
                if phase < calls {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        Ok(count)
    };
    let paths = (0..threads).map(|n| made(dir, &format!("phase{n}"))).collect::<Outcome<Vec<_>>>()?;
    let counts: Vec<Outcome<Count>> = std::thread::scope(|scope| {
        let running: Vec<_> = paths.into_iter().map(|path| scope.spawn(|| work(path))).collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        running
            .into_iter()
            .map(|t| ended(t).unwrap_or_else(|_| Err(Problem::failed("a thread died"))))
            .collect()
    });
    for count in counts {
        all.add(count?);
    }
    // The files were written by one call each.
    for counts in all.files.values_mut() {
        counts[0] += 1;
        counts[3] += 1;
        counts[4] += 65_536;
    }
    Ok(all)
}

/// Children that live for a moment: each opens the file three times and reads 10 bytes.
fn children(dir: &str, children: u64) -> Outcome<Count> {
    let path = made(dir, "shared")?;
    let this = std::env::current_exe().map_err(failed("find this program"))?;
    for _ in 0..children {
        let child = Command::new(&this).args(["program", "truth", "child"]).arg(&path).arg("1").output();
        if !child.map_err(failed("start a child"))?.status.success() {
            return Err(Problem::failed("a child failed"));
        }
    }
    let mut all = Count::default();
    all.files.insert(path, [1 + 3 * children, children, 10 * children, 1, 65_536]);
    Ok(all)
}

fn child(path: &Path) -> Outcome<Count> {
    let mut count = Count::default();
    count.open(path)?;
    count.open(path)?;
    let file = count.open(path)?;
    count.read(path, &file, 10, 0)?;
    Ok(count)
}

/// Threads that all live at the same time.
fn crowd(dir: &str, threads: usize) -> Outcome<Count> {
    let path = made(dir, "crowd")?;
    let file = File::open(&path).map_err(failed("open a file"))?;
    let all_there = Barrier::new(threads);
    std::thread::scope(|scope| {
        let start = |_| {
            std::thread::Builder::new().stack_size(32_768).spawn_scoped(scope, || {
                all_there.wait();
                let mut byte = [0; 10];
                (0..10).all(|n| file.read_at(&mut byte, n * 100).is_ok_and(|read| read == 10))
            })
        };
        let started =
            (0..threads).map(start).collect::<Result<Vec<_>, _>>().map_err(failed("start a thread"))?;
        let all_read = started.into_iter().all(|thread| thread.join().unwrap_or(false));
        all_read.then_some(()).ok_or_else(|| Problem::failed("a read failed"))
    })?;
    let reads = 10 * threads as u64;
    let mut all = Count::default();
    all.files.insert(path, [2, reads, 10 * reads, 1, 65_536]);
    Ok(all)
}

/// Children that only write 10 bytes and end, each waited for.
fn forks(dir: &str, children: u64) -> Outcome<Count> {
    let path = made(dir, "forks")?;
    let mut options = OpenOptions::new();
    let file = options.append(true).open(&path).map_err(failed("open a file"))?;
    for _ in 0..children {
        // SAFETY: this process has one thread, and the child makes two system calls on memory that was there before.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the descriptor and the bytes are those of the parent.
            unsafe {
                libc::write(file.as_raw_fd(), b"0123456789".as_ptr().cast(), 10);
                libc::_exit(0)
            }
        }
        // SAFETY: no address is given.
        if child < 0 || unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } != child {
            return Err(failed("start a child")(std::io::Error::last_os_error()));
        }
    }
    Ok(Count::of(path, [2, 0, 0, 1 + children, 65_536 + 10 * children]))
}

/// Many files, each written and read once. The sums of all of them stand under the name of the directory.
fn many(dir: &str, files: u64) -> Outcome<Count> {
    let mut sums = [0; 5];
    for n in 0..files {
        let path = Path::new(dir).join(format!("many{n}"));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(failed("make a file"))?;
        let mut byte = [7];
        sums[4] += file.write_at(&byte, 0).map_err(failed("write a file"))? as u64;
        sums[2] += file.read_at(&mut byte, 0).map_err(failed("read a file"))? as u64;
        (sums[0], sums[1], sums[3]) = (sums[0] + 1, sums[1] + 1, sums[3] + 1);
    }
    let mut all = Count::default();
    all.files.insert(PathBuf::from(dir), sums);
    Ok(all)
}

/// Waits on a ring: `count` times for a message that comes 5 ms later, then as often for a read of a file past the cache, then for
/// a timer of 1 ms; meanwhile another thread keeps the disk busy. Prints how many requests of each kind it made.
fn ring(dir: &str, count: u64) -> Outcome<String> {
    let path = made(dir, "ring")?;
    std::fs::File::open(&path).and_then(|file| file.sync_all()).map_err(failed("write a file"))?;
    let file =
        OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&path).map_err(failed("open a file"))?;
    let (here, mut there) = UnixStream::pair().map_err(failed("make a socket"))?;
    let mut ring = IoUring::new(8).map_err(failed("make a ring"))?;
    let mut memory = vec![0_u8; 8192];
    let place = memory.as_ptr().align_offset(4096);
    let page = memory[place..place + 4096].as_mut_ptr();
    let after = types::Timespec::new().nsec(1_000_000);
    let over = AtomicBool::new(false);
    let disk = Path::new(dir).join("busy");
    let busy = || {
        let file = File::create(&disk)?;
        let block = vec![7; 262_144];
        while !over.load(Ordering::Relaxed) {
            file.write_all_at(&block, 0)?;
            file.sync_data()?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(busy);
        let mut wait_for = |request: squeue::Entry| {
            // SAFETY: files, memory and the time live until the ring has said that the request is done.
            let pushed = unsafe { ring.submission().push(&request) };
            pushed.map_err(|_| Problem::failed("the ring is full"))?;
            ring.submit_and_wait(1).map_err(failed("wait for the ring"))?;
            ring.completion().next().map(|c| c.result()).ok_or_else(|| Problem::failed("nothing came"))
        };
        let mut all = || -> Outcome<()> {
            for n in 0..count {
                let receive = opcode::Recv::new(types::Fd(here.as_raw_fd()), page, 1).build();
                let sender = &mut there;
                let sent = std::thread::scope(|scope| {
                    scope.spawn(move || {
                        std::thread::sleep(Duration::from_millis(5));
                        sender.write_all(&[1])
                    });
                    wait_for(receive)
                })?;
                let read = opcode::Read::new(types::Fd(file.as_raw_fd()), page, 4096).offset(n % 16 * 4096);
                let read = wait_for(read.build())?;
                wait_for(opcode::Timeout::new(&after).build())?;
                if (sent, read) != (1, 4096) {
                    return Err(Problem::failed(format!("received {sent} bytes, read {read}")));
                }
            }
            Ok(())
        };
        let done = all();
        over.store(true, Ordering::Relaxed);
        let wrote: std::io::Result<()> =
            writer.join().unwrap_or_else(|_| Err(std::io::Error::other("the writer died")));
        wrote.map_err(failed("write a file"))?;
        done
    })?;
    Ok(format!("{{\"recv\": {count}, \"read\": {count}, \"timeout\": {count}}}"))
}

/// Runs one of them and prints what it did.
pub(super) fn run(kind: &str, dir: &str, number: u64) -> Outcome<()> {
    match kind {
        "ring" => {
            println!("{}", ring(dir, number)?);
            return Ok(());
        }
        "phases" => phases(dir, 3, number),
        "children" => children(dir, number),
        "child" => child(Path::new(dir)),
        "crowd" => crowd(dir, number as usize),
        "forks" => forks(dir, number),
        "many" => many(dir, number),
        _ => return Err(Problem::refused(format!("no program counts `{kind}`"))),
    }?
    .print();
    Ok(())
}
