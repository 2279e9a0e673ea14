//! What is asked of the machine: a workload, or a trace that is replayed. What may not enter: sweeps, and what a run may
//! cost.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::request::{Op, Request};
use iowhy_core::units::{Bytes, counted};
use iowhy_core::warning::Warning;
use iowhy_sim::laws;
use iowhy_sim::machine::Machine;
use iowhy_sim::outcome::Outcome;
use iowhy_sim::requests::{self, VolumeRequests};
use iowhy_sim::workload::{Load, Method, What, Workload};
use iowhy_trace::{Options, Trace};

use super::read_text;
use super::running::Watch;
use crate::cli::{SimArgs, WorkloadArg};
use crate::record::sim::PLANNED_TIMES;

/// Blocks that wide requests may ask for in all (some seconds), and blocks for each request on average from which they are wide:
/// 1 MiB in blocks of 4 KiB.
const MAX_WIDE_BLOCKS: u64 = 1 << 22;
const WIDE_BLOCKS: u64 = 256;
/// The simulator cuts larger requests.
const MAX_COUNTED_BYTES: u64 = 1 << 30;
/// Time spent on counting the requests of a trace before a sweep.
const COUNTING: Duration = Duration::from_millis(300);

/// What is asked of the machine.
pub(crate) enum Demand {
    Workload(Box<Workload>, String),
    Trace { path: PathBuf, options: Options, clients: Option<u32>, most: u64 },
}

impl Demand {
    /// What the options ask for.
    ///
    /// # Errors
    /// Nothing that is asked for, a workload or a format that cannot be, options that do not go together.
    pub(crate) fn from_args(args: &SimArgs, workload: Option<&WorkloadArg>) -> Result<Demand, Problem> {
        if workload.is_some()
            && let Some(option) = of_trace(args)
        {
            return Err(Problem::refused(format!(
                "`{option}` belongs to `--trace`, and this is a `--workload`"
            ))
            .hint("leave it out; a workload has `readers`, `requests` and more: `--workload list`"));
        }
        match (workload, &args.trace) {
            (Some(workload), _) => Demand::for_workload(workload),
            (None, Some(path)) => {
                let options =
                    Options { format: args.format, columns: args.columns.clone(), ..Options::default() };
                let most = args.requests.unwrap_or(u64::MAX);
                Ok(Demand::Trace { path: path.clone(), options, clients: args.clients, most })
            }
            (None, None) => {
                Err(Problem::refused("nothing to simulate: neither `--workload` nor `--trace` is given")
                    .hint("for example `--workload random-4k`; `--workload list` shows names and keys"))
            }
        }
    }

    /// A workload.
    ///
    /// # Errors
    /// A file that is not there, cannot be read, or says something wrong.
    pub(crate) fn for_workload(given: &WorkloadArg) -> Result<Demand, Problem> {
        let (workload, text) = match given {
            WorkloadArg::Spec { text, workload } => (workload.clone(), text.clone()),
            WorkloadArg::File(path) => {
                let text = path.display().to_string();
                let workload = match path.is_file() {
                    true => Workload::from_toml(&read_text("--workload", path)?, &text)?,
                    // Says that it is no workload, and which one is near.
                    false => Workload::parse(&text)?,
                };
                (workload, text)
            }
        };
        Ok(Demand::Workload(Box::new(workload), text))
    }

    /// A trace in a file, at its own times or by clients.
    pub(crate) fn for_trace(path: PathBuf, clients: Option<u32>) -> Demand {
        Demand::Trace { path, options: Options::default(), clients, most: u64::MAX }
    }

    /// The workload, when it is one.
    pub(crate) fn workload(&self) -> Option<&Workload> {
        match self {
            Demand::Workload(workload, _) => Some(workload),
            Demand::Trace { .. } => None,
        }
    }

