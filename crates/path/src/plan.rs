//! The cells of the path report: canonical requests, calibration cells, the cells that decide the limit, and methods of
//! reading. A cell with several roles is measured once.

use std::collections::BTreeMap;
use std::time::Duration;

use iowhy_core::environment::TargetKind;
use iowhy_core::pattern::Pattern;
use iowhy_core::workload::{CacheState, Direction, Method, Touch, Workload};
use iowhy_probe::access::Request;
use iowhy_probe::campaign::{Cell, Group};
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::Target;

use crate::calibration::CalibrationCell;
use crate::facts::is_scsi_generic;
use crate::limit::Question;
use crate::local::LocalCell;

/// Why a cell is in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The cost of iowhy itself: the `null` method.
    Harness,
    /// One of the requests on the screen, under this label.
    Canonical(&'static str),
    /// Calibrates the costs of layers.
    Calibration(CalibrationCell),
    /// Calibrates one canonical request, the one with this label.
    Local(&'static str, LocalCell),
    /// Decides the limit.
    Limit(LimitCell),
    /// A method of reading, compared with the others of the same state and size.
    Method,
}

/// The cells that the limit is decided from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitCell {
    /// Cached 4 KiB.
    CachedSmall,
    /// Cached 4 KiB by two threads.
    CachedSmallThreads,
    /// Cached 1 MiB.
    CachedLarge,
    /// Cold sequential reads through the cache.
    ColdSequential,
    /// The same by two threads.
    ColdSequentialThreads,
    /// Large direct sequential requests, one in flight.
    DirectSequential,
    /// The same, several in flight.
    DirectSequentialDeep,
    /// Direct 4 KiB, one in flight.
    RandomOne,
    /// Direct 4 KiB, 16 in flight.
    RandomHalf,
    /// Direct 4 KiB, 32 in flight.
    RandomDeep,
    /// Direct 4 KiB, 64 in flight.
    RandomFull,
    /// Direct 4 KiB, 32 in flight for each of two threads.
    RandomThreads,
}

impl LimitCell {
    /// The question whose limit it decides.
    pub fn question(self) -> Question {
        match self {
            LimitCell::CachedSmall | LimitCell::CachedSmallThreads | LimitCell::CachedLarge => {
                Question::Cached
            }
            LimitCell::ColdSequential
            | LimitCell::ColdSequentialThreads
            | LimitCell::DirectSequential
            | LimitCell::DirectSequentialDeep => Question::Sequential,
            LimitCell::RandomOne
            | LimitCell::RandomHalf
            | LimitCell::RandomDeep
            | LimitCell::RandomFull
            | LimitCell::RandomThreads => Question::Random,
        }
    }
}

/// What the lower calibration cells read.
#[derive(Debug)]
pub struct CalibrationTargets {
    /// `/dev/null`.
    pub null_device: Option<Target>,
    /// `/dev/zero`.
    pub zero_device: Option<Target>,
    /// A memfd.
    pub memory: Option<Target>,
    /// The block device under the target, when it may be read.
    pub raw_device: Option<Target>,
    /// Answers at once: measures iowhy itself.
    pub harness: Target,
}

/// Cells for the campaign, and the roles of each.
#[derive(Debug, Default)]
pub struct PathPlan<'a> {
    /// What the campaign measures.
    pub cells: Vec<Cell<'a>>,
    /// By the key of the cell.
    roles: BTreeMap<String, Vec<Role>>,
}

