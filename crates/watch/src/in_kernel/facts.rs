//! Reads the maps of the object: sums become counts by call and by file. Layouts are those of `bpf/observer.bpf.c`.

use std::collections::{BTreeMap, HashMap};

use aya::maps::{Array, HashMap as KernelMap, PerCpuArray};
use iowhy_core::profile::{
    Access, CallCount, FileUse, KindUse, OwnIo, RingRequests, SIZE_CLASSES, SampledShare,
};
use iowhy_linux::file_handles::Inode;
use iowhy_linux::syscalls;

use super::object::Object;
use super::shapes::NUMBERS;
use super::{chain, map};
use crate::calls::{Direction, FileKey, OTHERS, Shape, UNKNOWN, errno_name};
use crate::course::Own;

/// Words (of 8 bytes) of `struct access`, `struct sums` and `struct file_sums`.
const ACCESS: usize = 13;
const SUMS: usize = 2 * ACCESS + 2 * SIZE_CLASSES + 4;
const OPENS: usize = 2 * ACCESS + 2 * SIZE_CLASSES;
const FILE_SUMS: usize = SUMS + 2 * 40;
/// Words of `struct run` up to its sums, of the whole, and of `struct thread`, which ends with two of them.
const BEFORE_ACCESS: usize = 10;
const RUN: usize = BEFORE_ACCESS + ACCESS;
pub(super) const THREAD: usize = 3 + 2 * RUN;
/// Places of `near_threads`.
pub(super) const NEAR_THREADS: u32 = 1024;
/// Bytes of `struct path_text`.
pub(super) const PATH: usize = BEFORE_TEXT + 1024 + 256;
/// Of which before the text: its length, whether it is whole, the generation of the inode, and its size when it was met.
const BEFORE_TEXT: usize = 24;

/// Files in the result; all beyond go to one entry.
const MAX_REPORTED: usize = 200;

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// By system call, most first.
    pub(crate) calls: Vec<CallCount>,
    /// By file, most bytes first.
    pub(crate) files: Vec<FileUse>,
    /// Where each file was when it was met first; pipes and sockets have no such place.
    pub(crate) paths: HashMap<FileKey, String>,
    /// By path, where several files of one path were written: their inodes, and bytes written.
    pub(crate) versions: HashMap<String, Vec<(Inode, u64)>>,
    /// By kind of file.
    pub(crate) kinds: Vec<KindUse>,
    /// Those on sockets, by socket.
    pub(crate) sockets: Vec<SocketCalls>,
    /// By process: what its threads moved from and to files, all syncs, and what its ended threads moved from and to devices.
    pub(crate) processes: HashMap<u32, OwnIo>,
    /// By thread that lives: what is not yet in `processes`.
    pub(crate) living: HashMap<u32, OwnIo>,
    /// Requests of rings, by operation.
    pub(crate) rings: Vec<RingRequests>,
    /// What did not fit.
    pub(crate) lost: Lost,
}

/// Calls on a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketCalls {
    /// 0: it had no place of its own.
    pub(crate) inode: u64,
    /// Whether accept returned it.
    pub(crate) accepted: bool,
    /// Those that succeeded.
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

/// What did not fit into the observer's tables, each counted when it was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Threads whose calls are not counted.
    pub(crate) threads: u64,
    /// Calls on open files that are counted by number only.
    pub(crate) descriptions: u64,
    /// Times that the calls on a file were added to those of all files without a place.
    pub(crate) files: u64,
    /// Steps of block requests that found the buffer full.
    pub(crate) requests: u64,
    /// Ends of threads and syncs that belong to no process.
    pub(crate) processes: u64,
    /// Requests of rings on files that were not followed.
    pub(crate) ring_requests: u64,
    /// Calls that are missing at the end of a record of all calls, because its buffer was full.
    pub(crate) records: u64,
}

