//! What recording costs on this machine, measured on two threads of our own at the start. Takes about 30 ms.
//!
//! Pieces with and without recording alternate, and the fastest of each kind are compared: disturbance only ever adds.
//! What is smaller than the noise is not printed as zero but left out.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use iowhy_linux::clock::thread_cpu_ns;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use super::attr::{self, Role, Start};
use super::recorder::{Recorder, Subject};
use super::rights::Rights;
use crate::event::Kind;

/// Pieces of each kind at most, and the time after which no more are begun: a busy machine has to do with fewer.
const PIECES: usize = 6;
const BUDGET: Duration = Duration::from_millis(15);
/// The part of a run of this length that may be spent on each cost: who waited for a short run does not wait for figures that
/// hardly matter to it. At least one piece of each kind is measured.
const PART_OF_RUN: u32 = 20;
/// Length of a piece with ticks, and of the time between two ticks in it: faster than any real clock, to be seen.
const TICK_PIECE: Duration = Duration::from_millis(1);
const TICK_PERIOD_NS: u64 = 50_000;
/// Copied of the user stack at each tick: as many as there are in a piece fit into the ring.
const TICK_STACK_BYTES: u16 = 8 << 10;
/// Round trips of a piece with switches: two switches each.
const ROUND_TRIPS: u32 = 100;

/// What recording costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfTest {
    /// One recorded switch (out and in, with a stack where stacks are allowed), in nanoseconds of the program's time;
    /// absent where it could not be told from noise or not be tried.
    pub switch_cost_ns: Option<f64>,
    /// One tick of the clock with its stack, in nanoseconds.
    pub tick_cost_ns: Option<f64>,
    /// Records that were lost meanwhile. More than none means that rings are too small or that the machine is
    /// overloaded.
    pub lost: u64,
}

/// Measures. Whatever cannot be tried is absent in the result. `run`: how long the run took that it is for, once that is known.
/// `switches`: whether they are recorded by events of tasks. `ticks`: whether the cost of a tick is wanted.
pub fn self_test(rights: &Rights, run: Option<Duration>, switches: bool, ticks: bool) -> SelfTest {
    let budget = run.map_or(BUDGET, |run| (run / PART_OF_RUN).min(BUDGET));
    let mut result = SelfTest::default();
    let ticks = ticks && rights.kernel_stacks;
    if !rights.switches || !(switches || ticks) {
        return result;
    }
    // On a thread of its own, so that the caller's threads keep the CPUs they are allowed to use.
    let measured = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                pin_to_this_cpu();
                let switches = if switches { switch_cost(rights, budget) } else { None };
                (switches, ticks.then(|| tick_cost(rights.per_cpu_clock, budget)).flatten())
            })
            .join()
    });
    // A panic in there would be ours; the test is then as if it had not been made.
    if let Ok((switches, tick)) = measured {
        if let Some((cost, lost)) = switches {
            result.switch_cost_ns = cost;
            result.lost = lost;
        }
        result.tick_cost_ns = tick;
    }
    result
}

/// Binds the calling thread, and those it starts, to the CPU it is on: then the other end of a pipe runs only after a
/// switch.
fn pin_to_this_cpu() {
    let cpu = rustix::thread::sched_getcpu();
    if let Ok(allowed) = sched_getaffinity(None::<Pid>)
        && cpu < CpuSet::MAX_CPU
        && allowed.is_set(cpu)
    {
        let mut one = CpuSet::new();
        one.set(cpu);
        // If it is refused, the switches still happen, only less surely.
        let _ = sched_setaffinity(None::<Pid>, &one);
    }
}

