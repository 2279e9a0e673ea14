//! Numbers to text, for people. Every function takes any float: values that are not finite read `∞`, `-∞` or `n/a`.

use super::BYTE_UNITS;
use crate::estimate::{Estimate, Unit};

/// A time: three digits and `ns`, `µs`, `ms` or `s`; whole seconds from 1000 s on. May be negative.
pub fn time(ns: f64) -> String {
    scaled(ns, Unit::Nanoseconds)
}

/// A throughput: three digits and `B/s` to `EiB/s` (powers of two).
pub fn rate_bytes(bytes_per_second: f64) -> String {
    scaled(bytes_per_second, Unit::BytesPerSecond)
}

/// A rate of requests or events: three digits and `/s`, `k/s`, `M/s` or `G/s` (powers of ten).
pub fn count_rate(per_second: f64) -> String {
    scaled(per_second, Unit::PerSecond)
}

/// A count in groups of three: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The sum of counts, the greatest count where they sum to more: counts of a record that was read may be any number.
pub fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// A count with its noun: `1 request`, `12,345 requests`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Value and interval: `641 ns ±2 %` when the interval is about symmetric, otherwise `641 ns [630, 690]`, in the
/// unit of the value. The per cent figure is the longer arm, rounded up. No more digits than the interval supports:
/// to one digit beyond the leading digit of its longer finite arm, four at most and two at least.
pub fn estimate(e: &Estimate) -> String {
    let (below, above) = (e.value - e.low, e.high - e.value);
    let longer = below.max(above);
    let scale = Scale::new(e.value, e.unit);
    // Nothing, and surely nothing: no arm can be a share of it.
    if e.value == 0.0 && longer == 0.0 {
        return scale.write(0.0, 0);
    }
    let decimals = scale.decimals(e);
    let value = scale.write(e.value, decimals);
    let symmetric = e.value.is_finite() && longer <= 2.0 * below.min(above) && longer <= 0.5 * e.value.abs();
    if symmetric {
        return format!("{value} ±{} %", percent_up(longer / e.value.abs()));
    }
    format!("{value} [{}, {}]", scale.number(e.low, decimals), scale.number(e.high, decimals))
}

/// As [`estimate`], but always with `±` and its longer arm: for tables, where a column must stay narrow. It overstates
/// the uncertainty on the shorter side, never understates it.
pub fn estimate_narrow(e: &Estimate) -> String {
    let longer = (e.value - e.low).max(e.high - e.value);
    // A share of more than the whole says nothing; the ends do.
    if !e.value.is_finite() || longer > e.value.abs() || e.value == 0.0 {
        return estimate(e);
    }
    let scale = Scale::new(e.value, e.unit);
    let value = scale.write(e.value, scale.decimals(e));
    if longer == 0.0 { value } else { format!("{value} ±{} %", percent_up(longer / e.value.abs())) }
}

/// A share in per cent, always with both ends, because `±` would be per cent of per cent: `56 % [54, 58]`.
pub fn share(e: &Estimate) -> String {
    let percent = Estimate { value: e.value * 100.0, low: e.low * 100.0, high: e.high * 100.0, ..*e };
    both_ends(&percent, " %")
}

/// A factor with both ends, for comparison with a threshold: `5.76 [5.40, 6.10]`.
pub fn factor(e: &Estimate) -> String {
    both_ends(e, "")
}

fn both_ends(e: &Estimate, suffix: &str) -> String {
    let scale = Scale::new(e.value, Unit::Ratio);
    let decimals = scale.decimals(e);
    let [value, low, high] = [e.value, e.low, e.high].map(|v| scale.number(v, decimals));
    format!("{value}{suffix} [{low}, {high}]")
}

/// The interval alone: `[630, 655] ns`, rounded as in [`estimate`].
pub fn interval(e: &Estimate) -> String {
    let scale = Scale::new(e.value, e.unit);
    let decimals = scale.decimals(e);
    format!("[{}, {}]{}", scale.number(e.low, decimals), scale.number(e.high, decimals), scale.suffix())
}

/// A share in per cent, rounded up so that precision is never overstated: whole per cents from 1 %, tenths below.
fn percent_up(share: f64) -> String {
    // Less a trifle: 2 % must not become 3 % because 0.02 has no exact binary form.
    let percent = share * 100.0 - 1e-9;
    if percent <= 0.0 {
        "0".into()
    } else if percent > 0.9 {
        format!("{}", percent.ceil())
    } else {
        format!("{:.1}", (percent * 10.0).ceil() / 10.0)
    }
}