impl PathPlan<'_> {
    /// The roles of the cell with this key.
    pub fn roles(&self, key: &str) -> &[Role] {
        self.roles.get(key).map_or(&[], Vec::as_slice)
    }

    /// Indexes of the cells that decide the limits of these questions.
    pub fn deciding(&self, questions: &[Question]) -> Vec<usize> {
        let decides = |role: &Role| matches!(role, Role::Limit(cell) if questions.contains(&cell.question()));
        (0..self.cells.len()).filter(|i| self.roles(&self.cells[*i].key).iter().any(decides)).collect()
    }

    /// Indexes of the cells that the accounts of these canonical requests are made of, their own and the shared ones; none
    /// for requests that have no calibration cells of their own.
    pub fn explaining(&self, labels: &[&str]) -> Vec<usize> {
        let calibrated = |label: &str| labels.contains(&label) && self.has_own_cells(label);
        let explains = |role: &Role| match role {
            Role::Canonical(label) | Role::Local(label, _) if calibrated(label) => true,
            Role::Harness
            | Role::Calibration(CalibrationCell::Syscall | CalibrationCell::EndOfFile)
            | Role::Local(_, LocalCell::LookUp) => labels.iter().any(|label| self.has_own_cells(label)),
            _ => false,
        };
        (0..self.cells.len()).filter(|i| self.roles(&self.cells[*i].key).iter().any(explains)).collect()
    }

    fn has_own_cells(&self, label: &str) -> bool {
        self.roles.values().flatten().any(|role| matches!(role, Role::Local(of, _) if *of == label))
    }

    /// Keys and labels of the canonical requests, in the order of the plan.
    pub fn canonical(&self) -> Vec<(String, &'static str)> {
        let labels = |cell: &Cell<'_>| {
            let roles = self.roles(&cell.key).iter();
            roles.filter_map(Role::label).map(|label| (cell.key.clone(), label)).collect::<Vec<_>>()
        };
        self.cells.iter().flat_map(labels).collect()
    }
}

impl Role {
    /// The label of a canonical request.
    pub fn label(&self) -> Option<&'static str> {
        match self {
            Role::Canonical(label) => Some(label),
            _ => None,
        }
    }
}

/// Queue depths beside 1: does the device still get faster at the deepest?
const DEPTHS: [(usize, LimitCell); 3] =
    [(16, LimitCell::RandomHalf), (DEEP, LimitCell::RandomDeep), (64, LimitCell::RandomFull)];
const DEEP: usize = 32;
/// Block sizes that are measured but not fitted; the model predicts them and the error is printed.
pub const HELD_OUT_BLOCK_BYTES: [u64; 2] = [8 << 10, 128 << 10];

/// Labels of canonical requests.
const CACHED_SMALL: &str = "cached 4 KiB, random";
const CACHED_LARGE: &str = "cached 1 MiB";
const MAPPED: &str = "mapped, a page a time";
const COLD: &str = "cold sequential, 128 KiB";
const DIRECT: &str = "direct 4 KiB, random";
const WRITE_DURABLE: &str = "write 4 KiB + fdatasync";
/// Label of sequential writes through the cache.
pub const WRITE_CACHED: &str = "write 1 MiB, sync at end";
/// Label of sequential writes past the cache.
pub const WRITE_DIRECT: &str = "direct write 1 MiB";

const SMALL: u64 = 4 << 10;
const LARGE: u64 = 1 << 20;
const STREAM: u64 = 128 << 10;
/// Bytes written through the cache before the fdatasync of a slice.
const STRETCH_BYTES: u64 = 32 * LARGE;
/// Small writes without fdatasync in one slice.
const MAX_UNSYNCED: u64 = 2000;
const METHOD_BYTES: u64 = 64 << 10;
/// Methods of reading are compared with the data used: without that a mapping would seem to cost nothing.
const METHOD_TOUCH: Touch = Touch::Line;

/// All cached cells read this much: more than the second-level cache of current CPUs, less than the third of most. The
/// same for all, because the cost of a copy depends on the CPU's caches.
const WARM_BYTES: u64 = 16 * LARGE;

/// Cold cells read this much at most: it is brought into the page cache and dropped from it around each of them.
const COLD_BYTES: u64 = 128 * LARGE;

/// Parts of the target: one stays warm for the whole run, so that warm cells need not be fetched from the device again
/// after every cold one; the rest is for cold and direct cells.
#[derive(Clone, Copy, Debug)]
struct Areas {
    warm_offset: u64,
    warm_bytes: u64,
    cold_offset: u64,
    cold_bytes: u64,
}

