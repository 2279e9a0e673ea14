//! A small program to be watched: it does one thing so many times and prints how long that took, and the CPU time that it took,
//! in nanoseconds.
//!
//! Both are of the loop alone: starting and ending do not count.
//!
//! What may not enter: anything that is not the loop.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::thread::{CpuSet, Pid, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

const USAGE: &str = "usage: io_program cached|direct FILE COUNT, io_program paced FILE COUNT NANOSECONDS, io_program pipe COUNT";
const BLOCK: usize = 4096;

/// A buffer that direct reads may use.
#[repr(align(4096))]
struct Block([u8; BLOCK]);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let took = match words.as_slice() {
        ["cached", file, count] => {
            count.parse().ok().map(|n| reads(file, n, OFlags::empty(), Duration::ZERO))
        }
        ["direct", file, count] => count.parse().ok().map(|n| reads(file, n, OFlags::DIRECT, Duration::ZERO)),
        ["paced", file, count, ns] => count
            .parse()
            .ok()
            .zip(ns.parse().ok())
            .map(|(n, ns)| reads(file, n, OFlags::empty(), Duration::from_nanos(ns))),
        ["pipe", count] => count.parse().ok().map(round_trips),
        // The other end of the pipes.
        ["echo"] => Some(echo().map(|()| Took::default())),
        _ => None,
    };
    match took {
        Some(Ok(took)) => {
            if words != ["echo"] {
                println!("{} {}", took.wall.as_nanos(), took.cpu.as_nanos());
            }
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("io_program: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// What a loop took.
#[derive(Default)]
struct Took {
    wall: Duration,
    /// Of this process.
    cpu: Duration,
}

/// Both clocks at the start of a loop.
struct Watch {
    wall: Instant,
    cpu: Duration,
}

impl Watch {
    fn start() -> Watch {
        Watch { cpu: cpu_time(), wall: Instant::now() }
    }

    fn stop(&self) -> Took {
        Took { wall: self.wall.elapsed(), cpu: cpu_time().saturating_sub(self.cpu) }
    }
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// Reads `count` blocks of the file, one after the other, at places that follow from their number, and computes for `between`
/// after each.
fn reads(path: &str, count: u64, flags: OFlags, between: Duration) -> std::io::Result<Took> {
    let file: File = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let blocks = file.metadata()?.len() / BLOCK as u64;
    if blocks == 0 {
        return Err(std::io::Error::other("the file is shorter than a block"));
    }
    let mut block = Box::new(Block([0; BLOCK]));
    let watch = Watch::start();
    for n in 0..count {
        // A great odd number scatters the reads, so that no read-ahead begins.
        let at = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks;
        file.read_exact_at(&mut block.0, at * BLOCK as u64)?;
        if between > Duration::ZERO {
            let begun = Instant::now();
            while begun.elapsed() < between {}
        }
    }
    Ok(watch.stop())
}

/// Sends a byte to another process and back, `count` times. Both are bound to one CPU, so that each byte is two
/// switches.
fn round_trips(count: u64) -> std::io::Result<Took> {
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None::<Pid>, &one)?;
    let mut other = Command::new(std::env::current_exe()?)
        .arg("echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut to), Some(mut from)) = (other.stdin.take(), other.stdout.take()) else {
        return Err(std::io::Error::other("no pipes"));
    };
    let mut byte = [0u8];
    // The other process is there when it has answered once.
    to.write_all(&byte)?;
    from.read_exact(&mut byte)?;
    let watch = Watch::start();
    for _ in 0..count {
        to.write_all(&byte)?;
        from.read_exact(&mut byte)?;
    }
    let took = watch.stop();
    drop(to);
    other.wait()?;
    Ok(took)
}

fn echo() -> std::io::Result<()> {
    // Locked and unbuffered: one read and one write for each byte.
    let (mut from, mut to) = (File::from(owned(std::io::stdin())?), File::from(owned(std::io::stdout())?));
    let mut byte = [0u8];
    while from.read(&mut byte)? > 0 {
        to.write_all(&byte)?;
    }
    Ok(())
}

fn owned(fd: impl std::os::fd::AsFd) -> std::io::Result<std::os::fd::OwnedFd> {
    fd.as_fd().try_clone_to_owned()
}
