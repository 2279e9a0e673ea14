//! A proof: how well the baseline replay reproduces the program, then for each finding the predicted gain, the measured gain
//! and the verdict.

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::Gain;
use iowhy_core::units::{count, time};
use iowhy_replay::verdict::Verdict;
use iowhy_view::document::{Cell, Chapter, Detail, Part, Section, Table};

use super::figures::factor;
use crate::record::prove::{BaselineReplay, FindingProof, Other, Proof, ProveRecord, WhatIf};

/// The chapter of a proof alone.
pub fn chapter(record: &ProveRecord, detail: Detail) -> Chapter {
    let mut chapter = appendix(&record.subject, &record.proof, detail);
    if detail.is_page() {
        chapter.facts = vec![record.command.clone(), format!("iowhy {}", record.iowhy)];
        chapter.sections.extend(super::surroundings::warnings(&record.warnings));
    }
    chapter
}

/// The same without what only the record of a proof holds, for the end of the screen of a profiled program.
pub fn appendix(subject: &str, proof: &Proof, detail: Detail) -> Chapter {
    Chapter { title: format!("replayed: {subject}"), sections: sections(proof, detail), ..Chapter::default() }
}

/// What was replayed, and the verdicts.
pub(super) fn sections(proof: &Proof, detail: Detail) -> Vec<Section> {
    let mut baseline = Vec::new();
    if let Some(replay) = &proof.baseline {
        baseline.extend(fidelity("baseline replay", replay));
    }
    if let Some(reason) = &proof.reason {
        baseline.push(Part::Remarks(vec![format!("inconclusive: {reason}")]));
    }
    let mut verdicts = Vec::new();
    if proof.findings.is_empty() && proof.what_if.is_empty() {
        baseline.push(Part::Remarks(vec!["no finding has a repair that a replay can test".to_owned()]));
    } else {
        verdicts.push(Part::Table(table(proof, detail)));
        verdicts.extend(remarks(proof));
        verdicts.push(Part::Note(
            "gain: old over new wall time of the whole run; measured: by the time that the replays save in calls; 95 % interval, with \
             round-to-round noise, replay error and sampling error"
                .to_owned(),
        ));
    }
    vec![
        Section::quiet("Proof: baseline replay and replays with one repair each", baseline),
        Section::new("", verdicts),
    ]
}

fn remarks(proof: &Proof) -> Vec<Part> {
    let mut parts = Vec::new();
    for finding in &proof.findings {
        parts.extend(remark(finding, proof).map(Part::Text));
        parts.extend(finding.modelled.as_ref().map(|gain| Part::Text(modelled(finding.id.id(), gain))));
        if let Some(replay) = &finding.baseline {
            parts.extend(fidelity("baseline replay of the files alone", replay));
        }
        parts.extend(finding.others.iter().map(|other| Part::Remarks(vec![also_tried(other)])));
    }
    if let Some(together) = &proof.together {
        let ids: Vec<&str> = together.ids.iter().map(|id| id.id()).collect();
        let why = together.reason.as_deref().map_or(String::new(), |why| format!("; {why}"));
        parts.push(Part::Text(format!("all together: {}{why}", ids.join(", "))));
        parts.extend(together.modelled.as_ref().map(|gain| Part::Text(modelled("all together", gain))));
    }
    for WhatIf { id, tried } in &proof.what_if {
        let reason = tried.reason.as_deref().filter(|_| tried.measured.is_none());
        let how = Some(tried.how.as_str()).filter(|how| !how.is_empty());
        let words: Vec<&str> = how.into_iter().chain(reason).collect();
        parts.push(Part::Text(format!("what if {id}: {}", words.join("; "))));
    }
    parts
}

/// How well a baseline replay reproduces the program, with its assumptions.
fn fidelity(what: &str, replay: &BaselineReplay) -> Vec<Part> {
    let part = match replay.scale {
        s if s < 1.05 => "all of the run".to_owned(),
        s => format!("1 in {} of the run", factor(s)),
    };
    let time = match &replay.fidelity {
        Some(f) => format!(
            "{:.2}x [{:.2}, {:.2}] the original time in these calls ({}), n = {}",
            f.value,
            f.low,
            f.high,
            time(replay.program_io_s * 1e9),
            f.n
        ),
        None => format!("{} rounds", replay.io_ns.len()),
    };
    let line = format!("{what}, {} calls, {part}: {time}", count(replay.calls));
    let notes = (!replay.notes.is_empty()).then(|| Part::List(replay.notes.clone()));
    std::iter::once(Part::Remarks(vec![line])).chain(notes).collect()
}

