//! The screen of a proof: how like the program the replay is, then each finding with what was foretold, what was measured,
//! and one word.

use anstyle::{AnsiColor, Style};
use iowhy_core::estimate::Estimate;
use iowhy_core::finding::Gain;
use iowhy_core::units::{count, time};
use iowhy_replay::verdict::Word;

use crate::record::prove::{Other, Proof, Proved, Replayed, WhatIf};
use crate::render::paragraph::{cut, wrap};
use crate::render::table::{Align, layout};
use crate::render::watch::words::factor;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
/// A screen is at least and at most so wide.
const WIDTHS: (usize, usize) = (60, 100);

/// Lays a proof out.
pub fn screen(subject: &str, proof: &Proof, width: usize) -> String {
    let width = width.clamp(WIDTHS.0, WIDTHS.1);
    let mut text = format!("{BOLD}{}{BOLD:#}\n", cut(&format!("replayed: {subject}"), width));
    if let Some(replay) = &proof.replay {
        text.push_str(&wrap(&like_the_program("the run as it was", replay), width, "  ", "  "));
        for note in &replay.notes {
            text.push_str(&wrap(note, width, "  - ", "    "));
        }
    }
    if let Some(reason) = &proof.reason {
        text.push_str(&wrap(&format!("cannot tell: {reason}"), width, "  ", "    "));
    }
    if proof.findings.is_empty() && proof.what_if.is_empty() {
        text.push_str("  no finding has an advice to prove\n");
        return text;
    }
    text.push('\n');
    text.push_str(&table(proof));
    for finding in &proof.findings {
        if let Some(line) = remark(finding, proof) {
            text.push_str(&wrap(&line, width, "", "  "));
        }
        if let Some(replay) = &finding.replay {
            let words = like_the_program("held against the files alone", replay);
            text.push_str(&wrap(&words, width, "  ", "  "));
            for note in &replay.notes {
                text.push_str(&wrap(note, width, "  - ", "    "));
            }
        }
        for other in &finding.others {
            text.push_str(&wrap(&tried_too(other), width, "  ", "    "));
        }
    }
    if let Some(together) = &proof.together {
        let ids: Vec<&str> = together.ids.iter().map(|id| id.id()).collect();
        let why = together.reason.as_deref().map_or(String::new(), |why| format!("; {why}"));
        text.push_str(&wrap(&format!("all together: {}{why}", ids.join(", ")), width, "", "  "));
    }
    for WhatIf { id, tried } in &proof.what_if {
        let reason = tried.reason.as_deref().filter(|_| tried.measured.is_none());
        let parts: Vec<&str> =
            [tried.how.as_str()].into_iter().filter(|how| !how.is_empty()).chain(reason).collect();
        text.push_str(&wrap(&format!("what if {id}: {}", parts.join("; ")), width, "", "  "));
    }
    let legend = "gain: old wall time over new, of the whole run; the interval holds the noise of rounds, the unlikeness of \
                  replay and program, and sampling";
    text.push_str(&format!("{DIM}{}{DIM:#}\n", wrap(legend, width, "", "  ").trim_end()));
    text
}

fn like_the_program(what: &str, replay: &Replayed) -> String {
    let run = replay.io_ns.len();
    let part = match replay.scale {
        s if s < 1.05 => "all of the run".to_owned(),
        s => format!("1 in {} of the run", factor(s)),
    };
    let fidelity = match &replay.fidelity {
        Some(f) => format!(
            "took {:.2} [{:.2}, {:.2}] of the program's time in these calls ({}), n = {}",
            f.value,
            f.low,
            f.high,
            time(replay.program_io_s * 1e9),
            f.n
        ),
        None => format!("made {run} rounds"),
    };
    format!("{what}, {} calls, {part}: {fidelity}", count(replay.calls))
}

fn table(proof: &Proof) -> String {
    let gain = |m: &Option<Estimate>| m.as_ref().map_or("-".to_owned(), measured);
    let row = |f: &Proved| {
        vec![
            f.id.id().to_owned(),
            f.predicted.map_or("-".to_owned(), foretold),
            gain(&f.measured),
            word(f.verdict),
        ]
    };
    let together = proof
        .together
        .iter()
        .map(|t| vec!["all together".to_owned(), "-".to_owned(), gain(&t.measured), word(t.verdict)]);
    let what_if = proof.what_if.iter().map(|w| {
        let (measured, word) = (gain(&w.tried.measured), word(w.tried.verdict));
        vec![format!("what if {}", w.id), "-".to_owned(), measured, word]
    });
    let rows: Vec<Vec<String>> = proof.findings.iter().map(row).chain(together).chain(what_if).collect();
    layout(&["finding", "predicted gain", "measured gain", "verdict"], &[Align::Left; 4], &rows)
}

/// Another repair of the same cause.
fn tried_too(other: &Other) -> String {
    let what = match (&other.measured, &other.reason) {
        (Some(gain), None) => format!("{}, {}", measured(gain), other.verdict.words()),
        (Some(gain), Some(_)) => measured(gain),
        (None, reason) => reason.clone().unwrap_or_else(|| other.verdict.words().to_owned()),
    };
    format!("also tried: {}: {what}", other.how)
}

fn foretold(gain: Gain) -> String {
    let over = if gain.open_above { "over " } else { "" };
    format!("{}x [{}, {over}{}]", factor(gain.predicted), factor(gain.low), factor(gain.high))
}

