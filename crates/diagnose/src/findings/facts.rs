//! What several rules need to know, worked out once from the profile and the account: calls and their sizes,
//! bytes asked for against bytes from the device, the device's load.
//!
//! What was not seen is `None`. What may not enter: causes, thresholds, words.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::layer::Layer;
use iowhy_core::profile::{Access, CallCount, FileUse, Profile, SampledShare, Step, StepKind, Tier};

use super::{Facts, say};
use crate::account::{Entry, Sum};
use crate::classify::{Operation, Wait};

/// Bytes of a page.
pub(super) const PAGE_BYTES: f64 = 4096.0;
/// System calls that open a file by its name.
pub(super) const OPEN_CALLS: [&str; 4] = ["open", "openat", "openat2", "creat"];
/// Those that look at a name or what is behind it, or list names.
const LOOK_CALLS: [&str; 11] = both(&EXAMINE_CALLS, &["getdents", "getdents64"]);
/// Those that look at a name or what is behind it.
pub(super) const EXAMINE_CALLS: [&str; 9] =
    ["stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat"];
/// Those that move a name.
pub(super) const RENAME_CALLS: [&str; 3] = ["rename", "renameat", "renameat2"];
/// Those that remove the name of a file.
pub(super) const REMOVE_CALLS: [&str; 2] = ["unlink", "unlinkat"];
/// Those that make, move or remove a name.
pub(super) const NAME_CHANGES: [&str; 12] = both(
    &RENAME_CALLS,
    &["unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "link", "linkat", "symlink", "symlinkat"],
);
/// Those that change what is known of a file beside its contents.
pub(super) const ATTRIBUTE_CHANGES: [&str; 15] = [
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
];
/// Those about names other than opening.
pub(super) const NAME_CALLS: [&str; 23] = both(&LOOK_CALLS, &NAME_CHANGES);
/// Those that open or name.
pub(super) const OPEN_OR_NAME: [&str; 27] = both(&OPEN_CALLS, &NAME_CALLS);

/// These and those; a wrong length does not compile.
const fn both<const N: usize>(these: &[&'static str], those: &[&'static str]) -> [&'static str; N] {
    assert!(N == these.len() + those.len(), "the length of the list");
    let mut all = [""; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < these.len() { these[at] } else { those[at - these.len()] };
        at += 1;
    }
    all
}

/// The system call that changes the place in a file.
pub(super) const SEEK_CALL: &str = "lseek";
/// System calls on descriptors that move no bytes: those of [`Operation::Descriptor`].
pub const DESCRIPTOR_CALLS: [&str; 6] = [SEEK_CALL, "fcntl", "flock", "fadvise64", "readahead", "ioctl"];
/// From this part of those calls on, their time is that of seeks.
const NEARLY_ALL: f64 = 0.95;

/// More than this multiple of what is in the files must come from devices: tables of files are read in larger pieces than pages.
const AGAIN: f64 = 1.2;

/// Requests of the program that were seen must have read this part of what the kernel counts for it: a worker of the kernel may send them.
const NEARLY_ALL_SEEN: f64 = 0.95;

/// System calls that make data durable.
pub(super) const SYNC_CALLS: [&str; 5] = ["fsync", "fdatasync", "msync", "sync", "syncfs"];

/// Reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The read family.
    Read,
    /// The write family.
    Write,
}

impl Side {
    pub(super) const BOTH: [Side; 2] = [Side::Read, Side::Write];

    pub(super) fn operation(self) -> Operation {
        match self {
            Side::Read => Operation::Read,
            Side::Write => Operation::Write,
        }
    }

    /// System calls of the family.
    pub const fn call_names(self) -> &'static [&'static str] {
        match self {
            Side::Read => &["read", "pread64", "readv", "preadv", "preadv2"],
            Side::Write => &["write", "pwrite64", "writev", "pwritev", "pwritev2"],
        }
    }

    /// `reads` or `writes`.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Side::Read => "reads",
            Side::Write => "writes",
        }
    }
}