pub(super) fn read(object: &mut Object) -> Result<Facts, String> {
    let mut sums: HashMap<FileKey, [u64; SUMS]> = HashMap::new();
    let files: KernelMap<_, [u64; 2], [u64; FILE_SUMS]> = map(object, "files")?;
    for entry in files.iter() {
        let (key, more) = entry.map_err(|e| chain(&e))?;
        add(sums.entry(FileKey(key)).or_insert([0; SUMS]), &more);
    }
    let mut living = HashMap::new();
    let near: Array<_, [u64; THREAD]> = map(object, "near_threads")?;
    for place in 0..NEAR_THREADS {
        add_runs(&mut sums, &mut living, &near.get(&place, 0).map_err(|e| chain(&e))?);
    }
    let far: KernelMap<_, u32, [u64; THREAD]> = map(object, "far_threads")?;
    for entry in far.iter() {
        add_runs(&mut sums, &mut living, &entry.map_err(|e| chain(&e))?.1);
    }
    let mut paths: HashMap<FileKey, String> = HashMap::new();
    let (mut generations, mut sizes) = (HashMap::new(), HashMap::new());
    let known: KernelMap<_, [u64; 2], [u8; PATH]> = map(object, "paths")?;
    for entry in known.iter() {
        let (key, bytes) = entry.map_err(|e| chain(&e))?;
        paths.insert(FileKey(key), path_text(&bytes));
        generations.insert(FileKey(key), generation(&bytes));
        sizes.insert(FileKey(key), size(&bytes));
    }
    let lost: Array<_, [u64; 7]> = map(object, "losses")?;
    let [threads, descriptions, files, requests, by_process, ring_requests, records] =
        lost.get(&0, 0).map_err(|e| chain(&e))?;
    Ok(Facts {
        calls: calls(object)?,
        kinds: by_kind(&sums),
        sockets: sockets(&sums),
        versions: versions(&sums, &paths, &generations),
        files: by_path(sums, &paths, &sizes),
        paths,
        // Where one is missing, what the others did does not add up.
        processes: if by_process == 0 { processes(object)? } else { HashMap::new() },
        living,
        rings: super::rings::counts(object)?,
        lost: Lost { threads, descriptions, files, requests, processes: by_process, ring_requests, records },
    })
}

/// Makes the entries of the files beyond those that have a place, one for each type.
pub(super) fn prepare(object: &mut Object) -> Result<(), String> {
    let mut files: KernelMap<_, [u64; 2], [u64; FILE_SUMS]> = map(object, "files")?;
    for key in FileKey::others() {
        files.insert(key.0, [0; FILE_SUMS], 0).map_err(|e| chain(&e))?;
    }
    Ok(())
}

/// Adds what a living thread has not yet added itself (`struct run`).
fn add_runs(
    sums: &mut HashMap<FileKey, [u64; SUMS]>,
    living: &mut HashMap<u32, OwnIo>,
    thread: &[u64; THREAD],
) {
    for (direction, run) in thread[THREAD - 2 * RUN..].chunks_exact(RUN).enumerate() {
        let [address, _, inode, device_and_type] = [0, 1, 2, 3].map(|i| run[i]);
        if address == 0 || tid_and_mode(thread).0 == 0 {
            continue;
        }
        let key = FileKey([inode, device_and_type]);
        if key.has_offsets() {
            let [calls, bytes] = [run[BEFORE_ACCESS], run[BEFORE_ACCESS + 1]];
            let own = living.entry(tid_and_mode(thread).0).or_default();
            *own = own.plus(match direction {
                0 => OwnIo { read_calls: calls, read_bytes: bytes, ..OwnIo::default() },
                _ => OwnIo { write_calls: calls, written_bytes: bytes, ..OwnIo::default() },
            });
        }
        let into = sums.entry(key).or_insert([0; SUMS]);
        let access = &mut into[direction * ACCESS..];
        add(access, &run[BEFORE_ACCESS..]);
        // All calls of a run, or none, are direct or synchronous (words 2 and 3 of `struct access`).
        let [.., direct, synchronous, _, _, _] = run[5].to_ne_bytes();
        for (word, is_so) in [(2, direct), (3, synchronous)] {
            access[word] = access[word].saturating_add(if is_so == 0 { 0 } else { run[BEFORE_ACCESS] });
        }
        let [size, _] = words(run[6]);
        let class = 2 * ACCESS + direction * SIZE_CLASSES + (size as usize).min(SIZE_CLASSES - 1);
        into[class] = into[class].saturating_add(run[8]);
    }
}

