//! How a rule says what it found: one place decides whether it is worth saying, and turns saved time into share and gain.
//! What may not enter: causes.

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::gain::SavedTime;
use super::{Facts, WORTH_SAVING, say};

/// A cause before it is decided whether it is worth naming.
pub(super) struct Draft {
    pub(super) id: FindingId,
    /// Wall time that the cause costs.
    pub(super) cost_ns: f64,
    /// What the repair saves; `None` where nothing can be predicted.
    pub(super) saved_time: Option<SavedTime>,
    pub(super) sentence: String,
    pub(super) evidence: Vec<String>,
    pub(super) advice: String,
}

impl Draft {
    /// The finding, if it is worth naming: by the time saved, else by its cost.
    pub(super) fn finding(self, facts: &Facts<'_>) -> Option<Finding> {
        // What a repair gains is told of the program alone: being observed is neither kept nor saved.
        let wall = facts.account.wall_ns - facts.account.layer(Layer::Observer).wall_ns;
        let worth = match self.saved_time {
            Some(saved_time) => saved_time.is_worth(wall),
            None => wall > 0.0 && self.cost_ns >= WORTH_SAVING * wall,
        };
        let mut evidence = self.evidence;
        let queued = facts.wall_share(facts.queueing_ns());
        if self.saved_time.is_some()
            && !matches!(self.id, FindingId::NoisyNeighbour | FindingId::Throttled)
            && queued >= WORTH_SAVING
        {
            evidence.push(format!(
                "queueing for a CPU takes {} of wall time; the gain includes the part that belongs to this cause",
                say::percent(queued)
            ));
        }
        worth.then(|| Finding {
            id: self.id,
            share: facts.wall_share(self.cost_ns),
            sentence: self.sentence,
            evidence,
            advice: self.advice,
            gain: self.saved_time.map(|s| s.gain(wall)),
            in_program: None,
            undecided: false,
        })
    }
}
