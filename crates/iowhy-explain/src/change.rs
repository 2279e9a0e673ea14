//! Two runs of the same cells, before and after a change: what became of each cell's time.
//!
//! Goal: a verdict for each cell that both runs measured, by interval and by a threshold that matters, and the layer that
//! the change sits in. Non-goal: reading records, and deciding whether two machines may be compared. Invariant: a cell
//! that is not what it claims, that failed, or that was paced by a plan gets no verdict of change.

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::stats::{Verdict, bootstrap_median, ratio_of_medians, verdict_of_ratio};

use crate::per_request::paired;

/// One cell of one run, as far as a comparison needs it.
#[derive(Clone, Debug, Default)]
pub struct Side<'a> {
    /// Thread time per request of each round, in nanoseconds.
    pub ns_per_request: Vec<f64>,
    /// The time split over layers, where that was done.
    pub layers: Option<&'a Ledger>,
    /// Why this cell proves nothing, in words; `None` when it does.
    pub doubt: Option<String>,
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// After over before, of the time per request; `None` below three rounds on a side.
    pub ratio: Option<Estimate>,
    /// The word for it.
    pub verdict: Verdict,
    /// The layer that most of the difference sits in, where one does: its share of it, 0.5 or more. Layers come from fits
    /// without intervals of their own, so that it is named only where the whole cell surely changed.
    pub layer: Option<(Layer, f64)>,
    /// Why there is no verdict, where that is known.
    pub doubt: Option<String>,
}

/// A layer is named when it holds this part of the change.
const MOST_OF_IT: f64 = 0.5;

/// Compares a cell before and after. `threshold` is the share from which a difference matters, `seed` that of the
/// resampling.
pub fn change(before: &Side<'_>, after: &Side<'_>, threshold: f64, seed: u64) -> Change {
    let ratio = ratio_of_medians(&after.ns_per_request, &before.ns_per_request, seed);
    let doubt = match (&before.doubt, &after.doubt) {
        (Some(one), Some(other)) if one == other => Some(one.clone()),
        (Some(doubt), _) => Some(format!("before: {doubt}")),
        (None, Some(doubt)) => Some(format!("after: {doubt}")),
        (None, None) => few_rounds(before, after),
    };
    let verdict = match (&ratio, &doubt) {
        (Some(ratio), None) => verdict_of_ratio(ratio, threshold),
        _ => Verdict::CannotTell,
    };
    let changed = matches!(verdict, Verdict::Improved | Verdict::Regressed);
    let layer = before.layers.zip(after.layers).filter(|_| changed).and_then(|(b, a)| main_layer(b, a));
    Change { ratio, verdict, layer, doubt }
}

/// Compares a cell before and after where both were measured in the same rounds: the ratio is the median of those within
/// a round, so that drift cancels. `doubts` are why before and after prove nothing; layers are not looked at.
pub fn change_in_rounds(
    before: &CellRun,
    after: &CellRun,
    doubts: [Option<String>; 2],
    threshold: f64,
    seed: u64,
) -> Change {
    let ratios = paired(before, after, |b, a| a.ns_per_request() / b.ns_per_request());
    let ratio = bootstrap_median(&ratios, seed, Unit::Ratio);
    let [before, after] = doubts;
    let before = before.map(|doubt| format!("before: {doubt}"));
    let after = after.map(|doubt| format!("after: {doubt}"));
    let doubt = before.or(after).or(too_few(ratios.len()));
    let verdict = match (&ratio, &doubt) {
        (Some(ratio), None) => verdict_of_ratio(ratio, threshold),
        _ => Verdict::CannotTell,
    };
    Change { ratio, verdict, layer: None, doubt }
}

/// Fewer rounds than [`verdict_of_ratio`] decides on.
fn few_rounds(before: &Side<'_>, after: &Side<'_>) -> Option<String> {
    too_few(before.ns_per_request.len().min(after.ns_per_request.len()))
}

fn too_few(n: usize) -> Option<String> {
    const LEAST: usize = 5;
    (n < LEAST).then(|| format!("{n} rounds are too few, {LEAST} are needed"))
}

