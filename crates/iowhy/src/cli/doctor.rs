//! Options of `doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use iowhy_core::units;

use super::value::{seed, time_from, value};

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// A directory, a file or a device: its settings are read [default: the current directory]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,

    /// Change one setting, measure canonical requests with the old and the new value in turn, and restore the old value: scheduler, read_ahead_kb, nr_requests, wbt_lat_usec, iostats, nomerges, thp, dirty_ratio,
    /// dirty_bytes, dirty_background_ratio, dirty_background_bytes, governor, atime, lazytime. If the path is on several
    /// devices, all of them change, or one: `--try sda/nomerges=0`. Needs root, and affects every program meanwhile
    #[arg(long = "try", value_name = "[DEVICE/]KEY=VALUE", allow_hyphen_values = true)]
    pub trial: Option<String>,

    /// --try: time to spend, including setup [default: 20s]
    #[arg(long, value_name = "TIME", requires = "trial", allow_hyphen_values = true, value_parser = value(time_from(Duration::from_secs(2))))]
    pub time: Option<Duration>,

    /// --try: size of the scratch file, or of the part of the file that is measured [default: 256m]
    #[arg(long, value_name = "SIZE", requires = "trial", allow_hyphen_values = true, value_parser = value(units::parse_bytes_nonzero))]
    pub size: Option<u64>,

    /// --try: smallest relative change to report [default: 5%]
    #[arg(long, value_name = "SHARE", requires = "trial", allow_hyphen_values = true, value_parser = value(units::parse_percent))]
    pub threshold: Option<f64>,

    /// --try: seed of every order, pattern and interval [default: 1]
    #[arg(long, value_name = "N", requires = "trial", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: Option<u64>,
}
