//! Options of `doctor`.

use std::path::PathBuf;

use clap::Args;

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The path whose settings are looked at: a directory, a file or a device [default: the current directory]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,

    /// Change one setting for a while, measure canonical requests with the old and the new value in turn, and put the
    /// old one back: scheduler, read_ahead_kb, nr_requests, wbt_lat_usec, iostats, nomerges, thp, dirty_ratio,
    /// dirty_bytes, dirty_background_ratio, dirty_background_bytes, governor, atime, lazytime. Of a path on several
    /// devices it changes all of them, or one: `--try sda/nomerges=0`. Needs root, and holds for every program meanwhile
    #[arg(long = "try", value_name = "[DEVICE/]KEY=VALUE", allow_hyphen_values = true)]
    pub trial: Option<String>,

    /// --try: time to spend, set-up included [default: 20s]
    #[arg(long, value_name = "TIME", requires = "trial", allow_hyphen_values = true)]
    pub time: Option<String>,

    /// --try: size of the scratch file, or of the part of the file that is measured [default: 256m]
    #[arg(long, value_name = "SIZE", requires = "trial", allow_hyphen_values = true)]
    pub size: Option<String>,

    /// --try: a difference matters from this share on [default: 5%]
    #[arg(long, value_name = "SHARE", requires = "trial", allow_hyphen_values = true)]
    pub threshold: Option<String>,

    /// --try: seed of every order, pattern and interval [default: 1]
    #[arg(long, value_name = "N", requires = "trial")]
    pub seed: Option<u64>,
}
