//! What was expected and what came, as a list of checks, and the table they are printed in.

use std::fmt::Write as _;

/// One thing that must hold.
#[derive(Debug)]
pub(super) struct Check {
    group: String,
    name: String,
    said: String,
    good: bool,
}

/// All that was checked.
#[derive(Debug, Default)]
pub(super) struct Checks {
    list: Vec<Check>,
    group: String,
}

impl Checks {
    /// What the next checks belong to.
    pub(super) fn group(&mut self, name: &str) {
        name.clone_into(&mut self.group);
    }

    /// Something holds or does not; `said` shows what was seen.
    pub(super) fn holds(&mut self, name: &str, good: bool, said: impl Into<String>) {
        self.list.push(Check { group: self.group.clone(), name: name.to_owned(), said: said.into(), good });
    }

    /// A value is what it should be, within a share of that.
    pub(super) fn near(&mut self, name: &str, value: Option<f64>, expected: Option<f64>, share: f64) {
        let (Some(value), Some(expected)) = (value, expected) else {
            let missing = if value.is_none() { "the value is" } else { "what it should be is" };
            return self.holds(name, false, format!("{missing} missing"));
        };
        let off = (value - expected) / expected;
        let said = format!(
            "{}, should be {}: {:+.2} % of ±{:.1} %",
            short(value),
            short(expected),
            off * 100.0,
            share * 100.0
        );
        // Written so that a value that is not a number is not near.
        self.holds(name, off.abs() <= share, said);
    }

    /// A value is small against a whole.
    pub(super) fn small(&mut self, name: &str, value: Option<f64>, whole: Option<f64>, share: f64) {
        let (Some(value), Some(whole)) = (value, whole) else {
            return self.holds(name, false, "a value is missing");
        };
        let part = value / whole;
        let said = format!(
            "{} of {}: {:+.2} %, at most {:.1} %",
            short(value),
            short(whole),
            part * 100.0,
            share * 100.0
        );
        self.holds(name, part.abs() <= share, said);
    }

    /// How many failed.
    pub(super) fn failed(&self) -> usize {
        self.list.iter().filter(|check| !check.good).count()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// The failed ones alone, a line each.
    pub(super) fn failures(&self) -> String {
        self.lines(|check| !check.good)
    }

    /// All of them, a line each.
    pub(super) fn table(&self) -> String {
        self.lines(|_| true)
    }

    fn lines(&self, which: impl Fn(&Check) -> bool) -> String {
        let mut text = String::new();
        let mut last = "";
        for check in self.list.iter().filter(|check| which(check)) {
            if check.group != last {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{}", check.group);
                last = &check.group;
            }
            let mark = if check.good { "ok  " } else { "FAIL" };
            let _ = writeln!(text, "  {mark} {:42} {}", check.name, check.said);
        }
        text
    }
}

/// A number in six digits at most.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_small_have_their_limits_and_nothing_is_never_good() {
        let mut checks = Checks::default();
        checks.group("a");
        checks.near("in", Some(101.0), Some(100.0), 0.0101);
        checks.small("in", Some(-1.0), Some(100.0), 0.01);
        checks.holds("in", true, "");
        assert_eq!((checks.count(), checks.failed()), (3, 0));
        checks.near("out", Some(102.0), Some(100.0), 0.01);
        checks.near("out", Some(f64::NAN), Some(100.0), 0.01);
        checks.near("out", None, Some(100.0), 0.01);
        checks.near("out", Some(1.0), Some(0.0), 0.01);
        checks.small("out", Some(-2.0), Some(100.0), 0.01);
        checks.small("out", Some(0.0), Some(0.0), 0.01);
        assert_eq!(checks.failed(), 6);
        assert!(checks.failures().starts_with("a\n  FAIL out"));
        assert_eq!(checks.failures().matches("FAIL").count(), 6);
        assert_eq!(checks.table().lines().count(), 10);
    }
}
