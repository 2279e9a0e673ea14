//! Options of `bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use iowhy_core::nearest::did_you_mean;
use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, refused_value};
use iowhy_core::workload::{CacheState, Direction, Method, Touch};

use super::value::{List, count, list, one_of, seed, value, word};

/// Threads of a cell at most.
pub const MAX_THREADS: u64 = 1024;
/// Requests in flight per thread at most.
pub const MAX_DEPTH: u64 = 4096;
/// Ranks at most.
const MAX_RANKS: u64 = 1_000_000;

/// Options of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// What to measure, as for `iowhy [PATH]`; several targets as `A:B`, each with its own threads
    #[arg(value_name = "TARGET", default_value = ".")]
    pub target: String,

    /// Direction: read, write, rw (mixed); with `rand` in front the default pattern is `permuted`
    #[arg(long, visible_alias = "readwrite", value_name = "RW", default_value = "read", value_parser = value(rw))]
    pub rw: Rw,

    /// Share of reads in a mix, per cent
    #[arg(long, value_name = "PERCENT", default_value = "50", allow_hyphen_values = true, value_parser = value(count::<u8>(0..=100)))]
    pub rwmixread: u8,

    /// Order of blocks: seq, random (blocks repeat), permuted (each block once), zipf:THETA, stride:N, reverse
    #[arg(long, value_name = "PATTERN", value_parser = value(|_: &str, text: &str| text.parse::<Pattern>()))]
    pub pattern: Option<Pattern>,

    /// Request sizes: a list `512,4k,64k` or a range `1k..1m` (powers of two)
    #[arg(long, visible_aliases = ["blocksize", "block-size"], value_name = "SIZES", default_value = "4k", allow_hyphen_values = true,
          value_parser = value(units::parse_sizes))]
    pub bs: List<u64>,

    /// Methods, as a list: how bytes are moved; `list` prints them
    #[arg(long, visible_alias = "ioengine", value_name = "METHODS", value_parser = value(methods))]
    pub method: Option<Methods>,

    /// States of the page cache, as a list of cold, warm, direct; each is set and verified
    /// [default: cold,warm for reads of files, else what the target allows]
    #[arg(long, value_name = "STATES", value_parser = value(list(word(&STATES, CacheState::id))))]
    pub state: Option<List<CacheState>>,

    /// Bypass the page cache: the same as `--state direct`
    #[arg(long, conflicts_with = "state", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_name = "0|1",
          value_parser = value(count::<u8>(0..=1)))]
    pub direct: Option<u8>,

    /// Threads, as a list; each has its own descriptor and its own part of the target
    #[arg(
        long,
        visible_alias = "numjobs",
        value_name = "N,...",
        default_value = "1",
        allow_hyphen_values = true,
        value_parser = value(list(count::<usize>(1..=MAX_THREADS)))
    )]
    pub threads: List<usize>,

    /// Queue depth of each thread, as a list (asynchronous methods only)
    #[arg(
        long,
        visible_alias = "depth",
        value_name = "N,...",
        default_value = "1",
        allow_hyphen_values = true,
        value_parser = value(list(count::<usize>(1..=MAX_DEPTH)))
    )]
    pub iodepth: List<usize>,

    /// Size of the scratch file, or of the part of the target that is used
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(units::parse_bytes_nonzero))]
    pub size: Option<u64>,

    /// Time for each cell, over all rounds
    #[arg(long, visible_alias = "runtime", value_name = "TIME", allow_hyphen_values = true, value_parser = value(units::parse_duration))]
    pub time: Option<Duration>,

    /// Stop a cell once its 95 % interval is this narrow (half width); at most --time, or 5 s
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = value(units::parse_percent))]
    pub precision: Option<f64>,

    /// One pass over --size instead of a time: each block once, and first-done and last-done of the threads
    #[arg(long, conflicts_with_all = ["time", "precision"])]
    pub once: bool,

    /// Open loop: planned requests per second over all threads; latency counts from the plan, lateness is kept
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = value(units::parse_rate))]
    pub rate: Option<f64>,

    /// Which of the bytes read are touched: none, line (a byte of each cache line), all
    #[arg(long, value_name = "TOUCH", default_value = "none", hide_possible_values = true, value_parser = one_of(&TOUCHES, Touch::id))]
    pub touch: Touch,

    /// Also measure the calibration cells of the (first) target, and split each cell's time over the layers
    #[arg(long)]
    pub layers: bool,

    /// Seed of every order, pattern and interval
    #[arg(long, visible_alias = "randseed", value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: u64,

    /// Allow writes to the block device or file NAME, destroying what is on it; NAME must be the target, typed again
    #[arg(long, value_name = "NAME")]
    pub destroy_data: Option<String>,

    /// Measure together with the other ranks of this parallel job, each on a scratch file of its own in the directory TARGET: the
    /// throughput of all, and of each. Rank and number are the launcher's; without one, `--ranks=M` starts M processes here
    #[arg(long, value_name = "M", num_args = 0..=1, require_equals = true, value_parser = value(count::<u64>(1..=MAX_RANKS)),
          conflicts_with_all = ["layers", "precision", "destroy_data", "export_fio"])]
    pub ranks: Option<Option<u64>>,

    /// Rank of this process, from 0, where no launcher says
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u64>(0..=MAX_RANKS - 1)))]
    pub rank: Option<u64>,

    /// The same with these numbers of ranks in each round: does the server limit them, or each rank's CPU?
    #[arg(long, value_name = "M,...", allow_hyphen_values = true, value_parser = value(list(count::<u64>(1..=MAX_RANKS))),
          conflicts_with_all = ["layers", "precision", "destroy_data", "export_fio"])]
    pub scale: Option<List<u64>>,

    /// How long the ranks wait for one that shows no sign of life
    #[arg(long, value_name = "LIMIT", default_value = "60s", allow_hyphen_values = true, value_parser = value(units::parse_duration))]
    pub rank_limit: Duration,

    /// Take these options from a fio job file; differences are reported, unsupported options are errors
    #[arg(long, value_name = "JOB", conflicts_with_all = ["target", "rw", "rwmixread", "pattern", "bs", "method", "state", "direct",
          "threads", "iodepth", "size", "time", "once", "rate"])]
    pub fio: Option<PathBuf>,

    /// Name of the job, if the file has several
    #[arg(long, value_name = "NAME", requires = "fio")]
    pub job: Option<String>,

    /// Also write the cells as a fio job file, to check the figures with fio
    #[arg(long, value_name = "FILE")]
    pub export_fio: Option<PathBuf>,
}

