//! Ordinary reads and writes: sequential reading, appending with and without syncs, updates in place.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::FileExt;

use iowhy_core::rng::Rng;
use rustix::fs::Advice;

use super::{Outcome, SEED, failed};

/// Reads the file from front to end in requests of `bytes`, `passes` times.
pub(super) fn read(path: &str, bytes: usize, passes: u32, random_advice: bool) -> Outcome<u64> {
    let mut buffer = vec![0u8; bytes.max(1)];
    let mut total = 0;
    for _ in 0..passes {
        let mut file = File::open(path).map_err(failed("open the file"))?;
        if random_advice {
            rustix::fs::fadvise(&file, 0, None, Advice::Random).map_err(|e| failed("advise")(e.into()))?;
        }
        loop {
            let got = file.read(&mut buffer).map_err(failed("read"))?;
            if got == 0 {
                break;
            }
            total += got as u64;
        }
    }
    Ok(total)
}

/// Takes `count` records of a page at random places of a file: `scan` reads from its first byte up to each of them, 256 KiB at a time,
/// else only the record is read.
pub(super) fn lookup(path: &str, count: u32, scan: bool) -> Outcome<u64> {
    const RECORD: usize = 4096;
    let mut file = File::open(path).map_err(failed("open the file"))?;
    let pages = file.metadata().map_err(failed("examine the file"))?.len() / RECORD as u64;
    let mut rng = Rng::new(SEED);
    let mut buffer = vec![0u8; 256 << 10];
    let mut sum = 0;
    for _ in 0..count {
        let place = rng.below(pages.max(1)) * RECORD as u64;
        if scan {
            file.rewind().map_err(failed("rewind the file"))?;
            let (mut at, mut got) = (0, file.read(&mut buffer).map_err(failed("read"))?);
            while got > 0 && at + got as u64 <= place {
                at += got as u64;
                got = file.read(&mut buffer).map_err(failed("read"))?;
            }
            sum += buffer
                .get((place - at) as usize..got)
                .map_or(0, |from| super::sample(&from[..RECORD.min(from.len())]));
        } else {
            file.read_exact_at(&mut buffer[..RECORD], place).map_err(failed("read"))?;
            sum += super::sample(&buffer[..RECORD]);
        }
    }
    Ok(sum)
}

/// Sums the pages of a sparse file, 256 KiB a call: of all of it, or of what holds data.
pub(super) fn image(path: &str, whole: bool) -> Outcome<u64> {
    use rustix::fs::SeekFrom;
    let file = File::open(path).map_err(failed("open the file"))?;
    let size = file.metadata().map_err(failed("examine the file"))?.len();
    let mut buffer = vec![0u8; 256 << 10];
    let (mut sum, mut at) = (0, 0);
    while at < size {
        let mut end = size;
        if !whole {
            match rustix::fs::seek(&file, SeekFrom::Data(at)) {
                Ok(data) => at = data,
                Err(rustix::io::Errno::NXIO) => break,
                Err(e) => return Err(failed("find the data")(e.into())),
            }
            end =
                rustix::fs::seek(&file, SeekFrom::Hole(at)).map_err(|e| failed("find the end")(e.into()))?;
        }
        while at < end {
            let most = buffer.len().min((end - at) as usize);
            let got = file.read_at(&mut buffer[..most], at).map_err(failed("read"))?;
            if got == 0 {
                return Ok(sum);
            }
            sum += super::sample(&buffer[..got]);
            at += got as u64;
        }
    }
    Ok(sum)
}

/// Changes `count` entries of 64 bytes of an index: after each change the file is written whole, else the change is appended to a journal
/// and the file written at the end.
pub(super) fn index(dir: &str, entries: u64, count: u64, whole: bool) -> Outcome<u64> {
    const ENTRY: usize = 64;
    let at = |name: &str| std::path::Path::new(dir).join(name);
    let save =
        |index: &[u8]| File::create(at("index")).and_then(|mut f| f.write_all(index)).map_err(failed("save"));
    let mut journal = File::create(at("journal")).map_err(failed("make the journal"))?;
    let mut index = vec![b'.'; entries.max(1) as usize * ENTRY];
    let mut rng = Rng::new(SEED);
    for _ in 0..count {
        let place = rng.below(entries.max(1)) as usize * ENTRY;
        index[place..][..ENTRY].fill(b'a' + rng.below(26) as u8);
        if whole {
            save(&index)?;
        } else {
            journal.write_all(&index[place..][..ENTRY]).map_err(failed("append"))?;
        }
    }
    save(&index)?;
    Ok(index.iter().map(|&b| u64::from(b)).sum())
}

/// Appends `count` records of `bytes`; syncs after every `every` records, at the end for 0, never for `u64::MAX`.
pub(super) fn write(path: &str, bytes: usize, count: u64, every: u64) -> Outcome<u64> {
    let mut file = File::create(path).map_err(failed("make the file"))?;
    let record = vec![b'r'; bytes];
    for number in 1..=count {
        file.write_all(&record).map_err(failed("write"))?;
        if every > 0 && number % every == 0 {
            file.sync_data().map_err(failed("sync"))?;
        }
    }
    if every == 0 {
        file.sync_data().map_err(failed("sync"))?;
    }
    Ok(count * bytes as u64)
}

/// Writes `bytes` into each of the first `count` slots of `slot` bytes, once each, in random order, then syncs.
pub(super) fn update(path: &str, bytes: usize, slot: u64, count: u64) -> Outcome<u64> {
    let file = OpenOptions::new().write(true).open(path).map_err(failed("open the file"))?;
    let slots = file.metadata().map_err(failed("examine the file"))?.len() / slot.max(1);
    let mut order: Vec<u64> = (0..slots).collect();
    Rng::new(SEED).shuffle(&mut order);
    let record = vec![b'u'; bytes];
    let mut written = 0;
    for &number in order.iter().take(count as usize) {
        file.write_all_at(&record, number * slot).map_err(failed("write"))?;
        written += 1;
    }
    file.sync_data().map_err(failed("sync"))?;
    Ok(written)
}

/// A small database: each transaction reads a page at a random place of the data file and appends a record to the
/// log. With `batch` 1 it reads one page after the other and syncs each record; otherwise the pages of a batch are
/// asked for ahead, and the batch is synced as one.
pub(super) fn transactions(data: &str, log: &str, count: u64, batch: u64) -> Outcome<u64> {
    let data = File::open(data).map_err(failed("open the data"))?;
    let mut log = File::create(log).map_err(failed("make the log"))?;
    let pages = data.metadata().map_err(failed("examine the data"))?.len() / 4096;
    rustix::fs::fadvise(&data, 0, None, Advice::Random).map_err(|e| failed("advise")(e.into()))?;
    let mut rng = Rng::new(SEED);
    let places: Vec<u64> = (0..count).map(|_| rng.below(pages.max(1)) * 4096).collect();
    let mut page = vec![0u8; 4096];
    let mut sum = 0;
    for group in places.chunks(batch.max(1) as usize) {
        if batch > 1 {
            for &place in group {
                rustix::fs::fadvise(&data, place, std::num::NonZeroU64::new(4096), Advice::WillNeed)
                    .map_err(|e| failed("advise")(e.into()))?;
            }
        }
        for &place in group {
            data.read_exact_at(&mut page, place).map_err(failed("read"))?;
            sum += u64::from(page[0]);
            log.write_all(&page[..512]).map_err(failed("write"))?;
        }
        log.sync_data().map_err(failed("sync"))?;
    }
    Ok(sum)
}
