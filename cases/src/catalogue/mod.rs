//! All cases, by kind of cause. Data only.
//!
//! Sizes are such that a slow variant takes about 0.5 to 3 s on a small machine. The work is bounded by count, and its
//! order comes from fixed seeds.

mod durability;
mod innocent;
mod machine;
mod memory;
mod reading;
mod requests;
mod two;

use crate::case::{Before, Case, Setup};

/// The file that most cases read; it is made once for all of them.
const DATA: Setup = Setup::Data("data-256m", 256 << 20);
/// It is in the page cache.
const DATA_WARM: Before = Before::Warm("data-256m");
/// It is not.
const DATA_COLD: Before = Before::Cold("data-256m");
/// A smaller one.
const SMALL: Setup = Setup::Data("data-64m", 64 << 20);
/// It is in the page cache.
const SMALL_WARM: Before = Before::Warm("data-64m");
/// It is not.
const SMALL_COLD: Before = Before::Cold("data-64m");

/// Every case.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        requests::CASES,
        durability::CASES,
        reading::CASES,
        memory::CASES,
        machine::CASES,
        two::CASES,
        innocent::CASES,
    ]
    .into_iter()
    .flatten()
}

/// The case of that name.
pub fn find(name: &str) -> Option<&'static Case> {
    all().find(|case| case.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iowhy_core::finding::FindingId;

    use super::*;
    use crate::case::Need;

    #[test]
    fn names_are_unique_and_found() {
        let names: std::collections::BTreeSet<&str> = all().map(|c| c.name).collect();
        assert_eq!(names.len(), all().count());
        for name in names {
            assert_eq!(find(name).map(|c| c.name), Some(name));
        }
        assert!(find("no such case").is_none());
    }

    #[test]
    fn every_repairable_cause_has_two_cases_that_look_different() {
        let mut commands: BTreeMap<FindingId, Vec<&[&str]>> = BTreeMap::new();
        for case in all() {
            if let Some(cause) = case.cause {
                commands.entry(cause).or_default().push(case.slow);
            }
        }
        // A case would be watched together with its server: `crates/iowhy/tests/command/served.rs` tests these from outside.
        let apart = [FindingId::ServerBound, FindingId::RemoteMetadata, FindingId::MappedOverNetwork];
        for id in FindingId::ALL.iter().filter(|id| id.is_repairable() && !apart.contains(id)) {
            let seen = commands.get(id).map_or(0, Vec::len);
            assert!(seen >= 2, "{}: {seen} cases", id.id());
        }
    }

    #[test]
    fn guilty_have_a_repair_and_innocent_have_none() {
        for case in all() {
            assert!(!case.what.is_empty() && !case.slow.is_empty(), "{}", case.name);
            assert_eq!(case.cause.is_some(), !case.repaired.is_empty(), "{}", case.name);
            assert!(
                case.slow != case.repaired
                    || matches!(case.condition, crate::case::Condition::OtherProcess(..))
            );
            match case.cause {
                Some(cause) => assert!(cause.is_repairable() && case.is_right(cause), "{}", case.name),
                None => assert!(!case.accept.is_empty() && case.also.is_empty(), "{}", case.name),
            }
        }
    }

    #[test]
    fn what_a_command_uses_is_needed_and_there() {
        let sources = crate::files::sources();
        for case in all() {
            for word in case.slow.iter().chain(case.repaired).flat_map(|word| word.split_whitespace()) {
                if let Some(script) = word.strip_prefix("{scripts}/") {
                    assert!(sources.join("python").join(script).is_file(), "{script}");
                    assert!(
                        case.needs.iter().any(|n| matches!(n, Need::Python | Need::Sqlite)),
                        "{}",
                        case.name
                    );
                }
                if let Some(program) = word.strip_prefix("{bin}/") {
                    assert!(sources.join("c").join(format!("{program}.c")).is_file(), "{program}");
                    assert!(case.needs.contains(&Need::Compiler), "{}", case.name);
                    assert!(
                        case.setup.iter().any(|s| matches!(s, Setup::Compile(n) if *n == program)),
                        "{}",
                        case.name
                    );
                }
            }
        }
    }
}