impl Areas {
    fn of(size_bytes: u64) -> Areas {
        // Below this a quarter would be too little for the larger requests: both kinds share the whole.
        if size_bytes < 16 * LARGE {
            let bytes = if size_bytes >= SMALL { size_bytes / SMALL * SMALL } else { size_bytes };
            return Areas { warm_offset: 0, warm_bytes: bytes, cold_offset: 0, cold_bytes: bytes };
        }
        let warm = ((size_bytes / 4) / LARGE * LARGE).min(WARM_BYTES);
        Areas {
            warm_offset: 0,
            warm_bytes: warm,
            cold_offset: warm,
            cold_bytes: (size_bytes - warm) / LARGE * LARGE,
        }
    }
}

/// Bytes that the cached cells of [`calibration`] read, for cells that read `size_bytes`.
pub fn calibration_bytes(size_bytes: u64) -> u64 {
    if size_bytes < SMALL { size_bytes } else { (size_bytes / SMALL * SMALL).min(WARM_BYTES) }
}

/// Builds the plan for a target. What the target cannot do (no device under it, no O_DIRECT, not to be written) is
/// left out; the reasons are in the target's facts.
pub fn plan<'a>(
    target: &'a Target,
    below: &'a CalibrationTargets,
    size_bytes: u64,
    seed: u64,
) -> PathPlan<'a> {
    plan_over(target, below, Areas::of(size_bytes.min(target.facts.size_bytes)), seed)
}

fn plan_over<'a>(target: &'a Target, below: &'a CalibrationTargets, areas: Areas, seed: u64) -> PathPlan<'a> {
    let mut plan = Builder { plan: PathPlan::default(), seed };
    let facts = &target.facts;
    // Virtual time repeats exactly; real time beside it would not.
    if target.script().is_none() {
        let null = Workload::reads(Method::Null, CacheState::None, SMALL, LARGE);
        plan.add("null", Role::Harness, 2, null, &below.harness);
    }
    match facts.kind {
        TargetKind::CharDevice if is_scsi_generic(facts) => plan.scsi(target),
        TargetKind::CharDevice => plan.character(target, below),
        TargetKind::Null => {
            let nothing = Workload::reads(Method::Null, CacheState::None, SMALL, LARGE);
            plan.add("nothing", Role::Canonical("nothing at all"), 50, nothing, target);
        }
        _ => {
            plan.calibration_below(below);
            plan.cached(target, areas);
            if !facts.memory_backed {
                plan.cold(target, areas);
                if facts.direct_supported != Some(false) {
                    plan.direct(target, areas, below);
                }
            }
            if target.is_scratch() {
                plan.writes(target, areas);
            }
        }
    }
    plan.plan
}

/// The calibration cells and the cost of iowhy itself, for cells of another plan. The cached ones read as many bytes as
/// those cells, up to `WARM_BYTES`; see [`calibration_bytes`].
pub fn calibration<'a>(
    target: &'a Target,
    below: &'a CalibrationTargets,
    size_bytes: u64,
    seed: u64,
) -> PathPlan<'a> {
    let size_bytes = size_bytes.min(target.facts.size_bytes);
    let areas = Areas { warm_bytes: calibration_bytes(size_bytes), ..Areas::of(size_bytes) };
    let mut plan = plan_over(target, below, areas, seed);
    plan.roles
        .retain(|_, roles| roles.iter().any(|role| matches!(role, Role::Harness | Role::Calibration(_))));
    plan.cells.retain(|cell| plan.roles.contains_key(&cell.key));
    // There is no request of this plan to be measured beside: each cell has slices of its own, as those of the other plan have.
    plan.cells.iter_mut().for_each(|cell| cell.group = None);
    plan
}

struct Builder<'a> {
    plan: PathPlan<'a>,
    seed: u64,
}

