//! Shares in sentences.

use super::per_cent;

/// A share as a percentage: whole above ten, one digit after the point below.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let tenths = percent.abs() < 9.95 && (percent - percent.round()).abs() > 0.05;
    per_cent(percent, usize::from(tenths))
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn small_shares_keep_a_digit() {
        assert_eq!([0.152, 0.024, 1.0, 0.0, -0.0001].map(percent), ["15 %", "2.4 %", "100 %", "0 %", "0 %"]);
    }
}