/// What was counted of all regular files and block devices together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) distinct_bytes: u64,
    pub(super) sequential: SampledShare,
    pub(super) unaligned: SampledShare,
    pub(super) repeated: SampledShare,
    pub(super) after_seek: SampledShare,
    pub(super) direct: SampledShare,
    pub(super) synchronous: SampledShare,
    /// Calls whose size is known that was asked for, and those of them that asked for as much as buffers of I/O libraries hold.
    pub(super) sized: u64,
    pub(super) buffers: u64,
}

/// Classes of sizes of those buffers: 4 KiB (C), 8 KiB (Java, Rust, Python), up to 128 KiB (newer Python).
const BUFFER_CLASSES: std::ops::RangeInclusive<usize> = 12..=17;

/// Calls that make data durable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Syncs {
    pub(super) number: f64,
    /// Else it is inferred.
    pub(super) counted: bool,
}

/// Looks fewer than this say nothing about a share.
pub(super) const ENOUGH_LOOKS: u64 = 20;

/// A sampled share with its interval; `None` when too few were looked at.
pub(super) fn share_of(sampled: SampledShare) -> Option<Estimate> {
    let (low, high) = sampled.interval().filter(|_| sampled.n >= ENOUGH_LOOKS)?;
    Some(Estimate { value: sampled.value()?, low, high, unit: Unit::Ratio, n: sampled.n })
}

/// How far a share that `k` of `n` samples show may lie below and above what it seems, relative to it; 1 and 1 when no
/// sample shows it.
pub(super) fn sampling_error(k: u64, n: u64) -> (f64, f64) {
    let share = SampledShare { hits: k.min(n), n };
    match share.value().zip(share.interval()).filter(|(p, _)| *p > 0.0) {
        Some((p, (low, high))) => ((1.0 - low / p).clamp(0.0, 1.0), (high / p - 1.0).clamp(0.0, 1.0)),
        None => (1.0, 1.0),
    }
}

/// Whether a file's bytes are on the path between program and disk. Descriptors whose file could not be looked up
/// (`unknown`) were opened and closed within a moment: that is what is done with regular files, not with pipes.
fn is_storage(file: &FileUse) -> bool {
    is_storage_kind(&file.kind)
}

/// The same by the kind of the file.
pub(super) fn is_storage_kind(kind: &str) -> bool {
    matches!(kind, "regular" | "block-device" | "unknown")
}

/// Whether every call of the family was counted with its file.
pub fn counted_with_their_file(profile: &Profile, side: Side) -> bool {
    let Some(sample) = profile.calls.as_ref().filter(|calls| calls.complete) else { return false };
    let family = sample.calls.iter().filter(|c| side.call_names().contains(&c.name.as_str()));
    let by_file: u64 = profile.files.iter().map(|file| access(file, side).calls).sum();
    by_file >= family.map(CallCount::succeeded).sum()
}