fn table(proof: &Proof, detail: Detail) -> Table {
    // Right after a run nothing was predicted: the proof took its place.
    let foretold = proof.findings.iter().any(|f| f.predicted.is_some());
    let headings = ["finding", "predicted", "measured", "verdict"];
    let mut table = Table::new(headings.into_iter().filter(|heading| foretold || *heading != "predicted"));
    let mut row = |name: String, predicted: Option<Gain>, gain: &Option<Estimate>, verdict: Verdict| {
        let predicted = predicted.map_or_else(|| Cell::from("-"), |gain| self::predicted(gain).into());
        let measured = gain.as_ref().map_or_else(|| Cell::from("-"), |gain| measured(gain).into());
        let cells =
            [Some(name.into()), foretold.then_some(predicted), Some(measured), Some(self::verdict(verdict))];
        table.row(cells.into_iter().flatten());
    };
    for finding in &proof.findings {
        row(finding.id.id().to_owned(), finding.predicted, &finding.measured, finding.verdict);
        for other in finding.others.iter().filter(|_| detail.is_page()) {
            row(format!("{} (also tried)", finding.id.id()), None, &other.measured, other.verdict);
        }
    }
    if let Some(together) = &proof.together {
        row("all together".to_owned(), None, &together.measured, together.verdict);
    }
    for WhatIf { id, tried } in &proof.what_if {
        row(format!("what if {id}"), None, &tried.measured, tried.verdict);
    }
    table
}

/// Another repair of the same cause.
fn also_tried(other: &Other) -> String {
    let what = match (&other.measured, &other.reason) {
        (Some(gain), None) => format!("{}, {}", measured(gain), other.verdict.words()),
        (Some(gain), Some(_)) => measured(gain),
        (None, reason) => reason.clone().unwrap_or_else(|| other.verdict.words().to_owned()),
    };
    format!("also tried: {}: {what}", other.how)
}

/// A gain with its interval.
pub(super) fn predicted(gain: Gain) -> String {
    let over = if gain.open_above { "over " } else { "" };
    format!("{}x [{}, {over}{}]", factor(gain.predicted), factor(gain.low), factor(gain.high))
}

/// A gain of which the two ends alone are known.
pub(super) fn ends(gain: Gain) -> String {
    let over = if gain.open_above { "over " } else { "" };
    format!("{}x to {over}{}x", factor(gain.low), factor(gain.high))
}

fn measured(gain: &Estimate) -> String {
    let over = if gain.high >= Gain::MAX { "over " } else { "" };
    format!("{}x [{}, {over}{}], n = {}", factor(gain.value), factor(gain.low), factor(gain.high), gain.n)
}

/// What no replay shows is a figure of its own.
fn modelled(name: &str, gain: &Estimate) -> String {
    let gain =
        Gain { predicted: gain.value, low: gain.low, high: gain.high, open_above: gain.high >= Gain::MAX };
    format!("{name}: with all that the repair may leave out, own code too, modelled: {}", predicted(gain))
}

fn verdict(word: Verdict) -> Cell {
    let text = word.words().to_owned();
    match word {
        Verdict::Proven => Cell::Good(text),
        Verdict::Contradicted => Cell::Bad(text),
        Verdict::NotConfirmed | Verdict::Inconclusive => Cell::Text(text),
    }
}

