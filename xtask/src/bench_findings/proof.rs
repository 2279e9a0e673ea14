//! The column `proven`: the first finding of a slow variant, replayed with its repair, beside what the really repaired
//! program gains.

use iowhy::record::prove::{Proof, Proved};
use iowhy_cases::{Stage, Variant};
use iowhy_explain::replay::verdict::Word;
use serde_json::Value;

use super::{Binaries, Outcome, Row, record};

pub(super) const HEADER: &str = "  proven by a replay (fidelity)";

/// A proven gain is right within this part of the real one.
const NEAR: f64 = 0.2;

/// Runs the slow variant under watch and has its findings proved.
pub(super) fn proved(stage: &mut Stage, binaries: &Binaries) -> Outcome<Proof> {
    let mut json = record(stage, Variant::Slow, binaries, &["--prove"])?;
    match json["proof"].take() {
        Value::Null => Err("the record has no proof".to_owned()),
        proof => serde_json::from_value(proof).map_err(|e| format!("the proof cannot be read: {e}")),
    }
}

impl Row {
    /// The proof of the cause, or of the name that was taken for it.
    pub(super) fn proof_of_first(&self) -> Option<&Proved> {
        let proof = self.proof.as_ref()?;
        let cause = self.case.cause?;
        let of = |id| proof.findings.iter().find(|f| f.id == id);
        of(cause).or_else(|| proof.findings.iter().find(|f| self.case.accept.contains(&f.id)))
    }

    /// Gain of the really repaired program over the proven one.
    pub(super) fn real_over_proven(&self, proved: &Proved) -> Option<f64> {
        let (real, proven) = (self.measured.as_ref()?, proved.measured.as_ref()?);
        (proven.value > 0.0).then(|| real.value / proven.value)
    }

    /// The column.
    pub(super) fn proven(&self) -> String {
        if self.case.cause.is_none() {
            return String::new();
        }
        let Some(proved) = self.proof_of_first() else { return "  -, not among the findings".to_owned() };
        let gain = match &proved.measured {
            Some(m) => format!("{:.2} [{:.2}, {:.2}] ", m.value, m.low, m.high),
            None => String::new(),
        };
        let run = self.proof.as_ref().and_then(|p| p.replay.as_ref());
        let replay = proved.replay.as_ref().or(run).and_then(|r| r.fidelity);
        let fidelity = replay.map_or(String::new(), |f| format!(" ({:.2})", f.value));
        let why = proved.reason.as_deref().map_or(String::new(), |why| format!(": {why}"));
        format!("  {gain}{}{fidelity}{why}", proved.verdict.words())
    }
}

/// How many were proven, and how near to what the repair really gains.
pub(super) fn sentence(proofs: &[(Word, Option<f64>)]) -> String {
    if proofs.is_empty() {
        return String::new();
    }
    let count = |word| proofs.iter().filter(|(w, _)| *w == word).count();
    let near = |(word, ratio): &&(Word, Option<f64>)| {
        *word == Word::Proven && ratio.is_some_and(|r| (1.0 / (1.0 + NEAR)..=1.0 + NEAR).contains(&r))
    };
    format!(
        "first finding proven: {} of {}, {} of them within {:.0} % of the real gain; not confirmed: {}, contradicted: {}, \
         cannot tell: {}\n",
        count(Word::Proven),
        proofs.len(),
        proofs.iter().filter(near).count(),
        100.0 * NEAR,
        count(Word::NotConfirmed),
        count(Word::Contradicted),
        count(Word::CannotTell)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proven_gains_near_the_real_one_count_as_near() {
        assert_eq!(sentence(&[]), "");
        let said = sentence(&[
            (Word::Proven, Some(1.1)),
            (Word::Proven, Some(1.3)),
            (Word::Proven, Some(0.7)),
            (Word::CannotTell, Some(1.0)),
            (Word::Contradicted, None),
        ]);
        assert!(said.contains("proven: 3 of 5, 1 of them within 20 %"), "{said}");
        assert!(said.contains("contradicted: 1, cannot tell: 1"), "{said}");
    }
}