impl<'a> Builder<'a> {
    /// Adds a cell, or a role to a cell that is already there.
    fn add(&mut self, key: &str, role: Role, slice_ms: u64, workload: Workload, target: &'a Target) {
        if workload.blocks() < workload.threads as u64 || !has_cost(target, &workload) {
            return;
        }
        if let Some(roles) = self.plan.roles.get_mut(key) {
            roles.push(role);
            return;
        }
        let mut workload = workload;
        workload.seed = self.seed.wrapping_add(self.plan.cells.len() as u64);
        // A cold block may be read once; a mapped page faults once. What a slice leaves dirty takes time beyond its wall
        // bound to write back.
        let once = workload.state == CacheState::Cold || workload.method.mapped();
        let requests = match workload.method {
            Method::PwriteEndFdatasync => STRETCH_BYTES / workload.block_bytes,
            _ if once => workload.blocks() / workload.threads as u64,
            _ => u64::MAX,
        };
        self.plan.cells.push(Cell {
            key: key.to_owned(),
            arms: vec![(workload, target)],
            bounds: Bounds { wall: Duration::from_millis(slice_ms), requests_per_thread: requests },
            listed: None,
            group: None,
            request_bytes: None,
        });
        self.plan.roles.insert(key.to_owned(), vec![role]);
    }

