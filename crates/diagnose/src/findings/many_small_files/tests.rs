//! Tests of the rule `many-small-files`.

use iowhy_core::profile::{CompleteRecord, Lookups};

use super::*;
use crate::classify::Wait;
use crate::findings::synthetic::{Run, bound_leaves, slow_and_repaired};

/// 400 MB in so many files.
fn tree(files: u64) -> Run {
    let part = files as f64 / 100_000.0;
    Run::new(10.0)
        .wait(Operation::Open, Wait::DeviceRead, 0.3 * part)
        .busy(Operation::Open, Layer::Filesystem, 0.2 * part)
        .busy(Operation::Stat, Layer::Filesystem, 0.05 * part)
        .busy(Operation::Close, Layer::Filesystem, 0.05 * part)
        .wait(Operation::Read, Wait::DeviceRead, 0.2 * part)
        .busy(Operation::User, Layer::Program, 1.0 - 0.8 * part)
        .io((2 * files, 400_000_000), (0, 0))
        .met(9)
        .calls(&[("openat", files), ("close", files), ("newfstatat", files)])
}

#[test]
fn a_hundred_thousand_small_files_are_named_and_ten_large_ones_not() {
    let found = slow_and_repaired(FindingId::ManySmallFiles, &tree(100_000), &tree(10));
    // By hand: 0.3 CPU and 0.5 waiting; that the loop's own code goes with the calls was not seen.
    bound_leaves(&found, 1.0 - 0.3 - 0.5);
    assert!(found.advice.contains("d_ino"));
}

#[test]
fn changes_of_names_and_modes_are_told_where_they_are_more_than_opens() {
    let sentence = |changed: u64| {
        let run = tree(2000).calls(&[("fchmodat", changed), ("unlinkat", 100)]);
        run.busy(Operation::Names, Layer::Filesystem, 0.6).facts(judge).unwrap().sentence
    };
    assert!(
        sentence(3000).starts_with("3,100 changes of names and attributes, 2,000 opens, and"),
        "{}",
        sentence(3000)
    );
    assert!(sentence(1000).starts_with("2,000 opens with"), "{}", sentence(1000));
}

/// A folder whose files are all examined before each step.
#[test]
fn names_that_are_looked_at_far_more_often_than_opened_are_the_cost() {
    let examined = |looks: u64, part: f64| {
        Run::new(10.0)
            .busy(Operation::Stat, Layer::Filesystem, part)
            .busy(Operation::Open, Layer::Filesystem, 0.1)
            .busy(Operation::User, Layer::Program, 0.9 - part)
            .io((2000, 200_000), (0, 0))
            .met(9)
            .calls(&[("openat", 2000), ("close", 2000), ("newfstatat", looks)])
    };
    let found = slow_and_repaired(FindingId::ManySmallFiles, &examined(600_000, 0.6), &tree(10));
    assert!(found.advice.starts_with("If the same names are looked up again"), "{}", found.advice);
    bound_leaves(&found, 1.0 - 0.7);
    let few = examined(19_000, 0.6).facts(judge).unwrap();
    assert!(few.sentence.starts_with("2,000 opens with") && few.advice.starts_with("Pack"), "{few:?}");
}

#[test]
fn whether_the_same_names_are_looked_up_again_is_said_as_far_as_it_was_recorded() {
    let judged = |calls, repeated, beyond, whole: bool| {
        let run = Run::new(10.0)
            .busy(Operation::Stat, Layer::Filesystem, 0.6)
            .busy(Operation::Open, Layer::Filesystem, 0.1)
            .busy(Operation::User, Layer::Program, 0.3)
            .met(9)
            .calls(&[("openat", 2000), ("close", 2000), ("newfstatat", 600_000)])
            .with(|p| {
                p.pattern.lookups = Some(Lookups { calls, repeated, beyond });
                p.pattern.record = whole.then(CompleteRecord::default);
            });
        run.facts(judge).unwrap()
    };
    let again = judged(5000, 4900, 0, false);
    assert_eq!(
        again.sentence,
        "600,000 look-ups of names and 2,000 opens take 70 % of wall time: the same names are looked up again and again"
    );
    assert!(again.advice.starts_with("Do not look up again: keep"), "{}", again.advice);
    assert!(!again.advice.contains("d_type"), "{}", again.advice);
    let figures = "4,900 of 5,000 recorded look-ups were of a name that was looked up before";
    assert!(again.evidence.iter().any(|e| e.starts_with(figures) && e.contains("windows")), "{again:?}");
    let left = again.prediction.as_ref().map(|p| p.remaining).unwrap();
    // 0.98 of 6 s go, or all of them with 600 of 604 parts of 3 s; at the ends is the error of the samples as well.
    assert!((left.value - (4.12e9 * 1.02e9_f64).sqrt()).abs() < 1e7, "{left:?}");
    assert!((4.12e9..4.3e9).contains(&left.high) && (0.9e9..1.02e9).contains(&left.low), "{left:?}");
    assert_eq!(judged(5000, 500, 0, false).prediction, None, "which of them go is not known");
    let unknown = |found: Finding| found.advice.starts_with("If the same names");
    assert!(unknown(judged(5000, 500, 0, false)), "a window does not know what was before");
    assert!(unknown(judged(6000, 4000, 0, false)), "a name, its link and an open that fails: three for each");
    assert!(unknown(judged(99, 98, 0, false)), "too few");
    assert!(unknown(judged(600_000, 50_000, 300_000, true)), "more names than are told apart");
    let once = judged(600_000, 100_000, 0, true);
    assert!(once.advice.starts_with("Each name is looked up 1.2 times"), "{}", once.advice);
    assert!(once.sentence.ends_with("not what is in the files"), "{}", once.sentence);
    assert!(!once.evidence.iter().any(|e| e.contains("windows")), "{once:?}");
}

