//! Runs of a profiled program: changes of the wall time, of its parts, and of the findings.

use iowhy_core::estimate::Estimate;
use iowhy_core::stats::Verdict;
use iowhy_core::units;
use iowhy_diagnose::runs::Changed;
use iowhy_view::document::{Cell, Chapter, Detail, Part, Section, Shape, Table};

use super::{cell, chart, differences, dot, effect, percent, word};
use crate::record::compare::{ChangedFinding, ChangedPart, ProgramComparison, RunsOf};
use crate::screen::measured::cell::small_time;
use crate::screen::surroundings;

/// Parts below this share of the wall time on both sides are in the record alone, unless they changed.
const VISIBLE: f64 = 0.01;
/// Parts on a screen.
const MAX_PARTS: usize = 14;

/// The chapter.
pub fn chapter(comparison: &ProgramComparison, detail: Detail) -> Chapter {
    let sides = [("before", &comparison.before), ("after ", &comparison.after)];
    let facts = sides.map(|(which, side)| format!("{which}  {}", in_words(side)));
    let verdict = headline(comparison);
    let mut sections = vec![
        Section::new("", vec![Part::Verdict(verdict.clone()), Part::Remarks(facts.to_vec())]),
        differences(&comparison.differences),
        Section::quiet("Parts of the wall time", parts(comparison, &verdict, detail)),
        Section::quiet("Findings", findings(comparison)),
        Section::quiet("Remarks", remarks(comparison)),
    ];
    let title = if detail.is_page() { "Did the change help?" } else { "" };
    if detail.is_page() {
        sections.extend(surroundings::warnings(&comparison.warnings));
    }
    Chapter { title: title.to_owned(), sections, ..Chapter::default() }
}

/// `Wall time improved; 1.61 s ±2 % -> 142 ms ±3 %, after / before 0.088 [0.085, 0.092], n = 5 and 6`
fn headline(comparison: &ProgramComparison) -> String {
    let wall = &comparison.wall;
    let because = comparison.doubt.as_ref().map_or_else(String::new, |doubt| format!(": {doubt}"));
    let ratio = wall.after_over_before.as_ref().map(units::factor);
    let ratio = ratio.map_or_else(String::new, |ratio| format!(", after / before {ratio}"));
    format!(
        "Wall time {}{because}; {} -> {}{ratio}, n = {} and {}",
        word(wall.verdict),
        time(wall.before_ns, wall.before.as_ref()),
        time(wall.after_ns, wall.after.as_ref()),
        comparison.before.files.len(),
        comparison.after.files.len()
    )
}

fn in_words(side: &RunsOf) -> String {
    let runs = units::counted(side.files.len() as u64, "run", "runs");
    format!("{} ({runs}): {}", side.named, side.subject)
}

/// A median with its interval, where it has one.
fn time(ns: f64, estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| units::time(ns), small_time)
}

