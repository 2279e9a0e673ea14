//! The command line. Every option is documented once, here, at its definition; `--help` is generated from it.
//!
//! Options that take a quantity take a hyphen too, so that `--size -1` is refused by the name of the option.

mod classic;
mod doctor;
mod prove;
mod records;
mod stripe;
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use classic::ClassicArgs;
pub use doctor::DoctorArgs;
pub use prove::ProveArgs;
pub use records::{CompareArgs, ExportArgs, ExportFormat, FailOn, HistoryArgs, ReportArgs};
pub use stripe::{StripeAction, StripeAdviseArgs, StripeArgs, StripeLintArgs};
pub use tree::TreeArgs;

const AFTER_HELP: &str = "\
Examples:
  iowhy -- tar cf out.tar dir    why that program is slow, and what would help
  iowhy --json run.json -- make -j4
                                 the same, with everything that was seen as JSON
  sudo iowhy attach 1234 --time 10s
                                 the same for a program that runs already
  iowhy explain sync-per-write   what a finding means
  iowhy                          where the time goes under the current directory
  iowhy /data/big.bin            the same for a file (read only, never changed)
  sudo iowhy /dev/nvme0n1        the same for a device (reads only)
  iowhy mrc trace.csv --size 64MiB,1GiB
                                 how often caches of these sizes would miss
  iowhy bench --rw randread --bs 512..1m --state warm,direct .
  iowhy sim --machine netbsd-1999 --workload news-1999 --sweep volume.interleave=8..32768
Exit codes: 0 done, 1 measured but something failed, 2 usage or refused.
`iowhy -- CMD` ends with the code of CMD (128 + N when signal N killed it,
127 not found, 126 not executable).";

const USAGE: &str = "\
iowhy [OPTIONS] -- CMD [ARG]...
       iowhy [OPTIONS] [PATH]
       iowhy COMMAND";

/// Where the time goes between a program's read or write and the disk, what limits it, and what would help.
///
/// `iowhy -- CMD` runs CMD, watches it, and says on stderr where its time went and what would help; CMD keeps its input,
/// output and exit code. `iowhy [PATH]` measures the I/O path under PATH: the time of a handful of canonical
/// requests, split over the layers of the kernel, the limit, and what each way of reading costs.
#[derive(Debug, Parser)]
#[command(name = "iowhy", version, after_help = AFTER_HELP, override_usage = USAGE)]
pub struct Cli {
    /// Options of the main job.
    #[command(flatten)]
    pub path: PathArgs,

    /// A program to watch, and how.
    #[command(flatten)]
    pub watch: WatchArgs,

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

    /// Watch a program that runs already: where its time goes, and what would help
    Attach(AttachArgs),

    /// The manual page of a finding; without ID, all findings with a line each
    Explain(ExplainArgs),

    /// What share of a trace's reads and writes misses a cache, by policy and size: miss-ratio curves
    Mrc(MrcArgs),

    /// Look into trace files of many tools, and convert them
    Trace(TraceArgs),

    /// What if: time, throughput and where the time goes on another machine, simulated
    Sim(Box<SimArgs>),

    /// Many small files: made, looked at, listed, read, renamed, removed; files a second and each call's latency
    Tree(Box<TreeArgs>),

    /// Is the advice right? Replays a watched run as it was and repaired, and says what each repair gains
    Prove(ProveArgs),

    /// Did a change help? Two records, before and after, cell by cell
    Compare(CompareArgs),

    /// The records kept by name with `--save-as NAME`
    History(HistoryArgs),

    /// A record for other programs: CSV of any table, fio's JSON, a job that fio can run
    Export(ExportArgs),

    /// What this machine allows, and which settings under PATH cost or hide something
    Doctor(DoctorArgs),

    /// One page of HTML (or Markdown) of one or several records, to show somebody
    Report(ReportArgs),

    /// Five published experiments, 1989 to 2006: then, here and now, and what a model says
    Classic(ClassicArgs),

    /// Stripes: is this interleave good under this file system, and which suits these disks and this workload
    Stripe(StripeArgs),
}

