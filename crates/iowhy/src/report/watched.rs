//! A chapter of a watched program: why it is slow, what would help, where its time went, and how far to trust that.

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, Gain};
use iowhy_core::layer::Layer;
use iowhy_core::profile::{StackTime, State};
use iowhy_core::units;
use iowhy_explain::classify::Wait;

use super::document::{Chapter, Chart, Part, Section, Table};
use super::look::written;
use super::surroundings;
use super::svg::WIDE;
use super::svg::bars::{self, Bar, Piece};
use super::svg::flame::{self, Node};
use crate::meaning::Meaning;
use crate::record::prove::{Proof, ProveRecord, WhatIf};
use crate::record::watch::{LayerShare, WatchRecord};
use crate::render::remedies::remedies;
use crate::render::watch::words::{bytes, factor, percent_of, share};

/// Files, threads and callers that are listed; the record holds all.
const MOST_ROWS: usize = 25;
/// Operations below this share have no bar.
const BAR_MATTERS: f64 = 0.005;

/// The chapter.
pub(super) fn chapter(record: &WatchRecord) -> Chapter {
    let end = match record.exit {
        Some(crate::record::watch::Exit::Code(0)) => "",
        Some(_) => ", it failed",
        None => ", its exit code is not known",
    };
    let as_whom = record.ran_as.as_ref().map_or(String::new(), |who| format!("{}, ", who.words()));
    Chapter {
        title: format!("Why it took {}: {}", seconds(record.wall_s), record.subject),
        facts: vec![format!(
            "{} wall, {} CPU, {as_whom}{}{end}; iowhy {}",
            seconds(record.wall_s),
            seconds(record.cpu_s),
            units::counted(record.processes, "process", "processes"),
            record.iowhy
        )],
        sections: vec![
            verdict(record),
            record.proof.as_ref().map(proof).unwrap_or_default(),
            layers(record),
            wall_clock(record),
            operations(record),
            files(record),
            devices(record),
            callers(record),
            trust(record),
            surroundings::section(&record.environment, &record.warnings),
        ],
    }
}

fn seconds(s: f64) -> String {
    units::time(s * 1e9)
}

fn verdict(record: &WatchRecord) -> Section {
    let mut parts = Vec::new();
    match record.findings.first() {
        Some(first) => parts.push(Part::Verdict(first.sentence.clone())),
        None => parts.push(Part::Verdict("No finding: nothing in the path stands out".to_owned())),
    }
    for (number, finding) in record.findings.iter().enumerate() {
        parts.push(Part::Text(headline(finding)));
        let mut items = Vec::new();
        if number > 0 {
            items.push(finding.sentence.clone());
        }
        items.extend(finding.evidence.iter().cloned());
        if !finding.advice.is_empty() {
            items.push(format!("What to do: {}", finding.advice));
        }
        parts.push(Part::List(items));
    }
    Section::new("", parts)
}

fn headline(finding: &Finding) -> String {
    let gain = finding.gain.map(|gain| format!(", predicted gain {}", self::gain(gain))).unwrap_or_default();
    format!("`{}`: {} of the wall time{gain}", finding.title(), percent_of(finding.share))
}

fn gain(gain: Gain) -> String {
    let over = if gain.open_above { "over " } else { "" };
    format!("{}x [{}, {over}{}]", factor(gain.predicted), factor(gain.low), factor(gain.high))
}

fn gained(measured: &Option<Estimate>) -> String {
    measured.as_ref().map_or_else(
        || "-".to_owned(),
        |m| format!("{}x [{}, {}] (n = {})", factor(m.value), factor(m.low), factor(m.high), m.n),
    )
}

