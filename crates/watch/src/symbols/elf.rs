//! Functions of an ELF file by file offset: `.symtab`, that of its separate file of names where it was stripped, or `.dynsym`. And other sections.
//!
//! Formats: ELF-32 and ELF-64, either byte order (System V ABI, chapter 4 and 5). Only addresses are kept in memory;
//! a name is read from the file when it is asked for. Every number in the file is distrusted: a broken file gives fewer
//! names, never an error and never an endless read. The file is read with pread, so a file that shrinks does no harm.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Longest mangled name that is read, in bytes.
const LONGEST_NAME: usize = 4096;
/// Most program or section headers that are looked at.
const MAX_HEADERS: u64 = 4096;
/// Symbols read at a time.
const CHUNK: u64 = 2048;

const SECTION_SYMTAB: u32 = 2;
const SECTION_DYNSYM: u32 = 11;
const SEGMENT_LOAD: u32 = 1;

/// Where the segments of a file are mapped, and some of its sections.
pub(super) struct Parts<const N: usize> {
    pub(super) loads: Vec<Load>,
    /// In the order in which they were asked for; `None` is not there, empty or too long.
    pub(super) sections: [Option<Placed>; N],
}

/// A section's bytes at its address.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
}

/// Reads sections of a 64-bit file by their names, of at most `most` bytes each. `None`: it is no such file.
pub(super) fn parts<const N: usize>(file: &File, wanted: [&str; N], most: u64) -> Option<Parts<N>> {
    let head = head(file);
    let shape = shape(&head).filter(|shape| shape.wide && shape.little)?;
    let loads = loads(file, &head, shape)?;
    let all = sections(file, &head, shape)?;
    let names = all.get(shape.number(&head, 62, 2)? as usize)?;
    let is_called = |section: &Section, name: &str| {
        let mut found = vec![0; name.len() + 1];
        let at = names.offset.checked_add(u64::from(section.name));
        let whole = at.is_some_and(|at| read_some(file, &mut found, at) == found.len());
        whole && found.strip_suffix(&[0]) == Some(name.as_bytes())
    };
    let read = |name: &str| {
        let section = all.iter().find(|s| is_called(s, name))?;
        let mut bytes = vec![0; usize::try_from(section.length).ok().filter(|_| section.length <= most)?];
        let whole = read_some(file, &mut bytes, section.offset) == bytes.len();
        (whole && !bytes.is_empty()).then_some(Placed { address: section.address, bytes })
    };
    Some(Parts { loads, sections: wanted.map(read) })
}

/// What the linker calls one build of a file.
pub(crate) type BuildId = Vec<u8>;

/// Longest name of a build, in bytes: SHA-1 has 20.
const LONGEST_BUILD_ID: usize = 64;

/// The name of the build, if the file tells one (`.note.gnu.build-id`: lengths of name and content, type, "GNU", content).
fn build_id(file: &File) -> Option<BuildId> {
    let [note] = parts(file, [".note.gnu.build-id"], 1024)?.sections;
    let note = note?.bytes;
    let number = |at: usize| Some(u32::from_le_bytes(note.get(at..at + 4)?.try_into().ok()?) as usize);
    let (name, length) = (number(0)?, number(4)?);
    let whole = name == 4 && note.get(12..16)? == b"GNU\0" && (2..=LONGEST_BUILD_ID).contains(&length);
    Some(note.get(16..16 + length)?.to_vec()).filter(|_| whole)
}

fn has_section(file: &File, kind: u32) -> bool {
    let head = head(file);
    let all = shape(&head).and_then(|shape| sections(file, &head, shape));
    all.is_some_and(|all| all.iter().any(|s| s.kind == kind && s.length > 0))
}

/// The functions of one file.
#[derive(Debug)]
pub(crate) struct Functions {
    file: File,
    /// Sorted by address.
    entries: Vec<Entry>,
    loads: Vec<Load>,
    /// Place of the string table in the file.
    strings: (u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    size: u32,
    name: u32,
}

/// A segment: file offsets from `offset` on are mapped to addresses from `address` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    offset: u64,
    address: u64,
    length: u64,
}

/// Where the fields of a format are.
#[derive(Clone, Copy)]
struct Shape {
    wide: bool,
    little: bool,
}