fn parts(comparison: &ProgramComparison, verdict: &str, detail: Detail) -> Vec<Part> {
    let whole = comparison.wall.before_ns.max(f64::MIN_POSITIVE);
    let changed = |part: &ChangedPart| matches!(part.time.verdict, Verdict::Improved | Verdict::Regressed);
    let large = |part: &ChangedPart| part.time.before_ns.max(part.time.after_ns) >= VISIBLE * whole;
    let shown = comparison.parts.iter().filter(|part| detail.is_page() || large(part) || changed(part));
    let shown: Vec<&ChangedPart> = shown.take(detail.rows(MAX_PARTS, usize::MAX)).collect();
    let mut table = Table::new(["part", "#before", "#after", "#after / before", "#effect", "verdict"]);
    for part in &shown {
        let t = &part.time;
        table.row([
            Cell::from(name(part)),
            time(t.before_ns, t.before.as_ref()).into(),
            time(t.after_ns, t.after.as_ref()).into(),
            t.after_over_before.as_ref().map_or_else(String::new, units::factor).into(),
            share(t).into(),
            cell(t.verdict, ""),
        ]);
    }
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes =
        vec![shape(&[]), shape(&["after / before"]), shape(&["after / before", "before", "after"])];
    let table = table.without_empty_columns();
    if detail.is_page() {
        let rows = shown.iter().filter(|part| changed(part));
        let rows = rows.map(|part| dot(&name(part), part.time.effect.as_ref(), part.time.verdict));
        let whole = dot("wall time", comparison.wall.effect.as_ref(), comparison.wall.verdict);
        let rows: Vec<_> = std::iter::once(whole).chain(rows).collect();
        let title =
            "Effect of each change alone on the wall time, with 95 % intervals; left of the line is faster";
        return vec![chart(title, verdict, &rows, table)];
    }
    let left = (comparison.parts.len() - shown.len()) as u64;
    let note = format!("{} in the record alone", units::counted(left, "smaller part", "smaller parts"));
    table.part().into_iter().chain((left > 0).then_some(Part::Note(note))).collect()
}

fn name(part: &ChangedPart) -> String {
    match part.layer {
        Some(layer) => format!("{}: {}", part.operation, layer.id()),
        None => "idle".to_owned(),
    }
}

/// The part's change as a share of the whole; without an interval where runs are too few for one.
fn share(time: &Changed) -> String {
    match &time.effect {
        Some(e) => effect(e),
        // Adding 0 turns -0 into 0.
        None => format!("{:+.1} %", ((time.effect_value - 1.0) * 1000.0).round() / 10.0 + 0.0),
    }
}

fn findings(comparison: &ProgramComparison) -> Vec<Part> {
    let (n, m) = (comparison.before.files.len() as u64, comparison.after.files.len() as u64);
    let (stay, rest): (Vec<&ChangedFinding>, Vec<&ChangedFinding>) =
        comparison.findings.iter().partition(|finding| finding.change == "stays");
    let mut table = Table::new(["finding", "before", "after", "change"]);
    for finding in rest {
        table.row([
            finding.id.id().to_owned(),
            format!("in {} of {}", finding.before_runs, units::counted(n, "run", "runs")),
            format!("in {} of {}", finding.after_runs, units::counted(m, "run", "runs")),
            format!("{} (p = {})", finding.change.replace('-', " "), chance(finding.chance)),
        ]);
    }
    let names: Vec<&str> = stay.iter().map(|finding| finding.id.id()).collect();
    let stay = Part::Text(format!("in every run of both sides: {}", names.join(", ")));
    table.part().into_iter().chain((!names.is_empty()).then_some(stay)).collect()
}

/// The probability of chance; below a bound only the bound.
pub(in crate::screen) fn chance(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

fn remarks(comparison: &ProgramComparison) -> Vec<Part> {
    let mut lines = Vec::new();
    if let Some(doubt) = &comparison.parts_doubt {
        lines.push(format!("parts: inconclusive: {doubt}"));
    }
    if comparison.doubt.is_some() {
        let command = |name: &str, side: &RunsOf| format!("`iowhy --save-as {name} -- {}`", side.subject);
        lines.push(format!(
            "more runs decide: {} and {} by turns, five times each or more, then `iowhy compare @before @after`",
            command("before", &comparison.before),
            command("after", &comparison.after)
        ));
    } else if comparison.wall.verdict == Verdict::Inconclusive {
        lines.push(
            "inconclusive: the interval includes no change and a relevant change; more runs, or an idle machine, would decide"
                .to_owned(),
        );
    }
    let note = format!(
        "medians over runs, 95 % intervals; parts are of the wall clock, shared among the threads that are active at each \
         instant; effect: of the part's change alone, on the whole (smallest reported: {}); p: Fisher's exact test",
        percent(comparison.threshold_share)
    );
    vec![Part::Remarks(lines), Part::Note(note)]
}
