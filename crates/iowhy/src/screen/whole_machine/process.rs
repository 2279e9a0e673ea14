//! The account of one process out of that of the machine: what it waits for, who delays it, whom it delays, its requests and limits.
//! Files and calls are not observed by a watch of the machine: the screen says which command does that.

use iowhy_core::machine::{DeviceUser, Subject, Wait};
use iowhy_core::profile::GroupLimit;
use iowhy_core::text::visible;
use iowhy_diagnose::machine::{Culprit, Part as Share, Waiter};
use iowhy_view::document::{Cell, Chapter, Cut, Part, Section, Shape, Table};

use super::super::figures::{bytes, count, percent_of, plural};
use super::tables::waits_for;
use super::{device, seconds, section, who};
use crate::record::whole_machine::WholeMachineRecord;

/// Rows of its waits, and of others.
const ROWS: usize = 8;
/// Functions by which every task goes to sleep: they tell nothing.
const SLEEPS: [&str; 7] = [
    "__schedule",
    "schedule",
    "io_schedule",
    "io_schedule_timeout",
    "schedule_timeout",
    "schedule_preempt_disabled",
    "preempt_schedule_common",
];

/// The chapter; `limits` are those of its control groups.
pub(crate) fn chapter(record: &WholeMachineRecord, subject: u32, limits: &[GroupLimit]) -> Chapter {
    let nobody = Subject::default();
    let of = record.profile.subjects.get(subject as usize).unwrap_or(&nobody);
    let waiter = record.account.waiters.iter().find(|waiter| waiter.subject == subject);
    let culprit = record.account.culprits.iter().find(|culprit| culprit.subject == subject);
    let mut sections = vec![
        Section::new("", vec![Part::Verdict(verdict(record, subject, waiter, culprit))]),
        Section::quiet("time", vec![Part::Facts(facts(of))]),
    ];
    let time_ns = waiter.map_or(0.0, |waiter| waiter.time_ns);
    let caused_by = waiter.map_or(&[][..], |waiter| &waiter.caused_by);
    let victims = culprit.map_or(&[][..], |culprit| &culprit.victims);
    let tables = [
        ("waits", waits(record, subject)),
        ("caused by", others(record, "caused by", caused_by, time_ns)),
        ("delays", others(record, "delays", victims, culprit.map_or(0.0, |culprit| culprit.time_ns))),
        ("devices", devices(record, subject, waiter)),
    ];
    sections.extend(tables.into_iter().filter_map(|(title, table)| section(title, table)));
    sections.push(Section::new("control groups", vec![Part::List(groups(of, limits))]));
    if of.pid > 0 {
        let next = format!("sudo iowhy attach {} --time 10s", of.pid);
        let words = "its files and calls, which a watch of the machine does not see:".to_owned();
        sections.push(Section::new("next", vec![Part::Text(words), Part::Command(next)]));
    }
    Chapter {
        title: who(record, subject),
        about: seconds(record.profile.wall_ns as f64),
        facts: of.command.iter().map(|command| visible(command).into_owned()).collect(),
        sections,
    }
}

fn verdict(
    record: &WholeMachineRecord,
    subject: u32,
    waiter: Option<&Waiter>,
    culprit: Option<&Culprit>,
) -> String {
    let name = who(record, subject);
    let Some(waiter) = waiter.filter(|waiter| waiter.time_ns > 0.0) else {
        let delays = culprit.map(|c| format!("; it delays others for {}", seconds(c.time_ns)));
        let is_kernel = record.profile.subjects.get(subject as usize).is_none_or(|of| of.kernel);
        let waits = if is_kernel { "works for others" } else { "did not wait for I/O or memory" };
        return format!("{name} {waits}{}", delays.unwrap_or_default());
    };
    let others: f64 = waiter.caused_by.iter().map(|part| part.time_ns).sum();
    let others = match others / waiter.time_ns {
        share if share > 0.0 => format!("; others cause {} of that", percent_of(share)),
        _ => String::new(),
    };
    let waits_for = waits_for(record, waiter).join(", ");
    let waits = plural(waiter.count, "wait", "waits");
    format!("{name} waits {} in {waits} (all threads together): {waits_for}{others}", seconds(waiter.time_ns))
}