/// The thread in a place (0: none), and its mode.
pub(super) fn tid_and_mode(thread: &[u64; THREAD]) -> (u32, u16) {
    let [a, b, c, d, e, f, ..] = thread[0].to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]))
}

/// A thread that has done nothing yet.
pub(super) fn new_thread(tid: u32, mode: u16) -> [u64; THREAD] {
    let ([a, b, c, d], [e, f]) = (tid.to_ne_bytes(), mode.to_ne_bytes());
    let mut thread = [0; THREAD];
    thread[0] = u64::from_ne_bytes([a, b, c, d, e, f, 0, 0]);
    thread
}

/// Words of `struct process`.
const PROCESS: usize = 8;

fn processes(object: &mut Object) -> Result<HashMap<u32, OwnIo>, String> {
    let known: KernelMap<_, u32, [u64; PROCESS]> = map(object, "processes")?;
    let mut processes = HashMap::new();
    for entry in known.iter() {
        let (
            pid,
            [read_calls, read_bytes, write_calls, written_bytes, device_read, device_written, syncs, ended],
        ) = entry.map_err(|e| chain(&e))?;
        // Until a thread has ended, those of devices only hold what is to be taken off.
        let [device_read_bytes, device_written_bytes] =
            if ended == 0 { [0; 2] } else { [device_read, device_written] };
        let files = OwnIo { read_calls, write_calls, read_bytes, written_bytes, syncs, ..OwnIo::default() };
        processes.insert(pid, OwnIo { device_read_bytes, device_written_bytes, ..files });
    }
    Ok(processes)
}

/// Reads, bytes read, writes, bytes written, and syncs of all threads that were followed, requests of rings on files among them.
pub(super) fn moved(object: &mut Object) -> Result<Own, String> {
    let counts: PerCpuArray<_, [u64; 3]> = map(object, "counts")?;
    let mut own = Own::default();
    for number in 0..NUMBERS {
        let shape = Shape::from_number(i64::from(number));
        let [reads, writes, syncs] = match shape {
            Shape::Move { direction, .. } => {
                [direction == Direction::Read, direction == Direction::Write, false]
            }
            Shape::Relay { .. } => [true, true, false],
            Shape::Sync => [false, false, true],
            _ => continue,
        };
        let by_cpu = counts.get(&number, 0).map_err(|e| chain(&e))?;
        for [calls, failed, bytes] in by_cpu.iter() {
            let done = calls.saturating_sub(*failed);
            let more = [(reads, done), (reads, *bytes), (writes, done), (writes, *bytes), (syncs, done)];
            for (sum, (_, more)) in own.iter_mut().zip(more).filter(|(_, (counts, _))| *counts) {
                *sum = sum.saturating_add(more);
            }
        }
    }
    super::rings::add_moved(object, &mut own)?;
    Ok(own)
}

fn calls(object: &mut Object) -> Result<Vec<CallCount>, String> {
    let mut errors: HashMap<u32, BTreeMap<String, u64>> = HashMap::new();
    let failed: KernelMap<_, [u32; 2], u64> = map(object, "errors")?;
    for entry in failed.iter() {
        let ([number, errno], times) = entry.map_err(|e| chain(&e))?;
        errors.entry(number).or_default().insert(errno_name(i64::from(errno)), times);
    }
    let counts: PerCpuArray<_, [u64; 3]> = map(object, "counts")?;
    let mut calls = Vec::new();
    for number in 0..NUMBERS {
        let by_cpu = counts.get(&number, 0).map_err(|e| chain(&e))?;
        let mut sum = [0u64; 3];
        for cpu in by_cpu.iter() {
            for (sum, more) in sum.iter_mut().zip(cpu) {
                *sum = sum.saturating_add(*more);
            }
        }
        let [times, failed, bytes] = sum;
        if times == 0 {
            continue;
        }
        let name = match syscalls::name(i64::from(number)) {
            _ if number == NUMBERS - 1 => "other".to_owned(),
            Some(name) => name.to_owned(),
            None => format!("syscall_{number}"),
        };
        calls.push(CallCount {
            name,
            calls: times,
            failed,
            errors: errors.remove(&number).unwrap_or_default(),
            time_ns: 0,
            bytes,
        });
    }
    calls.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
    Ok(calls)
}