impl BenchArgs {
    /// Whether ranks measure together.
    pub fn of_ranks(&self) -> bool {
        self.ranks.is_some() || self.scale.is_some()
    }
}

/// Direction and order, as fio names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Sequential reads.
    Read,
    /// Random reads.
    Randread,
    /// Sequential writes.
    Write,
    /// Random writes.
    Randwrite,
    /// Sequential reads and writes.
    Rw,
    /// Random reads and writes.
    Randrw,
}

impl Rw {
    const ALL: [Rw; 6] = [Rw::Read, Rw::Randread, Rw::Write, Rw::Randwrite, Rw::Rw, Rw::Randrw];

    /// The word on the command line and in job files.
    pub fn id(self) -> &'static str {
        match self {
            Rw::Read => "read",
            Rw::Randread => "randread",
            Rw::Write => "write",
            Rw::Randwrite => "randwrite",
            Rw::Rw => "rw",
            Rw::Randrw => "randrw",
        }
    }

    /// Whether the order is random.
    pub fn is_random(self) -> bool {
        matches!(self, Rw::Randread | Rw::Randwrite | Rw::Randrw)
    }

    /// The direction; a mix has this share of reads, per cent.
    pub fn direction(self, read_percent: u8) -> Direction {
        match self {
            Rw::Read | Rw::Randread => Direction::Read,
            Rw::Write | Rw::Randwrite => Direction::Write,
            Rw::Rw | Rw::Randrw => Direction::Mixed(read_percent),
        }
    }
}

/// `--method`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Methods {
    /// Print all methods.
    Print,
    /// Measure with these.
    These(Vec<Method>),
}

/// States that can be asked for.
const STATES: [CacheState; 3] = [CacheState::Cold, CacheState::Warm, CacheState::Direct];
const TOUCHES: [Touch; 3] = [Touch::None, Touch::Line, Touch::All];

fn methods(option: &str, text: &str) -> Result<Methods, Problem> {
    match text {
        "list" => Ok(Methods::Print),
        _ => list(method)(option, text).map(Methods::These),
    }
}

/// A method, also by the name of fio's engine that does the same.
pub fn method(option: &str, text: &str) -> Result<Method, Problem> {
    let id = match text {
        "psync" => "pread",
        "sync" => "read",
        "io_uring" => "uring",
        other => other,
    };
    Method::from_id(id).ok_or_else(|| {
        let near = did_you_mean(text, Method::ALL.iter().map(|method| method.id()));
        refused_value(
            option,
            text,
            "unknown method",
            format!("{near}`iowhy bench --method list` prints them all"),
        )
    })
}

/// As [`Rw::id`], with fio's other name of a mix.
pub fn rw(option: &str, text: &str) -> Result<Rw, Problem> {
    word(&Rw::ALL, Rw::id)(option, if text == "readwrite" { "rw" } else { text })
}