/// The unit a value is written in.
struct Scale {
    /// Value of one unit.
    worth: f64,
    unit: &'static str,
}

impl Scale {
    /// The greatest unit that leaves at least 1 before the point, after rounding to three digits.
    fn new(value: f64, unit: Unit) -> Scale {
        let choose = |steps: &[(f64, &'static str)]| {
            let fits = |(worth, _): &&(f64, &'static str)| value.abs() >= worth * 0.9995;
            let &(worth, unit) = steps.iter().rev().find(fits).unwrap_or(&steps[0]);
            Scale { worth, unit }
        };
        match unit {
            Unit::Nanoseconds => choose(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]),
            Unit::PerSecond => choose(&[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")]),
            Unit::BytesPerSecond => {
                const RATES: [&str; 7] = ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "PiB/s", "EiB/s"];
                let power = binary_power(value);
                Scale { worth: 1024f64.powi(power as i32), unit: RATES[power] }
            }
            Unit::NanosecondsPerByte => Scale { worth: 1.0, unit: "ns/B" },
            Unit::Ratio => Scale { worth: 1.0, unit: "" },
        }
    }

    /// Decimals that the interval supports. Negative: round before the point.
    fn decimals(&self, e: &Estimate) -> i32 {
        let magnitude = |x: f64| (x / self.worth).abs().log10().floor() as i32;
        let has_magnitude = e.value != 0.0 && e.value.is_finite();
        let most = if has_magnitude { 3 - magnitude(e.value) } else { 3 };
        let arms = [e.value - e.low, e.high - e.value];
        let longer = arms.into_iter().filter(|arm| arm.is_finite()).fold(0.0, f64::max);
        // Two digits of the value always stay, however wide the interval.
        let least = if has_magnitude { 1 - magnitude(e.value) } else { i32::MIN };
        if longer > 0.0 { (1 - magnitude(longer)).min(most).max(least) } else { most }
    }

    fn number(&self, value: f64, decimals: i32) -> String {
        if value.is_finite() {
            let step = 10f64.powi((-decimals).max(0));
            let rounded = (value / self.worth / step).round() * step;
            let number = if decimals > 0 { value / self.worth } else { rounded };
            without_negative_zero(format!("{number:.*}", decimals.clamp(0, 12) as usize))
        } else if value.is_nan() {
            "n/a".into()
        } else if value > 0.0 {
            "∞".into()
        } else {
            "-∞".into()
        }
    }

    fn write(&self, value: f64, decimals: i32) -> String {
        format!("{}{}", self.number(value, decimals), self.suffix())
    }

    fn suffix(&self) -> String {
        if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) }
    }
}

/// Three digits and the fitting unit.
fn scaled(value: f64, unit: Unit) -> String {
    let scale = Scale::new(value, unit);
    let number = if value.is_finite() { three_digits(value / scale.worth) } else { scale.number(value, 0) };
    format!("{number}{}", scale.suffix())
}

/// Three significant digits, more only before the point, at most 12 decimals.
pub(super) fn three_digits(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    if value == 0.0 {
        return "0".into();
    }
    let decimals = (2.0 - magnitude).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    // 9.996 has become 10.00: one digit too many.
    let digits = text.trim_start_matches(['-', '0', '.']).chars().filter(char::is_ascii_digit).count();
    without_negative_zero(if digits > 3 && decimals > 0 { format!("{value:.*}", decimals - 1) } else { text })
}

/// `-0.0` and `-0` are 0: a sign on a value that rounds to 0 is misleading.
fn without_negative_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if !rest.contains(|c: char| c.is_ascii_digit() && c != '0') => rest.to_owned(),
        _ => text,
    }
}

/// A figure that is in per cent already, with a number of decimals: `12.5 %`; `n/a` where it is no number.
pub fn per_cent(percent: f64, decimals: usize) -> String {
    if percent.is_finite() {
        without_negative_zero(format!("{percent:.decimals$}")) + " %"
    } else {
        "n/a".into()
    }
}

/// As [`per_cent`], with its sign: `+12 %`, `-3 %`; values that round to 0 read `+0 %`.
pub fn signed_per_cent(percent: f64, decimals: usize) -> String {
    let text = per_cent(percent, decimals);
    if text.starts_with('-') || !percent.is_finite() { text } else { format!("+{text}") }
}