fn measured(gain: &Estimate) -> String {
    let over = if gain.high >= Gain::MAX { "over " } else { "" };
    format!("{}x [{}, {over}{}], n = {}", factor(gain.value), factor(gain.low), factor(gain.high), gain.n)
}

fn word(word: Word) -> String {
    let style = match word {
        Word::Proven => GREEN,
        Word::Contradicted => RED,
        Word::NotConfirmed | Word::CannotTell => return word.words().to_owned(),
    };
    format!("{style}{}{style:#}", word.words())
}

/// What was done, or why nothing was; a reason that stands at the top already is not repeated.
fn remark(finding: &Proved, proof: &Proof) -> Option<String> {
    let reason = finding.reason.as_deref().filter(|r| {
        Some(*r) != proof.reason.as_deref()
            && (finding.measured.is_none() || proof.reason.is_none() || finding.replay.is_some())
    });
    match (&finding.how, reason) {
        (None, None) => None,
        (how, reason) => {
            let parts: Vec<&str> = how.as_deref().into_iter().chain(reason).collect();
            Some(format!("{}: {}", finding.id.id(), parts.join("; ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::Unit;
    use iowhy_core::finding::FindingId;

    use super::*;
    use crate::record::prove::Together;

    fn proved(verdict: Word, value: f64) -> Proved {
        Proved {
            id: FindingId::SmallRequests,
            predicted: Some(Gain { predicted: 3.0, low: 2.0, high: 4.0, open_above: false }),
            measured: Some(Estimate { value, low: value, high: value, unit: Unit::Ratio, n: 9 }),
            verdict,
            how: Some("merged".to_owned()),
            reason: None,
            failed: false,
            io_ns: vec![],
            others: vec![],
            replay: None,
        }
    }

    #[test]
    fn each_finding_has_what_was_foretold_what_was_measured_and_a_word() {
        let findings = vec![proved(Word::Proven, 2.5), proved(Word::Contradicted, 0.33)];
        let proof = Proof { findings, ..Proof::default() };
        let text = anstream::adapter::strip_str(&screen("prog", &proof, 100)).to_string();
        assert!(
            text.contains("small-requests  3.0x [2.0, 4.0]  2.5x [2.5, 2.5], n = 9     proven"),
            "{text}"
        );
        assert!(text.contains("0.33x [0.33, 0.33], n = 9  contradicted"), "{text}");
        assert!(text.contains("small-requests: merged") && text.lines().all(|l| l.chars().count() <= 100));
    }

    #[test]
    fn other_repairs_and_all_together_stand_below() {
        let gain = Some(Estimate { value: 9.0, low: 8.0, high: 10.0, unit: Unit::Ratio, n: 9 });
        let other =
            Other { how: "by the megabyte".into(), measured: gain, verdict: Word::Proven, reason: None };
        let finding = Proved { others: vec![other], ..proved(Word::Proven, 2.5) };
        let together = Together {
            ids: vec![FindingId::SmallRequests, FindingId::SyncPerWrite],
            how: "both".to_owned(),
            measured: gain,
            verdict: Word::Proven,
            reason: None,
            io_ns: vec![],
        };
        let proof = Proof { findings: vec![finding], together: Some(together), ..Proof::default() };
        let text = anstream::adapter::strip_str(&screen("prog", &proof, 100)).to_string();
        assert!(text.contains("also tried: by the megabyte: 9.0x [8.0, 10], n = 9, proven"), "{text}");
        assert!(text.contains("all together    -                9.0x [8.0, 10], n = 9   proven"), "{text}");
        assert!(text.contains("all together: small-requests, sync-per-write"), "{text}");
    }

    #[test]
    fn what_is_held_against_something_else_says_against_what_and_why_it_is_not_believed() {
        let replay = Replayed {
            fidelity: None,
            faithful: false,
            program_io_s: 1.0,
            scale: 40.0,
            calls: 24_000,
            io_ns: vec![1.0; 9],
            notes: vec!["a tree of 4,000 files".to_owned()],
            plan: iowhy_core::replay::Plan::default(),
        };
        let finding = Proved {
            replay: Some(replay),
            reason: Some("it is another run".to_owned()),
            ..proved(Word::CannotTell, 9.0)
        };
        let proof =
            Proof { findings: vec![finding], reason: Some("no reads".to_owned()), ..Proof::default() };
        let text = anstream::adapter::strip_str(&screen("prog", &proof, 100)).to_string();
        assert!(text.contains("small-requests: merged; it is another run"), "{text}");
        assert!(text.contains("held against the files alone, 24,000 calls, 1 in 40 of the run"), "{text}");
        assert!(text.contains("- a tree of 4,000 files"), "{text}");
    }

    #[test]
    fn a_reason_is_said_once_and_an_empty_proof_says_so() {
        let reason = Some("the file is gone".to_owned());
        let finding =
            Proved { measured: None, how: None, reason: reason.clone(), ..proved(Word::CannotTell, 1.0) };
        let proof = Proof { findings: vec![finding], reason, ..Proof::default() };
        assert_eq!(screen("prog", &proof, 80).matches("the file is gone").count(), 1);
        assert!(screen("prog", &Proof::default(), 80).contains("no finding"));
    }
}
