//! Options of `iowhy [PATH]`, `iowhy -- CMD` and `attach`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Tier;
use iowhy_core::units;

use super::value::{count, one_of, seed, time_from, value};
use super::when::When;

/// Ranks are C's `int` in every launcher.
const MAX_RANK: u64 = i32::MAX as u64;

/// Options of `iowhy [PATH]`. All are optional here: one that is given before a subcommand, where it has no effect, is
/// an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct PathArgs {
    /// A directory (a scratch file is made in it and removed), a file, a device (both read only), `null`, `memory`,
    /// `scripted[:MODEL.toml]`, or several that take turns, `stripe:64k:A,B,C` [default: the current directory]
    #[arg(value_name = "PATH")]
    pub target: Option<String>,

    /// Time to spend at most, including setup [default: 30s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = value(time_from(Duration::from_secs(2))))]
    pub time: Option<Duration>,

    /// Size of the scratch file, or of the part of the file that is measured [default: 256m]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(units::parse_bytes_nonzero))]
    pub size: Option<u64>,

    /// Save the fitted model of the stack as TOML
    #[arg(long, value_name = "FILE")]
    pub save_model: Option<PathBuf>,

    /// Also print the calibration cells, the fitted costs and the block sizes that the fit did not use
    #[arg(long, short)]
    pub verbose: bool,

    /// Seed of every order, pattern and interval [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: Option<u64>,
}

impl PathArgs {
    /// The first option that was given, as it is typed.
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

/// Options of `iowhy -- CMD`.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Options of `iowhy -- CMD`")]
pub struct WatchArgs {
    /// The program to run and profile, with its arguments. It keeps its stdin, stdout and stderr
    #[arg(last = true, value_name = "CMD", help_heading = "Arguments")]
    pub program: Vec<OsString>,

    /// Write the report to FILE instead of stderr
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Record every call, and afterwards replay them unchanged and repaired, to test the advice of each finding (needs root or
    /// CAP_BPF and CAP_PERFMON)
    #[arg(long)]
    pub prove: bool,

    /// Run CMD, and create files, as this user with all groups of that user [default: under sudo, the user who called it]
    #[arg(long, value_name = "NAME|UID", allow_hyphen_values = true)]
    pub user: Option<String>,

    /// Options shared with `attach`.
    #[command(flatten)]
    pub sight: SightArgs,
}

/// Options of every command that profiles a program.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct SightArgs {
    /// Write all stacks and their times (microseconds) to FILE, one line per stack, for flame graph tools
    #[arg(long, value_name = "FILE")]
    pub flamegraph: Option<PathBuf>,

    /// Write a profile for the Firefox Profiler (profiler.firefox.com opens the file on this machine) to FILE: samples, waits, requests
    /// at devices, slow calls and findings by time. Compressed where FILE ends in `.gz`
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Write a trace for Perfetto (ui.perfetto.dev opens the file on this machine) to FILE: states of threads, requests at devices and
    /// slow calls by time. Compressed where FILE ends in `.gz`
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,

    /// Fitted costs of this machine, as saved by `iowhy --save-model`; they make predicted gains more precise
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// Use no more than this tier: none (no rights), stacks (kernel stacks), clock (a clock on every CPU), observer (block
    /// requests and system calls)
    #[arg(long, value_name = "TIER", ignore_case = true, hide_possible_values = true, value_parser = one_of(&[Tier::None, Tier::Stacks, Tier::Clock, Tier::Observer], Tier::id))]
    pub tier: Option<Tier>,

    /// Do not count system calls: their numbers, sizes, order and files are then unknown, and a program that makes a million
    /// calls a second runs up to half as fast again
    #[arg(long)]
    pub no_counts: bool,

    /// Do not repeat calls of the program afterwards (up to 4 s, on scratch files beside its own): no gain is printed then
    #[arg(long)]
    pub no_calibrate: bool,

    /// Record every call in its order, for `iowhy prove RECORD` (needs root or CAP_BPF and CAP_PERFMON); `--prove` does, too
    #[arg(long, conflicts_with = "no_counts")]
    pub record_calls: bool,

    /// Rank of this process in a parallel job, from 0 [default: by the variables of Open MPI, PMI, PALS, Flux, PMIx, a Slurm
    /// step, torchrun, or an indexed Job of Kubernetes]. `{rank}` and `{host}` in names of outputs are filled in
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u64>(0..=MAX_RANK)))]
    pub rank: Option<u64>,

    /// Number of ranks of the job
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = value(count::<u64>(1..=MAX_RANK)))]
    pub ranks: Option<u64>,
}

