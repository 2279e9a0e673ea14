//! How one cell's figures are written, the same on every screen.

use anstyle::Style;
use iowhy_core::estimate::Estimate;
use iowhy_core::layer::{Layer, LayerEstimate, Ledger};
use iowhy_core::units;

use crate::record::{CellRecord, Record};
use iowhy_view::terminal::bar;
use iowhy_view::terminal::sparkline::{self, Marks};
use iowhy_view::terminal::wrap::{MAX_WIDTH, MIN_WIDTH, flow};

const BOLD: Style = Style::new().bold();

/// An estimate for a table, or that there is none.
pub fn shown(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "cannot tell".to_owned(), units::estimate_narrow)
}

/// The time per request. After an interrupt also without an interval, and then with the number of rounds it rests on.
pub fn time(cell: &CellRecord) -> String {
    match (&cell.time_per_request, cell.provisional_ns()) {
        (None, Some((ns, rounds))) => format!("{} (n = {rounds})", units::time(ns)),
        (estimate, _) => shown(estimate.as_ref()),
    }
}

/// A rate of bytes; a dash where requests move none by nature.
pub fn throughput(cell: &CellRecord) -> String {
    if cell.claimed_bytes == 0 && cell.latency_ns.n > 0 {
        "-".to_owned()
    } else {
        shown(cell.throughput.as_ref())
    }
}

/// CPU time per byte; a dash where requests move none by nature.
pub fn cpu_per_byte(cell: &CellRecord) -> String {
    if cell.claimed_bytes == 0 && cell.latency_ns.n > 0 {
        "-".to_owned()
    } else {
        shown(cell.cpu_per_byte.as_ref())
    }
}

/// The share that no layer explains, with its sign and, where it has one, its interval.
pub fn unexplained(cell: &CellRecord) -> String {
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
pub fn small_time(e: &Estimate) -> String {
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
pub fn layers(named: &[(String, &CellRecord)], width: usize) -> String {
    let split: Vec<&(String, &CellRecord)> =
        named.iter().filter(|(_, cell)| !cell.layer_estimates.is_empty()).collect();
    let n = || split.iter().flat_map(|(_, cell)| cell.layer_estimates.iter().map(|layer| layer.time.n));
    let (Some(least), Some(most)) = (n().min(), n().max()) else { return String::new() };
    let rounds = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    let mut text = format!(
        "\n{BOLD}layers of a request{BOLD:#} (n = {rounds} rounds; 95 % intervals of rungs and cells drawn together)\n"
    );
    for (name, cell) in split {
        text.push_str(&format!("  {name}\n"));
        let figure = |layer: &LayerEstimate| format!("{} {}", bar::key(layer.id), small_time(&layer.time));
        let figures: Vec<String> = cell.layer_estimates.iter().map(figure).collect();
        text.push_str(&flow(&figures, width.clamp(MIN_WIDTH, MAX_WIDTH), "    "));
    }
    text
}

/// A drift beyond this share is said.
const NOTABLE_DRIFT: f64 = 0.05;

/// That the time of a cell drifted while it was measured, and how; empty where it did not.
pub fn drift(name: &str, cell: &CellRecord, marks: Marks) -> String {
    let Some(drift) = cell.drift_share.filter(|d| d.abs() > NOTABLE_DRIFT) else { return String::new() };
    // Beyond the whole a share of the median says nothing but "much".
    let drift = drift.clamp(-1.0, 1.0);
    let mut text = format!(
        "  {name}: time drifted by {:+.0} % over the run: the interval does not hold; repeat it, or look for another load\n",
        drift * 100.0
    );
    let rounds = sparkline::rounds(&cell.samples, marks);
    if !rounds.is_empty() {
        text.push_str(&format!("    {rounds}\n"));
    }
    text
}

/// What an interrupt means for the figures; empty when there was none.
pub fn interrupted(record: &Record) -> String {
    if !record.interrupted {
        return String::new();
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
    format!("interrupted: {measured} of {all} cells were measured; {rounds}{interval}\n")
}
