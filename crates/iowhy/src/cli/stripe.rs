//! Options of `stripe`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
    /// Hold a stripe against the rules: does the file system's metadata all fall on one disk, how many requests are split,
    /// which interleave nearby is better
    Lint(StripeLintArgs),

    /// Measure these disks (reads only), simulate a workload on every stripe of them, and say which interleave to take
    Advise(StripeAdviseArgs),
}

/// Options of `stripe advise`.
#[derive(Debug, Args)]
pub struct StripeAdviseArgs {
    /// The disks: devices and files are only read, in directories scratch files are made and removed
    #[arg(value_name = "DISK", required = true)]
    pub disks: Vec<String>,

    /// What will be asked of them: `readers=8,bytes=64k,size=1g,pattern=permuted`, a TOML file, or a name, as for `iowhy sim`
    #[arg(long, value_name = "SPEC|FILE|NAME")]
    pub workload: Option<String>,

    /// A trace instead, at its own times
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// The trace by N clients that take its next request as soon as theirs is answered
    #[arg(long, value_name = "N", requires = "trace", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clients: Option<u32>,

    /// Interleaves, as a list (`63k,126s,1m`; `s` is sectors) or a range that doubles (`4k..1m`) [default: 4k..16m]
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true)]
    pub interleave: Option<String>,

    /// Change the simulated machine: `layout.kind=ffs`; may be given again; `iowhy sim --machine keys` lists the keys
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Measure stripes of these disks in user space: the pick, the defaults and the worst; with `=all` every interleave
    #[arg(long, value_name = "some|all", num_args = 0..=1, require_equals = true, default_missing_value = "some")]
    pub prove: Option<String>,

    /// Time for measuring the disks [default: 30s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,

    /// Time for each stripe that `--prove` measures, over all rounds [default: 8s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub prove_time: Option<String>,

    /// Size of the scratch files, all together [default: that of the workload's file]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub size: Option<String>,

    /// Allow writes to this disk, destroying what is on it, so that writes are measured, too; may be given again, once for each
    /// disk, as it was typed
    #[arg(long, value_name = "DISK")]
    pub destroy_data: Vec<String>,

    /// Seed of every order, pattern and interval
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Options of `stripe lint`.
#[derive(Debug, Args)]
pub struct StripeLintArgs {
    /// A directory, file or device on md, LVM or btrfs; it is only looked at [default: the current directory, unless
    /// numbers are given]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,

    /// The file system: ffs, ext4, xfs, or none for requests alone
    #[arg(long, value_name = "FS", default_value = "ext4")]
    pub fs: String,

    /// Bytes that one disk holds before it is the next one's turn: `64k`, or sectors of 512 bytes, `126s`
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub interleave: Option<String>,

    /// Disks
    #[arg(long, value_name = "N")]
    pub disks: Option<u64>,

    /// Bytes from the start of one group of the file system to the next, or sectors, `32768s` [default: what newfs, mkfs.ext4
    /// or mkfs.xfs choose]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub group: Option<String>,

    /// Size of the volume [default: 1t]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub volume: Option<String>,

    /// Block of the file system [default: 8k for ffs, else 4k]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub block: Option<String>,

    /// Files on the volume: their inodes are those that are read [default: all inodes]
    #[arg(long, value_name = "N")]
    pub files: Option<u64>,

    /// Sizes of requests: a list or a range [default: a block, 16k, 64k, 1m]
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true)]
    pub bs: Option<String>,
}
