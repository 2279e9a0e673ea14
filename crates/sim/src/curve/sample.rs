//! Which blocks a sample follows, and how far off a sampled ratio may be.
//!
//! A block is in the sample or not for the whole trace, by a hash of its key (Waldspurger, Park, Garthwaite, Ahmad, FAST
//! 2015). The error comes from the sample itself: it is split into [`GROUPS`] parts by another hash, each part gives its own
//! result, and their spread is the error of the whole.

/// Independent parts of a sample.
pub const GROUPS: usize = 8;
/// Student's t, 97.5 %, 7 degrees of freedom (any table of it).
const T_OF_7: f64 = 2.365;

/// Upper bound of all hashes.
pub(super) const HASHES: u64 = 1 << 32;

/// A hash of a key that no other part of the simulator uses: 32 bits for the choice, and a group.
#[inline]
pub(super) fn hash(key: u64) -> (u64, usize) {
    // MurmurHash3's finalizer (Appleby), after a constant that sets it apart from other uses of keys.
    let mut z = key ^ 0xa076_1d64_78bd_642f;
    z = (z ^ (z >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    z = (z ^ (z >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    z ^= z >> 33;
    (z >> 32, z as usize % GROUPS)
}

/// Half the width of the 95 % interval of a mean of independent parts: Student's t times their standard
/// deviation over the root of their number. `None` unless there are [`GROUPS`] finite ones.
pub fn error_of(parts: &[f64]) -> Option<f64> {
    if parts.len() != GROUPS || parts.iter().any(|part| !part.is_finite()) {
        return None;
    }
    let n = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / n;
    let variance = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(T_OF_7 * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_choices_are_even_and_do_not_hang_together() {
        let mut chosen = [0; GROUPS];
        for key in 0..80_000u64 {
            let (hash, group) = hash(key << 12);
            chosen[group] += usize::from(hash < HASHES / 10);
        }
        assert!(chosen.iter().all(|n| (800..1200).contains(n)), "{chosen:?}");
    }

    #[test]
    fn the_error_is_that_of_the_textbook() {
        let error = error_of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        // Standard deviation 2.449, over the root of 8, times 2.365.
        assert!((error - 2.048).abs() < 0.001, "{error}");
        assert_eq!(error_of(&[0.5; GROUPS]), Some(0.0));
        assert_eq!(error_of(&[0.5; 3]), None);
    }
}
