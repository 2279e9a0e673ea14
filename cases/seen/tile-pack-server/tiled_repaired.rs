//! tiled: answers a trace of map tile requests from one packed archive with a pool of worker threads.

use std::env;
use std::fs;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

const WORKERS: usize = 16;

#[derive(Clone, Copy)]
struct Entry {
    offset: u64,
    len: u32,
}

/// The archive that all workers answer from.
struct TilePack {
    file: File,
    index: Vec<Entry>,
}

impl TilePack {
    fn open(dir: &Path) -> io::Result<TilePack> {
        let raw = fs::read(dir.join("tiles.idx"))?;
        let index = raw
            .chunks_exact(16)
            .map(|rec| Entry {
                offset: u64::from_le_bytes(rec[0..8].try_into().unwrap()),
                len: u32::from_le_bytes(rec[8..12].try_into().unwrap()),
            })
            .collect();
        let file = File::open(dir.join("tiles.pack"))?;
        Ok(TilePack { file, index })
    }

    /// Reads one tile into `buf`.
    fn get(&self, tile: usize, buf: &mut Vec<u8>) -> io::Result<()> {
        let entry = self.index[tile];
        buf.resize(entry.len as usize, 0);
        self.file.read_exact_at(buf, entry.offset)
    }
}

/// The ETag that goes with the response.
fn etag(body: &[u8]) -> u64 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    for word in body.chunks(8) {
        let mut w = [0u8; 8];
        w[..word.len()].copy_from_slice(word);
        h = (h ^ u64::from_le_bytes(w)).wrapping_mul(0x0100_0000_01b3);
    }
    h
}

#[derive(Default)]
struct Totals {
    tiles: u64,
    bytes: u64,
    etags: u64,
}

fn worker(pack: &TilePack, requests: &[usize], next: &AtomicUsize) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let mut body = Vec::new();
    loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= requests.len() {
            return Ok(totals);
        }
        pack.get(requests[i], &mut body)?;
        totals.tiles += 1;
        totals.bytes += body.len() as u64;
        totals.etags ^= etag(&body);
    }
}

fn main() -> io::Result<()> {
    let dir = env::args().nth(1).expect("usage: tiled DIR");
    let dir = Path::new(&dir);
    let pack = Arc::new(TilePack::open(dir)?);
    let requests: Arc<Vec<usize>> = Arc::new(
        fs::read_to_string(dir.join("requests.txt"))?
            .lines()
            .map(|line| line.parse().expect("tile number"))
            .collect(),
    );
    let next = Arc::new(AtomicUsize::new(0));

    let pool: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (pack, requests, next) = (pack.clone(), requests.clone(), next.clone());
            thread::spawn(move || worker(&pack, &requests, &next))
        })
        .collect();

    let mut all = Totals::default();
    for handle in pool {
        let part = handle.join().expect("worker")?;
        all.tiles += part.tiles;
        all.bytes += part.bytes;
        all.etags ^= part.etags;
    }
    println!("tiles {} bytes {} etags {:016x}", all.tiles, all.bytes, all.etags);
    Ok(())
}
