//! The rule `healthy`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::Side;
use super::{Facts, Repairs, Rule, repairs, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::Healthy,
    claim: "no rule finds a change to the I/O path that would help",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none(repairs::NO_FAULT),
};

/// Time that was not seen is worth a word from this share on.
const WORTH_SAYING: f64 = 0.1;

/// What the time can go into, in words, and how much wall time does.
fn parts(facts: &Facts<'_>) -> Vec<(&'static str, f64)> {
    let sum = |pick: &dyn Fn(&Entry) -> bool| facts.account.sum(pick).wall_ns;
    let starts = facts.process_starts();
    let other_kernel =
        |e: &Entry| !starts(e) && !matches!(e.class.layer, Layer::Program | Layer::Copy | Layer::Unexplained);
    vec![
        ("the program's own code", sum(&|e| e.busy && e.class.layer == Layer::Program)),
        ("copying bytes between kernel and program", sum(&|e| e.busy && e.class.layer == Layer::Copy)),
        (STARTS, sum(&starts)),
        ("CPU time in the kernel other than copying", sum(&|e| e.busy && other_kernel(e))),
        ("waiting for storage", sum(&|e| e.class.wait.is_some_and(|w| w.on_path()))),
        ("CPU time without a stack", sum(&|e| e.busy && e.class.layer == Layer::Unexplained)),
        ("waiting for a CPU", facts.queueing_ns()),
        ("idle except for brief wake-ups of sleeping threads", facts.queueing().excess_ns),
        ("idle", facts.account.idle_wall_ns),
    ]
}

const STARTS: &str = "starting and ending processes in the kernel";

/// From this part of the wall time on its owner is named.
const MOSTLY: f64 = 0.5;

/// Waiting for storage, or time that nothing explains, from this share on is no state of health.
const MUCH: f64 = 0.1;

/// The finding of a run with too little evidence.
pub(super) fn too_short(facts: &Facts<'_>) -> Finding {
    let seen = facts.evidence();
    Finding {
        id: FindingId::Healthy,
        share: 0.0,
        sentence: format!(
            "Run too short to diagnose: {} with {} {}",
            say::time(facts.account.wall_ns),
            say::count(seen as f64),
            if seen == 1 { "sample or sleep" } else { "samples and sleeps" }
        ),
        evidence: Vec::new(),
        advice: "Run it longer, or in a loop: iowhy -- sh -c 'for i in $(seq 100); do CMD; done'.".into(),
        gain: None,
        gain_rest_unchanged: None,
        in_program: None,
        prediction: None,
        not_calibrated: None,
        replies: None,
        undecided: true,
    }
}

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let account = facts.account;
    let mut parts = parts(facts);
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (words, wall_ns) = parts[0];
    let share = facts.wall_share(wall_ns);
    let mut evidence: Vec<String> = parts
        .iter()
        .filter(|p| facts.wall_share(p.1) >= 0.01)
        .map(|(words, ns)| {
            let each = facts.starts().filter(|_| *words == STARTS).map_or_else(String::new, |starts| {
                let each = say::time(starts.wall_ns / starts.processes as f64);
                format!(", {each} for each of {}", say::count(starts.processes as f64))
            });
            format!("{words}: {} of wall time{each}", say::percent(facts.wall_share(*ns)))
        })
        .collect();
    let moved: f64 = Side::BOTH.iter().filter_map(|s| facts.bytes(*s)).sum();
    if moved > 0.0 && account.wall_ns > 0.0 {
        evidence.push(format!(
            "{} read and written, {}",
            say::bytes(moved),
            say::rate(moved, account.wall_ns)
        ));
    }
    let unclear = Unclear::new(facts);
    evidence.extend(dominant_wait(facts).filter(|_| unclear.storage > MUCH));
    let failing = facts.failing().into_iter().max_by(|a, b| a.share.total_cmp(&b.share));
    let advice = unclear.advice(failing.is_some());
    let sentence = match unclear.sentence(facts) {
        Some(sentence) => sentence,
        None if failing.is_some() => {
            let sentence = failing.map_or_else(String::new, |f| f.evidence());
            sentence[..1].to_uppercase() + &sentence[1..]
        }
        None if wall_ns <= 0.0 => "No time in the I/O path was observed".to_owned(),
        None if unclear.dark >= WORTH_SAYING => {
            format!(
                "No cause found in the observed part; most of the time is {words} ({})",
                say::percent(share)
            )
        }
        None => format!(
            "No rule finds a change that would save {} of wall time or more; most of the time is {words} ({})",
            say::percent(super::WORTH_SAVING),
            say::percent(share)
        ),
    };
    let undecided = unclear.is_much();
    Some(Finding {
        id: FindingId::Healthy,
        share,
        sentence,
        evidence,
        advice,
        gain: None,
        gain_rest_unchanged: None,
        in_program: None,
        prediction: None,
        not_calibrated: None,
        replies: None,
        undecided,
    })
}

/// Processes that the program started.
#[derive(Clone, Copy, Debug)]
struct Starts {
    processes: u64,
    /// Wall time that starting and ending them takes in the kernel.
    wall_ns: f64,
}

