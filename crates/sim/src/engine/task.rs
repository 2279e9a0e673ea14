//! One request on its way down and up: call, look-ups, waiting, copy. Each task has one request at a time.

use iowhy_core::model::Cost;
use iowhy_core::request::{Marks, Op, Request};
use iowhy_core::saved_model::cost_at;

use super::io::{Io, Purpose};
use super::{Engine, Event};
use crate::layout::{Step, StepKind};
use crate::ledger::{Part, Parts};
use crate::machine::WriteMode;
use crate::workload::Method;

/// A request and how far it has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    pub(super) request: Request,
    pub(super) begun_ns: u64,
    pub(super) ended_ns: u64,
    pub(super) parts: Parts,
    steps: Vec<Step>,
    /// The step, and the byte in it, that comes next.
    at: usize,
    done_bytes: u64,
    /// Inputs and outputs it waits for, and since when.
    pub(super) waiting: u32,
    pub(super) wait_from_ns: u64,
    /// Waits after its CPU time is over; earlier events do not wake it.
    pub(super) asleep: bool,
    /// Those that are not submitted yet.
    to_issue: Vec<u32>,
    /// CPU time that is booked and must pass before it goes on.
    due_ns: u64,
    /// Parts of blocks that a write needs have been read.
    refetched: bool,
    /// The dirty limit was waited for, or the sync.
    settled: bool,
}

/// Requests of more are cut: they would be split into a quarter of a million blocks and more.
const MAX_REQUEST_BYTES: u64 = 1 << 30;
/// More than any run lasts, so a larger cost ends the run; a u64 holds the sum of two.
const MAX_COST_NS: f64 = 6e18;

impl Task {
    /// Books CPU time that it must take before it goes on.
    #[inline]
    fn owe(&mut self, part: Part, ns: u64) {
        self.parts.add(part, ns);
        self.due_ns = self.due_ns.saturating_add(ns);
    }
}

#[inline]
fn cost_ns(cost: &Cost, calls: f64, pages: u64, bytes: u64) -> u64 {
    let ns = cost.per_call_ns * calls + cost.per_page_ns * pages as f64 + cost.per_byte_ns * bytes as f64;
    // Not a number becomes 0 by the cast.
    (ns.clamp(0.0, MAX_COST_NS) + 0.5) as u64
}

impl Engine<'_, '_> {
    /// A request begins: it enters the kernel.
    pub(super) fn begin(&mut self, task: u32, at_ns: u64) {
        self.totals.issued += 1;
        let state = &mut self.tasks[task as usize];
        if state.request.bytes > MAX_REQUEST_BYTES {
            state.request.bytes = MAX_REQUEST_BYTES;
            self.totals.cut += 1;
        }
        let request = state.request;
        state.begun_ns = at_ns;
        state.parts = Parts::default();
        state.due_ns = 0;
        (state.at, state.done_bytes, state.refetched, state.settled) = (0, 0, false, false);
        state.steps.clear();
        if request.bytes > 0 && matches!(request.op, Op::Read | Op::Write | Op::Discard) {
            self.layout.steps(&request, &mut state.steps);
        }
        if self.method == Method::Mlock {
            if self.lock_holder.is_some() {
                state.wait_from_ns = at_ns;
                self.lock_queue.push_back(task);
                return;
            }
            self.lock_holder = Some(task);
        }
        self.enter(task, at_ns);
    }

    /// The process's lock is free: the next one has it.
    pub(super) fn unlock(&mut self) {
        self.lock_holder = self.lock_queue.pop_front();
        if let Some(task) = self.lock_holder {
            let state = &mut self.tasks[task as usize];
            state.parts.add(Part::Lock, self.now_ns - state.wait_from_ns);
            self.enter(task, self.now_ns);
        }
    }

    /// Pays for the call, and goes on behind it.
    fn enter(&mut self, task: u32, at_ns: u64) {
        let bytes = self.tasks[task as usize].request.bytes;
        let pages = self.grid.page.ceil(bytes);
        // A load from a mapping is no call.
        let calls = self.method != Method::Mapped;
        let of = |cost| if calls { cost_ns(cost, 1.0, pages, bytes) } else { 0 };
        let (call, filesystem) = (of(&self.machine.call), of(&self.machine.filesystem));
        let through_cache = self.cache.is_some() && self.method == Method::Read;
        let lookup = if through_cache { cost_ns(&self.machine.lookup, 1.0, 0, 0) } else { 0 };
        let state = &mut self.tasks[task as usize];
        state.owe(Part::Call, call);
        state.owe(Part::Filesystem, filesystem);
        state.owe(Part::Cache, lookup);
        let then = self.pay(task, at_ns);
        self.events.push(then, Event::Step(task));
    }