    /// The cell with this key.
    fn cell(&mut self, key: &str) -> Option<&mut Cell<'a>> {
        self.plan.cells.iter_mut().find(|cell| cell.key == key)
    }

    /// Puts cells into one group.
    fn group(&mut self, keys: &[&str], group: Group) {
        self.plan
            .cells
            .iter_mut()
            .filter(|cell| keys.contains(&cell.key.as_str()))
            .for_each(|cell| cell.group = Some(group));
    }

    /// A cell that calibrates the request with this label: the workload of its cell `key`, changed, measured beside it for as
    /// long. Its offsets have the same pattern and another seed: the same ones would be in the caches of the CPU.
    fn local(
        &mut self,
        (label, key): (&'static str, &str),
        (suffix, part): (&str, LocalCell),
        change: impl FnOnce(&mut Workload) -> Option<u64>,
    ) {
        let Some(row) = self.cell(key) else { return };
        let (bounds, (mut workload, target)) = (row.bounds, row.arms[0].clone());
        let group = row.group;
        let request_bytes = change(&mut workload);
        workload.region_bytes = workload.region_bytes / workload.block_bytes * workload.block_bytes;
        let key = format!("{key}-{suffix}");
        self.add(&key, Role::Local(label, part), 0, workload, target);
        let Some(cell) = self.cell(&key) else { return };
        (cell.group, cell.request_bytes, cell.bounds.wall) = (group, request_bytes, bounds.wall);
    }

    /// Cells of other sizes that predict a request.
    fn local_sizes(&mut self, label: &'static str, key: &str, sizes: &[u64]) {
        for &bytes in sizes {
            self.local((label, key), (&bytes.to_string(), LocalCell::Size), |w| {
                w.block_bytes = bytes;
                None
            });
        }
    }

    /// The calibration cells that need nothing of the target: the call itself, the null and zero devices, memory.
    fn calibration_below(&mut self, below: &'a CalibrationTargets) {
        if let Some(null) = &below.null_device {
            let call = Workload::reads(Method::Syscall, CacheState::None, SMALL, LARGE);
            self.add("call", Role::Calibration(CalibrationCell::Syscall), 2, call, null);
            let read = Workload::reads(Method::Pread, CacheState::None, SMALL, LARGE);
            self.add("dev-null", Role::Calibration(CalibrationCell::NullDevice), 2, read, null);
        }
        if let Some(zero) = &below.zero_device {
            for bytes in [SMALL, METHOD_BYTES, LARGE] {
                let key = format!("dev-zero-{bytes}");
                let read = Workload::reads(Method::Pread, CacheState::None, bytes, 4 * LARGE);
                self.add(&key, Role::Calibration(CalibrationCell::ZeroDevice), 3, read, zero);
            }
        }
        if let Some(memory) = &below.memory {
            for bytes in CACHED_SIZES {
                let key = format!("memory-{bytes}");
                let read = Workload::reads(
                    Method::Pread,
                    CacheState::Warm,
                    bytes,
                    memory.facts.size_bytes.min(WARM_BYTES),
                );
                self.add(&key, Role::Calibration(CalibrationCell::Memory), 4, read, memory);
            }
        }
    }

    /// Everything that is answered by the page cache.
    fn cached(&mut self, target: &'a Target, areas: Areas) {
        let warm = |method, bytes| {
            let mut w = Workload::reads(method, CacheState::Warm, bytes, areas.warm_bytes / bytes * bytes);
            w.region_offset = areas.warm_offset;
            w
        };
        let mut small = warm(Method::Pread, SMALL);
        small.pattern = Pattern::Random;
        self.add("cached-4k", Role::Canonical(CACHED_SMALL), 14, small.clone(), target);
        self.add("cached-4k", Role::Limit(LimitCell::CachedSmall), 0, small.clone(), target);
        self.group(&["cached-4k"], Group::Blocks(CACHED_SMALL));
        let row = (CACHED_SMALL, "cached-4k");
        self.local(row, ("look-up", LocalCell::LookUp), |_| Some(1));
        for bytes in [3072, 3584] {
            self.local(row, (&bytes.to_string(), LocalCell::Size), |_| Some(bytes));
        }
        small.threads = 2;
        self.add("cached-4k-2t", Role::Limit(LimitCell::CachedSmallThreads), 20, small, target);
        let large = warm(Method::Pread, LARGE);
        self.add("cached-1m", Role::Canonical(CACHED_LARGE), 20, large.clone(), target);
        self.add("cached-1m", Role::Limit(LimitCell::CachedLarge), 0, large, target);
        self.group(&["cached-1m"], Group::Blocks(CACHED_LARGE));
        self.local_sizes(CACHED_LARGE, "cached-1m", &[LARGE - LARGE / 4, LARGE + LARGE / 4]);
        let mapped = warm(Method::Mmap, SMALL);
        self.add("mapped-4k", Role::Canonical(MAPPED), 14, mapped, target);
        self.group(&["mapped-4k"], Group::Slices(MAPPED));
        // With a request of no bytes, the two sizes around it: loads of a larger request overlap, and those of several do not.
        self.local_sizes(MAPPED, "mapped-4k", &[2 * SMALL]);
        let end = Workload::reads(Method::PreadEnd, CacheState::None, SMALL, LARGE);
        self.add("end-of-file", Role::Calibration(CalibrationCell::EndOfFile), 4, end, target);
        self.group(&["null", "call", "end-of-file"], Group::Blocks(CACHED_SMALL));
        let mut ring = warm(Method::Uring, SMALL);
        ring.pattern = Pattern::Random;
        ring.depth = DEEP;
        self.add("ring-warm-4k", Role::Calibration(CalibrationCell::RingMemory), 6, ring, target);
        for bytes in CACHED_SIZES {
            let key = format!("warm-{bytes}");
            self.add(
                &key,
                Role::Calibration(CalibrationCell::CachedFile),
                4,
                warm(Method::Pread, bytes),
                target,
            );
        }
        for bytes in [SMALL, METHOD_BYTES] {
            let key = format!("mapped-{bytes}");
            self.add(
                &key,
                Role::Calibration(CalibrationCell::MappedFile),
                4,
                warm(Method::Mmap, bytes),
                target,
            );
        }
        self.group(&["mapped-4096", "mapped-65536"], Group::Slices(MAPPED));
        for method in METHODS_WARM {
            let mut way = warm(method, METHOD_BYTES);
            way.touch = METHOD_TOUCH;
            self.add(&format!("warm-way-{}", method.id()), Role::Method, 12, way, target);
        }
    }

    /// Reads that find nothing in the page cache.
    fn cold(&mut self, target: &'a Target, areas: Areas) {
        let region = areas.cold_bytes.min(COLD_BYTES);
        let cold = |method, bytes| {
            let mut w = Workload::reads(method, CacheState::Cold, bytes, region / bytes * bytes);
            w.region_offset = areas.cold_offset;
            w
        };
        let first = self.plan.cells.len();
        let stream = cold(Method::Pread, STREAM);
        self.add("cold-seq-128k", Role::Canonical(COLD), 40, stream.clone(), target);
        self.local_sizes(COLD, "cold-seq-128k", &[STREAM - STREAM / 4, STREAM + STREAM / 4]);
        // The same bytes again, found in the page cache, and too many for the caches of the CPU.
        self.local((COLD, "cold-seq-128k"), ("again", LocalCell::Above), |w| {
            w.state = CacheState::Warm;
            None
        });
        self.add("cold-seq-128k", Role::Limit(LimitCell::ColdSequential), 0, stream.clone(), target);
        let mut two = stream;
        two.threads = 2;
        self.add("cold-seq-128k-2t", Role::Limit(LimitCell::ColdSequentialThreads), 30, two, target);
        for bytes in [METHOD_BYTES, LARGE] {
            self.add(
                &format!("cold-{bytes}"),
                Role::Calibration(CalibrationCell::ColdFile),
                25,
                cold(Method::Pread, bytes),
                target,
            );
        }
        for method in METHODS_COLD {
            let mut way = cold(method, METHOD_BYTES);
            way.touch = METHOD_TOUCH;
            self.add(&format!("cold-way-{}", method.id()), Role::Method, 25, way, target);
        }
        self.plan.cells[first..].iter_mut().for_each(|cell| cell.group = Some(Group::Slices(COLD)));
    }

    /// Reads past the page cache.
    fn direct(&mut self, target: &'a Target, areas: Areas, below: &'a CalibrationTargets) {
        let alignment = target.facts.direct_alignment_bytes.unwrap_or(512).max(512);
        let direct = |method, bytes: u64, depth, threads| {
            let mut w = Workload::reads(method, CacheState::Direct, bytes, areas.cold_bytes / bytes * bytes);
            w.region_offset = areas.cold_offset;
            w.pattern = Pattern::Permuted;
            w.depth = depth;
            w.threads = threads;
            w
        };
        if SMALL.is_multiple_of(alignment) {
            let one = direct(Method::Direct, SMALL, 1, 1);
            self.add("direct-4k", Role::Canonical(DIRECT), 30, one.clone(), target);
            self.add("direct-4k", Role::Limit(LimitCell::RandomOne), 0, one, target);
            self.group(&["direct-4k"], Group::Blocks(DIRECT));
            if SMALL.is_multiple_of(2 * alignment) {
                self.local((DIRECT, "direct-4k"), ("half", LocalCell::Size), |_| Some(SMALL / 2));
                self.local_sizes(DIRECT, "direct-4k", &[2 * SMALL]);
            } else {
                self.local_sizes(DIRECT, "direct-4k", &[2 * SMALL, 8 * SMALL]);
            }
            for (depth, role) in DEPTHS {
                let deep = direct(Method::Uring, SMALL, depth, 1);
                let key = format!("direct-4k-d{depth}");
                self.add(&key, Role::Limit(role), 30, deep.clone(), target);
                // The depth on the screen is predicted from those around it.
                if depth != DEEP {
                    self.add(&key, Role::Calibration(CalibrationCell::DirectDeep), 0, deep, target);
                }
            }
            let deep = direct(Method::Uring, SMALL, DEEP, 1);
            self.add("direct-4k-d32", Role::Canonical("direct 4 KiB, depth 32"), 0, deep, target);
            let two = direct(Method::Uring, SMALL, DEEP, 2);
            self.add("direct-4k-d32-2t", Role::Limit(LimitCell::RandomThreads), 30, two, target);
        }
        for (depth, key, role) in [
            (1, "direct-seq-1m", LimitCell::DirectSequential),
            (4, "direct-seq-1m-d4", LimitCell::DirectSequentialDeep),
        ] {
            let mut stream = direct(Method::Uring, LARGE, depth, 1);
            stream.pattern = Pattern::Sequential;
            // The bytes that the cold reads fetch: another part of the disk may be slower.
            stream.region_bytes = stream.region_bytes.min(COLD_BYTES / LARGE * LARGE);
            self.add(key, Role::Limit(role), 30, stream, target);
        }
        for bytes in DIRECT_SIZES.into_iter().filter(|b| b % alignment == 0) {
            let workload = direct(Method::Direct, bytes, 1, 1);
            self.add(
                &format!("direct-{bytes}"),
                Role::Calibration(CalibrationCell::DirectFile),
                20,
                workload,
                target,
            );
        }
        let mut way = direct(Method::Direct, METHOD_BYTES, 1, 1);
        way.pattern = Pattern::Sequential;
        way.touch = METHOD_TOUCH;
        way.region_bytes = way.region_bytes.min(COLD_BYTES);
        self.add("cold-way-direct", Role::Method, 25, way, target);
        if let Some(raw) = &below.raw_device {
            for bytes in [SMALL, METHOD_BYTES] {
                let mut w = Workload::reads(
                    Method::Direct,
                    CacheState::Direct,
                    bytes,
                    areas.cold_bytes / bytes * bytes,
                );
                w.pattern = Pattern::Permuted;
                self.add(&format!("raw-{bytes}"), Role::Calibration(CalibrationCell::RawDevice), 20, w, raw);
            }
        }
    }

    /// Writes, only ever on a scratch file: in sequence through the cache and past it, and a small durable one.
    fn writes(&mut self, target: &'a Target, areas: Areas) {
        let write = |method, bytes| {
            let mut w = Workload::reads(method, CacheState::None, bytes, areas.cold_bytes / bytes * bytes);
            w.direction = Direction::Write;
            w.region_offset = areas.cold_offset;
            w
        };
        // One stretch again and again: its blocks are allocated on the device, its pages in each slice anew.
        let mut cached = write(Method::PwriteEndFdatasync, LARGE);
        cached.region_bytes = cached.region_bytes.min(STRETCH_BYTES);
        self.add("write-seq-1m", Role::Canonical(WRITE_CACHED), 40, cached, target);
        self.group(&["write-seq-1m"], Group::Slices(WRITE_CACHED));
        let row = (WRITE_CACHED, "write-seq-1m");
        // A folio each, as the request, and smaller: larger ones come from memory that is provided on first use.
        self.local_sizes(WRITE_CACHED, "write-seq-1m", &[LARGE / 8, LARGE / 2]);
        for (suffix, part) in [("unsynced", LocalCell::Above), ("twice", LocalCell::AboveTwice)] {
            self.local(row, (suffix, part), |w| {
                w.method = Method::Pwrite;
                None
            });
        }
        for (key, passes) in [("write-seq-1m-unsynced", 1), ("write-seq-1m-twice", 2)] {
            if let Some(cell) = self.cell(key) {
                cell.bounds.requests_per_thread = passes * cell.arms[0].0.blocks();
            }
        }
        let alignment = target.facts.direct_alignment_bytes.unwrap_or(1).max(1);
        let bypasses = !target.facts.memory_backed && target.facts.direct_supported != Some(false);
        if bypasses && (LARGE / 4).is_multiple_of(alignment) {
            let mut direct = write(Method::Direct, LARGE);
            direct.state = CacheState::Direct;
            self.add("write-direct-1m", Role::Canonical(WRITE_DIRECT), 30, direct, target);
            self.group(&["write-direct-1m"], Group::Blocks(WRITE_DIRECT));
            self.local_sizes(WRITE_DIRECT, "write-direct-1m", &[LARGE - LARGE / 4, LARGE + LARGE / 4]);
        }
        let mut durable = write(Method::PwriteFdatasync, SMALL);
        durable.pattern = Pattern::Permuted;
        self.add("write-sync-4k", Role::Canonical(WRITE_DURABLE), 30, durable, target);
        self.group(&["write-sync-4k"], Group::Blocks(WRITE_DURABLE));
        self.local_sizes(WRITE_DURABLE, "write-sync-4k", &[2 * SMALL, 8 * SMALL]);
        self.local((WRITE_DURABLE, "write-sync-4k"), ("unsynced", LocalCell::Above), |w| {
            w.method = Method::Pwrite;
            None
        });
        // All of it is written back after the slice, page by page.
        if let Some(cell) = self.cell("write-sync-4k-unsynced") {
            cell.bounds.requests_per_thread = MAX_UNSYNCED;
        }
    }

    /// A SCSI generic device: READ BUFFER moves the device's own buffer, so that no medium is involved.
    fn scsi(&mut self, target: &'a Target) {
        for (bytes, method, label) in SCSI {
            let read = Workload::reads(method, CacheState::None, bytes, bytes);
            self.add(&format!("{}-{bytes}", method.id()), Role::Canonical(label), 40, read, target);
        }
    }

    /// A character device: only the call, the VFS and what the driver does with user memory.
    fn character(&mut self, target: &'a Target, below: &'a CalibrationTargets) {
        self.calibration_below(below);
        for (bytes, label) in
            [(512, "read 512 B"), (SMALL, "read 4 KiB"), (METHOD_BYTES, "read 64 KiB"), (LARGE, "read 1 MiB")]
        {
            let read = Workload::reads(Method::Pread, CacheState::None, bytes, 4 * LARGE);
            self.add(&format!("read-{bytes}"), Role::Canonical(label), 20, read, target);
        }
    }
}

