//! Threads that stand in each other's way: on the address space, and on one file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use iowhy_core::problem::Problem;
use rustix::mm::MapFlags;

use super::mapped::Map;
use super::{Outcome, failed, sample};

/// Bytes of one append: large enough for the device, small enough to be one request.
const APPEND_BYTES: usize = 4096;

/// Each thread looks at every page of the file `count` times: through a mapping that is made, filled and given back
/// each time, or through one that it keeps.
pub(super) fn map(path: &str, threads: usize, count: u64, keep: bool) -> Outcome<u64> {
    let file = File::open(path).map_err(failed("open the file"))?;
    join(threads, |_| {
        let kept = if keep { Some(Map::of(&file, MapFlags::POPULATE)?) } else { None };
        let mut sum = 0;
        for _ in 0..count {
            sum += match &kept {
                Some(map) => sample(std::hint::black_box(map.bytes())),
                None => sample(Map::of(&file, MapFlags::POPULATE)?.bytes()),
            };
        }
        Ok(sum)
    })
}

/// Each thread makes `count` blocks durable past the cache: appended to one file that all share, which only one at a
/// time may do, or written over blocks of a file of its own.
pub(super) fn append(dir: &str, threads: usize, count: u64, own: bool) -> Outcome<u64> {
    let shared = if own { None } else { Some(open(&Path::new(dir).join("shared"))?) };
    join(threads, |thread| {
        let mine =
            if own { Some(prepared(&Path::new(dir).join(format!("own{thread}")), count)?) } else { None };
        let mut memory = vec![b'a'; APPEND_BYTES + 4096];
        let start = memory.as_ptr().align_offset(4096);
        let block = &mut memory[start..start + APPEND_BYTES];
        for number in 0..count {
            let (file, place) = match (&mine, &shared) {
                (Some(file), _) => (file, number),
                (None, Some(file)) => (file, number * threads as u64 + thread as u64),
                (None, None) => return Ok(0),
            };
            file.write_all_at(block, place * APPEND_BYTES as u64).map_err(failed("write"))?;
        }
        Ok(count)
    })
}

fn open(path: &Path) -> Outcome<File> {
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .custom_flags(direct)
        .open(path)
        .map_err(failed("make the file for direct writes"))
}

/// A file whose blocks exist: one large write, which costs little beside the many small ones.
fn prepared(path: &Path, blocks: u64) -> Outcome<File> {
    let file = open(path)?;
    let bytes = blocks as usize * APPEND_BYTES;
    let memory = vec![b'p'; bytes + 4096];
    let start = memory.as_ptr().align_offset(4096);
    file.write_all_at(&memory[start..start + bytes], 0).map_err(failed("prepare the file"))?;
    Ok(file)
}

/// Runs the threads and adds up what they return.
fn join(threads: usize, work: impl Fn(usize) -> Outcome<u64> + Sync) -> Outcome<u64> {
    std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        running.into_iter().try_fold(0, |sum, thread| {
            let part =
                thread.join().map_err(|_| Problem::failed("a thread of the program ended early"))??;
            Ok(sum + part)
        })
    })
}
