//! Ranks in words.

use super::*;

#[test]
fn ranks_that_follow_each_other_are_a_range() {
    for (numbers, words) in [
        (&[3_u64][..], "rank 3"),
        (&[0, 1, 2], "ranks 0-2"),
        (&[0, 2, 3, 9], "ranks 0, 2-3, 9"),
        (&[u64::MAX], "rank 18446744073709551615"),
    ] {
        assert_eq!(named(&ranges(numbers)), words);
    }
    let odd: Vec<u64> = (0..100).map(|i| 2 * i).collect();
    assert_eq!(named(&ranges(&odd)), "ranks 0, 2, 4, 6, 8, 10, 12, 14, ...");
}
