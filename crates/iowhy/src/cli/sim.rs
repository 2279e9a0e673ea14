//! Options of `sim`.

use std::path::PathBuf;

use clap::Args;
use iowhy_core::problem::Problem;
use iowhy_core::units::refused_value;
use iowhy_sim::machine::Value;
use iowhy_sim::sweep::Axis;
use iowhy_trace::Format;

use super::trace::format;
use super::value::{count, seed, value};

/// Options of `sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// The machine: a TOML file (also one that `iowhy --save-model` wrote), the name of a built-in one, or `host`, which is
    /// measured first; `list` prints the names, `keys` the keys that can be set
    #[arg(long, value_name = "FILE|NAME|host", default_value = "host")]
    pub machine: String,

    /// The workload: `readers=30,files=1000,...`, a TOML file with these keys, or a name; `list` prints keys and names
    #[arg(long, value_name = "SPEC|FILE|NAME", conflicts_with = "trace")]
    pub workload: Option<String>,

    /// Replay a trace instead, at its recorded times; `-` is stdin
    #[arg(long, value_name = "FILE|-")]
    pub trace: Option<PathBuf>,

    /// Replay the trace by N clients; each sends the next request when its last is answered
    #[arg(long, value_name = "N", requires = "trace", allow_hyphen_values = true, value_parser = value(count::<u32>(1..=1_000_000)))]
    pub clients: Option<u32>,

    /// Only the first N requests of the trace
    #[arg(long, value_name = "N", requires = "trace", allow_hyphen_values = true, value_parser = value(count::<u64>(0..=u64::MAX)))]
    pub requests: Option<u64>,

    /// Format of the trace, where its content does not show it
    #[arg(long, value_name = "FORMAT", requires = "trace", value_parser = value(format))]
    pub format: Option<Format>,

    /// Columns of a CSV trace, as `time=1,id=2,size=3`
    #[arg(long, value_name = "COLUMNS", requires = "trace")]
    pub columns: Option<String>,

    /// Change the machine: `volume.interleave=126`; may be given again
    #[arg(long, value_name = "KEY=VALUE", value_parser = value(assignment))]
    pub set: Vec<(String, Value)>,

    /// A table over values: `volume.interleave=8..32768,126` (ranges double, or step by a `*4` or `+10` after them);
    /// given again, every combination
    #[arg(long, value_name = "KEY=VALUES", value_parser = value(|_: &str, text: &str| Axis::parse(text)))]
    pub sweep: Vec<Axis>,

    /// Also run a sweep of more than a minute, or a run that may fill more than half of the free memory
    #[arg(long)]
    pub force: bool,

    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: u64,
}

/// `KEY=VALUE` of a machine.
pub(super) fn assignment(option: &str, text: &str) -> Result<(String, Value), Problem> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        let hint = format!(
            "for example `{option} volume.interleave=126`; `iowhy sim --machine keys` lists the keys"
        );
        refused_value(option, text, "not KEY=VALUE", hint)
    })?;
    Ok((key.trim().to_owned(), Value::Text(value.trim().to_owned())))
}