    /// Takes the CPU time that is due; when it is over.
    fn pay(&mut self, task: u32, at_ns: u64) -> u64 {
        let state = &mut self.tasks[task as usize];
        let due_ns = std::mem::take(&mut state.due_ns);
        if due_ns == 0 {
            return at_ns;
        }
        let (wait, end) = self.cpu.work(at_ns, due_ns);
        state.parts.add(Part::CpuQueue, wait);
        end
    }

    /// Goes on with look-ups until something must be waited for, or all is done.
    pub(super) fn advance(&mut self, task: u32) {
        if self.tasks[task as usize].request.op == Op::Sync && !self.tasks[task as usize].settled {
            self.tasks[task as usize].settled = true;
            if self.sync(task) {
                return;
            }
        }
        loop {
            let state = &self.tasks[task as usize];
            let Some(step) = state.steps.get(state.at).copied() else { break };
            if state.done_bytes >= step.bytes {
                let state = &mut self.tasks[task as usize];
                state.at += 1;
                state.done_bytes = 0;
                continue;
            }
            let waits = match (state.request.op, self.method) {
                (Op::Discard, _) => self.discard(task, &step),
                (_, Method::Direct) => self.direct(task, &step),
                _ if self.cache.is_none() => self.direct(task, &step),
                (Op::Write, _) => match self.write(task, &step) {
                    Some(waits) => waits,
                    None => return,
                },
                _ => self.read(task, &step),
            };
            if waits {
                self.tasks[task as usize].asleep = false;
                let then = self.pay(task, self.now_ns);
                if then == self.now_ns {
                    self.issue(task);
                } else {
                    self.events.push(then, Event::Issue(task));
                }
                return;
            }
        }
        self.leave(task);
    }

    /// All is there: to the program, and back to it.
    fn leave(&mut self, task: u32) {
        if self.machine.layout.access_times {
            self.touch_inodes(task);
        }
        let state = &mut self.tasks[task as usize];
        let moves = matches!(state.request.op, Op::Read | Op::Write);
        if moves && self.method == Method::Read {
            let bytes = state.request.bytes;
            let pages = self.grid.page.ceil(bytes);
            let copy = match cost_at(&self.machine.copy_by_size, bytes) {
                Some(ns) => (ns.clamp(0.0, MAX_COST_NS) + 0.5) as u64,
                None => cost_ns(&self.machine.copy, 1.0, pages, bytes),
            };
            state.owe(Part::Copy, copy);
        }
        let end = self.pay(task, self.now_ns);
        if self.merged() {
            self.finish(task, end);
        } else {
            self.events.push(end, Event::Finish(task));
        }
    }

    /// The inodes of the files that were read bear a new time: their blocks are dirty, where they are still cached.
    fn touch_inodes(&mut self, task: u32) {
        let state = &self.tasks[task as usize];
        let Some(cache) = self.cache.as_mut().filter(|_| state.request.op == Op::Read) else { return };
        for step in state.steps.iter().filter(|step| step.kind == StepKind::Inode) {
            let key = crate::cache::whole_key(step.start);
            if cache.blocks.contains(key) {
                cache.soil(key, step.bytes);
            }
        }
        self.write_behind();
    }

    /// Its inputs and outputs go out, and it waits.
    pub(super) fn issue(&mut self, task: u32) {
        let mut ios = std::mem::take(&mut self.tasks[task as usize].to_issue);
        let state = &mut self.tasks[task as usize];
        (state.wait_from_ns, state.asleep) = (self.now_ns, true);
        for io in ios.drain(..) {
            self.submit(io);
        }
        let state = &mut self.tasks[task as usize];
        state.to_issue = ios;
        if state.waiting == 0 {
            // Its input arrived before its CPU time was over.
            self.events.push(self.now_ns, Event::Step(task));
        }
    }

    /// A range of direct I/O.
    fn direct(&mut self, task: u32, step: &Step) -> bool {
        let write = self.tasks[task as usize].request.op == Op::Write;
        let io = self.new_io(Purpose::Demand, write, (0, 0), step.start, step.bytes);
        self.demand(task, io);
        self.tasks[task as usize].done_bytes = step.bytes;
        true
    }

    /// The task waits for this one, and pays for building it.
    fn demand(&mut self, task: u32, io: u32) {
        self.ios[io as usize].waiters.push(task);
        self.tasks[task as usize].waiting += 1;
        self.send(task, io);
    }

    /// The task sends this one, and pays for building it.
    fn send(&mut self, task: u32, io: u32) {
        let Io { bytes, write, .. } = self.ios[io as usize];
        let pages = self.grid.page.ceil(bytes);
        let block = self.machine.write_block.as_ref().filter(|_| write).unwrap_or(&self.machine.block);
        let state = &mut self.tasks[task as usize];
        state.owe(Part::Block, cost_ns(block, 1.0, pages, bytes));
        state.to_issue.push(io);
    }

