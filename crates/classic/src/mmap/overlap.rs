//! Two readers on two disks: how much of the overlap that could be had was lost, and whether a second thread adds
//! throughput. Pure arithmetic.

/// Share of the overlap that is lost: 0 when both run as if alone, 1 when one waits for the other all the time.
/// `both_ns` is the time of both together, `alone_ns` that of one alone. `None` for times that are not above zero.
pub fn lost(both_ns: f64, alone_ns: f64) -> Option<f64> {
    let lost = both_ns / alone_ns - 1.0;
    (alone_ns > 0.0 && lost.is_finite()).then_some(lost)
}

/// What a second thread on a second target does to throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// Doubles it, or nearly.
    Doubles,
    /// Adds something.
    Adds,
    /// Adds nothing, or takes something away.
    Nothing,
    /// The interval does not decide.
    Inconclusive,
}

/// Ratios of throughput from which a second thread counts as adding something, and as doubling.
const ADDS_FROM: f64 = 1.1;
const DOUBLES_FROM: f64 = 1.8;

/// The verdict on a ratio of throughputs (both over alone) and the ends of its interval.
pub fn second(low: f64, high: f64) -> Second {
    match () {
        () if low >= DOUBLES_FROM => Second::Doubles,
        () if low >= ADDS_FROM => Second::Adds,
        () if high < ADDS_FROM => Second::Nothing,
        () => Second::Inconclusive,
    }
}

impl Second {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Second::Doubles => "a second thread doubles it",
            Second::Adds => "a second thread adds some",
            Second::Nothing => "a second thread adds nothing",
            Second::Inconclusive => "inconclusive",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_overlap_was_lost_in_1999() {
        assert!((lost(107.0, 70.0).unwrap() - 0.5286).abs() < 1e-3);
        assert_eq!((lost(140.0, 70.0), lost(70.0, 70.0)), (Some(1.0), Some(0.0)));
        assert_eq!((lost(1.0, 0.0), lost(f64::NAN, 1.0)), (None, None));
    }

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        assert_eq!(second(1.9, 2.1), Second::Doubles);
        assert_eq!(second(1.3, 1.9), Second::Adds);
        assert_eq!(second(0.9, 1.05), Second::Nothing);
        assert_eq!(second(0.9, 1.3), Second::Inconclusive);
    }
}