/// Whether a target has a cost for this: a scripted machine knows only what is in its model.
fn has_cost(target: &Target, workload: &Workload) -> bool {
    let write = workload.direction.writes();
    let request = Request { offset: 0, bytes: workload.block_bytes as usize, write };
    target.script().is_none_or(|script| script.charge(workload.method, workload.state, request).is_some())
}

/// The 1999 test: one SCSI command, several sizes, with and without the last copy.
const SCSI: [(u64, Method, &str); 6] = [
    (4 << 10, Method::Sg, "READ BUFFER 4 KiB"),
    (4 << 10, Method::SgNoCopy, "the same, not copied"),
    (32 << 10, Method::Sg, "READ BUFFER 32 KiB"),
    (32 << 10, Method::SgNoCopy, "the same, not copied"),
    (128 << 10, Method::Sg, "READ BUFFER 128 KiB"),
    (128 << 10, Method::SgNoCopy, "the same, not copied"),
];

/// Block sizes of the cached calibration cells; those below a page make per-page and per-byte cost separable.
const CACHED_SIZES: [u64; 8] = [512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 32 << 10, 128 << 10, 256 << 10];
/// Block sizes of the direct calibration cell.
const DIRECT_SIZES: [u64; 6] = [4 << 10, 8 << 10, 32 << 10, 128 << 10, 256 << 10, 1 << 20];

/// Methods of reading what is cached.
const METHODS_WARM: [Method; 9] = [
    Method::Pread,
    Method::Read,
    Method::Readv,
    Method::Mmap,
    Method::MmapPopulate,
    Method::MmapLock,
    Method::Uring,
    Method::Splice,
    Method::Sendfile,
];

/// Methods of reading what is not cached.
const METHODS_COLD: [Method; 6] = [
    Method::Pread,
    Method::Mmap,
    Method::MmapSequential,
    Method::MmapRandom,
    Method::MmapPopulate,
    Method::Uring,
];
