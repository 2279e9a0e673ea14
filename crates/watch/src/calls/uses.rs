//! Adds up what was done to files: by transfer, by open description, by file.

use std::collections::HashMap;

use iowhy_core::profile::{Access, FileUse, SIZE_CLASSES, SampledShare, size_class};

use super::intervals::Intervals;
use super::shape::Direction;

/// Runs of bytes that are kept for one file and direction in one burst.
const RUNS: usize = 4096;
/// Files told apart; all beyond go to one entry.
const FILES: usize = 16_384;
/// Files in the result; all beyond go to one entry.
const REPORTED: usize = 200;
/// Path of the entry for files whose path could not be learnt in time.
pub const UNKNOWN: &str = "?";
/// Path of the entry for all files beyond the bound.
pub const OTHERS: &str = "others";

/// A transfer, with what is known of it. `None`: not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transfer {
    pub(super) asked: u64,
    pub(super) bytes: u64,
    pub(super) time_ns: u64,
    pub(super) sequential: Option<bool>,
    pub(super) unaligned: Option<bool>,
    pub(super) after_seek: Option<bool>,
    pub(super) direct: Option<bool>,
    pub(super) synchronous: Option<bool>,
    pub(super) extent: Extent,
}

/// Which bytes of the file a transfer moved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Extent {
    /// Not known, or the file has no offsets.
    #[default]
    Unknown,
    /// New ones at the end.
    Appended,
    /// From here.
    From(u64),
}

/// What was done to one file, or through one open description.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub(super) access: [Access; 2],
    pub(super) opens: u64,
    pub(super) syncs: u64,
    pub(super) mapped: bool,
    /// Mapped as code: a program or library, not data.
    pub(super) code: bool,
}

fn look(share: &mut SampledShare, hit: Option<bool>) {
    if let Some(hit) = hit {
        share.n += 1;
        share.hits += u64::from(hit);
    }
}

fn pool(share: &mut SampledShare, other: SampledShare) {
    share.n += other.n;
    share.hits += other.hits;
}

impl Uses {
    /// Notes all of a transfer but its extent.
    pub(super) fn note(&mut self, direction: Direction, transfer: &Transfer) {
        let access = &mut self.access[direction as usize];
        access.calls += 1;
        access.bytes = access.bytes.saturating_add(transfer.bytes);
        access.time_ns = access.time_ns.saturating_add(transfer.time_ns);
        access.sizes.resize(SIZE_CLASSES, 0);
        access.sizes[size_class(transfer.asked)] += 1;
        look(&mut access.sequential, transfer.sequential);
        look(&mut access.unaligned, transfer.unaligned);
        look(&mut access.after_seek, transfer.after_seek);
        look(&mut access.direct, transfer.direct);
        look(&mut access.synchronous, transfer.synchronous);
    }

    /// Notes the extent of a transfer. Bytes whose place is not known count as distinct, so that `bytes` less
    /// `distinct_bytes` is what was surely moved before.
    pub(super) fn extend(
        &mut self,
        direction: Direction,
        extent: Extent,
        bytes: u64,
        seen: &mut [Intervals; 2],
    ) {
        let access = &mut self.access[direction as usize];
        let fresh = match extent {
            Extent::From(offset) => seen[direction as usize].insert(offset, bytes),
            Extent::Appended => Some(bytes),
            Extent::Unknown => None,
        };
        if bytes > 0 {
            look(&mut access.repeated, fresh.map(|fresh| fresh < bytes));
        }
        access.distinct_bytes = access.distinct_bytes.saturating_add(fresh.unwrap_or(bytes));
    }

    /// Adds all of another.
    pub(super) fn add(&mut self, other: &Uses) {
        for (mine, theirs) in self.access.iter_mut().zip(&other.access) {
            mine.calls += theirs.calls;
            mine.bytes = mine.bytes.saturating_add(theirs.bytes);
            mine.time_ns = mine.time_ns.saturating_add(theirs.time_ns);
            mine.sizes.resize(mine.sizes.len().max(theirs.sizes.len()), 0);
            for (sum, more) in mine.sizes.iter_mut().zip(&theirs.sizes) {
                *sum += more;
            }
            mine.distinct_bytes = mine.distinct_bytes.saturating_add(theirs.distinct_bytes);
            pool(&mut mine.sequential, theirs.sequential);
            pool(&mut mine.unaligned, theirs.unaligned);
            pool(&mut mine.repeated, theirs.repeated);
            pool(&mut mine.after_seek, theirs.after_seek);
            pool(&mut mine.direct, theirs.direct);
            pool(&mut mine.synchronous, theirs.synchronous);
        }
        self.opens += other.opens;
        self.syncs += other.syncs;
        self.mapped |= other.mapped;
        self.code |= other.code;
    }

    /// Takes back what rests on offsets: the file turned out to have none.
    fn forget_places(&mut self) {
        for access in &mut self.access {
            access.sequential = SampledShare::default();
            access.unaligned = SampledShare::default();
            access.repeated = SampledShare::default();
            access.after_seek = SampledShare::default();
            access.distinct_bytes = access.bytes;
        }
    }

    fn bytes(&self) -> u64 {
        self.access[0].bytes.saturating_add(self.access[1].bytes)
    }

    fn is_empty(&self) -> bool {
        self.access.iter().all(|a| a.calls == 0) && self.opens == 0 && self.syncs == 0 && !self.mapped
    }
}

/// Whether files of this kind (as in `FileUse::kind`) have offsets.
pub(super) fn has_offsets(kind: &str) -> bool {
    !matches!(kind, "pipe" | "socket" | "anonymous" | "character-device")
}

