//! How one cell's figures are written, the same on every screen.

use iowhy_core::estimate::Estimate;
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::units;

use crate::record::{CellRecord, Record};

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

/// What an interrupt means for the figures; empty when there was none.
pub fn interrupted(record: &Record) -> String {
    if !record.interrupted {
        return String::new();
    }
    let rounds = record.cells.iter().map(|cell| cell.samples.len()).min().unwrap_or(0);
    let interval = if rounds < 3 { "; an interval needs 3" } else { "" };
    format!("interrupted: this is what was known after {rounds} rounds{interval}\n")
}
