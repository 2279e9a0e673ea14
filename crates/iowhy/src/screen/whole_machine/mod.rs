//! The whole machine on one screen: verdict, who waits most, who causes most, devices, pressure, what to do next.

pub(crate) mod process;
pub(crate) mod tables;
pub(crate) mod words;

use iowhy_core::machine::Subject;
use iowhy_core::text::visible;
use iowhy_core::units;
use iowhy_diagnose::machine::{Closure, Part as Share};
use iowhy_view::document::{Chapter, Detail, Part, Section, Table};

use super::figures::{percent_of, plural};
use super::{course, heading};
use crate::record::whole_machine::{GroupRecord, WholeMachineRecord};

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

/// The chapter.
pub fn chapter(record: &WholeMachineRecord, detail: Detail) -> Chapter {
    let mut sections = vec![Section::new("", vec![Part::Verdict(words::verdict(record))])];
    sections.extend(group(record));
    let tables = [
        ("waits most", tables::waiters(record, detail.rows(ROWS.0, ROWS.1))),
        ("causes most", tables::culprits(record, detail.rows(ROWS.0, ROWS.1))),
        ("devices", tables::devices(record, detail.rows(DEVICES.0, DEVICES.1))),
    ];
    sections.extend(tables.into_iter().filter_map(|(title, table)| section(title, table)));
    sections.push(pressure(record));
    sections.push(over_time(record, detail));
    sections.push(Section::new("next", words::next(record)));
    if detail.is_page() && !record.warnings.is_empty() {
        let list = record.warnings.iter().map(|warning| warning.message.clone()).collect();
        sections.push(Section::new("limitations", vec![Part::List(list)]));
    }
    Chapter {
        title: title(record),
        about: about(record),
        facts: heading::machine(&record.environment),
        sections,
    }
}

/// The machine, or the control group.
pub(crate) fn title(record: &WholeMachineRecord) -> String {
    let group = record.group.as_ref().map(|group| visible(&group.path).into_owned());
    group.unwrap_or_else(|| "the whole machine".to_owned())
}

/// The time that is told of.
fn about(record: &WholeMachineRecord) -> String {
    let time = seconds(record.profile.wall_ns as f64);
    let time = match record.watched_ns {
        Some(watched_ns) => format!("{time}, the last shown of {}", seconds(watched_ns as f64)),
        None if record.profile.interrupted => format!("{time}, interrupted"),
        None => time,
    };
    let exceeded = record.profile.overhead_exceeded.map_or("", |_| ", ended by --max-overhead");
    time + exceeded
}

fn section(title: &str, table: Table) -> Option<Section> {
    Some(Section::quiet(title, vec![table.without_empty_columns().part()?]))
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

/// Phases, pauses and slower devices; on a page with strips. With `--live` they are of the whole watch.
fn over_time(record: &WholeMachineRecord, detail: Detail) -> Section {
    let (whose, over_time) = (record.whose(), &record.over_time);
    if detail.is_page() {
        return course::section(record.profile.course.as_ref(), whose, over_time);
    }
    let told = course::lines(whose, over_time);
    Section::quiet("over time", (!told.is_empty()).then_some(Part::Facts(told)).into_iter().collect())
}

/// The limits of a control group, and what its counters say.
fn group(record: &WholeMachineRecord) -> Option<Section> {
    let lines = group_lines(record.group.as_ref()?);
    Some(Section::new("control group", vec![Part::List(lines)]))
}

/// The same, a line each.
pub(crate) fn group_lines(group: &GroupRecord) -> Vec<String> {
    if group.is_gone {
        return vec!["it was removed before the end: its limits and counters are not known".to_owned()];
    }
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
    lines
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

pub(crate) fn who(record: &WholeMachineRecord, subject: u32) -> String {
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

#[cfg(test)]
pub(crate) mod machine_tests;
#[cfg(test)]
mod tests;