/// How results are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the whole result with raw samples as one JSON object to FILE, or to stdout with `-`
    #[arg(long, global = true, value_name = "FILE|-")]
    pub json: Option<PathBuf>,

    /// Keep the result as JSON under NAME too: `iowhy history` lists what is kept, `@NAME` stands for it wherever a
    /// record is read. Runs of one program are kept beside each other under one NAME
    #[arg(long, global = true, value_name = "NAME")]
    pub save_as: Option<String>,

    /// No progress and no warnings on stderr; the result still comes
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// Under sudo: run CMD, and make files, as root, not as the user who called sudo
    #[arg(long, global = true)]
    pub as_root: bool,

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
    /// `scripted[:MODEL.toml]`, or several that take turns, `stripe:64k:A,B,C` [default: the current directory]
    #[arg(value_name = "PATH")]
    pub target: Option<String>,

    /// Time to spend at most, set-up included [default: 30s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,

    /// Size of the scratch file, or of the part of the file that is measured [default: 256m]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub size: Option<String>,

    /// Save the fitted model of the stack as TOML
    #[arg(long, value_name = "FILE")]
    pub save_model: Option<PathBuf>,

    /// Also print the ladder, the fitted costs and the held-out block sizes
    #[arg(long, short)]
    pub verbose: bool,

    /// Seed of every order, pattern and interval [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl PathArgs {
    /// What was given of the main job, by the name that the user typed.
    pub fn first_given(&self) -> Option<&'static str> {
        [
            ("--time", self.time.is_some()),
            ("--size", self.size.is_some()),
            ("--save-model", self.save_model.is_some()),
            ("--verbose", self.verbose),
            ("--seed", self.seed.is_some()),
            ("PATH", self.target.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }
}

/// A program to watch, and how.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Options of `iowhy -- CMD`")]
pub struct WatchArgs {
    /// The program to run and to watch, with its arguments. Its stdin, stdout and stderr stay its own
    #[arg(last = true, value_name = "CMD", help_heading = "Arguments")]
    pub program: Vec<OsString>,

    /// Write the report to FILE instead of stderr
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Afterwards replay the run as it was and repaired, and say of each finding whether its advice is right
    #[arg(long)]
    pub prove: bool,

    /// Run CMD, and make files, as this user, with all groups of that user [default: under sudo, the user who called it]
    #[arg(long, value_name = "NAME|UID", allow_hyphen_values = true)]
    pub user: Option<String>,

    /// How to watch.
    #[command(flatten)]
    pub sight: SightArgs,
}

/// How to watch.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct SightArgs {
    /// Write all stacks with their times as folded lines (microseconds), for flame graphs
    #[arg(long, value_name = "FILE")]
    pub flamegraph: Option<PathBuf>,

    /// What this machine costs, as saved by `iowhy --save-model`; it sharpens predicted gains
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// Use no more than this tier: none (no rights), stacks (kernel stacks), clock (a clock on every CPU), observer (block
    /// requests and system calls)
    #[arg(long, value_name = "TIER", value_enum, ignore_case = true, hide_possible_values = true)]
    pub tier: Option<TierArg>,

    /// No bursts of system-call tracing: what they tell of sizes and files is not known then
    #[arg(long)]
    pub no_bursts: bool,
}

impl WatchArgs {
    /// Whether an option of watching, by its name, is one that `attach` takes too.
    pub fn of_attach(name: &str) -> bool {
        ["--flamegraph", "--model", "--tier", "--no-bursts"].contains(&name)
    }

    /// The first option of watching that was given, by the name that the user typed.
    pub fn first_given(&self) -> Option<&'static str> {
        [
            ("--output", self.output.is_some()),
            ("--prove", self.prove),
            ("--user", self.user.is_some()),
            ("--flamegraph", self.sight.flamegraph.is_some()),
            ("--model", self.sight.model.is_some()),
            ("--tier", self.sight.tier.is_some()),
            ("--no-bursts", self.sight.no_bursts),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }
}

/// A tier, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TierArg {
    /// No rights.
    None,
    /// Kernel stacks of the program's own threads.
    Stacks,
    /// A clock on every CPU.
    Clock,
    /// Block requests and system calls.
    Observer,
}

/// Options of `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Number of the process to watch, with its threads and the children that it makes from now on
    #[arg(value_name = "PID", allow_hyphen_values = true)]
    pub pid: String,

    /// Watch so long [default: until it ends, or Ctrl-C]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,

    /// How to watch.
    #[command(flatten)]
    pub sight: SightArgs,
}

/// Options of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A finding, such as `sync-per-write`
    #[arg(value_name = "ID")]
    pub id: Option<String>,
}

