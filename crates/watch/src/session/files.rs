//! Files that the program was seen to have open: what they are, and how much of them is in the page cache.
//!
//! Goal: facts about few files, early, at little cost. Non-goal: what is done to them (the observer in the kernel
//! tells). A file that is opened and closed between two looks is not seen here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use iowhy_core::profile::{Connections, FileUse, PipeEnd, RingUse};
use iowhy_linux::mounts::{Mount, above};

use iowhy_linux::block::devices::BlockTree;
use iowhy_linux::file_facts::{FileFacts, facts_of_path, mounts_of};
use iowhy_linux::file_handles::{self, Inode};
use iowhy_linux::process::open_files::{self, OpenFile};
use iowhy_linux::reader::Reader;
use iowhy_linux::served;
use iowhy_linux::{holes, page_cache};

use super::sockets::{Sockets, Tables};
use crate::in_kernel::SocketCalls;

/// Looks come so often at the beginning, and later.
pub(super) const EARLY_NS: u64 = 5_000_000;
const LATE_NS: u64 = 100_000_000;
/// Looks of the beginning. Counted and not timed: between the first look and the program's start lies our own setting up,
/// which takes a tenth of a second on a busy machine.
const EARLY_ROUNDS: usize = 12;

/// How long the next look waits, by the number of looks before.
pub(super) fn after_looks(looks: usize) -> u64 {
    if looks < EARLY_ROUNDS { EARLY_NS } else { LATE_NS }
}

/// Descriptors read at one look, over all processes.
const MAX_AT_ONCE: usize = 64;
/// Processes read at one look.
const MAX_PROCESSES: usize = 8;
/// Files that are remembered, and told of in the end.
const MAX_KNOWN: usize = 4096;
const MAX_LISTED: usize = 200;
/// Pages are counted for this many new files at one look: large files take long.
const MAX_COUNTED: usize = 4;

/// Ranges of data of sparse files that are looked at in the end, of all files together: a fraction of a second.
const MAX_RANGES: u32 = 65_536;

/// Replaced files that are looked for in the end, of all paths together: each may be a read of the device.
const MAX_HANDLES: usize = 8192;

/// Looks at rings that are remembered: the first half an hour.
const MAX_LOOKS: usize = 20_000;
/// Mapped files that are remembered.
const MAX_MAPPED: usize = 1024;
/// Less than this in all is what libraries map of their own accord (locales, character sets).
const MIN_MAPPED_BYTES: u64 = 4 << 20;

/// The files.
#[derive(Default)]
pub(super) struct Files {
    known: HashMap<PathBuf, Known>,
    mapped: HashMap<PathBuf, Mapped>,
    mounts: Option<Vec<Mount>>,
    tree: Option<BlockTree>,
    next_ns: u64,
    turn: usize,
    counted: usize,
    /// Device and inode of what we were given ourselves, and pass on.
    given: HashSet<(u64, u64)>,
    /// What each descriptor was at the last look at its process.
    open: HashMap<(u32, u32), PathBuf>,
    /// Ends of pipes, with their processes.
    pipes: BTreeSet<(u32, PipeEnd)>,
    sockets: Sockets,
    /// When this began, in nanoseconds since 1970.
    began_ns: i64,
    /// Requests in flight on all rings together, one number for each round of looks that saw any.
    in_flight: Vec<u32>,
}

/// What was mapped of a file.
#[derive(Default)]
struct Mapped {
    bytes: u64,
    times: u64,
    /// Also as code: a library, or the program itself.
    code: bool,
}

struct Known {
    facts: Option<FileFacts>,
    cached_before: Option<f64>,
    data: bool,
    appearances: u64,
    inherited: bool,
}

impl Files {
    /// Has seen nothing. Must be made before a descriptor is opened that is not closed at exec.
    pub(super) fn new() -> Files {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        Files { given: open_files::given(), began_ns, ..Files::default() }
    }

