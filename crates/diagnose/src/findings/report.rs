//! How a rule says what it found: one place decides whether it is worth saying, and turns time into share and gain.
//! What may not enter: causes.

use iowhy_core::finding::{Finding, FindingId, Gain, Prediction};

use super::removable::Removable;
use super::{Facts, WORTH_SAVING, say};

/// A cause before it is decided whether it is worth naming.
pub(super) struct Draft {
    pub(super) id: FindingId,
    /// Wall time that the cause costs.
    pub(super) cost_ns: f64,
    /// What the repair could take away; `None` where the account does not tell.
    pub(super) removable: Option<Removable>,
    pub(super) sentence: String,
    pub(super) evidence: Vec<String>,
    pub(super) advice: String,
}

impl Draft {
    /// The same, with the prediction by the account where nothing was repeated. It decides neither whether the cause is worth naming nor its
    /// place: much of it may be the program's own code.
    pub(super) fn finding_by_account(
        self,
        facts: &Facts<'_>,
        prediction: Option<Prediction>,
    ) -> Option<Finding> {
        let mut finding = self.finding(facts)?;
        if let (None, Some(prediction)) = (&finding.prediction, prediction) {
            finding.gain = Some(prediction.gain(facts.program_wall_ns()));
            finding.prediction = Some(prediction);
        }
        Some(finding)
    }

    /// The finding, if it is worth naming: by its cost, and by what could be taken away.
    pub(super) fn finding(self, facts: &Facts<'_>) -> Option<Finding> {
        let wall = facts.program_wall_ns();
        let prediction =
            facts.predictions.iter().find(|(id, _)| *id == self.id).map(|(_, prediction)| prediction.clone());
        let gain = prediction.as_ref().map(|prediction| prediction.gain(wall));
        let worth = match (gain, self.removable) {
            // What was tried and saves nothing that matters, even at best.
            (Some(gain), _) if 1.0 - 1.0 / gain.high < WORTH_SAVING => false,
            (_, Some(removable)) => {
                removable.is_worth(wall) && facts.share_without_queueing(self.cost_ns) >= WORTH_SAVING
            }
            (_, None) => wall > 0.0 && self.cost_ns >= WORTH_SAVING * wall,
        };
        let mut evidence = self.evidence;
        let queued = facts.wall_share(facts.queueing_ns());
        if self.removable.is_some()
            && !matches!(self.id, FindingId::NoisyNeighbour | FindingId::Throttled)
            && queued >= WORTH_SAVING
        {
            evidence.push(format!(
                "queueing for a CPU takes {} of wall time; the gain includes the part that belongs to this cause",
                say::percent(queued)
            ));
        }
        let booked_ns = self.removable.map_or(0.0, |removable| removable.booked_ns);
        let saved = prediction.as_ref().map(|prediction| (prediction, booked_ns)).filter(|_| booked_ns > 0.0);
        let replies = self.removable.and_then(|r| r.answering).and_then(|a| a.replies(facts, saved));
        worth.then(|| Finding {
            id: self.id,
            share: facts.wall_share(self.cost_ns),
            sentence: self.sentence,
            evidence,
            advice: self.advice,
            gain,
            gain_rest_unchanged: self.removable.and_then(|r| Gain::at_most(wall, r.most_ns)),
            in_program: None,
            prediction,
            not_calibrated: None,
            replies,
            undecided: false,
        })
    }
}
