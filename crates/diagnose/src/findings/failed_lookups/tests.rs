//! Tests of the rule `failed-lookups`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::Lookups;

use super::*;
use crate::classify::Operation;
use crate::findings::synthetic::{Run, slow_and_repaired};

/// A search along a path: this share of the run examines names, so many of which do not exist.
fn search(share: f64, calls: u64, failed: u64) -> Run {
    Run::new(4.0)
        .busy(Operation::Stat, Layer::Filesystem, share)
        .busy(Operation::User, Layer::Program, 1.0 - share)
        .calls(&[("newfstatat", calls)])
        .with(|p| {
            let count = p.calls.as_mut().and_then(|all| all.calls.first_mut());
            if let Some(count) = count {
                (count.failed, count.errors) = (failed, [("ENOENT".to_owned(), failed)].into());
            }
        })
}

#[test]
fn a_search_along_a_path_is_named_and_a_list_in_memory_is_not() {
    let found =
        slow_and_repaired(FindingId::FailedLookups, &search(0.8, 575_629, 559_429), &search(0.02, 70, 0));
    let gain = found.gain.unwrap();
    // 0.97 x 0.8 of the run are failing calls; of the rest up to 0.97 of the program's own code go with them.
    assert!((4.2..4.5).contains(&gain.low) && (33.0..36.0).contains(&gain.high), "{gain:?}");
    assert!(found.prediction.as_ref().is_some_and(|p| p.repeated.is_none()), "nothing was repeated");
    assert!(found.gain_rest_unchanged.is_some_and(|bound| bound > 4.0 && bound < 5.1), "{found:?}");
    assert!(found.evidence.iter().any(|e| e.contains("78 % of wall time")), "{found:?}");
}

#[test]
fn how_many_look_ups_were_repeated_is_evidence_where_it_was_recorded() {
    let recorded = |calls| {
        let run = search(0.8, 575_629, 559_429);
        let found =
            run.with(|p| p.pattern.lookups = Some(Lookups { calls, repeated: 90, beyond: 0 })).findings();
        found[0].evidence.iter().any(|e| e.starts_with("90 of 5,000 recorded look-ups"))
    };
    assert!(recorded(5000) && !recorded(99), "too few say nothing");
}

#[test]
fn the_calls_that_succeed_are_not_part_of_the_cost() {
    let half = search(0.8, 10_000, 6_000).findings();
    assert!((half[0].share - 0.48).abs() < 1e-9, "{half:?}");
    assert!(!search(0.8, 10_000, 4_000).ids().contains(&FindingId::FailedLookups));
    assert!(!search(0.04, 10_000, 9_900).ids().contains(&FindingId::FailedLookups));
}
