//! Two runs of the same cells, before and after a change: a verdict for each cell and each of its layers, by interval and by
//! threshold, and the layer that explains the change. Records and machines are the caller's.
//!
//! A layer is judged by its change relative to the whole: a layer of 1 % that doubles counts as 1 %. Invariant: a cell that
//! is mislabelled, failed, or was paced by a plan gets no verdict.

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::layer::{Layer, LayerEstimate, Ledger};
use iowhy_core::stats::{
    self, Verdict, bootstrap_median, effect_of_estimates, ratio_of_medians, verdict_of_ratio,
};

use crate::per_request::paired;

/// One cell of one run, as far as a comparison needs it.
#[derive(Clone, Debug, Default)]
pub struct Side<'a> {
    /// Thread time per request of each round, in nanoseconds.
    pub ns_per_request: Vec<f64>,
    /// The time split over layers, where that was done.
    pub layers: Option<&'a Ledger>,
    /// The same with intervals; empty where none were kept.
    pub estimates: &'a [LayerEstimate],
    /// Why this cell supports no verdict; `None` when it does.
    pub doubt: Option<String>,
}

/// The change of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// After over before, of the time per request; `None` below three rounds on a side.
    pub ratio: Option<Estimate>,
    /// By the ratio.
    pub verdict: Verdict,
    /// The layer that most of the difference sits in, where one does: its share of it, 0.5 or more. It is named only where
    /// the whole cell surely changed, and where the layer, if it has intervals, surely did so too.
    pub layer: Option<(Layer, f64)>,
    /// Each layer that either side has, top to bottom; empty where neither was split.
    pub layers: Vec<LayerChange>,
    /// Why there is no verdict, where that is known.
    pub doubt: Option<String>,
}

/// The change of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerChange {
    /// Which layer.
    pub id: Layer,
    /// Its time for one request before; 0 where the layer was not there, `None` where no interval was kept.
    pub before: Option<Estimate>,
    /// The same after.
    pub after: Option<Estimate>,
    /// What the cell's time would have become of itself had only this layer changed: 1.05 is 5 % more.
    pub effect: Option<Estimate>,
    /// By the effect.
    pub verdict: Verdict,
    /// Why there is no verdict, where that is known.
    pub doubt: Option<String>,
}

/// A layer is named when it holds this part of the change.
const MAIN_SHARE: f64 = 0.5;

/// Compares a cell before and after. `threshold`: the smallest relative change that counts; `seed`: of the resampling.
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
        _ => Verdict::Inconclusive,
    };
    let changed = matches!(verdict, Verdict::Improved | Verdict::Regressed);
    let layers = layer_changes(before, after, doubt.as_deref(), threshold);
    let sure = |id: Layer| layers.iter().all(|l| l.id != id || l.effect.is_none() || l.verdict == verdict);
    let layer = before
        .layers
        .zip(after.layers)
        .filter(|_| changed)
        .and_then(|(b, a)| main_layer(b, a))
        .filter(|(id, _)| sure(*id));
    Change { ratio, verdict, layer, layers, doubt }
}

/// Each layer of a cell before and after. `doubt`: why the cell itself supports no verdict.
fn layer_changes(
    before: &Side<'_>,
    after: &Side<'_>,
    doubt: Option<&str>,
    threshold: f64,
) -> Vec<LayerChange> {
    let has = |side: &Side<'_>, id: Layer| {
        side.layers.is_some_and(|ledger| ledger.entries().iter().any(|entry| entry.id == id))
    };
    let Some(whole) = stats::median(&before.ns_per_request) else { return Vec::new() };
    let doubt = doubt.map(str::to_owned).or_else(|| match (before, after) {
        (side, _) if side.layers.is_none() => Some("before: the cell was not split".to_owned()),
        (_, side) if side.layers.is_none() => Some("after: the cell was not split".to_owned()),
        (side, _) if side.estimates.is_empty() => Some(format!("before: {NO_INTERVALS}")),
        (_, side) if side.estimates.is_empty() => Some(format!("after: {NO_INTERVALS}")),
        _ => None,
    });
    let one = |id: Layer| {
        let (b, a) = (time_of(before, id), time_of(after, id));
        let effect = b.zip(a).and_then(|(b, a)| effect_of_estimates(&b, &a, whole));
        let verdict = match (&effect, &doubt) {
            (Some(effect), None) => verdict_of_ratio(effect, threshold),
            _ => Verdict::Inconclusive,
        };
        LayerChange { id, before: b, after: a, effect, verdict, doubt: doubt.clone() }
    };
    Layer::ALL.into_iter().filter(|id| has(before, *id) || has(after, *id)).map(one).collect()
}

