//! A plan carried out in this process: opens the files, prepares the cache, runs the threads.

use std::sync::atomic::{AtomicU64, Ordering};

use iowhy_core::problem::Problem;
use iowhy_core::replay::{Advice, Op, Plan, PlanFile, Role};
use serde::{Deserialize, Serialize};

use super::files::{self, ReplayFile};
use super::host_memory;
use super::replay_thread::{ReplayThread, ThreadOutcome};
use super::scratch_trees::{RunNames, ScratchTrees};
use super::start_barrier::StartBarrier;
use crate::parts::Parts;
use iowhy_probe::interrupt;

/// Each thread may need mappings, of which a process has 65,530; a failed one ends the process.
const MAX_THREADS: usize = 4096;

/// Times and counts of one run of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// From the start of the first thread to the end of the last.
    pub elapsed_ns: f64,
    /// Of it, the program's own CPU time, spun, and reading the clock; the mean of the threads.
    pub think_ns: f64,
    /// System calls.
    pub calls: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// Time in calls by kind, all threads together.
    #[serde(default)]
    pub parts: Parts,
}

impl RunOutcome {
    /// Elapsed time without the program's own.
    pub fn io_ns(&self) -> f64 {
        (self.elapsed_ns - self.think_ns).max(0.0)
    }
}

/// A plan with its files open. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct LocalReplay {
    plan: Plan,
    pub(super) files: Vec<ReplayFile>,
    trees: Option<ScratchTrees>,
    /// Read through after dirty data is dropped, so that its pages come back cold.
    cold_memory: Vec<u8>,
    /// Passes of earlier runs: the next run continues behind them in the user's files, as the program did. Repeated offsets
    /// would hit caches of the CPU, and of a host.
    passes_done: AtomicU64,
}

impl LocalReplay {
    /// Opens the files of a plan and makes its scratch files.
    ///
    /// # Errors
    /// A file is gone, unreadable, or changed since the recorded run; too little space or memory.
    pub fn prepare(plan: Plan) -> Result<LocalReplay, Problem> {
        if plan.threads.len() > MAX_THREADS {
            let threads = plan.threads.len();
            return Err(Problem::failed(format!(
                "cannot replay {threads} threads: the limit is {MAX_THREADS}"
            )));
        }
        host_memory::check_requests_fit(&plan)?;
        let made = |at: usize| {
            let on_file = || plan.actions().filter(|a| a.op.makes_file() && a.file as usize == at);
            let stay = on_file().filter(|a| a.op == Op::MakeFile { stays: true }).map(|a| u64::from(a.count));
            (stay.sum::<u64>() * u64::from(plan.passes.max(1))).max(u64::from(on_file().next().is_some()))
        };
        // The advice for a mapping is not that for its descriptor: that changes the read-ahead of both.
        let mapped = |op| matches!(op, Op::TouchPages | Op::TouchLines | Op::MapReadUnmap { .. });
        let by_calls = |at: usize| plan.any(|a| a.file as usize == at && !mapped(a.op));
        let open = |(at, file): (usize, &PlanFile)| {
            let advice = if by_calls(at) { file.advice } else { Advice::Normal };
            files::open(&PlanFile { advice, ..file.clone() }, made(at))
        };
        let files = plan.files.iter().enumerate().map(open).collect::<Result<_, _>>()?;
        let trees = plan.tree.as_ref().map(ScratchTrees::new).transpose()?;
        let cold_memory = host_memory::cold_memory(&plan);
        Ok(LocalReplay { plan, files, trees, cold_memory, passes_done: AtomicU64::new(0) })
    }

