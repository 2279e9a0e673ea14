//! Figures of one cell, the same on every screen and page.

use iowhy_core::cell::Sample;
use iowhy_core::estimate::Estimate;
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::units;
use iowhy_view::document::{Detail, Part, Section};

use super::Named;
use crate::record::{CellRecord, Record};

/// An estimate for a table; below three rounds there is none.
pub(crate) fn shown(estimate: Option<&Estimate>, detail: Detail) -> String {
    estimate.map_or_else(|| "unknown".to_owned(), |estimate| detail.estimate(estimate))
}

/// The time per request. After an interrupt also without an interval, and then with the number of rounds it rests on.
pub(crate) fn time(cell: &CellRecord, detail: Detail) -> String {
    match (&cell.time_per_request, cell.provisional_ns()) {
        (None, Some((ns, rounds))) => format!("{} (n = {rounds})", units::time(ns)),
        (estimate, _) => shown(estimate.as_ref(), detail),
    }
}

/// A rate of bytes; a dash where requests move none by nature.
pub(crate) fn throughput(cell: &CellRecord, detail: Detail) -> String {
    if cell.claimed_bytes == 0 && cell.latency_ns.n > 0 {
        "-".to_owned()
    } else {
        shown(cell.throughput.as_ref(), detail)
    }
}

/// CPU time per byte; a dash where requests move none by nature.
pub(crate) fn cpu_per_byte(cell: &CellRecord, detail: Detail) -> String {
    if cell.claimed_bytes == 0 && cell.latency_ns.n > 0 {
        "-".to_owned()
    } else {
        shown(cell.cpu_per_byte.as_ref(), detail)
    }
}

/// The share that no layer explains, with its sign and, where it has one, its interval.
pub(crate) fn unexplained(cell: &CellRecord) -> String {
    let total = cell.layers.as_ref().map_or(0.0, Ledger::total_ns);
    if total <= 0.0 {
        return String::new();
    }
    // Adding 0 turns -0 into 0.
    let percent = |ns: f64| (ns / total * 100.0).round() + 0.0;
    let value = cell.layers.as_ref().map_or(0.0, |layers| layers.get(Layer::Unexplained).total_ns());
    match cell.layer(Layer::Unexplained).map(|layer| layer.time) {
        Some(time) if percent(time.low) < percent(time.high) => {
            format!("{:.0} % [{:.0}, {:.0}]", percent(value), percent(time.low), percent(time.high))
        }
        _ => format!("{:.0} %", percent(value)),
    }
}

/// A time with its interval where it may be nothing, or nearly so beside its interval: then each end has its own unit.
pub(crate) fn small_time(e: &Estimate) -> String {
    // What arithmetic leaves of a difference of nothing.
    const NOTHING_NS: f64 = 1e-3;
    let greatest = e.low.abs().max(e.high.abs());
    if greatest < NOTHING_NS {
        "0 ns".to_owned()
    } else if e.value.abs() < 0.1 * greatest {
        let [value, low, high] = [e.value, e.low, e.high].map(|ns| units::time(ns + 0.0));
        format!("{value} [{low}, {high}]")
    } else {
        units::estimate_narrow(e)
    }
}

/// The layers of each cell in figures, with their intervals; empty where none is known.
pub(crate) fn layers(named: &Named<'_>) -> Section {
    let split: Vec<&(String, &CellRecord)> =
        named.iter().filter(|(_, cell)| !cell.layer_estimates.is_empty()).collect();
    let n = || split.iter().flat_map(|(_, cell)| cell.layer_estimates.iter().map(|layer| layer.time.n));
    let (Some(least), Some(most)) = (n().min(), n().max()) else { return Section::default() };
    let rounds = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    let figures = |cell: &CellRecord| {
        cell.layer_estimates.iter().map(|layer| (layer.id, small_time(&layer.time))).collect()
    };
    let lines = split.into_iter().map(|(name, cell)| (name.clone(), figures(cell))).collect();
    let title = format!(
        "layers of a request (n = {rounds} rounds; joint 95 % intervals of calibration and requests)"
    );
    Section::new(title, vec![Part::Layers(lines)])
}

/// Drift below this share is not mentioned.
const NOTABLE_DRIFT: f64 = 0.05;

/// The drift of a cell's time over the run; `None` where it is small.
pub(crate) fn drift(name: &str, cell: &CellRecord) -> Option<Part> {
    let drift = cell.drift_share.filter(|d| d.abs() > NOTABLE_DRIFT)?;
    // Beyond the whole a share of the median says nothing but "much".
    let drift = drift.clamp(-1.0, 1.0);
    let text = format!(
        "{name}: time drifted by {:+.0} % over the run: the interval does not hold; repeat it, or look for another load",
        drift * 100.0
    );
    let rounds = cell.samples.iter().filter(|sample| sample.requests > 0).map(Sample::ns_per_request);
    Some(Part::Course(text, rounds.collect()))
}

/// What was measured before an interrupt.
pub(crate) fn interrupted(record: &Record) -> Option<String> {
    if !record.interrupted {
        return None;
    }
    let all = record.cells.len();
    let measured = record.cells.iter().filter(|cell| !cell.samples.is_empty()).count();
    let rounds = record.cells.iter().map(|cell| cell.samples.len()).min().unwrap_or(0);
    let rounds = match rounds {
        0 => "the first round is incomplete".to_owned(),
        n => units::counted(n as u64, "complete round", "complete rounds"),
    };
    let interval =
        if record.cells.iter().any(|cell| cell.samples.len() < 3) { "; an interval needs 3" } else { "" };
    Some(format!("interrupted: {measured} of {all} cells were measured; {rounds}{interval}"))
}
