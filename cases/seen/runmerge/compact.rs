//! Compaction of a session store: merges sorted runs into one table of
//! compressed blocks. The newest value of a key wins; deleted keys go away.
//!
//! compact OUT RUN...      (the newest run first)
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::env;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

const BLOCK: usize = 64 << 10;
const DELETED: u32 = u32::MAX;

struct Run {
    input: BufReader<File>,
    key: u64,
    value: Option<Vec<u8>>,
}

impl Run {
    fn open(path: &str) -> io::Result<Run> {
        let input = BufReader::with_capacity(512 << 10, File::open(path)?);
        Ok(Run { input, key: 0, value: None })
    }

    fn advance(&mut self) -> io::Result<bool> {
        let mut head = [0u8; 12];
        match self.input.read_exact(&mut head) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            other => other?,
        }
        self.key = u64::from_le_bytes(head[..8].try_into().unwrap());
        let len = u32::from_le_bytes(head[8..].try_into().unwrap());
        self.value = if len == DELETED {
            None
        } else {
            let mut v = vec![0; len as usize];
            self.input.read_exact(&mut v)?;
            Some(v)
        };
        Ok(true)
    }
}

/// LZ77 with a chain of candidates per hash: slower than LZ4's fast mode, and tighter.
struct Compressor {
    head: Vec<u32>,
    prev: Vec<u32>,
}

impl Compressor {
    fn hash(b: &[u8]) -> usize {
        (u32::from_le_bytes(b[..4].try_into().unwrap()).wrapping_mul(2654435761) >> 17) as usize
    }

    fn compress(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.head.fill(u32::MAX);
        out.clear();
        let (mut at, mut literal) = (0, 0);
        while at + 4 <= data.len() {
            let h = Self::hash(&data[at..]);
            let (mut best, mut best_at) = (0, 0);
            let mut candidate = self.head[h];
            for _ in 0..8 {
                if candidate == u32::MAX {
                    break;
                }
                let c = candidate as usize;
                let n = data[c..at].iter().chain(&data[at..]).zip(&data[at..]).take_while(|(a, b)| a == b).count();
                if n > best {
                    (best, best_at) = (n, c);
                }
                candidate = self.prev[c];
            }
            let step = if best >= 6 { best } else { 1 };
            if best >= 6 {
                put(out, (at - literal) as u32);
                out.extend_from_slice(&data[literal..at]);
                put(out, (at - best_at) as u32);
                put(out, best as u32);
                literal = at + best;
            }
            for p in at..(at + step).min(data.len() - 3) {
                let h = Self::hash(&data[p..]);
                self.prev[p] = self.head[h];
                self.head[h] = p as u32;
            }
            at += step;
        }
        put(out, (data.len() - literal) as u32);
        out.extend_from_slice(&data[literal..]);
    }
}

fn put(out: &mut Vec<u8>, mut n: u32) {
    while n >= 128 {
        out.push(n as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
}

fn checksum(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ b as u64).wrapping_mul(0x100_0000_01b3))
}

struct Table {
    output: BufWriter<File>,
    compressor: Compressor,
    block: Vec<u8>,
    packed: Vec<u8>,
    index: Vec<u8>,
    first_key: u64,
    written: u64,
    sum: u64,
}

impl Table {
    fn create(path: &Path) -> io::Result<Table> {
        Ok(Table {
            output: BufWriter::with_capacity(1 << 20, File::create(path)?),
            compressor: Compressor { head: vec![u32::MAX; 1 << 15], prev: vec![0; BLOCK * 2] },
            block: Vec::with_capacity(BLOCK * 2),
            packed: Vec::new(),
            index: Vec::new(),
            first_key: 0,
            written: 0,
            sum: 0,
        })
    }

    fn add(&mut self, key: u64, value: &[u8]) -> io::Result<()> {
        if self.block.is_empty() {
            self.first_key = key;
        }
        self.block.extend_from_slice(&key.to_le_bytes());
        put(&mut self.block, value.len() as u32);
        self.block.extend_from_slice(value);
        if self.block.len() >= BLOCK {
            self.flush_block()?;
        }
        Ok(())
    }

    fn flush_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.compressor.compress(&self.block, &mut self.packed);
        let sum = checksum(&self.packed);
        self.output.write_all(&self.packed)?;
        self.index.extend_from_slice(&self.first_key.to_le_bytes());
        self.index.extend_from_slice(&self.written.to_le_bytes());
        self.index.extend_from_slice(&sum.to_le_bytes());
        self.sum = self.sum.rotate_left(5) ^ sum;
        self.written += self.packed.len() as u64;
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<(u64, u64)> {
        self.flush_block()?;
        self.output.write_all(&self.index)?;
        self.output.write_all(&self.written.to_le_bytes())?;
        let file = self.output.into_inner()?;
        file.sync_all()?;
        Ok((self.written, self.sum))
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let target = Path::new(&args[1]);
    let unfinished = target.with_extension("tmp");
    let mut runs = Vec::new();
    let mut heap = BinaryHeap::new();
    for (i, path) in args[2..].iter().enumerate() {
        let mut run = Run::open(path)?;
        if run.advance()? {
            heap.push(Reverse((run.key, i)));
        }
        runs.push(run);
    }
    let mut table = Table::create(&unfinished)?;
    let (mut last, mut kept, mut dropped) = (None, 0u64, 0u64);
    while let Some(Reverse((key, i))) = heap.pop() {
        let run = &mut runs[i];
        match run.value.take() {
            Some(value) if last != Some(key) => {
                table.add(key, &value)?;
                kept += 1;
            }
            _ => dropped += 1,
        }
        last = Some(key);
        if run.advance()? {
            heap.push(Reverse((run.key, i)));
        }
    }
    let (bytes, sum) = table.finish()?;
    fs::rename(&unfinished, target)?;
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    println!("kept {kept} dropped {dropped} bytes {bytes} sum {sum:016x}");
    Ok(())
}
