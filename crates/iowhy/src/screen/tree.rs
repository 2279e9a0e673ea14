//! `tree`: rates of each phase, then the time of each call.

use iowhy_core::estimate::Estimate;
use iowhy_core::text::visible;
use iowhy_core::units::{self, Bytes, count, counted};
use iowhy_view::document::{Chapter, Detail, Part, Section, Shape, Table};

use super::{heading, surroundings};
use crate::record::tree::{OperationRecord, PhaseRecord, TreeRecord};

/// The chapter.
pub fn chapter(record: &TreeRecord, detail: Detail) -> Chapter {
    let mut result = results(record);
    result.extend(record.interrupted.then(|| Part::Text("interrupted: partial result".to_owned())));
    let devices = devices(record).map(Part::Text);
    let phases = std::iter::once(Part::Table(phases(record, detail))).chain(devices).collect();
    let note = format!(
        "n = {} rounds; ± or [low, high]: 95 % interval of the median over rounds, also of p50 and p99 of each round; \
         slowest: of all rounds",
        record.rounds
    );
    let calls = vec![Part::Table(calls(record, detail)), Part::Note(note)];
    let mut chapter = Chapter {
        title: format!("small files in {}", visible(&record.tree.path)),
        facts: facts(record),
        sections: vec![
            Section::new("", result),
            Section::quiet("Phases", phases),
            Section::quiet("Calls", calls),
        ],
        ..Chapter::default()
    };
    if detail.is_page() {
        chapter.facts.push(record.command.clone());
        chapter.sections.push(surroundings::section(&record.environment, &record.warnings));
    }
    chapter
}

fn facts(record: &TreeRecord) -> Vec<String> {
    let tree = &record.tree;
    let sizes = match tree.size_bytes.as_slice() {
        [least, middle, most] if least != most => {
            format!(" of {} to {} (median {})", Bytes(*least), Bytes(*most), Bytes(*middle))
        }
        [one, ..] => format!(" of {}", Bytes(*one)),
        [] => String::new(),
    };
    let origin = match tree.origin.as_str() {
        "found" => "only read".to_owned(),
        "kept" => format!("kept, {} of them new", count(tree.made_now)),
        _ => "a scratch tree, now removed".to_owned(),
    };
    let mut facts = vec![format!(
        "{}{sizes} in {}, {} in total; {origin}",
        counted(tree.files, "file", "files"),
        counted(tree.directories, "directory", "directories"),
        Bytes(tree.bytes)
    )];
    facts.extend(heading::machine(&record.environment));
    let each = record.files_each.map_or_else(String::new, |n| format!(" with {} files each", count(n)));
    facts.push(format!("{}{each}, {} order", counted(record.readers, "thread", "threads"), record.order));
    facts
}

fn shown(estimate: Option<&Estimate>, detail: Detail) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| detail.estimate(estimate))
}

fn phases(record: &TreeRecord, detail: Detail) -> Table {
    let mut table = Table::new(["phase", "#files/s", "#throughput", "#first done", "#last done"]);
    for phase in &record.phases {
        // A sync has no files, a stat has no bytes.
        let rate = phase.files_per_second.as_ref().filter(|_| phase.files > 0);
        let first = phase.first_done.as_ref().filter(|_| record.readers > 1);
        table.row([
            name(phase),
            shown(rate, detail),
            shown(phase.throughput.as_ref(), detail),
            first.map_or_else(String::new, |first| shown(Some(first), detail)),
            shown(phase.last_done.as_ref(), detail),
        ]);
    }
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes = vec![shape(&[]), shape(&["first done"]), shape(&["first done", "throughput"])];
    table.without_empty_columns()
}

fn name(phase: &PhaseRecord) -> String {
    match (&phase.state, phase.state_verified) {
        (Some(state), Some(true)) => format!("{}, {state} ✓", phase.phase),
        (Some(state), Some(false)) => format!("{}, not {state}", phase.phase),
        (Some(state), None) => format!("{}, {state}?", phase.phase),
        (None, _) => phase.phase.clone(),
    }
}

/// Bytes that the device moved in the last round.
fn devices(record: &TreeRecord) -> Option<String> {
    let moved = |phase: &PhaseRecord| {
        let last = phase.samples.last()?;
        let (read, written) = (last.device_read_bytes?, last.device_write_bytes?);
        let parts: Vec<String> = [(read, "read"), (written, "written")]
            .into_iter()
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(bytes, what)| format!("{} {what}", Bytes(bytes)))
            .collect();
        (!parts.is_empty()).then(|| format!("{} {}", phase.phase, parts.join(", ")))
    };
    let moved: Vec<String> = record.phases.iter().filter_map(moved).collect();
    (!moved.is_empty()).then(|| format!("device in the last round, all processes: {}", moved.join("; ")))
}

fn calls(record: &TreeRecord, detail: Detail) -> Table {
    let mut table = Table::new(["phase", "call", "#calls", "#mean", "#p50", "#p99", "#slowest"]);
    for phase in &record.phases {
        for call in phase.operations.iter().filter(|call| call.n > 0) {
            table.row([
                phase.phase.clone(),
                call.id.clone(),
                count(call.n),
                shown(call.mean.as_ref(), detail),
                shown(call.p50.as_ref(), detail),
                shown(call.p99.as_ref(), detail),
                units::time(call.max_ns as f64),
            ]);
        }
    }
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes =
        vec![shape(&[]), shape(&["calls"]), shape(&["calls", "p50"]), shape(&["calls", "p50", "slowest"])];
    table
}

/// The rates of a file's life, and the shares that explain them.
fn results(record: &TreeRecord) -> Vec<Part> {
    let (mut rates, mut reasons) = (Vec::new(), Vec::new());
    let read = record.phases.iter().find(|phase| phase.phase == "read");
    if let Some((read, time)) = read.and_then(|read| Some((read, read.calls_together.as_ref()?))) {
        rates.push(format!("one file is read in {}", units::estimate(time)));
        let share =
            |call: &OperationRecord| Some(format!("{} {}", call.id, units::share(call.share.as_ref()?)));
        let shares: Vec<String> = read.operations.iter().filter_map(share).collect();
        reasons.push(format!("read time: {}", shares.join(", ")));
        if (read.state.as_deref(), read.state_verified) == (Some("cold"), Some(true)) {
            reasons.push(
                "Data was cold. Names and inodes were cached: only root can drop them, for the whole machine."
                    .to_owned(),
            );
        }
    }
    if let Some(settled) = &record.settled {
        rates.push(format!("{} files created and synced", units::estimate(&settled.files_per_second)));
        reasons.push(format!("the sync takes {} of create and sync", units::share(&settled.sync_share)));
    }
    let verdict = (!rates.is_empty()).then(|| Part::Verdict(format!("Result: {}.", rates.join("; "))));
    verdict.into_iter().chain([Part::List(reasons)]).collect()
}
