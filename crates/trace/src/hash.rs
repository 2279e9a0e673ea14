//! Hashes of ids that are the same on every machine and in every version.

/// A bijection of 64 bits that leaves no pattern (the finaliser of SplitMix64: Steele, Lea, Flood 2014).
#[inline]
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number of a name, the same on every machine. Two of n names share one with probability below n^2 / 2^65: one in
/// 36 million for a million names.
#[inline]
pub(crate) fn of_name(name: &[u8]) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ name.len() as u64;
    let mut chunks = name.chunks_exact(8);
    for chunk in &mut chunks {
        // A chunk has 8 bytes; the fall-back is never used.
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or([0; 8]));
        state = mix(state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    let mut tail = [0u8; 8];
    tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(state ^ u64::from_le_bytes(tail)) ^ state.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_length_have_numbers_of_their_own() {
        let mut seen = std::collections::HashSet::new();
        for length in 0..100usize {
            for last in 0..50u8 {
                let mut name = vec![b'a'; length];
                name.push(last);
                assert!(seen.insert(of_name(&name)), "{length} {last}");
            }
        }
        // Zeros at the end count.
        assert_ne!(of_name(b"a"), of_name(b"a\0"));
        assert_ne!(of_name(b""), of_name(b"\0"));
    }

    #[test]
    fn the_number_of_a_name_never_changes() {
        // Files that were written by one version are read by the next.
        assert_eq!(mix(0), 0);
        assert_eq!(mix(1), 6_238_072_747_940_578_789);
    }
}
