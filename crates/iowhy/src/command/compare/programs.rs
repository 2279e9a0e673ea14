//! Runs of watched programs on two sides: the wall time, each part of it and each finding get a word.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iowhy_core::environment::Environment;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Tier;
use iowhy_core::stats::Verdict;
use iowhy_core::warning::Warning;
use iowhy_diagnose::runs::{Changed, Counted, Part, Run, changes};

use super::differences;
use super::sides::Side;
use crate::analyzer::Analyzer;
use crate::record::compare::{ChangedFinding, ChangedPart, ProgramComparison, RunsOf};
use crate::record::watch::{Exit, WatchRecord};
use crate::record::{Kind, SCHEMA};
use crate::shell;

/// Seed of the resampling: a record of a run has none, as nothing in it is resampled.
const SEED: u64 = 1;

/// What a comparison needs of a run.
#[derive(Debug)]
pub(super) struct Watched {
    file: PathBuf,
    iowhy: String,
    subject: String,
    environment: Environment,
    tier: Tier,
    exit: Option<Exit>,
    run: Run,
}

impl Watched {
    /// From a record. Its parts come from the profile, so that all runs are classified by one table; its findings are those
    /// that were told.
    pub(super) fn new(path: &Path, record: WatchRecord, meaning: &Analyzer) -> Watched {
        let account = meaning.account(&record.profile);
        let run = Run::new(&account, record.findings.iter().map(|finding| finding.id));
        Watched {
            file: path.to_owned(),
            iowhy: record.iowhy,
            subject: record.subject,
            environment: record.environment,
            tier: record.tier,
            exit: record.exit,
            run,
        }
    }
}

/// Compares two sides of runs.
///
/// # Errors
/// Runs of two machines or, on one side, of two programs, unless forced.
pub(super) fn compare(
    (before_side, before): (&Side, &[Watched]),
    (after_side, after): (&Side, &[Watched]),
    threshold: f64,
    force: bool,
) -> Result<ProgramComparison, Problem> {
    let nothing = || Problem::failed("there is no run to compare").hint("name a record on each side");
    let (first, second) = (before.first().ok_or_else(nothing)?, after.first().ok_or_else(nothing)?);
    for other in before.iter().chain(after) {
        let differ = differences::around(&first.environment, &other.environment);
        differences::same_machine(&differ, (&first.file, &other.file), force)?;
    }
    for (side, runs) in [(before_side, before), (after_side, after)] {
        one_program(side, runs, force)?;
    }
    let runs = |side: &[Watched]| side.iter().map(|watched| watched.run.clone()).collect::<Vec<Run>>();
    let told = changes(&runs(before), &runs(after), threshold, SEED).ok_or_else(nothing)?;
    let parts_doubt = parts_doubt(before, after);
    let part = |(part, changed): (Part, Changed)| {
        let verdict = if parts_doubt.is_some() { Verdict::Inconclusive } else { changed.verdict };
        let (operation, layer) = match part {
            Part::Active(operation, layer) => (operation.id(), Some(layer)),
            Part::Idle => ("idle", None),
        };
        ChangedPart { operation: operation.to_owned(), layer, time: Changed { verdict, ..changed } }
    };
    Ok(ProgramComparison {
        schema: SCHEMA,
        kind: Kind::ComparisonOfPrograms,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        before: runs_of(before_side, first, before),
        after: runs_of(after_side, second, after),
        threshold_share: threshold,
        seed: SEED,
        differences: differences::around(&first.environment, &second.environment),
        warnings: warnings(before, after),
        wall: told.wall,
        parts: told.parts.into_iter().map(part).collect(),
        parts_doubt,
        findings: told.findings.iter().map(finding).collect(),
        doubt: told.doubt,
    })
}

fn one_program(side: &Side, runs: &[Watched], force: bool) -> Result<(), Problem> {
    let mut others = runs.iter().filter(|run| run.subject != runs[0].subject);
    match others.next().filter(|_| !force) {
        Some(other) => Err(Problem::refused(format!(
            "`{}` holds runs of two programs: `{}` and `{}`",
            side.named, runs[0].subject, other.subject
        ))
        .hint("name the runs of one program on each side, or add `--force`")),
        None => Ok(()),
    }
}

fn runs_of(side: &Side, first: &Watched, runs: &[Watched]) -> RunsOf {
    RunsOf {
        named: side.named.clone(),
        files: runs.iter().map(|run| run.file.display().to_string()).collect(),
        subject: first.subject.clone(),
        iowhy: first.iowhy.clone(),
    }
}

fn finding(counted: &Counted) -> ChangedFinding {
    ChangedFinding {
        id: counted.id,
        before_runs: counted.before,
        after_runs: counted.after,
        change: counted.fate.id().to_owned(),
        chance: counted.chance,
    }
}

/// Runs that were seen differently well book the same time to different places.
fn parts_doubt(before: &[Watched], after: &[Watched]) -> Option<String> {
    let mut tiers: Vec<Tier> = before.iter().chain(after).map(|run| run.tier).collect();
    tiers.sort();
    tiers.dedup();
    (tiers.len() > 1).then(|| {
        let names: Vec<&str> = tiers.iter().map(|tier| tier.id()).collect();
        format!(
            "the runs were watched at {}: what one shows, another books elsewhere; watch all of them with the same rights",
            names.join(" and ")
        )
    })
}

fn warnings(before: &[Watched], after: &[Watched]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut versions: Vec<&str> = before.iter().chain(after).map(|run| run.iowhy.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        warnings.push(
            Warning::new("versions", format!("the runs were watched by iowhy {}", versions.join(" and ")))
                .next("findings may differ by that alone: watch all of them with one version"),
        );
    }
    let (one, two) = (endings(before), endings(after));
    if one.len() > 1 || two.len() > 1 || one.keys().ne(two.keys()) {
        let told = |endings: &BTreeMap<String, usize>| {
            endings.iter().map(|(how, n)| format!("{how} ({n})")).collect::<Vec<_>>().join(", ")
        };
        warnings.push(
            Warning::new(
                "endings",
                format!("the runs did not all end alike: before {}; after {}", told(&one), told(&two)),
            )
            .next("a run that fails early is not faster: leave it out"),
        );
    }
    warnings
}

/// How runs ended, and how many.
fn endings(runs: &[Watched]) -> BTreeMap<String, usize> {
    let mut endings = BTreeMap::new();
    for run in runs {
        let how = match run.exit {
            Some(Exit::Code(code)) => format!("with code {code}"),
            Some(Exit::Signal(signal)) => format!("by signal {signal}"),
            None => "not seen".to_owned(),
        };
        *endings.entry(how).or_default() += 1;
    }
    endings
}