impl Shape {
    fn number(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        let field = bytes.get(at..at.checked_add(size)?)?;
        let fold = |n: u64, b: &u8| n << 8 | u64::from(*b);
        Some(if self.little { field.iter().rev().fold(0, fold) } else { field.iter().fold(0, fold) })
    }

    /// A field whose place and size differ between ELF-32 and ELF-64: `(offset, size)` of each.
    fn field(self, bytes: &[u8], narrow: (usize, usize), wide: (usize, usize)) -> Option<u64> {
        let (at, size) = if self.wide { wide } else { narrow };
        self.number(bytes, at, size)
    }
}

/// Reads as many bytes as there are, at most the buffer's length.
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> usize {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset.saturating_add(done as u64)) {
            Ok(n) if n > 0 => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    done
}

impl Functions {
    /// Reads the tables of a file; at most `most` functions. `None`: it is not ELF, or has no functions, or too many.
    ///
    /// `separate`: opens the file of names that belongs to a build. It is believed if it names the same build.
    pub(crate) fn read(
        file: File,
        most: usize,
        separate: impl FnOnce(&BuildId) -> Option<File>,
    ) -> Option<Functions> {
        let loads = {
            let head = head(&file);
            loads(&file, &head, shape(&head)?)?
        };
        // A file of names has the same addresses, and no places in the file that was mapped.
        let with = |file: File, kinds: &[u32]| {
            let head = head(&file);
            let shape = shape(&head)?;
            let sections = sections(&file, &head, shape)?;
            let pick = |kind: &u32| sections.iter().find(|s| s.kind == *kind && s.length > 0);
            let table = kinds.iter().find_map(pick)?;
            let strings = sections.get(table.link as usize)?;
            let entries = entries(&file, shape, table, most)?;
            Some((file, entries, (strings.offset, strings.length)))
        };
        let of_build =
            |file: File, build: &BuildId| (build_id(&file).as_ref() == Some(build)).then_some(file);
        let stripped = !has_section(&file, SECTION_SYMTAB);
        let build = Some(&file).filter(|_| stripped).and_then(build_id);
        let names = build.and_then(|build| of_build(separate(&build)?, &build));
        let found = names.and_then(|names| with(names, &[SECTION_SYMTAB]));
        let (file, entries, strings) = match found {
            Some(found) => found,
            None => with(file, &[SECTION_SYMTAB, SECTION_DYNSYM])?,
        };
        Some(Functions { file, entries, loads, strings })
    }

    /// How many functions it holds.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The function at a file offset: its index (for a cache).
    pub(crate) fn find(&self, offset: u64) -> Option<usize> {
        let address = address(&self.loads, offset)?;
        let index = self.entries.partition_point(|e| e.address <= address).checked_sub(1)?;
        let e = self.entries[index];
        // Hand-written assembly has no size: it reaches to the next function.
        (e.size == 0 || address - e.address < u64::from(e.size)).then_some(index)
    }

    /// The mangled name of a function that [`Functions::find`] gave.
    pub(crate) fn name(&self, index: usize) -> Option<String> {
        let at = u64::from(self.entries.get(index)?.name);
        let room = self.strings.1.checked_sub(at)?.min(LONGEST_NAME as u64) as usize;
        let mut buffer = vec![0; room];
        let read = read_some(&self.file, &mut buffer, self.strings.0.checked_add(at)?);
        let end = buffer[..read].iter().position(|b| *b == 0)?;
        let name = std::str::from_utf8(&buffer[..end]).ok()?;
        // Versions of dynamic symbols: `pread64@@GLIBC_2.2.5`.
        let name = name.split('@').next().unwrap_or(name);
        (!name.is_empty()).then(|| name.to_owned())
    }
}

/// The part of a file that says where all others are.
fn head(file: &File) -> Vec<u8> {
    let mut head = vec![0; 64];
    let length = read_some(file, &mut head, 0);
    head.truncate(length);
    head
}

/// `None`: it is not ELF.
fn shape(head: &[u8]) -> Option<Shape> {
    let shape = Shape { wide: *head.get(4)? == 2, little: *head.get(5)? == 1 };
    head.starts_with(b"\x7fELF").then_some(shape)
}

