//! The second witness on the screen: a line of what it says, and its table.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::units;
use iowhy_path::cross_check::{Agreement, CrossCheck, Fitted, PartCheck, Verdict};

use crate::record::{CellRecord, Record};
use crate::render::table::{Align, layout};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Cells that have a witness, with the names they have on the screen.
pub type Labels<'a> = Vec<(String, &'a CrossCheck)>;

/// The witnesses of the cells with these keys and labels.
pub fn labels<'a>(record: &'a Record, named: &[(String, &'static str)]) -> Labels<'a> {
    let of = |key: &String| record.cells.iter().find(|cell| cell.key == *key)?.witness.as_ref();
    named.iter().filter_map(|(key, label)| Some(((*label).to_owned(), of(key)?))).collect()
}

/// The witnesses of all cells, named by the caller.
pub fn all_labels<'a>(record: &'a Record, name: impl Fn(&CellRecord) -> String) -> Labels<'a> {
    record.cells.iter().filter_map(|cell| Some((name(cell), cell.witness.as_ref()?))).collect()
}

/// What the second witness says: a line, and one for each request it says something else about.
pub fn lines(record: &Record, labels: &Labels<'_>) -> String {
    if let Some(lack) = &record.witness_lack
        && labels.is_empty()
    {
        return format!("{DIM}no second witness: {lack}{DIM:#}\n");
    }
    let Some(tier) = labels.iter().map(|(_, witness)| witness.tier).min() else { return String::new() };
    let with = |verdict: Verdict| labels.iter().filter(move |(_, witness)| witness.verdict == verdict);
    let samples = units::total(labels.iter().map(|(_, witness)| witness.samples));
    let mut parts =
        vec![format!("agrees on {} of {} requests", with(Verdict::Confirmed).count(), labels.len())];
    let open = with(Verdict::Inconclusive).count();
    if open > 0 {
        parts.push(format!("{open} inconclusive"));
    }
    let contrary = with(Verdict::Disagrees).count();
    if contrary > 0 {
        parts.push(format!("disagrees on {contrary}"));
    }
    let mut text =
        format!("{DIM}second witness ({}, {samples} samples): {}{DIM:#}\n", tier.id(), parts.join(", "));
    for (label, witness) in with(Verdict::Disagrees) {
        let differing = witness.layers.iter().filter(|part| part.result == Agreement::Disagrees);
        let said: Vec<String> = differing.map(difference).collect();
        let _ = writeln!(text, "  {label}: {}", said.join("; "));
    }
    for (label, witness) in with(Verdict::Inconclusive) {
        let _ =
            writeln!(text, "  {DIM}{label}: {}{DIM:#}", witness.reason.as_deref().unwrap_or("inconclusive"));
    }
    text
}

/// `cache 120 ns [110 ns, 130 ns] fitted, 260 ns [230 ns, 290 ns] seen`.
fn difference(part: &PartCheck) -> String {
    let fitted = part.fitted.as_ref().map_or_else(|| "nothing".to_owned(), fitted);
    format!("{} {fitted} fitted, {} seen", part.id, seen(part))
}

fn fitted(fit: &Fitted) -> String {
    let (low, high) = (units::time(fit.low_ns), units::time(fit.high_ns));
    format!("{} [{low}, {high}]", units::time(fit.value_ns))
}

fn seen(part: &PartCheck) -> String {
    let e = &part.seen;
    if e.low == e.high {
        return units::time(e.value);
    }
    format!("{} [{}, {}]", units::time(e.value), units::time(e.low), units::time(e.high))
}

/// Both accounts of every request that was watched, part by part.
pub fn table(record: &Record, labels: &Labels<'_>) -> String {
    if labels.is_empty() || record.cells.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{BOLD}second witness{BOLD:#} (per request; 95 % intervals; events: clock samples or sleeps)\n"
    );
    let mut reasons: Vec<(&str, &str)> = Vec::new();
    let mut rows = Vec::new();
    for (label, witness) in labels {
        rows.push(vec![
            format!("  {label}"),
            String::new(),
            units::time(witness.time_ns),
            format!("{} requests", witness.requests),
            witness.verdict.id().to_owned(),
        ]);
        for part in &witness.layers {
            let fitted = part.fitted.as_ref().map_or_else(|| "-".to_owned(), fitted);
            let result = match part.result {
                Agreement::Agrees => "agrees",
                Agreement::Disagrees => "disagrees",
                Agreement::Inconclusive => "inconclusive",
                Agreement::NotFitted => "not fitted",
            };
            rows.push(vec![
                format!("    {}", part.id),
                fitted,
                seen(part),
                part.events.to_string(),
                result.to_owned(),
            ]);
            if let Some(why) = &part.why
                && !reasons.iter().any(|(id, _)| *id == part.id)
            {
                reasons.push((&part.id, why));
            }
        }
    }
    let align = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Left];
    text.push_str(&layout(&["  request", "fitted", "seen", "events", "result"], &align, &rows));
    for (id, why) in reasons {
        let _ = writeln!(text, "  {DIM}{id}: {why}{DIM:#}");
    }
    text
}
