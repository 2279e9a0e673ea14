//! Checks every page of the volumes of a store and reports damage and fill.

mod page;
mod source;

use page::{Crc, Header, HEAD, PAGE};
use source::Volume;
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Report {
    pages: u64,
    damaged: Vec<(usize, u64, &'static str)>,
    rows: u64,
    free: u64,
    newest: u64,
    kinds: [u64; 4],
    mark: u64,
}

fn scrub(which: usize, path: &Path, extent: usize, crc: &Crc, report: &mut Report) -> std::io::Result<()> {
    let mut volume = Volume::open(path, extent)?;
    for number in 0..volume.pages {
        let p = volume.page(number)?;
        let h = Header::read(p);
        report.pages += 1;
        if crc.of_page(p) != h.check {
            report.damaged.push((which, number, "check"));
            continue;
        }
        if u64::from(h.number) != number {
            report.damaged.push((which, number, "misplaced"));
            continue;
        }
        // the directory of rows: offsets must rise and stay within the page
        let mut last = HEAD as u16 - 1;
        let mut fine = true;
        for row in 0..usize::from(h.rows) {
            let at = PAGE - 2 * (row + 1);
            let offset = u16::from_le_bytes([p[at], p[at + 1]]);
            fine &= offset > last && usize::from(offset) < PAGE;
            last = offset;
        }
        if !fine {
            report.damaged.push((which, number, "rows"));
            continue;
        }
        report.rows += u64::from(h.rows);
        report.free += u64::from(h.free);
        report.newest = report.newest.max(h.change);
        report.kinds[usize::from(h.kind) & 3] += 1;
        report.mark = (report.mark ^ u64::from(h.check)).wrapping_mul(0x0100_0000_01b3);
    }
    Ok(())
}

fn make(dir: &Path, volumes: usize, pages: usize) -> std::io::Result<()> {
    use std::io::Write;
    std::fs::create_dir_all(dir)?;
    let crc = Crc::new();
    let mut s = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        s
    };
    for v in 0..volumes {
        let mut out = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(dir.join(format!("vol{v:02}.dat")))?);
        for n in 0..pages {
            let mut p = [0u8; PAGE];
            for w in p[HEAD..].chunks_mut(8) {
                let x = next().to_le_bytes();
                w.copy_from_slice(&x[..w.len()]);
            }
            let rows = 8 + next() % 40;
            let mut offset = HEAD as u16;
            for row in 0..rows as usize {
                let at = PAGE - 2 * (row + 1);
                p[at..at + 2].copy_from_slice(&offset.to_le_bytes());
                offset += 20 + (next() % 60) as u16;
            }
            let free = (PAGE as u16).saturating_sub(offset + 2 * rows as u16);
            let mut h = Header { check: 0, number: n as u32, kind: (next() % 4) as u16, rows: rows as u16, free, change: next() >> 24 };
            if next() % 6000 == 0 {
                h.number += 1;
            }
            h.write(&mut p);
            h.check = crc.of_page(&p);
            h.write(&mut p);
            if next() % 6000 == 0 {
                p[HEAD + 100] ^= 0x10;
            }
            out.write_all(&p)?;
        }
        out.into_inner().map_err(|e| e.into_error())?.sync_all()?;
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[1..] {
        ["make", dir, volumes, pages] => make(Path::new(dir), volumes.parse().expect("volumes"), pages.parse().expect("pages")),
        ["check", dir, extent] => {
            let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
            paths.sort();
            let crc = Crc::new();
            let mut report = Report::default();
            for (which, path) in paths.iter().enumerate() {
                scrub(which, path, extent.parse().expect("pages an extent"), &crc, &mut report)?;
            }
            for (volume, number, why) in &report.damaged {
                println!("volume {volume} page {number}: {why}");
            }
            let r = &report;
            println!("{} pages {} damaged {} rows {} free newest {} kinds {:?} mark {:016x}", r.pages, r.damaged.len(), r.rows, r.free, r.newest, r.kinds, r.mark);
            Ok(())
        }
        _ => {
            eprintln!("usage: scrub check DIR PAGES-AN-EXTENT | scrub make DIR VOLUMES PAGES");
            std::process::exit(2)
        }
    }
}
