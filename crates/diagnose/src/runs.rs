//! Runs of a watched program, before and after a change: what became of the wall time, of each part of it, and of the
//! findings.
//!
//! Goal: a verdict for the whole and for each part by the spread over runs, which one run does not have. Non-goal: the
//! interval that sampling leaves inside a run; it is part of the spread. Invariant: parts are shares of the wall clock (see
//! [`Account`]), so that they and the idle time sum to it, however many threads there are.

use std::collections::{BTreeMap, BTreeSet};

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::stats::{
    self, Verdict, bootstrap_median, chance_of_counts, effect_of_part, ratio_of_medians, verdict_of_ratio,
};

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::classify::Operation;

/// A part of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// What the program asked for, in one layer.
    Active(Operation, Layer),
    /// Nothing of the program ran, wanted to run or waited on the I/O path.
    Idle,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// From start to end.
    pub wall_ns: f64,
    /// Parts of it; what is not there is 0.
    pub parts: BTreeMap<Part, f64>,
    /// What was found.
    pub findings: BTreeSet<FindingId>,
}

impl Run {
    /// From the account of a run and what was found in it.
    pub fn new(account: &Account, findings: impl IntoIterator<Item = FindingId>) -> Run {
        let mut parts: BTreeMap<Part, f64> = BTreeMap::new();
        for entry in account.entries.iter().filter(|entry| entry.wall_ns != 0.0) {
            *parts.entry(Part::Active(entry.class.operation, entry.class.layer)).or_default() +=
                entry.wall_ns;
        }
        if account.idle_wall_ns != 0.0 {
            parts.insert(Part::Idle, account.idle_wall_ns);
        }
        Run { wall_ns: account.wall_ns, parts, findings: findings.into_iter().collect() }
    }

    fn part(&self, part: Part) -> f64 {
        self.parts.get(&part).copied().unwrap_or_default()
    }
}

/// A time before and after, as records hold it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Median over the runs before.
    pub before_ns: f64,
    /// The same with its interval; `None` below three runs.
    pub before: Option<Estimate>,
    /// Median over the runs after.
    pub after_ns: f64,
    /// The same with its interval.
    pub after: Option<Estimate>,
    /// After over before, of the medians; `None` below three runs on a side, and where it was 0 before.
    pub after_over_before: Option<Estimate>,
    /// What the wall time would have become of itself had only this changed; of the whole its ratio.
    pub effect: Option<Estimate>,
    /// The same of the medians alone, for runs too few for an interval.
    pub effect_value: f64,
    /// One word, by the effect.
    pub verdict: Verdict,
}

/// A finding, counted in runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// Which.
    pub id: FindingId,
    /// Runs before in which it was found.
    pub before: u64,
    /// Runs after.
    pub after: u64,
    /// Probability of a difference of counts at least this large without a change.
    pub chance: f64,
    /// One word.
    pub fate: Fate,
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Surely found more often than before.
    Appeared,
    /// Surely found less often.
    Went,
    /// Found in every run of both sides.
    Stays,
    /// Too few runs, or counts too much alike.
    Inconclusive,
}

impl Fate {
    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Fate::Appeared => "appeared",
            Fate::Went => "went",
            Fate::Stays => "stays",
            Fate::Inconclusive => "inconclusive",
        }
    }
}

/// What became of everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The whole.
    pub wall: Changed,
    /// Its parts, greatest change first.
    pub parts: Vec<(Part, Changed)>,
    /// Every finding of any run, in the order of the vocabulary.
    pub findings: Vec<Counted>,
    /// Why there is no verdict; `None` where there is.
    pub doubt: Option<String>,
}

/// Runs on each side without which nothing is decided, as for rounds.
const MIN_RUNS: usize = 5;

/// Counts that chance gives less often than this are no chance.
const SURE: f64 = 0.05;

