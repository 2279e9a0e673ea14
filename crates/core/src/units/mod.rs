//! Sizes, times, rates and their text forms.
//!
//! Conventions: sizes and throughputs are powers of two and their units are always written with the i (`KiB`,
//! `MiB/s`); counts are powers of ten (`k/s`). Invariant: text written here can be parsed here, up to rounding.

mod format;
mod parse;
mod percent;

use std::fmt;

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

pub use self::format::{
    count, count_rate, counted, estimate, estimate_narrow, factor, interval, per_cent, rate_bytes, share,
    signed_per_cent, time, total,
};
pub use self::parse::{
    MAX_SIZES, parse_bytes, parse_bytes_nonzero, parse_duration, parse_percent, parse_rate, parse_sizes,
    refused_value,
};
pub use self::percent::percent;

/// Binary units from bytes up; each is 1024 times the one before.
const BYTE_UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A size for people: `512 B`, `4 KiB`, `1.5 GiB`. Exact where four digits suffice in some unit, otherwise rounded to three
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let natural = (self.0.max(1).ilog2() / 10) as usize;
        for power in (0..=natural).rev() {
            let unit = 1u128 << (10 * power);
            let hundredths = u128::from(self.0) * 100;
            if hundredths % unit == 0 && u128::from(self.0) / unit < 10_000 {
                let text = format!("{}.{:02}", hundredths / unit / 100, hundredths / unit % 100);
                let text = text.trim_end_matches('0').trim_end_matches('.');
                if text.bytes().filter(u8::is_ascii_digit).count() <= 4 {
                    return f.pad(&format!("{text} {}", BYTE_UNITS[power]));
                }
            }
        }
        let (value, unit) = format::binary(self.0 as f64);
        f.pad(&format!("{} {unit}", format::three_digits(value)))
    }
}

/// A size as it is typed behind an option: `64g`, `1536m`, `4k`. Exact where that is short, else rounded down to a whole
/// number of at least two digits, so that it still fits.
pub fn typed_size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 5] = [("t", 40), ("g", 30), ("m", 20), ("k", 10), ("", 0)];
    let exact = |shift: u32| bytes.is_multiple_of(1 << shift) && (1..10_000).contains(&(bytes >> shift));
    let shown = UNITS.iter().find(|(_, shift)| exact(*shift));
    let rounded = || UNITS.iter().find(|(_, shift)| bytes >> shift >= 16);
    let (unit, shift) = shown.or_else(rounded).unwrap_or(&("", 0));
    format!("{}{unit}", bytes >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_typed_short_and_never_larger() {
        for (bytes, text) in [
            (69_178_736_640, "64g"),
            (16 << 20, "16m"),
            (4096, "4k"),
            (4097, "4097"),
            (512, "512"),
            (3 << 29, "1536m"),
            ((2 << 30) - 4096, "2047m"),
            (1 << 40, "1t"),
            (0, "0"),
            (100_000, "97k"),
            (u64::MAX, "16777215t"),
        ] {
            assert_eq!(typed_size(bytes), text);
            assert!(parse_bytes("--size", text).unwrap() <= bytes, "{text}");
        }
    }

    #[test]
    fn sizes_are_exact_where_that_is_short() {
        const K: u64 = 1024;
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (1000, "1000 B"),
            (5000, "5000 B"),
            (4096, "4 KiB"),
            (1280, "1.25 KiB"),
            (12_345, "12.1 KiB"),
            (128 * K, "128 KiB"),
            (1025 * K * K, "1025 MiB"),
            (866_275 * K * K / 100, "8.46 GiB"),
            (1229 * K * K / 4, "307 MiB"),
            (49 * K * K / 4, "12.25 MiB"),
            (3 * K * K * K / 2, "1.5 GiB"),
            (1_048_575, "1.00 MiB"),
            (1 << 60, "1 EiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(format!("{:>8}", Bytes(4096)), "   4 KiB");
    }
}
