//! One phase over a tree, timed: threads side by side from one start, each with its own list, each system call's time apart.
//!
//! Invariants: paths are built and buffers allocated before the start; every name is below a directory that is held open; a
//! phase that only reads opens without waiting (a name that has become a pipe does not hang us) and follows no symbolic links.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use iowhy_core::histogram::Histogram;
use iowhy_core::problem::Problem;
use iowhy_linux::file_size;
use iowhy_linux::names::Dir;
use rustix::fs::{AtFlags, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::build::Content;
use super::files::Spot;
use super::{Files, Tree};
use crate::clock::Clock;
use crate::{interrupt, residency};

/// What is done to every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Made, written, closed.
    Create,
    /// All of it on the device, one call for all.
    Sync,
    /// Its size and times asked for.
    Stat,
    /// Its directory listed.
    List,
    /// Opened, read whole, closed.
    Read,
    /// Given another name in its directory.
    Rename,
    /// Removed.
    Delete,
}

impl Phase {
    /// All of them, in the order of a life.
    pub const ALL: [Phase; 7] =
        [Phase::Create, Phase::Sync, Phase::Stat, Phase::List, Phase::Read, Phase::Rename, Phase::Delete];

    /// The name in options and records.
    pub fn id(self) -> &'static str {
        match self {
            Phase::Create => "create",
            Phase::Sync => "sync",
            Phase::Stat => "stat",
            Phase::List => "list",
            Phase::Read => "read",
            Phase::Rename => "rename",
            Phase::Delete => "delete",
        }
    }

    /// Whether it leaves the tree as it is.
    pub fn only_reads(self) -> bool {
        matches!(self, Phase::Stat | Phase::List | Phase::Read)
    }

    /// The system calls that are timed apart, in their order.
    pub fn operations(self) -> &'static [Operation] {
        match self {
            Phase::Create => &[Operation::Create, Operation::Write, Operation::Close],
            Phase::Sync => &[Operation::Sync],
            Phase::Stat => &[Operation::Stat],
            Phase::List => &[Operation::List],
            Phase::Read => &[Operation::Open, Operation::Read, Operation::Close],
            Phase::Rename => &[Operation::Rename],
            Phase::Delete => &[Operation::Unlink],
        }
    }
}

/// A system call, or the few of one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `open` that makes a file.
    Create,
    /// All `write` calls of a file.
    Write,
    /// `syncfs`.
    Sync,
    /// `lstat`.
    Stat,
    /// A whole directory: `open`, all `getdents`, `close`.
    List,
    /// `open` of a file that is there.
    Open,
    /// All `read` calls of a file, to its end.
    Read,
    /// `close`.
    Close,
    /// `rename`.
    Rename,
    /// `unlink`.
    Unlink,
}

impl Operation {
    /// The name in records and on the screen.
    pub fn id(self) -> &'static str {
        match self {
            Operation::Create => "open-create",
            Operation::Write => "write",
            Operation::Sync => "syncfs",
            Operation::Stat => "lstat",
            Operation::List => "list-directory",
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Close => "close",
            Operation::Rename => "rename",
            Operation::Unlink => "unlink",
        }
    }
}

/// What one phase came to.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Which.
    pub phase: Phase,
    /// Files done; for a listing, entries seen.
    pub files: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// From the common start to the first thread's end.
    pub first_done_ns: u64,
    /// From the common start to the last thread's end.
    pub last_done_ns: u64,
    /// Time of each call, over all threads.
    pub operations: Vec<(Operation, Histogram)>,
    /// Whether somebody asked us to stop before its end.
    pub interrupted: bool,
}

impl Pass {
    /// Sum over files of the time of a call.
    pub fn sum_ns(&self, operation: Operation) -> u64 {
        self.operations.iter().filter(|(id, _)| *id == operation).map(|(_, times)| times.sum_ns()).sum()
    }
}

/// Threads at most.
pub const MAX_READERS: usize = 1024;
/// Buffer of a thread, for reads and for listings.
const BUFFER_BYTES: usize = 64 << 10;
/// How often a thread says how far it is, and looks whether it is to stop.
const LOOK_EVERY: u64 = 32;

