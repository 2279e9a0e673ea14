//! Pure computing, with and without an end.

use iowhy_core::rng::Rng;

/// Draws so many random numbers.
pub(super) fn compute(rounds: u64) -> u64 {
    let mut rng = Rng::new(super::SEED);
    (0..rounds).fold(0, |sum: u64, _| sum.wrapping_add(rng.next_u64()))
}

/// Computes until the process that started it is gone.
pub(super) fn spin() -> u64 {
    let parent = std::os::unix::process::parent_id();
    let mut sum = 0u64;
    while std::os::unix::process::parent_id() == parent {
        sum = sum.wrapping_add(std::hint::black_box(compute(10_000_000)));
    }
    sum
}
