//! The tables of a whole machine: who waits, who causes it, devices. The screen of `--all`, a page and the live view have these rows.

use iowhy_core::machine::Device;
use iowhy_core::text::visible;
use iowhy_core::units;
use iowhy_diagnose::machine::{Culprit, Waiter};
use iowhy_view::document::{Cell, Cut, Shape, Table};

use super::super::figures::{bytes, count, percent_of};
use super::{HARDLY, NAMED, PARTS, device, named, seconds, who, words};
use crate::record::whole_machine::WholeMachineRecord;

/// A device that a process waits for most of its time.
const MOST: f64 = 0.5;

/// A column of a table of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Column {
    /// Time of its waits.
    #[default]
    Time,
    Waits,
    Longest,
    /// Bytes of its requests at devices.
    Bytes,
    Cpu,
    Queued,
    For,
    CausedBy,
}

impl Column {
    /// What processes may be sorted by.
    pub(crate) const KEYS: [Column; 5] =
        [Column::Time, Column::Longest, Column::Bytes, Column::Cpu, Column::Queued];
    /// The columns of `--all`.
    const OF_SCREEN: [Column; 5] =
        [Column::Time, Column::Waits, Column::Longest, Column::For, Column::CausedBy];
    /// Those of the live view.
    const OF_LIVE: [Column; 7] = [
        Column::Time,
        Column::Longest,
        Column::Bytes,
        Column::Cpu,
        Column::Queued,
        Column::For,
        Column::CausedBy,
    ];

    /// The word above it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Column::Time => "time",
            Column::Waits => "waits",
            Column::Longest => "longest",
            Column::Bytes => "bytes/s",
            Column::Cpu => "cpu",
            Column::Queued => "queued",
            Column::For => "for",
            Column::CausedBy => "caused by",
        }
    }

    fn heading(self) -> String {
        let mark = if matches!(self, Column::For | Column::CausedBy) { "" } else { "#" };
        format!("{mark}{}", self.word())
    }
}

/// A process, or who else is a subject, with what is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process<'a> {
    /// Index of the subject.
    pub(crate) subject: u32,
    /// Its waits; none: it did not wait, or is a thread of the kernel.
    pub(crate) waiter: Option<&'a Waiter>,
    bytes: u64,
    cpu_ns: u64,
    queued_ns: u64,
}

impl Process<'_> {
    /// The figure of a key.
    fn figure(&self, key: Column) -> f64 {
        let waiter = |of: fn(&Waiter) -> f64| self.waiter.map_or(0.0, of);
        match key {
            Column::Time | Column::For | Column::CausedBy => waiter(|w| w.time_ns),
            Column::Waits => waiter(|w| w.count as f64),
            Column::Longest => waiter(|w| w.longest_ns as f64),
            Column::Bytes => self.bytes as f64,
            Column::Cpu => self.cpu_ns as f64,
            Column::Queued => self.queued_ns as f64,
        }
    }

    fn cell(&self, column: Column, record: &WholeMachineRecord) -> Cell {
        let time = |ns: u64| if ns > 0 { seconds(ns as f64) } else { "-".to_owned() };
        match (column, self.waiter) {
            (Column::Bytes, _) if self.bytes > 0 => {
                bytes((self.bytes as f64 / wall_ns(record) * 1e9) as u64).into()
            }
            (Column::Cpu, _) => time(self.cpu_ns).into(),
            (Column::Queued, _) => time(self.queued_ns).into(),
            (Column::Time, Some(waiter)) => seconds(waiter.time_ns).into(),
            (Column::Waits, Some(waiter)) => count(waiter.count).into(),
            (Column::Longest, Some(waiter)) => seconds(waiter.longest_ns as f64).into(),
            (Column::For, Some(waiter)) => Cell::Items(waits_for(record, waiter)),
            (Column::CausedBy, Some(waiter)) => Cell::Items(caused_by(record, waiter)),
            (Column::For | Column::CausedBy, None) => "".into(),
            (Column::Time | Column::Waits | Column::Longest | Column::Bytes, _) => "-".into(),
        }
    }
}