/// Runs a phase over the lists: numbers of files, or of directories for a listing. `watch` is told now and then how many are
/// done in all. The state of the data is the caller's: see [`set_state`].
///
/// # Errors
/// The first call that fails, by its path; the other threads stop then. Writing needs `tree`.
pub fn run(
    phase: Phase,
    files: &mut Files,
    lists: &[Vec<u32>],
    tree: Option<&Tree>,
    watch: &mut dyn FnMut(u64),
) -> Result<Pass, Problem> {
    if !phase.only_reads() && tree.is_none() {
        return Err(Problem::refused(format!("`{}` changes a tree that is not ours", phase.id()))
            .hint("leave it out of `--phases`"));
    }
    if phase == Phase::Sync {
        return sync(tree);
    }
    if lists.len() > MAX_READERS {
        return Err(Problem::refused(format!("{} threads are more than {MAX_READERS}", lists.len())));
    }
    let content = tree.map(Tree::content).filter(|_| phase == Phase::Create);
    let quiet = opens_quietly(files, lists, phase);
    let lists: Vec<&Vec<u32>> = lists.iter().filter(|list| !list.is_empty()).collect();
    let run = Shared {
        phase,
        content: content.as_ref(),
        quiet,
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let (ready, go) = (Barrier::new(lists.len() + 1), Barrier::new(lists.len() + 1));
    let by_name: &Files = files;
    let results: Vec<Result<Worker, Problem>> = std::thread::scope(|scope| {
        let threads: Vec<_> = lists
            .iter()
            .map(|list| {
                let (run, ready, go) = (&run, &ready, &go);
                scope.spawn(move || run.thread(by_name, list, ready, go))
            })
            .collect();
        ready.wait();
        go.wait();
        let mut pause = Duration::from_micros(500);
        while !threads.iter().all(|thread| thread.is_finished()) {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
            watch(run.done.load(Ordering::Relaxed));
        }
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err(Problem::failed("a thread panicked"))))
            .collect()
    });
    let workers = results.into_iter().collect::<Result<Vec<Worker>, Problem>>()?;
    if phase == Phase::Rename {
        let moved = !files.moved();
        files.set_moved(moved);
    }
    Ok(together(phase, workers))
}

fn together(phase: Phase, workers: Vec<Worker>) -> Pass {
    let begun_ns = workers.iter().map(|w| w.begun_ns).min().unwrap_or(0);
    let since = |at: u64| at.saturating_sub(begun_ns);
    let mut operations: Vec<(Operation, Histogram)> =
        phase.operations().iter().map(|id| (*id, Histogram::new())).collect();
    for worker in &workers {
        for ((_, all), own) in operations.iter_mut().zip(&worker.times) {
            all.merge(own);
        }
    }
    Pass {
        phase,
        files: workers.iter().map(|w| w.files).sum(),
        bytes: workers.iter().map(|w| w.bytes).sum(),
        first_done_ns: workers.iter().map(|w| since(w.ended_ns)).min().unwrap_or(0),
        last_done_ns: workers.iter().map(|w| since(w.ended_ns)).max().unwrap_or(0),
        operations,
        interrupted: interrupt::requested(),
    }
}

fn sync(tree: Option<&Tree>) -> Result<Pass, Problem> {
    let clock = Clock::real();
    let begun_ns = clock.now_ns();
    if let Some(tree) = tree {
        tree.sync()?;
    }
    let took_ns = clock.now_ns().saturating_sub(begun_ns);
    let mut times = Histogram::new();
    times.record(took_ns);
    Ok(Pass {
        phase: Phase::Sync,
        files: 0,
        bytes: 0,
        first_done_ns: took_ns,
        last_done_ns: took_ns,
        operations: vec![(Operation::Sync, times)],
        interrupted: interrupt::requested(),
    })
}

/// What all threads of a phase have in common.
struct Shared<'a> {
    phase: Phase,
    content: Option<&'a Content>,
    /// Whether files may be opened without leaving the time of access.
    quiet: bool,
    done: AtomicU64,
    stop: AtomicBool,
}

/// One thread's buffers and what it found.
struct Worker {
    buffer: Vec<u8>,
    listing: Vec<MaybeUninit<u8>>,
    times: Vec<Histogram>,
    begun_ns: u64,
    ended_ns: u64,
    files: u64,
    bytes: u64,
}

/// A file or a directory, with its path ready.
struct Item {
    spot: Spot,
    /// The other name of a file that is renamed.
    to: Option<Spot>,
    number: u32,
    bytes: u64,
}

