//! Recorded runs of labelled programs: the rules name the cause of the slow variant first, do not name it in the repaired
//! variant, and blame no innocent program. The labels are those of the catalogue of cases.
//!
//! A file is `NAME.VARIANT.json`, the `profile` of a record without its call pattern, which changed no finding of these runs.
//! Live runs are nightly.

use std::path::Path;

use iowhy::analyzer::Analyzer;
use iowhy_cases::{Case, Variant, catalogue};
use iowhy_core::finding::FindingId;
use iowhy_core::profile::Profile;

/// The set must stay this broad.
const MIN_CAUSES: usize = 8;
const MIN_REPAIRED: usize = 8;
const MIN_INNOCENT: usize = 4;

struct Recorded {
    case: &'static Case,
    variant: Variant,
    found: Vec<FindingId>,
}

/// All recorded runs with today's findings, in the order of their names.
fn recorded() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let analyzer = Analyzer::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let one = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let words: Vec<&str> = name.split('.').collect();
        let &[case, variant, "json"] = words.as_slice() else { panic!("{name}: not NAME.VARIANT.json") };
        let variant = match variant {
            "slow" => Variant::Slow,
            "repaired" => Variant::Repaired,
            other => panic!("{name}: no variant is called {other}"),
        };
        let case = catalogue::find(case).unwrap_or_else(|| panic!("{name}: no such case"));
        let text = std::fs::read_to_string(path).unwrap();
        let profile: Profile = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = analyzer.explain(&profile, None).findings.iter().map(|f| f.id).collect();
        Recorded { case, variant, found }
    };
    paths.iter().map(one).collect()
}

/// What is wrong with these findings of a run, if it is one of this case.
fn complaint(case: &Case, variant: Variant, found: &[FindingId]) -> Option<String> {
    // Other processes ran on the machine while these were recorded.
    let noise = FindingId::NoisyNeighbour;
    let about_noise = case.is_right(noise) || case.also.contains(&noise);
    let found: Vec<FindingId> = found.iter().copied().filter(|id| about_noise || *id != noise).collect();
    let good = match (variant, case.cause) {
        (Variant::Repaired, Some(cause)) => !found.contains(&cause),
        // The remark that a program is well gives way to noise, which is taken out above.
        (_, None) => found.iter().all(|id| case.accept.contains(id)),
        (Variant::Slow, Some(_)) => found.first().is_some_and(|first| case.is_right(*first)),
    };
    (!good).then(|| format!("{} {}: named {found:?}", case.name, variant.word()))
}

#[test]
fn causes_are_named_and_nobody_else_is_blamed() {
    let complaints: Vec<String> =
        recorded().iter().filter_map(|run| complaint(run.case, run.variant, &run.found)).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn many_causes_are_recorded() {
    let runs = recorded();
    let mut causes: Vec<FindingId> = runs.iter().filter_map(|run| run.case.cause).collect();
    causes.sort_by_key(|id| id.id());
    causes.dedup();
    let repaired = runs.iter().filter(|run| run.variant == Variant::Repaired).count();
    let innocent = runs.iter().filter(|run| run.case.cause.is_none()).count();
    assert!(causes.len() >= MIN_CAUSES, "{causes:?}");
    assert!(repaired >= MIN_REPAIRED && innocent >= MIN_INNOCENT, "{repaired} {innocent}");
}

/// Negative control: with the labels of other runs, the same findings are wrong.
#[test]
fn wrong_labels_are_noticed() {
    let runs = recorded();
    let (mut tried, mut missed) = (0, Vec::new());
    for run in runs.iter().filter(|run| run.variant == Variant::Slow && run.case.cause.is_some()) {
        for label in &runs {
            let first =
                run.found.iter().find(|id| **id != FindingId::NoisyNeighbour || label.case.is_right(**id));
            if label.variant == Variant::Repaired || first.is_some_and(|first| label.case.is_right(*first)) {
                continue;
            }
            tried += 1;
            if complaint(label.case, Variant::Slow, &run.found).is_none() {
                missed.push(format!("{} as {}: {:?}", run.case.name, label.case.name, run.found));
            }
        }
        if complaint(run.case, Variant::Repaired, &run.found).is_none()
            && run.case.cause.is_some_and(|cause| run.found.contains(&cause))
        {
            missed.push(format!("{} as repaired: {:?}", run.case.name, run.found));
        }
    }
    assert!(tried >= MIN_CAUSES * (MIN_CAUSES - 1) && missed.is_empty(), "{tried} tried; {missed:#?}");
}