    fn discard(&mut self, task: u32, step: &Step) -> bool {
        if let Some(cache) = &mut self.cache {
            for key in self.grid.keys(step.whole, step.start, step.bytes) {
                cache.discard(key);
            }
        }
        self.tasks[task as usize].done_bytes = step.bytes;
        false
    }

    /// The next part of a step that is read at once: a cluster of a fault, or the cache's largest input.
    fn chunk(&self, task: u32, step: &Step) -> (u64, u64) {
        if step.whole {
            return (step.start, step.bytes);
        }
        let start = step.start + self.tasks[task as usize].done_bytes;
        let end = step.start + step.bytes;
        // Clusters are aligned, so that neighbours share none.
        let piece = self.grid.piece;
        let aligned = piece.floor(start).saturating_add(1).saturating_mul(piece.size());
        (start, end.min(aligned) - start)
    }

    /// Looks a part of a step up; true when it must wait.
    fn read(&mut self, task: u32, step: &Step) -> bool {
        let (start, bytes) = self.chunk(task, step);
        self.tasks[task as usize].done_bytes += bytes;
        let asked = self.grid.keys(step.whole, start, bytes);
        let mut runs = std::mem::take(&mut self.scratch.runs);
        let mut waits = std::mem::take(&mut self.scratch.waits);
        runs.clear();
        waits.clear();
        self.look_up(task, asked.clone(), &mut runs, &mut waits);
        let pages = self.grid.page.ceil(bytes);
        let faults = self.method != Method::Read;
        let state = &mut self.tasks[task as usize];
        if faults {
            state.owe(Part::Mapping, cost_ns(&self.machine.mapping, 1.0, pages, bytes));
        } else {
            state.owe(Part::Cache, cost_ns(&self.machine.lookup, 0.0, pages, bytes));
        }
        let mut ahead = 0..0;
        if self.reads_ahead && step.kind == StepKind::Data && !step.whole && !faults {
            ahead = self.extend(task, &asked, step.limit, &mut runs);
        }
        let mut waiting = false;
        for &(first, end) in &runs {
            waiting |= self.fetch(task, Purpose::Demand, step, first, end);
        }
        if !ahead.is_empty() {
            self.absent(ahead, &mut runs);
            for &(first, end) in &runs {
                self.fetch(task, Purpose::Ahead, step, first, end);
            }
            // No task waits for it, but it must be written.
            waiting |= !runs.is_empty();
        }
        for &io in &waits {
            self.ios[io as usize].waiters.push(task);
            self.tasks[task as usize].waiting += 1;
            waiting = true;
        }
        self.scratch.runs = runs;
        self.scratch.waits = waits;
        waiting
    }

    /// Finds out which blocks are missing (`runs`) and which are on their way (`waits`).
    fn look_up(
        &mut self,
        task: u32,
        asked: std::ops::Range<u64>,
        runs: &mut Vec<(u64, u64)>,
        waits: &mut Vec<u32>,
    ) {
        let Some(cache) = &mut self.cache else { return };
        let used = &mut self.totals.cache;
        self.looks += 1;
        for key in asked {
            used.lookups += 1;
            // A mapped buffer keeps its pages: what it holds is in the cache, too, unless that is smaller than the pool.
            if let Some(pool) = &mut self.pool {
                used.pool_lookups += 1;
                if pool.lookup(key) {
                    used.pool_hits += 1;
                } else {
                    pool.insert(key, &mut |_| {});
                    let block = self.grid.block.size();
                    let mapping = cost_ns(&self.machine.mapping, 1.0, self.grid.page.ceil(block), block);
                    self.tasks[task as usize].owe(Part::Mapping, mapping);
                }
            }
            if cache.blocks.lookup(key) {
                used.hits += 1;
            } else if let Some(&io) = cache.coming.get(&key) {
                used.coming += 1;
                let state = &mut self.ios[io as usize];
                if std::mem::replace(&mut state.seen, self.looks) != self.looks {
                    waits.push(io);
                }
            } else {
                match runs.last_mut() {
                    Some((_, end)) if *end == key => *end = key + 1,
                    _ => runs.push((key, key + 1)),
                }
            }
        }
    }

    /// Asks the read-ahead, extends the last missing run, and returns the range to be fetched asynchronously.
    fn extend(
        &mut self,
        task: u32,
        asked: &std::ops::Range<u64>,
        limit: u64,
        runs: &mut Vec<(u64, u64)>,
    ) -> std::ops::Range<u64> {
        let limit = self.grid.block.ceil(limit).min(self.grid.volume_blocks);
        let request = &self.tasks[task as usize].request;
        // An open file is an object in the hands of a client.
        let stream = request.object ^ u64::from(request.stream).rotate_left(40);
        let advice = self.read_ahead.access(stream, asked.clone(), !runs.is_empty(), limit);
        let Some(cache) = &self.cache else { return 0..0 };
        let mut key = asked.end;
        while key < advice.fetch_end.min(limit)
            && !cache.blocks.contains(key)
            && !cache.coming.contains_key(&key)
        {
            match runs.last_mut() {
                Some((_, end)) if *end == key => *end = key + 1,
                _ => runs.push((key, key + 1)),
            }
            key += 1;
        }
        advice.ahead.start.min(limit)..advice.ahead.end.min(limit)
    }

