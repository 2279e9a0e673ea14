//! The findings, most valuable first: predicted gain, evidence, advice.

use std::fmt::Write as _;

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, ProgramChange};
use iowhy_core::units::{count, time};
use iowhy_view::document::{Detail, Part};

use super::{percent_of, prove, replies};
use crate::record::watch::WatchRecord;
use crate::screen::figures::factor;

/// Deviation of the fidelity from 1 that is printed.
const NEAR: f64 = 0.1;
/// Findings on a screen.
const MAX_FINDINGS: usize = 2;
/// Changes to a well-known program, of the first finding on a screen; the others have one.
const MAX_CHANGES: usize = 2;
/// Lines of evidence of the first finding on a screen; the others have their sentence.
const MAX_EVIDENCE: usize = 3;

/// The list.
pub(super) fn parts(record: &WatchRecord, detail: Detail) -> Vec<Part> {
    let mut parts = Vec::new();
    let many = record.findings.len() > 1;
    let shown = detail.rows(MAX_FINDINGS, usize::MAX);
    for (i, finding) in record.findings.iter().take(shown).enumerate() {
        let number = if many { format!("{}. ", i + 1) } else { String::new() };
        parts.push(lead(&number, finding));
        let mut lines = Vec::new();
        if i > 0 {
            // The verdict at the top is the sentence of the first.
            lines.push(finding.sentence.clone());
        }
        if i == 0 || detail.is_page() {
            let most = detail.rows(MAX_EVIDENCE, usize::MAX);
            lines.extend(finding.evidence.iter().take(most).cloned());
        }
        parts.push(Part::List(lines));
        let whole = i == 0 || detail.is_page();
        parts.extend(time_that_remains(finding).map(Part::Note));
        parts.extend(replies::note(finding).map(Part::Note));
        parts.extend(in_program(finding, detail.rows(if whole { MAX_CHANGES } else { 1 }, usize::MAX)));
        let advice = if whole { finding.advice.as_str() } else { first_sentence(&finding.advice) };
        if !advice.is_empty() {
            parts.push(Part::Advice(advice.to_owned()));
        }
    }
    let Some(first) = record.findings.first() else { return parts };
    let rest: Vec<&str> = record.findings.iter().skip(shown).map(|f| f.id.id()).collect();
    let also = if rest.is_empty() { String::new() } else { format!("also: {}; ", rest.join(", ")) };
    let program =
        first.in_program.as_ref().map(|known| format!("; {} is in it, with sources", known.program));
    let program = program.unwrap_or_default();
    parts.push(Part::Note(format!("{also}`iowhy explain {}` describes the rule{program}", first.id.id())));
    parts
}

/// The wall time with the change and how it was measured; else why it was not.
fn time_that_remains(finding: &Finding) -> Option<String> {
    let Some(prediction) = &finding.prediction else {
        let why = finding.not_calibrated.as_deref();
        let why = why.or(finding.gain_rest_unchanged.map(|_| "no calls were repeated"))?;
        return Some(format!("gain not calibrated: {why}"));
    };
    let span = |e: &Estimate| format!("{} [{}, {}]", time(e.value), time(e.low), time(e.high));
    let left = match prediction.repeated {
        Some(_) => span(&prediction.remaining),
        None => format!("{} to {}", time(prediction.remaining.low), time(prediction.remaining.high)),
    };
    let mut text = format!("with {}: {left} instead of {}; ", prediction.how, time(prediction.wall_ns));
    match &prediction.repeated {
        Some(repeated) => {
            let (calls, n) = (count(repeated.calls), prediction.remaining.n);
            let _ = write!(text, "measured by repeating {calls} of its calls here, n = {n}");
            let fidelity = repeated.fidelity.value;
            if (fidelity - 1.0).abs() > NEAR {
                let _ = write!(text, "; unchanged, they take {fidelity:.2}x their time in the program");
            }
        }
        None => text.push_str(
            "by the account of this run: at the long end the program's own code stays, at the short end its part around these calls goes",
        ),
    }
    let sizes: Vec<String> = prediction
        .choices
        .iter()
        .map(|choice| format!("{} {}", choice.size, span(&choice.remaining)))
        .collect();
    if !sizes.is_empty() {
        let _ = write!(text, "; by choice: {}", sizes.join(", "));
    }
    for note in &prediction.notes {
        let _ = write!(text, "; {note}");
    }
    Some(text)
}

