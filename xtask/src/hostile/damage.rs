//! Damaged inputs: records and traces with bits flipped, numbers exchanged, parts cut, doubled or filled.

use iowhy_core::rng::Rng;

/// Texts that stand where a number was.
const NUMBERS: [&[u8]; 12] = [
    b"0",
    b"-1",
    b"1e-320",
    b"1e308",
    b"-1e308",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775808",
    b"4294967296",
    b"NaN",
    b"null",
    b"\"\\u202e\\u009b31m\"",
];

/// A damaged copy.
pub(super) fn damaged(sample: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..1 + below(rng, 4) {
        if bytes.is_empty() {
            break;
        }
        let at = below(rng, bytes.len() as u64) as usize;
        match below(rng, 6) {
            0 => bytes[at] ^= 1 << below(rng, 8),
            1 => bytes.truncate(at),
            2 => number(&mut bytes, at, rng),
            3 => {
                let end = (at + 1 + below(rng, 4096) as usize).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            4 => {
                let fill = [0, 0xff, b'[', b'{', b'"', b'9'][below(rng, 6) as usize];
                let length = below(rng, 65536) as usize;
                bytes.splice(at..at, std::iter::repeat_n(fill, length));
            }
            _ => {
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill(if below(rng, 2) == 0 { 0xff } else { 0 });
            }
        }
    }
    bytes
}

/// Puts another number where the next one stands.
fn number(bytes: &mut Vec<u8>, from: usize, rng: &mut Rng) {
    let digit = |b: &u8| b.is_ascii_digit();
    let Some(begin) = bytes[from..].iter().position(digit).map(|i| from + i) else { return };
    let end = bytes[begin..].iter().position(|b| !digit(b) && *b != b'.').map_or(bytes.len(), |i| begin + i);
    let new = NUMBERS[below(rng, NUMBERS.len() as u64) as usize];
    bytes.splice(begin..end, new.iter().copied());
}

pub(super) fn below(rng: &mut Rng, limit: u64) -> u64 {
    rng.next_u64() % limit.max(1)
}
