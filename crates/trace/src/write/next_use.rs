//! The next use of each object, filled into a file of records that was written without it.
//!
//! The file is walked from its end in chunks, with a table of where each id was last met, so a pass costs one sequential
//! read and write. Invariant: memory is one chunk and a table of about [`MAX_IDS`] ids (some 400 MiB); a trace with more
//! ids is walked several times, each time for a part of the ids, with the same exact result.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::hash;
use rustc_hash::FxHashMap;

/// Ids of one pass.
const MAX_IDS: u64 = 16 << 20;

/// Maximum bytes in memory.
const CHUNK: usize = 1 << 20;

/// Where things are in the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bytes before the first record.
    pub(super) header: u64,
    /// Bytes of a record.
    pub(super) size: usize,
    /// Of the id, 8 bytes.
    pub(super) id_at: usize,
    /// Of the next use, 8 bytes.
    pub(super) next_at: usize,
    /// Of the size of the object, and how many bytes that has.
    pub(super) bytes_at: (usize, usize),
}

/// State of the walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Distinct {
    /// Objects.
    pub(super) objects: u64,
    /// Their bytes, each with its last size.
    pub(super) bytes: u64,
}

/// Fills in the next uses: the number of the next request for the same id, counted from 1, or -1.
pub(super) fn fill(file: &File, layout: Layout, records: u64) -> io::Result<Distinct> {
    fill_in_parts(file, layout, records, MAX_IDS)
}

fn fill_in_parts(file: &File, layout: Layout, records: u64, max_ids: u64) -> io::Result<Distinct> {
    // Parts are tried from few to many: a part that turns out too full is given up and made smaller.
    let mut parts = 1u64;
    let mut distinct = Distinct::default();
    let mut part = 0;
    while part < parts {
        match walk(file, layout, records, (part, parts), max_ids)? {
            Some(found) => {
                distinct.objects += found.objects;
                distinct.bytes = distinct.bytes.saturating_add(found.bytes);
                part += 1;
            }
            None => {
                // Repeats all parts, which overwrites entries by the same numbers.
                parts *= 2;
                distinct = Distinct::default();
                part = 0;
            }
        }
    }
    Ok(distinct)
}

/// One walk over the ids of one part. `None`: they are too many.
fn walk(
    file: &File,
    layout: Layout,
    records: u64,
    (part, parts): (u64, u64),
    max_ids: u64,
) -> io::Result<Option<Distinct>> {
    let per_chunk = (CHUNK / layout.size).max(1) as u64;
    let mut chunk = Vec::new();
    let mut last: FxHashMap<u64, u64> = FxHashMap::default();
    let mut distinct = Distinct::default();
    let mut end = records;
    while end > 0 {
        let begin = end.saturating_sub(per_chunk);
        let at = layout.header + begin * layout.size as u64;
        chunk.resize((end - begin) as usize * layout.size, 0);
        file.read_exact_at(&mut chunk, at)?;
        for (index, record) in chunk.chunks_exact_mut(layout.size).enumerate().rev() {
            let number = begin + 1 + index as u64;
            let id = crate::binary::u64_at(record, layout.id_at);
            if parts > 1 && hash::mix(id ^ 0x5bd1_e995) % parts != part {
                continue;
            }
            let next = last.insert(id, number);
            if next.is_none() {
                distinct.objects += 1;
                let (at, bytes) = layout.bytes_at;
                let size = if bytes == 4 {
                    u64::from(crate::binary::u32_at(record, at))
                } else {
                    crate::binary::u64_at(record, at)
                };
                distinct.bytes = distinct.bytes.saturating_add(size);
                if distinct.objects > max_ids {
                    return Ok(None);
                }
            }
            let next = next.map_or(-1i64, |next| next as i64).to_le_bytes();
            record[layout.next_at..layout.next_at + 8].copy_from_slice(&next);
        }
        file.write_all_at(&chunk, at)?;
        end = begin;
    }
    Ok(Some(distinct))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn several_passes_give_what_one_gives() {
        let ids: Vec<u64> = (0..5000u64).map(|i| hash::mix(i) % 300).collect();
        let layout = Layout { header: 5, size: 24, id_at: 4, next_at: 16, bytes_at: (12, 4) };
        let filled = |max_ids| {
            let mut file = tempfile::tempfile().unwrap();
            let mut bytes = b"head:".to_vec();
            for id in &ids {
                bytes.extend_from_slice(&[0; 4]);
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(&7u32.to_le_bytes());
                bytes.extend_from_slice(&[0; 8]);
            }
            file.write_all(&bytes).unwrap();
            let distinct = fill_in_parts(&file, layout, ids.len() as u64, max_ids).unwrap();
            let mut out = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut out).unwrap();
            (out, distinct)
        };
        let (once, distinct) = filled(1000);
        assert_eq!(filled(40), (once.clone(), distinct));
        assert_eq!(distinct, Distinct { objects: 300, bytes: 2100 });
        for (i, record) in once[5..].chunks_exact(24).enumerate() {
            let next =
                ids[i + 1..].iter().position(|id| *id == ids[i]).map_or(-1, |gap| (i + 1 + gap + 1) as i64);
            assert_eq!(crate::binary::u64_at(record, 16) as i64, next, "{i}");
        }
    }
}
