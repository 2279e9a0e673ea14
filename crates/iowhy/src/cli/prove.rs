//! Options of `iowhy prove`.

use std::path::PathBuf;

use clap::Args;

/// Options of `prove`.
#[derive(Debug, Args)]
pub struct ProveArgs {
    /// A record of a watched program, made with `iowhy --json RECORD -- CMD`
    #[arg(value_name = "RECORD")]
    pub record: PathBuf,

    /// Rounds in which all arms take turns, 5 to 99
    #[arg(long, value_name = "N", default_value = "9", allow_hyphen_values = true)]
    pub rounds: String,

    /// Seed of the order of the arms and of the intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Replay a record of another machine too
    #[arg(long)]
    pub force: bool,
}
