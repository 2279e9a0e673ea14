//! mailsave: saves the attachments of an mbox to a folder; names that are taken get a number.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::exit;

/// Value of a base64 letter, or None for padding and anything else.
fn sextet(c: u8) -> Option<u32> {
    Some(match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    } as u32)
}

fn decode_line(line: &str, out: &mut Vec<u8>) {
    let (mut acc, mut bits) = (0u32, 0u32);
    for v in line.bytes().filter_map(sextet) {
        acc = (acc << 6) | v;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((acc >> bits) as u8);
            acc &= (1 << bits) - 1;
        }
    }
}

/// The first free name: scan.pdf, scan (1).pdf, scan (2).pdf and so on.
fn free_name(folder: &Path, name: &str) -> PathBuf {
    let plain = folder.join(name);
    if !plain.exists() {
        return plain;
    }
    let (stem, ext) = name.rsplit_once('.').unwrap_or((name, "bin"));
    let mut n = 1;
    loop {
        let path = folder.join(format!("{stem} ({n}).{ext}"));
        if !path.exists() {
            return path;
        }
        n += 1;
    }
}

struct Saver {
    folder: PathBuf,
    saved: u64,
    bytes: u64,
    sum: u64,
}

impl Saver {
    fn save(&mut self, name: &str, data: &[u8]) -> io::Result<()> {
        let path = free_name(&self.folder, name);
        fs::write(&path, data)?;
        self.saved += 1;
        self.bytes += data.len() as u64;
        for b in path.file_name().unwrap().as_encoded_bytes().iter().chain(data) {
            self.sum = (self.sum ^ *b as u64).wrapping_mul(0x100000001b3);
        }
        Ok(())
    }
}

fn run(mbox: &str, folder: &str) -> io::Result<Saver> {
    fs::create_dir_all(folder)?;
    let mut saver = Saver { folder: folder.into(), saved: 0, bytes: 0, sum: 0xcbf29ce484222325 };
    let mut name: Option<String> = None;
    let mut data = Vec::new();
    let mut in_body = false;
    for line in BufReader::with_capacity(256 * 1024, File::open(mbox)?).lines() {
        let line = line?;
        if line.starts_with("From ") {
            if let Some(name) = name.take() {
                saver.save(&name, &data)?;
            }
            data.clear();
            in_body = false;
        } else if in_body {
            decode_line(&line, &mut data);
        } else if line.is_empty() {
            in_body = true;
        } else if line.starts_with("Content-Disposition: attachment") {
            // No path of the sender's gets through: what follows the last slash only.
            let value = line.split("filename=\"").nth(1).unwrap_or("part.bin\"");
            let value = value.split('"').next().unwrap_or("part.bin");
            name = value.rsplit('/').next().map(str::to_string);
        }
    }
    if let Some(name) = name.take() {
        saver.save(&name, &data)?;
    }
    Ok(saver)
}

fn main() {
    let args: Vec<String> = env::args().collect();
    if args.len() != 3 {
        eprintln!("usage: mailsave MBOX FOLDER");
        exit(2);
    }
    match run(&args[1], &args[2]) {
        Ok(s) => println!("{} attachments, {} bytes, check {:016x}", s.saved, s.bytes, s.sum),
        Err(e) => {
            eprintln!("mailsave: {e}");
            exit(1);
        }
    }
}
