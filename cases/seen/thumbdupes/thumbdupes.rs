//! Finds photographs that look alike in a pack of thumbnails.
// thumbdupes: finds photos that look alike by the average hash of their thumbnails.
// usage: thumbdupes [--by-offset] DIR
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

#[derive(Clone, Copy)]
struct Thumb {
    offset: u64,
    width: usize,
    height: usize,
}

fn bad(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("bad index line: {line}"))
}

fn read_index(path: &Path) -> io::Result<HashMap<String, Thumb>> {
    let mut index = HashMap::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        let f: Vec<&str> = line.split('\t').collect();
        if f.len() != 4 {
            return Err(bad(&line));
        }
        let n = |i: usize| f[i].parse::<u64>().map_err(|_| bad(&line));
        index.insert(f[0].to_string(), Thumb { offset: n(1)?, width: n(2)? as usize, height: n(3)? as usize });
    }
    Ok(index)
}

/// 8x8 cells; a bit for each cell that is brighter than the picture.
fn average_hash(pixels: &[u8], width: usize, height: usize) -> u64 {
    let (cw, ch) = (width / 8, height / 8);
    let mut cells = [0u32; 64];
    for (y, row) in pixels.chunks_exact(width).take(ch * 8).enumerate() {
        for (x, part) in row.chunks_exact(cw).take(8).enumerate() {
            cells[y / ch * 8 + x] += part.iter().map(|&p| p as u32).sum::<u32>();
        }
    }
    let mean = cells.iter().sum::<u32>() / 64;
    cells.iter().enumerate().fold(0, |h, (i, &c)| h | ((c > mean) as u64) << i)
}

struct Pack<R> {
    file: R,
}

impl<R: Read + Seek> Pack<R> {
    fn thumb(&mut self, t: &Thumb, pixels: &mut Vec<u8>) -> io::Result<()> {
        pixels.resize(t.width * t.height, 0);
        self.file.seek(SeekFrom::Start(t.offset))?;
        self.file.read_exact(pixels)
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let by_offset = args.iter().any(|a| a == "--by-offset");
    let dir = args.iter().find(|a| !a.starts_with("--")).cloned().unwrap_or_else(|| ".".into());
    let index = read_index(&Path::new(&dir).join("thumbs.idx"))?;
    let mut pack = Pack { file: File::open(Path::new(&dir).join("thumbs.pack"))? };
    let mut todo: Vec<(&String, &Thumb)> = index.iter().collect();
    if by_offset {
        todo.sort_by_key(|(_, t)| t.offset);
    }

    let mut groups: HashMap<u64, Vec<&str>> = HashMap::new();
    let mut pixels = Vec::new();
    let (mut dark, mut light) = (0u32, 0u32);
    for (name, thumb) in todo {
        pack.thumb(thumb, &mut pixels)?;
        let mean = pixels.iter().map(|&p| p as u64).sum::<u64>() / pixels.len() as u64;
        dark += (mean < 50) as u32;
        light += (mean > 110) as u32;
        groups.entry(average_hash(&pixels, thumb.width, thumb.height)).or_default().push(name);
    }

    let mut sizes = BTreeMap::new();
    let mut alike: Vec<Vec<&str>> = Vec::new();
    for (_, mut names) in groups {
        *sizes.entry(names.len()).or_insert(0) += 1;
        if names.len() > 1 {
            names.sort();
            alike.push(names);
        }
    }
    alike.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a[0].cmp(b[0])));
    println!("{} thumbnails, {dark} dark, {light} light", index.len());
    for (size, count) in &sizes {
        println!("{count} groups of {size}");
    }
    for names in alike.iter().take(5) {
        println!("{} alike: {}", names.len(), names[..2].join(" "));
    }
    Ok(())
}