/// The value in the fitting binary unit.
pub(super) fn binary(bytes: f64) -> (f64, &'static str) {
    let power = binary_power(bytes);
    (bytes / 1024f64.powi(power as i32), BYTE_UNITS[power])
}

/// The greatest binary unit that leaves at least 1 before the point, after rounding to three digits (1023.6 KiB is
/// 1.00 MiB).
fn binary_power(bytes: f64) -> usize {
    let fits = |power: &usize| bytes.abs() >= 1024f64.powi(*power as i32) * (1023.5 / 1024.0);
    (1..BYTE_UNITS.len()).rev().find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::{Bytes, parse_bytes, parse_duration, parse_rate};

    #[test]
    fn the_narrow_form_shows_the_longer_arm() {
        let e = Estimate { value: 641.0, low: 630.0, high: 690.0, unit: Unit::Nanoseconds, n: 9 };
        assert_eq!(estimate_narrow(&e), "641 ns ±8 %");
        let wild = Estimate { value: 105_000.0, low: 98_000.0, high: 6.3e7, unit: Unit::Nanoseconds, n: 9 };
        assert_eq!(estimate_narrow(&wild), "110 µs [100, 63000]");
    }

    #[test]
    fn three_digits_and_the_fitting_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (0.5, "0.500 ns"),
            (-5.0, "-5.00 ns"),
            (641.2, "641 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (9_996_000.0, "10.0 ms"),
            (1.5e9, "1.50 s"),
            (4e12, "4000 s"),
            (f64::INFINITY, "∞ s"),
            (f64::NAN, "n/a ns"),
        ] {
            assert_eq!(time(ns), text);
        }
        assert_eq!(rate_bytes(1_320_702_444.0), "1.23 GiB/s");
        assert_eq!(rate_bytes(1023.6 * 1024.0), "1.00 MiB/s");
        assert_eq!(rate_bytes(1020.0), "1020 B/s");
        assert_eq!(count_rate(12_345.0), "12.3 k/s");
        assert_eq!(count_rate(950.0), "950 /s");
    }

    fn of(value: f64, low: f64, high: f64, unit: Unit) -> Estimate {
        Estimate { value, low, high, unit, n: 9 }
    }

    #[test]
    fn an_estimate_shows_the_digits_its_interval_supports() {
        use Unit::*;
        for (e, text) in [
            (of(641.27, 630.0, 652.0, Nanoseconds), "641 ns ±2 %"),
            (of(641.27, 640.9, 641.6, Nanoseconds), "641.3 ns ±0.1 %"),
            (of(641.27, 441.0, 790.0, Nanoseconds), "640 ns ±32 %"),
            (of(641.27, 630.0, 690.0, Nanoseconds), "641 ns [630, 690]"),
            (of(641.27, 641.27, 641.27, Nanoseconds), "641.3 ns ±0 %"),
            (of(641.27, 10.0, 5000.0, Nanoseconds), "640 ns [10, 5000]"),
            (of(0.0, 0.0, 0.0, Nanoseconds), "0 ns"),
            (of(-0.0, -0.0, 0.0, BytesPerSecond), "0 B/s"),
            (of(0.0, -3.0, 4.0, Nanoseconds), "0.0 ns [-3.0, 4.0]"),
            (of(1_500.0, 1_470.0, 1_530.0, Nanoseconds), "1.500 µs ±2 %"),
            (of(12_345.0, 12_000.0, 12_700.0, PerSecond), "12.35 k/s ±3 %"),
            (of(2.0, 1.0, f64::INFINITY, PerSecond), "2.0 /s [1.0, ∞]"),
            (of(0.0512, 0.05, 0.0522, NanosecondsPerByte), "0.0512 ns/B ±3 %"),
            (of(1.254, 1.23, 1.27, Ratio), "1.254 ±2 %"),
        ] {
            assert_eq!(estimate(&e), text, "{e:?}");
        }
        assert_eq!(interval(&of(641.27, 630.0, 655.0, Nanoseconds)), "[630, 655] ns");
    }

    #[test]
    fn counts_near_the_greatest_are_written_whole_and_sum_to_no_less() {
        assert_eq!(total([u64::MAX, 1]), u64::MAX);
        assert_eq!(total([1, 2, 3]), 6);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(u64::MAX, "request", "requests"), "18,446,744,073,709,551,615 requests");
        assert_eq!(Bytes(u64::MAX - 1).to_string(), "16.0 EiB");
    }

    #[test]
    fn shares_and_factors_show_both_ends() {
        assert_eq!(share(&of(0.56, 0.54, 0.58, Unit::Ratio)), "56.0 % [54.0, 58.0]");
        assert_eq!(share(&of(0.67, 0.44, 0.70, Unit::Ratio)), "67 % [44, 70]");
        assert_eq!(factor(&of(5.76, 5.4, 6.1, Unit::Ratio)), "5.76 [5.40, 6.10]");
        assert_eq!(factor(&of(2.0, 2.0, 2.0, Unit::Ratio)), "2.000 [2.000, 2.000]");
    }

    #[test]
    fn per_cents_have_no_negative_zero() {
        assert_eq!(
            [-0.04, 0.04, -3.06, f64::NAN].map(|p| per_cent(p, 1)),
            ["0.0 %", "0.0 %", "-3.1 %", "n/a"]
        );
        let signed = [-0.4, 0.4, -3.0, 12.0, f64::INFINITY].map(|p| signed_per_cent(p, 0));
        assert_eq!(signed, ["+0 %", "+0 %", "-3 %", "+12 %", "n/a"]);
    }

    /// Numbers in records: 0, nearly 0, and NaN.
    fn degenerate() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(f64::MIN_POSITIVE),
            -1e-3..1e-3f64,
            -1e15..1e15f64,
        ]
    }

    #[test]
    fn stated_precision_is_never_better_than_the_interval() {
        assert_eq!(percent_up(0.02), "2");
        assert_eq!(percent_up(0.0201), "3");
        assert_eq!(percent_up(0.0042), "0.5");
        assert_eq!(percent_up(0.00001), "0.1");
        assert_eq!(percent_up(0.0095), "1");
    }

    proptest! {
        #[test]
        fn times_read_back_within_rounding(ns in 1.0..1e15f64) {
            let back = parse_duration("--x", &time(ns)).unwrap().as_nanos() as f64;
            // Three digits, and whole nanoseconds.
            prop_assert!((back - ns).abs() <= ns * 0.005 + 0.5, "{} {back} {ns}", time(ns));
        }

        #[test]
        fn sizes_read_back_within_rounding(shift in 4u32..64, wide: u64) {
            let bytes = wide >> shift;
            let text = Bytes(bytes).to_string();
            let back = parse_bytes("--x", &text).unwrap();
            prop_assert!(back.abs_diff(bytes) as f64 <= bytes as f64 * 0.005, "{text} {back} {bytes}");
        }

        #[test]
        fn count_rates_read_back_within_rounding(rate in 0.01..1e12f64) {
            let back = parse_rate("--x", &count_rate(rate)).unwrap();
            prop_assert!((back - rate).abs() <= rate * 0.0051, "{} {back}", count_rate(rate));
        }

        #[test]
        fn every_float_has_a_text(value: f64, low: f64, high: f64) {
            for unit in [Unit::Nanoseconds, Unit::BytesPerSecond, Unit::PerSecond, Unit::NanosecondsPerByte, Unit::Ratio] {
                let e = of(value, low, high, unit);
                prop_assert!(!estimate(&e).is_empty() && !interval(&e).is_empty() && !scaled(value, unit).is_empty());
            }
        }

        #[test]
        fn no_text_holds_what_is_no_number(
            value in degenerate(), low in degenerate(), high in degenerate(), decimals in 0usize..3
        ) {
            for unit in [Unit::Nanoseconds, Unit::BytesPerSecond, Unit::PerSecond, Unit::NanosecondsPerByte, Unit::Ratio] {
                let e = of(value, low.min(value), high.max(value), unit);
                let percents = per_cent(value, decimals) + &signed_per_cent(value, decimals);
                for text in [estimate(&e), estimate_narrow(&e), interval(&e), share(&e), factor(&e), percents] {
                    prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{e:?}: {text}");
                    let zero = text.split([' ', '[', ']', ',', '%']).any(|word| {
                        word.starts_with("-0") && !word.contains(|c: char| ('1'..='9').contains(&c))
                    });
                    prop_assert!(!zero, "{e:?}: {text}");
                }
            }
        }
    }
}
