//! The whole machine on one screen: verdict, who waits most, who causes most, devices, pressure, what to do next.

mod words;

use iowhy_core::machine::{Device, Subject};
use iowhy_core::text::visible;
use iowhy_core::units;
use iowhy_diagnose::machine::{Closure, Culprit, Part as Share, Waiter};
use iowhy_view::document::{Cell, Chapter, Cut, Detail, Part, Section, Shape, Table};

use super::figures::{bytes, count, percent_of, plural};
use super::heading;
use crate::record::whole_machine::WholeMachineRecord;

/// Rows on a screen, and on a page.
const ROWS: (usize, usize) = (5, 50);
/// Devices on a screen.
const DEVICES: (usize, usize) = (6, 32);
/// Words in a list of parts.
const PARTS: usize = 3;
/// A part below this share is not named.
const NAMED: f64 = 0.02;
/// Others hardly cause a wait where they cause less of it: without them it would be shorter by less than a fifth.
const HARDLY: f64 = 0.2;
/// A device that a process waits for most of its time.
const MOST: f64 = 0.5;

/// The chapter.
pub fn chapter(record: &WholeMachineRecord, detail: Detail) -> Chapter {
    let mut sections = vec![Section::new("", vec![Part::Verdict(words::verdict(record))])];
    sections.extend(group(record));
    sections.extend(table("waits most", waiters(record, detail)));
    sections.extend(table("causes most", culprits(record, detail)));
    sections.extend(table("devices", devices(record, detail)));
    sections.push(pressure(record));
    sections.push(Section::new("next", words::next(record)));
    if detail.is_page() && !record.warnings.is_empty() {
        let list = record.warnings.iter().map(|warning| warning.message.clone()).collect();
        sections.push(Section::new("limitations", vec![Part::List(list)]));
    }
    let about = if record.profile.interrupted { "interrupted" } else { "" };
    Chapter {
        title: record
            .group
            .as_ref()
            .map_or_else(|| "the whole machine".to_owned(), |g| visible(&g.path).into_owned()),
        about: format!(
            "{}{}",
            seconds(record.profile.wall_ns as f64),
            if about.is_empty() { String::new() } else { format!(", {about}") }
        ),
        facts: heading::machine(&record.environment),
        sections,
    }
}

fn table(title: &str, table: Option<Table>) -> Option<Section> {
    Some(Section::quiet(title, vec![table?.without_empty_columns().part()?]))
}

/// Processes by their waits.
fn waiters(record: &WholeMachineRecord, detail: Detail) -> Option<Table> {
    let shown = record.account.waiters.iter().take(detail.rows(ROWS.0, ROWS.1));
    let mut table = Table::new(["waits most", "#time", "#waits", "#longest", "for", "caused by"]);
    for waiter in shown.filter(|w| w.time_ns > 0.0) {
        let others = named(record, &waiter.caused_by, waiter.time_ns, who);
        table.row([
            Cell::from(who(record, waiter.subject)),
            seconds(waiter.time_ns).into(),
            count(waiter.count).into(),
            seconds(waiter.longest_ns as f64).into(),
            Cell::Items(waits_for(record, waiter)),
            Cell::Items(if others.is_empty() {
                vec![nobody_else(record, waiter).to_owned()]
            } else {
                others
            }),
        ]);
    }
    shape(&mut table, &["longest", "waits"]);
    (!table.rows.is_empty()).then_some(table)
}

/// What stands where no other is named: itself, if its own requests were at the device that it waits for; else nothing is known.
fn nobody_else(record: &WholeMachineRecord, waiter: &Waiter) -> &'static str {
    let first = waiter.devices.first().filter(|part| part.time_ns >= MOST * waiter.time_ns);
    let device = first.and_then(|part| record.profile.devices.get(part.of as usize));
    let is_there = device.is_some_and(|d| d.users.iter().any(|user| user.subject == waiter.subject));
    let others: f64 = waiter.caused_by.iter().map(|part| part.time_ns).sum();
    let is_known = record.profile.lost.requests == 0 && others < HARDLY * waiter.time_ns;
    if is_there && is_known { "itself" } else { "-" }
}

