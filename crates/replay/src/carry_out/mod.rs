//! Carries out plans of calls ([`iowhy_core::replay`]): a stretch of a program's run, as it was or repaired.
//!
//! Goal: the same calls, at the same places, from as many threads, with the program's own time between them, from the same
//! state of the page cache. Non-goal: saying what a difference means. What may not enter: changes of a plan.
//!
//! Invariants: the user's files are opened read-only and are what they were when the plan was made; what is written goes to
//! files of ours that have no name, or, where names are the matter, to a tree of ours that is removed (`small_files`); state
//! of the cache is looked at before a run, not assumed.

mod cgroup_helper;
mod files;
mod free_space;
mod host_memory;
mod libc_calls;
mod read_ring;
mod replay_thread;
mod small_file_ops;
mod small_files;
mod start_barrier;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;

use std::sync::atomic::{AtomicU64, Ordering};

use iowhy_core::problem::Problem;
use iowhy_core::replay::{Op, Plan, Role};
use serde::{Deserialize, Serialize};

use self::files::Opened;
use self::replay_thread::{Done, Hands};
use self::small_files::{Ready, SmallFiles};
use self::start_barrier::Gate;
use iowhy_probe::interrupt;

pub use cgroup_helper::{Carrier, Ground, Inside, serve};
pub use free_space::{file_system, room};

/// More threads are not started: each needs mappings of its own, of which a process has 65,530, and what fails there ends it.
const MOST_THREADS: usize = 4096;

/// What one run of a plan took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// From the start of the first thread to the end of the last.
    pub elapsed_ns: f64,
    /// Of it, the program's own time as it was spun, the mean of the threads.
    pub think_ns: f64,
    /// Calls that were made.
    pub calls: u64,
    /// Bytes that reads and writes moved.
    pub bytes: u64,
    /// Page faults of the threads that waited for a device.
    pub major_faults: u64,
}

impl Round {
    /// Time in the calls.
    pub fn io_ns(&self) -> f64 {
        (self.elapsed_ns - self.think_ns).max(0.0)
    }
}

/// A plan with its files open. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Stage {
    plan: Plan,
    files: Vec<Opened>,
    small: Option<SmallFiles>,
    /// Other memory, for what is thrown away.
    elsewhere: Vec<u8>,
    /// Passes of the runs before: the next run goes on behind them in the user's files, as the program did. The same places
    /// again would be in the caches of the CPU, and of a host.
    passed: AtomicU64,
}

impl Stage {
    /// Opens the files of a plan, and makes those of ours.
    ///
    /// # Errors
    /// A file is gone, may not be read, or was changed since the plan was made; no room for a file of ours, or no memory for
    /// its requests.
    pub fn set(plan: Plan) -> Result<Stage, Problem> {
        if plan.threads.len() > MOST_THREADS {
            let threads = plan.threads.len();
            return Err(Problem::failed(format!(
                "a replay of {threads} threads is not made, of {MOST_THREADS} at most"
            )));
        }
        host_memory::enough(&plan)?;
        let renewed = |at: usize| plan.any(|a| a.op == Op::RecreateFile && a.file as usize == at);
        let open = |(at, file)| files::open(file, renewed(at));
        let files = plan.files.iter().enumerate().map(open).collect::<Result<_, _>>()?;
        let small = plan.tree.as_ref().map(SmallFiles::set).transpose()?;
        let elsewhere = host_memory::elsewhere(&plan);
        Ok(Stage { plan, files, small, elsewhere, passed: AtomicU64::new(0) })
    }

    /// Makes each run so many times as many passes.
    pub fn lengthen(&mut self, times: u32) {
        self.plan.passes = self.plan.passes.max(1).saturating_mul(times.max(1));
    }

