//! A profiled program: how it ended, the verdict, where its time went, the findings, and the limitations.
//! Invariant: a share that was sampled has its interval. A screen leaves out what is too small to matter; a page has charts.

mod charts;
mod files;
mod findings;
mod processes;
mod replies;
mod tables;
#[cfg(test)]
mod tests;
mod trust;
mod usage;

use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::units::{self, Bytes};
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::phases::Whose;
use iowhy_view::document::{Chapter, Detail, Part, Section, Split};
use iowhy_view::piece::Piece;

use super::figures::{OnTheClock, percent_of, plural, share, visible};
use super::{course, prove, surroundings};
use crate::record::watch::{Exit, LayerShare, RanAs, WatchRecord};

/// Layers too small for a place of their own are one figure, if it is not written as 0.
const MIN_OTHERS: f64 = 0.0005;

/// The chapter.
pub fn chapter(record: &WatchRecord, detail: Detail) -> Chapter {
    let page = detail.is_page();
    let mut sections = vec![Section::new("", vec![Part::Verdict(verdict(record))])];
    if page {
        sections.push(Section::quiet("Findings", findings::parts(record, detail)));
        sections.extend(record.proof.iter().flat_map(|proof| prove::sections(proof, detail)));
        sections.extend([charts::layers(record), charts::wall_clock(record)]);
    } else {
        sections.push(Section::quiet("Where the time went", layers(record)));
    }
    sections.push(Section::quiet("Bytes and calls", usage::parts(record)));
    if page {
        let course = record.profile.course.as_ref();
        sections.push(course::section(course, Whose::Program, &record.over_time));
    } else {
        let told = course::lines(Whose::Program, &record.over_time);
        sections.push(Section::quiet(
            "Over time",
            (!told.is_empty()).then_some(Part::Facts(told)).into_iter().collect(),
        ));
    }
    sections.push(Section::quiet("Processes", processes::parts(record, detail)));
    sections.push(Section::quiet("Operations", tables::operations(record, detail)));
    sections.push(Section::new("", tables::syncs(record)));
    sections.push(Section::quiet("Files", files::parts(record, detail)));
    if page {
        sections.push(charts::devices(record));
    }
    sections.push(Section::quiet("Callers", tables::call_sites(record, detail)));
    if !page {
        sections.push(Section::quiet("Findings", findings::parts(record, detail)));
    }
    sections.push(Section::quiet("Limitations", trust::parts(record, detail)));
    if page {
        sections.push(surroundings::section(&record.environment, &record.warnings));
    }
    Chapter { title: record.subject.clone(), about: ending(record), facts: facts(record, page), sections }
}

/// How it ended; empty for success.
fn ending(record: &WatchRecord) -> String {
    match record.exit {
        Some(Exit::Code(0)) => String::new(),
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) => format!("killed by signal {signal}"),
        None if record.profile.end == iowhy_core::profile::End::Gone => "ended, exit code unknown".to_owned(),
        None => "still running".to_owned(),
    }
}

/// Times, user, threads and machine.
fn facts(record: &WatchRecord, page: bool) -> Vec<String> {
    let mut facts =
        vec![format!("{} wall", seconds(record.wall_s)), format!("{} CPU", seconds(record.cpu_s))];
    facts.extend(record.rank.as_ref().map(|rank| format!("{} on {}", rank.words(), rank.host)));
    facts.extend(record.ran_as.as_ref().map(RanAs::words));
    let processes = units::total(record.processes.iter().map(|command| command.count));
    if processes > 1 {
        facts.push(plural(processes, "process", "processes"));
    }
    facts.push(plural(record.profile.thread_count(), "thread", "threads"));
    if !record.environment.kernel.is_empty() {
        let e = &record.environment;
        facts.push(format!("Linux {}", e.kernel));
        facts.push(plural(e.cpus as u64, "CPU", "CPUs"));
        facts.push(format!("{} memory", Bytes(e.memory_bytes >> 20 << 20)));
    }
    let version = page.then(|| format!("iowhy {}", record.iowhy));
    std::iter::once(facts.join(", ")).chain(version).collect()
}