    /// Looks at open files when it is time again.
    pub(super) fn round(&mut self, now: u64, processes: &[u32], reader: &mut Reader) {
        if now < self.next_ns || processes.is_empty() {
            return;
        }
        self.next_ns = now + after_looks(self.turn);
        self.counted = 0;
        let mut left = MAX_AT_ONCE;
        let mut in_flight = 0u32;
        let mut tables = Tables::are_due(self.turn).then(Tables::default);
        for n in 0..processes.len().min(MAX_PROCESSES) {
            let pid = processes[(self.turn.wrapping_mul(MAX_PROCESSES).wrapping_add(n)) % processes.len()];
            let open = some_open(pid, self.turn, left, reader);
            // Of a list that was cut, nobody knows what is closed.
            let whole = open.len() < left;
            let mut seen = HashSet::new();
            for file in open {
                left -= 1;
                in_flight = in_flight.saturating_add(file.in_flight.unwrap_or(0));
                if let Some((tables, inode)) = tables.as_mut().zip(number_in(&file.path, "socket:[")) {
                    self.sockets.met(pid, inode, tables);
                }
                if let Some(inode) = number_in(&file.path, "pipe:[").filter(|_| self.pipes.len() < MAX_KNOWN)
                {
                    self.pipes.insert((pid, PipeEnd { inode, writes: file.flags.writable() }));
                }
                self.meet(pid, &file, reader);
                seen.insert(file.descriptor);
                self.appeared(pid, file);
            }
            if whole {
                self.open.retain(|(of, descriptor), _| *of != pid || seen.contains(descriptor));
            }
        }
        if in_flight > 0 && self.in_flight.len() < MAX_LOOKS {
            self.in_flight.push(in_flight);
        }
        self.turn = self.turn.wrapping_add(1);
    }

    /// A look found this descriptor: it counts where the one before had not.
    fn appeared(&mut self, pid: u32, file: OpenFile) {
        if self.open.len() >= MAX_KNOWN {
            self.open.clear();
        }
        let before = self.open.insert((pid, file.descriptor), file.path.clone());
        if before.as_ref() != Some(&file.path)
            && let Some(known) = self.known.get_mut(&file.path)
        {
            known.appearances += 1;
        }
    }

    /// A file appeared in the address space of a process.
    pub(super) fn map(&mut self, path: &str, bytes: u64, code: bool) {
        if !path.starts_with('/') || path.starts_with("//") {
            return;
        }
        if let Some(mapped) = self.mapped.get_mut(Path::new(path)) {
            mapped.bytes = mapped.bytes.saturating_add(bytes);
            mapped.times += 1;
            mapped.code |= code;
        } else if self.mapped.len() < MAX_MAPPED {
            self.mapped.insert(PathBuf::from(path), Mapped { bytes, times: 1, code });
        }
    }

    /// What was in flight on rings.
    pub(super) fn rings(&mut self) -> Option<RingUse> {
        let mut seen = std::mem::take(&mut self.in_flight);
        seen.sort_unstable();
        let middle = *seen.get(seen.len() / 2)?;
        Some(RingUse { looks: seen.len() as u64, in_flight: f64::from(middle), requests: Vec::new() })
    }

    /// Ends of pipes that a process was found to have open.
    pub(super) fn pipes(&self, pid: u32) -> Vec<PipeEnd> {
        let from = PipeEnd { inode: 0, writes: false };
        self.pipes.range((pid, from)..).take_while(|(of, _)| *of == pid).map(|(_, end)| *end).collect()
    }

    /// Whether a process was found to listen for connections.
    pub(super) fn listens(&self, pid: u32) -> bool {
        self.sockets.listens(pid)
    }

    /// Sums of calls on sockets by side, after a last look at the tables of these processes.
    pub(super) fn connections(&mut self, calls: &[SocketCalls], processes: &[u32]) -> Connections {
        self.sockets.last_look(processes);
        self.sockets.connections(calls)
    }

    /// When [`Files::round`] wants to be called again.
    pub(super) fn deadline_ns(&self) -> u64 {
        self.next_ns
    }