/// The repair, or why there is none; a reason that stands at the top already is not repeated.
fn remark(finding: &FindingProof, proof: &Proof) -> Option<String> {
    let reason = finding.reason.as_deref().filter(|r| {
        Some(*r) != proof.reason.as_deref()
            && (finding.measured.is_none() || proof.reason.is_none() || finding.baseline.is_some())
    });
    if finding.how.is_none() && reason.is_none() {
        return None;
    }
    let words: Vec<&str> = finding.how.as_deref().into_iter().chain(reason).collect();
    Some(format!("{}: {}", finding.id.id(), words.join("; ")))
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::Unit;
    use iowhy_core::finding::FindingId;

    use super::*;
    use crate::record::prove::Together;
    use iowhy_view::terminal;
    use iowhy_view::terminal::sparkline::Marks;

    fn screen(subject: &str, proof: &Proof, width: usize) -> String {
        terminal::screen(&appendix(subject, proof, Detail::Screen), width, Marks::Blocks)
    }

    fn proved(verdict: Verdict, value: f64) -> FindingProof {
        FindingProof {
            id: FindingId::SmallRequests,
            predicted: Some(Gain { predicted: 3.0, low: 2.0, high: 4.0, open_above: false }),
            measured: Some(Estimate { value, low: value, high: value, unit: Unit::Ratio, n: 9 }),
            modelled: None,
            verdict,
            how: Some("merged".to_owned()),
            reason: None,
            failed: false,
            io_ns: vec![],
            others: vec![],
            baseline: None,
        }
    }

    #[test]
    fn each_finding_has_its_predicted_and_measured_gain_and_a_verdict() {
        let findings = vec![proved(Verdict::Proven, 2.5), proved(Verdict::Contradicted, 0.33)];
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
            Other { how: "by the megabyte".into(), measured: gain, verdict: Verdict::Proven, reason: None };
        let finding = FindingProof { others: vec![other], ..proved(Verdict::Proven, 2.5) };
        let together = Together {
            ids: vec![FindingId::SmallRequests, FindingId::SyncPerWrite],
            how: "both".to_owned(),
            measured: gain,
            modelled: gain,
            verdict: Verdict::Proven,
            reason: None,
            io_ns: vec![],
        };
        let proof = Proof { findings: vec![finding], together: Some(together), ..Proof::default() };
        let text = anstream::adapter::strip_str(&screen("prog", &proof, 100)).to_string();
        assert!(text.contains("also tried: by the megabyte: 9.0x [8.0, 10], n = 9, proven"), "{text}");
        assert!(text.contains("all together    -                9.0x [8.0, 10], n = 9   proven"), "{text}");
        assert!(text.contains("own code too, modelled: 9.0x [8.0, 10]"), "{text}");
        assert!(text.contains("all together: small-requests, sync-per-write"), "{text}");
    }

    #[test]
    fn a_finding_with_a_baseline_of_its_own_names_it_and_says_why_it_is_inconclusive() {
        let replay = BaselineReplay {
            fidelity: None,
            reproduces: false,
            program_io_s: 1.0,
            scale: 40.0,
            calls: 24_000,
            io_ns: vec![1.0; 9],
            recorded: None,
            replayed: vec![],
            notes: vec!["a tree of 4,000 files".to_owned()],
            plan: iowhy_core::replay::Plan::default(),
        };
        let finding = FindingProof {
            baseline: Some(replay),
            reason: Some("it is another run".to_owned()),
            ..proved(Verdict::Inconclusive, 9.0)
        };
        let proof =
            Proof { findings: vec![finding], reason: Some("no reads".to_owned()), ..Proof::default() };
        let text = anstream::adapter::strip_str(&screen("prog", &proof, 100)).to_string();
        assert!(text.contains("small-requests: merged; it is another run"), "{text}");
        assert!(
            text.contains("baseline replay of the files alone, 24,000 calls, 1 in 40 of the run"),
            "{text}"
        );
        assert!(text.contains("- a tree of 4,000 files"), "{text}");
    }

    #[test]
    fn a_reason_is_said_once_and_an_empty_proof_says_so() {
        let reason = Some("the file is gone".to_owned());
        let finding = FindingProof {
            measured: None,
            how: None,
            reason: reason.clone(),
            ..proved(Verdict::Inconclusive, 1.0)
        };
        let proof = Proof { findings: vec![finding], reason, ..Proof::default() };
        assert_eq!(screen("prog", &proof, 80).matches("the file is gone").count(), 1);
        assert!(screen("prog", &Proof::default(), 80).contains("no finding"));
    }
}
