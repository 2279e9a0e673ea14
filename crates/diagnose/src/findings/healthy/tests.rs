//! Tests of the rule `healthy`.

use super::*;
use crate::findings::synthetic::{Run, slow_and_repaired};

fn copy(waiting: f64) -> Run {
    Run::new(10.0)
        .busy(Operation::Read, Layer::Copy, 0.4 * (1.0 - waiting))
        .busy(Operation::Read, Layer::Cache, 0.3 * (1.0 - waiting))
        .busy(Operation::User, Layer::Program, 0.3 * (1.0 - waiting))
        .wait(Operation::Write, Wait::DirtyThrottle, waiting)
        .io((100_000, 100_000 << 17), (0, 0))
}

#[test]
fn a_cached_pass_at_the_machines_speed_is_healthy_and_a_paused_writer_not() {
    slow_and_repaired(FindingId::Healthy, &copy(0.0), &copy(0.5));
    assert_eq!(copy(0.0).findings()[0].title(), "healthy");
}

#[test]
fn a_loop_that_starts_processes_says_so() {
    use iowhy_core::profile::{Process, Thread};
    let run = |processes: u64| {
        Run::new(3.0)
            .busy(Operation::User, Layer::Program, 0.4)
            .busy(Operation::Process, Layer::Memory, 0.3)
            .busy(Operation::Fault, Layer::Memory, 0.2)
            .with(|p| {
                let name = || "true".to_owned();
                p.threads = vec![Thread { name: name(), count: processes, ..Thread::default() }];
                p.processes = vec![
                    Process { count: 1, ..Process::default() },
                    Process { name: name(), count: processes, ..Process::default() },
                ];
            })
    };
    let found = run(3000).facts(judge).unwrap();
    assert!(found.sentence.ends_with("starting and ending processes in the kernel (50 %)"), "{found:?}");
    let line = "starting and ending processes in the kernel: 50 % of wall time, 500 µs for each of 3,000";
    assert_eq!(found.evidence[0], line);
    // One that faults as often faults for its work.
    let found = run(1).facts(judge).unwrap();
    assert!(found.evidence.iter().any(|e| e.contains("processes in the kernel: 30 %")), "{found:?}");
}

#[test]
fn a_sample_or_two_are_no_evidence() {
    let run = Run::new(0.002).busy_sampled(Operation::Open, Layer::Filesystem, 1.0, 1);
    let found = run.findings();
    assert_eq!(found.len(), 1);
    assert!(found[0].sentence.starts_with("Run too short to diagnose: 2.00 ms with 1 sample"), "{found:?}");
    assert!(found[0].undecided, "{found:?}");
    assert_eq!((found[0].id, found[0].gain), (FindingId::Healthy, None));
    // As short, but with evidence.
    let run = Run::new(0.019).busy_sampled(Operation::User, Layer::Program, 1.0, 200);
    assert_eq!(run.ids(), [FindingId::CpuBound]);
}

#[test]
fn much_waiting_without_a_cause_is_not_called_health() {
    let run = Run::new(10.0)
        .wait(Operation::Open, Wait::Journal, 0.3)
        .busy(Operation::User, Layer::Program, 0.4)
        .busy(Operation::Fault, Layer::Memory, 0.3);
    let found = run.facts(judge).unwrap();
    assert!(found.sentence.starts_with("No single cause found: 30 % of wall time"), "{found:?}");
    assert!(!found.advice.contains("Nothing in the I/O path"));
    assert_eq!(found.title(), "no cause found");
    // Where half of the time was not seen, that no repair would help is not known either.
    let dark = run.facts(|f| {
        let account = crate::account::Account { unseen_share: 0.5, ..f.account.clone() };
        judge(&Facts { account: &account, ..*f }).unwrap()
    });
    assert!(dark.sentence.starts_with("Cause unknown: 30 %"), "{dark:?}");
    assert!(dark.advice.starts_with("Inconclusive: 50 %"), "{dark:?}");
    let run = Run::new(10.0).wait(Operation::Unknown, Wait::Unknown, 0.4).busy(
        Operation::User,
        Layer::Program,
        0.6,
    );
    let found = run.facts(judge).unwrap();
    assert!(found.sentence.contains("40 % of wall time is sleep with unknown cause"), "{found:?}");
}

#[test]
fn what_was_not_seen_is_said() {
    let run = Run::new(10.0).busy_sampled(Operation::Unknown, Layer::Unexplained, 0.7, 0);
    let found = run.facts(|f| {
        let account = crate::account::Account { unseen_share: 0.7, ..f.account.clone() };
        judge(&Facts { account: &account, ..*f })
    });
    let found = found.unwrap();
    assert!(found.sentence.starts_with("No cause found in the observed part"), "{}", found.sentence);
    assert!(found.advice.contains("70 %"));
}

#[test]
fn a_program_that_may_not_be_watched_is_named_where_most_of_the_time_is_its_own() {
    use iowhy_core::profile::{Limitation, Thread};
    let run = |own: f64| {
        Run::new(0.5)
            .busy(Operation::Unknown, Layer::Unexplained, own)
            .busy(Operation::User, Layer::Program, 1.0 - own)
            .with(|p| {
                p.threads = vec![Thread { name: "noread".into(), count: 1, ..Thread::default() }];
                p.sight.limitations.push(Limitation {
                    id: "hidden-programs".into(),
                    sentence: "`noread` may not be watched (setuid / not readable)".into(),
                    fix: None,
                });
            })
            .facts(|f| judge(f).unwrap())
    };
    let found = run(0.9);
    assert!(found.sentence.contains("90 % of wall time is the program `noread`"), "{found:?}");
    assert!(found.undecided && !found.advice.contains("Nothing in the I/O path"), "{found:?}");
    assert!(!run(0.3).sentence.contains("noread"));
}

#[test]
fn half_of_the_time_in_calls_that_no_rule_knows_better_is_not_called_health() {
    let run = |calls: f64| {
        Run::new(10.0).busy(Operation::Write, Layer::Filesystem, calls).busy(
            Operation::User,
            Layer::Program,
            1.0 - calls,
        )
    };
    let found = run(0.6).facts(judge).unwrap();
    assert_eq!(found.title(), "no cause found");
    assert!(found.advice.contains("writes, 60 % of wall time"), "{found:?}");
    let found = run(0.3).facts(judge).unwrap();
    assert_eq!(found.title(), "healthy");
    assert!(found.advice.contains("writes, 30 % of wall time"), "{found:?}");
    assert!(run(0.05).facts(judge).unwrap().advice.starts_with("Nothing in the I/O path"));
}
