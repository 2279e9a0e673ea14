//! Options of `tree`.

use std::path::PathBuf;

use clap::Args;

/// Options of `tree`.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Directory to make the tree in; it is removed afterwards [default: the current directory]
    #[arg(value_name = "DIR", conflicts_with_all = ["from", "keep", "remove"])]
    pub target: Option<PathBuf>,

    /// Walk the files that are in DIR instead, read-only
    #[arg(long, value_name = "DIR", conflicts_with_all = ["keep", "remove", "dirs", "sizes"])]
    pub from: Option<PathBuf>,

    /// Make the tree in DIR and leave it there; a later run takes it up, also one that was interrupted
    #[arg(long, value_name = "DIR", conflicts_with = "remove")]
    pub keep: Option<PathBuf>,

    /// Remove the tree that `--keep`, or a run that was killed (`.iowhy-tree-N`), left in DIR, and do nothing else
    #[arg(long, value_name = "DIR")]
    pub remove: Option<PathBuf>,

    /// Files [default: 10000]; with --from the first N that are found
    #[arg(long, value_name = "N")]
    pub files: Option<u64>,

    /// Directories that they are spread over [default: 100]
    #[arg(long, value_name = "N")]
    pub dirs: Option<u64>,

    /// Sizes of files, mixed evenly [default: 930,3030,6102]
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true)]
    pub sizes: Option<String>,

    /// Threads side by side, each with its own list of files
    #[arg(long, visible_alias = "numjobs", value_name = "N", default_value_t = 1)]
    pub threads: u64,

    /// Files in each thread's list, chosen by chance [default: all files, shared out]
    #[arg(long, value_name = "N")]
    pub files_per_thread: Option<u64>,

    /// Order of a list: directory (as the directory lists them), inode, random
    #[arg(long, value_name = "ORDER", default_value = "random")]
    pub order: String,

    /// What is done, of create, sync, stat, list, read, rename, delete [default: all; stat, list, read where the tree stays]
    #[arg(long, value_name = "PHASES")]
    pub phases: Option<String>,

    /// State of the files' data before they are read, set and verified: cold or warm
    #[arg(long, value_name = "STATE", default_value = "cold")]
    pub state: String,

    /// Time for all rounds, of which there are 3 to 12 [default: 15s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,

    /// Seed of lists and intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
