//! Text from the command line to numbers. Every refusal names the option and the text, and shows what is accepted.

use std::collections::HashSet;
use std::time::Duration;

use super::Bytes;
use crate::problem::Problem;

/// The most sizes that one option may give: a sweep of more would measure for hours.
pub const MAX_SIZES: usize = 64;

const SIZE_HINT: &str = "write a size such as `512`, `4k`, `64KiB`, `1.5g` (powers of two)";
const DURATION_HINT: &str = "write a time such as `10s`, `500ms`, `2m`, `1h`, `250us`";
const PERCENT_HINT: &str = "write a share such as `2%` or `0.5%`";
const RATE_HINT: &str = "write requests per second such as `1000`, `10k/s`, `1.5M` (powers of ten)";

/// A size in bytes: a number, then `k`, `m`, `g`, `t`, `p` or `e` in either case, each 1024 times the one before,
/// optionally followed by `i`, `b` or `ib`. A fraction of a unit is rounded to whole bytes. Zero is accepted.
///
/// # Errors
/// Names `option` when the text is empty, negative, no number, of an unknown unit, or above 2^64 - 1.
pub fn parse_bytes(option: &str, text: &str) -> Result<u64, Problem> {
    let refuse = |why: &str| refused_value(option, text, why, SIZE_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    let unit = unit.to_ascii_lowercase();
    let power = match unit.strip_suffix("ib").or(unit.strip_suffix(['i', 'b'])).unwrap_or(&unit) {
        "" if unit.contains('i') => None,
        "" => Some(0),
        letter if letter.len() == 1 => "kmgtpe".find(letter).map(|i| i as u32 + 1),
        _ => None,
    };
    let power = power.ok_or_else(|| refuse("unknown unit"))?;
    if power == 0 && number.contains('.') {
        return Err(refuse("not a whole number of bytes"));
    }
    let value = scale(number, 1 << (10 * power)).map_err(refuse)?;
    u64::try_from(value).map_err(|_| refuse(TOO_LARGE))
}

/// As [`parse_bytes`], for sizes that cannot be zero.
///
/// # Errors
/// As [`parse_bytes`], and when the size is zero.
pub fn parse_bytes_nonzero(option: &str, text: &str) -> Result<u64, Problem> {
    match parse_bytes(option, text)? {
        0 => Err(refused_value(option, text, "must be more than zero", SIZE_HINT)),
        bytes => Ok(bytes),
    }
}

/// A list of sizes: `512,4k..64k`. A range goes up by doubling, or by the factor after `*` (`1k..1m*4`), and includes
/// both ends, the upper one also where the steps miss it. Order is kept, repeated sizes are dropped.
///
/// # Errors
/// Names `option` when any size is refused or zero, a range runs downwards, a factor is below 2, or there are more
/// than [`MAX_SIZES`].
pub fn parse_sizes(option: &str, text: &str) -> Result<Vec<u64>, Problem> {
    const HINT: &str = "write sizes such as `4k`, `512,4k,64k`, `1k..1m`, `1k..1m*4`";
    let refuse = |why: &str| refused_value(option, text, why, HINT);
    let mut sizes = Vec::new();
    let mut seen = HashSet::new();
    for item in text.split(',') {
        for size in range(option, item)? {
            if seen.insert(size) {
                sizes.push(size);
            }
            if sizes.len() > MAX_SIZES {
                return Err(refuse(&format!("more than {MAX_SIZES} sizes")));
            }
        }
    }
    Ok(sizes)
}

/// One item of a list of sizes: a size or a range.
fn range(option: &str, item: &str) -> Result<Vec<u64>, Problem> {
    let refuse = |why: &str, hint: &str| refused_value(option, item, why, hint);
    let Some((low, rest)) = item.split_once("..") else {
        return Ok(vec![parse_bytes_nonzero(option, item)?]);
    };
    let (high, factor) = match rest.split_once('*') {
        Some((high, factor)) => (high, factor.trim().parse().ok().filter(|f| *f >= 2)),
        None => (rest, Some(2)),
    };
    let factor: u64 = factor
        .ok_or_else(|| refuse("the factor must be a whole number, 2 or more", "for example `1k..1m*4`"))?;
    let (low, high) = (parse_bytes_nonzero(option, low)?, parse_bytes_nonzero(option, high)?);
    if low > high {
        let range = format!("{}..{}", Bytes(high), Bytes(low)).replace(' ', "");
        let hint = format!("write the smaller size first: `{range}`");
        return Err(refuse("the range runs downwards", &hint));
    }
    let steps = std::iter::successors(Some(low), |size| size.checked_mul(factor).filter(|next| *next < high));
    let mut sizes: Vec<u64> = steps.collect();
    if low < high {
        sizes.push(high);
    }
    Ok(sizes)
}

/// A time: a number, then `ns`, `us` (or `µs`), `ms`, `s`, `m`, `min` or `h`; without a unit, seconds. Rounded to
/// whole nanoseconds.
///
/// # Errors
/// Names `option` when the text is empty, negative, no number, of an unknown unit, zero after rounding, or above
/// 2^64 - 1 ns (584 years).
pub fn parse_duration(option: &str, text: &str) -> Result<Duration, Problem> {
    let refuse = |why: &str| refused_value(option, text, why, DURATION_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    let unit_ns = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(refuse("unknown unit")),
    };
    match u64::try_from(scale(number, unit_ns).map_err(refuse)?) {
        Ok(0) => Err(refuse("must be more than zero")),
        Ok(ns) => Ok(Duration::from_nanos(ns)),
        Err(_) => Err(refuse(TOO_LARGE)),
    }
}

/// A share above 0 and up to 100 %, as a number up to 1: `2%` is 0.02. The sign may be left out from 1 on (`2` is
/// `2%`); below that it could as well mean the share itself, so `0.02` is refused.
///
/// # Errors
/// Names `option` when the text is no such share.
pub fn parse_percent(option: &str, text: &str) -> Result<f64, Problem> {
    let refuse = |why: &str| refused_value(option, text, why, PERCENT_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    let percent: f64 = number.parse().map_err(|_| refuse(NO_NUMBER))?;
    match unit {
        _ if percent == 0.0 => Err(refuse("must be more than zero")),
        _ if percent > 100.0 => Err(refuse("must be 100% or less")),
        "%" => Ok(percent / 100.0),
        "" if percent >= 1.0 => Ok(percent / 100.0),
        "" => {
            let hint = format!("write `{}%` or `{number}%`", percent * 100.0);
            Err(refused_value(option, text, "could mean a share or per cent", &hint))
        }
        _ => Err(refuse("unknown unit")),
    }
}

/// Events per second: a number, then `k`, `M` or `G` in either case (powers of ten), then `/s` or nothing.
///
/// # Errors
/// Names `option` when the text is empty, negative, no number, of an unknown unit, or zero.
pub fn parse_rate(option: &str, text: &str) -> Result<f64, Problem> {
    let refuse = |why: &str| refused_value(option, text, why, RATE_HINT);
    let (number, unit) = split(text).map_err(refuse)?;
    let factor = match unit.strip_suffix("/s").unwrap_or(unit).trim_end() {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        _ => return Err(refuse("unknown unit")),
    };
    let rate = number.parse::<f64>().map_err(|_| refuse(NO_NUMBER))? * factor;
    match rate {
        0.0 => Err(refuse("must be more than zero")),
        rate if rate.is_finite() => Ok(rate),
        _ => Err(refuse(TOO_LARGE)),
    }
}

const TOO_LARGE: &str = "too large";
const NO_NUMBER: &str = "not a number";

/// The one form of a refused value: option, value, cause, and as the hint what is allowed.
pub fn refused_value(option: &str, text: &str, why: &str, hint: impl Into<String>) -> Problem {
    Problem::refused(format!("{option} `{text}`: {why}")).hint(hint)
}

/// Splits into an unsigned decimal number and the rest.
fn split(text: &str) -> Result<(&str, &str), &'static str> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if text.is_empty() {
        Err("empty")
    } else if text.starts_with('-') {
        Err("must not be negative")
    } else if number.is_empty() || number.matches('.').count() > 1 || number == "." {
        Err(NO_NUMBER)
    } else {
        Ok((number, unit.trim_start()))
    }
}

