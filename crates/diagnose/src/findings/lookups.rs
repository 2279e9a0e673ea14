//! Whether a program looks the same names up again and again, as far as its look-ups were recorded.

use iowhy_core::profile::Lookups;

use super::{Facts, say};

/// From so many look-ups of each name on they are a habit. Chosen: handling a file takes up to three (its name twice, and an open that fails).
const HABIT: f64 = 4.0;
/// Fewer recorded look-ups say nothing. Chosen.
const ENOUGH: u64 = 100;

/// How often each name is looked up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Often {
    /// Again and again.
    Again,
    /// So many times, on the average, by a record of every call.
    Seldom(f64),
    /// Windows of calls do not tell: what was looked up between them is not known.
    Unknown,
}

/// What the recorded look-ups say.
pub(super) fn often(facts: &Facts<'_>) -> Often {
    let all_recorded = facts.profile.pattern.record.is_some();
    let Some(lookups) = recorded(facts) else { return Often::Unknown };
    match lookups.each() {
        Some(each) if each < HABIT && all_recorded && lookups.beyond == 0 => Often::Seldom(each),
        Some(each) if each < HABIT => Often::Unknown,
        _ => Often::Again,
    }
}

/// The part of the recorded look-ups that were of a name that was looked up before: at least so much of the run's are.
pub(super) fn repeated_part(facts: &Facts<'_>) -> Option<f64> {
    recorded(facts).map(|lookups| lookups.repeated as f64 / lookups.calls.max(1) as f64)
}

/// The same in figures.
pub(super) fn evidence(facts: &Facts<'_>) -> Option<String> {
    let lookups = recorded(facts)?;
    Some(format!(
        "{} of {} recorded look-ups were of a name that was looked up before, with the same outcome{}",
        say::count(lookups.repeated as f64),
        say::count(lookups.calls as f64),
        match facts.profile.pattern.record {
            Some(_) => "",
            None => "; what was looked up between the recorded windows is not known",
        }
    ))
}

fn recorded(facts: &Facts<'_>) -> Option<Lookups> {
    facts.profile.pattern.lookups.filter(|lookups| lookups.calls >= ENOUGH)
}
