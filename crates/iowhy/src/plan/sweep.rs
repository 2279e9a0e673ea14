//! From the options of `bench` to the cells of a sweep: every list multiplies. Refuses what cannot be measured and
//! says when a setting cannot act, before anything is timed.

use std::time::Duration;

use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, Bytes};
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Direction, Method, Touch, Workload};
use iowhy_probe::method::direction;

use crate::cli::BenchArgs;
use crate::cli::bench::Methods;

/// The options of `bench`, read and checked as far as possible without looking at a target.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Reads, writes or a mix.
    pub direction: Direction,
    /// Order of blocks.
    pub pattern: Pattern,
    /// Request sizes.
    pub block_bytes: Vec<u64>,
    /// Ways of moving bytes; empty: chosen from state, depth and direction.
    pub methods: Vec<Method>,
    /// Claimed cache states; empty: chosen from the target.
    pub states: Vec<CacheState>,
    /// Thread counts.
    pub threads: Vec<usize>,
    /// Depths.
    pub depths: Vec<usize>,
    /// Part of the target that is used.
    pub size_bytes: Option<u64>,
    /// Time per cell.
    pub runtime: Option<Duration>,
    /// Relative half width to stop at.
    pub precision: Option<f64>,
    /// One pass instead of a time.
    pub once: bool,
    /// Planned requests per second.
    pub rate_per_second: Option<f64>,
    /// What is done with arrived bytes.
    pub touch: Touch,
    /// Seed.
    pub seed: u64,
}

/// A sweep beyond this is a typing error more often than a wish.
const MAX_CELLS: usize = 2000;

impl Sweep {
    /// Reads the options.
    ///
    /// # Errors
    /// A refusal that names the option.
    pub fn from_args(args: &BenchArgs) -> Result<Sweep, Problem> {
        let pattern = args.pattern.unwrap_or(match args.rw.is_random() {
            // Each block once, as fio's random map does it: a cold block must not be requested twice.
            true => Pattern::Permuted,
            false => Pattern::Sequential,
        });
        let states = match (&args.state, args.direct) {
            (Some(states), _) => states.clone(),
            (None, Some(1)) => vec![CacheState::Direct],
            _ => Vec::new(),
        };
        let methods = match &args.method {
            Some(Methods::These(methods)) => methods.clone(),
            Some(Methods::Print) | None => Vec::new(),
        };
        let sweep = Sweep {
            direction: args.rw.direction(args.rwmixread),
            pattern,
            block_bytes: args.bs.clone(),
            methods,
            states,
            threads: args.threads.clone(),
            depths: args.iodepth.clone(),
            size_bytes: args.size,
            runtime: args.time,
            precision: args.precision,
            once: args.once,
            rate_per_second: args.rate,
            touch: args.touch,
            seed: args.seed,
        };
        if let (Some(size), Some(&largest)) = (sweep.size_bytes, sweep.block_bytes.iter().max())
            && largest > size
        {
            return Err(Problem::refused(format!(
                "`--bs {}` is larger than `--size {}`",
                Bytes(largest),
                Bytes(size)
            ))
            .hint("use a smaller `--bs` or a larger `--size`"));
        }
        for &method in &sweep.methods {
            direction::check(sweep.direction, method)?;
        }
        Ok(sweep)
    }

