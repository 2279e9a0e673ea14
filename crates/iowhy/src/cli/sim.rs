//! Options of `sim`.

use std::path::PathBuf;

use clap::Args;
use iowhy_core::problem::Problem;
use iowhy_core::units::refused_value;
use iowhy_sim::machine::{self, Shipped, Value};
use iowhy_sim::sweep::Axis;
use iowhy_sim::workload::{Workload, spec};
use iowhy_trace::{ColumnSpec, Format};

use super::trace::format;
use super::value::{count, seed, value};

/// Options of `sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// The machine: a TOML file (also one that `iowhy --save-model` wrote), the name of a built-in one, or `host`, which is
    /// measured first; `list` prints the names, `keys` the keys that can be set
    #[arg(long, value_name = "FILE|NAME|host", default_value = "host", value_parser = value(machine_or_list))]
    pub machine: MachineOrList,

    /// The workload: `readers=30,files=1000,...`, a TOML file with these keys, or a name; `list` prints keys and names
    #[arg(long, value_name = "SPEC|FILE|NAME", conflicts_with = "trace", value_parser = value(workload_or_list))]
    pub workload: Option<WorkloadOrList>,

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
    #[arg(long, value_name = "COLUMNS", requires = "trace", value_parser = value(ColumnSpec::parse))]
    pub columns: Option<ColumnSpec>,

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

/// `--machine`.
#[derive(Clone, Debug)]
pub enum MachineOrList {
    /// Print the names.
    List,
    /// Print the keys.
    Keys,
    /// A machine.
    Machine(MachineArg),
}

/// A machine, by its name.
#[derive(Clone, Debug)]
pub enum MachineArg {
    /// This machine, measured first.
    Host,
    /// One that ships.
    Shipped(&'static Shipped),
    /// A file that describes one.
    File(PathBuf),
}

fn machine_or_list(_: &str, text: &str) -> Result<MachineOrList, Problem> {
    let shipped = || machine::shipped().iter().find(|shipped| shipped.name == text);
    Ok(match text {
        "list" => MachineOrList::List,
        "keys" => MachineOrList::Keys,
        host if host.eq_ignore_ascii_case("host") => MachineOrList::Machine(MachineArg::Host),
        name => MachineOrList::Machine(
            shipped().map_or_else(|| MachineArg::File(PathBuf::from(name)), MachineArg::Shipped),
        ),
    })
}

/// `--workload`.
#[derive(Clone, Debug)]
pub enum WorkloadArg {
    /// Keys and values, or a name that ships.
    Spec {
        /// As it was typed.
        text: String,
        /// What it means.
        workload: Workload,
    },
    /// A file with the keys.
    File(PathBuf),
}

/// `--workload` of `sim`.
#[derive(Clone, Debug)]
pub enum WorkloadOrList {
    /// Print names and keys.
    List,
    /// A workload.
    Workload(WorkloadArg),
}

fn workload_or_list(option: &str, text: &str) -> Result<WorkloadOrList, Problem> {
    match text {
        "list" => Ok(WorkloadOrList::List),
        text => workload(option, text).map(WorkloadOrList::Workload),
    }
}

/// A word that is neither keys nor a name that ships is a file.
pub(super) fn workload(_: &str, text: &str) -> Result<WorkloadArg, Problem> {
    let is_spec = text.contains('=') || spec::SHIPPED.iter().any(|(name, _, _)| *name == text);
    match is_spec {
        true => Ok(WorkloadArg::Spec { text: text.to_owned(), workload: Workload::parse(text)? }),
        false => Ok(WorkloadArg::File(PathBuf::from(text))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_a_list_this_one_one_that_ships_or_a_file() {
        let machine = |text: &str| machine_or_list("--machine", text).unwrap();
        assert!(matches!(machine("list"), MachineOrList::List));
        assert!(matches!(machine("keys"), MachineOrList::Keys));
        assert!(matches!(machine("HOST"), MachineOrList::Machine(MachineArg::Host)));
        for shipped in machine::shipped() {
            let named = machine(shipped.name);
            assert!(
                matches!(named, MachineOrList::Machine(MachineArg::Shipped(one)) if one.name == shipped.name)
            );
        }
        let file = machine("netbsd-1998");
        assert!(
            matches!(file, MachineOrList::Machine(MachineArg::File(path)) if path.ends_with("netbsd-1998"))
        );
    }

    #[test]
    fn keys_of_a_workload_are_read_with_the_options_and_other_words_are_files() {
        let given = |text: &str| workload_or_list("--workload", text);
        assert!(matches!(given("list"), Ok(WorkloadOrList::List)));
        for (name, spec, _) in spec::SHIPPED {
            let Ok(WorkloadOrList::Workload(WorkloadArg::Spec { text, workload })) = given(name) else {
                panic!("{name} is a file");
            };
            assert_eq!((text.as_str(), workload), (*name, Workload::parse(spec).unwrap()));
        }
        assert!(matches!(given("./news-1999"), Ok(WorkloadOrList::Workload(WorkloadArg::File(_)))));
        assert!(given("reader=3").unwrap_err().hint.unwrap().contains("did you mean `readers`?"));
    }
}