#[test]
fn names_that_are_looked_up_again_need_not_be_many() {
    let named = |lookups: Option<Lookups>, opens: u64| {
        let run = Run::new(1.0)
            .busy(Operation::Stat, Layer::Filesystem, 0.8)
            .busy(Operation::User, Layer::Program, 0.2)
            .calls(&[("openat", opens), ("newfstatat", 300_000)])
            .with(|p| p.pattern.lookups = lookups);
        run.facts(judge).is_some()
    };
    let of = |repeated| Some(Lookups { calls: 5000, repeated, beyond: 0 });
    assert!(named(of(4999), 3), "one name");
    assert!(!named(of(2000), 3) && !named(None, 3), "it cannot be told");
    assert!(!named(of(4999), 200_000), "one file that is opened again and again");
}

#[test]
fn one_sample_in_an_open_is_no_habit() {
    let run = |samples| Run::new(0.1).met(9).busy_sampled(Operation::Open, Layer::Filesystem, 0.9, samples);
    assert!(!run(3).ids().contains(&FindingId::ManySmallFiles));
    assert!(run(90).ids().contains(&FindingId::ManySmallFiles));
}

#[test]
fn one_file_again_and_again_and_calls_that_fail_are_not_many_files() {
    let without = |change: fn(&mut iowhy_core::profile::Profile)| {
        !tree(100_000).with(change).ids().contains(&FindingId::ManySmallFiles)
    };
    assert!(without(|p| p.files.truncate(1)), "one that was met once");
    assert!(without(|p| p.files.iter_mut().for_each(|f| f.inherited = true)));
    assert!(without(|p| {
        p.files.truncate(1);
        p.files[0].appearances = 40;
    }));
    assert!(without(|p| p.files.clear()), "cannot be told");
    // A search along a path, or a table of descriptors that is full.
    let failing = |part: u64| {
        let run = tree(100_000).with(|p| {
            let calls = &mut p.calls.as_mut().unwrap().calls;
            calls.iter_mut().for_each(|c| c.failed = c.calls * part / 100);
        });
        run.ids().contains(&FindingId::ManySmallFiles)
    };
    assert!(failing(10) && !failing(90) && !failing(100));
}

#[test]
fn what_the_start_of_many_processes_opens_is_not_counted() {
    let mut run = tree(100_000);
    run.profile.processes = vec![iowhy_core::profile::Process { count: 5000, ..Default::default() }];
    run.profile.calls.as_mut().unwrap().calls.truncate(1);
    assert!(!run.ids().contains(&FindingId::ManySmallFiles));
}

#[test]
fn small_files_that_are_fetched_one_by_one_are_named_by_what_reading_them_waits_for() {
    let cold = |opens: u64| {
        Run::new(2.0)
            .busy(Operation::Open, Layer::Filesystem, 0.06)
            .wait(Operation::Read, Wait::DeviceRead, 0.5)
            .busy(Operation::User, Layer::Program, 0.44)
            .io((14_000, 20 << 20), (0, 0))
            .met(9)
            .calls(&[("openat", opens), ("close", opens)])
    };
    assert_eq!(cold(7_000).ids()[0], FindingId::ManySmallFiles);
    // Large files: what reading waits for is their bytes.
    assert!(!cold(70).ids().contains(&FindingId::ManySmallFiles));
}