/// Options of `trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: TraceAction,
}

/// What can be done with a trace file.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// One screen: what it is, requests, sizes, distinct bytes, order, time, latency, and what was lost in reading it
    Stat(TraceStatArgs),

    /// The first requests, as every command here sees them
    Head(TraceHeadArgs),

    /// Write it in another format; what that cannot carry is counted and said
    Convert(TraceConvertArgs),

    /// The formats that can be read and written
    Formats,
}

/// A trace file, and how to read it.
#[derive(Debug, Args)]
pub struct TraceInputArgs {
    /// The trace, or `-` for stdin; .zst and .gz are seen by their content
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Its format, where that cannot be told from its content; `iowhy trace formats` lists them
    #[arg(long, visible_alias = "from", value_name = "FORMAT")]
    pub format: Option<String>,

    /// Columns of a CSV file, by number from 1 or by the names of its header: `time=1,id=2,size=3`; also op, offset,
    /// latency, stream; with units as in time_us, latency_ms, offset_sectors
    #[arg(long, value_name = "MEANING=COLUMN,...")]
    pub columns: Option<String>,

    /// blktrace and blkparse: the step that is the request: queue (Q, before merging, no latency) or issue (D, as the
    /// device saw it, with the latency to its completion) [default: queue]
    #[arg(long, value_name = "STEP")]
    pub action: Option<String>,
}

/// Options of `trace stat`.
#[derive(Debug, Args)]
pub struct TraceStatArgs {
    /// The trace.
    #[command(flatten)]
    pub input: TraceInputArgs,
}

/// Options of `trace head`.
#[derive(Debug, Args)]
pub struct TraceHeadArgs {
    /// The trace.
    #[command(flatten)]
    pub input: TraceInputArgs,

    /// How many requests
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub number: u64,
}

/// Options of `trace convert`.
#[derive(Debug, Args)]
pub struct TraceConvertArgs {
    /// The trace.
    #[command(flatten)]
    pub input: TraceInputArgs,

    /// The file to write, or `-` for stdout; its extension says the format
    #[arg(value_name = "OUT")]
    pub output: PathBuf,

    /// The format to write
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,

    /// Replace OUT if it is there
    #[arg(long)]
    pub force: bool,
}

/// Options of `mrc`.
#[derive(Debug, Args)]
pub struct MrcArgs {
    /// The trace.
    #[command(flatten)]
    pub input: TraceInputArgs,

    /// Policies, as a list of fifo, lru, clock, sieve, s3fifo, arc, 2q, slru, lfu, belady (the bound); or `all`
    #[arg(long, value_name = "POLICIES", default_value = "fifo,lru,clock,sieve,s3fifo,arc")]
    pub policy: String,

    /// Cache sizes, as a list: `20000` blocks (or objects), `1%` of all that the trace touches, `64MiB`
    /// [default: 0.1 % to 100 % in steps of about three]
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true)]
    pub size: Option<String>,

    /// Each object is cached as one, whatever its size, as simulators of key-value caches count [default: blocks]
    #[arg(long, conflicts_with = "block")]
    pub objects: bool,

    /// Size of a block; requests are split
    #[arg(long, value_name = "SIZE", default_value = "4k", allow_hyphen_values = true)]
    pub block: String,

    /// Follow only a sample: a share of the blocks (`1%`, `0.01`; `100%` is all of them), or a number of them (`8192`, at
    /// least 64); its error is stated
    #[arg(long, value_name = "RATE|COUNT", allow_hyphen_values = true)]
    pub sample: Option<String>,

    /// Leave the requests of the other kind out, as though they had never come: they are not counted and leave nothing in
    /// the cache
    #[arg(long, value_name = "KIND", value_enum, default_value_t = MrcOnly::All)]
    pub only: MrcOnly,

    /// Sizes of each curve in the plot and in JSON, beside those asked for; 0 for none
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub points: u32,
}

/// Which requests `mrc` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MrcOnly {
    /// Reads and writes; a write leaves its block in the cache.
    All,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
}