    /// Starts the next run behind this share of the largest user file: what another plan just read is in the CPU's caches.
    pub fn start_behind(&self, share: f64) {
        let own = self.plan.files.iter().filter(|f| f.role == Role::User && f.shift_bytes > 0);
        if let Some(largest) = own.max_by_key(|f| f.size_bytes) {
            let passes = share.clamp(0.0, 1.0) * largest.size_bytes as f64 / largest.shift_bytes as f64;
            self.passes_done.store(passes as u64, Ordering::Relaxed);
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Prepares the page cache and carries the plan out once.
    ///
    /// # Errors
    /// A call failed, a user file changed, the cache state cannot be reached, or a signal asked to stop.
    pub fn run(&self) -> Result<RunOutcome, Problem> {
        for (at, (file, planned)) in self.files.iter().zip(&self.plan.files).enumerate() {
            match self.plan.placed {
                Some(_) if planned.role == Role::User => {
                    file.prepare_in_cgroup(planned, self.first_offset(at))?
                }
                _ => file.prepare(planned)?,
            }
        }
        let first_pass = self.next_passes();
        for (file, planned) in self.files.iter().zip(&self.plan.files).filter(|(_, p)| !p.cached.is_empty()) {
            let first = if planned.role == Role::User { first_pass } else { 0 };
            for pass in 0..u64::from(self.plan.passes.max(1)) {
                file.bring_cached(planned, first + pass)?;
            }
        }
        let names = self.trees.as_ref().map(ScratchTrees::prepare_run).transpose()?;
        host_memory::fault_in(&self.plan);
        let outcome = self.run_threads(names.as_ref(), first_pass);
        // Frees the space for other arms, and leaves nothing to write back during their runs.
        self.files.iter().zip(&self.plan.files).for_each(|(file, planned)| file.discard(planned));
        outcome
    }

    /// First offset of the plan in a file.
    fn first_offset(&self, file: usize) -> u64 {
        let first = self.plan.actions().find(|action| action.file as usize == file);
        first.map_or(0, |action| action.offset)
    }

    /// The first pass of the next run. In a control group each run starts at the plan's own offsets, which were cached for it.
    fn next_passes(&self) -> u64 {
        match self.plan.placed {
            Some(_) => 0,
            None => self.passes_done.fetch_add(u64::from(self.plan.passes.max(1)), Ordering::Relaxed),
        }
    }

    fn run_threads(&self, names: Option<&RunNames>, first_pass: u64) -> Result<RunOutcome, Problem> {
        let threads = self.plan.threads.len();
        let barrier = StartBarrier::new(threads);
        let work = |thread: usize| {
            let replay =
                ReplayThread::new(&self.plan, thread, first_pass, &self.files, names, &self.cold_memory);
            // A thread that cannot run still lets the others start.
            if !barrier.wait() {
                return Err(Problem::failed("not all threads of the replay could be started"));
            }
            replay?.run()
        };
        let outcomes = if threads == 1 { vec![work(0)] } else { in_threads(threads, &barrier, &work) };
        let outcomes = outcomes.into_iter().collect::<Result<Vec<ThreadOutcome>, Problem>>()?;
        if interrupt::requested() {
            return Err(Problem::failed("interrupted during a replay"));
        }
        for (file, planned) in self.files.iter().zip(&self.plan.files) {
            file.check_unchanged(planned)?;
        }
        Ok(sum(&outcomes))
    }
}

/// Runs `work` on each thread; if one cannot be started, none runs.
fn in_threads(
    threads: usize,
    barrier: &StartBarrier,
    work: &(impl Fn(usize) -> Result<ThreadOutcome, Problem> + Sync),
) -> Vec<Result<ThreadOutcome, Problem>> {
    std::thread::scope(|scope| {
        let mut running = Vec::with_capacity(threads);
        for thread in 0..threads {
            match std::thread::Builder::new().spawn_scoped(scope, move || work(thread)) {
                Ok(started) => running.push(started),
                Err(error) => {
                    barrier.cancel();
                    return vec![Err(cannot_start(threads, &error))];
                }
            }
        }
        let gone = || Problem::failed("a thread of the replay ended early");
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(gone()))).collect()
    })
}

fn sum(threads: &[ThreadOutcome]) -> RunOutcome {
    let start = threads.iter().map(|d| d.start_ns).min().unwrap_or(0);
    let end = threads.iter().map(|d| d.end_ns).max().unwrap_or(0);
    RunOutcome {
        elapsed_ns: end.saturating_sub(start) as f64,
        think_ns: threads.iter().map(|d| d.think_ns as f64 + d.clock_ns).sum::<f64>()
            / threads.len().max(1) as f64,
        calls: threads.iter().map(|d| d.calls).sum(),
        bytes: threads.iter().map(|d| d.bytes).sum(),
        major_faults: threads.iter().map(|d| d.major_faults).sum(),
        parts: threads.iter().fold(Parts::default(), |sum, d| sum.plus(&d.parts)),
    }
}

fn cannot_start(threads: usize, error: &std::io::Error) -> Problem {
    Problem::failed(format!("the {threads} threads of the replay cannot be started: {error}"))
        .hint("allow more of them (`ulimit -u`; `pids.max` of the control group), or prove as root")
}