impl Facts<'_> {
    /// Wall time without the observer: the base of every gain.
    pub fn program_wall_ns(&self) -> f64 {
        self.account.wall_ns - self.account.layer(Layer::Observer).wall_ns
    }

    /// Wall time of the account, of each entry the part that `part` gives, 0 to 1.
    pub(super) fn wall_ns_of(&self, part: impl Fn(&Entry) -> f64) -> f64 {
        self.account.entries.iter().map(|e| part(e) * e.wall_ns).sum()
    }

    /// A part of the wall time as a share of it, 0 to 1.
    pub(super) fn wall_share(&self, wall_ns: f64) -> f64 {
        let wall = self.account.wall_ns;
        if wall > 0.0 { (wall_ns / wall).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Wall time of waits for requests that others' requests delayed at the device, or were there with.
    pub(super) fn delay_at_device_ns(&self) -> f64 {
        let of_others = 1.0 - self.part_of_watch();
        let share = |e: &Entry| of_others * (e.delay.behind_ns + e.delay.beside_ns) / e.time_ns.max(1.0);
        self.removable_by_others(share).booked_ns
    }

    /// The part of that delay that iowhy's own reads caused, 0 to 1: it goes with the watch, and is nobody's to repair.
    pub(super) fn part_of_watch(&self) -> f64 {
        let others = self.profile.block.iter().flat_map(|block| &block.others);
        let (mut own, mut all) = (0.0, 0.0);
        for other in others {
            let delay = other.behind_ns.unwrap_or(0) as f64 + other.beside_ns.unwrap_or(0) as f64;
            all += delay;
            own += if other.watch { delay } else { 0.0 };
        }
        if all > 0.0 { own / all } else { 0.0 }
    }

    /// A part of the wall time as a share of what is left of it without queueing for a CPU: what a program does is the
    /// same on a crowded machine, only later.
    pub(super) fn share_without_queueing(&self, wall_ns: f64) -> f64 {
        let rest = self.account.wall_ns - self.queueing_ns();
        if rest > 0.0 { (wall_ns / rest).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// How the time is called that such a share is of.
    pub(super) fn time_without_queueing(&self) -> &'static str {
        if self.wall_share(self.queueing_ns()) >= super::WORTH_SAVING {
            "the time excluding CPU queueing"
        } else {
            "wall time"
        }
    }

    /// CPU time of an operation.
    pub(super) fn busy(&self, operation: Operation) -> Sum {
        self.account.sum(|e| e.busy && e.class.operation == operation)
    }

    /// A wait inside an operation.
    pub(super) fn waiting(&self, operation: Operation, wait: Wait) -> Sum {
        self.account.sum(|e| e.class.operation == operation && e.class.wait == Some(wait))
    }

    /// Wall time of entering and leaving the kernel where it was not seen for what.
    pub fn entering_wall_ns(&self) -> f64 {
        self.account.sum(entering).wall_ns
    }

    /// Calls of the read or write family that succeeded, all kinds of files together: the kernel's own count in
    /// `/proc/PID/io`, less the failing ones where those were counted.
    pub(super) fn calls(&self, side: Side) -> Option<f64> {
        let io = &self.profile.io;
        let counted = match side {
            Side::Read => io.read_calls,
            Side::Write => io.write_calls,
        };
        let succeeded = |n: u64| (n as f64 * self.counted_that_succeed(side)).round();
        counted.map(succeeded).or_else(|| self.counted_calls(side.call_names()))
    }

    /// See [`counted_with_their_file`].
    pub(super) fn calls_are_counted_by_file(&self, side: Side) -> bool {
        counted_with_their_file(self.profile, side)
    }

    /// The part of all system calls that are successful calls of the read or write family.
    pub(super) fn part_of_calls(&self, side: Side) -> Option<f64> {
        let sample = self.profile.calls.as_ref()?;
        let all: u64 = sample.calls.iter().map(|c| c.calls).sum();
        let of = sample.calls.iter().filter(|c| side.call_names().contains(&c.name.as_str()));
        let part: u64 = of.map(CallCount::succeeded).sum();
        (all >= ENOUGH_LOOKS).then(|| part as f64 / all as f64)
    }

    /// Bytes that they moved.
    pub(super) fn bytes(&self, side: Side) -> Option<f64> {
        let io = &self.profile.io;
        match side {
            Side::Read => io.read_bytes,
            Side::Write => io.written_bytes,
        }
        .map(|b| b as f64)
    }

    /// Mean bytes of one call.
    pub(super) fn mean_bytes(&self, side: Side) -> Option<f64> {
        let calls = self.calls(side)?;
        (calls >= 1.0).then_some(self.bytes(side)? / calls)
    }

    /// How often system calls with these names did in the whole run what they are for: those that fail open, examine and
    /// write nothing. `None` where not every call was counted.
    pub fn counted_calls(&self, names: &[&str]) -> Option<f64> {
        let counts = self.profile.calls.as_ref().filter(|counts| counts.complete)?;
        let named = counts.calls.iter().filter(|c| names.contains(&c.name.as_str()));
        Some(named.map(CallCount::succeeded).sum::<u64>() as f64)
    }

    /// Mean time of a call that reads, writes, syncs or seeks, of all threads and with its queueing for a CPU; `None` where not every call was
    /// counted, and for other operations. Seeks have one where nearly all calls on descriptors are such.
    pub fn mean_call_ns(&self, operation: Operation) -> Option<f64> {
        let names: &[&str] = match operation {
            Operation::Read => Side::Read.call_names(),
            Operation::Write => Side::Write.call_names(),
            Operation::Sync => &SYNC_CALLS,
            Operation::Descriptor => {
                let [seeks, all] = [&[SEEK_CALL][..], &DESCRIPTOR_CALLS]
                    .map(|names| self.counted_calls(names).unwrap_or(0.0));
                if seeks < NEARLY_ALL * all {
                    return None;
                }
                &DESCRIPTOR_CALLS
            }
            _ => return None,
        };
        let calls = self.counted_calls(names).filter(|calls| *calls > 0.0)?;
        Some(self.account.operation(operation).time_ns / calls)
    }

    /// Calls that make data durable: counted; else inferred from the sleeps in them, which is no count and is never printed
    /// as one (each such call sleeps about once for each thing it waits for, so that the most frequent thing tells; where not
    /// all sleeps were seen, no more than the devices were flushed). `None` where threads were only looked at: how often a
    /// look finds one asleep says nothing about how often it fell asleep.
    pub(super) fn syncs(&self) -> Option<Syncs> {
        if let Some(number) = self.counted_calls(&SYNC_CALLS) {
            return (number > 0.0).then_some(Syncs { number, counted: true });
        }
        if self.profile.sight.tier < Tier::Stacks {
            return None;
        }
        let kinds = [Wait::DataWriteback, Wait::CacheFlush, Wait::Journal, Wait::DeviceWrite];
        let most = kinds.iter().map(|w| self.waiting(Operation::Sync, *w).events).max().unwrap_or(0) as f64;
        let flushes: u64 = self.profile.devices.iter().map(|d| d.flushes).sum();
        let number = if !self.sleeps_are_counted() && flushes > 0 { most.min(flushes as f64) } else { most };
        (number > 0.0).then_some(Syncs { number, counted: false })
    }

    /// Reads or writes of regular files and block devices.
    pub(super) fn tally(&self, side: Side) -> Tally {
        self.tally_of(side, |_| true)
    }

    /// As [`Facts::tally`], of the files that are picked by what was done to them.
    pub(super) fn tally_of(&self, side: Side, picked: impl Fn(&Access) -> bool) -> Tally {
        let mut tally = Tally::default();
        for access in self.storage_files().map(|file| access(file, side)).filter(|access| picked(access)) {
            tally.calls += access.calls;
            tally.bytes += access.bytes;
            tally.distinct_bytes += access.distinct_bytes;
            tally.sized += access.sizes.iter().sum::<u64>();
            tally.buffers += access.sizes.get(BUFFER_CLASSES).map_or(0, |sizes| sizes.iter().sum());
            for (sum, part) in [
                (&mut tally.sequential, access.sequential),
                (&mut tally.unaligned, access.unaligned),
                (&mut tally.repeated, access.repeated),
                (&mut tally.after_seek, access.after_seek),
                (&mut tally.direct, access.direct),
                (&mut tally.synchronous, access.synchronous),
            ] {
                sum.hits += part.hits;
                sum.n += part.n;
            }
        }
        tally
    }

    /// Files whose bytes are on the path between program and disk.
    pub(super) fn storage_files(&self) -> impl Iterator<Item = &FileUse> {
        self.profile.files.iter().filter(|f| is_storage(f))
    }

    /// The part of the calls, and of the bytes, that went to such files; `None` where too few calls
    /// were counted.
    pub(super) fn storage_part(&self, side: Side) -> Option<(f64, f64)> {
        let all = self.profile.files.iter().map(|f| access(f, side));
        let (calls, bytes) = all.fold((0, 0), |(c, b), a| (c + a.calls, b + a.bytes));
        let storage = self.tally(side);
        let part = |part: u64, whole: u64| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
        (calls >= ENOUGH_LOOKS).then(|| (part(storage.calls, calls), part(storage.bytes, bytes)))
    }

    /// The part of the calls whose size the program chooses: those to such files, and to character devices other than
    /// terminals (/dev/null, /dev/zero); `None` where too few calls were counted.
    pub(super) fn sizable_part(&self, side: Side) -> Option<f64> {
        let terminal =
            |path: &str| ["/dev/tty", "/dev/pts/", "/dev/console"].iter().any(|t| path.starts_with(t));
        let chosen = |f: &FileUse| is_storage(f) || (f.kind == "character-device" && !terminal(&f.path));
        let calls = |pick: &dyn Fn(&FileUse) -> bool| -> u64 {
            self.profile.files.iter().filter(|f| pick(f)).map(|f| access(f, side).calls).sum()
        };
        let all = calls(&|_| true);
        (all >= ENOUGH_LOOKS).then(|| calls(&chosen) as f64 / all as f64)
    }

    /// Bytes that were asked of regular files and block devices: an upper bound where nothing tells pipes and sockets
    /// apart.
    pub(super) fn storage_bytes(&self, side: Side) -> Option<f64> {
        Some(self.bytes(side)? * self.storage_part(side).map_or(1.0, |(_, bytes)| bytes))
    }

    /// Calls on files of known size beyond one for each of their pages, as a part of all calls on files, and the pages. Whoever keeps
    /// a page in memory needs no more than one call for it.
    pub(super) fn calls_beyond_pages(&self, side: Side) -> Option<(f64, f64)> {
        let (mut all, mut beyond, mut pages) = (0.0, 0.0, 0.0);
        for file in self.storage_files() {
            let calls = access(file, side).calls as f64;
            all += calls;
            if let Some(size) = file.size_bytes.filter(|_| calls > 0.0) {
                let of_file = (size as f64 / PAGE_BYTES).ceil().max(1.0);
                beyond += (calls - of_file).max(0.0);
                pages += of_file;
            }
        }
        (all >= ENOUGH_LOOKS as f64).then(|| (beyond / all, pages))
    }

    /// Bytes that came from devices for files: without those from swap, and without inodes and directories. `None` where there are none, where they
    /// were not counted, or where requests of the program were not seen: then nobody knows what they were for.
    pub(super) fn fetched_bytes(&self) -> Option<f64> {
        let (all, metadata) = self.device_bytes()?;
        (all > metadata).then_some(all - metadata)
    }

    /// Bytes that came from devices, without those from swap, and those of them that were of inodes and directories.
    pub(super) fn device_bytes(&self) -> Option<(f64, f64)> {
        let block = self.profile.block.as_ref()?;
        let counted = self.profile.io.device_read_bytes? as f64;
        let swapped = self.profile.pressure.memory.as_ref().and_then(|m| m.swapped_in_pages).unwrap_or(0);
        let all = counted - swapped as f64 * PAGE_BYTES;
        (all > 0.0 && block.own_read_bytes as f64 >= NEARLY_ALL_SEEN * counted)
            .then_some((all, (block.own_metadata_bytes as f64).min(all)))
    }

    /// No more distinct bytes of files can have come from devices: sum of what each file held at most, in whole pages, code too. Files without a
    /// read count as well, for a ring, a prefetch or a part of a page that is written reads too. `None` where calls were not counted, or
    /// where it is not known of one of the files.
    pub(super) fn file_bytes_at_most(&self) -> Option<f64> {
        if !self.calls_are_counted_by_file(Side::Read) {
            return None;
        }
        let mut sum = self.profile.code_bytes? as f64;
        for file in self.storage_files() {
            // No call was seen on those that were only open, or mapped, from the start on.
            let used = [file.reads.calls, file.writes.calls, file.opens].iter().any(|calls| *calls > 0);
            let most = match (used, file.mapped) {
                (true, _) => file.most_bytes,
                (false, true) => file.size_bytes,
                (false, false) => file.size_bytes.or(Some(0)),
            };
            // What stands for many has a last page for each of them.
            let pages = if file.kind == "unknown" { file.opens.max(1) } else { 1 } as f64;
            sum += ((most? as f64 / PAGE_BYTES).ceil() + pages - 1.0) * PAGE_BYTES;
        }
        (sum > 0.0).then_some(sum)
    }

    /// Whether more came from devices than all these files hold.
    pub(super) fn came_again(&self) -> bool {
        self.fetched_bytes()
            .zip(self.file_bytes_at_most())
            .is_some_and(|(fetched, there)| fetched >= AGAIN * there)
    }

    /// The part of the bytes read that must have been read before: of each file, what was read of it beyond its size.
    pub(super) fn reads_beyond_sizes(&self) -> f64 {
        let (mut beyond, mut all) = (0.0, 0.0);
        for file in self.storage_files() {
            let read = file.reads.bytes as f64;
            all += read;
            beyond += file.size_bytes.map_or(0.0, |size| (read - size as f64).max(0.0));
        }
        if all > 0.0 { beyond / all } else { 0.0 }
    }

    /// Sum of the sizes of mapped files.
    pub(super) fn mapped_bytes(&self) -> Option<f64> {
        let sizes: Vec<u64> =
            self.storage_files().filter(|f| f.mapped).filter_map(|f| f.size_bytes).collect();
        (!sizes.is_empty()).then(|| sizes.iter().map(|s| *s as f64).sum())
    }

    /// Pages of the program's files that were evicted not long ago.
    pub(super) fn recently_evicted_pages(&self) -> u64 {
        self.storage_files().filter_map(|f| f.recently_evicted_pages).sum()
    }

    /// Whether the list of files may be taken as complete. Short-lived files are missed where no calls were traced, and
    /// of very many only some are kept; then opening takes time, or there are more opens than files.
    pub(super) fn files_are_complete(&self) -> bool {
        const OF_A_START: f64 = 30.0;
        match self.counted_calls(&["open", "openat", "openat2"]) {
            Some(opens) => opens <= 2.0 * self.profile.files.len() as f64 + OF_A_START,
            None => self.account.wall_share(self.account.operation(Operation::Open)) < 0.02,
        }
    }

    /// Whether reads of files follow each other: by the calls, else by the requests at the device.
    pub(super) fn sequential_reads(&self) -> Option<Estimate> {
        share_of(self.tally(Side::Read).sequential).or_else(|| self.adjacent_reads())
    }

    /// Whether reads of a file go from its end to its front, by the stretches in which the order of calls was seen.
    pub(super) fn backward_reads(&self) -> Option<Estimate> {
        let steps = self.profile.pattern.stretches.iter().flat_map(|s| &s.steps);
        // Two reads at random are a run of two, and every other one goes back.
        let back = |s: &Step| s.count > 2 && s.stride < 0 && s.stride.unsigned_abs() <= 2 * s.bytes;
        let (mut hits, mut n) = (0, 0);
        for step in steps.filter(|s| s.kind == StepKind::Read && s.place.is_some()) {
            n += u64::from(step.count);
            hits += if back(step) { u64::from(step.count) } else { 0 };
        }
        share_of(SampledShare { hits, n })
    }

    /// Part of the calls on descriptors opened with O_DIRECT; 0 where that is not known.
    pub(super) fn direct_share(&self, side: Side) -> f64 {
        share_of(self.tally(side).direct).map_or(0.0, |s| s.value)
    }

    /// Mean number of active threads (running, queued or waiting on the path) while one was in these entries: the wall
    /// clock is shared out evenly among active threads, so thread time over wall time counts them. An upper bound of how
    /// many are in these entries at once.
    pub(super) fn concurrency(&self, pick: impl Fn(&Entry) -> bool) -> f64 {
        let sum = self.account.sum(pick);
        if sum.wall_ns > 0.0 { (sum.time_ns / sum.wall_ns).max(1.0) } else { 1.0 }
    }

    /// Samples and sleeps that the account rests on.
    pub(super) fn evidence(&self) -> u64 {
        self.account.entries.iter().fold(0, |sum, e| sum.saturating_add(e.events))
    }

    /// Whether the sleeps in the account are all that there were. Otherwise they are looks that found a thread asleep, or
    /// sleeps of a part of the run: their number says nothing about how many there were, nor how long each was.
    pub(super) fn sleeps_are_counted(&self) -> bool {
        self.profile.sight.tier >= Tier::Stacks && self.profile.observer.switch_duty >= 1.0
    }

    /// The part of the wall time in which nobody was active and of which it is not known what was waited for, as a share
    /// of the wall time: the idle time, shared out by the time of the waits off the path.
    pub(super) fn idle_unexplained(&self) -> f64 {
        let off_path = |e: &Entry| e.class.wait.is_some_and(|w| !w.on_path());
        let all = self.account.sum(off_path).time_ns;
        let unknown = self.account.wait(Wait::Unknown).time_ns;
        if all > 0.0 { self.wall_share(self.account.idle_wall_ns * unknown / all) } else { 0.0 }
    }

    /// How often and how long each: `120 waits for the device, 1.2 ms each`; without the mean where only looks were
    /// taken: `waits for the device, seen in 120 looks`.
    pub(super) fn waits_in_words(&self, sum: Sum, one: &str, several: &str) -> String {
        if !self.sleeps_are_counted() {
            let looks = if sum.events == 1 { "look" } else { "looks" };
            return format!("{several}, seen in {} {looks}", say::count(sum.events as f64));
        }
        let noun = if sum.events == 1 { one } else { several };
        let each = sum.time_ns / (sum.events as f64).max(1.0);
        format!("{} {noun}, {} each", say::count(sum.events as f64), say::time(each))
    }

    /// Number of threads that were seen, pools unfolded.
    pub(super) fn thread_count(&self) -> u64 {
        self.profile.thread_count()
    }
}

/// Entering and leaving the kernel where it was not yet seen for what: each call has the same part of it.
pub(super) fn entering(e: &Entry) -> bool {
    e.busy
        && e.class.operation == Operation::Unknown
        && matches!(e.class.layer, Layer::Call | Layer::Unexplained)
}

/// Waits for the device, or for write-back, of calls that move no bytes: blocks of a file are freed, or it becomes shorter.
pub(super) fn frees_blocks(e: &Entry) -> bool {
    matches!(e.class.operation, Operation::Open | Operation::Close | Operation::Names)
        && matches!(e.class.wait, Some(Wait::DeviceWrite | Wait::DataWriteback))
}

/// What reads or writes take of CPU time, in units of a call: each page counts as one more (chosen, not measured). Bytes alone would give the many small calls of
/// other files to a few large ones.
pub(super) fn effort(access: &Access) -> f64 {
    access.calls as f64 + access.bytes as f64 / PAGE_BYTES
}

/// Reads or writes of a file.
fn access(file: &FileUse, side: Side) -> &Access {
    match side {
        Side::Read => &file.reads,
        Side::Write => &file.writes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::synthetic::Run;

    #[test]
    fn counts_are_exact_or_absent() {
        let run = |complete| {
            let run = Run::new(10.0).calls(&[("fsync", 30), ("fdatasync", 10), ("write", 400)]);
            let run = run.with(|p| p.calls.as_mut().unwrap().complete = complete);
            run.facts(|f| f.counted_calls(&["fsync", "fdatasync"]))
        };
        assert_eq!(run(true), Some(40.0));
        assert_eq!(run(false), None, "a lower bound is no count");
    }

    #[test]
    fn bytes_of_pipes_are_not_bytes_of_files() {
        let mut run = Run::new(1.0);
        run.profile.io.read_bytes = Some(1000);
        assert_eq!(run.facts(|f| f.storage_bytes(Side::Read)), Some(1000.0));
        let seen = |kind: &str, calls, bytes| FileUse {
            kind: kind.into(),
            reads: Access { calls, bytes, ..Access::default() },
            ..FileUse::default()
        };
        run.profile.files = vec![seen("pipe", 75, 300), seen("regular", 15, 60), seen("unknown", 10, 40)];
        assert_eq!(run.facts(|f| f.storage_part(Side::Read)), Some((0.25, 0.25)));
        assert_eq!(run.facts(|f| f.storage_bytes(Side::Read)), Some(250.0));
    }
}