/// All subjects that are meant and have a figure other than 0, largest of the key first.
pub(crate) fn processes(record: &WholeMachineRecord, key: Column) -> Vec<Process<'_>> {
    let profile = &record.profile;
    let mut all: Vec<Process<'_>> = (0..)
        .zip(&profile.subjects)
        .map(|(subject, of)| Process {
            subject,
            waiter: None,
            bytes: 0,
            cpu_ns: of.cpu_ns,
            queued_ns: of.queued_ns,
        })
        .collect();
    for user in profile.devices.iter().flat_map(|device| &device.users) {
        if let Some(process) = all.get_mut(user.subject as usize) {
            process.bytes += user.bytes;
        }
    }
    for waiter in record.account.waiters.iter().filter(|waiter| waiter.time_ns > 0.0) {
        if let Some(process) = all.get_mut(waiter.subject as usize) {
            process.waiter = Some(waiter);
        }
    }
    let is_meant = |process: &Process<'_>| {
        let of = &profile.subjects[process.subject as usize];
        record.group.as_ref().is_none_or(|group| group.holds(of))
    };
    all.retain(|process| Column::KEYS.iter().any(|key| process.figure(*key) > 0.0) && is_meant(process));
    // Whoever is equal by the key is sorted by waits, then by use: the order hardly jumps.
    all.sort_by(|a, b| {
        let by = |key: Column| b.figure(key).total_cmp(&a.figure(key));
        by(key).then_with(|| by(Column::Time)).then_with(|| by(Column::Cpu)).then_with(|| by(Column::Bytes))
    });
    all
}

/// Those who wait most.
pub(super) fn waiters(record: &WholeMachineRecord, rows: usize) -> Table {
    let mut waiters = processes(record, Column::Time);
    waiters.retain(|process| process.waiter.is_some());
    waiters.truncate(rows);
    let mut table = processes_table(record, "waits most", &Column::OF_SCREEN, &waiters);
    shape(&mut table, &["longest", "waits"]);
    table
}

