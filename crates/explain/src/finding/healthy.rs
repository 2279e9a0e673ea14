//! The rule `healthy`. Its page of the manual:
#![doc = include_str!("healthy.md")]

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::Side;
use super::{Facts, Rule, say};
use crate::account::Entry;
use crate::classify::Wait;

pub(super) const RULE: Rule = Rule { id: FindingId::Healthy, manual: include_str!("healthy.md"), judge };

/// Time that was not seen is worth a word from this share on.
const WORTH_SAYING: f64 = 0.1;

/// Words for a part of the time, and which entries belong to it.
type Part = (&'static str, fn(&Entry) -> bool);

/// What the time can go into.
const PARTS: [Part; 5] = [
    ("the program's own code", |e| e.busy && e.class.layer == Layer::Program),
    ("copying bytes between kernel and program", |e| e.busy && e.class.layer == Layer::Copy),
    ("CPU time in the kernel other than copying", |e| {
        e.busy && !matches!(e.class.layer, Layer::Program | Layer::Copy | Layer::Unexplained)
    }),
    ("waiting for storage", |e| e.class.wait.is_some_and(|w| w.on_path())),
    ("CPU time of which no stack was seen", |e| e.busy && e.class.layer == Layer::Unexplained),
];

/// From this part of the wall time on it is said whose it is.
const MOSTLY: f64 = 0.5;

/// Waiting for storage, or time that nothing explains, from this share on is no state of health.
const MUCH: f64 = 0.1;

/// What is said of a run that holds too little evidence.
pub(super) fn too_short(facts: &Facts<'_>) -> Finding {
    let seen = facts.evidence();
    Finding {
        id: FindingId::Healthy,
        share: 0.0,
        sentence: format!(
            "Too short to tell: {} hold {} {}",
            say::time(facts.account.wall_ns),
            say::count(seen as f64),
            if seen == 1 { "sample or sleep" } else { "samples and sleeps" }
        ),
        evidence: Vec::new(),
        advice: "Run it longer, or in a loop: iowhy -- sh -c 'for i in $(seq 100); do CMD; done'.".into(),
        gain: None,
        undecided: true,
    }
}

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let account = facts.account;
    let mut parts: Vec<(&str, f64)> =
        PARTS.iter().map(|(words, pick)| (*words, account.sum(pick).wall_ns)).collect();
    parts.push(("waiting for a CPU", facts.queueing_ns()));
    parts
        .push(("nobody active but for moments of threads that sleep on purpose", facts.queueing().excess_ns));
    parts.push(("nobody active", account.idle_wall_ns));
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (words, wall_ns) = parts[0];
    let share = facts.wall_share(wall_ns);
    let mut evidence: Vec<String> = parts
        .iter()
        .filter(|p| facts.wall_share(p.1) >= 0.01)
        .map(|(words, ns)| format!("{words}: {} of the wall time", say::percent(facts.wall_share(*ns))))
        .collect();
    let moved: f64 = Side::BOTH.iter().filter_map(|s| facts.bytes(*s)).sum();
    if moved > 0.0 && account.wall_ns > 0.0 {
        evidence.push(format!(
            "{} read and written, {}",
            say::bytes(moved),
            say::rate(moved, account.wall_ns)
        ));
    }
    let dark = account.unseen_share + account.unknown_symbols_share;
    let mut advice = "Nothing on the path to the disk is worth changing.".to_owned();
    if dark >= WORTH_SAYING {
        advice = format!(
            "What could be seen gives no cause; {} of the thread time could not be seen or named. Where rights are \
             missing, the end of the report names them.",
            say::percent(dark)
        );
    }
    let on_path = |e: &Entry| e.class.wait.is_some_and(|w| w.on_path());
    let storage = facts.wall_share(account.sum(on_path).wall_ns);
    let unknown = facts.idle_unexplained();
    let waits_unseen = storage > MUCH && dark >= WORTH_SAYING;
    if waits_unseen {
        advice = format!(
            "Cannot tell what would help: {} of the thread time could not be seen or named. Where rights are missing, the \
             end of the report names them.",
            say::percent(dark)
        );
    } else if storage > MUCH || unknown > MUCH {
        advice = "No single repair was found that would save much; what the waiting is for stands in the evidence."
            .to_owned();
        if unknown > MUCH {
            advice.push_str(" What the program sleeps in could not all be told: see what is missing at the end of the report.");
        }
    }
    let failing = facts.failing().into_iter().max_by(|a, b| a.share.total_cmp(&b.share));
    if failing.is_some() && storage <= MUCH && unknown <= MUCH {
        advice = "Find out why these calls fail, and make fewer of those that are expected to fail: they take their time and \
                  do no work."
            .to_owned();
    }
    evidence.extend(dominant_wait(facts).filter(|_| storage > MUCH));
    let hidden = facts.mostly_hidden();
    if hidden.is_some() {
        advice = "Run it with the rights to watch that program: root watches programs that set a user, and a program that \
                  may be read (chmod +r) can be watched by its user."
            .to_owned();
    }
    let sentence = if let Some((name, share)) = &hidden {
        format!(
            "Cannot tell the cause: {} of the wall time is the program `{name}`, which may not be watched (setuid / not \
             readable)",
            say::percent(*share)
        )
    } else if storage > MUCH {
        let dominant = dominant_wait(facts).map_or_else(String::new, |words| format!(": {words}"));
        let found = if waits_unseen { "Cannot tell the cause" } else { "No single cause was found" };
        format!("{found}; {} of the wall time waits for storage{dominant}", say::percent(storage))
    } else if unknown > MUCH {
        format!(
            "No cause was found in what could be seen; {} of the wall time is sleep of which it could not be told what \
             for",
            say::percent(unknown)
        )
    } else if let Some(failing) = failing {
        let sentence = failing.evidence();
        sentence[..1].to_uppercase() + &sentence[1..]
    } else if wall_ns <= 0.0 {
        "Nothing was seen that takes time on the path to the disk".to_owned()
    } else if dark >= WORTH_SAYING {
        format!(
            "No cause was found in what could be seen; most of the time is {words} ({})",
            say::percent(share)
        )
    } else {
        format!(
            "No cause was found whose repair would save {} of the time or more; most of the time is {words} ({})",
            say::percent(super::WORTH_SAVING),
            say::percent(share)
        )
    };
    let undecided = hidden.is_some() || storage > MUCH || unknown > MUCH || dark >= WORTH_SAYING;
    Some(Finding { id: FindingId::Healthy, share, sentence, evidence, advice, gain: None, undecided })
}

