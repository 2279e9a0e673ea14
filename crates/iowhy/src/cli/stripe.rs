//! Options of `stripe`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, refused_value};
use iowhy_probe::target::stripe::parse_interleave;
use iowhy_sim::machine::Value;

use super::sim::{WorkloadArg, assignment, workload};
use super::value::{List, count, list, one_of, seed, time_from, value};

/// Members of a stripe at most.
const MAX_DISKS: u64 = 1024;

/// Options of `stripe`.
#[derive(Debug, Args)]
pub struct StripeArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: StripeAction,
}

/// What can be asked about stripes.
#[derive(Debug, Subcommand)]
pub enum StripeAction {
    /// Check a stripe against rules: whether all file system metadata is on one disk, how many requests are split, and
    /// which interleave nearby is better
    Lint(StripeLintArgs),

    /// Measure these disks, simulate a workload on stripes of them, and recommend an interleave; reads only by default
    Advise(StripeAdviseArgs),
}

/// Options of `stripe advise`.
#[derive(Debug, Args)]
pub struct StripeAdviseArgs {
    /// The disks: devices and files, which are only read, or directories for scratch files
    #[arg(value_name = "DISK", required = true)]
    pub disks: Vec<String>,

    /// The workload: `readers=8,bytes=64k,size=1g,pattern=permuted`, a TOML file, or a name, as for `iowhy sim`
    #[arg(long, value_name = "SPEC|FILE|NAME", value_parser = value(workload))]
    pub workload: Option<WorkloadArg>,

    /// Replay a trace instead, at its recorded times
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Replay the trace by N clients; each sends the next request when its last is answered
    #[arg(long, value_name = "N", requires = "trace", allow_hyphen_values = true, value_parser = value(count::<u32>(1..=1_000_000)))]
    pub clients: Option<u32>,

    /// Interleaves, as a list (`63k,126s,1m`; `s` is sectors) or a range that doubles (`4k..1m`) [default: 4k..16m]
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true, value_parser = value(interleaves))]
    pub interleave: Option<List<u64>>,

    /// Change the simulated machine: `layout.kind=ffs`; may be given again; `iowhy sim --machine keys` lists the keys
    #[arg(long, value_name = "KEY=VALUE", value_parser = value(assignment))]
    pub set: Vec<(String, Value)>,

    /// Also measure stripes of these disks in user space: the pick, the defaults and the worst; with `=all` every
    /// interleave
    #[arg(long, value_name = "some|all", num_args = 0..=1, require_equals = true, default_missing_value = "some",
          hide_possible_values = true, value_parser = one_of(&[Proofs::Some, Proofs::All], Proofs::id))]
    pub prove: Option<Proofs>,

    /// Time for measuring the disks [default: 30s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = value(time_from(Duration::from_secs(1))))]
    pub time: Option<Duration>,

    /// Time for each stripe that `--prove` measures, over all rounds [default: 8s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = value(time_from(Duration::from_millis(5))))]
    pub prove_time: Option<Duration>,

    /// Total size of the scratch files [default: that of the workload's file]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(units::parse_bytes_nonzero))]
    pub size: Option<u64>,

    /// Allow writes to DISK, which destroys its data; writes are then measured, too. Repeat it for each disk, named as above
    #[arg(long, value_name = "DISK")]
    pub destroy_data: Vec<String>,

    /// Seed of every order, pattern and interval
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: u64,
}

/// Options of `stripe lint`.
#[derive(Debug, Args)]
pub struct StripeLintArgs {
    /// A directory, file or device on md, LVM or btrfs; it is only read [default: the current directory, unless
    /// numbers are given]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,

    /// The file system: ffs, ext4, xfs, or none for requests alone
    #[arg(long, value_name = "FS", default_value = "ext4", hide_possible_values = true, value_parser = one_of(&LayoutOf::ALL, LayoutOf::id))]
    pub fs: LayoutOf,

    /// Bytes on one disk before the stripe continues on the next: `64k`, or sectors of 512 bytes, `126s`
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(parse_interleave))]
    pub interleave: Option<u64>,

    /// Number of disks
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<usize>(2..=MAX_DISKS)))]
    pub disks: Option<usize>,

    /// Bytes from the start of one group of the file system to the next, or sectors, `32768s` [default: what newfs, mkfs.ext4
    /// or mkfs.xfs choose]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(parse_interleave))]
    pub group: Option<u64>,

    /// Size of the volume [default: 1t]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(parse_interleave))]
    pub volume: Option<u64>,

    /// Block of the file system [default: 8k for ffs, else 4k]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(block))]
    pub block: Option<u64>,

    /// Number of files on the volume: only their inodes are read [default: all inodes]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u64>(1..=u64::MAX)))]
    pub files: Option<u64>,

    /// Sizes of requests: a list or a range [default: a block, 16k, 64k, 1m]
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true, value_parser = value(units::parse_sizes))]
    pub bs: Option<List<u64>>,
}

/// Which stripes `--prove` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proofs {
    /// The pick, the defaults and the worst.
    Some,
    /// Every interleave.
    All,
}

impl Proofs {
    fn id(self) -> &'static str {
        match self {
            Proofs::Some => "some",
            Proofs::All => "all",
        }
    }
}

/// The file system whose metadata a described stripe holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutOf {
    /// The Berkeley fast file system.
    Ffs,
    /// ext2, ext3 or ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// None: requests alone.
    None,
}

impl LayoutOf {
    const ALL: [LayoutOf; 4] = [LayoutOf::Ffs, LayoutOf::Ext4, LayoutOf::Xfs, LayoutOf::None];

    fn id(self) -> &'static str {
        match self {
            LayoutOf::Ffs => "ffs",
            LayoutOf::Ext4 => "ext4",
            LayoutOf::Xfs => "xfs",
            LayoutOf::None => "none",
        }
    }
}

/// More would simulate for hours.
const MAX_INTERLEAVES: usize = 64;

/// Interleaves, rising: a range of sizes, or a list that may name sectors.
fn interleaves(option: &str, text: &str) -> Result<List<u64>, Problem> {
    let mut all = match text.contains("..") {
        true => units::parse_sizes(option, text)?,
        false => list(parse_interleave)(option, text)?,
    };
    for bytes in &all {
        parse_interleave(option, &bytes.to_string())?;
    }
    all.sort_unstable();
    all.dedup();
    if all.len() > MAX_INTERLEAVES {
        let why = format!("more than {MAX_INTERLEAVES} interleaves");
        return Err(refused_value(option, text, &why, "give fewer, or a range that doubles: `4k..16m`"));
    }
    Ok(all)
}

/// A block of a file system.
fn block(option: &str, text: &str) -> Result<u64, Problem> {
    let bytes = parse_interleave(option, text)?;
    if !bytes.is_power_of_two() || bytes > 1 << 20 {
        let why = "blocks of file systems are powers of two up to 1 MiB";
        return Err(refused_value(option, text, why, format!("for example `{option} 4k`")));
    }
    Ok(bytes)
}
