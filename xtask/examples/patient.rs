//! A small program to be watched: it does one thing so many times and prints how long that took, in nanoseconds.
//!
//! The time is its own, from before the first operation to after the last: starting and ending do not count.
//!
//! What may not enter: anything that is not the loop.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::thread::{CpuSet, Pid, sched_getcpu, sched_setaffinity};

const USAGE: &str = "usage: patient cached|direct FILE COUNT, patient pipe COUNT";
const BLOCK: usize = 4096;

/// A buffer that direct reads may use.
#[repr(align(4096))]
struct Block([u8; BLOCK]);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let took = match words.as_slice() {
        ["cached", file, count] => count.parse().ok().map(|n| reads(file, n, OFlags::empty())),
        ["direct", file, count] => count.parse().ok().map(|n| reads(file, n, OFlags::DIRECT)),
        ["pipe", count] => count.parse().ok().map(round_trips),
        // The other end of the pipes.
        ["echo"] => Some(echo().map(|()| Duration::ZERO)),
        _ => None,
    };
    match took {
        Some(Ok(took)) => {
            if words != ["echo"] {
                println!("{}", took.as_nanos());
            }
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("patient: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Reads `count` blocks of the file, one after the other, at places that follow from their number.
fn reads(path: &str, count: u64, flags: OFlags) -> std::io::Result<Duration> {
    let file: File = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let blocks = file.metadata()?.len() / BLOCK as u64;
    if blocks == 0 {
        return Err(std::io::Error::other("the file is shorter than a block"));
    }
    let mut block = Box::new(Block([0; BLOCK]));
    let begin = Instant::now();
    for n in 0..count {
        // A great odd number scatters the reads, so that no read-ahead begins.
        let at = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks;
        file.read_exact_at(&mut block.0, at * BLOCK as u64)?;
    }
    Ok(begin.elapsed())
}

/// Sends a byte to another process and back, `count` times. Both are bound to one CPU, so that each byte is two
/// switches.
fn round_trips(count: u64) -> std::io::Result<Duration> {
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
    let begin = Instant::now();
    for _ in 0..count {
        to.write_all(&byte)?;
        from.read_exact(&mut byte)?;
    }
    let took = begin.elapsed();
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