/// The address of a file offset.
pub(super) fn address(loads: &[Load], offset: u64) -> Option<u64> {
    let load = loads.iter().find(|l| offset.checked_sub(l.offset).is_some_and(|d| d < l.length))?;
    load.address.checked_add(offset - load.offset)
}

fn loads(file: &File, head: &[u8], shape: Shape) -> Option<Vec<Load>> {
    let place = shape.field(head, (28, 4), (32, 8))?;
    let size = shape.field(head, (42, 2), (54, 2))?;
    let count = shape.field(head, (44, 2), (56, 2))?.min(MAX_HEADERS);
    let bytes = table(file, place, size, count)?;
    let mut loads = Vec::new();
    for h in bytes.chunks_exact(size.max(1) as usize) {
        if shape.number(h, 0, 4) == Some(u64::from(SEGMENT_LOAD)) {
            loads.push(Load {
                offset: shape.field(h, (4, 4), (8, 8))?,
                address: shape.field(h, (8, 4), (16, 8))?,
                length: shape.field(h, (16, 4), (32, 8))?,
            });
        }
    }
    Some(loads)
}

struct Section {
    name: u32,
    kind: u32,
    address: u64,
    offset: u64,
    length: u64,
    link: u64,
    entry: u64,
}

fn sections(file: &File, head: &[u8], shape: Shape) -> Option<Vec<Section>> {
    let place = shape.field(head, (32, 4), (40, 8))?;
    let size = shape.field(head, (46, 2), (58, 2))?;
    let count = shape.field(head, (48, 2), (60, 2))?.min(MAX_HEADERS);
    let bytes = table(file, place, size, count)?;
    bytes
        .chunks_exact(size.max(1) as usize)
        .map(|h| {
            Some(Section {
                name: shape.number(h, 0, 4)? as u32,
                kind: shape.number(h, 4, 4)? as u32,
                address: shape.field(h, (12, 4), (16, 8))?,
                offset: shape.field(h, (16, 4), (24, 8))?,
                length: shape.field(h, (20, 4), (32, 8))?,
                link: shape.field(h, (24, 4), (40, 4))?,
                entry: shape.field(h, (36, 4), (56, 8))?,
            })
        })
        .collect()
}

fn table(file: &File, place: u64, size: u64, count: u64) -> Option<Vec<u8>> {
    if place == 0 || size == 0 || size > 1024 {
        return None;
    }
    let mut bytes = vec![0; (size * count) as usize];
    let read = read_some(file, &mut bytes, place);
    bytes.truncate(read);
    Some(bytes)
}

fn entries(file: &File, shape: Shape, table: &Section, most: usize) -> Option<Vec<Entry>> {
    let size = if shape.wide { 24 } else { 16 };
    if table.entry != size {
        return None;
    }
    let count = table.length / size;
    let mut entries = Vec::new();
    let mut buffer = vec![0; (CHUNK * size) as usize];
    let mut next = 0;
    while next < count {
        let wanted = (CHUNK.min(count - next) * size) as usize;
        let read = read_some(file, &mut buffer[..wanted], table.offset.checked_add(next * size)?);
        for s in buffer[..read].chunks_exact(size as usize) {
            let info = shape.field(s, (12, 1), (4, 1))?;
            let section = shape.field(s, (14, 2), (6, 2))?;
            let address = shape.field(s, (4, 4), (8, 8))?;
            // Functions (2) and indirect functions (10) that are defined here.
            if matches!(info & 15, 2 | 10) && section != 0 && address != 0 {
                if entries.len() >= most {
                    return None;
                }
                let size = shape.field(s, (8, 4), (16, 8))?.min(u64::from(u32::MAX)) as u32;
                entries.push(Entry { address, size, name: shape.number(s, 0, 4)? as u32 });
            }
        }
        if read < wanted {
            break;
        }
        next += CHUNK;
    }
    if entries.is_empty() {
        return None;
    }
    // Of aliases the last in this order stays ahead in the search; the longest one covers most.
    entries.sort_by_key(|e| (e.address, e.size));
    entries.dedup_by(|next, kept| {
        let same = next.address == kept.address;
        if same {
            *kept = *next;
        }
        same
    });
    entries.shrink_to_fit();
    Some(entries)
}