const NO_INTERVALS: &str = "the record has no intervals of layers";

/// The time of a layer with its interval; a layer that a split cell does not have takes none.
fn time_of(side: &Side<'_>, id: Layer) -> Option<Estimate> {
    let none = |like: &LayerEstimate| Estimate { value: 0.0, low: 0.0, high: 0.0, ..like.time };
    let own = side.estimates.iter().find(|layer| layer.id == id).map(|layer| layer.time);
    own.or_else(|| side.estimates.first().map(none))
}

/// Compares a cell before and after where both were measured in the same rounds: the ratio is the median of those within
/// a round, so that drift cancels. `doubts`: why before and after support no verdict. Layers are not compared.
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
        _ => Verdict::Inconclusive,
    };
    Change { ratio, verdict, layer: None, layers: Vec::new(), doubt }
}

/// Fewer rounds than [`verdict_of_ratio`] decides on.
fn few_rounds(before: &Side<'_>, after: &Side<'_>) -> Option<String> {
    too_few(before.ns_per_request.len().min(after.ns_per_request.len()))
}

fn too_few(n: usize) -> Option<String> {
    const MIN: usize = 5;
    (n < MIN).then(|| format!("{n} rounds are too few, {MIN} are needed"))
}

/// The layer with the greatest change in the direction of the whole, and its part of it.
fn main_layer(before: &Ledger, after: &Ledger) -> Option<(Layer, f64)> {
    let whole = after.total_ns() - before.total_ns();
    let part = |layer: Layer| (after.get(layer).total_ns() - before.get(layer).total_ns()) / whole;
    let (layer, part) =
        Layer::ALL.into_iter().map(|layer| (layer, part(layer))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (part.is_finite() && part >= MAIN_SHARE).then_some((layer, part))
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
        let found = change(&side(100.0), &doubtful, 0.05, 1);
        assert_eq!(found.verdict, Verdict::Inconclusive);
        assert_eq!(found.doubt.as_deref(), Some("after: half of it was cached"));
        let few = Side { ns_per_request: vec![1.0; 4], ..Side::default() };
        let found = change(&few, &side(100.0), 0.05, 1);
        assert_eq!(
            (found.verdict, found.doubt.as_deref()),
            (Verdict::Inconclusive, Some("4 rounds are too few, 5 are needed"))
        );
    }

    /// Rounds whose time drifts to the tenfold: only within rounds can anything be found.
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
        assert_eq!(doubtful.verdict, Verdict::Inconclusive);
        assert_eq!(doubtful.doubt.as_deref(), Some("after: half of it was cached"));
        // Rounds that only one side has count for nothing.
        let mut few = drifting(2.0);
        few.samples.drain(..6);
        let found = change_in_rounds(&drifting(1.0), &few, [None, None], 0.05, 1);
        assert_eq!(
            (found.verdict, found.doubt.as_deref()),
            (Verdict::Inconclusive, Some("4 rounds are too few, 5 are needed"))
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
        let found = change(&of(100.0, &before), &of(130.0, &after), 0.05, 1);
        let (layer, part) = found.layer.unwrap();
        assert_eq!(layer, Layer::Device);
        assert!((part - 25.0 / 30.0).abs() < 1e-9);
        assert_eq!(change(&of(100.0, &before), &of(101.0, &after), 0.05, 1).layer, None);
    }

    fn split(layers: &[(Layer, f64)], arm: f64) -> (Ledger, Vec<LayerEstimate>) {
        let mut ledger = Ledger::default();
        layers.iter().for_each(|(layer, ns)| ledger.add(*layer, *ns, 0.0));
        let around = |ns: f64| Estimate {
            value: ns,
            low: ns * (1.0 - arm),
            high: ns * (1.0 + arm),
            unit: Unit::Nanoseconds,
            n: 9,
        };
        let of = |(id, ns): &(Layer, f64)| LayerEstimate {
            id: *id,
            busy: around(*ns),
            wait: around(0.0),
            time: around(*ns),
        };
        (ledger, layers.iter().map(of).collect())
    }

    fn with<'a>(ns: f64, (ledger, estimates): &'a (Ledger, Vec<LayerEstimate>)) -> Side<'a> {
        Side { layers: Some(ledger), estimates, ..side(ns) }
    }

    #[test]
    fn a_layer_twice_as_long_regressed_and_one_of_no_weight_did_not() {
        use Layer::{Call, Copy, Device};
        let before = split(&[(Call, 1.0), (Copy, 49.0), (Device, 50.0)], 0.02);
        let after = split(&[(Call, 2.0), (Copy, 49.0), (Device, 100.0)], 0.02);
        let found = change(&with(100.0, &before), &with(151.0, &after), 0.05, 1);
        let words: Vec<_> = found.layers.iter().map(|l| (l.id, l.verdict)).collect();
        use Verdict::{Improved, Regressed, WithinNoise};
        assert_eq!(words, [(Call, WithinNoise), (Copy, WithinNoise), (Device, Regressed)]);
        assert!((found.layers[2].effect.unwrap().value - 1.5).abs() < 0.01);
        assert_eq!(found.layer.unwrap().0, Device);
        let back = change(&with(151.0, &after), &with(100.0, &before), 0.05, 1);
        assert_eq!(back.layers[2].verdict, Improved);
        // Another threshold is another opinion: the call is 1 % of the time.
        let strict = change(&with(100.0, &before), &with(151.0, &after), 0.005, 1);
        assert_eq!(strict.layers[0].verdict, Regressed);
    }

    #[test]
    fn layers_that_change_places_are_seen_where_the_whole_is_the_same() {
        use Layer::{Copy, Device};
        let (before, after) =
            (split(&[(Copy, 60.0), (Device, 40.0)], 0.02), split(&[(Copy, 40.0), (Device, 60.0)], 0.02));
        let found = change(&with(100.0, &before), &with(100.0, &after), 0.05, 1);
        assert_eq!(found.verdict, Verdict::WithinNoise);
        assert_eq!(
            (found.layers[0].verdict, found.layers[1].verdict),
            (Verdict::Improved, Verdict::Regressed)
        );
    }

    #[test]
    fn a_wide_interval_is_inconclusive_and_its_layer_is_not_named() {
        let (before, after) = (split(&[(Layer::Device, 100.0)], 0.4), split(&[(Layer::Device, 120.0)], 0.4));
        let found = change(&with(100.0, &before), &with(120.0, &after), 0.05, 1);
        assert_eq!((found.verdict, found.layers[0].verdict), (Verdict::Regressed, Verdict::Inconclusive));
        assert_eq!(found.layer, None);
    }

    #[test]
    fn a_new_layer_is_compared_with_nothing_and_records_without_intervals_say_so() {
        use Layer::{Copy, Lock};
        let (before, after) = (split(&[(Copy, 100.0)], 0.01), split(&[(Copy, 100.0), (Lock, 30.0)], 0.01));
        let found = change(&with(100.0, &before), &with(130.0, &after), 0.05, 1);
        assert_eq!((found.layers[1].id, found.layers[1].verdict), (Lock, Verdict::Regressed));
        let old = Side { estimates: &[], ..with(100.0, &before) };
        let found = change(&old, &with(130.0, &after), 0.05, 1);
        assert_eq!(found.verdict, Verdict::Regressed, "the cell itself can be found");
        assert!(found.layers.iter().all(|l| l.verdict == Verdict::Inconclusive));
        assert!(found.layers[0].doubt.as_deref().unwrap().starts_with("before: the record has no intervals"));
        let doubtful = Side { doubt: Some("cached".into()), ..with(130.0, &after) };
        let found = change(&with(100.0, &before), &doubtful, 0.05, 1);
        assert!(found.layers.iter().all(|l| l.doubt.as_deref() == Some("after: cached")));
        assert!(change(&side(100.0), &side(130.0), 0.05, 1).layers.is_empty());
    }
}