/// Cost of a switch, and records lost; `None` where pipes or events cannot be had.
fn switch_cost(rights: &Rights, budget: Duration) -> Option<(Option<f64>, u64)> {
    let (mut to_read, mut to_write) = std::io::pipe().ok()?;
    let (mut back_read, mut back_write) = std::io::pipe().ok()?;
    let (tell, told) = std::sync::mpsc::channel();
    // Where no thread is to be had (RLIMIT_NPROC), the cost is not measured.
    let partner = std::thread::Builder::new()
        .spawn(move || {
            let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32);
            let mut byte = [0u8];
            while to_read.read_exact(&mut byte).is_ok() && back_write.write_all(&byte).is_ok() {}
        })
        .ok()?;
    let mut round_trips = |count: u32| -> Option<Duration> {
        let start = Instant::now();
        let mut byte = [0u8];
        for _ in 0..count {
            to_write.write_all(&byte).ok()?;
            back_read.read_exact(&mut byte).ok()?;
        }
        Some(start.elapsed())
    };
    let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let measured = told.recv().ok().and_then(|other| {
        let tids = [own, other];
        // No clock: only switches are asked about.
        let mut rights = rights.clone();
        rights.per_cpu_clock = false;
        let mut recorder = Recorder::open_with(Subject::Threads(&tids), &rights, None).ok()?;
        recorder.close_clocks();
        round_trips(ROUND_TRIPS / 4)?;
        let (mut plain, mut recorded) = (Duration::MAX, Duration::MAX);
        let mut switches = 0u64;
        let (begin, mut pieces) = (Instant::now(), 0);
        while pieces < PIECES && (pieces == 0 || begin.elapsed() < budget) {
            pieces += 1;
            recorder.switches(false);
            plain = plain.min(round_trips(ROUND_TRIPS)?);
            recorder.switches(true);
            recorded = recorded.min(round_trips(ROUND_TRIPS)?);
        }
        recorder.drain(true, &mut |event| switches += u64::from(matches!(event.kind, Kind::Out { .. })));
        // As many as were seen, for on two CPUs not every byte makes a thread sleep.
        let per_piece = switches as f64 / pieces as f64;
        let cost = (recorded.as_nanos() as f64 - plain.as_nanos() as f64) / per_piece;
        Some(((cost > 0.0 && cost.is_finite()).then_some(cost), recorder.counts().lost))
    });
    // The partner ends when its pipe does.
    drop(to_write);
    drop(back_read);
    let _ = partner.join();
    measured
}

/// Cost of a tick with a kernel stack. `per_cpu`: by a clock of the CPU, as the recorder has it then; the first event of a task makes the
/// kernel wait for all CPUs.
fn tick_cost(per_cpu: bool, budget: Duration) -> Option<f64> {
    let stack_bytes = attr::stack_bytes(attr::CPU_PERIOD_NS, 1 << 20, 1).min(TICK_STACK_BYTES);
    let role = Role::Clock { period_ns: TICK_PERIOD_NS, stack_bytes };
    let cpu = u32::try_from(rustix::thread::sched_getcpu()).ok();
    let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let event = attr::open(role, (!per_cpu).then_some(own), cpu, false, Start::Later).ok()?;
    let mut rings = super::ring::map_all(vec![event], 1 << 18).ok()?;
    let mut words = Vec::new();
    let (mut plain, mut ticked) = (0u64, 0u64);
    let mut ticks = 0u64;
    let (begin, mut pieces) = (Instant::now(), 0);
    while pieces < PIECES && (pieces == 0 || begin.elapsed() < budget) {
        pieces += 1;
        plain = plain.max(calls_in(TICK_PIECE));
        let ring = rings.first_mut()?;
        attr::switch(ring.leader(), true).ok()?;
        let calls = calls_in(TICK_PIECE);
        attr::switch(ring.leader(), false).ok()?;
        words.clear();
        ring.take(&mut words);
        if calls > ticked {
            ticked = calls;
            ticks = samples(&words, own);
        }
    }
    // The time of the calls that could not be made while the clock ticked, over the ticks.
    let missing = plain.checked_sub(ticked).filter(|n| *n > 0)? as f64 / plain as f64;
    (ticks > 0).then(|| missing * TICK_PIECE.as_nanos() as f64 / ticks as f64)
}

/// How many samples of this thread are among these records.
fn samples(mut words: &[u64], tid: u32) -> u64 {
    let mut count = 0;
    while let Some(length) = super::merge::length(words) {
        let (record, rest) = words.split_at(length);
        // Identity, then task.
        let own = record.get(2).is_some_and(|task| task.to_ne_bytes()[4..] == tid.to_ne_bytes());
        let sample = super::merge::kind(record[0]) == perf_event_open_sys::bindings::PERF_RECORD_SAMPLE;
        count += u64::from(sample && own);
        words = rest;
    }
    count
}

/// System calls that fit into so much CPU time: work that has a kernel stack. CPU time, because waiting for a CPU is
/// no cost of ticks.
fn calls_in(time: Duration) -> u64 {
    let cpu_time = || Duration::from_nanos(thread_cpu_ns());
    let end = cpu_time() + time;
    let mut calls = 0;
    while cpu_time() < end {
        calls += 1;
    }
    calls
}
