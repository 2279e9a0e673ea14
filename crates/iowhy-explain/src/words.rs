//! Numbers in sentences: three digits and a unit. Sizes are powers of two, times and rates of requests are decimal.

/// A time, e.g. `1.23 µs`.
pub(crate) fn time(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A size, e.g. `4.00 KiB`; whole numbers of a unit without a fraction.
pub(crate) fn bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A throughput, e.g. `512 MiB/s`.
pub(crate) fn bytes_per_second(rate: f64) -> String {
    format!("{}/s", bytes(rate))
}

/// Requests per second, e.g. `3000 requests/s`.
pub(crate) fn requests_per_second(rate: f64) -> String {
    format!("{rate:.0} requests/s")
}

/// A share as a percentage, e.g. `15 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 9.95 && (percent - percent.round()).abs() > 0.05 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value.abs() >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = match value.abs() {
        v if (v - v.round()).abs() < 1e-9 || v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {}", units.get(unit).unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(time(1234.0), "1.23 µs");
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(bytes(1024.0 * 1024.0 * 4096.0), "4 GiB");
        assert_eq!(bytes_per_second(355.4 * 1048576.0), "355 MiB/s");
        assert_eq!(
            (percent(0.152), percent(0.024), percent(1.0)),
            ("15 %".into(), "2.4 %".into(), "100 %".into())
        );
    }
}