impl SightArgs {
    /// The files for programs that show profiles.
    pub fn profile_files(&self) -> [(&'static str, Option<&Path>); 3] {
        [
            ("--flamegraph", self.flamegraph.as_deref()),
            ("--profile", self.profile.as_deref()),
            ("--perfetto", self.perfetto.as_deref()),
        ]
    }

    /// The same, to fill their names in.
    pub fn profile_files_mut(&mut self) -> [(&'static str, Option<&mut PathBuf>); 3] {
        [
            ("--flamegraph", self.flamegraph.as_mut()),
            ("--profile", self.profile.as_mut()),
            ("--perfetto", self.perfetto.as_mut()),
        ]
    }
}

impl WatchArgs {
    /// Whether `attach` takes this option of `iowhy -- CMD`, too.
    pub fn is_for_attach(name: &str) -> bool {
        [
            "--prove",
            "--flamegraph",
            "--profile",
            "--perfetto",
            "--model",
            "--tier",
            "--no-counts",
            "--no-calibrate",
            "--record-calls",
            "--rank",
            "--ranks",
        ]
        .contains(&name)
    }

    /// The first option that was given, as it is typed.
    pub fn first_given(&self) -> Option<&'static str> {
        [
            ("--output", self.output.is_some()),
            ("--prove", self.prove),
            ("--user", self.user.is_some()),
            ("--flamegraph", self.sight.flamegraph.is_some()),
            ("--profile", self.sight.profile.is_some()),
            ("--perfetto", self.sight.perfetto.is_some()),
            ("--model", self.sight.model.is_some()),
            ("--tier", self.sight.tier.is_some()),
            ("--no-counts", self.sight.no_counts),
            ("--no-calibrate", self.sight.no_calibrate),
            ("--record-calls", self.sight.record_calls),
            ("--rank", self.sight.rank.is_some()),
            ("--ranks", self.sight.ranks.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }
}

/// Options of `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Id of the process to profile, with its threads and the children that it starts from now on
    #[arg(value_name = "PID", allow_hyphen_values = true, value_parser = value(pid))]
    pub pid: u32,

    /// How long to profile [default: until the process ends, or Ctrl-C]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = value(time_from(Duration::from_millis(10))))]
    pub time: Option<Duration>,

    /// Wait for a call that takes longer, and say what it waited for and who caused that: an operation (read, write, sync, open,
    /// close, stat, names, descriptor, map) and a time, such as 'sync>50ms' (needs root, or CAP_BPF and CAP_PERFMON). All calls are
    /// timed, and the slowest twenty of the operation listed
    #[arg(long, value_name = "OP>TIME", value_parser = value(When::parse),
        conflicts_with_all = ["prove", "flamegraph", "profile", "perfetto", "model", "tier", "no_counts", "no_calibrate", "record_calls"])]
    pub when: Option<When>,

    /// End after so many slow calls [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "when", value_parser = value(count::<usize>(1..=100)))]
    pub count: Option<usize>,

    /// Record every call, and afterwards replay those of the seconds that were profiled, unchanged and repaired, to test the advice of
    /// each finding (needs root or CAP_BPF and CAP_PERFMON). The program runs on; nothing of its files is dropped from the page cache
    #[arg(long)]
    pub prove: bool,

    /// Options shared with `iowhy -- CMD`.
    #[command(flatten)]
    pub sight: SightArgs,
}

/// The id of a process. The kernel counts up to 2^22.
fn pid(option: &str, text: &str) -> Result<u32, Problem> {
    match text.parse::<u32>() {
        Ok(pid) if pid > 0 && i32::try_from(pid).is_ok() => Ok(pid),
        _ => {
            let hint = if text.chars().any(char::is_alphabetic) && !text.contains(char::is_whitespace) {
                format!("`pidof {text}` prints the process ids of a program")
            } else {
                "`ps -e` lists all processes with their ids".to_owned()
            };
            Err(units::refused_value(option, text, "not a process id", hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_positive_numbers_are_process_ids() {
        assert_eq!(pid("PID", "1"), Ok(1));
        for text in ["0", "-1", "", "x", "1.5", "4294967296", "2147483648", " 1"] {
            let problem = pid("PID", text).unwrap_err();
            assert!(problem.exit_code() == 2 && problem.hint.is_some(), "{problem}");
        }
        assert!(pid("PID", "postgres").unwrap_err().hint.unwrap().contains("pidof postgres"));
    }
}