/// The layer with the greatest change in the direction of the whole, and its part of it.
fn main_layer(before: &Ledger, after: &Ledger) -> Option<(Layer, f64)> {
    let whole = after.total_ns() - before.total_ns();
    let part = |layer: Layer| (after.get(layer).total_ns() - before.get(layer).total_ns()) / whole;
    let (layer, part) =
        Layer::ALL.into_iter().map(|layer| (layer, part(layer))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (part.is_finite() && part >= MOST_OF_IT).then_some((layer, part))
}

#[cfg(test)]
mod tests {
    use iowhy_core::cell::{Sample, StateCheck};
    use iowhy_core::histogram::Histogram;
    use iowhy_core::workload::{CacheState, Method, Workload};

    use super::*;

    fn side(ns: f64) -> Side<'static> {
        Side {
            ns_per_request: (0..9).map(|i| ns * (1.0 + 0.002 * f64::from(i % 3))).collect(),
            ..Side::default()
        }
    }

    #[test]
    fn a_slower_cell_regressed_and_an_equal_one_did_not() {
        let slower = change(&side(100.0), &side(130.0), 0.05, 1);
        assert_eq!(slower.verdict, Verdict::Regressed);
        assert!((slower.ratio.unwrap().value - 1.3).abs() < 0.01);
        assert_eq!(change(&side(130.0), &side(100.0), 0.05, 1).verdict, Verdict::Improved);
        assert_eq!(change(&side(100.0), &side(101.0), 0.05, 1).verdict, Verdict::WithinNoise);
    }

    #[test]
    fn a_cell_in_doubt_changed_nothing_and_says_why() {
        let doubtful = Side { doubt: Some("half of it was cached".into()), ..side(130.0) };
        let told = change(&side(100.0), &doubtful, 0.05, 1);
        assert_eq!(told.verdict, Verdict::CannotTell);
        assert_eq!(told.doubt.as_deref(), Some("after: half of it was cached"));
        let few = Side { ns_per_request: vec![1.0; 4], ..Side::default() };
        let told = change(&few, &side(100.0), 0.05, 1);
        assert_eq!(
            (told.verdict, told.doubt.as_deref()),
            (Verdict::CannotTell, Some("4 rounds are too few, 5 are needed"))
        );
    }

    /// Rounds whose time drifts to the tenfold: only within rounds can anything be told.
    fn drifting(factor: f64) -> CellRun {
        let sample = |round: u32| Sample {
            round,
            requests: 1000,
            thread_ns: (1e6 * factor * (1.0 + f64::from(round)) * (1.0 + 0.002 * f64::from(round % 3)))
                as u64,
            ..Sample::default()
        };
        CellRun {
            key: "drifting".into(),
            workload: Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20),
            samples: (0..10).map(sample).collect(),
            latency: Histogram::default(),
            state_check: StateCheck::Verified,
            dropped: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn drift_that_both_share_cancels_within_rounds() {
        let of = |factor| change_in_rounds(&drifting(1.0), &drifting(factor), [None, None], 0.05, 1);
        assert_eq!(of(1.2).verdict, Verdict::Regressed);
        assert!((of(1.2).ratio.unwrap().value - 1.2).abs() < 0.01);
        assert_eq!(of(0.8).verdict, Verdict::Improved);
        assert_eq!(of(1.01).verdict, Verdict::WithinNoise);
        let doubts = [None, Some("half of it was cached".to_owned())];
        let doubtful = change_in_rounds(&drifting(1.0), &drifting(2.0), doubts, 0.05, 1);
        assert_eq!(doubtful.verdict, Verdict::CannotTell);
        assert_eq!(doubtful.doubt.as_deref(), Some("after: half of it was cached"));
        // Rounds that only one side has count for nothing.
        let mut few = drifting(2.0);
        few.samples.drain(..6);
        let told = change_in_rounds(&drifting(1.0), &few, [None, None], 0.05, 1);
        assert_eq!(
            (told.verdict, told.doubt.as_deref()),
            (Verdict::CannotTell, Some("4 rounds are too few, 5 are needed"))
        );
    }

    #[test]
    fn the_layer_that_holds_the_change_is_named_and_only_then() {
        let ledger = |device: f64, copy: f64| {
            let mut ledger = Ledger::default();
            ledger.add(Layer::Device, 0.0, device);
            ledger.add(Layer::Copy, copy, 0.0);
            ledger
        };
        let (before, after) = (ledger(80.0, 20.0), ledger(105.0, 25.0));
        let of = |ns, layers| Side { layers: Some(layers), ..side(ns) };
        let told = change(&of(100.0, &before), &of(130.0, &after), 0.05, 1);
        let (layer, part) = told.layer.unwrap();
        assert_eq!(layer, Layer::Device);
        assert!((part - 25.0 / 30.0).abs() < 1e-9);
        assert_eq!(change(&of(100.0, &before), &of(101.0, &after), 0.05, 1).layer, None);
    }
}
