//! Files as memory: touching mapped pages at random, and mapping the same file again and again.

use std::fs::File;

use iowhy_core::rng::Rng;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::{Outcome, SEED, failed, sample};

/// A file mapped for reading.
pub(super) struct Map {
    address: *mut std::ffi::c_void,
    bytes: usize,
}

impl Map {
    /// Maps the whole file.
    pub(super) fn of(file: &File, flags: MapFlags) -> Outcome<Map> {
        let bytes = file.metadata().map_err(failed("examine the file"))?.len() as usize;
        // SAFETY: no address is asked for, so the kernel picks one that is free.
        let mapped = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED | flags, file, 0)
        };
        Ok(Map { address: mapped.map_err(|e| failed("map the file")(e.into()))?, bytes })
    }

    fn advise(&self, advice: Advice) -> Outcome<()> {
        // SAFETY: the range is this mapping; the advice given (random) changes no content.
        unsafe { rustix::mm::madvise(self.address, self.bytes, advice) }
            .map_err(|e| failed("advise")(e.into()))
    }

    /// The file's bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, as long as `self` lives, for `bytes` bytes. The cases' own files are
        // neither cut nor written while a program runs.
        unsafe { std::slice::from_raw_parts(self.address.cast::<u8>(), self.bytes) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, and no borrow of it outlives `self`. Failure would leave it mapped,
        // which harms nobody.
        let _ = unsafe { rustix::mm::munmap(self.address, self.bytes) };
    }
}

/// Touches `count` random pages of the mapped file.
pub(super) fn touch(path: &str, count: u64, random_advice: bool) -> Outcome<u64> {
    let file = File::open(path).map_err(failed("open the file"))?;
    let map = Map::of(&file, MapFlags::empty())?;
    if random_advice {
        map.advise(Advice::Random)?;
    }
    let bytes = map.bytes();
    let mut rng = Rng::new(SEED);
    Ok((0..count).map(|_| u64::from(bytes[rng.below(bytes.len() as u64) as usize])).sum())
}

/// Looks at every page of the file `passes` times: mapped anew for each pass, or mapped once.
pub(super) fn passes(path: &str, passes: u64, once: bool) -> Outcome<u64> {
    let file = File::open(path).map_err(failed("open the file"))?;
    let mut sum = 0;
    if once {
        let map = Map::of(&file, MapFlags::empty())?;
        for _ in 0..passes {
            sum += sample(std::hint::black_box(map.bytes()));
        }
    } else {
        for _ in 0..passes {
            sum += sample(Map::of(&file, MapFlags::empty())?.bytes());
        }
    }
    Ok(sum)
}

/// Looks at every page of the file `passes` times through one mapping, filled at once.
pub(super) fn sum(path: &str, passes: u64) -> Outcome<u64> {
    let file = File::open(path).map_err(failed("open the file"))?;
    let map = Map::of(&file, MapFlags::POPULATE)?;
    Ok((0..passes).map(|_| sample(std::hint::black_box(map.bytes()))).sum())
}
