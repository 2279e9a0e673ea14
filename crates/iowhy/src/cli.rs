//! The command line. Every option is documented and typed once, at its definition in the file of its command.
//!
//! Options that take a quantity accept a leading hyphen, so `--size -1` is refused as a value of `--size`.

pub mod bench;
mod classic;
mod doctor;
mod machine;
pub mod mrc;
mod prove;
mod records;
mod replay;
mod sim;
mod stripe;
mod trace;
pub mod tree;
pub mod usage;
pub mod value;
mod watch;
mod when;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::record::Kind;

pub use bench::BenchArgs;
pub use classic::{ClassicArgs, Experiments};
pub use doctor::{DoctorArgs, Wish};
pub use machine::MachineArgs;
pub use mrc::{MrcArgs, MrcOnly};
pub use prove::ProveArgs;
pub use records::{CompareArgs, ExportArgs, ExportFormat, FailOn, HistoryArgs, MergeArgs, ReportArgs};
pub use replay::ReplayArgs;
pub use sim::{MachineArg, MachineOrList, SimArgs, WorkloadArg, WorkloadOrList};
pub use stripe::{LayoutOf, Proofs, StripeAction, StripeAdviseArgs, StripeArgs, StripeLintArgs};
pub use trace::{TraceAction, TraceArgs, TraceConvertArgs, TraceHeadArgs, TraceInputArgs};
pub use tree::TreeArgs;
pub use watch::{AttachArgs, PathArgs, SightArgs, WatchArgs};
pub use when::When;

const AFTER_HELP: &str = "\
Examples:
  iowhy -- tar cf out.tar dir    why this program is slow, and what would help
  iowhy --json run.json -- make -j4
                                 the same, with all data as JSON
  sudo iowhy attach 1234 --time 10s
                                 the same for a running process
  sudo iowhy attach 1234 --when 'sync>50ms'
                                 wait for a slow sync, and say what it waited for
  sudo iowhy --all --time 10s    the whole machine: who waits for what, caused by whom
  iowhy explain sync-per-write   what a finding means
  iowhy                          I/O path of the current directory
  iowhy /data/big.bin            the same for a file (read only)
  sudo iowhy /dev/nvme0n1        the same for a device (read only)
  iowhy mrc trace.csv --size 64MiB,1GiB
                                 miss ratio of caches of these sizes
  iowhy bench --rw randread --bs 512..1m --state warm,direct .
  iowhy sim --machine netbsd-1999 --workload news-1999 --sweep volume.interleave=8..32768
Exit codes: 0 done, 1 measured but something failed, 2 usage error or refused.
`iowhy -- CMD` exits with the code of CMD (128 + N if signal N killed it,
127 not found, 126 not executable).";

const USAGE: &str = "\
iowhy [OPTIONS] -- CMD [ARG]...
       iowhy [OPTIONS] [PATH]
       iowhy [OPTIONS] --all
       iowhy COMMAND";

/// Where the time goes between a program's read or write and the disk, what limits it, and what would help.
///
/// `iowhy -- CMD` runs and profiles CMD, and reports on stderr where its time went and what would help. CMD keeps its
/// input, output and exit code. `iowhy [PATH]` measures the I/O path under PATH: the time of a few canonical requests by
/// kernel layer, what limits them, and the cost of each read method.
#[derive(Debug, Parser)]
#[command(name = "iowhy", version, after_help = AFTER_HELP, override_usage = USAGE)]
pub struct Cli {
    /// Options of `iowhy [PATH]`.
    #[command(flatten)]
    pub path: PathArgs,

    /// Options of `iowhy -- CMD`.
    #[command(flatten)]
    pub watch: WatchArgs,

    /// Options of `iowhy --all`.
    #[command(flatten)]
    pub machine: MachineArgs,

    /// A subcommand.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Options that every command takes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure one workload, or a sweep: every combination of the list options
    Bench(Box<BenchArgs>),

    /// Profile a running process: where its time goes, and what would help
    Attach(AttachArgs),

    /// Explain a finding or a word of a screen; without WORD, list all findings
    Explain(ExplainArgs),

    /// Miss-ratio curves of a trace: the share of requests that miss a cache, by policy and size
    Mrc(MrcArgs),

    /// Inspect and convert trace files of many tools
    Trace(TraceArgs),

    /// Simulate a workload or trace on another machine: time, throughput, and where the time goes
    Sim(Box<SimArgs>),

    /// Create, stat, list, read, rename and remove many small files: files per second and latency per call
    Tree(Box<TreeArgs>),

    /// Test the advice: replay a recorded run unchanged and repaired, and measure the gain of each repair
    Prove(ProveArgs),

    /// How the recorded I/O of a program would do on other file systems or disks: no program is needed
    Replay(ReplayArgs),

    /// Did a change help? Compare two records, before and after
    Compare(CompareArgs),

    /// One account over the ranks of a parallel job: spread, stragglers, findings by how many ranks have them
    Merge(MergeArgs),

    /// List the records saved with `--save-as NAME`
    History(HistoryArgs),

    /// Export a record: CSV of any table, OpenMetrics, fio's JSON, a fio job file
    Export(ExportArgs),

    /// Rights of this user, and settings under PATH that cost performance or hide data
    Doctor(DoctorArgs),

    /// Print the JSON schema of a kind of record; without KIND, a list of all kinds
    Schema(SchemaArgs),

    /// Write one or more records as an HTML or Markdown page
    Report(ReportArgs),

    /// Repeat five published experiments, 1989 to 2006: published, measured here, and modelled
    Classic(ClassicArgs),

    /// Check the interleave of a stripe, or recommend one for these disks and this workload
    Stripe(StripeArgs),
}

/// How results are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the result with all samples as one JSON object to FILE; `-` is stdout
    #[arg(long, global = true, value_name = "FILE|-")]
    pub json: Option<PathBuf>,

    /// Also save the result as JSON under NAME: `iowhy history` lists saved records, and every command that reads a
    /// record takes `@NAME`. Several runs of one program are kept under one NAME
    #[arg(long, global = true, value_name = "NAME")]
    pub save_as: Option<String>,

    /// No progress and no warnings on stderr; only the result
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// Under sudo: run CMD, and create files, as root instead of the user who called sudo
    #[arg(long, global = true)]
    pub as_root: bool,

    /// When to use colour; `auto` honours NO_COLOR
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

/// Options of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A finding, such as `sync-per-write`, or a word of a screen: a layer, limit, column or verdict
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
}

/// Options of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// A kind of record, as in its key `kind`
    #[arg(value_name = "KIND", hide_possible_values = true)]
    pub kind: Option<Kind>,
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
