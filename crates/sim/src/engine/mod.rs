//! The machine in virtual time: one queue of events, the layers, and the ledger of every request.
//!
//! Invariants: events happen in the order of their times, and of their planning; everything is whole nanoseconds; the same
//! machine, load and seed give the same outcome to the digit. Policies of layers have files of
//! their own.
//!
//! Simplifications that matter: a disk's data crosses the bus after it has left the medium; CPUs are not preempted; a
//! block that the cache must give up is written in the background.

mod grid;
mod io;
mod processor;
mod station;
mod task;
mod write_back;

use iowhy_core::problem::Problem;
use iowhy_core::request::{Op, Request};
use iowhy_core::units::counted;

use self::grid::Grid;
use self::io::Io;
use self::processor::Processor;
use self::station::{Piece, Station};
use self::task::Task;
use self::write_back::WriteBack;
use crate::cache::{self, Cache};
use crate::device;
use crate::event::Events;
use crate::files::Shape;
use crate::laws;
use crate::layout::{self, Layout};
use crate::ledger::{Part, Parts};
use crate::machine::{Machine, ReadAheadKind};
use crate::outcome::{CacheUse, Finished, Outcome};
use crate::policy::BlockCache;
use crate::readahead::{self, DriverBuffer, ReadAhead};
use crate::scheduler;
use crate::volume::{self, SECTOR_BYTES, Volume};
use crate::workload::{Arrival, Load, Method, Source};

/// An event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next open arrival.
    Arrive,
    /// A client issues its next request.
    Begin(u32),
    /// A request continues with its next look-up.
    Step(u32),
    /// A request's inputs and outputs go to the volume.
    Issue(u32),
    /// A request is answered.
    Finish(u32),
    /// The medium is done with a piece.
    Served(u32),
    /// A piece is done.
    Done(u32),
    /// An input is there without any device.
    Ready(u32),
}

/// Longer than this (150 years) no run lasts; beyond it clocks would overflow.
const LONGEST_NS: u64 = 5_000_000_000_000_000_000;
/// Work between two calls of a guard: some milliseconds, some MiB at the most beside the largest request.
const GUARD_WORK: u64 = 1 << 14;
/// Blocks that warming puts into a cache at most.
const MAX_WARM_BLOCKS: u64 = 1 << 28;

/// Runs a load on a machine.
///
/// # Errors
/// An impossible machine, files that do not fit on it, and runs longer than 64-bit nanoseconds.
pub fn run(machine: &Machine, load: Load<'_>, seed: u64) -> Result<Outcome, Problem> {
    run_watched(machine, load, seed, &mut |_| {})
}

/// As [`run`], and passes every request with its ledger to `watch`, in the order of completion.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    machine: &Machine,
    load: Load<'_>,
    seed: u64,
    watch: &mut dyn FnMut(&Finished),
) -> Result<Outcome, Problem> {
    run_whole(machine, load, seed, watch, &mut |_| Ok(()))
}

/// As [`run`], and asks `guard` again and again whether to go on, with the requests answered so far: it may look at the memory
/// or show progress. Between two calls lies a bounded amount of work.
///
/// # Errors
/// As [`run`], and the guard's refusal.
pub fn run_guarded(
    machine: &Machine,
    load: Load<'_>,
    seed: u64,
    guard: &mut dyn FnMut(u64) -> Result<(), Problem>,
) -> Result<Outcome, Problem> {
    run_whole(machine, load, seed, &mut |_| {}, guard)
}

fn run_whole(
    machine: &Machine,
    load: Load<'_>,
    seed: u64,
    watch: &mut dyn FnMut(&Finished),
    guard: &mut dyn FnMut(u64) -> Result<(), Problem>,
) -> Result<Outcome, Problem> {
    let mut engine = Engine::new(machine, load, seed, watch)?;
    engine.start();
    engine.go(guard)?;
    let outcome = engine.outcome();
    countable(&outcome)?;
    debug_assert_eq!(laws::check(&outcome), Ok(()));
    Ok(outcome)
}

/// Refuses an outcome in which a sum of times may have overflowed. Sums saturate at 2^64, which is far above the bound.
fn countable(outcome: &Outcome) -> Result<(), Problem> {
    let most = |what: &str, ns: u128| match ns > u128::from(LONGEST_NS) {
        true => Err(too_long(what)),
        false => Ok(()),
    };
    most("the run would last longer", outcome.settled_ns.into())?;
    // Every entry of the ledger is a part of these.
    most("the times of all requests add up to more", outcome.client_time_ns.max(outcome.latency_sum_ns))?;
    for device in &outcome.devices {
        most("the times of all commands of a device add up to more", device.resident_ns)?;
    }
    most("the times of all CPUs add up to more", outcome.cpu_busy_ns.into())
}