    /// Whether requests come at their own times, whatever is still under way.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Demand::Workload(workload, _) => workload.rate > 0.0,
            Demand::Trace { clients, .. } => clients.is_none(),
        }
    }

    /// The warning of a sweep whose requests come at times that no machine changes.
    pub(crate) fn planned_times(&self) -> Option<Warning> {
        let (whose, next) = match self {
            _ if !self.is_open() => return None,
            Demand::Workload(..) => {
                ("by the workload's rate", "leave out the rate, or compare the latencies")
            }
            Demand::Trace { .. } => (
                "at their recorded times",
                "use `--clients 1` (one request after the other), or compare the latencies",
            ),
        };
        let message = format!("requests come {whose}: a faster machine does not make the total time shorter");
        Some(Warning::new(PLANNED_TIMES, message).next(next))
    }

    /// Whether any of its first requests writes.
    ///
    /// # Errors
    /// As opening and reading a trace.
    pub(crate) fn writes(&self, first: u64) -> Result<bool, Problem> {
        match self {
            Demand::Workload(workload, _) => {
                Ok(matches!(workload.what, What::Region { write_percent: 1.., .. }))
            }
            Demand::Trace { path, options, most, .. } => {
                Ok(Feed::open(path, options, first.min(*most))?.any(|request| request.op == Op::Write))
            }
        }
    }

    /// Clients of a closed load, each with one request at a time; `None` where requests come at their own times.
    pub(crate) fn clients(&self) -> Option<u32> {
        match self {
            _ if self.is_open() => None,
            Demand::Workload(workload, _) => Some(workload.clients),
            Demand::Trace { clients, .. } => *clients,
        }
    }

    /// Its first requests, as requests to the volume of a machine. A trace keeps its own order.
    ///
    /// # Errors
    /// What the machine or the trace refuse.
    pub(crate) fn volume_requests(
        &self,
        machine: &Machine,
        seed: u64,
        first: u64,
    ) -> Result<VolumeRequests, Problem> {
        match self {
            Demand::Workload(workload, _) => requests::uncached(machine, workload.load(seed), first),
            Demand::Trace { path, options, most, .. } => {
                let mut feed = Feed::open(path, options, first.min(*most))?;
                let placed = requests::uncached(machine, Load::replay(&mut feed), first)?;
                feed.close(&mut Vec::new())?;
                Ok(placed)
            }
        }
    }

    /// In a line, as it was given.
    pub(crate) fn words(&self) -> String {
        match self {
            Demand::Workload(_, text) => text.clone(),
            Demand::Trace { path, clients, .. } => {
                let how = clients.map_or_else(
                    || "at its own times".to_owned(),
                    |n| format!("by {}", counted(n.into(), "client", "clients")),
                );
                format!("{}, {how}", path.display())
            }
        }
    }

    /// How its requests are made.
    pub(crate) fn method(&self) -> Method {
        match self {
            Demand::Workload(workload, _) => workload.method,
            Demand::Trace { .. } => Method::Read,
        }
    }

    /// The whole workload with what was left to its defaults; `None` for a trace.
    pub(crate) fn in_full(&self) -> Option<String> {
        match self {
            Demand::Workload(workload, _) => Some(workload.to_string()),
            Demand::Trace { .. } => None,
        }
    }

    /// Whether it can be run more than once.
    pub(crate) fn repeats(&self) -> bool {
        !matches!(self, Demand::Trace { path, .. } if path.as_os_str() == "-")
    }

    /// Refuses a trace that cannot be read, before anything is measured or run. Stdin can be read once, and is not looked at.
    ///
    /// # Errors
    /// As opening and reading a trace.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        match self {
            Demand::Trace { path, options, .. } if self.repeats() => Feed::open(path, options, 0).map(drop),
            _ => Ok(()),
        }
    }

    /// Runs it once.
    ///
    /// # Errors
    /// What the machine or the trace refuse.
    pub(crate) fn run(
        &self,
        machine: &Machine,
        seed: u64,
        warnings: &mut Vec<Warning>,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Problem> {
        self.run_first(machine, seed, u64::MAX, warnings, watch)
    }

    /// The trace that is replayed; `None` for a workload.
    pub(crate) fn trace(&self) -> Option<&Path> {
        match self {
            Demand::Trace { path, .. } => Some(path),
            Demand::Workload(..) => None,
        }
    }

    /// Runs its first requests.
    ///
    /// # Errors
    /// What the machine or the trace refuse.
    pub(crate) fn run_first(
        &self,
        machine: &Machine,
        seed: u64,
        first: u64,
        warnings: &mut Vec<Warning>,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Problem> {
        let outcome = match self {
            Demand::Workload(workload, _) => {
                let load = workload.load(seed);
                let all = workload.requests();
                let load = if first < all { load.first(first) } else { load };
                let share = |done| done as f64 / first.min(all).max(1) as f64;
                iowhy_sim::run_guarded(machine, load, seed, &mut |done| watch.at(share(done)))?
            }
            Demand::Trace { path, options, clients, most } => {
                let mut feed = Feed::open(path, options, first.min(*most))?;
                feed.check(machine, *clients, warnings)?;
                feed.refuse_wide(machine, watch);
                let read = Rc::clone(&feed.share);
                let mut load = Load::replay(&mut feed);
                if let Some(clients) = clients {
                    load = load.closed(*clients);
                }
                let outcome = iowhy_sim::run_guarded(machine, load, seed, &mut |_| watch.at(read.get()))?;
                feed.close(warnings)?;
                outcome
            }
        };
        // A broken law is our fault, and its numbers are worth nothing.
        laws::check(&outcome).map_err(|law| {
            Problem::failed(format!("the simulator broke its own law: {law}"))
                .hint("please report this with the command line")
        })?;
        Ok(outcome)
    }
}

/// The first option that was given and only a trace can use.
fn of_trace(args: &SimArgs) -> Option<&'static str> {
    [
        ("--clients", args.clients.is_some()),
        ("--requests", args.requests.is_some()),
        ("--format", args.format.is_some()),
        ("--columns", args.columns.is_some()),
    ]
    .into_iter()
    .find_map(|(name, given)| given.then_some(name))
}