/// Compares runs. `threshold` is the share of the wall time from which a difference matters, `seed` that of the
/// resampling. `None` without a run on each side.
pub fn changes(before: &[Run], after: &[Run], threshold: f64, seed: u64) -> Option<Changes> {
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let of = |runs: &[Run], value: &dyn Fn(&Run) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
    let walls = (of(before, &|run| run.wall_ns), of(after, &|run| run.wall_ns));
    let wall = {
        let ratio = ratio_of_medians(&walls.1, &walls.0, seed);
        changed(&walls.0, &walls.1, &walls.0, ratio, ratio, threshold, seed)?
    };
    let all: BTreeSet<Part> = before.iter().chain(after).flat_map(|run| run.parts.keys().copied()).collect();
    let mut parts: Vec<(Part, Changed)> = all
        .into_iter()
        .filter_map(|part| {
            let (b, a) = (of(before, &|run| run.part(part)), of(after, &|run| run.part(part)));
            let effect = effect_of_part(&b, &walls.0, &a, seed);
            let ratio = ratio_of_medians(&a, &b, seed);
            Some((part, changed(&b, &a, &walls.0, ratio, effect, threshold, seed)?))
        })
        .collect();
    let size = |changed: &Changed| (changed.effect_value - 1.0).abs();
    parts.sort_by(|a, b| size(&b.1).total_cmp(&size(&a.1)));
    Some(Changes { wall, parts, findings: findings(before, after), doubt: doubt(before.len(), after.len()) })
}

fn changed(
    before: &[f64],
    after: &[f64],
    whole: &[f64],
    ratio: Option<Estimate>,
    effect: Option<Estimate>,
    threshold: f64,
    seed: u64,
) -> Option<Changed> {
    let (before_ns, after_ns) = (stats::median(before)?, stats::median(after)?);
    let of = |values: &[f64]| bootstrap_median(values, seed, Unit::Nanoseconds);
    Some(Changed {
        before_ns,
        before: of(before),
        after_ns,
        after: of(after),
        after_over_before: ratio,
        effect,
        effect_value: 1.0 + (after_ns - before_ns) / stats::median(whole)?,
        verdict: effect.map_or(Verdict::Inconclusive, |effect| verdict_of_ratio(&effect, threshold)),
    })
}

fn doubt(before: usize, after: usize) -> Option<String> {
    match (before, after) {
        (1, 1) => Some("one run each".to_owned()),
        (b, a) if b.min(a) < MIN_RUNS => {
            Some(format!("{b} and {a} runs are too few, {MIN_RUNS} on each side are needed"))
        }
        _ => None,
    }
}