/// The first finding's sentence; without one, where most of the time went.
fn verdict(record: &WatchRecord) -> String {
    match record.findings.first() {
        Some(first) => first.sentence.clone(),
        None => match record.layers.iter().max_by(|a, b| a.wall_s.total_cmp(&b.wall_s)) {
            Some(most) if most.id == Layer::Unexplained => {
                format!("Inconclusive: {} of wall time is unexplained", on_wall(record, most))
            }
            Some(most) => {
                format!("No finding; most of wall time is in `{}`: {}", most.id.id(), on_wall(record, most))
            }
            None => "No data: no thread lived long enough".to_owned(),
        },
    }
}

/// The bar over the wall time by layer, with shares; `unexplained` always.
fn layers(record: &WatchRecord) -> Vec<Part> {
    if record.layers.is_empty() {
        return Vec::new();
    }
    let (unexplained, others): (Vec<&LayerShare>, Vec<&LayerShare>) =
        record.layers.iter().partition(|layer| layer.id == Layer::Unexplained);
    let part = |layer: &LayerShare| layer.of_wall(record.wall_s).value();
    let (mut shown, small): (Vec<&LayerShare>, Vec<&LayerShare>) =
        others.into_iter().partition(|layer| visible(part(layer)));
    shown.sort_by(|a, b| b.wall_s.total_cmp(&a.wall_s));
    let mut ledger = Ledger::default();
    for layer in unexplained.iter().chain(&shown) {
        ledger.add(layer.id, 0.0, layer.wall_s * 1e9);
    }
    let pieces = Piece::from_ledger(&ledger);
    let mut legend: Vec<(Option<Layer>, String, String)> =
        shown.iter().map(|layer| key(record, layer)).collect();
    let small: f64 = small.iter().map(|layer| part(layer)).sum();
    if small >= MIN_OTHERS {
        legend.push((None, "others".to_owned(), percent_of(small)));
    }
    let unknown: f64 = unexplained.iter().map(|layer| part(layer)).sum();
    let share = percent_of((unknown * 1e3).round() / 1e3);
    legend.push((Some(Layer::Unexplained), Layer::Unexplained.id().to_owned(), share));
    if record.idle_threads > 0 {
        let threads = plural(record.idle_threads, "idle thread", "idle threads");
        legend.push((None, threads, "left out".to_owned()));
    }
    let label = format!("{} wall time", seconds(record.wall_s));
    vec![Part::Split(Split { label, pieces, legend })]
}

/// A part of the wall time as a share of the run.
fn on_wall(record: &WatchRecord, of: &impl OnTheClock) -> String {
    share(&of.of_wall(record.wall_s))
}

/// A layer, its name and its share. Time off the path is neither the program's nor the disk's, and time in interrupts is no
/// wait: both are named.
fn key(record: &WatchRecord, layer: &LayerShare) -> (Option<Layer>, String, String) {
    /// Part of the time of a layer that gives it its name.
    const NEARLY_ALL: f64 = 0.9;
    let named = |name: &str, note: &str| {
        (Some(layer.id), name.to_owned(), format!("{}{note}", on_wall(record, layer)))
    };
    if layer.id != Layer::Elsewhere {
        return named(layer.id.id(), "");
    }
    let interrupts: f64 = record
        .operations
        .iter()
        .filter(|o| o.id == Operation::Interrupt.id())
        .flat_map(|o| &o.layers)
        .filter(|l| l.id == Layer::Elsewhere)
        .map(|l| l.wall_s)
        .sum();
    if interrupts >= NEARLY_ALL * layer.wall_s {
        named("interrupts", "")
    } else {
        named("elsewhere", " (off the path)")
    }
}

/// Seconds for people.
fn seconds(s: f64) -> String {
    units::time(s * 1e9)
}