    /// The cells for one target, in the order of the options; warnings say what cannot act.
    ///
    /// # Errors
    /// A refusal when a combination cannot be measured on this target at all.
    pub fn cells(&self, facts: &TargetFacts, warnings: &mut Vec<Warning>) -> Result<Vec<Workload>, Problem> {
        let mut cells = Vec::new();
        for &state in &self.states_for(facts)? {
            for &depth in &self.depths {
                for method in self.methods_for(state, depth, facts) {
                    let state = settle(method, state, facts)?;
                    // O_DIRECT pread and pwrite have one name.
                    let method = match (method, state) {
                        (Method::Pread | Method::Pwrite, CacheState::Direct) => Method::Direct,
                        _ => method,
                    };
                    let depth = self.depth_that_acts(method, depth, warnings);
                    for &threads in &self.threads {
                        for &block_bytes in &self.block_bytes {
                            let region_bytes = self.region(facts, block_bytes, state)?;
                            let workload = Workload {
                                direction: self.direction,
                                method,
                                pattern: self.pattern,
                                state,
                                block_bytes,
                                region_bytes,
                                region_offset: 0,
                                threads,
                                depth,
                                touch: self.touch,
                                rate_per_second: self.rate_per_second,
                                seed: self.seed,
                            };
                            check_alignment(&workload, facts)?;
                            if workload.blocks() < threads as u64 {
                                return Err(Problem::refused(format!(
                                    "`--threads {threads}` over {} blocks leaves threads without a block",
                                    workload.blocks()
                                ))
                                .hint("raise `--size`, or lower `--threads` or `--bs`"));
                            }
                            if !cells.contains(&workload) {
                                cells.push(workload);
                            }
                        }
                    }
                }
            }
        }
        if cells.len() > MAX_CELLS {
            return Err(Problem::refused(format!(
                "these lists make {} cells; at most {MAX_CELLS} are allowed",
                cells.len()
            ))
            .hint("shorten `--bs`, `--method`, `--state`, `--threads` or `--iodepth`"));
        }
        Ok(cells)
    }

    fn states_for(&self, facts: &TargetFacts) -> Result<Vec<CacheState>, Problem> {
        if !self.states.is_empty() {
            return Ok(self.states.clone());
        }
        Ok(match facts.kind {
            TargetKind::CharDevice | TargetKind::Null => vec![CacheState::None],
            TargetKind::Memory => vec![CacheState::Warm],
            _ if self.direction.writes() => vec![CacheState::None],
            _ if facts.memory_backed => vec![CacheState::Warm],
            _ if self.methods == [Method::Direct] => vec![CacheState::Direct],
            _ => vec![CacheState::Cold, CacheState::Warm],
        })
    }

    fn methods_for(&self, state: CacheState, depth: usize, facts: &TargetFacts) -> Vec<Method> {
        if !self.methods.is_empty() {
            return self.methods.clone();
        }
        vec![match (facts.kind, state) {
            (TargetKind::Null, _) => Method::Null,
            (TargetKind::CharDevice, _) if iowhy_path::facts::is_scsi_generic(facts) => Method::Sg,
            _ if depth > 1 => Method::Uring,
            (_, CacheState::Direct) => Method::Direct,
            _ => match self.direction {
                Direction::Read => Method::Pread,
                Direction::Write => Method::Pwrite,
                // The one method that reads and writes through the page cache on one descriptor.
                Direction::Mixed(_) => Method::Uring,
            },
        }]
    }

    /// Says so when depth cannot act, instead of printing a number that looks as if it had.
    fn depth_that_acts(&self, method: Method, depth: usize, warnings: &mut Vec<Warning>) -> usize {
        if depth <= 1 || method.asynchronous() {
            return depth;
        }
        let warning = Warning::new(
            "depth-without-effect",
            format!(
                "depth {depth} has no effect with method `{}`, which keeps one request in flight per thread; measured at depth 1",
                method.id()
            ),
        )
        .next("use `--method uring`, or more `--threads`");
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
        1
    }

    /// Whole blocks of the part of the target that is used.
    fn region(&self, facts: &TargetFacts, block_bytes: u64, state: CacheState) -> Result<u64, Problem> {
        if matches!(facts.kind, TargetKind::CharDevice | TargetKind::Null) {
            return Ok(self.size_bytes.unwrap_or(DEFAULT_REGION_BYTES).max(block_bytes));
        }
        if let Some(size) = self.size_bytes
            && size > facts.size_bytes
        {
            return Err(Problem::refused(format!(
                "`--size {}` is larger than `{}` ({})",
                Bytes(size),
                facts.name,
                Bytes(facts.size_bytes)
            ))
            .hint(format!("use `--size {}` or less", units::typed_size(facts.size_bytes))));
        }
        let whole = self.size_bytes.unwrap_or(facts.size_bytes);
        // A warm region is fetched before every round: without an explicit size keep that short.
        let whole = match (self.size_bytes, state) {
            (None, CacheState::Warm | CacheState::Cold) => whole.min(DEFAULT_REGION_BYTES),
            _ => whole,
        };
        if block_bytes > whole {
            return Err(Problem::refused(format!(
                "`--bs {}` is larger than what there is to read in `{}` ({})",
                Bytes(block_bytes),
                facts.name,
                Bytes(whole)
            ))
            .hint("use a smaller `--bs`, a larger `--size`, or a larger target"));
        }
        Ok(whole / block_bytes * block_bytes)
    }
}

