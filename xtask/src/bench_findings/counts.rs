//! The figures of all cases: how often the cause was named first, and how the predicted gains compare with the measured ones.

use std::collections::BTreeMap;

use iowhy_core::stats;

use super::{MUCH_NOISE, Row, proof};

/// How many of what. Every watched run of a slow variant counts.
#[derive(Default)]
pub(super) struct Counts {
    /// Programs with a known cause.
    pub(super) programs: usize,
    /// Their runs.
    pub(super) guilty: usize,
    /// Runs whose first finding is the cause.
    pub(super) first_right: usize,
    pub(super) predicted: usize,
    pub(super) inside: usize,
    /// Bounds of runs with a measured gain.
    pub(super) bounds: usize,
    /// Of these, those that the measured gain does not exceed.
    pub(super) bounds_hold: usize,
    /// Of the closed intervals, those that hold the measured gain.
    pub(super) closed_inside: usize,
    /// Predictions without an upper end.
    pub(super) open_above: usize,
    /// The same by cause.
    pub(super) causes: BTreeMap<&'static str, OfCause>,
    pub(super) still_named: usize,
    pub(super) missed: usize,
    /// Cases whose first finding was tried by a replay.
    proofs: Vec<proof::Compared>,
    /// Measured gain over predicted gain, of each case that has both.
    over_predicted: Vec<f64>,
    /// Upper end over lower end of each closed interval.
    widths: Vec<f64>,
    pub(super) innocent: usize,
    pub(super) innocent_right: usize,
    pub(super) wrong: usize,
    /// Of the wrong ones, those whose runs others disturbed.
    pub(super) wrong_disturbed: usize,
    pub(super) skipped: usize,
    pub(super) failed: usize,
}

/// The figures of one cause's programs.
#[derive(Default)]
pub(super) struct OfCause {
    pub(super) programs: usize,
    pub(super) runs: usize,
    pub(super) first_right: usize,
    pub(super) inside: usize,
    /// Measured over predicted gain of every run that has both.
    pub(super) over_predicted: Vec<f64>,
}

impl OfCause {
    /// The middle error of its predictions, a factor.
    pub(super) fn error(&self) -> Option<f64> {
        error(&self.over_predicted).map(f64::exp)
    }
}

/// Median of |ln(ratio)|.
fn error(ratios: &[f64]) -> Option<f64> {
    stats::median(&ratios.iter().map(|ratio| ratio.ln().abs()).collect::<Vec<f64>>())
}

impl Counts {
    pub(super) fn add(&mut self, row: &Row) {
        let (right, runs) = (row.right(), row.slow.len());
        let clean = row.still_named().is_empty();
        if let Some(cause) = row.case.cause {
            let of_cause = self.causes.entry(cause.id()).or_default();
            of_cause.programs += 1;
            of_cause.first_right += right;
            of_cause.runs += runs;
            self.programs += 1;
            self.guilty += runs;
            self.first_right += right;
            self.still_named += usize::from(!clean);
            self.missed += row.missed().len();
            self.proofs.extend(row.compared());
            for holds in row.bounds() {
                self.bounds += 1;
                self.bounds_hold += usize::from(holds);
            }
            for gain in row.calibrated() {
                let Some((measured, inside)) = row.measured.as_ref().zip(row.inside(&gain)) else { continue };
                let ratio = measured.value / gain.predicted;
                self.over_predicted.push(ratio);
                of_cause.over_predicted.push(ratio);
                of_cause.inside += usize::from(inside);
                self.predicted += 1;
                self.inside += usize::from(inside);
                self.open_above += usize::from(gain.open_above);
                if !gain.open_above {
                    self.closed_inside += usize::from(inside);
                    self.widths.push(gain.high / gain.low);
                }
            }
        } else {
            self.innocent += runs;
            self.innocent_right += right;
        }
        let wrong = runs - right + usize::from(!clean);
        self.wrong += wrong;
        self.wrong_disturbed += if row.noise >= MUCH_NOISE { wrong } else { 0 };
    }

    /// Quartiles of measured gain over predicted gain.
    pub(super) fn over_predicted(&self) -> Option<[f64; 3]> {
        let mut ratios = self.over_predicted.clone();
        ratios.sort_by(f64::total_cmp);
        let at = |p: f64| ratios.get(((ratios.len().max(1) - 1) as f64 * p).round() as usize).copied();
        Some([at(0.25)?, at(0.5)?, at(0.75)?])
    }

    /// Median of |ln(measured / predicted)|: 0.22 is a factor of 1.25.
    pub(super) fn median_error(&self) -> Option<f64> {
        error(&self.over_predicted)
    }

    /// Median of upper end over lower end of the closed intervals.
    pub(super) fn median_width(&self) -> Option<f64> {
        stats::median(&self.widths)
    }

    /// How the proofs ended, if any was tried.
    pub(super) fn proofs(&self) -> Option<proof::Totals> {
        proof::totals(&self.proofs)
    }

    pub(super) fn sentence(&self) -> String {
        let spread = match self.over_predicted() {
            Some([low, middle, high]) => {
                format!(
                    "measured over predicted gain: median {middle:.2}, the middle half {low:.2} to {high:.2}; median error a factor of \
                     {:.2}; median width {:.2}\n",
                    self.median_error().unwrap_or(f64::NAN).exp(),
                    self.median_width().unwrap_or(f64::NAN)
                )
            }
            None => String::new(),
        };
        format!(
            "causes named first: {} of {} runs; second causes missed: {}; repaired still blamed: {}\n\
             measured gain meets the predicted interval: {} of {} ({} of them open above, of the closed ones {} hold)\n\
             bounds (rest unchanged) that the measured gain does not exceed: {} of {}\n\
             {spread}{}innocent left in peace: {} of {} runs\n\
             wrong in any way: {}, of which on a busy machine: {}\n\
             skipped: {}; failed: {}",
            self.first_right,
            self.guilty,
            self.missed,
            self.still_named,
            self.inside,
            self.predicted,
            self.open_above,
            self.closed_inside,
            self.bounds_hold,
            self.bounds,
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
