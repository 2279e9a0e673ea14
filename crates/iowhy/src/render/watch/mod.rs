//! The screen of a watched program: what it was, the verdict, where its time went, why, and how far to trust it.
//!
//! Invariant: no line is wider than the terminal (paths and names give way), and a share that was sampled has its
//! interval. What is too small to matter is left out, or is part of one figure `others`; the record holds it.

mod files;
mod findings;
mod tables;
#[cfg(test)]
mod tests;
mod trust;
mod usage;
pub(crate) mod words;

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::units::{self, Bytes};
use iowhy_diagnose::classify::Operation;

use crate::record::watch::{Exit, LayerShare, RanAs, WatchRecord};
use iowhy_view::terminal::bar;
use iowhy_view::terminal::wrap::{LEAST_WIDTH, MOST_WIDTH, cut, flow, wrap};
use words::{percent_of, plural, share};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Layers too small for a place of their own are one figure, if it is not written as 0.
const LEAST_OTHERS: f64 = 0.0005;

/// The whole screen for a terminal of `width` columns.
pub fn screen(record: &WatchRecord, width: usize) -> String {
    let width = width.clamp(LEAST_WIDTH, MOST_WIDTH);
    let mut text = heading(record, width);
    text.push_str(&verdict(record, width));
    text.push_str(&layers(record, width));
    text.push_str(&usage::usage(record, width));
    text.push_str(&tables::operations(record, width));
    text.push_str(&tables::syncs(record, width));
    text.push_str(&files::files(record, width));
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
    let threads = record.profile.thread_count();
    let mut facts =
        vec![format!("{} wall", seconds(record.wall_s)), format!("{} CPU", seconds(record.cpu_s))];
    facts.extend(record.ran_as.as_ref().map(RanAs::words));
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
    // On a narrow terminal the machine gives way before it takes a second line.
    let least = facts.len().min(3);
    while facts.len() > least && facts.join(", ").chars().count() + 2 > width {
        facts.pop();
    }
    text.push_str(&wrap(&facts.join(", "), width, "  ", "  "));
    text.push('\n');
    text
}

/// The first finding's sentence; without one, where most of the time went.
fn verdict(record: &WatchRecord, width: usize) -> String {
    let sentence = match record.findings.first() {
        Some(first) => first.sentence.clone(),
        None => match record.layers.iter().max_by(|a, b| a.share.total_cmp(&b.share)) {
            Some(most) if most.id == Layer::Unexplained => {
                format!("Cannot tell: of {} of the thread time it was not seen where it went", share(most))
            }
            Some(most) => {
                format!("No finding; most of the thread time is in `{}`: {}", most.id.id(), share(most))
            }
            None => "Nothing was seen: no thread lived long enough".to_owned(),
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
    let mut shown: Vec<&LayerShare> =
        record.layers.iter().filter(|l| l.id != Layer::Unexplained && words::visible(l.share)).collect();
    shown.sort_by(|a, b| b.share.total_cmp(&a.share));
    let mut ledger = Ledger::default();
    for layer in record.layers.iter().filter(|l| l.id == Layer::Unexplained).chain(shown.iter().copied()) {
        ledger.add(layer.id, layer.busy_s * 1e9, layer.wait_s * 1e9);
    }
    let label = format!("{} thread time", seconds(record.thread_s));
    let mut text =
        format!("{label}  {}\n", bar::bar(&ledger, width.saturating_sub(label.chars().count() + 2)));
    let mut keys: Vec<String> = shown.iter().map(|layer| key(record, layer)).collect();
    let small: f64 = record
        .layers
        .iter()
        .filter(|l| l.id != Layer::Unexplained && !words::visible(l.share))
        .map(|l| l.share)
        .sum();
    if small >= LEAST_OTHERS {
        keys.push(format!("others {}", percent_of(small)));
    }
    keys.push(format!(
        "{} {}",
        bar::key(Layer::Unexplained),
        percent_of((record.unexplained_share * 1e3).round() / 1e3)
    ));
    text.push_str(&flow(&keys, width, "  "));
    text.push('\n');
    text
}

/// A layer's letter, name and share. Time off the path is neither the program's nor the disk's, and what interrupts took
/// is not even a wait: both are said.
fn key(record: &WatchRecord, layer: &LayerShare) -> String {
    /// Part of the time of a layer that gives it its name.
    const NEARLY_ALL: f64 = 0.9;
    let named = |name: &str| format!("{} {}", bar::key_as(layer.id, name), share(layer));
    if layer.id != Layer::Elsewhere {
        return named(layer.id.id());
    }
    let whole = layer.busy_s + layer.wait_s;
    let interrupts: f64 = record
        .operations
        .iter()
        .filter(|o| o.id == Operation::Interrupt.id())
        .flat_map(|o| &o.layers)
        .filter(|l| l.id == Layer::Elsewhere)
        .map(|l| l.busy_s)
        .sum();
    if interrupts >= NEARLY_ALL * whole {
        named("interrupts")
    } else {
        format!("{} (off the path)", named("elsewhere"))
    }
}

/// Seconds for people.
fn seconds(s: f64) -> String {
    units::time(s * 1e9)
}
