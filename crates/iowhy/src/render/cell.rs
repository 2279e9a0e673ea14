//! How one cell's figures are written, the same on every screen.

use iowhy_core::estimate::Estimate;
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::units;

use crate::record::{CellRecord, Record};
use crate::render::spark::{self, Marks};

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

/// The share that no layer explains, with its sign.
pub fn unexplained(ledger: &Ledger) -> String {
    let total = ledger.total_ns();
    if total <= 0.0 {
        return String::new();
    }
    // Adding 0 turns -0 into 0.
    let percent = (ledger.get(Layer::Unexplained).total_ns() / total * 100.0).round() + 0.0;
    format!("{percent:.0} %")
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
    let rounds = spark::rounds(&cell.samples, marks);
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
    let rounds = record.cells.iter().map(|cell| cell.samples.len()).min().unwrap_or(0);
    let interval = if rounds < 3 { "; an interval needs 3" } else { "" };
    format!("interrupted: this is what was known after {rounds} rounds{interval}\n")
}