    /// Remembers a file when it is seen first. Returns its kind.
    fn meet(&mut self, pid: u32, file: &OpenFile, reader: &mut Reader) -> &'static str {
        if let Some(kind) = nameless(&file.path) {
            return kind;
        }
        let standard = file.descriptor <= 2;
        if let Some(known) = self.known.get_mut(&file.path) {
            known.inherited |= standard;
            return known.facts.as_ref().map_or("unknown", |f| f.kind);
        }
        let mounts = self.mounts.get_or_insert_with(|| mounts_of(reader, pid));
        let tree = self.tree.get_or_insert_with(|| BlockTree::new(mounts_of(reader, std::process::id())));
        let facts = open_files::facts(pid, file, mounts, tree);
        let mut cached_before = None;
        if let Some(facts) = &facts
            && self.counted < MAX_COUNTED
        {
            self.counted += 1;
            let at = open_files::path_to(pid, file.descriptor);
            cached_before = page_cache::look(&at, facts).and_then(|seen| seen.share());
        }
        let kind = facts.as_ref().map_or("unknown", |f| f.kind);
        if self.known.len() < MAX_KNOWN {
            let data = matches!(kind, "regular" | "block-device");
            let inherited = standard || facts.as_ref().is_some_and(|f| self.given.contains(&f.identity));
            let known = Known { facts, cached_before, data, appearances: 0, inherited };
            self.known.insert(file.path.clone(), known);
        }
        kind
    }

    /// The mounts that the program saw; ours, where it was not looked at.
    pub(super) fn mounts(&mut self, reader: &mut Reader) -> Vec<Mount> {
        self.mounts.take().unwrap_or_else(|| mounts_of(reader, std::process::id()))
    }

    /// Joins facts to what was counted, adds files that only looks saw, and names the devices under them. `seen_mounts`: those
    /// that the program saw.
    pub(super) fn finish(
        mut self,
        mut seen: Vec<FileUse>,
        versions: &HashMap<String, Vec<(Inode, u64)>>,
        seen_mounts: &[Mount],
        reader: &mut Reader,
    ) -> (Vec<FileUse>, Option<u64>, Vec<String>) {
        let mounts = mounts_of(reader, std::process::id());
        let tree = self.tree.take().unwrap_or_else(|| BlockTree::new(mounts.clone()));
        let mut storage = Storage {
            mounts: &mounts,
            tree: &tree,
            devices: Vec::new(),
            ranges_left: MAX_RANGES,
            handles_left: MAX_HANDLES,
            began_ns: self.began_ns,
        };
        for file in &mut seen {
            let path = PathBuf::from(&file.path);
            if let Some(versions) = versions.get(&file.path) {
                (file.replaced, file.replaced_bytes) = storage.gone(&path, versions);
            }
            // A look may have met it when it had no name any more.
            let unlinked = self.known.remove(Path::new(&format!("{} (deleted)", file.path)));
            let known = self.known.remove(&path).or(unlinked);
            storage.complete(file, &path, known);
        }
        let code_bytes = (self.mapped.len() < MAX_MAPPED).then(|| {
            let code = self.mapped.iter().filter(|(_, mapped)| mapped.code);
            let unread = code.filter(|(path, _)| {
                !seen.iter().any(|file| Path::new(&file.path) == *path && file.reads.calls > 0)
            });
            let bytes = |(path, mapped): (&PathBuf, &Mapped)| {
                let facts = facts_of_path(path, storage.mounts, storage.tree);
                facts.and_then(|facts| facts.size_bytes).unwrap_or(mapped.bytes)
            };
            unread.map(bytes).fold(0, u64::saturating_add)
        });
        self.mapped.retain(|_, m| !m.code && m.bytes >= MIN_MAPPED_BYTES);
        for (path, Mapped { times, .. }) in self.mapped {
            if let Some(file) = seen.iter_mut().find(|file| Path::new(&file.path) == path) {
                (file.mapped, file.mappings) = (true, times);
            } else if seen.len() < MAX_LISTED {
                let text = path.to_string_lossy().into_owned();
                let mut file = FileUse { path: text, mapped: true, mappings: times, ..FileUse::default() };
                let known = self.known.remove(&path);
                storage.complete(&mut file, &path, known);
                if file.kind == "regular" || file.kind == "block-device" {
                    seen.push(file);
                }
            }
        }
        let mut rest: Vec<(PathBuf, Known)> = self.known.into_iter().filter(|(_, k)| k.data).collect();
        rest.sort_by(|a, b| a.0.cmp(&b.0));
        let room = MAX_LISTED.saturating_sub(seen.len());
        for (path, known) in rest.into_iter().take(room) {
            let mut file = FileUse { path: path.to_string_lossy().into_owned(), ..FileUse::default() };
            storage.complete(&mut file, &path, Some(known));
            seen.push(file);
        }
        seen.iter_mut().for_each(|file| mounted(file, seen_mounts));
        let mut devices = storage.devices;
        devices.sort();
        devices.dedup();
        (seen, code_bytes, devices)
    }
}

