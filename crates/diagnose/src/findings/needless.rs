//! What is left of a run without calls that need not be made, and that no others take the place of: the account of the run tells it, and
//! nothing need be repeated.
//!
//! How much of the program's own code goes with them is in no call. At least none goes but what was sampled in the library's functions of
//! these calls; at most the calls' part of all of it. Between the two ends nothing is known: the geometric mean of the two gains is printed,
//! which has the least largest factor of error.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::{Gain, Prediction};

use super::removable::Removable;
use super::{Facts, facts, loops};
use crate::account::Entry;

/// Calls that need not be made.
pub(super) struct Needless<'a> {
    /// The run without them, in a few words.
    pub(super) how: &'a str,
    /// What is assumed of them, in words.
    pub(super) notes: Vec<String>,
    /// Their part of all calls.
    pub(super) of_all_calls: f64,
    /// The part of the program's own code that works for them, at most.
    pub(super) of_own_code: f64,
}

impl Needless<'_> {
    /// The prediction. `least` and `most`: the part of an entry of the account that goes with them, 0 to 1. `None` where the account
    /// has none of it.
    pub(super) fn prediction(
        self,
        facts: &Facts<'_>,
        least: impl Fn(&Entry) -> f64,
        most: impl Fn(&Entry) -> f64,
    ) -> Option<Prediction> {
        let within_calls = loops::within_calls(facts);
        let at_least = facts.removable(|e| {
            least(e).max(self.of_all_calls * within_calls(e).max(f64::from(facts::entering(e))))
        });
        let at_most = facts.removable(|e| {
            let own = self.of_own_code * f64::from(loops::is_own(e));
            most(e).max(own).max(self.of_all_calls * f64::from(facts::entering(e)))
        });
        let wall_ns = facts.program_wall_ns();
        let remaining = remaining(wall_ns, at_least, at_most)?;
        Some(Prediction {
            how: self.how.to_owned(),
            remaining,
            wall_ns,
            repeated: None,
            choices: Vec::new(),
            notes: self.notes,
        })
    }
}

/// Wall time that remains of `wall_ns`; no less than the greatest gain that is told leaves.
fn remaining(wall_ns: f64, least: Removable, most: Removable) -> Option<Estimate> {
    if wall_ns <= 0.0 || least.booked_ns <= 0.0 {
        return None;
    }
    let left = |saved_ns: f64| (wall_ns - saved_ns).max(wall_ns / Gain::MAX);
    let value = (left(least.booked_ns) * left(most.booked_ns.max(least.booked_ns))).sqrt();
    Some(Estimate {
        value,
        low: left(most.most_ns).min(value),
        high: left(least.certain_ns).max(value),
        unit: Unit::Nanoseconds,
        n: 1,
    })
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::classify::Operation;
    use crate::findings::synthetic::Run;

    fn prediction(stat: f64, part: f64) -> Option<Prediction> {
        let run = Run::new(10.0).busy(Operation::Stat, Layer::Filesystem, stat).busy(
            Operation::User,
            Layer::Program,
            1.0 - stat,
        );
        run.facts(|f| {
            let needless =
                Needless { how: "fewer", notes: Vec::new(), of_all_calls: part, of_own_code: part };
            let of = |e: &Entry| part * f64::from(e.class.operation == Operation::Stat);
            needless.prediction(f, of, of)
        })
    }

    #[test]
    fn own_code_goes_with_the_calls_between_none_and_their_part_of_it() {
        let half = prediction(0.8, 0.5).unwrap();
        // 4 s of the calls go; of 2 s of the program's own code up to one.
        let Estimate { value, low, high, n, .. } = half.remaining;
        assert!((value - 5e9_f64.sqrt() * 6e9_f64.sqrt()).abs() < 1e3, "{half:?}");
        // At the ends is the error of the samples as well.
        assert!((4e9..=5e9).contains(&low) && (6e9..6.3e9).contains(&high), "{half:?}");
        assert_eq!((half.wall_ns, n, half.repeated), (10e9, 1, None));
    }

    #[test]
    fn nothing_is_foretold_of_calls_that_take_no_time() {
        assert_eq!(prediction(0.8, 0.0), None);
        assert_eq!(prediction(0.0, 1.0), None);
    }

    #[test]
    fn where_all_may_go_the_gain_is_open_above() {
        let all = prediction(0.8, 1.0).unwrap();
        let gain = all.gain(10e9);
        assert!(gain.open_above && gain.low > 4.5 && gain.predicted > 20.0, "{gain:?}");
    }
}
