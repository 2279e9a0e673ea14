//! Slow calls on one screen: verdict, where each event spent its time, the seconds around it, all calls by operation, the slowest.

mod words;

use iowhy_core::machine::Subject;
use iowhy_core::tails::{Second, SlowCall};
use iowhy_core::text::visible;
use iowhy_core::units;
use iowhy_diagnose::machine::Part as Share;
use iowhy_diagnose::tails::{CallAccount, CallPart};
use iowhy_view::document::{Cell, Chapter, Cut, Detail, Part, Section, Shape, Table};

use super::figures::{bytes, count, percent_of};
use super::heading;
use crate::record::tails::TailsRecord;

/// Calls shown with their account, on a screen and on a page.
const CALLS: (usize, usize) = (1, 20);
/// Parts of a call.
const PARTS: (usize, usize) = (6, 30);
/// Rows of the slowest calls.
const SLOWEST: (usize, usize) = (10, 20);
/// Characters of a path.
const PATH: usize = 26;
/// Words in a list.
const WORDS: usize = 3;
/// A part below this share is not named.
const NAMED: f64 = 0.02;

/// The chapter.
pub fn chapter(record: &TailsRecord, detail: Detail) -> Chapter {
    let mut sections = vec![Section::new("", vec![Part::Verdict(words::verdict(record))])];
    let findings: Vec<Part> = record.findings.iter().map(|finding| words::finding(record, finding)).collect();
    if !findings.is_empty() {
        sections.push(Section::quiet("findings", findings));
    }
    for call in accounts(record).into_iter().take(detail.rows(CALLS.0, CALLS.1)) {
        sections.extend(slow_call(record, call, detail));
    }
    sections.extend(table("operations", operations(record)));
    sections.extend(table("slowest", slowest(record, detail)));
    sections.push(Section::quiet("how far to trust it", vec![Part::Note(words::trust(record))]));
    sections.push(Section::new("next", words::next(record)));
    if detail.is_page() && !record.warnings.is_empty() {
        let list = record.warnings.iter().map(|warning| warning.message.clone()).collect();
        sections.push(Section::new("limitations", vec![Part::List(list)]));
    }
    Chapter {
        title: visible(&record.subject).into_owned(),
        about: words::about(record),
        facts: heading::machine(&record.environment),
        sections,
    }
}

/// The calls above the limit that are known one by one, slowest first: events, and those of the slowest that are none. An event knows the
/// seconds around it.
fn accounts(record: &TailsRecord) -> Vec<(&SlowCall, &CallAccount)> {
    let profile = &record.profile;
    let same = |a: &SlowCall, b: &SlowCall| {
        (a.tid, a.began_unix_ns, a.time_ns) == (b.tid, b.began_unix_ns, b.time_ns)
    };
    let is_other = |call: &SlowCall| {
        call.time_ns > profile.limit_ns && !profile.events.iter().any(|event| same(event, call))
    };
    let others = profile.slowest.iter().zip(&record.slowest).filter(|(call, _)| is_other(call));
    let mut all: Vec<_> = profile.events.iter().zip(&record.events).chain(others).collect();
    all.sort_by_key(|(call, _)| std::cmp::Reverse(call.time_ns));
    all
}

fn table(title: &str, table: Option<Table>) -> Option<Section> {
    Some(Section::quiet(title, vec![table?.without_empty_columns().part()?]))
}

/// Where a call spent its time, and what went on around it.
fn slow_call(
    record: &TailsRecord,
    (call, account): (&SlowCall, &CallAccount),
    detail: Detail,
) -> Vec<Section> {
    let mut parts = vec![Part::Text(words::call(record, call))];
    parts.extend(split(record, call, account, detail).without_empty_columns().part());
    parts.extend(words::meanwhile(record, account));
    let mut sections = vec![Section::quiet("slow call", parts)];
    sections.extend(table("the seconds around it", seconds(record, &call.seconds)));
    sections
}

/// The parts of a call, longest first; they sum to its time.
fn split(record: &TailsRecord, call: &SlowCall, account: &CallAccount, detail: Detail) -> Table {
    let mut table =
        Table::new(["part", "#time", "#of the call", "#waits", "at", "kernel function", "caused by"]);
    for part in account.parts.iter().take(detail.rows(PARTS.0, PARTS.1)) {
        table.row([
            Cell::from(part.part.clone()),
            units::time(part.time_ns).into(),
            percent_of(part.time_ns / call.time_ns.max(1) as f64).into(),
            if part.waits > 0 { count(part.waits) } else { String::new() }.into(),
            at(record, part).into(),
            part.function.as_deref().map(|name| visible(name).into_owned()).unwrap_or_default().into(),
            Cell::Items(named(record, &part.caused_by, part.time_ns)),
        ]);
    }
    let without = ["waits", "kernel function"];
    table.shapes = [3, 2, 1].into_iter().map(|items| shape(items, &[])).collect();
    table.shapes.extend([2, 1].into_iter().map(|items| shape(items, &without[..1])));
    table.shapes.extend([3, 2, 1].into_iter().map(|items| shape(items, &without)));
    table.cut = Some(Cut::End);
    table
}

/// The device of a part, else who served it or held the lock.
fn at(record: &TailsRecord, part: &CallPart) -> String {
    let device = part.device.map(|of| device(record, of));
    device.or_else(|| part.by.map(|by| who(record, by))).unwrap_or_default()
}

