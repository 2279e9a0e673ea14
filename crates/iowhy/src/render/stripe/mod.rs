//! Results of `stripe` for people.

mod advice;
mod lint;
mod proof;

pub use advice::screen as advice_screen;
pub use lint::screen as lint_screen;

use iowhy_core::units::Bytes;

/// An interleave as people write it: a size, and sectors where a driver counts them.
pub(crate) fn interleave(bytes: u64) -> String {
    format!("{} ({} sectors)", Bytes(bytes), bytes / 512)
}
