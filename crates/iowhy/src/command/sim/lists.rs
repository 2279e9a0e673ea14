//! What `sim --machine list|keys` and `--workload list` print. What may not enter: machines that are run.

use iowhy_sim::machine::{self, Machine};
use iowhy_sim::workload::spec;

use crate::output;
use crate::record::Kind;
use crate::record::lists::{Listed, NamedEntry, Offer, WorkloadEntry};
use iowhy_view::terminal::wrap::{MIN_WIDTH, wrap};

/// Columns of a screen at most.
const MAX_COLUMNS: usize = 100;

fn width() -> usize {
    output::width().clamp(MIN_WIDTH, MAX_COLUMNS)
}

/// A list: for people, and as a record.
pub(super) struct List {
    pub(super) screen: String,
    pub(super) record: Listed<Offer>,
}

/// A name and what it means.
type Row = (String, String);

pub(super) fn machines() -> List {
    let width = width();
    let rows = |shipped: &[machine::Shipped]| -> Vec<Row> {
        let about =
            |s: &machine::Shipped| Machine::from_toml(s.text, s.name).map(|m| m.about).unwrap_or_default();
        shipped.iter().map(|s| (s.name.to_owned(), about(s))).collect()
    };
    let (machines, devices) = (rows(machine::shipped()), rows(machine::device_models()));
    List {
        screen: format!(
            "machines, for `--machine`:\n{}\ndevices, for `--set device.model=`:\n{}",
            table(&machines, width),
            table(&devices, width)
        ),
        record: record(Offer::Machines { machines: entries(&machines), devices: entries(&devices) }),
    }
}

pub(super) fn keys() -> List {
    let width = width();
    let named = |key: &machine::Key| {
        let costs = !key.path.contains('.') && !matches!(key.path, "name" | "about");
        let path =
            if costs { format!("{}.per_{{call,page,byte}}_ns", key.path) } else { key.path.to_owned() };
        (path, key.about.to_owned())
    };
    let rows: Vec<Row> = machine::KEYS.iter().map(named).collect();
    List { screen: table(&rows, width), record: record(Offer::Keys { keys: entries(&rows) }) }
}

pub(super) fn workloads() -> List {
    let width = width();
    let mut screen = String::from("workloads, for `--workload`:\n");
    for (name, text, about) in spec::SHIPPED {
        screen.push_str(&format!("  {name}\n{}    {text}\n", wrap(about, width, "    ", "    ")));
    }
    let keys: Vec<Row> =
        spec::KEYS.iter().map(|(key, about)| ((*key).to_owned(), (*about).to_owned())).collect();
    screen.push_str("\nkeys of a workload, as `key=value,key=value`:\n");
    screen.push_str(&table(&keys, width));
    let workloads = spec::SHIPPED
        .iter()
        .map(|(name, text, about)| WorkloadEntry {
            name: (*name).to_owned(),
            about: (*about).to_owned(),
            text: (*text).to_owned(),
        })
        .collect();
    List { screen, record: record(Offer::Workloads { workloads, keys: entries(&keys) }) }
}

/// Names in a column of their own, and beside each what it is, over as many lines as it takes.
fn table(rows: &[Row], width: usize) -> String {
    let column = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 2;
    let indent = " ".repeat(column);
    rows.iter().map(|(name, about)| wrap(about, width, &format!("{name:<column$}"), &indent)).collect()
}

fn entries(rows: &[Row]) -> Vec<NamedEntry> {
    rows.iter().map(|(name, about)| NamedEntry { name: name.clone(), about: about.clone() }).collect()
}

fn record(list: Offer) -> Listed<Offer> {
    Listed::new(Kind::List, "sim", list)
}
