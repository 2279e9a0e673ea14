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

    /// Make so many records durable by one sync, or `all` of the run [default: 100]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub batch: Option<String>,

    /// Merge requests that follow each other to so many bytes [default: 64k]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub request: Option<String>,

    /// Keep so many requests in flight [default: 32 on a ring, 16 threads]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub depth: Option<String>,

    /// Where only asking the device for less helps, leave out all but one byte in so many [default: 2]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub subsample: Option<String>,

    /// Try these changes too, advised or not: direct, deeper, larger, mapped, windows (a mapping for each read), random
    /// (the hint that the order is random), aligned (buffers that begin where a page does)
    #[arg(long, value_name = "CHANGE,...")]
    pub what_if: Option<String>,

    /// Seed of the order of the arms and of the intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Make the scratch files, and read the program's, as this user [default: under sudo, the user who called it]
    #[arg(long, value_name = "NAME|UID", allow_hyphen_values = true)]
    pub user: Option<String>,

    /// Replay a record of another machine too
    #[arg(long)]
    pub force: bool,
}