/// The inode in what `/proc` calls a pipe or a socket: `pipe:[1]`.
fn number_in(path: &Path, before: &str) -> Option<u64> {
    path.to_str()?.strip_prefix(before)?.strip_suffix(']')?.parse().ok()
}

/// What files are on, and what was learnt of it.
struct Storage<'a> {
    mounts: &'a [Mount],
    tree: &'a BlockTree,
    /// Devices under the files.
    devices: Vec<String>,
    ranges_left: u32,
    handles_left: usize,
    /// See [`Files::began_ns`].
    began_ns: i64,
}

impl Storage<'_> {
    /// How many of the files of a path no longer exist, and bytes written to them.
    fn gone(&mut self, path: &Path, versions: &[(Inode, u64)]) -> (u64, u64) {
        let asked = &versions[..versions.len().min(self.handles_left)];
        self.handles_left -= asked.len();
        let inodes: Vec<Inode> = asked.iter().map(|(inode, _)| *inode).collect();
        // A server is not asked.
        let gone = path.parent().and_then(|folder| {
            let facts = facts_of_path(folder, self.mounts, self.tree).filter(|f| f.kind == "directory")?;
            file_handles::gone(folder, &facts, &inodes)
        });
        let gone = asked.iter().zip(gone.unwrap_or_default()).filter(|(_, gone)| *gone);
        gone.fold((0, 0), |(files, bytes), ((_, more), _)| (files + 1, bytes + more))
    }

    /// Fills in what a file is, from when it was first seen or else from its path now.
    fn complete(&mut self, file: &mut FileUse, path: &Path, known: Option<Known>) {
        let (mounts, tree) = (self.mounts, self.tree);
        let now = if path.is_absolute() { facts_of_path(path, mounts, tree) } else { None };
        let (then, cached_before) = match known {
            Some(known) => {
                (file.appearances, file.inherited) = (known.appearances, known.inherited);
                (known.facts, known.cached_before)
            }
            None => (None, None),
        };
        // Another file may have that name by now.
        let same = match (&then, &now) {
            (Some(then), Some(now)) => then.identity == now.identity,
            (None, Some(_)) => true,
            _ => false,
        };
        let now = now.filter(|_| same);
        file.cached_before = cached_before;
        if let Some(now) = &now
            && let Some(seen) = page_cache::look(path, now)
        {
            file.cached_after = seen.share();
            file.recently_evicted_pages = Some(seen.recently_evicted);
        }
        let size = now.as_ref().and_then(|f| f.size_bytes);
        if let Some(now) = &now
            && now.allocated_bytes.is_some_and(|bytes| file.reads.distinct_bytes > bytes)
            // What is a hole now may have been data when it was read.
            && now.changed_ns < self.began_ns
        {
            file.hole_bytes = holes::bytes(path, now, &mut self.ranges_left).unwrap_or(0);
        }
        let looked = then.as_ref().and_then(|then| then.size_bytes);
        file.most_bytes = file.most_bytes.map(|most| most.max(size.unwrap_or(0)).max(looked.unwrap_or(0)));
        // A file that lost its name before anybody looked was on the file system of its directory.
        let beside = || {
            let folder = path.parent().filter(|_| file.kind == "regular" && path.is_absolute())?;
            let folder = facts_of_path(folder, mounts, tree).filter(|folder| folder.kind == "directory")?;
            Some(FileFacts { kind: "regular", size_bytes: None, allocated_bytes: None, ..folder })
        };
        let Some(facts) = then.or(now).or_else(beside) else { return };
        if file.kind.is_empty() || file.kind == "unknown" {
            file.kind = facts.kind.to_owned();
        }
        file.device_number = Some(facts.identity.0);
        file.size_bytes = size.or(facts.size_bytes);
        file.file_system = facts.file_system;
        // The name under which the device's own counters are told, where there is one such device.
        file.device = match facts.devices.leaves.as_slice() {
            [one] => Some(one.clone()),
            _ => facts.devices.display,
        };
        file.volume = facts.devices.stack;
        self.devices.extend(facts.devices.leaves.into_iter().chain(facts.devices.backing));
    }
}