fn findings(before: &[Run], after: &[Run]) -> Vec<Counted> {
    let count = |runs: &[Run], id| runs.iter().filter(|run| run.findings.contains(&id)).count() as u64;
    let (n, m) = (before.len() as u64, after.len() as u64);
    FindingId::ALL
        .iter()
        .map(|&id| (id, count(before, id), count(after, id)))
        .filter(|(_, b, a)| b + a > 0)
        .map(|(id, b, a)| {
            let chance = chance_of_counts(b, n, a, m);
            let fate = if chance < SURE {
                if a * n > b * m { Fate::Appeared } else { Fate::Went }
            } else if (b, a) == (n, m) {
                Fate::Stays
            } else {
                Fate::Inconclusive
            };
            Counted { id, before: b, after: a, chance, fate }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Part = Part::Active(Operation::Read, Layer::Device);
    const COPY: Part = Part::Active(Operation::Read, Layer::Copy);

    /// Runs of a little more and less than these parts, in milliseconds; the rest is idle.
    fn runs(n: u64, wall: f64, parts: &[(Part, f64)], findings: &[FindingId]) -> Vec<Run> {
        (0..n)
            .map(|i| {
                let noise = 1e6 * (1.0 + 0.004 * (i % 3) as f64);
                let mut parts: BTreeMap<Part, f64> = parts.iter().map(|(p, ms)| (*p, ms * noise)).collect();
                let active: f64 = parts.values().sum();
                parts.insert(Part::Idle, wall * noise - active);
                Run { wall_ns: wall * noise, parts, findings: findings.iter().copied().collect() }
            })
            .collect()
    }

    fn part(changes: &Changes, part: Part) -> &Changed {
        &changes.parts.iter().find(|(p, _)| *p == part).unwrap().1
    }

    #[test]
    fn a_part_that_doubles_regresses_and_the_others_are_within_noise() {
        let before = runs(6, 100.0, &[(READ, 40.0), (COPY, 1.0)], &[]);
        let after = runs(6, 141.0, &[(READ, 80.0), (COPY, 2.0)], &[]);
        let told = changes(&before, &after, 0.05, 1).unwrap();
        assert_eq!((told.wall.verdict, told.doubt.as_deref()), (Verdict::Regressed, None));
        assert_eq!(told.parts[0].0, READ, "the greatest change stands first");
        assert_eq!(part(&told, READ).verdict, Verdict::Regressed);
        assert!((part(&told, READ).effect.unwrap().value - 1.4).abs() < 1e-9);
        // It doubled, surely; but of 1 % of the time.
        let copy = part(&told, COPY);
        assert_eq!(copy.verdict, Verdict::WithinNoise);
        assert!(
            (copy.after_over_before.unwrap().value - 2.0).abs() < 0.02
                && copy.after_over_before.unwrap().low > 1.9
        );
        assert_eq!(part(&told, Part::Idle).verdict, Verdict::WithinNoise);
        let back = changes(&after, &before, 0.05, 1).unwrap();
        assert_eq!((back.wall.verdict, part(&back, READ).verdict), (Verdict::Improved, Verdict::Improved));
        let same = changes(&before, &before, 0.05, 1).unwrap();
        assert!(same.parts.iter().all(|(_, changed)| changed.verdict == Verdict::WithinNoise));
    }

    #[test]
    fn one_run_each_shows_differences_and_decides_nothing() {
        let before = runs(1, 100.0, &[(READ, 40.0)], &[FindingId::QueueDepthOne]);
        let after = runs(1, 50.0, &[], &[]);
        let told = changes(&before, &after, 0.05, 1).unwrap();
        assert_eq!(told.doubt.as_deref(), Some("one run each"));
        assert_eq!(told.wall.verdict, Verdict::Inconclusive);
        assert_eq!((told.wall.before, told.wall.after_over_before), (None, None));
        assert!((told.wall.effect_value - 0.5).abs() < 1e-9);
        let read = part(&told, READ);
        assert_eq!((read.after_ns, read.verdict), (0.0, Verdict::Inconclusive));
        assert_eq!(told.findings[0].fate, Fate::Inconclusive);
        let few = changes(&runs(4, 100.0, &[], &[]), &runs(9, 50.0, &[], &[]), 0.05, 1).unwrap();
        assert_eq!(few.doubt.as_deref(), Some("4 and 9 runs are too few, 5 on each side are needed"));
        assert_eq!(few.wall.verdict, Verdict::Inconclusive);
        assert!(few.wall.after_over_before.is_some());
        assert_eq!(changes(&[], &before, 0.05, 1), None);
    }

    #[test]
    fn findings_appear_and_go_where_the_counts_are_no_chance() {
        use FindingId::*;
        let mut before = runs(5, 100.0, &[], &[SyncPerWrite, SmallRequests]);
        before[0].findings.insert(CpuBound);
        let after = runs(5, 50.0, &[], &[SmallRequests, CopyBound]);
        let told = changes(&before, &after, 0.05, 1).unwrap();
        let fates: Vec<_> = told.findings.iter().map(|f| (f.id, f.before, f.after, f.fate)).collect();
        assert_eq!(
            fates,
            [
                (SmallRequests, 5, 5, Fate::Stays),
                (SyncPerWrite, 5, 0, Fate::Went),
                (CopyBound, 0, 5, Fate::Appeared),
                (CpuBound, 1, 0, Fate::Inconclusive),
            ]
        );
    }

    #[test]
    fn parts_and_idle_time_of_an_account_sum_to_the_wall_time() {
        use crate::account::Entry;
        use crate::classify::Class;
        let entry = |thread, operation, layer, wall_ns| Entry {
            thread,
            class: Class { operation, layer, wait: None },
            busy: true,
            time_ns: 10.0,
            wall_ns,
            events: 1,
            delay: crate::account::Delay::default(),
        };
        let account = Account {
            wall_ns: 20.0,
            idle_wall_ns: 5.0,
            entries: vec![
                entry(0, Operation::Read, Layer::Device, 5.0),
                entry(1, Operation::Read, Layer::Device, 4.0),
                entry(1, Operation::Read, Layer::Copy, 6.0),
                entry(2, Operation::Futex, Layer::Elsewhere, 0.0),
            ],
            ..Account::default()
        };
        let run = Run::new(&account, [FindingId::Healthy]);
        assert_eq!(run.parts.values().sum::<f64>(), run.wall_ns);
        assert_eq!((run.part(READ), run.part(COPY), run.part(Part::Idle)), (9.0, 6.0, 5.0));
        assert_eq!(run.parts.len(), 3, "what is not on the wall clock is no part of it");
    }
}