/// What replays say of the findings; also the chapter's main part for a record of `prove` alone.
pub(super) fn proof(proof: &Proof) -> Section {
    let mut table = Table::new(&["finding", "#predicted gain", "#measured gain", "verdict", "how", "why"]);
    for one in &proof.findings {
        table.row([
            one.id.id().to_owned(),
            one.predicted.map_or_else(|| "-".to_owned(), gain),
            gained(&one.measured),
            one.verdict.words().to_owned(),
            one.how.clone().unwrap_or_default(),
            one.reason.clone().unwrap_or_default(),
        ]);
        for other in &one.others {
            table.row([
                format!("{} (also tried)", one.id.id()),
                "-".to_owned(),
                gained(&other.measured),
                other.verdict.words().to_owned(),
                other.how.clone(),
                other.reason.clone().unwrap_or_default(),
            ]);
        }
    }
    if let Some(together) = &proof.together {
        table.row([
            "all together".to_owned(),
            "-".to_owned(),
            gained(&together.measured),
            together.verdict.words().to_owned(),
            together.how.clone(),
            together.reason.clone().unwrap_or_default(),
        ]);
    }
    for WhatIf { id, tried } in &proof.what_if {
        table.row([
            format!("what if {id}"),
            "-".to_owned(),
            gained(&tried.measured),
            tried.verdict.words().to_owned(),
            tried.how.clone(),
            tried.reason.clone().unwrap_or_default(),
        ]);
    }
    let mut parts = Vec::new();
    if let Some(replay) = &proof.replay {
        let fidelity = replay.fidelity.as_ref().map_or_else(|| "cannot tell".to_owned(), written);
        parts.push(Part::Text(format!(
            "The run as it was, replayed: {}, {fidelity} of the program's own time in them.",
            units::counted(replay.calls, "call", "calls")
        )));
    }
    for one in &proof.findings {
        let Some(replay) = &one.replay else { continue };
        let fidelity = replay.fidelity.as_ref().map_or_else(|| "cannot tell".to_owned(), written);
        parts.push(Part::Text(format!(
            "{} was held against the files alone: {}, {fidelity} of the program's own time in them.",
            one.id.id(),
            units::counted(replay.calls, "call", "calls")
        )));
    }
    if let Some(reason) = &proof.reason {
        parts.push(Part::Text(format!("Not believed, or not replayed: {reason}.")));
    }
    if !table.rows.is_empty() {
        parts.push(Part::Table(table));
    }
    Section::new("Proof: the run replayed as it was, and repaired", parts)
}

/// The chapter of a proof that was made of a record.
pub(super) fn proved(record: &ProveRecord) -> Chapter {
    let words = |warning: &iowhy_core::warning::Warning| warning.message.clone();
    let known = Section::new("To know", vec![Part::List(record.warnings.iter().map(words).collect())]);
    Chapter {
        title: format!("Proved: {}", record.subject),
        facts: vec![record.command.clone(), format!("iowhy {}", record.iowhy)],
        sections: if record.warnings.is_empty() {
            vec![proof(&record.proof)]
        } else {
            vec![proof(&record.proof), known]
        },
    }
}

fn piece(layer: &LayerShare, whole: &str) -> Piece {
    Piece {
        class: layer.id.id().to_owned(),
        name: layer.id.id().to_owned(),
        size: layer.busy_s + layer.wait_s,
        tip: format!(
            "{}\n{} of {whole}\nbusy {}, waiting {}",
            layer.id.id(),
            share(layer),
            seconds(layer.busy_s),
            seconds(layer.wait_s)
        ),
    }
}

fn layers(record: &WatchRecord) -> Section {
    if record.layers.is_empty() {
        return Section::default();
    }
    let mut bars = vec![Bar {
        label: "all threads".to_owned(),
        whole: seconds(record.thread_s),
        pieces: record.layers.iter().map(|l| piece(l, "the thread time")).collect(),
    }];
    let mut table = Table::new(&["of", "layer", "#busy", "#waiting", "#share"]);
    let mut rows = |of: &str, layers: &[LayerShare]| {
        for layer in layers {
            table.row([
                of.to_owned(),
                layer.id.id().to_owned(),
                seconds(layer.busy_s),
                seconds(layer.wait_s),
                share(layer),
            ]);
        }
    };
    rows("all threads", &record.layers);
    for operation in record.operations.iter().filter(|o| o.share >= BAR_MATTERS) {
        bars.push(Bar {
            label: operation.id.clone(),
            whole: format!("{} ({})", seconds(operation.seconds), percent_of(operation.share)),
            pieces: operation.layers.iter().map(|l| piece(l, "this operation")).collect(),
        });
        rows(&operation.id, &operation.layers);
    }
    let mut most: Vec<&LayerShare> = record.layers.iter().collect();
    most.sort_by(|a, b| b.share.total_cmp(&a.share));
    let alt = most
        .iter()
        .take(3)
        .map(|layer| format!("`{}` {}", layer.id.id(), share(*layer)))
        .collect::<Vec<_>>()
        .join(", ");
    let alt = format!("most of the thread time: {alt}");
    let svg = bars::chart(&bars, WIDE, &alt);
    let chart = Chart {
        title: "Thread time by layer, and by what the program asked for".to_owned(),
        alt,
        svg,
        table,
    };
    Section::new("Where the time went", vec![Part::Chart(chart)])
}