/// A decimal number times a unit, exact before it is rounded to the nearest whole.
fn scale(number: &str, unit: u64) -> Result<u128, &'static str> {
    /// Decimals that are looked at; none of the units is fine enough for more to matter within a u64's precision.
    const DECIMALS: usize = 9;
    const ONE: u128 = 10u128.pow(DECIMALS as u32);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits =
        |text: &str| if text.is_empty() { Ok(0) } else { text.parse::<u64>().map_err(|_| TOO_LARGE) };
    let whole = u128::from(digits(whole)?) * u128::from(unit);
    let fraction = &fraction[..fraction.len().min(DECIMALS)];
    let padding = 10u128.pow((DECIMALS - fraction.len()) as u32);
    Ok(whole + (u128::from(digits(fraction)?) * padding * u128::from(unit) + ONE / 2) / ONE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("4k", 4096),
            ("64K", 65_536),
            ("4kib", 4096),
            ("4KB", 4096),
            ("1Mi", 1 << 20),
            ("1 MiB", 1 << 20),
            ("1.5g", 3 << 29),
            (".5k", 512),
            ("0.3k", 307),
            ("15e", 15 << 60),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_bytes("--bs", text), Ok(bytes), "{text}");
        }
        for (text, why) in [
            ("", "empty"),
            (" ", "empty"),
            ("-1", "must not be negative"),
            ("k", "not a number"),
            ("1.2.3k", "not a number"),
            ("4x", "unknown unit"),
            ("4i", "unknown unit"),
            ("4kk", "unknown unit"),
            ("4kibi", "unknown unit"),
            ("4k 4k", "unknown unit"),
            ("1e3", "unknown unit"),
            ("1.5", "not a whole number of bytes"),
            ("16e", "too large"),
            ("18446744073709551616", "too large"),
            ("99999999999999999999999999999999999999999k", "too large"),
        ] {
            let problem = parse_bytes("--bs", text).unwrap_err();
            assert_eq!(problem.message, format!("--bs `{text}`: {why}"));
            assert_eq!((problem.hint.as_deref(), problem.exit_code()), (Some(SIZE_HINT), 2));
        }
        assert_eq!(
            parse_bytes_nonzero("--size", "0k").unwrap_err().message,
            "--size `0k`: must be more than zero"
        );
    }

    #[test]
    fn lists_and_ranges_of_sizes() {
        let of = |text| parse_sizes("--bs", text);
        assert_eq!(of("512,4k..32k"), Ok(vec![512, 4096, 8192, 16_384, 32_768]));
        assert_eq!(of("1k..16k*4"), Ok(vec![1024, 4096, 16_384]));
        assert_eq!(of("1k..6k"), Ok(vec![1024, 2048, 4096, 6144]));
        assert_eq!(of("4k,1k..4k, 4096"), Ok(vec![4096, 1024, 2048]));
        assert_eq!(of("4k..4k"), Ok(vec![4096]));
        assert_eq!(of("1..8e").unwrap().len(), 64);
        for (text, message) in [
            ("", "--bs ``: empty"),
            ("4k,", "--bs ``: empty"),
            ("0", "--bs `0`: must be more than zero"),
            ("0..4k", "--bs `0`: must be more than zero"),
            ("4k..", "--bs ``: empty"),
            ("4k..1k", "--bs `4k..1k`: the range runs downwards"),
            ("1k..4k*1", "--bs `1k..4k*1`: the factor must be a whole number, 2 or more"),
            ("1k..4k*x", "--bs `1k..4k*x`: the factor must be a whole number, 2 or more"),
        ] {
            assert_eq!(of(text).unwrap_err().message, message);
        }
        assert!(of("4k..1k").unwrap_err().hint.unwrap().contains("`1KiB..4KiB`"));
        let many = (1..=65).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
        assert!(of(&many).unwrap_err().message.ends_with("more than 64 sizes"));
    }

    #[test]
    fn durations() {
        for (text, ns) in [
            ("10s", 10_000_000_000),
            ("10", 10_000_000_000),
            ("500ms", 500_000_000),
            ("250us", 250_000),
            ("1.5 µs", 1500),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("7ns", 7),
        ] {
            assert_eq!(parse_duration("--runtime", text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for (text, why) in [
            ("0s", "must be more than zero"),
            ("0.1ns", "must be more than zero"),
            ("-1s", "must not be negative"),
            ("ten", "not a number"),
            ("1d", "unknown unit"),
            ("99999999999h", "too large"),
        ] {
            assert_eq!(
                parse_duration("--runtime", text).unwrap_err().message,
                format!("--runtime `{text}`: {why}")
            );
        }
    }

    #[test]
    fn shares_and_rates() {
        assert_eq!(parse_percent("--precision", "2%"), Ok(0.02));
        assert_eq!(parse_percent("--precision", "2"), Ok(0.02));
        assert_eq!(parse_percent("--precision", "0.5 %"), Ok(0.005));
        assert_eq!(parse_percent("--precision", "0.02").unwrap_err().hint.unwrap(), "write `2%` or `0.02%`");
        for text in ["0%", "101", "-2%", "2x", "%", ""] {
            assert!(parse_percent("--precision", text).is_err(), "{text}");
        }
        for (text, rate) in [("1000", 1e3), ("10k/s", 1e4), ("1.5M", 1.5e6), ("2 /s", 2.0), ("0.5", 0.5)] {
            assert_eq!(parse_rate("--rate", text), Ok(rate));
        }
        for text in ["0", "-1", "k", "10/m", "10k/", "", "1kk/s"] {
            assert!(parse_rate("--rate", text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_text_is_answered(text in "\\PC{0,12}|[0-9.]{0,30}[a-zA-Zµ%/.*, -]{0,4}[0-9]{0,3}") {
            let _ = (parse_bytes("-x", &text), parse_sizes("-x", &text), parse_duration("-x", &text));
            let _ = (parse_percent("-x", &text), parse_rate("-x", &text));
        }

        #[test]
        fn whole_bytes_are_exact(bytes: u64) {
            prop_assert_eq!(parse_bytes("-x", &bytes.to_string()), Ok(bytes));
        }
    }
}
