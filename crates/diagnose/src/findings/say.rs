//! Numbers in the sentences of findings. What may not enter: what the numbers mean.

use iowhy_core::estimate::Estimate;
use iowhy_core::units::{self, Bytes};

pub(super) use iowhy_core::units::percent;

/// A count: whole below a million, digits in groups; three digits above.
pub(super) fn count(n: f64) -> String {
    if n >= 999_500.0 {
        let (value, word) = if n >= 9.995e8 { (n / 1e9, "billion") } else { (n / 1e6, "million") };
        let decimals = (2.0 - value.max(1.0).log10().floor()).clamp(0.0, 2.0) as usize;
        return format!("{value:.decimals$} {word}");
    }
    // A mean of less than ten keeps a digit, because "1 write" and "1.4 writes" differ.
    if n < 9.95 && (n - n.round()).abs() >= 0.05 {
        return format!("{n:.1}");
    }
    let digits = format!("{n:.0}");
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// A size.
pub(super) fn bytes(n: f64) -> String {
    Bytes(n.max(0.0).round() as u64).to_string()
}

/// A rate.
pub(super) fn rate(bytes: f64, ns: f64) -> String {
    units::rate_bytes(bytes / (ns.max(1.0) / 1e9))
}

/// A time.
pub(super) fn time(ns: f64) -> String {
    units::time(ns)
}

/// A sampled share with its interval: `97 % (between 95 % and 99 %)`.
pub(super) fn share(share: Estimate) -> String {
    let Estimate { value, low, high, .. } = share;
    if high - low <= 0.01 {
        percent(value)
    } else {
        format!("{} (between {} and {})", percent(value), percent(low), percent(high))
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::Unit;

    use super::*;

    #[test]
    fn counts_are_read_at_a_glance() {
        assert_eq!(
            [0.0, 1.4, 12.0, 1234.0, 123_456.0, 1_234_567.0, 45.6e6, 2e9].map(count),
            ["0", "1.4", "12", "1,234", "123,456", "1.23 million", "45.6 million", "2.00 billion"]
        );
        let sampled = Estimate { value: 0.6, low: 0.5, high: 0.7, unit: Unit::Ratio, n: 90 };
        assert_eq!(share(sampled), "60 % (between 50 % and 70 %)");
    }
}