impl Shared<'_> {
    /// Reaches both barriers whatever happens, or the others would hang.
    fn thread(&self, files: &Files, list: &[u32], ready: &Barrier, go: &Barrier) -> Result<Worker, Problem> {
        let items = self.items(files, list);
        let anchors = files.anchors();
        let clock = Clock::real();
        let mut worker = Worker {
            buffer: vec![0; if self.phase == Phase::Read { BUFFER_BYTES } else { 0 }],
            listing: vec![MaybeUninit::uninit(); if self.phase == Phase::List { BUFFER_BYTES } else { 0 }],
            times: vec![Histogram::new(); self.phase.operations().len()],
            begun_ns: 0,
            ended_ns: 0,
            files: 0,
            bytes: 0,
        };
        worker.times.iter_mut().for_each(Histogram::reserve);
        ready.wait();
        go.wait();
        worker.begun_ns = clock.now_ns();
        let mut told = 0;
        for (index, item) in items?.iter().enumerate() {
            if (index as u64).is_multiple_of(LOOK_EVERY) {
                self.done.fetch_add(worker.files - told, Ordering::Relaxed);
                told = worker.files;
                if self.is_to_stop() {
                    break;
                }
            }
            if let Err((what, errno)) = self.step(&clock, &mut worker, item, &anchors) {
                self.stop.store(true, Ordering::Relaxed);
                let (path, error) = (item.spot.shown(&anchors), std::io::Error::from(errno));
                let problem = Problem::failed(format!("cannot {what} `{}`: {error}", path.display()));
                return Err(file_size::explained(problem, &error));
            }
        }
        worker.ended_ns = clock.now_ns();
        Ok(worker)
    }

    fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || interrupt::requested()
    }

    fn items(&self, files: &Files, list: &[u32]) -> Result<Vec<Item>, Problem> {
        list.iter()
            .map(|&number| {
                let (spot, to) = match self.phase {
                    Phase::List => (files.directory(number)?, None),
                    Phase::Rename => {
                        (files.spot(number, files.moved())?, Some(files.spot(number, !files.moved())?))
                    }
                    _ => (files.spot(number, files.moved())?, None),
                };
                Ok(Item { spot, to, number, bytes: files.size(number) })
            })
            .collect()
    }

    /// One file. What failed, in a word, and how.
    fn step(
        &self,
        clock: &Clock,
        worker: &mut Worker,
        item: &Item,
        anchors: &[Dir],
    ) -> Result<(), (&'static str, Errno)> {
        let as_what = |what: &'static str| move |errno| (what, errno);
        let (dir, path) = (item.spot.dir(anchors).map_err(as_what("find"))?, item.spot.path());
        let mut at = clock.now_ns();
        match self.phase {
            Phase::Create => {
                let mode = Mode::from_raw_mode(0o644);
                let file = dir.create_new(path, OFlags::WRONLY, mode).map_err(as_what("make"))?;
                at = worker.book(0, at, clock.now_ns());
                let content = self.content.map_or(&[][..], |c| c.of(u64::from(item.number), item.bytes));
                write_all(&file, content).map_err(as_what("write"))?;
                worker.bytes += content.len() as u64;
                at = worker.book(1, at, clock.now_ns());
                drop(file);
                worker.book(2, at, clock.now_ns());
            }
            Phase::Read => {
                let file = open_to_read(&item.spot, anchors, self.quiet).map_err(as_what("open"))?;
                at = worker.book(0, at, clock.now_ns());
                let mut moved = 0;
                // Not beyond the size that it had when it was found: it may grow, or be exchanged, without end.
                while moved <= item.bytes && !self.is_to_stop() {
                    match rustix::io::read(&file, &mut worker.buffer[..]) {
                        Ok(0) => break,
                        Ok(n) => moved += n as u64,
                        Err(Errno::INTR) => {}
                        Err(errno) => return Err(("read", errno)),
                    }
                }
                worker.bytes += moved;
                at = worker.book(1, at, clock.now_ns());
                drop(file);
                worker.book(2, at, clock.now_ns());
            }
            Phase::Stat => {
                rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).map_err(as_what("look at"))?;
                worker.book(0, at, clock.now_ns());
            }
            Phase::List => {
                let entries = list(&item.spot, anchors, &mut worker.listing).map_err(as_what("list"))?;
                worker.book(0, at, clock.now_ns());
                worker.files += entries;
                return Ok(());
            }
            Phase::Rename => {
                let to = item.to.as_ref().unwrap_or(&item.spot);
                dir.rename(path, to.path()).map_err(as_what("rename"))?;
                worker.book(0, at, clock.now_ns());
            }
            Phase::Delete => {
                dir.remove_file(path).map_err(as_what("remove"))?;
                worker.book(0, at, clock.now_ns());
            }
            Phase::Sync => {}
        }
        worker.files += 1;
        Ok(())
    }
}