    /// The next run begins where it would after this part of the user's largest file, 0 to 1: what another plan read a
    /// moment ago is in the caches of the CPU.
    pub fn go_ahead(&self, part: f64) {
        let own = self.plan.files.iter().filter(|f| f.role == Role::User && f.shift_bytes > 0);
        if let Some(largest) = own.max_by_key(|f| f.size_bytes) {
            let passes = part.clamp(0.0, 1.0) * largest.size_bytes as f64 / largest.shift_bytes as f64;
            self.passed.store(passes as u64, Ordering::Relaxed);
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Brings the cache into the state that the plan begins with, and carries it out once.
    ///
    /// # Errors
    /// A call failed (a full disk, say), a file was changed meanwhile, the cache cannot be brought into its state, or a
    /// signal asked to stop.
    pub fn run(&self) -> Result<Round, Problem> {
        for (at, (file, planned)) in self.files.iter().zip(&self.plan.files).enumerate() {
            match self.plan.placed {
                Some(_) if planned.role == Role::User => file.prepare_anew(planned, self.first_place(at))?,
                _ => file.prepare(planned)?,
            }
        }
        let ready = self.small.as_ref().map(SmallFiles::prepare).transpose()?;
        host_memory::take(&self.plan);
        let round = self.carry_out(ready);
        // What was written makes room for the other arms, and is not written back while they run.
        self.files.iter().zip(&self.plan.files).for_each(|(file, planned)| file.clear(planned));
        round
    }

    /// Where the plan begins in a file.
    fn first_place(&self, file: usize) -> u64 {
        let first = self.plan.actions().find(|action| action.file as usize == file);
        first.map_or(0, |action| action.offset)
    }

    fn carry_out(&self, ready: Option<Ready>) -> Result<Round, Problem> {
        let threads = self.plan.threads.len();
        // Inside a control group a run begins where the plan does: what it finds there was cached for that.
        let first = match self.plan.placed {
            Some(_) => 0,
            None => self.passed.fetch_add(u64::from(self.plan.passes.max(1)), Ordering::Relaxed),
        };
        let gate = Gate::new(threads);
        let work = |thread: usize| {
            let hands = Hands::new(&self.plan, thread, first, &self.files, ready.as_ref(), &self.elsewhere);
            // Also one that cannot work lets the others begin.
            if !gate.pass() {
                return Err(Problem::failed("not all threads of the replay could be started"));
            }
            hands?.work()
        };
        let work = &work;
        let done: Vec<Result<Done, Problem>> = if threads == 1 {
            vec![work(0)]
        } else {
            std::thread::scope(|scope| {
                let mut running = Vec::with_capacity(threads);
                for thread in 0..threads {
                    let started = std::thread::Builder::new().spawn_scoped(scope, move || work(thread));
                    match started {
                        Ok(started) => running.push(started),
                        Err(error) => {
                            gate.shut();
                            return vec![Err(cannot_start(threads, &error))];
                        }
                    }
                }
                let gone = || Problem::failed("a thread of the replay ended early");
                running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(gone()))).collect()
            })
        };
        let done = done.into_iter().collect::<Result<Vec<Done>, Problem>>()?;
        if interrupt::requested() {
            return Err(Problem::failed("interrupted during a replay"));
        }
        for (file, planned) in self.files.iter().zip(&self.plan.files) {
            file.still(planned)?;
        }
        let start = done.iter().map(|d| d.start_ns).min().unwrap_or(0);
        let end = done.iter().map(|d| d.end_ns).max().unwrap_or(0);
        Ok(Round {
            elapsed_ns: end.saturating_sub(start) as f64,
            think_ns: done.iter().map(|d| d.think_ns as f64).sum::<f64>() / threads.max(1) as f64,
            calls: done.iter().map(|d| d.calls).sum(),
            bytes: done.iter().map(|d| d.bytes).sum(),
            major_faults: done.iter().map(|d| d.major_faults).sum(),
        })
    }
}

fn cannot_start(threads: usize, error: &std::io::Error) -> Problem {
    Problem::failed(format!("the {threads} threads of the replay cannot be started: {error}"))
        .hint("allow more of them (`ulimit -u`; `pids.max` of the control group), or prove as root")
}
