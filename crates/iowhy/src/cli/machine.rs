//! Options of `iowhy --all`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use iowhy_core::units;

use super::value::value;
use crate::shell;

/// How long the machine is watched without `--time`.
const TIME: Duration = Duration::from_secs(10);

/// Options of `iowhy --all`; `--time` is shared with `iowhy [PATH]`.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Options of `iowhy --all`")]
#[command(group(ArgGroup::new("subject").args(["all", "cgroup", "container"]).multiple(true)))]
pub struct MachineArgs {
    /// Watch the whole machine: who waits for I/O or memory, on which device, caused by whom (needs root, or CAP_BPF and
    /// CAP_PERFMON) [default time: 10s]
    #[arg(long)]
    pub all: bool,

    /// Watch the machine, and report the waits of one control group: its directory, or its path as in /proc/PID/cgroup
    #[arg(long, value_name = "GROUP")]
    pub cgroup: Option<PathBuf>,

    /// The same for a running container of Docker, Podman, containerd or Kubernetes: its name, or the beginning of its identifier
    #[arg(long, value_name = "NAME|ID", conflicts_with = "cgroup")]
    pub container: Option<String>,

    /// Draw a new account each second on the terminal, until `q` is pressed or `--time` is over; the last one is printed as text
    #[arg(long, requires = "subject")]
    pub live: bool,

    /// End by itself where iowhy and its programs in the kernel take more than this share of all CPU time (the mean of the last three
    /// seconds)
    #[arg(long, value_name = "SHARE", default_value = "5%", allow_hyphen_values = true, requires = "subject",
          value_parser = value(units::parse_percent))]
    pub max_overhead: f64,
}

impl MachineArgs {
    /// Whether the machine is to be watched.
    pub fn given(&self) -> Option<&'static str> {
        [("--all", self.all), ("--cgroup", self.cgroup.is_some()), ("--container", self.container.is_some())]
            .into_iter()
            .find_map(|(name, given)| given.then_some(name))
    }

    /// The same with its value, as a shell takes it.
    pub fn subject(&self) -> String {
        let named = |option: &str, value: &str| format!("{option} {}", shell::quoted(value));
        match (&self.cgroup, &self.container) {
            (Some(group), _) => named("--cgroup", &group.to_string_lossy()),
            (None, Some(container)) => named("--container", container),
            (None, None) => "--all".to_owned(),
        }
    }

    /// How long.
    pub fn time(&self, given: Option<Duration>) -> Duration {
        given.unwrap_or(TIME)
    }
}