/// Layers, each with its device or server where there is one.
fn waits_for(record: &WholeMachineRecord, waiter: &Waiter) -> Vec<String> {
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

/// Who delays others.
fn culprits(record: &WholeMachineRecord, detail: Detail) -> Option<Table> {
    let mut table = Table::new(["causes most", "#delay of others", "at", "of"]);
    let matters = |c: &&Culprit| c.time_ns >= NAMED * record.account.waited_ns;
    for culprit in record.account.culprits.iter().filter(matters).take(detail.rows(ROWS.0, ROWS.1)) {
        let devices = culprit.devices.iter().take(PARTS).map(|part| device(record, part.of));
        table.row([
            Cell::from(who(record, culprit.subject)),
            seconds(culprit.time_ns).into(),
            Cell::Items(devices.collect()),
            Cell::Items(named(record, &culprit.victims, culprit.time_ns, who)),
        ]);
    }
    shape(&mut table, &[]);
    (!table.rows.is_empty()).then_some(table)
}

/// Devices by the time that processes waited for them, then by their use.
fn devices(record: &WholeMachineRecord, detail: Detail) -> Option<Table> {
    let wall_ns = (record.profile.wall_ns as f64).max(1.0);
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
    for (_, of) in all.into_iter().take(detail.rows(DEVICES.0, DEVICES.1)) {
        let requests = of.reads + of.writes + of.others;
        let mean =
            |sum: u64| if requests > 0 { units::time(sum as f64 / requests as f64) } else { String::new() };
        let rate = |n: u64| units::count_rate(n as f64 / wall_ns * 1e9);
        let moved = (of.read_bytes + of.written_bytes) as f64 / wall_ns * 1e9;
        table.row([
            Cell::from(visible(&of.name).into_owned()),
            Cell::Long(visible(&of.mounts.join(" ")).into_owned()),
            percent_of(of.busy_ns as f64 / wall_ns).into(),
            format!("{:.1}", of.service_ns as f64 / wall_ns).into(),
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
    (!table.rows.is_empty()).then_some(table)
}

/// PSI, and how much of it is explained.
fn pressure(record: &WholeMachineRecord) -> Section {
    let mut table =
        Table::new(["pressure (PSI)", "#of the time", "#explained", "#explained of counted", "why not all"]);
    for figure in &record.closure {
        let Closure { figure: name, counted_share, explained_share, ratio, reason } = figure;
        table.row([
            name.clone(),
            counted_share.map_or_else(|| "not counted".to_owned(), percent_of),
            percent_of(*explained_share),
            ratio.map_or_else(|| "-".to_owned(), percent_of),
            reason.clone().unwrap_or_default(),
        ]);
    }
    table.prose = true;
    let mut parts: Vec<Part> = table.without_empty_columns().part().into_iter().collect();
    parts.push(Part::Note(words::cost(record)));
    Section::quiet("pressure", parts)
}

/// The limits of a control group, and what its counters say.
fn group(record: &WholeMachineRecord) -> Option<Section> {
    let group = record.group.as_ref()?;
    let mut lines: Vec<String> = group.limits.iter().map(|limit| limit.words.clone()).collect();
    if let Some(s) = group.cpu_throttled_s.filter(|s| *s > 0.0) {
        lines.push(format!("held back by its CPU limit for {}", seconds(s * 1e9)));
    }
    let event = |n: Option<u64>, words: &str| {
        n.filter(|n| *n > 0).map(|n| format!("{words} {}", plural(n, "time", "times")))
    };
    lines.extend(event(group.memory_high_events, "made to free memory by memory.high"));
    lines.extend(event(group.memory_limit_events, "reached its memory limit"));
    if let Some(s) = group.io_some_s {
        lines.push(format!(
            "its own pressure (PSI): io some {}, memory some {}",
            seconds(s * 1e9),
            seconds(group.memory_some_s.unwrap_or(0.0) * 1e9)
        ));
    }
    if lines.is_empty() {
        lines.push("no limit of CPU, memory or disk is set on it or above it".to_owned());
    }
    Some(Section::new("control group", vec![Part::List(lines)]))
}

/// Parts by subject, with their shares.
fn named(
    record: &WholeMachineRecord,
    parts: &[Share],
    whole_ns: f64,
    name: fn(&WholeMachineRecord, u32) -> String,
) -> Vec<String> {
    let shown = parts.iter().filter(|part| part.time_ns >= NAMED * whole_ns).take(PARTS);
    shown.map(|part| format!("{} {}", name(record, part.of), percent_of(part.time_ns / whole_ns))).collect()
}

fn who(record: &WholeMachineRecord, subject: u32) -> String {
    let nobody = Subject::default();
    named_subject(record.profile.subjects.get(subject as usize).unwrap_or(&nobody))
}

/// `fio (1234)`; a pool of processes and threads of the kernel have no number.
pub(super) fn named_subject(subject: &Subject) -> String {
    let name = visible(&subject.name);
    match subject.pid {
        0 if subject.kernel => format!("kernel {name}"),
        0 => format!("{name} (several)"),
        pid => format!("{name} ({pid})"),
    }
}

fn device(record: &WholeMachineRecord, device: u32) -> String {
    record.profile.devices.get(device as usize).map_or_else(String::new, |d| visible(&d.name).into_owned())
}

fn seconds(ns: f64) -> String {
    units::time(ns)
}

/// On a narrow screen words of lists give way, then columns.
fn shape(table: &mut Table, without: &[&'static str]) {
    let shape = |items, without: &[&'static str]| Shape { bar: 0, items, without: without.to_vec() };
    table.shapes = vec![shape(3, &[]), shape(2, &[]), shape(1, &[])];
    table.shapes.extend((1..=without.len()).map(|n| shape(1, &without[..n])));
    table.cut = Some(Cut::End);
}

#[cfg(test)]
mod tests;