fn too_long(what: &str) -> Problem {
    Problem::refused(format!("{what} than 150 years of simulated time")).hint(
        "look for a speed, a rate or a time that is off by some powers of ten, or simulate fewer requests",
    )
}

/// The result so far.
#[derive(Default)]
struct Totals {
    issued: u64,
    requests: u64,
    bytes: u64,
    latency: iowhy_core::histogram::Histogram,
    latency_sum_ns: u128,
    ledger: Parts,
    client_time_ns: u128,
    open_ledgers: u64,
    last_end_ns: u64,
    slowest: Option<Finished>,
    volume_bytes: u64,
    cut: u64,
    cache: CacheUse,
}

/// All clients wait for all.
#[derive(Default)]
struct Barrier {
    /// Clients that still have requests.
    active: u32,
    /// Those that wait, and since when.
    waiting: Vec<(u32, u64)>,
}

struct Engine<'a, 'w> {
    machine: Machine,
    now_ns: u64,
    events: Events<Event>,
    /// Requests that go on at this instant, as soon as the present event is over.
    ready: Vec<u32>,
    layout: Box<dyn Layout>,
    volume: Volume,
    volume_bytes: u64,
    grid: Grid,
    stations: Vec<Station>,
    pieces: Vec<Piece>,
    free_pieces: Vec<u32>,
    ios: Vec<Io>,
    free_ios: Vec<u32>,
    tasks: Vec<Task>,
    free_tasks: Vec<u32>,
    cache: Option<Cache>,
    pool: Option<Box<dyn BlockCache>>,
    read_ahead: Box<dyn ReadAhead>,
    /// Whether that ever asks for more than is asked of it.
    reads_ahead: bool,
    driver: Option<DriverBuffer>,
    write_back: WriteBack,
    cpu: Processor,
    bus_free_ns: u64,
    bus_busy_ns: u64,
    /// Look-ups of pieces so far: tells inputs that this one has met already.
    looks: u64,
    method: Method,
    arrival: Arrival,
    source: Box<dyn Source + 'a>,
    /// The next open arrival.
    next: Option<Request>,
    barrier: Barrier,
    lock_holder: Option<u32>,
    lock_queue: std::collections::VecDeque<u32>,
    totals: Totals,
    watch: &'w mut dyn FnMut(&Finished),
    /// Used again and again.
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    pieces: Vec<volume::Piece>,
    runs: Vec<(u64, u64)>,
    waits: Vec<u32>,
    flushes: Vec<cache::Flush>,
    waiters: Vec<u32>,
}

