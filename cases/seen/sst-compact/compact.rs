//! Compaction: merges sorted tables of 128-byte records in 4 KiB blocks; the newest version of a key wins.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const BLOCK: usize = 4096;
const REC: usize = 128;
const FADV_RANDOM: i32 = 1;
const FADV_SEQUENTIAL: i32 = 2;

extern "C" {
    fn posix_fadvise(fd: i32, offset: i64, len: i64, advice: i32) -> i32;
}

struct Table {
    file: File,
    next: u64,
    block: [u8; BLOCK],
    at: usize,
    len: u64,
}

impl Table {
    fn open(path: &std::path::Path, advice: i32) -> Table {
        let file = File::open(path).unwrap();
        let len = file.metadata().unwrap().len();
        unsafe { posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
        Table { file, next: 0, block: [0; BLOCK], at: BLOCK, len }
    }
    fn advance(&mut self) -> bool {
        self.at += REC;
        if self.at >= BLOCK {
            if self.next >= self.len {
                return false;
            }
            self.file.read_exact_at(&mut self.block, self.next).unwrap();
            self.next += BLOCK as u64;
            self.at = 0;
        }
        true
    }
    fn rec(&self) -> &[u8] {
        &self.block[self.at..self.at + REC]
    }
    fn key(&self) -> u64 {
        u64::from_be_bytes(self.rec()[..8].try_into().unwrap())
    }
}

fn crc(table: &[u32; 256], data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |c, &b| table[((c ^ b as u32) & 255) as usize] ^ (c >> 8))
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let advice = if a.len() > 2 { FADV_SEQUENTIAL } else { FADV_RANDOM };
    let mut names: Vec<_> = std::fs::read_dir(format!("{}/tables", a[1])).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    let mut tables: Vec<Table> = names.iter().map(|p| Table::open(p, advice)).collect();
    let mut crcs = [0u32; 256];
    for i in 0..256u32 {
        crcs[i as usize] = (0..8).fold(i, |c, _| if c & 1 == 1 { 0xEDB88320 ^ (c >> 1) } else { c >> 1 });
    }
    let mut heap = BinaryHeap::new();
    for i in 0..tables.len() {
        if tables[i].advance() {
            heap.push(Reverse((tables[i].key(), Reverse(i))));
        }
    }
    let mut out = BufWriter::with_capacity(1 << 20, File::create(format!("{}/merged.sst", a[1])).unwrap());
    let (mut kept, mut dropped, mut sum, mut last) = (0u64, 0u64, 0u64, 0u64);
    while let Some(Reverse((key, Reverse(i)))) = heap.pop() {
        if key != last {
            let r = tables[i].rec();
            sum += crc(&crcs, r) as u64;
            out.write_all(r).unwrap();
            kept += 1;
            last = key;
        } else {
            dropped += 1;
        }
        if tables[i].advance() {
            heap.push(Reverse((tables[i].key(), Reverse(i))));
        }
    }
    out.flush().unwrap();
    println!("{kept} {dropped} {sum}");
}
