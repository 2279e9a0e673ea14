//! The screen of compared programs: changes of the wall time, of its parts, and of the findings.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::stats::Verdict;
use iowhy_core::units;
use iowhy_explain::runs::Changed;

use super::{WIDTHS, differences, effect, units_percent, verdict_word};
use crate::record::compare::{ChangedFinding, ChangedPart, ProgramComparison, RunsOf};
use crate::screen::measured::cell::small_time;
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{cut, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Parts below this share of the wall time on both sides are in the record alone, unless their word says otherwise.
const VISIBLE: f64 = 0.01;
/// Parts that are shown.
const MAX_PARTS: usize = 14;

/// Lays the comparison out.
pub fn screen(comparison: &ProgramComparison, width: usize) -> String {
    let width = width.clamp(WIDTHS.0, WIDTHS.1);
    let head = wrap(&headline(comparison), width, "", "  ").trim_end().to_owned();
    let mut text = format!("{BOLD}{head}{BOLD:#}\n");
    for (which, side) in [("before", &comparison.before), ("after ", &comparison.after)] {
        let line = cut(&format!("{which}  {}", side_in_words(side)), width);
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    text.push_str(&differences(&comparison.differences, width));
    text.push('\n');
    text.push_str(&parts(comparison, width));
    text.push_str(&findings(comparison, width));
    text.push_str(&remarks(comparison, width));
    text
}

/// `wall time improved: 1.61 s ±2 % -> 142 ms ±3 %, after / before 0.088 [0.085, 0.092], n = 5 and 6 runs`.
fn headline(comparison: &ProgramComparison) -> String {
    let wall = &comparison.wall;
    let word = anstream::adapter::strip_str(&verdict_word(wall.verdict)).to_string();
    let because = comparison.doubt.as_ref().map_or_else(String::new, |doubt| format!(": {doubt}"));
    let ratio = wall
        .ratio
        .as_ref()
        .map_or_else(String::new, |ratio| format!(", after / before {}", units::factor(ratio)));
    format!(
        "wall time {word}{because}; {} -> {}{ratio}, n = {} and {}",
        time(wall.before_ns, wall.before.as_ref()),
        time(wall.after_ns, wall.after.as_ref()),
        comparison.before.files.len(),
        comparison.after.files.len()
    )
}

fn side_in_words(side: &RunsOf) -> String {
    let runs = units::counted(side.files.len() as u64, "run", "runs");
    format!("{} ({runs}): {}", side.named, side.subject)
}

/// A median with its interval, where it has one.
fn time(ns: f64, estimate: Option<&iowhy_core::estimate::Estimate>) -> String {
    estimate.map_or_else(|| units::time(ns), small_time)
}

fn parts(comparison: &ProgramComparison, width: usize) -> String {
    let whole = comparison.wall.before_ns.max(f64::MIN_POSITIVE);
    let shown = |part: &&ChangedPart| {
        let large = part.time.before_ns.max(part.time.after_ns) >= VISIBLE * whole;
        large || matches!(part.time.verdict, Verdict::Improved | Verdict::Regressed)
    };
    let rows: Vec<&ChangedPart> = comparison.parts.iter().filter(shown).take(MAX_PARTS).collect();
    let ratios = rows.iter().any(|part| part.time.ratio.is_some());
    let tables =
        [(true, ratios), (true, false), (false, false)].map(|(times, ratio)| table(&rows, times, ratio));
    let fits = |text: &&String| text.lines().all(|line| visible_width(line) <= width);
    let mut text = tables.iter().find(fits).unwrap_or(&tables[2]).clone();
    let left = comparison.parts.len() - rows.len();
    if left > 0 {
        let line =
            format!("{} in the record alone", units::counted(left as u64, "smaller part", "smaller parts"));
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    text
}

/// Columns give way on a narrow terminal: first the ratio, then the times.
fn table(parts: &[&ChangedPart], times: bool, ratio: bool) -> String {
    let rows: Vec<Vec<String>> = parts
        .iter()
        .map(|part| {
            let t = &part.time;
            let mut row = vec![name(part)];
            if times {
                row.extend([time(t.before_ns, t.before.as_ref()), time(t.after_ns, t.after.as_ref())]);
            }
            if ratio {
                row.push(t.ratio.as_ref().map_or_else(|| "-".to_owned(), units::factor));
            }
            row.push(of_the_whole(t));
            row.push(verdict_word(t.verdict));
            row
        })
        .collect();
    let mut columns = vec![("part of the wall time", Align::Left)];
    if times {
        columns.extend([("before", Align::Right), ("after", Align::Right)]);
    }
    if ratio {
        columns.push(("after / before", Align::Right));
    }
    columns.extend([("of the whole", Align::Right), ("verdict", Align::Left)]);
    let (header, align): (Vec<&str>, Vec<Align>) = columns.into_iter().unzip();
    layout(&header, &align, &rows)
}

fn name(part: &ChangedPart) -> String {
    match part.layer {
        Some(layer) => format!("{}: {}", part.operation, layer.id()),
        None => "nothing of it active".to_owned(),
    }
}

/// What the part's change is of the whole; without an interval where runs are too few for one.
fn of_the_whole(time: &Changed) -> String {
    match &time.effect {
        Some(e) => effect(e),
        // Adding 0 turns -0 into 0.
        None => format!("{:+.1} %", ((time.effect_value - 1.0) * 1000.0).round() / 10.0 + 0.0),
    }
}

fn findings(comparison: &ProgramComparison, width: usize) -> String {
    if comparison.findings.is_empty() {
        return String::new();
    }
    let (n, m) = (comparison.before.files.len() as u64, comparison.after.files.len() as u64);
    let (stay, rest): (Vec<&ChangedFinding>, Vec<&ChangedFinding>) =
        comparison.findings.iter().partition(|finding| finding.fate == "stays");
    let mut text = String::from("\n");
    if !rest.is_empty() {
        let rows: Vec<Vec<String>> = rest
            .iter()
            .map(|finding| {
                vec![
                    finding.id.id().to_owned(),
                    format!("in {} of {}", finding.before_runs, units::counted(n, "run", "runs")),
                    format!("in {} of {}", finding.after_runs, units::counted(m, "run", "runs")),
                    format!("{} (p = {})", finding.fate.replace('-', " "), chance(finding.chance)),
                ]
            })
            .collect();
        text.push_str(&layout(&["finding", "before", "after", "change"], &[Align::Left; 4], &rows));
    }
    if !stay.is_empty() {
        let names: Vec<&str> = stay.iter().map(|finding| finding.id.id()).collect();
        text.push_str(&wrap(&format!("in every run of both sides: {}", names.join(", ")), width, "", "  "));
    }
    text
}

/// The probability of chance; below a bound only the bound.
fn chance(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

fn remarks(comparison: &ProgramComparison, width: usize) -> String {
    let mut text = String::new();
    if let Some(doubt) = &comparison.parts_doubt {
        text.push_str(&wrap(&format!("parts: inconclusive: {doubt}"), width, "  ", "    "));
    }
    if comparison.doubt.is_some() {
        let command = |name: &str, side: &RunsOf| format!("`iowhy --save-as {name} -- {}`", side.subject);
        let line = format!(
            "more runs decide: {} and {} by turns, five times each or more, then `iowhy compare @before @after`",
            command("before", &comparison.before),
            command("after", &comparison.after)
        );
        text.push_str(&wrap(&line, width, "  ", "    "));
    }
    let undecided = comparison.wall.verdict == Verdict::CannotTell && comparison.doubt.is_none();
    if undecided {
        let line = "inconclusive: the interval includes no change and a relevant change; more runs, or an idle machine, \
                    would decide";
        text.push_str(&wrap(line, width, "  ", "    "));
    }
    let line = format!(
        "medians over runs, 95 % intervals; parts are of the wall clock, shared among the threads that are active at each \
         instant; of the whole: what the part's change alone makes of the wall time, which matters from {} on; p: Fisher's \
         exact test",
        units_percent(comparison.threshold_share)
    );
    let _ = write!(text, "{DIM}{}{DIM:#}", wrap(&line, width, "", "  "));
    text
}
