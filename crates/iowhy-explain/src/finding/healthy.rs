//! The rule `healthy`. Its page of the manual:
#![doc = include_str!("healthy.md")]

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::Side;
use super::{Facts, Rule, say};
use crate::account::Entry;

pub(super) const RULE: Rule = Rule { id: FindingId::Healthy, manual: include_str!("healthy.md"), judge };

/// Time that was not seen is worth a word from this share on.
const WORTH_SAYING: f64 = 0.1;

/// Words for a part of the time, and which entries belong to it.
type Part = (&'static str, fn(&Entry) -> bool);

/// What the time can go into.
const PARTS: [Part; 6] = [
    ("the program's own code", |e| e.busy && e.class.layer == Layer::Program),
    ("copying bytes between kernel and program", |e| e.busy && e.class.layer == Layer::Copy),
    ("CPU time in the kernel other than copying", |e| {
        e.busy && !matches!(e.class.layer, Layer::Program | Layer::Copy | Layer::Unexplained)
    }),
    ("waiting for storage", |e| e.class.wait.is_some_and(|w| w.on_path())),
    ("waiting for a CPU", |e| e.class.layer == Layer::CpuQueue),
    ("CPU time of which no stack was seen", |e| e.busy && e.class.layer == Layer::Unexplained),
];

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let account = facts.account;
    let mut parts: Vec<(&str, f64)> =
        PARTS.iter().map(|(words, pick)| (*words, account.sum(pick).wall_ns)).collect();
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
    let sentence = if wall_ns <= 0.0 {
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
    Some(Finding { id: FindingId::Healthy, share, sentence, evidence, advice, gain: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Operation, Wait};
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
}