/// Notes where a file's file system is mounted, by its path: no server is asked. Of a served one that is all that is known.
fn mounted(file: &mut FileUse, mounts: &[Mount]) {
    let path = Path::new(&file.path);
    let Some(mount) = above(mounts, path).filter(|_| path.is_absolute()) else { return };
    file.mount_point = Some(mount.point.display().to_string());
    if file.file_system.is_none() && served::by_type(&mount.file_system).is_some() {
        file.file_system = Some(mount.file_system.clone());
    }
}

/// Limit on open files of a process per turn, others at each turn: a server may have thousands.
fn some_open(pid: u32, turn: usize, most: usize, reader: &mut Reader) -> Vec<OpenFile> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    if numbers.len() > most && most > 0 {
        let from = turn.wrapping_mul(most) % numbers.len();
        numbers.rotate_left(from);
    }
    numbers.into_iter().take(most).filter_map(|fd| open_files::open_file(reader, pid, fd)).collect()
}

/// What has no path: `pipe:[1]`, `socket:[1]`, `anon_inode:[eventpoll]`.
fn nameless(path: &Path) -> Option<&'static str> {
    let text = path.to_str()?;
    if text.starts_with("pipe:") {
        Some("pipe")
    } else if text.starts_with("socket:") {
        Some("socket")
    } else if !text.starts_with('/') {
        Some("anonymous")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn look(files: &mut Files, turn: u64) {
        files.round(turn * 2 * LATE_NS, &[std::process::id()], &mut Reader::new());
    }

    #[test]
    fn a_file_counts_each_time_that_it_is_open_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (again, kept) = (dir.path().join("again"), dir.path().join("kept"));
        std::fs::write(&again, "a").unwrap();
        let _kept = File::create(&kept).unwrap();
        let mut files = Files::new();
        for turn in 0..6 {
            let opened = (turn % 2 == 0).then(|| File::open(&again).unwrap());
            look(&mut files, turn + 1);
            drop(opened);
        }
        let (seen, ..) = files.finish(Vec::new(), &HashMap::new(), &[], &mut Reader::new());
        let of = |path: &Path| seen.iter().find(|file| Path::new(&file.path) == path).unwrap();
        assert_eq!((of(&again).appearances, of(&kept).appearances), (3, 1));
        assert!(!of(&again).inherited && of(&again).device_number == of(&kept).device_number);
        assert!(of(&again).device_number.is_some());
    }

    #[test]
    fn holes_are_asked_of_files_that_were_read_beyond_what_is_allocated() {
        const MIB: u64 = 1 << 20;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        std::fs::write(&path, vec![7; MIB as usize]).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(16 * MIB).unwrap();
        let holes_if_read = |bytes| {
            let mut file = FileUse { path: path.display().to_string(), ..FileUse::default() };
            file.reads.distinct_bytes = bytes;
            let (seen, ..) = Files::new().finish(vec![file], &HashMap::new(), &[], &mut Reader::new());
            seen[0].hole_bytes
        };
        // The clock of file systems goes in ticks.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let whole = holes_if_read(16 * MIB);
        if whole == 0 {
            eprintln!("skipped: this file system does not tell holes");
            return;
        }
        assert_eq!((whole, holes_if_read(MIB)), (15 * MIB, 0));
        // Changed meanwhile: what is a hole may have been data.
        let files = Files::new();
        File::options().write(true).open(&path).unwrap().set_len(17 * MIB).unwrap();
        let mut file = FileUse { path: path.display().to_string(), ..FileUse::default() };
        file.reads.distinct_bytes = 17 * MIB;
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let (seen, ..) = files.finish(vec![file], &HashMap::new(), &[], &mut Reader::new());
        assert_eq!(seen[0].hole_bytes, 0);
    }

    #[test]
    fn a_file_that_lost_its_name_is_listed_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gone");
        let _open = File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut files = Files::new();
        look(&mut files, 1);
        let counted = FileUse { path: path.display().to_string(), opens: 1, ..FileUse::default() };
        let (seen, ..) = files.finish(vec![counted], &HashMap::new(), &[], &mut Reader::new());
        let names: Vec<&FileUse> = seen.iter().filter(|file| file.path.contains("gone")).collect();
        assert_eq!((names.len(), names[0].opens), (1, 1), "{names:?}");
        assert!(names[0].device_number.is_some());
    }

    #[test]
    fn a_file_that_was_never_met_is_on_the_file_system_of_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let counted = |name: &str, kind: &str| FileUse {
            path: dir.path().join(name).display().to_string(),
            kind: kind.to_owned(),
            ..FileUse::default()
        };
        std::fs::write(dir.path().join("known"), "a").unwrap();
        let of = [
            counted("known", "regular"),
            counted("gone", "regular"),
            counted("gone-socket", "socket"),
            counted("no-folder/gone", "regular"),
        ];
        let (seen, ..) = Files::new().finish(of.to_vec(), &HashMap::new(), &[], &mut Reader::new());
        let [known, gone, socket, folder] = &seen[..4] else { panic!("{seen:?}") };
        assert!(known.device_number.is_some() && gone.device_number == known.device_number);
        assert_eq!((gone.size_bytes, &gone.device), (None, &known.device));
        assert_eq!((socket.device_number, folder.device_number), (None, None), "nobody knows");
    }

    #[test]
    fn a_file_of_a_served_file_system_is_known_by_its_path_alone() {
        let table = iowhy_linux::mounts::parse(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:40 / /mnt rw - nfs4 nas:/x rw\n",
        );
        let of = |path: &str| {
            let mut file = FileUse { path: path.to_owned(), ..FileUse::default() };
            mounted(&mut file, &table);
            (file.mount_point, file.file_system)
        };
        assert_eq!(of("/mnt/a"), (Some("/mnt".to_owned()), Some("nfs4".to_owned())));
        assert_eq!(of("/gone"), (Some("/".to_owned()), None));
        assert_eq!(of("pipe:[7]"), (None, None));
    }

    #[test]
    fn what_we_were_given_is_inherited() {
        let dir = tempfile::tempdir().unwrap();
        let (given, own) = (dir.path().join("given"), dir.path().join("own"));
        // Whoever passes a file on does not close it at exec.
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::RDWR;
        let _given = rustix::fs::open(&given, flags, rustix::fs::Mode::RUSR).unwrap();
        let _own = File::create(&own).unwrap();
        let mut files = Files::new();
        look(&mut files, 1);
        let (seen, ..) = files.finish(Vec::new(), &HashMap::new(), &[], &mut Reader::new());
        let of = |path: &Path| seen.iter().find(|file| Path::new(&file.path) == path).unwrap();
        assert!(of(&given).inherited && !of(&own).inherited);
    }
}