    /// Runs of blocks that are neither there nor on their way.
    fn absent(&self, range: std::ops::Range<u64>, runs: &mut Vec<(u64, u64)>) {
        runs.clear();
        let Some(cache) = &self.cache else { return };
        for key in range {
            if cache.blocks.contains(key) || cache.coming.contains_key(&key) {
                continue;
            }
            match runs.last_mut() {
                Some((_, end)) if *end == key => *end = key + 1,
                _ => runs.push((key, key + 1)),
            }
        }
    }

    /// Plans inputs for a run of missing blocks, none larger than the cache's largest read.
    fn fetch(&mut self, task: u32, purpose: Purpose, step: &Step, first: u64, end: u64) -> bool {
        let block = self.grid.block.size();
        let most = if step.whole { 1 } else { self.grid.io_blocks };
        let mut at = first;
        while at < end {
            let count = most.min(end - at);
            let (start, bytes) =
                if step.whole { (step.start, step.bytes) } else { (at * block, count * block) };
            let io = self.new_io(purpose, false, (at, count), start, bytes);
            if let Some(cache) = &mut self.cache {
                for key in at..at + count {
                    cache.coming.insert(key, io);
                }
            }
            let pages = self.grid.page.ceil(bytes);
            let insert = cost_ns(&self.machine.insert, count as f64, pages, bytes);
            self.tasks[task as usize].owe(Part::Cache, insert);
            if purpose == Purpose::Demand {
                self.totals.cache.fetched += count;
                self.demand(task, io);
            } else {
                self.totals.cache.ahead += count;
                self.send(task, io);
            }
            at += count;
        }
        first < end
    }

    /// Writes into the cache, or through it. `None`: the task was throttled and will retry.
    fn write(&mut self, task: u32, step: &Step) -> Option<bool> {
        let block = self.grid.block.size();
        let (start, bytes) = self.chunk(task, step);
        let touched = self.grid.keys(step.whole, start, bytes);
        if !self.tasks[task as usize].refetched && !step.whole {
            // A partly written block must be read first.
            self.tasks[task as usize].refetched = true;
            let cache = self.cache.as_ref()?;
            let ends = [touched.start, touched.end - 1];
            let partial = |key: u64| key * block < start || (key + 1) * block > start + bytes;
            let mut needed: Vec<u64> = ends.into_iter().filter(|key| partial(*key)).collect();
            needed.dedup();
            needed.retain(|key| !cache.blocks.contains(*key));
            let mut waiting = false;
            for key in needed {
                match self.cache.as_ref().and_then(|cache| cache.coming.get(&key).copied()) {
                    Some(io) => {
                        self.ios[io as usize].waiters.push(task);
                        self.tasks[task as usize].waiting += 1;
                        waiting = true;
                    }
                    None => waiting |= self.fetch(task, Purpose::Demand, step, key, key + 1),
                }
            }
            if waiting {
                return Some(true);
            }
        }
        if self.machine.cache.write == WriteMode::Back
            && !self.tasks[task as usize].settled
            && self.too_dirty()
        {
            self.tasks[task as usize].settled = true;
            self.hold_back(task);
            return None;
        }
        let state = &mut self.tasks[task as usize];
        state.done_bytes += bytes;
        (state.refetched, state.settled) = (false, false);
        let pages = self.grid.page.ceil(bytes);
        state.owe(Part::Cache, cost_ns(&self.machine.lookup, 0.0, pages, bytes));
        // Metadata that the file system waits for is written through, whatever the write mode of data.
        let waited_for = state.request.marks.has(Marks::SYNC.with(Marks::METADATA));
        let through = waited_for || self.machine.cache.write == WriteMode::Through;
        let each = if step.whole { step.bytes } else { block };
        if let Some(cache) = &mut self.cache {
            for key in touched {
                self.totals.cache.lookups += 1;
                if cache.blocks.lookup(key) {
                    self.totals.cache.hits += 1;
                } else {
                    cache.insert(key, &mut self.scratch.flushes);
                }
                if !through {
                    cache.soil(key, each);
                }
            }
        }
        self.write_evicted();
        if through {
            let io = self.new_io(Purpose::Demand, true, (0, 0), start, bytes);
            self.demand(task, io);
            return Some(true);
        }
        self.write_behind();
        Some(false)
    }
}
