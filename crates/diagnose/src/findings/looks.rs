//! Whether the names that a program looks at are the same again and again, as far as its looks were recorded.

use super::{Facts, say};

/// From this part on it is the habit.
const HABIT: f64 = 0.5;
/// Fewer recorded looks say nothing. Chosen.
const ENOUGH: u64 = 100;

/// How often each name is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Often {
    /// Most looks are at names that were looked at before.
    Again,
    /// Most are not, by a record of every call.
    Once,
    /// Windows of calls do not tell: what was looked at before a window is not known.
    Unknown,
}

/// What the recorded looks say.
pub(super) fn often(facts: &Facts<'_>) -> Often {
    let pattern = &facts.profile.pattern;
    let enough = pattern.looks.filter(|looks| looks.calls >= ENOUGH);
    match enough.and_then(|looks| looks.part_again()) {
        Some(part) if part >= HABIT => Often::Again,
        Some(_) if pattern.record.is_some() => Often::Once,
        _ => Often::Unknown,
    }
}

/// The same in figures.
pub(super) fn evidence(facts: &Facts<'_>) -> Option<String> {
    let pattern = &facts.profile.pattern;
    let looks = pattern.looks.filter(|looks| looks.calls >= ENOUGH)?;
    Some(format!(
        "{} look-ups were recorded; {}{} of them were of a name that was looked at before in the record, with the same outcome",
        say::count(looks.calls as f64),
        if pattern.record.is_some() { "" } else { "at least " },
        say::percent(looks.part_again()?)
    ))
}