impl Facts<'_> {
    /// `None`: the program started none.
    fn starts(&self) -> Option<Starts> {
        let all: u64 = self.profile.processes.iter().map(|process| process.count).sum();
        let processes = all.checked_sub(1).filter(|n| *n > 0)?;
        Some(Starts { processes, wall_ns: self.account.sum(self.process_starts()).wall_ns })
    }

    /// The program that may not be watched, if most of the wall time is its own, and its part.
    fn mostly_hidden(&self) -> Option<(&str, f64)> {
        let lacks: Vec<_> =
            self.profile.sight.limitations.iter().filter(|l| l.id.starts_with("hidden-program")).collect();
        let mut by_name = std::collections::BTreeMap::<&str, f64>::new();
        for e in self.account.entries.iter().filter(|e| e.class.layer == Layer::Unexplained) {
            let name = self.profile.threads.get(e.thread as usize).map_or("", |t| t.name.as_str());
            let quoted = format!("`{name}`");
            if lacks.iter().any(|l| l.sentence.contains(&quoted)) {
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

/// Operations on files and names.
const ON_FILES: [Operation; 8] = [
    Operation::Read,
    Operation::Write,
    Operation::Sync,
    Operation::Open,
    Operation::Close,
    Operation::Stat,
    Operation::Names,
    Operation::CopyUp,
];

/// What the kernel's CPU time in calls on files goes to, copying left out: the operation with most of it, and the part of the wall time
/// of all.
fn calls(facts: &Facts<'_>) -> Option<(&'static str, f64)> {
    let busy = |operation: &Operation| {
        let own = |e: &Entry| e.busy && e.class.operation == *operation && e.class.layer != Layer::Copy;
        facts.account.sum(own).wall_ns
    };
    let all: f64 = ON_FILES.iter().map(busy).sum();
    let most = ON_FILES.iter().max_by(|a, b| busy(a).total_cmp(&busy(b)))?;
    (all > 0.0).then(|| (most.words(), facts.wall_share(all)))
}

/// Time that a cause may be hidden in, as parts of the wall time or of thread time.
struct Unclear<'a> {
    /// Waits for storage without a finding.
    storage: f64,
    /// Sleep with unknown cause.
    unknown: f64,
    /// Thread time without a stack or a name.
    dark: f64,
    /// The operation with most CPU time in the kernel besides copying, and the part of the wall time of all such operations.
    calls: Option<(&'static str, f64)>,
    /// The program that may not be observed, if it takes most of the wall time.
    hidden: Option<(&'a str, f64)>,
}

impl<'a> Unclear<'a> {
    fn new(facts: &'a Facts<'a>) -> Unclear<'a> {
        let on_path = |e: &Entry| e.class.wait.is_some_and(|w| w.on_path());
        Unclear {
            storage: facts.wall_share(facts.account.sum(on_path).wall_ns),
            unknown: facts.idle_unexplained(),
            dark: facts.account.unseen_share + facts.account.unknown_symbols_share,
            calls: calls(facts),
            hidden: facts.mostly_hidden(),
        }
    }

    /// Whether it is too much to call the run healthy.
    fn is_much(&self) -> bool {
        let mostly_calls = self.calls.is_some_and(|(_, share)| share > MOSTLY);
        self.hidden.is_some() || self.waits() || self.dark >= WORTH_SAYING || mostly_calls
    }

    fn waits(&self) -> bool {
        self.storage > MUCH || self.unknown > MUCH
    }

    fn advice(&self, fails: bool) -> String {
        let dark = say::percent(self.dark);
        if self.hidden.is_some() {
            "Run iowhy with the right to observe that program: root can observe setuid programs; a readable program \
             (chmod +r) can be observed by its user."
                .to_owned()
        } else if fails && !self.waits() {
            "Find out why these calls fail, and make fewer calls that are expected to fail: they take time and do no work."
                .to_owned()
        } else if self.storage > MUCH && self.dark >= WORTH_SAYING {
            format!(
                "Inconclusive: {dark} of thread time is unobserved or unnamed. The end of the report lists missing rights."
            )
        } else if self.waits() {
            let more =
                " Part of the sleep has an unknown cause: see the limitations at the end of the report.";
            let more = if self.unknown > MUCH { more } else { "" };
            format!("No single fix would help much; see the evidence for what it waits on.{more}")
        } else if self.dark >= WORTH_SAYING {
            format!(
                "No cause in the observed part; {dark} of thread time is unobserved or unnamed. The end of the report lists \
                 missing rights."
            )
        } else {
            match &self.calls {
                Some((words, share)) if *share > MUCH => format!(
                    "No rule knows a better way to make these calls: {words}, {} of wall time besides copying. Fewer of them would \
                     save a part of that.",
                    say::percent(*share)
                ),
                _ => "Nothing in the I/O path is worth changing.".to_owned(),
            }
        }
    }

    fn sentence(&self, facts: &Facts<'_>) -> Option<String> {
        if let Some((name, share)) = &self.hidden {
            Some(format!(
                "Cause unknown: {} of wall time is the program `{name}`, which may not be observed (setuid or not readable)",
                say::percent(*share)
            ))
        } else if self.storage > MUCH {
            let dominant = dominant_wait(facts).map_or_else(String::new, |words| format!(" ({words})"));
            let found = if self.dark >= WORTH_SAYING { "Cause unknown" } else { "No single cause found" };
            Some(format!("{found}: {} of wall time waits for storage{dominant}", say::percent(self.storage)))
        } else if self.unknown > MUCH {
            Some(format!(
                "No cause found; {} of wall time is sleep with unknown cause",
                say::percent(self.unknown)
            ))
        } else {
            None
        }
    }
}