/// These processes as the live view shows them; the key's column stays however narrow it is.
pub(crate) fn live(record: &WholeMachineRecord, key: Column, processes: &[Process<'_>]) -> Table {
    let heading = format!("processes by {}", key.word());
    let mut table = processes_table(record, &heading, &Column::OF_LIVE, processes);
    let give_way = [Column::Queued, Column::Longest, Column::Cpu, Column::Bytes, Column::CausedBy];
    let without: Vec<&'static str> =
        give_way.into_iter().filter(|column| *column != key).map(Column::word).collect();
    shape(&mut table, &without);
    table
}

fn processes_table(
    record: &WholeMachineRecord,
    heading: &str,
    columns: &[Column],
    processes: &[Process<'_>],
) -> Table {
    let headings = std::iter::once(heading.to_owned()).chain(columns.iter().map(|column| column.heading()));
    let mut table = Table::new(headings);
    for process in processes {
        let name = Cell::from(who(record, process.subject));
        table.row(std::iter::once(name).chain(columns.iter().map(|column| process.cell(*column, record))));
    }
    table
}

/// Others that cause its waits, or what is known where nobody is named.
fn caused_by(record: &WholeMachineRecord, waiter: &Waiter) -> Vec<String> {
    let others = named(record, &waiter.caused_by, waiter.time_ns, who);
    if others.is_empty() { vec![nobody_else(record, waiter).to_owned()] } else { others }
}

/// What stands where no other is named: itself, if its own requests were at the device that it waits for; else nothing is known.
pub(super) fn nobody_else(record: &WholeMachineRecord, waiter: &Waiter) -> &'static str {
    let first = waiter.devices.first().filter(|part| part.time_ns >= MOST * waiter.time_ns);
    let device = first.and_then(|part| record.profile.devices.get(part.of as usize));
    let is_there = device.is_some_and(|d| d.users.iter().any(|user| user.subject == waiter.subject));
    let others: f64 = waiter.caused_by.iter().map(|part| part.time_ns).sum();
    let is_known = record.profile.lost.requests == 0 && others < HARDLY * waiter.time_ns;
    if is_there && is_known { "itself" } else { "-" }
}

/// Layers, each with its device or server where there is one.
pub(super) fn waits_for(record: &WholeMachineRecord, waiter: &Waiter) -> Vec<String> {
    let server = waiter.servers.first().map(|part| who(record, part.of));
    let device = waiter.devices.first().map(|part| device(record, part.of));
    let parts = waiter.layers.iter().filter(|part| part.time_ns >= NAMED * waiter.time_ns);
    let words = parts.map(|part| {
        use iowhy_core::layer::Layer;
        let at = match part.layer {
            Layer::Server => server.as_ref(),
            Layer::Device | Layer::Journal | Layer::Writeback | Layer::Cache | Layer::Block => {
                device.as_ref()
            }
            _ => None,
        };
        let at = at.map(|at| format!(" {at}")).unwrap_or_default();
        format!("{}{at} {}", part.layer.id(), percent_of(part.time_ns / waiter.time_ns))
    });
    words.take(PARTS).collect()
}

/// Who delays others, most first; those who hardly do are left out.
pub(crate) fn causes(record: &WholeMachineRecord) -> Vec<&Culprit> {
    let matters = |culprit: &&Culprit| culprit.time_ns >= NAMED * record.account.waited_ns;
    record.account.culprits.iter().filter(matters).collect()
}

/// Who delays others.
pub(crate) fn culprits(record: &WholeMachineRecord, rows: usize) -> Table {
    let mut table = Table::new(["causes most", "#delay of others", "at", "of"]);
    for culprit in causes(record).into_iter().take(rows) {
        let devices = culprit.devices.iter().take(PARTS).map(|part| device(record, part.of));
        table.row([
            Cell::from(who(record, culprit.subject)),
            seconds(culprit.time_ns).into(),
            Cell::Items(devices.collect()),
            Cell::Items(named(record, &culprit.victims, culprit.time_ns, who)),
        ]);
    }
    shape(&mut table, &[]);
    table
}

/// Devices by the time that processes waited for them, then by their use.
pub(crate) fn devices(record: &WholeMachineRecord, rows: usize) -> Table {
    let wall_ns = wall_ns(record);
    let waited = |index: usize| {
        let part = record.account.devices.iter().find(|part| part.of as usize == index);
        part.map_or(0.0, |part| part.time_ns)
    };
    let mut all: Vec<(usize, &Device)> = record.profile.devices.iter().enumerate().collect();
    all.sort_by(|a, b| waited(b.0).total_cmp(&waited(a.0)).then(b.1.busy_ns.cmp(&a.1.busy_ns)));
    let mut table = Table::new([
        "device",
        "mounts",
        "#busy",
        "#in flight",
        "#reads/s",
        "#writes/s",
        "#bytes/s",
        "#queue",
        "#service",
        "limit",
    ]);
    for (_, of) in all.into_iter().take(rows) {
        let requests = of.reads + of.writes + of.others;
        let mean =
            |sum: u64| if requests > 0 { units::time(sum as f64 / requests as f64) } else { String::new() };
        let rate = |n: u64| units::count_rate(n as f64 / wall_ns * 1e9);
        let moved = (of.read_bytes + of.written_bytes) as f64 / wall_ns * 1e9;
        table.row([
            Cell::from(visible(&of.name).into_owned()),
            Cell::Long(visible(&of.mounts.join(" ")).into_owned()),
            percent_of(of.busy_ns as f64 / wall_ns).into(),
            format!("{:.1}", of.in_flight_ns as f64 / wall_ns).into(),
            rate(of.reads).into(),
            rate(of.writes).into(),
            bytes(moved as u64).into(),
            mean(of.queue_ns).into(),
            mean(of.service_ns).into(),
            words::limit(of, wall_ns).into(),
        ]);
    }
    let without = ["mounts", "in flight", "writes/s", "reads/s"];
    table.shapes = vec![
        Shape { bar: 0, items: 24, without: Vec::new() },
        Shape { bar: 0, items: 8, without: Vec::new() },
    ];
    table.shapes.extend((1..=without.len()).map(|n| Shape {
        bar: 0,
        items: 8,
        without: without[..n].to_vec(),
    }));
    table.cut = Some(Cut::End);
    table
}

fn wall_ns(record: &WholeMachineRecord) -> f64 {
    (record.profile.wall_ns as f64).max(1.0)
}

/// On a narrow screen words of lists give way, then columns.
fn shape(table: &mut Table, without: &[&'static str]) {
    let shape = |items, without: &[&'static str]| Shape { bar: 0, items, without: without.to_vec() };
    table.shapes = vec![shape(3, &[]), shape(2, &[]), shape(1, &[])];
    table.shapes.extend((1..=without.len()).map(|n| shape(1, &without[..n])));
    table.cut = Some(Cut::End);
}
