//! A measured cell, split over the layers: a ledger per request that sums to the measured thread time.

mod booking;
mod interval;
mod method_path;
mod queue;
#[cfg(test)]
mod tests;

pub use self::booking::{LedgerContext, RequestLedger, ledger};
pub(crate) use self::booking::{waits, waits_for_storage};
pub(crate) use self::interval::layer_estimates;
pub use self::interval::{Draw, estimates};
pub use self::queue::MANY_IN_FLIGHT;