/// Requests of a trace, one by one; what went wrong is kept.
pub(crate) struct Feed {
    trace: Trace,
    batch: Vec<Request>,
    at: usize,
    left: u64,
    /// Share of the file that was read.
    pub(crate) share: Rc<Cell<f64>>,
    /// Bytes of a block of the cache, and blocks that were asked for; `None`: as many as there are.
    block_bytes: Option<u64>,
    blocks: u64,
    requests: u64,
    error: Option<Problem>,
}

impl Feed {
    /// Opens a trace and reads its first requests; `most` of all are handed out.
    ///
    /// # Errors
    /// As opening and reading a trace.
    pub(crate) fn open(path: &Path, options: &Options, most: u64) -> Result<Feed, Problem> {
        let trace = iowhy_trace::open(path, options)?;
        let mut feed = Feed {
            trace,
            batch: Vec::new(),
            at: 0,
            left: most,
            share: Rc::default(),
            block_bytes: None,
            blocks: 0,
            requests: 0,
            error: None,
        };
        // The first batch: some files say only there what they are.
        feed.refill();
        match feed.error.take() {
            Some(problem) => Err(problem),
            None => Ok(feed),
        }
    }

    /// From now on requests that are far too large end it, unless the user said yes.
    pub(crate) fn refuse_wide(&mut self, machine: &Machine, watch: &Watch<'_>) {
        self.block_bytes = (!watch.yes).then_some(machine.cache.block_bytes.max(1));
    }

    fn refill(&mut self) {
        self.at = 0;
        if let Err(error) = self.trace.next_batch(&mut self.batch) {
            self.error = Some(error.into());
        }
        self.share.set(self.trace.share_read().unwrap_or(0.0));
    }

    /// Says what the trace cannot mean on this machine.
    fn check(
        &self,
        machine: &Machine,
        clients: Option<u32>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Problem> {
        if !self.trace.has_times() && clients.is_none() {
            return Err(Problem::refused(format!("`{}` has no times to replay it at", self.trace.name()))
                .hint("`--clients 1` replays it one request after the other"));
        }
        if self.trace.below_page_cache() == Some(true) && machine.cache.bytes > 0 {
            let message = format!(
                "`{}` was recorded below a page cache: what that held is not in it, so the simulated cache finds less to hold",
                self.trace.name()
            );
            warnings.push(
                Warning::new("trace-below-cache", message)
                    .next("`--set cache.bytes=0` simulates what lies below"),
            );
        }
        if !self.trace.has_sizes() {
            warnings.push(Warning::new(
                "trace-without-sizes",
                "the trace has no sizes: every request touches one block",
            ));
        }
        Ok(())
    }

    /// How many requests have been handed out, if it was opened for `most`.
    pub(crate) fn handed_out(&self, most: u64) -> u64 {
        most - self.left
    }

    /// Requests of the whole trace: read on for a moment, and estimated from the share of the file that was read by then,
    /// unless that is all of it. `None` where the size of the file is not known.
    pub(crate) fn requests_in_all(&mut self) -> Option<u64> {
        let begun = Instant::now();
        while begun.elapsed() < COUNTING && self.error.is_none() && !self.batch.is_empty() {
            self.refill();
        }
        let read = self.trace.requests();
        if self.batch.is_empty() {
            return Some(read);
        }
        let share = self.trace.share_read()?;
        Some((read as f64 / share.max(f64::MIN_POSITIVE)) as u64)
    }

    /// What went wrong, and what was lost on the way.
    ///
    /// # Errors
    /// A trace that broke off.
    pub(crate) fn close(self, warnings: &mut Vec<Warning>) -> Result<(), Problem> {
        for loss in self.trace.losses().list() {
            let message = format!("{} of the trace: {}", loss.count, loss.reason);
            warnings.push(Warning::new("trace-loss", message));
        }
        self.error.map_or(Ok(()), Err)
    }
}

impl Iterator for Feed {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.left == 0 {
            return None;
        }
        if self.at == self.batch.len() {
            if self.error.is_some() || self.batch.is_empty() {
                return None;
            }
            self.refill();
        }
        let request = self.batch.get(self.at).copied()?;
        if let Some(block_bytes) = self.block_bytes {
            self.blocks += request.bytes.min(MAX_COUNTED_BYTES) / block_bytes;
            self.requests += 1;
            let each = self.blocks / self.requests;
            if self.blocks > MAX_WIDE_BLOCKS && each > WIDE_BLOCKS {
                self.error = Some(too_wide(self.requests, each, block_bytes));
                return None;
            }
        }
        self.at += 1;
        self.left -= 1;
        Some(request)
    }
}

/// Refuses to spend minutes on requests that are far larger than any device takes, as a damaged trace or one of whole objects has
/// them.
fn too_wide(requests: u64, each: u64, block_bytes: u64) -> Problem {
    Problem::refused(format!(
        "the first {requests} requests of the trace ask for {each} blocks of {} each, on average: that takes very long, and the \
         trace is probably damaged or of another format",
        Bytes(block_bytes)
    ))
    .hint(
        "`iowhy trace stat` shows what it holds; `--set cache.block_bytes=1m` simulates larger blocks, `--requests N` the first N, \
         `--force` all of it",
    )
}
