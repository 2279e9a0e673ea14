//! `stripe`: the rules for a stripe under a file system, and the recommended interleave for disks and a load.

mod advice;
mod lint;
mod proof;

pub use advice::chapter as advice;
pub use lint::chapter as lint;

use iowhy_core::units::Bytes;

/// `64 KiB (128 sectors)`: some drivers count sectors.
fn interleave(bytes: u64) -> String {
    format!("{} ({} sectors)", Bytes(bytes), bytes / 512)
}
