//! Packs a rotated log into an archive: reads it once, packs each block of
//! 1 MiB by itself (a small LZ77), checks it by a CRC, and puts the finished
//! archive in its place under its final name.
use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

const BLOCK: usize = 1 << 20;
const HASH_BITS: u32 = 16;

fn crc_table() -> [u32; 256] {
    let mut t = [0u32; 256];
    for i in 0..256u32 {
        let mut c = i;
        for _ in 0..8 {
            c = if c & 1 == 1 { 0xEDB8_8320 ^ (c >> 1) } else { c >> 1 };
        }
        t[i as usize] = c;
    }
    t
}

fn put_len(out: &mut Vec<u8>, mut n: usize) {
    while n >= 128 {
        out.push((n as u8) | 128);
        n >>= 7;
    }
    out.push(n as u8);
}

fn flush_literals(out: &mut Vec<u8>, lit: &[u8]) {
    put_len(out, lit.len());
    out.extend_from_slice(lit);
}

fn pack(src: &[u8], out: &mut Vec<u8>, table: &mut [u32]) {
    table.fill(u32::MAX);
    let (mut i, mut lit) = (0, 0);
    while i + 6 <= src.len() {
        let v = u32::from_le_bytes([src[i], src[i + 1], src[i + 2], src[i + 3]]);
        let h = (v.wrapping_mul(2_654_435_761) >> (32 - HASH_BITS)) as usize;
        let cand = table[h] as usize;
        table[h] = i as u32;
        let mut n = 0;
        if cand < i {
            while i + n < src.len() && src[cand + n] == src[i + n] {
                n += 1;
            }
        }
        if n >= 6 {
            flush_literals(out, &src[lit..i]);
            put_len(out, n);
            put_len(out, i - cand);
            i += n;
            lit = i;
        } else {
            i += 1;
        }
    }
    flush_literals(out, &src[lit..]);
}

fn fill(f: &mut File, buf: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < buf.len() {
        match f.read(&mut buf[n..])? {
            0 => break,
            r => n += r,
        }
    }
    Ok(n)
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let (log, dir) = (&args[1], Path::new(&args[2]));
    fs::create_dir_all(dir)?;
    let part = dir.join("access.part");
    let mut input = File::open(log)?;
    let mut output = File::create(&part)?;
    let crcs = crc_table();
    let mut table = vec![0u32; 1 << HASH_BITS];
    let mut buf = vec![0u8; BLOCK];
    let mut packed = Vec::with_capacity(2 * BLOCK);
    let (mut crc, mut read, mut written, mut lines) = (!0u32, 0usize, 0usize, 0usize);
    loop {
        let n = fill(&mut input, &mut buf)?;
        if n == 0 {
            break;
        }
        for &b in &buf[..n] {
            crc = crcs[((crc ^ b as u32) & 255) as usize] ^ (crc >> 8);
            lines += (b == b'\n') as usize;
        }
        packed.clear();
        packed.extend_from_slice(&[0; 8]);
        pack(&buf[..n], &mut packed, &mut table);
        let body = (packed.len() - 8) as u32;
        packed[..4].copy_from_slice(&(n as u32).to_le_bytes());
        packed[4..8].copy_from_slice(&body.to_le_bytes());
        output.write_all(&packed)?;
        read += n;
        written += packed.len();
    }
    output.write_all(&(!crc).to_le_bytes())?;
    output.sync_all()?;
    fs::rename(&part, dir.join("access.lz"))?;
    File::open(dir)?.sync_all()?;
    println!("{lines} lines, {read} bytes packed to {written}, crc {:08x}", !crc);
    Ok(())
}