impl Worker {
    /// Books the time from `at` to `now` to a call, and returns `now`.
    fn book(&mut self, call: usize, at: u64, now: u64) -> u64 {
        if let Some(times) = self.times.get_mut(call) {
            times.record(now.saturating_sub(at));
        }
        now
    }
}

fn write_all(file: &OwnedFd, mut content: &[u8]) -> Result<(), Errno> {
    while !content.is_empty() {
        match rustix::io::write(file, content) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(n) => content = content.get(n..).unwrap_or(&[]),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Opens a regular file; what has become something else since it was found does not hold us up. `quiet`: without leaving the
/// time of access, where the file's owner allows that.
fn open_to_read(spot: &Spot, anchors: &[Dir], quiet: bool) -> Result<OwnedFd, Errno> {
    if quiet {
        match spot.open(anchors, OFlags::NOATIME) {
            Err(Errno::PERM) => {}
            opened => return opened,
        }
    }
    spot.open(anchors, OFlags::empty())
}

/// Whether the first file may be opened without leaving the time of access, as its owner and root may: the others will be
/// of the same owner, and none pays for an attempt that fails.
fn opens_quietly(files: &Files, lists: &[Vec<u32>], phase: Phase) -> bool {
    let first = lists.iter().flatten().next().filter(|_| phase == Phase::Read);
    let spot = first.and_then(|file| files.spot(*file, files.moved()).ok());
    spot.is_some_and(|spot| spot.open(&files.anchors(), OFlags::NOATIME).is_ok())
}

/// Entries of a directory, itself and its parent left out.
fn list(spot: &Spot, anchors: &[Dir], buffer: &mut [MaybeUninit<u8>]) -> Result<u64, Errno> {
    let directory = spot.open(anchors, OFlags::DIRECTORY)?;
    let mut entries = 0;
    let mut listing = RawDir::new(&directory, buffer);
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        entries += u64::from(name != b"." && name != b"..");
    }
    Ok(entries)
}

/// In which state the data is before a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not in the page cache.
    Cold,
    /// In the page cache.
    Warm,
}

impl State {
    /// The name in options and records.
    pub fn id(self) -> &'static str {
        match self {
            State::Cold => "cold",
            State::Warm => "warm",
        }
    }
}

