//! The column `proven`: the first finding of a slow variant, replayed with its repair, beside what the really repaired
//! program gains.

use std::path::Path;
use std::process::Stdio;

use iowhy::record::prove::{FindingProof, Proof, ProveRecord, Together};
use iowhy_cases::{Case, Stage, Variant};
use iowhy_core::estimate::Estimate;
use iowhy_replay::verdict::Verdict;
use serde_json::Value;

use super::run::record;
use super::{Binaries, Outcome, Row};

pub(super) const HEADER: &str = "  proven by a replay (fidelity)";

/// A proven gain is right within this part of the real one.
const NEAR: f64 = 0.2;

/// Upper over lower end of an interval that decides something.
const NARROW: f64 = 2.0;

/// So often the slow variant is watched; the run with the median wall time is proved.
const WATCHED: usize = 3;

/// Runs the slow variant under watch and has its findings proved, by repairs as large as that of the repaired variant.
pub(super) fn proved(stage: &mut Stage, case: &Case, binaries: &Binaries) -> Outcome<Proof> {
    let mut runs = Vec::new();
    for number in 0..WATCHED {
        let json = record(stage, Variant::Slow, binaries, &["--record-calls"])?;
        let kept = stage.dir().join(format!("watched-{number}.json"));
        let watched = stage.dir().join("watched.json");
        std::fs::rename(&watched, &kept).map_err(|e| format!("cannot keep {}: {e}", watched.display()))?;
        runs.push((json["profile"]["wall_ns"].as_f64().unwrap_or(0.0), kept));
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    // What cannot be replayed is refused there; the usual way then says why.
    let proof = of_record(&runs[WATCHED / 2].1, case, binaries);
    for (_, kept) in runs {
        let _ = std::fs::remove_file(kept);
    }
    if let Ok(proof) = proof {
        return Ok(proof);
    }
    let mut json = record(stage, Variant::Slow, binaries, &["--prove"])?;
    match json["proof"].take() {
        Value::Null => Err("the record has no proof".to_owned()),
        proof => serde_json::from_value(proof).map_err(|e| format!("the proof cannot be read: {e}")),
    }
}

fn of_record(watched: &Path, case: &Case, binaries: &Binaries) -> Outcome<Proof> {
    let output = crate::iowhy(&binaries.iowhy)
        .arg("prove")
        .arg(watched)
        .args(case.prove)
        .args(["--quiet", "--json", "-"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", binaries.iowhy.display()))?;
    let record: ProveRecord = serde_json::from_slice(&output.stdout).map_err(|e| {
        format!("no proof ({e}); it said: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    Ok(record.proof)
}

impl Row {
    /// The proof of the cause, or of the name that was taken for it.
    pub(super) fn proof_of_first(&self) -> Option<&FindingProof> {
        let proof = self.proof.as_ref()?;
        let cause = self.case.cause?;
        let of = |id| proof.findings.iter().find(|f| f.id == id);
        of(cause).or_else(|| proof.findings.iter().find(|f| self.case.accept.contains(&f.id)))
    }

    /// The proof of all causes together, where the repaired variant takes several away.
    fn proof_of_all(&self) -> Option<&Together> {
        let together = self.proof.as_ref()?.together.as_ref()?;
        let has = |id| together.ids.contains(id);
        (!self.case.also.is_empty() && self.case.cause.iter().chain(self.case.also).all(has))
            .then_some(together)
    }

    /// The word on what the repaired variant does, and the gain that was measured.
    fn proof_word(&self) -> Option<(Verdict, Option<Estimate>)> {
        let all = self.proof_of_all().map(|t| (t.verdict, t.modelled.or(t.measured)));
        all.or_else(|| self.proof_of_first().map(|p| (p.verdict, p.modelled.or(p.measured))))
    }

    /// Gain of the really repaired program over the proven one.
    fn real_over_proven(&self) -> Option<f64> {
        let (real, proven) = (self.measured.as_ref()?, self.proof_word()?.1?);
        (proven.value > 0.0).then(|| real.value / proven.value)
    }

    /// Whether the intervals of the two gains meet: then their difference may be nothing but noise.
    fn real_meets_proven(&self) -> bool {
        let proven = self.proof_word().and_then(|(_, measured)| measured);
        self.measured.as_ref().zip(proven).is_some_and(|(real, p)| real.low <= p.high && p.low <= real.high)
    }

    /// How the proof compares with the real gain.
    pub(super) fn compared(&self) -> Option<Compared> {
        let (word, measured) = self.proof_word()?;
        let width = measured.map(|gain| gain.high / gain.low);
        Some(Compared { word, width, over_proven: self.real_over_proven(), meets: self.real_meets_proven() })
    }

    /// The column.
    pub(super) fn proven(&self) -> String {
        if self.case.cause.is_none() {
            return String::new();
        }
        let (Some(first), Some((word, measured))) = (self.proof_of_first(), self.proof_word()) else {
            return "  -, not among the findings".to_owned();
        };
        let gain =
            measured.map_or(String::new(), |m| format!("{:.2} [{:.2}, {:.2}] ", m.value, m.low, m.high));
        let run = self.proof.as_ref().and_then(|p| p.baseline.as_ref());
        let replay = first.baseline.as_ref().or(run).and_then(|r| r.fidelity);
        let fidelity = replay.map_or(String::new(), |f| format!(" ({:.2})", f.value));
        let why = first.reason.as_deref().map_or(String::new(), |why| format!(": {why}"));
        let all = self.proof_of_all().map_or("", |_| " together");
        format!("  {gain}{}{all}{fidelity}{why}", word.words())
    }
}

/// A proof beside the really repaired program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    word: Verdict,
    /// Upper over lower end of the interval; `None`: nothing was replayed, most often because no repair is mechanical.
    width: Option<f64>,
    /// Gain of the really repaired program over the proven one.
    over_proven: Option<f64>,
    /// Whether the intervals of the two meet.
    meets: bool,
}

/// How all proofs ended.
pub(super) struct Totals {
    /// Nothing was replayed.
    pub(super) without_replay: usize,
    pub(super) tried: usize,
    pub(super) proven: usize,
    pub(super) not_confirmed: usize,
    pub(super) contradicted: usize,
    pub(super) inconclusive: usize,
    /// Of the proven gains, those near the real one.
    pub(super) near: usize,
    /// Those that are not near, but whose interval meets that of the real one.
    pub(super) overlap: usize,
    /// Those whose interval is narrow, and of these those whose interval meets the real one.
    pub(super) narrow: usize,
    pub(super) narrow_overlap: usize,
    /// Median of real gain over proven gain.
    pub(super) median: f64,
}

/// `None` without proofs.
pub(super) fn totals(proofs: &[Compared]) -> Option<Totals> {
    let replayed = || proofs.iter().filter(|p| p.width.is_some());
    let count = |word| replayed().filter(|p| p.word == word).count();
    let proven = || proofs.iter().filter(|p| p.word == Verdict::Proven);
    let narrow = || proven().filter(|p| p.width.is_some_and(|width| width <= NARROW));
    let near = |p: &&Compared| p.over_proven.is_some_and(|r| (1.0 / (1.0 + NEAR)..=1.0 + NEAR).contains(&r));
    let mut ratios: Vec<f64> = proven().filter_map(|p| p.over_proven).collect();
    ratios.sort_by(f64::total_cmp);
    (!proofs.is_empty()).then(|| Totals {
        without_replay: proofs.len() - replayed().count(),
        tried: replayed().count(),
        proven: count(Verdict::Proven),
        not_confirmed: count(Verdict::NotConfirmed),
        contradicted: count(Verdict::Contradicted),
        inconclusive: count(Verdict::Inconclusive),
        near: proven().filter(near).count(),
        overlap: proven().filter(|p| p.meets && !near(p)).count(),
        narrow: narrow().count(),
        narrow_overlap: narrow().filter(|p| p.meets).count(),
        median: ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN),
    })
}

/// How many were proven, and how near to what the repair really gains.
pub(super) fn sentence(proofs: &[Compared]) -> String {
    let Some(t) = totals(proofs) else { return String::new() };
    format!(
        "first finding proven: {} of {}, {} of them within {:.0} % of the real gain, and of {} more the intervals meet; real \
         over proven gain: median {:.2}; intervals with a ratio of at most {NARROW:.0}: {}, of which {} meet the real gain\n\
         not confirmed: {}, contradicted: {}, inconclusive: {}, without a replay: {}\n",
        t.proven,
        t.tried,
        t.near,
        100.0 * NEAR,
        t.overlap,
        t.median,
        t.narrow,
        t.narrow_overlap,
        t.not_confirmed,
        t.contradicted,
        t.inconclusive,
        t.without_replay
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proven_gains_near_the_real_one_count_as_near() {
        assert_eq!(sentence(&[]), "");
        let compared = |word, width, over_proven, meets| Compared { word, width, over_proven, meets };
        let said = sentence(&[
            compared(Verdict::Proven, Some(1.5), Some(1.1), true),
            compared(Verdict::Proven, Some(9.0), Some(1.3), true),
            compared(Verdict::Proven, Some(1.1), Some(0.7), false),
            compared(Verdict::Inconclusive, Some(9.0), Some(1.0), true),
            compared(Verdict::Contradicted, Some(1.1), None, false),
            compared(Verdict::Inconclusive, None, None, false),
        ]);
        assert!(
            said.contains("proven: 3 of 5, 1 of them within 20 % of the real gain, and of 1 more"),
            "{said}"
        );
        assert!(said.contains("median 1.10"), "{said}");
        assert!(said.contains("at most 2: 2, of which 1 meet"), "{said}");
        assert!(said.contains("contradicted: 1, inconclusive: 1, without a replay: 1"), "{said}");
    }
}
