//! The command line. Every option is documented once, here, at its definition; `--help` is generated from it.
//!
//! Options that take a quantity take a hyphen too, so that `--size -1` is refused by the name of the option.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const AFTER_HELP: &str = "\
Examples:
  iowhy                      where the time goes under the present directory
  iowhy /data/big.bin        the same for a file (read only, never changed)
  sudo iowhy /dev/nvme0n1    the same for a device (reads only)
  iowhy bench --rw randread --bs 512..1m --state warm,direct .
Exit codes: 0 done, 1 measured but something failed, 2 usage or refused.";

/// Where the time goes between a program's read or write and the disk, and what limits it.
///
/// Without a subcommand it measures the I/O path under PATH and prints the time of a handful of canonical requests,
/// split over the layers of the kernel, the limit, and what each way of reading costs.
#[derive(Debug, Parser)]
#[command(name = "iowhy", version, after_help = AFTER_HELP)]
pub struct Cli {
    /// Options of the main job.
    #[command(flatten)]
    pub path: PathArgs,

    /// One of the other questions.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Options that every command takes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The other questions.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure one workload, or a sweep: every list option multiplies the cells
    Bench(Box<BenchArgs>),
}

/// How results are shown.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Write the whole result with raw samples as one JSON object to FILE, or to stdout with `-`
    #[arg(long, global = true, value_name = "FILE|-")]
    pub json: Option<PathBuf>,

    /// No progress and no warnings on stderr; the result still comes
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// When to use colour; NO_COLOR is honoured
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto)]
    pub color: ColorWhen,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options of the main job. All are optional here, so that one given before a subcommand, where it would do nothing,
/// is seen.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct PathArgs {
    /// A directory (a scratch file is made in it and removed), a file, a device (both read only), `null`, `memory`,
    /// or `scripted[:MODEL.toml]` [default: the present directory]
    #[arg(value_name = "PATH")]
    pub target: Option<String>,

    /// Time to spend at most, set-up included [default: 30s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub budget: Option<String>,

    /// Size of the scratch file, or of the part of the file that is measured [default: 256m]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub size: Option<String>,

    /// Save the fitted model of the stack as TOML
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,

    /// Also print the ladder, the fitted costs and the held-out block sizes
    #[arg(long, short)]
    pub verbose: bool,

    /// Seed of every order, pattern and interval [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Options of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to measure: as for the main job; several targets, one thread set each, as `A:B`
    #[arg(value_name = "TARGET", default_value = ".")]
    pub target: String,

    /// Direction: read, write, rw (mixed); with `rand` in front the pattern is `permuted`
    #[arg(long, visible_alias = "readwrite", value_name = "RW", default_value = "read")]
    pub rw: String,

    /// Share of reads in a mix, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub rwmixread: u8,

    /// Order of blocks: seq, random (blocks repeat), permuted (each block once), zipf:THETA, stride:N, reverse
    #[arg(long, value_name = "PATTERN")]
    pub pattern: Option<String>,

    /// Request sizes: a list `512,4k,64k` or a range `1k..1m` (powers of two)
    #[arg(long, visible_aliases = ["blocksize", "block-size"], value_name = "SIZES", default_value = "4k", allow_hyphen_values = true)]
    pub bs: String,

    /// Ways of moving bytes, as a list; `list` prints them
    #[arg(long, visible_alias = "ioengine", value_name = "METHODS")]
    pub method: Option<String>,

    /// States of the page cache, as a list of cold, warm, direct; each is set and verified
    /// [default: cold,warm for reads of files, else what the target allows]
    #[arg(long, value_name = "STATES")]
    pub state: Option<String>,

    /// Bypass the page cache: the same as `--state direct`
    #[arg(long, conflicts_with = "state", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_name = "0|1",
          value_parser = clap::value_parser!(u8).range(0..=1))]
    pub direct: Option<u8>,

    /// Threads, as a list; each has its own descriptor and its own part of the target
    #[arg(
        long,
        visible_alias = "numjobs",
        value_name = "N,...",
        default_value = "1",
        allow_hyphen_values = true
    )]
    pub threads: String,

    /// Requests that each thread keeps in flight, as a list (asynchronous methods only)
    #[arg(
        long,
        visible_alias = "depth",
        value_name = "N,...",
        default_value = "1",
        allow_hyphen_values = true
    )]
    pub iodepth: String,

    /// Size of the scratch file, or of the part of the target that is used
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub size: Option<String>,

    /// Time for each cell, over all rounds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub runtime: Option<String>,

    /// Stop a cell once its 95 % interval is this narrow (half width); at most --runtime, or 5 s
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub precision: Option<String>,

    /// One pass over --size instead of a time: each block once, and first-done and last-done of the threads
    #[arg(long, conflicts_with_all = ["runtime", "precision"])]
    pub once: bool,

    /// Open loop: planned requests per second over all threads; latency counts from the plan, lateness is kept
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<String>,

    /// What is done with bytes that arrived: none, line (a byte of each cache line), all
    #[arg(long, value_name = "TOUCH", default_value = "none")]
    pub touch: String,

    /// Also measure the ladder under the (first) target, and split each cell's time over the layers
    #[arg(long)]
    pub layers: bool,

    /// Seed of every order, pattern and interval
    #[arg(long, visible_alias = "randseed", value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Allow writes to the block device or file NAME, destroying what is on it; NAME must be the target, typed again
    #[arg(long, value_name = "NAME")]
    pub destroy_data: Option<String>,
}
