//! The figures of all cases: how often the cause was named first, and how the predicted gains compare with the measured ones.

use super::{MUCH_NOISE, Row, proof};

/// How many of what.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) guilty: usize,
    pub(super) first_right: usize,
    pub(super) predicted: usize,
    pub(super) inside: usize,
    /// Predictions without an upper end.
    pub(super) open_above: usize,
    pub(super) still_named: usize,
    pub(super) missed: usize,
    /// Cases whose first finding was tried by a replay.
    proofs: Vec<proof::Compared>,
    /// Measured gain over predicted gain, of each case that has both.
    over_predicted: Vec<f64>,
    pub(super) innocent: usize,
    pub(super) innocent_right: usize,
    pub(super) wrong: usize,
    /// Of the wrong ones, those whose runs others disturbed.
    pub(super) wrong_disturbed: usize,
    pub(super) skipped: usize,
    pub(super) failed: usize,
}

impl Counts {
    pub(super) fn add(&mut self, row: &Row) {
        let right = row.first_is_right();
        let clean = row.still_named().is_empty();
        if row.case.cause.is_some() {
            self.guilty += 1;
            self.first_right += usize::from(right);
            self.still_named += usize::from(!clean);
            self.missed += row.missed().len();
            self.proofs.extend(row.compared());
            self.predicted += usize::from(row.inside().is_some());
            self.inside += usize::from(row.inside() == Some(true));
            self.open_above += usize::from(row.predicted().is_some_and(|gain| gain.open_above));
            self.over_predicted.extend(
                row.predicted()
                    .zip(row.measured.as_ref())
                    .map(|(predicted, m)| m.value / predicted.predicted),
            );
        } else {
            self.innocent += 1;
            self.innocent_right += usize::from(right);
        }
        let wrong = !right || !clean;
        self.wrong += usize::from(wrong);
        self.wrong_disturbed += usize::from(wrong && row.noise >= MUCH_NOISE);
    }

    /// Quartiles of measured gain over predicted gain.
    pub(super) fn over_predicted(&self) -> Option<[f64; 3]> {
        let mut ratios = self.over_predicted.clone();
        ratios.sort_by(f64::total_cmp);
        let at = |p: f64| ratios.get(((ratios.len().max(1) - 1) as f64 * p).round() as usize).copied();
        Some([at(0.25)?, at(0.5)?, at(0.75)?])
    }

    /// How the proofs ended, if any was tried.
    pub(super) fn proofs(&self) -> Option<proof::Totals> {
        proof::totals(&self.proofs)
    }

    pub(super) fn sentence(&self) -> String {
        let spread = match self.over_predicted() {
            Some([low, middle, high]) => {
                format!(
                    "measured over predicted gain: median {middle:.2}, the middle half {low:.2} to {high:.2}\n"
                )
            }
            None => String::new(),
        };
        format!(
            "causes named first: {} of {}; second causes missed: {}; repaired still blamed: {}\n\
             measured gain meets the predicted interval: {} of {} ({} of them open above)\n\
             {spread}{}innocent left in peace: {} of {}\n\
             wrong in any way: {}, of which on a busy machine: {}\n\
             skipped: {}; failed: {}",
            self.first_right,
            self.guilty,
            self.missed,
            self.still_named,
            self.inside,
            self.predicted,
            self.open_above,
            proof::sentence(&self.proofs),
            self.innocent_right,
            self.innocent,
            self.wrong,
            self.wrong_disturbed,
            self.skipped,
            self.failed
        )
    }
}