/// The wall clock as a flame graph: each instant shared among the threads that were active in it.
fn wall_clock(record: &WatchRecord) -> Section {
    let profile = &record.profile;
    if profile.stacks.is_empty() || profile.wall_ns == 0 {
        return Section::default();
    }
    let meaning = Meaning::new();
    let mut root = Node::default();
    let mut table: Vec<(String, f64)> = Vec::new();
    for stack in profile.stacks.iter().filter(|stack| stack.wall_ns > 0.0) {
        let class = meaning.of_stack(profile, stack);
        let layer = class.map_or(Layer::Unexplained, |class| class.layer);
        let mut frames = frames(record, stack);
        match stack.state {
            State::Running => {}
            State::Queued => frames.push("waiting: a CPU".to_owned()),
            State::Blocked => {
                let wait = class.and_then(|class| class.wait).map_or("unknown", Wait::words);
                frames.push(format!("waiting: {wait}"));
            }
        }
        let leaf = frames.last().cloned().unwrap_or_default();
        match table.iter_mut().find(|(name, _)| *name == leaf) {
            Some((_, ns)) => *ns += stack.wall_ns,
            None => table.push((leaf, stack.wall_ns)),
        }
        root.add(&frames, layer.id(), stack.wall_ns);
    }
    if profile.idle_wall_ns > 0.0 {
        let idle = "idle: nobody active on the path".to_owned();
        root.add(std::slice::from_ref(&idle), Layer::Elsewhere.id(), profile.idle_wall_ns);
        table.push((idle, profile.idle_wall_ns));
    }
    table.sort_by(|a, b| b.1.total_cmp(&a.1));
    let whole = profile.wall_ns as f64;
    let mut leaves = Table::new(&["innermost frame", "#wall time", "#share"]);
    for (name, ns) in table.iter().take(MOST_ROWS) {
        leaves.row([name.clone(), units::time(*ns), percent_of(ns / whole)]);
    }
    let alt = table.first().map_or_else(String::new, |(name, ns)| {
        format!("most of the wall clock ends in `{name}`: {}", percent_of(ns / whole))
    });
    let svg = flame::chart(&root, "wall clock", &units::time, &alt);
    let title = "Callers above, what they called below; a colour is a layer; click a frame to widen it, Escape to go back";
    Section::new(
        "The wall clock as a flame graph",
        vec![Part::Chart(Chart { title: title.to_owned(), alt, svg, table: leaves })],
    )
}

fn frames(record: &WatchRecord, stack: &StackTime) -> Vec<String> {
    let profile = &record.profile;
    let thread = profile.threads.get(stack.thread as usize).map_or("", |t| t.name.as_str());
    let name = |id: &u32| {
        let name = profile.symbols.get(*id as usize).map_or("", |s| s.name.as_str());
        if name.is_empty() { "[unknown]".to_owned() } else { name.to_owned() }
    };
    let mut frames = vec![if thread.is_empty() { "[no name]".to_owned() } else { thread.to_owned() }];
    frames.extend(stack.user.iter().rev().map(name));
    frames.extend(stack.kernel.iter().rev().map(name));
    if !stack.known {
        frames.push("[stack not seen]".to_owned());
    }
    frames
}