fn facts(of: &Subject) -> Vec<(String, String)> {
    let time = |ns: u64| seconds(ns as f64);
    let cpu = format!("{} on CPUs, {} runnable without one", time(of.cpu_ns), time(of.queued_ns));
    let stalls = format!("I/O {}, memory {}", seconds(of.io_some_ns), seconds(of.memory_some_ns));
    vec![("cpu".to_owned(), cpu), ("part of PSI".to_owned(), stalls)]
}

/// Its waits by device and stack, longest first.
fn waits(record: &WholeMachineRecord, subject: u32) -> Table {
    let mut all: Vec<&Wait> = record.profile.waits.iter().filter(|wait| wait.subject == subject).collect();
    all.sort_by_key(|wait| std::cmp::Reverse(wait.time_ns));
    let mut table = Table::new(["waits", "#time", "#longest", "device", "kernel stack, innermost first"]);
    for wait in all.into_iter().filter(|wait| wait.time_ns > 0).take(ROWS) {
        table.row([
            Cell::from(count(wait.count)),
            seconds(wait.time_ns as f64).into(),
            seconds(wait.longest_ns as f64).into(),
            wait.device.map_or_else(|| "-".to_owned(), |of| device(record, of)).into(),
            Cell::Long(stack(record, wait)),
        ]);
    }
    table.shapes = [100, 80, 60, 40, 30, 20, 10].map(|items| Shape { bar: 0, items, without: vec![] }).into();
    table.cut = Some(Cut::End);
    table
}

fn stack(record: &WholeMachineRecord, wait: &Wait) -> String {
    if wait.reclaim {
        return "reclaim: it frees memory itself".to_owned();
    }
    let Some(frames) = wait.stack.and_then(|stack| record.profile.stacks.get(stack as usize)) else {
        return "not known".to_owned();
    };
    // What is below the last of these is the way into the scheduler, and the observer that stands there.
    let asleep = frames.iter().rposition(|frame| SLEEPS.contains(&frame.as_str())).map_or(0, |at| at + 1);
    let told: Vec<_> = frames[asleep..].iter().map(|frame| visible(frame)).collect();
    told.join(" < ")
}

/// Other processes by their part.
fn others(record: &WholeMachineRecord, heading: &str, parts: &[Share], whole_ns: f64) -> Table {
    let mut table = Table::new([heading, "#time", "#share"]);
    for part in parts.iter().filter(|part| part.time_ns > 0.0).take(ROWS) {
        let share = percent_of(part.time_ns / whole_ns.max(1.0));
        table.row([who(record, part.of), seconds(part.time_ns), share]);
    }
    table.cut = Some(Cut::End);
    table
}

/// Where it waits, and where its requests are.
fn devices(record: &WholeMachineRecord, subject: u32, waiter: Option<&Waiter>) -> Table {
    let mut table = Table::new(["device", "#waited", "#requests", "#bytes", "#of them written back for it"]);
    for (index, of) in record.profile.devices.iter().enumerate() {
        let waited = waiter.and_then(|w| w.devices.iter().find(|part| part.of as usize == index));
        let user = of.users.iter().find(|user| user.subject == subject).copied();
        if waited.is_none() && user.is_none() {
            continue;
        }
        let DeviceUser { requests, bytes: moved, written_back, .. } = user.unwrap_or_default();
        table.row([
            visible(&of.name).into_owned(),
            waited.map_or_else(|| "-".to_owned(), |part| seconds(part.time_ns)),
            count(requests),
            bytes(moved),
            if written_back > 0 { count(written_back) } else { String::new() },
        ]);
    }
    table.cut = Some(Cut::End);
    table
}

fn groups(of: &Subject, limits: &[GroupLimit]) -> Vec<String> {
    let mut lines: Vec<String> = of.groups.iter().map(|path| format!("in {}", visible(path))).collect();
    lines.extend(limits.iter().map(|limit| limit.words.clone()));
    if limits.is_empty() {
        lines.push(match of.pid {
            0 => "several processes, or a thread of the kernel: their limits are not looked at".to_owned(),
            _ => "no limit of CPU, memory or disk is set on its groups, or it has ended".to_owned(),
        });
    }
    lines
}