/// Options of `bench`.
#[derive(Clone, Debug, Args)]
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
    #[arg(long, visible_alias = "runtime", value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,

    /// Stop a cell once its 95 % interval is this narrow (half width); at most --time, or 5 s
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub precision: Option<String>,

    /// One pass over --size instead of a time: each block once, and first-done and last-done of the threads
    #[arg(long, conflicts_with_all = ["time", "precision"])]
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

    /// Take a job file of fio over, in place of the options above; what iowhy does otherwise is said, and what it does
    /// not carry out is refused by name
    #[arg(long, value_name = "JOB", conflicts_with_all = ["target", "rw", "rwmixread", "pattern", "bs", "method", "state", "direct",
          "threads", "iodepth", "size", "time", "once", "rate"])]
    pub fio: Option<PathBuf>,

    /// Which job of the file, where it holds several
    #[arg(long, value_name = "NAME", requires = "fio")]
    pub job: Option<String>,

    /// Also write the cells as a job file that fio runs, to check the figures with
    #[arg(long, value_name = "FILE")]
    pub export_fio: Option<PathBuf>,
}

/// Options of `sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// The machine: a TOML file (also one that `iowhy --save-model` wrote), a name that ships, or `host`, which is measured
    /// first; `list` prints names, `keys` what can be set
    #[arg(long, value_name = "FILE|NAME|host", default_value = "host")]
    pub machine: String,

    /// What it does: `readers=30,files=1000,...`, a TOML file with such keys, or a name; `list` prints both
    #[arg(long, value_name = "SPEC|FILE|NAME", conflicts_with = "trace")]
    pub workload: Option<String>,

    /// Replay a trace instead, at its own times; `-` is stdin
    #[arg(long, value_name = "FILE|-")]
    pub trace: Option<PathBuf>,

    /// Replay the trace by N clients that take its next request as soon as theirs is answered
    #[arg(long, value_name = "N", requires = "trace", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clients: Option<u32>,

    /// Only the first N requests of the trace
    #[arg(long, value_name = "N", requires = "trace")]
    pub requests: Option<u64>,

    /// Format of the trace, when it cannot be told from its beginning
    #[arg(long, value_name = "FORMAT", requires = "trace")]
    pub format: Option<String>,

    /// Columns of a CSV trace, as `time=1,id=2,size=3`
    #[arg(long, value_name = "COLUMNS", requires = "trace")]
    pub columns: Option<String>,

    /// Change the machine: `volume.interleave=126`; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// A table over values: `volume.interleave=8..32768,126` (ranges double; `*4` or `+10` behind one says otherwise);
    /// given again, every combination
    #[arg(long, value_name = "KEY=VALUES")]
    pub sweep: Vec<String>,

    /// Run also what is refused otherwise: a sweep of more than a minute, a run that may fill more than half of the free
    /// memory
    #[arg(long)]
    pub force: bool,

    /// Seed of everything that chance decides
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Two options of one identifier make every command line that has them end in a panic of the parser.
    #[test]
    fn no_option_of_a_command_takes_the_identifier_of_one_that_all_have() {
        let whole = Cli::command();
        whole.clone().debug_assert();
        let global: Vec<&str> =
            whole.get_arguments().filter(|a| a.is_global_set()).map(|a| a.get_id().as_str()).collect();
        assert!(global.contains(&"json"), "{global:?}");
        let mut commands: Vec<&clap::Command> = whole.get_subcommands().collect();
        while let Some(command) = commands.pop() {
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                assert!(!global.contains(&id), "`{}` has its own `{id}`", command.get_name());
            }
            commands.extend(command.get_subcommands());
        }
    }

    /// All commands, and those below them.
    fn commands() -> Vec<clap::Command> {
        let mut all = vec![Cli::command()];
        let mut next = 0;
        while next < all.len() {
            let below: Vec<clap::Command> = all[next].get_subcommands().cloned().collect();
            all.extend(below);
            next += 1;
        }
        all
    }

    #[test]
    fn how_long_a_command_may_take_is_one_option_everywhere() {
        for command in commands() {
            for argument in command.get_arguments() {
                let takes_time = argument.get_value_names().is_some_and(|names| names[0] == "TIME");
                let name = argument.get_long().unwrap_or_default();
                // The second time of `stripe advise` is that of each stripe it proves.
                assert_eq!(
                    takes_time,
                    ["time", "prove-time"].contains(&name),
                    "{}: {name}",
                    command.get_name()
                );
                let aliases = argument.get_all_aliases().unwrap_or_default();
                assert!(!aliases.contains(&"runtime") || command.get_name() == "bench", "{name}");
            }
        }
    }
}