impl<'a, 'w> Engine<'a, 'w> {
    fn new(
        machine: &Machine,
        load: Load<'a>,
        seed: u64,
        watch: &'w mut dyn FnMut(&Finished),
    ) -> Result<Self, Problem> {
        machine.check()?;
        let mut stations = Vec::new();
        let mut sectors = u64::MAX;
        for index in 0..machine.device.count {
            let (config, queue) = machine.member(index as usize);
            let device = device::new(config, seed.wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15))?;
            sectors = sectors.min(device.sectors());
            stations.push(Station::new(device, scheduler::new(queue.order), queue.depth));
        }
        let volume = machine.volume_of(sectors)?;
        let volume_bytes = volume.sectors().saturating_mul(SECTOR_BYTES);
        if volume_bytes < machine.cache.block_bytes {
            return Err(Problem::refused(format!(
                "the volume holds {volume_bytes} bytes, less than one block of the cache"
            ))
            .hint("give larger devices, or a smaller `cache.block_bytes`"));
        }
        let cache = if machine.cache.bytes == 0 { None } else { Some(Cache::new(&machine.cache)?) };
        let pool = match machine.pool.buffers {
            0 => None,
            buffers => Some(cache::blocks(machine.pool.policy, buffers)?),
        };
        let driver = (machine.read_ahead.kind == ReadAheadKind::Driver)
            .then(|| DriverBuffer::new(machine.read_ahead.bytes.min(1 << 30)));
        let mut engine = Engine {
            now_ns: 0,
            events: Events::new(),
            ready: Vec::new(),
            layout: layout::new(machine, &load.shape, volume_bytes)?,
            volume,
            volume_bytes,
            grid: Grid::new(machine, load.method, volume_bytes),
            stations,
            pieces: Vec::new(),
            free_pieces: Vec::new(),
            ios: Vec::new(),
            free_ios: Vec::new(),
            tasks: Vec::new(),
            free_tasks: Vec::new(),
            cache,
            pool,
            read_ahead: readahead::new(machine),
            reads_ahead: !matches!(machine.read_ahead.kind, ReadAheadKind::None | ReadAheadKind::Driver),
            driver,
            write_back: WriteBack::default(),
            cpu: Processor::new(machine.cpus),
            bus_free_ns: 0,
            bus_busy_ns: 0,
            looks: 0,
            method: load.method,
            arrival: load.arrival,
            source: load.source,
            next: None,
            barrier: Barrier::default(),
            lock_holder: None,
            lock_queue: Default::default(),
            totals: Totals::default(),
            watch,
            scratch: Scratch::default(),
            machine: machine.clone(),
        };
        if load.warm {
            engine.warm(&load.shape);
        }
        Ok(engine)
    }

    /// Puts the files into the cache, without time.
    fn warm(&mut self, shape: &Shape) {
        let (count, size) = match shape {
            Shape::Files { count, bytes } => (*count, *bytes),
            Shape::Tree { files, sizes, .. } => (*files, sizes.iter().copied().max().unwrap_or(0)),
            Shape::Unknown => return,
        };
        let Some(cache) = &mut self.cache else { return };
        let mut steps = Vec::new();
        let mut left = MAX_WARM_BLOCKS;
        for object in 0..count {
            self.layout.steps(&Request { object, bytes: size, ..Request::default() }, &mut steps);
            for step in &steps {
                for key in self.grid.keys(step.whole, step.start, step.bytes) {
                    if left == 0 {
                        return;
                    }
                    left -= 1;
                    cache.insert(key, &mut self.scratch.flushes);
                }
            }
        }
    }

    /// Plans the first requests.
    fn start(&mut self) {
        match self.arrival {
            Arrival::Closed { clients, .. } => {
                self.barrier.active = clients;
                for client in 0..clients {
                    self.tasks.push(Task::default());
                    self.next_of(client, 0);
                }
            }
            Arrival::Open => self.plan_arrival(),
        }
    }

    fn plan_arrival(&mut self) {
        self.next = self.source.next(0);
        if let Some(request) = &self.next {
            self.events.push(request.time_ns.max(self.now_ns), Event::Arrive);
        }
    }

    /// Happens until nothing is left to happen.
    fn go(&mut self, guard: &mut dyn FnMut(u64) -> Result<(), Problem>) -> Result<(), Problem> {
        let (mut events, mut next_guard) = (0, GUARD_WORK);
        while let Some((time_ns, event)) = self.events.pop() {
            events += 1;
            if self.work(events) >= next_guard {
                guard(self.totals.requests)?;
                next_guard = self.work(events).saturating_add(GUARD_WORK);
            }
            if time_ns > LONGEST_NS {
                return Err(too_long("the run would last longer"));
            }
            self.now_ns = time_ns;
            match event {
                Event::Arrive => self.arrive(),
                Event::Begin(task) => self.begin(task, time_ns),
                Event::Step(task) => self.advance(task),
                Event::Issue(task) => self.issue(task),
                Event::Finish(task) => self.finish(task, time_ns),
                Event::Served(piece) => self.served(piece),
                Event::Done(piece) => self.piece_done(piece),
                Event::Ready(io) => self.io_done(io),
            }
            let mut next = 0;
            while let Some(task) = self.ready.get(next).copied() {
                next += 1;
                self.advance(task);
            }
            self.ready.clear();
        }
        Ok(())
    }

    /// Work done so far, in units that take about the same time and memory: events, blocks, pages of input and output.
    #[inline]
    fn work(&self, events: u64) -> u64 {
        events.saturating_add(self.totals.cache.lookups).saturating_add(self.totals.volume_bytes >> 12)
    }

    /// An open arrival.
    fn arrive(&mut self) {
        if let Some(request) = self.next.take() {
            let task = match self.free_tasks.pop() {
                Some(task) => task,
                None => {
                    self.tasks.push(Task::default());
                    (self.tasks.len() - 1) as u32
                }
            };
            self.tasks[task as usize].request = request;
            self.begin(task, self.now_ns);
        }
        self.plan_arrival();
    }

    /// The next request of a closed client, from this time on.
    fn next_of(&mut self, task: u32, from_ns: u64) {
        match self.source.next(task) {
            Some(request) => {
                self.tasks[task as usize].request = request;
                if self.merged() {
                    self.begin(task, from_ns);
                } else {
                    self.events.push(from_ns, Event::Begin(task));
                }
            }
            None => {
                self.totals.client_time_ns += u128::from(self.tasks[task as usize].ended_ns);
                self.barrier.active -= 1;
                self.try_barrier();
            }
        }
    }

    /// Whether a request's begin and end need no event of their own: there is no queue for a CPU or a lock.
    fn merged(&self) -> bool {
        self.cpu.unlimited() && self.method != Method::Mlock
    }

    /// A request is answered: books it, and lets its client go on.
    fn finish(&mut self, task: u32, end_ns: u64) {
        let state = &mut self.tasks[task as usize];
        let finished = Finished {
            request: state.request,
            begun_ns: state.begun_ns,
            ended_ns: end_ns,
            parts: state.parts,
        };
        state.ended_ns = end_ns;
        let latency = finished.latency_ns();
        let totals = &mut self.totals;
        totals.requests += 1;
        if matches!(finished.request.op, Op::Read | Op::Write) {
            totals.bytes = totals.bytes.saturating_add(finished.request.bytes);
        }
        totals.latency.record(latency);
        totals.latency_sum_ns += u128::from(latency);
        totals.ledger.merge(&finished.parts);
        totals.open_ledgers += u64::from(finished.parts.total() != latency);
        totals.last_end_ns = totals.last_end_ns.max(end_ns);
        if totals.slowest.as_ref().is_none_or(|slowest| latency > slowest.latency_ns()) {
            totals.slowest = Some(finished);
        }
        (self.watch)(&finished);
        if self.method == Method::Mlock {
            self.unlock();
        }
        match self.arrival {
            Arrival::Open => {
                self.totals.client_time_ns += u128::from(latency);
                self.free_tasks.push(task);
            }
            Arrival::Closed { lock_step: true, .. } => {
                self.barrier.waiting.push((task, end_ns));
                self.try_barrier();
            }
            Arrival::Closed { think_ns, .. } => self.think(task, end_ns, think_ns),
        }
    }

    /// The client pauses, then issues its next request.
    fn think(&mut self, task: u32, from_ns: u64, think_ns: u64) {
        self.totals.ledger.add(Part::Think, think_ns);
        self.tasks[task as usize].ended_ns = from_ns.saturating_add(think_ns);
        self.next_of(task, from_ns.saturating_add(think_ns));
    }

    /// Lock-step: when all that still have requests wait, all go on.
    fn try_barrier(&mut self) {
        let Arrival::Closed { think_ns, lock_step: true, .. } = self.arrival else { return };
        if self.barrier.waiting.is_empty() || self.barrier.waiting.len() < self.barrier.active as usize {
            return;
        }
        let waiting = std::mem::take(&mut self.barrier.waiting);
        let all_ns = waiting.iter().map(|(_, since)| *since).max().unwrap_or(self.now_ns);
        for (task, since) in waiting {
            self.totals.ledger.add(Part::LockStep, all_ns - since);
            self.think(task, all_ns, think_ns);
        }
    }

    fn outcome(self) -> Outcome {
        let totals = self.totals;
        let mut remarks = self.layout.remarks();
        remarks.extend(self.source.remarks());
        if totals.cut > 0 {
            let many =
                counted(totals.cut, "request of more than 1 GiB was", "requests of more than 1 GiB were");
            remarks.push(format!("{many} cut to it"));
        }
        let mut cache = totals.cache;
        if let Some(state) = &self.cache {
            cache.left_dirty = state.dirty_bytes;
        }
        Outcome {
            time_ns: totals.last_end_ns,
            settled_ns: self.now_ns.max(totals.last_end_ns),
            issued: totals.issued,
            requests: totals.requests,
            bytes: totals.bytes,
            latency: totals.latency,
            latency_sum_ns: totals.latency_sum_ns,
            ledger: totals.ledger,
            client_time_ns: totals.client_time_ns,
            open_ledgers: totals.open_ledgers,
            slowest: totals.slowest,
            devices: self.stations.into_iter().map(|station| station.used).collect(),
            bus_busy_ns: self.bus_busy_ns,
            cpu_busy_ns: self.cpu.busy_ns,
            cpus: (self.machine.cpus > 0).then_some(self.machine.cpus),
            cache: self.cache.is_some().then_some(cache),
            volume_bytes: totals.volume_bytes,
            remarks,
        }
    }
}