/// What was done through a description whose file is not known yet. The extents are kept to be put into the file's
/// union when it is known; a bounded number of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Local {
    uses: Uses,
    log: Vec<(Direction, u64, u64)>,
}

impl Local {
    pub(super) fn uses(&mut self) -> &mut Uses {
        &mut self.uses
    }

    fn transfer(&mut self, direction: Direction, transfer: &Transfer) {
        self.uses.note(direction, transfer);
        match transfer.extent {
            Extent::From(offset) if self.log.len() < RUNS => {
                self.log.push((direction, offset, transfer.bytes));
            }
            Extent::From(_) => self.place(direction, Extent::Unknown, transfer.bytes),
            extent => self.place(direction, extent, transfer.bytes),
        }
    }

    fn place(&mut self, direction: Direction, extent: Extent, bytes: u64) {
        // Neither of the two kinds of extent that come here looks into the union.
        self.uses.extend(direction, extent, bytes, &mut [Intervals::new(0), Intervals::new(0)]);
    }
}

#[derive(Debug)]
struct File {
    path: String,
    kind: String,
    uses: Uses,
    seen: [Intervals; 2],
}

/// Index of a file.
pub(super) type FileId = usize;

/// Where a transfer is added up.
#[derive(Debug)]
pub(super) enum Sink {
    /// In this file.
    File(FileId),
    /// Apart, until the file is known.
    Local(Box<Local>),
}

/// All files seen, by path and kind.
#[derive(Debug, Default)]
pub(super) struct Files {
    files: Vec<File>,
    by_name: HashMap<(String, String), FileId>,
}

impl Files {
    /// The file of this path and kind.
    pub(super) fn find(&mut self, path: &str, kind: &str) -> FileId {
        let key = (path.to_owned(), kind.to_owned());
        if let Some(id) = self.by_name.get(&key) {
            return *id;
        }
        if self.files.len() >= FILES && path != OTHERS {
            return self.find(OTHERS, "unknown");
        }
        let id = self.files.len();
        let seen = [Intervals::new(RUNS), Intervals::new(RUNS)];
        self.files.push(File { path: path.to_owned(), kind: kind.to_owned(), uses: Uses::default(), seen });
        self.by_name.insert(key, id);
        id
    }

    /// Path and kind of a file.
    pub(super) fn name(&self, id: FileId) -> (&str, &str) {
        self.files.get(id).map_or((UNKNOWN, "unknown"), |file| (file.path.as_str(), file.kind.as_str()))
    }

    /// What was done to a file; `None` for an unknown index.
    pub(super) fn uses(&mut self, id: FileId) -> Option<&mut Uses> {
        self.files.get_mut(id).map(|file| &mut file.uses)
    }

    /// Adds a transfer.
    pub(super) fn transfer(&mut self, sink: &mut Sink, direction: Direction, transfer: &Transfer) {
        match sink {
            Sink::Local(local) => local.transfer(direction, transfer),
            Sink::File(id) => {
                if let Some(file) = self.files.get_mut(*id) {
                    file.uses.note(direction, transfer);
                    // Files pooled in one entry share no bytes.
                    let extent = if file.path == OTHERS { Extent::Unknown } else { transfer.extent };
                    file.uses.extend(direction, extent, transfer.bytes, &mut file.seen);
                }
            }
        }
    }

    /// Adds what was done through a description to its file, now that it is known, or known to stay unknown
    /// (path [`UNKNOWN`]: then it shares no bytes with any other).
    pub(super) fn settle(&mut self, local: Local, path: &str, kind: &str) {
        let Local { mut uses, log } = local;
        let id = self.find(path, kind);
        let Some(file) = self.files.get_mut(id) else { return };
        let mut apart = [Intervals::new(RUNS), Intervals::new(RUNS)];
        let shared = file.path != UNKNOWN && file.path != OTHERS;
        let seen = if shared { &mut file.seen } else { &mut apart };
        for (direction, offset, bytes) in log {
            uses.extend(direction, Extent::From(offset), bytes, seen);
        }
        if !has_offsets(kind) {
            uses.forget_places();
        }
        file.uses.add(&uses);
    }

    /// A burst ended: bytes of the next are not compared with those of this one.
    pub(super) fn end_burst(&mut self) {
        for file in &mut self.files {
            file.seen.iter_mut().for_each(Intervals::clear);
        }
    }

    /// All files that were used, those with most bytes first; at most [`REPORTED`] and one entry of all others.
    pub(super) fn finish(self) -> Vec<FileUse> {
        let mut files: Vec<File> = self.files.into_iter().filter(|f| !f.uses.is_empty()).collect();
        files.sort_by(|a, b| {
            let rank = |f: &File| (f.path == OTHERS, std::cmp::Reverse((f.uses.bytes(), f.uses.opens)));
            rank(a).cmp(&rank(b)).then_with(|| a.path.cmp(&b.path))
        });
        if files.len() > REPORTED {
            let mut rest = Uses::default();
            for file in files.drain(REPORTED..) {
                let mut uses = file.uses;
                uses.mapped &= !uses.code;
                uses.code = false;
                rest.add(&uses);
            }
            let seen = [Intervals::new(0), Intervals::new(0)];
            files.push(File { path: OTHERS.to_owned(), kind: "unknown".to_owned(), uses: rest, seen });
        }
        files.into_iter().map(published).collect()
    }
}

fn published(file: File) -> FileUse {
    let Uses { access: [mut reads, mut writes], opens, syncs, mapped, code } = file.uses;
    reads.sizes.resize(SIZE_CLASSES, 0);
    writes.sizes.resize(SIZE_CLASSES, 0);
    FileUse {
        path: file.path,
        kind: file.kind,
        reads,
        writes,
        opens,
        syncs,
        mapped: mapped && !code,
        ..FileUse::default()
    }
}
