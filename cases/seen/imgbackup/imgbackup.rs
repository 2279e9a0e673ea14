//! Backs up raw disk images, a pack of blocks that each occur once.
// imgbackup: deduplicating backup of raw VM disk images into a pack file.
//
//   imgbackup [--extents] STORE IMAGE...
//
// Each image is cut into 256 KiB blocks. A block of zeroes is not stored; any other is hashed and stored once.
mod sha256;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const BLOCK: u64 = 256 * 1024;

type Digest = [u8; 32];

fn is_zero(data: &[u8]) -> bool {
    data.chunks(64).all(|c| c.iter().fold(0u8, |x, y| x | y) == 0)
}

mod extents {
    use std::io;
    extern "C" {
        fn lseek(fd: i32, offset: i64, whence: i32) -> i64;
    }
    const SEEK_DATA: i32 = 3;
    const SEEK_HOLE: i32 = 4;
    const ENXIO: i32 = 6;

    fn seek(fd: i32, at: u64, whence: i32) -> io::Result<Option<u64>> {
        let r = unsafe { lseek(fd, at as i64, whence) };
        if r >= 0 {
            return Ok(Some(r as u64));
        }
        let e = io::Error::last_os_error();
        if e.raw_os_error() == Some(ENXIO) { Ok(None) } else { Err(e) }
    }

    /// The next allocated range at or after `at`.
    pub fn next(fd: i32, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
        match seek(fd, at, SEEK_DATA)? {
            None => Ok(None),
            Some(start) => Ok(Some((start, seek(fd, start, SEEK_HOLE)?.unwrap_or(size)))),
        }
    }
}

struct Store {
    pack: BufWriter<File>,
    at: u64,
    known: HashMap<Digest, (u64, u32)>,
}

impl Store {
    fn create(dir: &Path) -> io::Result<Store> {
        fs::create_dir_all(dir)?;
        let pack = BufWriter::with_capacity(1 << 20, File::create(dir.join("pack-0001"))?);
        Ok(Store { pack, at: 0, known: HashMap::new() })
    }

    fn put(&mut self, data: &[u8]) -> io::Result<Digest> {
        let d = sha256::digest(data);
        if !self.known.contains_key(&d) {
            self.pack.write_all(data)?;
            self.known.insert(d, (self.at, data.len() as u32));
            self.at += data.len() as u64;
        }
        Ok(d)
    }
}

#[derive(Default)]
struct Report {
    blocks: u64,
    stored: Vec<(u64, Digest)>,
}

struct Image {
    file: File,
    size: u64,
    buf: Vec<u8>,
}

impl Image {
    fn open(path: &Path) -> io::Result<Image> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Image { file, size, buf: vec![0; BLOCK as usize] })
    }

    fn block(&mut self, n: u64, store: &mut Store, rep: &mut Report) -> io::Result<()> {
        let at = n * BLOCK;
        let len = BLOCK.min(self.size - at) as usize;
        self.file.read_exact_at(&mut self.buf[..len], at)?;
        if !is_zero(&self.buf[..len]) {
            let d = store.put(&self.buf[..len])?;
            rep.stored.push((n, d));
        }
        Ok(())
    }

    fn backup(&mut self, store: &mut Store, by_extent: bool) -> io::Result<Report> {
        let blocks = self.size.div_ceil(BLOCK);
        let mut rep = Report { blocks, ..Report::default() };
        if !by_extent {
            for n in 0..blocks {
                self.block(n, store, &mut rep)?;
            }
            return Ok(rep);
        }
        let (mut n, mut at) = (0, 0);
        while let Some((start, end)) = extents::next(self.file.as_raw_fd(), at, self.size)? {
            n = n.max(start / BLOCK);
            while n < end.div_ceil(BLOCK) {
                self.block(n, store, &mut rep)?;
                n += 1;
            }
            at = end;
        }
        Ok(rep)
    }
}

fn run() -> io::Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let by_extent = args.first().is_some_and(|a| a == "--extents");
    if by_extent {
        args.remove(0);
    }
    let dir = PathBuf::from(&args[0]);
    let mut store = Store::create(&dir)?;
    let mut all = Vec::new();
    for path in args[1..].iter().map(Path::new) {
        let rep = Image::open(path)?.backup(&mut store, by_extent)?;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut index = BufWriter::new(File::create(dir.join(format!("{name}.index")))?);
        for (n, d) in &rep.stored {
            let (at, len) = store.known[d];
            writeln!(index, "{n} {} {at} {len}", sha256::hex(d))?;
            all.extend_from_slice(&n.to_le_bytes());
            all.extend_from_slice(d);
        }
        index.flush()?;
        println!("{name}: {} blocks, {} with data", rep.blocks, rep.stored.len());
    }
    store.pack.flush()?;
    println!("pack: {} blocks, {} bytes, {}", store.known.len(), store.at, sha256::hex(&sha256::digest(&all)));
    Ok(())
}

fn main() {
    if let Err(e) = run() {
        eprintln!("imgbackup: {e}");
        std::process::exit(1);
    }
}