impl Facts<'_> {
    /// The program that may not be watched, if most of the wall time is its own, and its part.
    fn mostly_hidden(&self) -> Option<(&str, f64)> {
        let limitations: Vec<_> =
            self.profile.sight.limitations.iter().filter(|l| l.id.starts_with("hidden-program")).collect();
        let mut by_name = std::collections::BTreeMap::<&str, f64>::new();
        for e in self.account.entries.iter().filter(|e| e.class.layer == Layer::Unexplained) {
            let name = self.profile.threads.get(e.thread as usize).map_or("", |t| t.name.as_str());
            let quoted = format!("`{name}`");
            if limitations.iter().any(|l| l.sentence.contains(&quoted)) {
                *by_name.entry(name).or_default() += e.wall_ns;
            }
        }
        let (name, wall_ns) = by_name.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((name, self.wall_share(wall_ns))).filter(|(_, share)| *share > MOSTLY)
    }
}

/// The wait on the path that takes most of the wall time, in words.
fn dominant_wait(facts: &Facts<'_>) -> Option<String> {
    let on_path = Wait::ALL.iter().filter(|w| w.on_path()).map(|w| (w, facts.account.wait(*w).wall_ns));
    let (wait, ns) = on_path.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, ns)| *ns > 0.0)?;
    Some(format!("{} takes {}", wait.words(), say::percent(facts.wall_share(ns))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Operation;
    use crate::finding::synthetic::{Run, slow_and_repaired};

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
    fn a_sample_or_two_are_no_evidence() {
        let run = Run::new(0.002).busy_sampled(Operation::Open, Layer::Filesystem, 1.0, 1);
        let found = run.findings();
        assert_eq!(found.len(), 1);
        assert!(found[0].sentence.starts_with("Too short to tell: 2.00 ms hold 1 sample"), "{found:?}");
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
        assert!(found.sentence.starts_with("No single cause was found; 30 % of the wall time"), "{found:?}");
        assert!(!found.advice.contains("Nothing on the path"));
        assert_eq!(found.title(), "no cause found");
        // Where half of the time was not seen, that no repair would help is not known either.
        let dark = run.facts(|f| {
            let account = crate::account::Account { unseen_share: 0.5, ..f.account.clone() };
            judge(&Facts { account: &account, ..*f }).unwrap()
        });
        assert!(dark.sentence.starts_with("Cannot tell the cause; 30 %"), "{dark:?}");
        assert!(dark.advice.starts_with("Cannot tell what would help: 50 %"), "{dark:?}");
        let run = Run::new(10.0).wait(Operation::Unknown, Wait::Unknown, 0.4).busy(
            Operation::User,
            Layer::Program,
            0.6,
        );
        let found = run.facts(judge).unwrap();
        assert!(found.sentence.contains("40 % of the wall time is sleep of which"), "{found:?}");
    }

    #[test]
    fn what_was_not_seen_is_said() {
        let run = Run::new(10.0).busy_sampled(Operation::Unknown, Layer::Unexplained, 0.7, 0);
        let found = run.facts(|f| {
            let account = crate::account::Account { unseen_share: 0.7, ..f.account.clone() };
            judge(&Facts { account: &account, ..*f })
        });
        let found = found.unwrap();
        assert!(found.sentence.starts_with("No cause was found in what could be seen"), "{}", found.sentence);
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
        assert!(found.sentence.contains("90 % of the wall time is the program `noread`"), "{found:?}");
        assert!(found.undecided && !found.advice.contains("Nothing on the path"), "{found:?}");
        assert!(!run(0.3).sentence.contains("noread"));
    }
}