/// Part of a target that is used when nobody says how much.
pub const DEFAULT_REGION_BYTES: u64 = 256 << 20;

/// Joins method and state into what really happens, or refuses what would be a lie.
fn settle(method: Method, state: CacheState, facts: &TargetFacts) -> Result<CacheState, Problem> {
    if matches!(facts.kind, TargetKind::Null) {
        return match method {
            Method::Null => Ok(CacheState::None),
            _ => Err(Problem::refused(format!("method `{}` has nothing to work on in `null`", method.id()))
                .hint("use `--method null` with it, or name a file, directory or device")),
        };
    }
    if iowhy_path::facts::is_scsi_generic(facts) != method.scsi() {
        return Err(Problem::refused(format!("method `{}` cannot be used on `{}`", method.id(), facts.name)).hint(
            "SCSI generic devices (`/dev/sg0`) take sg, sg-direct, sg-mmap and sg-no-copy; nothing else does",
        ));
    }
    if facts.kind == TargetKind::CharDevice {
        return match state {
            CacheState::None => Ok(CacheState::None),
            _ => Err(Problem::refused(format!(
                "`--state {}` means nothing on `{}`, a character device without a page cache",
                state.id(),
                facts.name
            ))
            .hint("leave `--state` out")),
        };
    }
    if method == Method::Direct || method == Method::UringIopoll {
        return match state {
            CacheState::Direct | CacheState::None => Ok(CacheState::Direct),
            _ => Err(Problem::refused(format!(
                "method `{}` bypasses the page cache, so `--state {}` cannot hold",
                method.id(),
                state.id()
            ))
            .hint("use `--state direct`, or `--method pread`")),
        };
    }
    if state == CacheState::Direct {
        if method.mapped() {
            return Err(Problem::refused(format!(
                "method `{}` reads through the page cache; `--state direct` would change nothing and look as if it had",
                method.id()
            ))
            .hint("use `--state cold` or `--state warm` with mappings, or `--method direct`"));
        }
        if !matches!(
            method,
            Method::Uring | Method::UringSqpoll | Method::Pread | Method::Pwrite | Method::Null
        ) {
            return Err(Problem::refused(format!("method `{}` has no O_DIRECT form here", method.id()))
                .hint("use `--method direct` or `--method uring` with `--state direct`"));
        }
    }
    if facts.memory_backed && state == CacheState::Cold {
        return Err(Problem::refused(format!("`{}` lives in memory: it cannot be cold", facts.name))
            .hint("use `--state warm`, or a target on a disk"));
    }
    Ok(state)
}

fn check_alignment(workload: &Workload, facts: &TargetFacts) -> Result<(), Problem> {
    if workload.state != CacheState::Direct {
        return Ok(());
    }
    if facts.direct_supported == Some(false) {
        return Err(Problem::refused(format!("`{}` does not take O_DIRECT", facts.name))
            .hint("use `--state cold`, which empties the page cache before each round"));
    }
    let alignment = facts.direct_alignment_bytes.unwrap_or(512).max(1);
    if !workload.block_bytes.is_multiple_of(alignment) {
        return Err(Problem::refused(format!(
            "`--bs {}` is not a multiple of {alignment} bytes, which direct requests to `{}` need",
            Bytes(workload.block_bytes),
            facts.name
        ))
        .hint(format!("use a multiple of {alignment}, or `--state cold`")));
    }
    Ok(())
}

/// Splits `A:B` into targets. A path that exists as typed is one target; so is anything scripted, and a stripe.
pub fn split_targets(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    if !text.contains(':') || text.starts_with("scripted") || text.starts_with("stripe:") || exists(text) {
        return vec![text.to_owned()];
    }
    text.split(':').map(str::to_owned).collect()
}
