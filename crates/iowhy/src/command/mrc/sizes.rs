//! Sizes of caches: from those of the options to blocks or objects.

use iowhy_core::problem::Problem;
use iowhy_core::units::{Bytes, refused_value, typed_size};
use iowhy_sim::curve::keys::Unit;
use iowhy_sim::policy::MAX_BLOCKS;

use crate::cli::mrc::CacheSize;

/// Room in blocks or objects, at least one.
fn room(size: CacheSize, distinct: u64, unit: Unit) -> u64 {
    let room = match (size, unit) {
        (CacheSize::Count(count), _) => count,
        (CacheSize::Share(share), _) => (share * distinct as f64).round() as u64,
        (CacheSize::Bytes(bytes), Unit::Blocks(block)) => bytes / block.max(1),
        // `check` refuses it.
        (CacheSize::Bytes(bytes), Unit::Objects) => bytes,
    };
    room.max(1)
}

/// Rooms for sizes, each once, in order.
pub(super) fn rooms(sizes: &[CacheSize], distinct: u64, unit: Unit) -> Vec<u64> {
    let mut rooms: Vec<u64> = sizes.iter().map(|size| room(*size, distinct, unit)).collect();
    rooms.sort_unstable();
    rooms.dedup();
    rooms
}

/// The sizes without `--size`.
pub(super) fn default() -> Vec<CacheSize> {
    [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0].map(CacheSize::Share).to_vec()
}

/// Bytes hold at least one block, and are none of objects.
///
/// # Errors
/// A refusal that names `--size`.
pub(super) fn check(sizes: &[CacheSize], unit: Unit) -> Result<(), Problem> {
    for size in sizes {
        let CacheSize::Bytes(bytes) = *size else { continue };
        let refused = |why: &str, hint: &str| Err(refused_value("--size", &typed_size(bytes), why, hint));
        match unit {
            Unit::Objects => {
                return refused(
                    "with `--objects` a cache is a number of objects",
                    "write objects as `20000`, a part of the trace as `1%`, or leave `--objects` out",
                );
            }
            Unit::Blocks(block) if bytes < block => {
                let why = format!("less than one block of {}", Bytes(block));
                return refused(&why, "choose a larger cache or a smaller `--block`");
            }
            Unit::Blocks(block) if bytes / block > MAX_BLOCKS as u64 => {
                let why = format!("more than {MAX_BLOCKS} blocks of {}", Bytes(block));
                return refused(&why, "choose a smaller cache or a larger `--block`");
            }
            Unit::Blocks(_) => {}
        }
    }
    Ok(())
}

/// `points` sizes, evenly spread by factor, from a thousandth of all distinct blocks to all of them.
pub(super) fn spread(distinct: u64, points: u32) -> Vec<u64> {
    let low = (distinct as f64 / 1000.0).max(1.0);
    let steps = f64::from(points.saturating_sub(1).max(1));
    let factor = (distinct as f64).max(1.0) / low;
    let mut sizes: Vec<u64> = (0..points)
        .map(|i| (low * factor.powf(f64::from(i) / steps)).round().min(distinct as f64).max(1.0) as u64)
        .collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: Unit = Unit::Blocks(4096);

    #[test]
    fn a_size_is_a_room_of_at_least_one_block() {
        assert_eq!(room(CacheSize::Bytes(64 << 20), 10, BLOCKS), 16_384);
        assert_eq!(room(CacheSize::Share(0.01), 1000, BLOCKS), 10);
        assert_eq!(room(CacheSize::Share(0.01), 3, BLOCKS), 1);
    }

    #[test]
    fn bytes_hold_a_block_and_are_none_of_objects() {
        let refused = |bytes, unit| check(&[CacheSize::Bytes(bytes)], unit).unwrap_err();
        assert_eq!(check(&[CacheSize::Bytes(4096), CacheSize::Count(1)], BLOCKS), Ok(()));
        assert!(refused(1024, BLOCKS).message.contains("less than one block of 4 KiB"));
        assert!(refused(u64::MAX, BLOCKS).message.contains("more than"));
        assert!(refused(64 << 20, Unit::Objects).message.contains("--objects"));
        assert_eq!(check(&[CacheSize::Share(0.1)], Unit::Objects), Ok(()));
    }

    #[test]
    fn a_spread_reaches_from_little_to_all() {
        let sizes = spread(100_000, 24);
        assert!(sizes.first() == Some(&100) && sizes.last() == Some(&100_000) && sizes.len() == 24);
        assert!(sizes.is_sorted());
        assert_eq!(spread(1, 5), [1]);
        assert_eq!(spread(0, 5), [1]);
        assert!(spread(10, 0).is_empty());
    }
}