/// Devices in the seconds around an event.
fn seconds(record: &TailsRecord, seconds: &[Second]) -> Option<Table> {
    let calls = format!("#{}", words::plural_of(&record.profile.operation));
    let mut table = Table::new([
        "second (UTC)",
        &calls,
        "device",
        "#requests",
        "#bytes",
        "#queue",
        "#service",
        "requests of",
    ]);
    for second in seconds {
        let begun = time_of_day(second.began_unix_ns);
        let none = [begun.clone(), count(second.calls)].map(Cell::from);
        if second.devices.is_empty() {
            let rest = std::iter::repeat_n(Cell::from(""), 6);
            table.row(none.into_iter().chain(rest));
        }
        for of in &second.devices {
            let mean = |sum: u64| {
                if of.requests > 0 { units::time(sum as f64 / of.requests as f64) } else { String::new() }
            };
            let users =
                of.users.iter().map(|(subject, n)| format!("{} {}", who(record, *subject), count(*n)));
            table.row([
                Cell::from(begun.clone()),
                count(second.calls).into(),
                device(record, of.device).into(),
                count(of.requests).into(),
                bytes(of.bytes).into(),
                mean(of.queue_ns).into(),
                mean(of.service_ns).into(),
                Cell::Items(users.collect()),
            ]);
        }
    }
    table.shapes = vec![shape(3, &[]), shape(2, &[]), shape(1, &[])];
    table.shapes.extend([
        shape(1, &["bytes"]),
        shape(1, &["bytes", "queue"]),
        shape(1, &["bytes", "queue", "service"]),
    ]);
    table.cut = Some(Cut::End);
    (!table.rows.is_empty()).then_some(table)
}

/// All calls by operation.
fn operations(record: &TailsRecord) -> Option<Table> {
    let mut table = Table::new(["operation", "#calls", "#p50", "#p99", "#p99.9", "#max", "#failed"]);
    for of in &record.profile.operations {
        let at = |share| units::time(of.times.quantile(share) as f64);
        table.row([
            of.operation.clone(),
            count(of.times.count()),
            at(0.5),
            at(0.99),
            at(0.999),
            units::time(of.times.max_ns() as f64),
            if of.failed > 0 { count(of.failed) } else { String::new() },
        ]);
    }
    let without = ["failed", "p99.9"];
    table.shapes = (0..=without.len()).map(|n| shape(0, &without[..n])).collect();
    table.cut = Some(Cut::End);
    (!table.rows.is_empty()).then_some(table)
}

/// The slowest calls of the operation.
fn slowest(record: &TailsRecord, detail: Detail) -> Option<Table> {
    let title = format!("slowest {}", words::plural_of(&record.profile.operation));
    let mut table = Table::new([title.as_str(), "began (UTC)", "thread", "for", "caused by", "file"]);
    let rows = record.profile.slowest.iter().zip(&record.slowest);
    for (call, account) in rows.take(detail.rows(SLOWEST.0, SLOWEST.1)) {
        let time_ns = call.time_ns as f64;
        let parts = account.parts.iter().filter(|part| part.time_ns >= NAMED * time_ns).take(WORDS);
        let parts = parts.map(|part| {
            let at = part.device.map(|of| format!(" {}", device(record, of))).unwrap_or_default();
            format!("{}{at} {}", part.part, percent_of(part.time_ns / time_ns))
        });
        table.row([
            Cell::from(units::time(time_ns)),
            time_of_day(call.began_unix_ns).into(),
            format!("{} ({})", visible(&call.thread), call.tid).into(),
            Cell::Items(parts.collect()),
            Cell::Items(named(record, &account.caused_by, time_ns)),
            call.file.as_deref().map(end_of).unwrap_or_default().into(),
        ]);
    }
    let without = ["thread", "file"];
    let full = [3, 2, 1].into_iter().map(|items| shape(items, &[]));
    let narrow = [2, 1].into_iter().map(|items| shape(items, &without[..1]));
    let short = [2, 1].into_iter().map(|items| shape(items, &without));
    table.shapes = full.chain(narrow).chain(short).collect();
    table.cut = Some(Cut::End);
    (!table.rows.is_empty()).then_some(table)
}

/// The end of a path, which tells files apart.
fn end_of(path: &str) -> String {
    let shown = visible(path);
    match shown.chars().count().checked_sub(PATH) {
        None | Some(0) => shown.into_owned(),
        Some(beyond) => format!("…{}", shown.chars().skip(beyond + 1).collect::<String>()),
    }
}

fn shape(items: usize, without: &[&'static str]) -> Shape {
    Shape { bar: 0, items, without: without.to_vec() }
}

/// Parts by subject, with their shares.
fn named(record: &TailsRecord, parts: &[Share], whole_ns: f64) -> Vec<String> {
    let shown = parts.iter().filter(|part| part.time_ns >= NAMED * whole_ns).take(WORDS);
    shown.map(|part| format!("{} {}", who(record, part.of), percent_of(part.time_ns / whole_ns))).collect()
}

fn who(record: &TailsRecord, subject: u32) -> String {
    let nobody = Subject::default();
    super::whole_machine::named_subject(record.profile.subjects.get(subject as usize).unwrap_or(&nobody))
}

fn device(record: &TailsRecord, device: u32) -> String {
    record.profile.devices.get(device as usize).map_or_else(String::new, |name| visible(name).into_owned())
}

/// `12:34:56.789`, UTC.
pub(crate) fn time_of_day(unix_ns: u64) -> String {
    let ms = unix_ns / 1_000_000 % 86_400_000;
    format!("{:02}:{:02}:{:02}.{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
}

#[cfg(test)]
mod tests;
