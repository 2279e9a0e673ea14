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

const MAX_THREADS: usize = 1024;
const MAX_DEPTH: usize = 4096;
/// A sweep beyond this is a typing error more often than a wish.
const MAX_CELLS: usize = 2000;

impl Sweep {
    /// Reads the options.
    ///
    /// # Errors
    /// A refusal that names the option.
    pub fn from_args(args: &BenchArgs) -> Result<Sweep, Problem> {
        let (asked, random) = parse_direction(&args.rw, args.rwmixread)?;
        let pattern = match &args.pattern {
            Some(text) => text.parse()?,
            // Each block once, as fio's random map does it: a cold block must not be asked for twice.
            None if random => Pattern::Permuted,
            None => Pattern::Sequential,
        };
        let states = match (&args.state, args.direct) {
            (Some(text), _) => list("--state", text, state)?,
            (None, Some(1)) => vec![CacheState::Direct],
            _ => Vec::new(),
        };
        let sweep = Sweep {
            direction: asked,
            pattern,
            block_bytes: units::parse_sizes("--bs", &args.bs)?,
            methods: args
                .method
                .as_deref()
                .map(|text| list("--method", text, method))
                .transpose()?
                .unwrap_or_default(),
            states,
            threads: list("--threads", &args.threads, |o, t| count(o, t, MAX_THREADS))?,
            depths: list("--iodepth", &args.iodepth, |o, t| count(o, t, MAX_DEPTH))?,
            size_bytes: args.size.as_deref().map(|text| size("--size", text)).transpose()?,
            runtime: args.time.as_deref().map(|text| units::parse_duration("--time", text)).transpose()?,
            precision: args
                .precision
                .as_deref()
                .map(|text| units::parse_percent("--precision", text))
                .transpose()?,
            once: args.once,
            rate_per_second: args
                .rate
                .as_deref()
                .map(|text| units::parse_rate("--rate", text))
                .transpose()?,
            touch: touch(&args.touch)?,
            seed: args.seed,
        };
        if sweep.runtime == Some(Duration::ZERO) {
            return Err(Problem::refused("`--time 0` leaves no time to measure")
                .hint("give a time such as `--time 5s`"));
        }
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
                "these lists make {} cells; {MAX_CELLS} is the most",
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

fn parse_direction(text: &str, read_percent: u8) -> Result<(Direction, bool), Problem> {
    Ok(match text {
        "read" => (Direction::Read, false),
        "randread" => (Direction::Read, true),
        "write" => (Direction::Write, false),
        "randwrite" => (Direction::Write, true),
        "rw" | "readwrite" => (Direction::Mixed(read_percent), false),
        "randrw" => (Direction::Mixed(read_percent), true),
        _ => {
            return Err(Problem::refused(format!("`--rw {text}` is not a direction"))
                .hint("one of read, randread, write, randwrite, rw, randrw"));
        }
    })
}

/// Reads a comma list without duplicates.
fn list<T: PartialEq>(
    option: &str,
    text: &str,
    item: impl Fn(&str, &str) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    let mut items = Vec::new();
    for part in text.split(',') {
        let value = item(option, part.trim())?;
        if !items.contains(&value) {
            items.push(value);
        }
    }
    Ok(items)
}

fn state(option: &str, text: &str) -> Result<CacheState, Problem> {
    [CacheState::Cold, CacheState::Warm, CacheState::Direct].into_iter().find(|s| s.id() == text).ok_or_else(
        || {
            Problem::refused(format!("`{option} {text}` is not a cache state"))
                .hint("a list of cold, warm, direct")
        },
    )
}

fn method(option: &str, text: &str) -> Result<Method, Problem> {
    // The names that fio users type for the same things.
    let id = match text {
        "psync" => "pread",
        "sync" => "read",
        "io_uring" => "uring",
        other => other,
    };
    Method::from_id(id).ok_or_else(|| {
        Problem::refused(format!("`{option} {text}` is not a method"))
            .hint("`iowhy bench --method list` prints them all")
    })
}

fn touch(text: &str) -> Result<Touch, Problem> {
    [Touch::None, Touch::Line, Touch::All].into_iter().find(|t| t.id() == text).ok_or_else(|| {
        Problem::refused(format!("`--touch {text}` is not known")).hint("one of none, line, all")
    })
}

fn count(option: &str, text: &str, most: usize) -> Result<usize, Problem> {
    match text.parse::<usize>() {
        Ok(n) if (1..=most).contains(&n) => Ok(n),
        _ => Err(Problem::refused(format!("`{option} {text}` is not a whole number from 1 to {most}"))
            .hint(format!("for example `{option} 4` or `{option} 1,4`"))),
    }
}

/// A size that must not be zero.
pub fn size(option: &str, text: &str) -> Result<u64, Problem> {
    match units::parse_bytes(option, text)? {
        0 => Err(Problem::refused(format!("`{option} {text}` leaves nothing to measure"))
            .hint(format!("for example `{option} 256m`"))),
        bytes => Ok(bytes),
    }
}

/// Splits `A:B` into targets. A path that exists as typed is one target; so is anything scripted, and a stripe.
pub fn split_targets(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    if !text.contains(':') || text.starts_with("scripted") || text.starts_with("stripe:") || exists(text) {
        return vec![text.to_owned()];
    }
    text.split(':').map(str::to_owned).collect()
}
