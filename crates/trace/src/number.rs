//! Numbers in text, read without allocation. Everything is checked: overflow is `None`, never wrapped.

/// The digits at the beginning as a number, and how many they are. With 20 or more the number is wrong.
#[inline]
pub(crate) fn digits(text: &[u8]) -> (u64, usize) {
    let (mut value, mut count) = match text.first_chunk::<8>() {
        Some(eight) => up_to_eight(u64::from_le_bytes(*eight)),
        None => (0, 0),
    };
    if count == 8 || text.len() < 8 {
        for byte in &text[count..] {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            count += 1;
        }
    }
    (value, count)
}

/// The digits at the beginning of eight characters, the first in the lowest byte: all at once, because a loop over
/// numbers of unlike length is mispredicted once a number.
#[inline]
fn up_to_eight(characters: u64) -> (u64, usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let values = characters ^ (ONES * b'0' as u64);
    // The upper bit of each byte that is no digit; bytes behind the first such one may be wrong, and do not count.
    let others = (values.wrapping_add(ONES * 0x76) | values) & (ONES * 0x80);
    let count = others.trailing_zeros() / 8;
    if count == 0 {
        return (0, 0);
    }
    // The bytes after the digits are shifted out, with zeros in front; then adjacent digits are joined to numbers below 100,
    // 10^4, 10^8.
    let values = values << (64 - 8 * count);
    let pairs = (values.wrapping_mul(10).wrapping_add(values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let eight = (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff;
    (eight, count as usize)
}

/// The digits at the beginning as a number, and the rest. `None` without a digit or above 2^64 - 1.
#[inline]
pub(crate) fn leading(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut length = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        // Nineteen digits always fit; checking only the rest keeps the loop short.
        value = if length < 19 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        length += 1;
    }
    (length > 0).then(|| (value, &text[length..]))
}

/// The whole text as a number.
#[inline]
pub(crate) fn whole(text: &[u8]) -> Option<u64> {
    match leading(text)? {
        (value, []) => Some(value),
        _ => None,
    }
}

/// The whole text as a number without regard to blanks around it and to digits after a point that are all zero.
pub(crate) fn integer(text: &[u8]) -> Option<u64> {
    match leading(text.trim_ascii())? {
        (value, []) => Some(value),
        (value, [b'.', rest @ ..]) if rest.iter().all(|b| *b == b'0') => Some(value),
        _ => None,
    }
}

/// Hexadecimal digits, with or without `0x`.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |value, byte| Some(value << 4 | u64::from(char::from(*byte).to_digit(16)?)))
}

/// A decimal fraction in units of 10^`digits` of its own, exactly: `1.5` with 9 is 1,500,000,000. Further digits are cut
/// off. `None` for signs, exponents and overflow.
#[inline]
pub(crate) fn scaled(text: &[u8], digits: u32) -> Option<u64> {
    let (whole, rest) = match text {
        [b'.', ..] => (0, text),
        _ => leading(text)?,
    };
    let unit = 10u64.pow(digits.min(19));
    let value = whole.checked_mul(unit)?;
    let fraction = match rest {
        [] => return Some(value),
        [b'.', fraction @ ..] => fraction,
        _ => return None,
    };
    if text.len() == 1 || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut worth = unit;
    let mut part = 0u64;
    for byte in fraction {
        worth /= 10;
        if worth == 0 {
            break;
        }
        part += worth * u64::from(byte - b'0');
    }
    value.checked_add(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(leading(b"12,3"), Some((12, &b",3"[..])));
        assert_eq!(leading(b",3"), None);
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), None);
        assert_eq!(whole(b"00000000000000000000000000001"), Some(1));
        assert_eq!(whole(b"1 "), None);
        assert_eq!((integer(b" 7 "), integer(b"7.00"), integer(b"7.5")), (Some(7), Some(7), None));
        assert_eq!(
            (hexadecimal(b"0x1F"), hexadecimal(b"ff"), hexadecimal(b"g"), hexadecimal(b"0x")),
            (Some(31), Some(255), None, None)
        );
    }

    #[test]
    fn fractions_are_exact() {
        for (text, value) in [
            ("1.5", Some(1_500_000_000)),
            ("0.000000001", Some(1)),
            ("0.0000000019", Some(1)),
            (".5", Some(500_000_000)),
            ("3.", Some(3_000_000_000)),
            ("1456095145.133076000", Some(1_456_095_145_133_076_000)),
            ("18446744073.709551615", Some(u64::MAX)),
            ("18446744073.709551616", None),
            ("99999999999999", None),
            (".", None),
            ("", None),
            ("-1", None),
            ("1e3", None),
            ("1.2.3", None),
        ] {
            assert_eq!(scaled(text.as_bytes(), 9), value, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_number_reads_back(wide: u64, shift in 0u32..64) {
            let n = wide >> shift;
            prop_assert_eq!(whole(n.to_string().as_bytes()), Some(n));
            for behind in ["", ",", ",12345678", "\u{80}zzzzzzzzz"] {
                let text = n.to_string();
                let length = text.len();
                let found = digits([text.as_bytes(), behind.as_bytes()].concat().as_slice());
                prop_assert!(found == (n, length) || length == 20);
            }
            prop_assert_eq!(hexadecimal(format!("{n:x}").as_bytes()), Some(n));
            let text = format!("{}.{:09}", n / 1_000_000_000, n % 1_000_000_000);
            prop_assert_eq!(scaled(text.as_bytes(), 9), Some(n));
        }

        #[test]
        fn any_bytes_are_a_number_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let expected = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
            prop_assert_eq!(digits(&bytes).1, expected);
            let _ = (leading(&bytes), integer(&bytes), hexadecimal(&bytes), scaled(&bytes, 9));
        }
    }
}
