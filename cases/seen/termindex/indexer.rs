//! Builds a full-text index from a folder of batch files, one batch at a time.
//!
//! The index is one file: for each term a length-prefixed name and its postings.
//! A batch counts as indexed once the index on disk knows it, so that a build
//! which was stopped goes on where it was.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Index {
    batches_done: u32,
    next_doc: u32,
    terms: BTreeMap<String, Vec<u32>>,
}

fn u32_at(data: &[u8], at: &mut usize) -> u32 {
    let v = u32::from_le_bytes(data[*at..*at + 4].try_into().unwrap());
    *at += 4;
    v
}

impl Index {
    fn load(path: &Path) -> io::Result<Index> {
        let mut data = Vec::new();
        match File::open(path) {
            Ok(mut f) => f.read_to_end(&mut data)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Index::default()),
            Err(e) => return Err(e),
        };
        let mut at = 0;
        let mut index = Index {
            batches_done: u32_at(&data, &mut at),
            next_doc: u32_at(&data, &mut at),
            terms: BTreeMap::new(),
        };
        while at < data.len() {
            let len = u32_at(&data, &mut at) as usize;
            let name = String::from_utf8_lossy(&data[at..at + len]).into_owned();
            at += len;
            let n = u32_at(&data, &mut at);
            let docs = (0..n).map(|_| u32_at(&data, &mut at)).collect();
            index.terms.insert(name, docs);
        }
        Ok(index)
    }

    fn save(&self, path: &Path) -> io::Result<()> {
        let tmp = path.with_extension("tmp");
        let mut w = BufWriter::with_capacity(1 << 16, File::create(&tmp)?);
        w.write_all(&self.batches_done.to_le_bytes())?;
        w.write_all(&self.next_doc.to_le_bytes())?;
        for (name, docs) in &self.terms {
            w.write_all(&(name.len() as u32).to_le_bytes())?;
            w.write_all(name.as_bytes())?;
            w.write_all(&(docs.len() as u32).to_le_bytes())?;
            for d in docs {
                w.write_all(&d.to_le_bytes())?;
            }
        }
        w.flush()?;
        fs::rename(tmp, path)
    }

    fn add_batch(&mut self, text: &str) {
        for line in text.lines() {
            let doc = self.next_doc;
            self.next_doc += 1;
            for word in line.split(' ') {
                match self.terms.get_mut(word) {
                    Some(docs) => {
                        if docs.last() != Some(&doc) {
                            docs.push(doc)
                        }
                    }
                    None => {
                        self.terms.insert(word.to_string(), vec![doc]);
                    }
                }
            }
        }
        self.batches_done += 1;
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let (source, index_path) = (Path::new(&args[1]), Path::new(&args[2]));
    let mut batches: Vec<PathBuf> = fs::read_dir(source)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    batches.sort();

    let mut index = Index::load(index_path)?;
    for path in batches.iter().skip(index.batches_done as usize) {
        index.add_batch(&fs::read_to_string(path)?);
        index.save(index_path)?;
    }

    let index = Index::load(index_path)?;
    let postings: usize = index.terms.values().map(Vec::len).sum();
    println!("batches {} docs {} terms {} postings {}", index.batches_done, index.next_doc, index.terms.len(), postings);
    Ok(())
}
