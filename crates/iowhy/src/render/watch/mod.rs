//! The screen of a watched program: what it was, the verdict, where its time went, why, and how far to trust it.
//!
//! Invariant: no line is wider than the terminal (paths and names give way), and a share that was sampled has its
//! interval. What is small enough to be written as 0 is left out; the record holds it.

mod findings;
mod tables;
#[cfg(test)]
mod tests;
mod trust;
mod usage;
mod words;

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::units::{self, Bytes};
use iowhy_explain::classify::Operation;

use crate::record::watch::{Exit, LayerShare, WatchRecord};
use crate::render::bar;
use words::{cut, plural, share, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Nobody's terminal is narrower; a pipe may say so.
const LEAST_WIDTH: usize = 40;
/// Lines longer than this are hard to read on any terminal.
const MOST_WIDTH: usize = 120;

/// The whole screen for a terminal of `width` columns.
pub fn screen(record: &WatchRecord, width: usize) -> String {
    let width = width.clamp(LEAST_WIDTH, MOST_WIDTH);
    let mut text = heading(record, width);
    text.push_str(&verdict(record, width));
    text.push_str(&layers(record, width));
    text.push_str(&usage::usage(record, width));
    text.push_str(&tables::operations(record, width));
    text.push_str(&tables::syncs(record, width));
    text.push_str(&tables::files(record, width));
    text.push_str(&tables::call_sites(record, width));
    text.push_str(&findings::findings(record, width));
    text.push_str(&trust::trust(record, width));
    text
}

/// What ran, how it ended, and how long it took.
fn heading(record: &WatchRecord, width: usize) -> String {
    let end = match record.exit {
        Some(Exit::Code(0)) => String::new(),
        Some(Exit::Code(code)) => format!("  exit code {code}"),
        Some(Exit::Signal(signal)) => format!("  killed by signal {signal}"),
        None if record.profile.end == iowhy_core::profile::End::Gone => {
            "  ended; its exit code is not known".to_owned()
        }
        None => "  still running".to_owned(),
    };
    // A command line too long for the rest gives way; how it ended does not.
    let room = width.saturating_sub(end.chars().count());
    let mut text = if room >= LEAST_WIDTH / 2 {
        format!("{BOLD}{}{BOLD:#}{end}\n", cut(&record.subject, room))
    } else {
        format!("{BOLD}{}{BOLD:#}\n{end}\n", cut(&record.subject, width))
    };
    let threads: u64 = record.profile.threads.iter().map(|t| t.count.max(1)).sum();
    let mut facts =
        vec![format!("{} wall", seconds(record.wall_s)), format!("{} CPU", seconds(record.cpu_s))];
    if record.processes > 1 {
        facts.push(plural(record.processes, "process", "processes"));
    }
    facts.push(plural(threads, "thread", "threads"));
    if !record.environment.kernel.is_empty() {
        let e = &record.environment;
        facts.push(format!("Linux {}", e.kernel));
        facts.push(plural(e.cpus as u64, "CPU", "CPUs"));
        facts.push(format!("{} memory", Bytes(e.memory_bytes >> 20 << 20)));
    }
    text.push_str(&wrap(&facts.join(", "), width, "  ", "  "));
    text.push('\n');
    text
}

/// The first finding's sentence; without one, where most of the time went.
fn verdict(record: &WatchRecord, width: usize) -> String {
    let sentence = match record.findings.first() {
        Some(first) => format!("{}: {}", first.id.id(), first.sentence),
        None => match record.layers.iter().max_by(|a, b| a.share.total_cmp(&b.share)) {
            Some(most) if most.id == Layer::Unexplained => {
                format!("cannot tell: of {} of the thread time it was not seen where it went", share(most))
            }
            Some(most) => {
                format!("no finding; most of the thread time is in `{}`: {}", most.id.id(), share(most))
            }
            None => "nothing was seen: no thread lived long enough".to_owned(),
        },
    };
    let mut text = String::new();
    for line in wrap(&sentence, width, "", "  ").lines() {
        let _ = writeln!(text, "{BOLD}{line}{BOLD:#}");
    }
    text.push('\n');
    text
}

/// The bar over the layers with their shares; `unexplained` always.
fn layers(record: &WatchRecord, width: usize) -> String {
    if record.layers.is_empty() {
        return String::new();
    }
    let mut ledger = Ledger::default();
    for layer in &record.layers {
        ledger.add(layer.id, layer.busy_s * 1e9, layer.wait_s * 1e9);
    }
    let label = format!("{} thread time", seconds(record.thread_s));
    let mut text =
        format!("{label}  {}\n", bar::bar(&ledger, width.saturating_sub(label.chars().count() + 2)));
    let mut shown: Vec<&LayerShare> =
        record.layers.iter().filter(|l| l.id != Layer::Unexplained && words::visible(l.share)).collect();
    shown.sort_by(|a, b| b.share.total_cmp(&a.share));
    let mut keys: Vec<String> = shown
        .iter()
        .map(|layer| {
            let kind = if layer.id == Layer::Elsewhere { off_the_path(record) } else { String::new() };
            format!("{} {}{kind}", bar::key(layer.id), share(*layer))
        })
        .collect();
    let percent = (record.unexplained_share * 100.0 * 10.0).round() / 10.0 + 0.0;
    keys.push(format!("{} {percent:.1} %", bar::key(Layer::Unexplained)));
    text.push_str(&words::flow(&keys, width, "  "));
    text.push('\n');
    text
}

/// What `elsewhere` holds. Interrupts hit whoever runs: the program did not go there.
fn off_the_path(record: &WatchRecord) -> String {
    let interrupts: f64 = record
        .operations
        .iter()
        .filter(|o| o.id == Operation::Interrupt.id())
        .flat_map(|o| &o.layers)
        .filter(|l| l.id == Layer::Elsewhere)
        .map(|l| l.busy_s + l.wait_s)
        .sum();
    let share = if record.thread_s > 0.0 { interrupts / record.thread_s } else { 0.0 };
    match words::visible(share) {
        true => format!(" (off the path; interrupts {})", words::percent_of(share)),
        false => " (off the path)".to_owned(),
    }
}

/// Seconds for people.
fn seconds(s: f64) -> String {
    units::time(s * 1e9)
}
