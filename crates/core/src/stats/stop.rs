//! When to stop measuring: precise enough, or out of time.

use crate::estimate::Estimate;

/// Precision or time, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopRule {
    /// Longer arm of the 95 % interval relative to the value that is enough, e.g. 0.02. 0 always uses all the time.
    pub precision: f64,
    /// Rounds before precision may end it: a few rounds can agree by luck, and looking after each round gives luck
    /// many chances. At least 8 is advisable.
    pub min_rounds: u64,
    /// Time that may be spent. Ends it whatever the precision, also below `min_rounds`.
    pub budget_ns: u64,
}

/// Decision of a [`StopRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Every estimate is precise enough.
    Enough,
    /// There is no time for another round.
    BudgetSpent,
    /// Measure another round.
    GoOn,
}

impl StopRule {
    /// Decides after `rounds` whole rounds. `estimates` holds one entry a cell, `None` where there is no interval yet;
    /// `spent_ns` is the time used so far and `round_ns` what another round is expected to take.
    pub fn decide(&self, estimates: &[Option<Estimate>], rounds: u64, spent_ns: u64, round_ns: u64) -> Stop {
        let precise = |e: &Option<Estimate>| e.is_some_and(|e| e.relative_arm() <= self.precision);
        if self.precision > 0.0 && rounds >= self.min_rounds && estimates.iter().all(precise) {
            Stop::Enough
        } else if spent_ns.saturating_add(round_ns) > self.budget_ns {
            Stop::BudgetSpent
        } else {
            Stop::GoOn
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Unit;

    #[test]
    fn decisions() {
        let rule = StopRule { precision: 0.02, min_rounds: 5, budget_ns: 1000 };
        let of = |half: f64| {
            Some(Estimate {
                value: 100.0,
                low: 100.0 - half,
                high: 100.0 + half,
                unit: Unit::Nanoseconds,
                n: 5,
            })
        };
        assert_eq!(rule.decide(&[of(2.0), of(0.0)], 5, 0, 100), Stop::Enough);
        assert_eq!(rule.decide(&[of(2.0), of(2.1)], 5, 0, 100), Stop::GoOn);
        assert_eq!(rule.decide(&[of(2.0), None], 5, 0, 100), Stop::GoOn);
        assert_eq!(rule.decide(&[of(2.0)], 4, 900, 100), Stop::GoOn);
        assert_eq!(rule.decide(&[of(2.0)], 4, 901, 100), Stop::BudgetSpent);
        assert_eq!(rule.decide(&[of(2.0)], 5, 5000, 100), Stop::Enough);
        let budget_only = StopRule { precision: 0.0, ..rule };
        assert_eq!(budget_only.decide(&[of(0.0)], 99, 0, 1), Stop::GoOn);
        assert_eq!(budget_only.decide(&[of(0.0)], 99, u64::MAX, 1), Stop::BudgetSpent);
    }
}