fn operations(record: &WatchRecord) -> Section {
    let mut table = Table::new(&["operation", "#time", "#share", "#calls", "waited for"]);
    for o in &record.operations {
        let calls = match (o.calls, o.calls_interval) {
            (Some(n), Some((low, high))) if low == high => units::count(n),
            (Some(n), Some((low, high))) => {
                format!(
                    "{} [{}, {}]",
                    units::count(n),
                    units::count(low as u64),
                    units::count(high.ceil() as u64)
                )
            }
            _ => "-".to_owned(),
        };
        let waits: Vec<String> = o
            .waits
            .iter()
            .filter(|w| w.seconds > 0.0)
            .take(3)
            .map(|w| format!("{} {}", w.words, seconds(w.seconds)))
            .collect();
        table.row([o.id.clone(), seconds(o.seconds), share(o), calls, waits.join(", ")]);
    }
    if table.rows.is_empty() {
        Section::default()
    } else {
        Section::new("Operations", vec![Part::Table(table)])
    }
}

fn files(record: &WatchRecord) -> Section {
    let mut table = Table::new(&[
        "file",
        "#size",
        "#read",
        "#read calls",
        "#written",
        "#write calls",
        "#syncs",
        "#cached at the end",
    ]);
    for f in record.io.files.iter().take(MOST_ROWS) {
        table.row([
            f.path.clone(),
            f.size_bytes.map_or_else(|| "-".to_owned(), bytes),
            bytes(f.reads.bytes),
            units::count(f.reads.calls),
            bytes(f.writes.bytes),
            units::count(f.writes.calls),
            units::count(f.syncs),
            f.cached_after.map_or_else(|| "-".to_owned(), percent_of),
        ]);
    }
    if table.rows.is_empty() {
        return Section::default();
    }
    let whole = record.profile.calls.as_ref().is_some_and(|calls| calls.complete);
    let mut parts = vec![Part::Table(table)];
    if !whole {
        parts.push(Part::Note(
            "Calls and bytes as far as bursts of tracing saw them, not all of the run.".to_owned(),
        ));
    }
    if record.io.files.len() > MOST_ROWS {
        parts.push(Part::Note(format!("{} more in the record.", record.io.files.len() - MOST_ROWS)));
    }
    Section::new("Files", parts)
}

fn devices(record: &WatchRecord) -> Section {
    let mut table =
        Table::new(&["device", "#busy", "#read", "#requests", "#written", "#requests", "#flushes", "limit"]);
    for d in &record.devices {
        let busy = d.busy_ns as f64 / 1e9 / record.wall_s.max(1e-9);
        table.row([
            d.name.clone(),
            percent_of(busy.min(1.0)),
            bytes(d.read_bytes),
            units::count(d.reads),
            bytes(d.written_bytes),
            units::count(d.writes),
            units::count(d.flushes),
            d.throttle.clone().unwrap_or_default(),
        ]);
    }
    if table.rows.is_empty() {
        return Section::default();
    }
    let note = Part::Note("All programs of the machine together.".to_owned());
    Section::new("Devices", vec![Part::Table(table), note])
}

fn callers(record: &WatchRecord) -> Section {
    let mut table = Table::new(&["thread", "function", "in", "asked for", "#time", "#share"]);
    for site in record.call_sites.iter().take(MOST_ROWS) {
        table.row([
            site.thread.clone(),
            site.function.clone(),
            site.object.clone().unwrap_or_default(),
            site.operation.clone(),
            seconds(site.seconds),
            share(site),
        ]);
    }
    if table.rows.is_empty() {
        Section::default()
    } else {
        Section::new("Who asked", vec![Part::Table(table)])
    }
}

fn trust(record: &WatchRecord) -> Section {
    let seen = &record.observer;
    let mut items = vec![
        format!("tier {}; watching cost {} of one CPU", record.tier.id(), percent_of(seen.cost_share)),
        format!("{}, {} lost", units::counted(seen.events, "event", "events"), units::count(seen.lost)),
        format!("unexplained: {} of the thread time", percent_of(record.unexplained_share)),
        "shares without ± were measured whole; those with ± were sampled: 95 % intervals".to_owned(),
    ];
    items.extend(record.limitations.iter().map(|limitation| format!("not seen: {}", limitation.sentence)));
    let remedies = remedies(&record.limitations, &record.command, record.environment.privileged);
    items.extend(remedies.iter().map(|remedy| format!("to see it: {remedy}")));
    Section::new("How far to trust this", vec![Part::List(items)])
}