/// Takes what the lists name out of the page cache, or brings it in, and looks. Names and inodes stay in the kernel's caches
/// either way: only root can empty those, and only for the whole machine. The share of pages that are there afterwards; `None`
/// when that cannot be seen, or nothing has a page.
///
/// # Errors
/// A file that cannot be opened, or read into the cache.
pub fn set_state(
    files: &Files,
    lists: &[Vec<u32>],
    state: State,
    watch: &mut dyn FnMut(u64),
) -> Result<Option<f64>, Problem> {
    let anchors = files.anchors();
    let (mut pages, mut resident, mut seen) = (0u64, 0u64, true);
    for (index, &file) in lists.iter().flatten().enumerate() {
        if (index as u64).is_multiple_of(LOOK_EVERY) {
            watch(index as u64);
            if interrupt::requested() {
                return Ok(None);
            }
        }
        let spot = files.spot(file, files.moved())?;
        let opened = open_to_read(&spot, &anchors, true).map_err(|errno| {
            let error = std::io::Error::from(errno);
            Problem::failed(format!("cannot open `{}`: {error}", spot.shown(&anchors).display()))
        })?;
        let size = files.size(file);
        match state {
            State::Cold => residency::evict(opened.as_fd(), 0, size)?,
            State::Warm => {
                residency::fetch(opened.as_fd(), 0, size)?;
            }
        }
        match residency::look(opened.as_fd(), 0, size) {
            Ok(look) => {
                pages += look.pages;
                resident += look.resident;
            }
            Err(_) => seen = false,
        }
    }
    Ok((seen && pages > 0).then(|| resident as f64 / pages as f64))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::{Order, Shape};
    use super::*;

    fn shape() -> Shape {
        Shape { files: 60, directories: 6, sizes: vec![930, 0, 6102] }
    }

    fn names(root: &Path) -> usize {
        let directories = fs::read_dir(root).unwrap().flatten().filter(|e| e.path().is_dir());
        directories.map(|d| fs::read_dir(d.path()).unwrap().count()).sum()
    }

    #[test]
    fn a_life_from_making_to_removing_touches_every_file_once_in_each_phase() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::lay_out(dir.path(), None, shape()).unwrap();
        let mut files = tree.files();
        for order in Order::ALL {
            for phase in Phase::ALL {
                let lists = match phase {
                    Phase::List => files.directory_lists(3),
                    _ => files.lists(3, None, order, 1),
                };
                let pass = run(phase, &mut files, &lists, Some(&tree), &mut |_| {}).unwrap();
                let moves = matches!(phase, Phase::Create | Phase::Read);
                assert_eq!(pass.files, if phase == Phase::Sync { 0 } else { 60 }, "{phase:?}");
                assert_eq!(pass.bytes, if moves { files.bytes() } else { 0 }, "{phase:?}");
                assert!(pass.first_done_ns <= pass.last_done_ns && pass.last_done_ns > 0);
                assert_eq!(pass.operations.len(), phase.operations().len());
                let calls = match phase {
                    Phase::List => 6,
                    Phase::Sync => 1,
                    _ => 60,
                };
                assert!(pass.operations.iter().all(|(_, times)| times.count() == calls), "{phase:?}");
                assert_eq!(names(tree.root()), if phase == Phase::Delete { 0 } else { 60 }, "{phase:?}");
            }
            // A removed tree is made again under its first names.
            files.set_moved(false);
        }
    }

    #[test]
    fn what_is_not_ours_is_never_changed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), b"data").unwrap();
        let mut files = Files::walk(dir.path(), 10, &mut |_| {}).unwrap();
        let lists = files.lists(1, None, Order::Directory, 1);
        for phase in [Phase::Create, Phase::Sync, Phase::Rename, Phase::Delete] {
            assert!(run(phase, &mut files, &lists, None, &mut |_| {}).is_err(), "{phase:?}");
        }
        let read = run(Phase::Read, &mut files, &lists, None, &mut |_| {}).unwrap();
        assert_eq!((read.files, read.bytes), (1, 4));
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"data");
    }

    #[test]
    fn a_file_that_grows_is_read_up_to_the_size_that_was_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), b"data").unwrap();
        let mut files = Files::walk(dir.path(), 10, &mut |_| {}).unwrap();
        fs::write(dir.path().join("a"), vec![1; 100 * BUFFER_BYTES]).unwrap();
        let lists = files.lists(1, None, Order::Directory, 1);
        let read = run(Phase::Read, &mut files, &lists, None, &mut |_| {}).unwrap();
        assert!(read.files == 1 && read.bytes <= BUFFER_BYTES as u64, "{read:?}");
    }

    #[test]
    fn a_file_that_has_gone_is_named_and_ends_the_phase() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
        let mut files = tree.files();
        fs::remove_file(tree.root().join("d1/7")).unwrap();
        let lists = files.lists(4, None, Order::Random, 1);
        let problem = run(Phase::Read, &mut files, &lists, Some(&tree), &mut |_| {}).unwrap_err();
        assert!(problem.message.contains("d1/7"), "{problem}");
        let lists = vec![Vec::new(); 3];
        assert_eq!(run(Phase::Read, &mut files, &lists, Some(&tree), &mut |_| {}).unwrap().files, 0);
    }

    #[test]
    fn cold_and_warm_are_what_was_seen() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
        let files = tree.files();
        let lists = files.lists(2, None, Order::Directory, 1);
        let warm = set_state(&files, &lists, State::Warm, &mut |_| {}).unwrap();
        let cold = set_state(&files, &lists, State::Cold, &mut |_| {}).unwrap();
        match (warm, cold) {
            (Some(warm), Some(cold)) if cold < 1.0 => assert_eq!((warm, cold), (1.0, 0.0)),
            _ => eprintln!("skipped: the page cache cannot be seen, or holds all it has (memory)"),
        }
    }
}
