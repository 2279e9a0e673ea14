//! The cross-check of the fitted layers against stack samples: a summary, and a table.

use iowhy_core::units;
use iowhy_path::cross_check::{Agreement, CrossCheck, Fitted, PartCheck, Verdict};
use iowhy_view::document::{Part, Section, Table};

use super::Named;
use crate::record::Record;

/// Cells with a cross-check, with their names.
pub(super) type Labels<'a> = Vec<(String, &'a CrossCheck)>;

/// The cross-checks of these cells.
pub(super) fn labels<'a>(named: &Named<'a>) -> Labels<'a> {
    named.iter().filter_map(|(name, cell)| Some((name.clone(), cell.cross_check.as_ref()?))).collect()
}

/// One line, and one for each request without agreement.
pub(super) fn summary(record: &Record, labels: &Labels<'_>) -> Vec<Part> {
    if let Some(reason) = &record.cross_check_limitation
        && labels.is_empty()
    {
        return vec![Part::Note(format!("no stack-sampling cross-check: {reason}"))];
    }
    let Some(tier) = labels.iter().map(|(_, check)| check.tier).min() else { return Vec::new() };
    let with = |verdict: Verdict| labels.iter().filter(move |(_, check)| check.verdict == verdict);
    let samples = units::total(labels.iter().map(|(_, check)| check.samples));
    let (agree, disagree) = (with(Verdict::Confirmed).count(), with(Verdict::Disagrees).count());
    let verb = if disagree == 1 { "disagrees" } else { "disagree" };
    let mut parts = vec![Part::Note(format!(
        "stack-sampling cross-check ({}, {samples} samples): {agree} {}, {disagree} {verb}, {} inconclusive",
        tier.id(),
        if agree == 1 { "agrees" } else { "agree" },
        with(Verdict::Inconclusive).count()
    ))];
    let difference = |(label, check): &(String, &CrossCheck)| {
        let differing = check.layers.iter().filter(|part| part.result == Agreement::Disagrees);
        format!("{label}: {}", differing.map(difference).collect::<Vec<_>>().join("; "))
    };
    parts.push(Part::Remarks(with(Verdict::Disagrees).map(difference).collect()));
    let open = |(label, check): &(String, &CrossCheck)| {
        Part::Note(format!("{label}: {}", check.reason.as_deref().unwrap_or("inconclusive")))
    };
    parts.extend(with(Verdict::Inconclusive).map(open));
    parts
}

/// `cache 120 ns [110 ns, 130 ns] fitted, 260 ns [230 ns, 290 ns] seen`.
fn difference(part: &PartCheck) -> String {
    let fitted = part.fitted.as_ref().map_or_else(|| "nothing".to_owned(), fitted);
    format!("{} {fitted} fitted, {} sampled", part.id, seen(part))
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

/// Both figures of every request, layer by layer.
pub(super) fn section(labels: &Labels<'_>) -> Section {
    let mut table = Table::new(["request", "#fitted", "#sampled", "#events", "result"]);
    (table.indent, table.keys) = (2, 1);
    let mut reasons: Vec<(&str, &str)> = Vec::new();
    for (label, check) in labels {
        table.row([
            label.clone(),
            String::new(),
            units::time(check.time_ns),
            format!("{} requests", check.requests),
            check.verdict.id().to_owned(),
        ]);
        for part in &check.layers {
            let result = match part.result {
                Agreement::Agrees => "agrees",
                Agreement::Disagrees => "disagrees",
                Agreement::Inconclusive => "inconclusive",
                Agreement::NotFitted => "not fitted",
            };
            table.row([
                format!("  {}", part.id),
                part.fitted.as_ref().map_or_else(|| "-".to_owned(), fitted),
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
    let Some(table) = table.part() else { return Section::default() };
    let notes = reasons.into_iter().map(|(id, why)| Part::Note(format!("{id}: {why}")));
    let title = "stack-sampling cross-check (per request; 95 % intervals; events: clock samples or sleeps)";
    Section::new(title, std::iter::once(table).chain(notes).collect())
}
