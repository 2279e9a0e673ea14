//! Options of `tree`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, refused_value};
use iowhy_probe::tree::{MAX_READERS, Order, Phase, State};

use super::value::{List, count, list, one_of, seed, value, word};

/// Files of a tree at most: each takes about 100 bytes of memory.
pub const MAX_FILES: u64 = 20_000_000;

/// Options of `tree`.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Directory to create the tree in; the tree is removed afterwards [default: the current directory]
    #[arg(value_name = "DIR", conflicts_with_all = ["from", "keep", "remove"])]
    pub target: Option<PathBuf>,

    /// Read the existing files below DIR instead
    #[arg(long, value_name = "DIR", conflicts_with_all = ["keep", "remove", "dirs", "sizes"])]
    pub from: Option<PathBuf>,

    /// Create the tree in DIR and keep it; later runs reuse or finish it
    #[arg(long, value_name = "DIR", conflicts_with = "remove")]
    pub keep: Option<PathBuf>,

    /// Only remove the tree that `--keep`, or a killed run (`.iowhy-tree-N`), left in DIR
    #[arg(long, value_name = "DIR")]
    pub remove: Option<PathBuf>,

    /// Number of files [default: 10000]; with --from the first N that are found
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u64>(1..=MAX_FILES)))]
    pub files: Option<u64>,

    /// Number of directories [default: 100]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u64>(1..=MAX_FILES)))]
    pub dirs: Option<u64>,

    /// Sizes of files, in equal shares
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true, default_value = "930,3030,6102", value_parser = value(sizes))]
    pub sizes: List<u64>,

    /// Number of threads, each with its own list of files
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = value(count::<u64>(1..=MAX_READERS as u64)))]
    pub threads: u64,

    /// Files in each thread's list, chosen at random [default: all files, divided among the threads]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u64>(1..=MAX_FILES)))]
    pub files_per_thread: Option<u64>,

    /// Order of a list: directory (as the directory lists them), inode, random
    #[arg(long, value_name = "ORDER", default_value = "random", hide_possible_values = true, value_parser = one_of(&Order::ALL, Order::id))]
    pub order: Order,

    /// Phases, of create, sync, stat, list, read, rename, delete [default: all; stat, list, read where the tree stays]
    #[arg(long, value_name = "PHASES", value_parser = value(list(word(&Phase::ALL, Phase::id))))]
    pub phases: Option<List<Phase>>,

    /// State of the files' data before they are read, set and verified: cold or warm
    #[arg(long, value_name = "STATE", default_value = "cold", hide_possible_values = true, value_parser = one_of(&[State::Cold, State::Warm], State::id))]
    pub state: State,

    /// Time for all of the 3 to 12 rounds
    #[arg(long, value_name = "TIME", default_value = "15s", allow_hyphen_values = true, value_parser = value(units::parse_duration))]
    pub time: Duration,

    /// Seed of lists and intervals
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: u64,
}

/// A larger file is not small; `bench` measures those.
const MAX_FILE_BYTES: u64 = 16 << 20;

fn sizes(option: &str, text: &str) -> Result<List<u64>, Problem> {
    // Not `list`: a size that is given twice has two shares.
    let sizes = text
        .split(',')
        .map(|size| units::parse_bytes(option, size.trim()))
        .collect::<Result<List<u64>, Problem>>()?;
    match sizes.iter().find(|size| **size > MAX_FILE_BYTES) {
        None => Ok(sizes),
        Some(_) => Err(refused_value(
            option,
            text,
            "a small file has at most 16 MiB",
            "`iowhy bench --once` measures large files",
        )),
    }
}