/// The changes in the program's own terms, each with its cost and never shortened.
fn in_program(finding: &Finding, most: usize) -> Vec<Part> {
    let Some(known) = &finding.in_program else { return Vec::new() };
    let line = |(i, change): (usize, &ProgramChange)| {
        let or = if i == 0 { "" } else { ", or" };
        Part::Advice(format!("{}{or}: {}", known.program, change.line()))
    };
    known.changes.iter().take(most).enumerate().map(line).collect()
}

/// A finding's name, its predicted gain or its bound, and its share.
fn lead(number: &str, finding: &Finding) -> Part {
    let by_account = finding.prediction.as_ref().is_some_and(|prediction| prediction.repeated.is_none());
    let gain = match (finding.gain, finding.gain_rest_unchanged) {
        // Between the ends nothing is known.
        (Some(gain), _) if by_account => format!("  gain {}", prove::ends(gain)),
        (Some(gain), _) => format!("  gain {}", prove::predicted(gain)),
        (None, Some(most)) => format!("  gain up to {}x if all else stays", factor(most)),
        (None, None) => String::new(),
    };
    let share = format!("{} of the wall time", percent_of(finding.share));
    Part::Lead(format!("{number}{}{gain}", finding.title()), share)
}

/// The first sentence of an advice, whole: what follows a colon or a semicolon may turn its sense. A full stop ends a sentence
/// where a capital follows it, outside brackets and quotes.
fn first_sentence(text: &str) -> &str {
    let (mut brackets, mut quoted) = (0_u32, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' => brackets += 1,
            ')' => brackets = brackets.saturating_sub(1),
            '`' => quoted = !quoted,
            '.' if brackets == 0 && !quoted => {
                let next = text[at + 1..].strip_prefix(' ').and_then(|rest| rest.chars().next());
                if next.is_some_and(char::is_uppercase) {
                    return &text[..=at];
                }
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::Unit;
    use iowhy_core::finding::{FindingId, Prediction, RepeatedCalls};

    use super::*;

    fn predicted(repeated: Option<RepeatedCalls>, note: &str) -> String {
        let estimate = |value| Estimate { value, low: value, high: value, unit: Unit::Nanoseconds, n: 7 };
        let prediction = Prediction {
            how: "one fdatasync for 100 records".to_owned(),
            remaining: estimate(1e9),
            wall_ns: 3e9,
            repeated,
            choices: Vec::new(),
            notes: vec![note.to_owned()],
        };
        let finding = Finding {
            id: FindingId::SyncPerWrite,
            share: 0.5,
            sentence: String::new(),
            evidence: Vec::new(),
            advice: String::new(),
            gain: None,
            gain_rest_unchanged: None,
            in_program: None,
            prediction: Some(prediction),
            not_calibrated: None,
            replies: None,
            undecided: false,
        };
        time_that_remains(&finding).unwrap()
    }

    #[test]
    fn what_a_prediction_rests_on_and_assumes_is_said() {
        let fidelity = Estimate { value: 1.0, low: 1.0, high: 1.0, unit: Unit::Ratio, n: 7 };
        let note = "a third of its reads is cached before each repeat";
        let text = predicted(Some(RepeatedCalls { calls: 100, fidelity }), note);
        assert!(text.starts_with("with one fdatasync for 100 records: 1.00 s"), "{text}");
        assert!(text.contains("repeating 100 of its calls here, n = 7; a third"), "{text}");
        let by_account = predicted(None, note);
        assert!(
            by_account.contains(
                ": 1.00 s to 1.00 s instead of 3.00 s; by the account of this run: at the long end"
            ),
            "{by_account}"
        );
        assert!(by_account.ends_with(note) && !by_account.contains("n = "), "{by_account}");
    }

    #[test]
    fn a_shortened_advice_is_a_whole_sentence() {
        let direct = "O_DIRECT bypasses the cache: keep what is read again in memory of your own, or read it through the cache.";
        for (advice, shown) in [
            // Cut at the colon, this said the opposite.
            (direct, direct),
            (
                "Keep the mapping; munmap throws it away. For one look use pread.",
                "Keep the mapping; munmap throws it away.",
            ),
            (
                "Set vm.dirty_ratio (see proc. Also sysctl) or wait. Then run again.",
                "Set vm.dirty_ratio (see proc. Also sysctl) or wait.",
            ),
            ("Run `a. B` first, e.g. twice", "Run `a. B` first, e.g. twice"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(advice), shown);
        }
    }
}