/// Sums over all files of a kind.
fn by_kind(sums: &HashMap<FileKey, [u64; SUMS]>) -> Vec<KindUse> {
    let mut kinds: BTreeMap<&str, KindUse> = BTreeMap::new();
    for (key, words) in sums {
        let kind = key.kind();
        let sum =
            kinds.entry(kind).or_insert_with(|| KindUse { kind: kind.to_owned(), ..KindUse::default() });
        sum.read_calls += words[0];
        sum.read_bytes += words[1];
        sum.write_calls += words[ACCESS];
        sum.written_bytes += words[ACCESS + 1];
    }
    kinds.into_values().filter(|sum| sum.read_calls + sum.write_calls > 0).collect()
}

fn sockets(sums: &HashMap<FileKey, [u64; SUMS]>) -> Vec<SocketCalls> {
    let sockets = sums.iter().filter(|(key, _)| key.kind() == "socket");
    let of = |(FileKey([inode, _]), words): (&FileKey, &[u64; SUMS])| SocketCalls {
        inode: *inode,
        accepted: words[OPENS] > 0,
        reads: words[0],
        writes: words[ACCESS],
    };
    sockets.map(of).filter(|calls| calls.reads + calls.writes > 0).collect()
}

/// Joins what has the same path: a file that was replaced keeps its name. Files beyond the bound are one entry, with the sum of their
/// `sizes` when they were met and of what was written to them, unless one of these sizes is not known.
fn by_path(
    sums: HashMap<FileKey, [u64; SUMS]>,
    paths: &HashMap<FileKey, String>,
    sizes: &HashMap<FileKey, u64>,
) -> Vec<FileUse> {
    let mut joined: HashMap<(String, &'static str), [u64; SUMS]> = HashMap::new();
    let mut at_most: HashMap<(String, &'static str), Option<u64>> = HashMap::new();
    let mut rest = [0; SUMS];
    let mut rest_bytes = Some(0u64);
    for (key, more) in sums {
        let kind = key.kind();
        if key.stands_for_many() {
            let sized = more == [0; SUMS] || !has_size(kind);
            rest_bytes = rest_bytes.filter(|_| sized);
            add(&mut rest, &more);
            continue;
        }
        let path = match kind {
            "pipe" | "socket" => format!("{kind}:[{}]", key.0[0]),
            _ => paths.get(&key).cloned().unwrap_or_else(|| UNKNOWN.to_owned()),
        };
        let bytes = at_most.entry((path.clone(), kind)).or_insert(Some(0));
        let own = sizes.get(&key).filter(|_| kind == "regular");
        *bytes = bytes.zip(own).map(|(sum, own)| sum.saturating_add(*own).saturating_add(more[ACCESS + 1]));
        let into = joined.entry((path, kind)).or_insert([0; SUMS]);
        add(into, &more);
    }
    let mut files: Vec<((String, &'static str), [u64; SUMS])> = joined.into_iter().collect();
    files.sort_by(|a, b| {
        let rank =
            |sums: &[u64; SUMS]| std::cmp::Reverse((sums[1].saturating_add(sums[ACCESS + 1]), sums[OPENS]));
        rank(&a.1).cmp(&rank(&b.1)).then_with(|| a.0.cmp(&b.0))
    });
    for (of, more) in files.drain(files.len().min(MAX_REPORTED)..) {
        if has_size(of.1) {
            let own = at_most.get(&of).copied().flatten();
            rest_bytes = rest_bytes.zip(own).map(|(sum, own)| sum.saturating_add(own));
        }
        add(&mut rest, &more);
    }
    let mut files: Vec<FileUse> = files
        .into_iter()
        .map(|(of, sums)| {
            let most_bytes = at_most.get(&of).copied().flatten();
            FileUse { most_bytes, ..file(of.0, of.1, &sums) }
        })
        .collect();
    if rest != [0; SUMS] {
        let most_bytes = rest_bytes;
        files.push(FileUse { most_bytes, ..file(OTHERS.to_owned(), "unknown", &rest) });
    }
    files
}

/// Whether bytes of such a file are kept somewhere.
fn has_size(kind: &str) -> bool {
    matches!(kind, "regular" | "block-device")
}

/// The inodes of each path of which several files were written.
fn versions(
    sums: &HashMap<FileKey, [u64; SUMS]>,
    paths: &HashMap<FileKey, String>,
    generations: &HashMap<FileKey, u32>,
) -> HashMap<String, Vec<(Inode, u64)>> {
    let mut versions: HashMap<String, Vec<(Inode, u64)>> = HashMap::new();
    let written = sums.iter().filter(|(key, sums)| key.kind() == "regular" && sums[ACCESS + 1] > 0);
    for (key, sums) in written {
        let known = paths.get(key).filter(|path| path.starts_with('/')).zip(generations.get(key));
        if let Some((path, generation)) = known {
            let inode = Inode { device: key.number_of_device(), number: key.0[0], generation: *generation };
            versions.entry(path.clone()).or_default().push((inode, sums[ACCESS + 1]));
        }
    }
    versions.retain(|_, inodes| inodes.len() > 1);
    versions
}

fn add(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// Two fields of four bytes, in their order in memory.
pub(super) fn words(both: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = both.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

fn file(path: String, kind: &str, sums: &[u64; SUMS]) -> FileUse {
    let [opens, syncs, maps, code_maps] = [0, 1, 2, 3].map(|i| sums[OPENS + i]);
    let sizes = |direction| sums[2 * ACCESS + direction * SIZE_CLASSES..][..SIZE_CLASSES].to_vec();
    FileUse {
        path,
        kind: kind.to_owned(),
        reads: access(&sums[..ACCESS], sizes(0)),
        writes: access(&sums[ACCESS..2 * ACCESS], sizes(1)),
        // Of a socket: that it was accepted.
        opens: if kind == "socket" { 0 } else { opens },
        syncs,
        mapped: maps > 0 && code_maps == 0,
        ..FileUse::default()
    }
}

fn access(words: &[u64], sizes: Vec<u64>) -> Access {
    let share = |hits, n| SampledShare { hits, n };
    let [calls, bytes, direct, synchronous, placed] = [0, 1, 2, 3, 4].map(|i| words[i]);
    let [known, sequential, unaligned, after_seek] = [5, 6, 7, 8].map(|i| words[i]);
    let [marked, repeated, mark_bytes, fresh_bytes] = [9, 10, 11, 12].map(|i| words[i]);
    let fresh = if mark_bytes == 0 { 1.0 } else { fresh_bytes as f64 / mark_bytes as f64 };
    let with_offsets = if placed > 0 { calls } else { 0 };
    Access {
        calls,
        bytes,
        time_ns: 0,
        sizes,
        sequential: share(sequential, known),
        unaligned: share(unaligned, placed),
        repeated: share(repeated, marked),
        distinct_bytes: (bytes as f64 * fresh).round() as u64,
        after_seek: share(after_seek, placed),
        direct: share(direct, with_offsets),
        synchronous: share(synchronous, with_offsets),
    }
}

/// The generation of the inode, which tells it from an earlier one of its number.
fn generation(bytes: &[u8; PATH]) -> u32 {
    u32::from_ne_bytes([8, 9, 10, 11].map(|at: usize| bytes[at]))
}

/// The size when it was met, in bytes.
fn size(bytes: &[u8; PATH]) -> u64 {
    u64::from_ne_bytes([16, 17, 18, 19, 20, 21, 22, 23].map(|at: usize| bytes[at]))
}

/// The components stand in the map from the file up to the root, each with a final 0.
pub(super) fn path_text(bytes: &[u8; PATH]) -> String {
    let [length, whole] = [0, 4].map(|at| u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[at + i])));
    let end = BEFORE_TEXT + (length as usize).min(PATH - BEFORE_TEXT);
    let mut components: Vec<String> = bytes[BEFORE_TEXT..end]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    components.reverse();
    let start = if whole == 0 { "..." } else { "" };
    format!("{start}/{}", components.join("/"))
}
