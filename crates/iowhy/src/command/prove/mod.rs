//! `iowhy prove RECORD`: replays a watched run as it was and repaired, in interleaved rounds, and says of each advice
//! whether it is right. Reads the user's own files and never changes them; what is written goes to nameless scratch files, and
//! where many small files are the matter, or files that the program makes for a moment, to a tree of ours that is removed.

mod arms;
mod bases;
mod carrier;
mod load;
mod pace;
mod sizes;
mod together;
mod trial;

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::problem::Problem;
use iowhy_core::profile::Profile;
use iowhy_diagnose::findings::Facts;
use iowhy_probe::interrupt;
use iowhy_replay::repair::{self, Beside, Repaired, Sizes};
use iowhy_replay::what_if::{self, Change};

use self::arms::Times;
use self::bases::{Base, Bases, Likeness};
use self::pace::Pace;
use self::trial::{Against, Held, without};
use crate::cli::{OutputArgs, ProveArgs};
use crate::command::ending::{self, Ending};
use crate::meaning::Meaning;
use crate::output::{self, Outputs};
use crate::record::SCHEMA;
use crate::record::prove::{Other, Proof, ProveRecord, Proved, Together, WhatIf};
use crate::render;
use crate::run_as;
use crate::shell;

use iowhy_replay::verdict::Word;

pub use carrier::serve;

/// Findings that are tried: the most valuable.
const MOST_FINDINGS: usize = 4;
/// Rounds where nobody says otherwise.
const ROUNDS: usize = 9;
/// Runs the command.
///
/// # Errors
/// Refusals: a bad option; a file that is no record of a watched program, is cut off, of a later version or of another
/// machine; a record without calls in their order.
pub fn run(args: &ProveArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    // Before an output is made, which would be left empty.
    interrupt::install();
    let wanted = Wanted {
        rounds: args.rounds,
        sizes: sizes::asked(args),
        changes: args.what_if.clone().unwrap_or_default(),
    };
    let outputs = Outputs::open_apart(options, &[&args.record])?;
    let (record, warnings) = load::record(&args.record, args.force)?;
    let proof = prove(&record.profile, &wanted, args.seed, outputs.quiet());
    if proof.replay.is_none()
        && let Some(reason) = &proof.reason
        && proof.findings.iter().all(|f| !f.failed && f.measured.is_none())
    {
        const ANEW: &str =
            "watch the program anew as root, for a second or more: `sudo iowhy --prove -- CMD`";
        return Err(Problem::refused(format!("`{}` cannot be replayed: {reason}", args.record.display()))
            .hint(proof.hint.as_deref().unwrap_or(ANEW)));
    }
    let ending = ending_of(&proof);
    let record = ProveRecord {
        schema: SCHEMA,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        subject: record.subject,
        warnings,
        proof,
    };
    outputs.warn(&record.warnings);
    let screen = render::prove::screen(&record.subject, &record.proof, output::width());
    outputs.finish(&screen, &record)?;
    Ok(ending)
}

/// An interrupt, and a replay that failed, make the exit code 1.
fn ending_of(proof: &Proof) -> Ending {
    let interrupted = interrupt::requested().then(ending::interrupted);
    let failed = proof.findings.iter().find(|finding| finding.failed).map(|finding| {
        let why = finding.reason.as_deref().unwrap_or("no reason is known");
        Problem::failed(format!("the replay for `{}` failed: {why}", finding.id.id()))
    });
    Ending::from_reasons(interrupted.into_iter().chain(failed))
}

/// What is to be tried, and how often.
pub(crate) struct Wanted {
    rounds: usize,
    sizes: Sizes,
    changes: Vec<Change>,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { rounds: ROUNDS, sizes: Sizes::default(), changes: Vec::new() }
    }
}

/// Proves the findings of a profile. The program's files are read, and scratch files made, as the user of this run.
pub(crate) fn prove(profile: &Profile, wanted: &Wanted, seed: u64, quiet: bool) -> Proof {
    let _files = match run_as::files() {
        Ok(files) => files,
        Err(Problem { message, hint, .. }) => {
            return Proof { seed, reason: Some(message), hint, ..Proof::default() };
        }
    };
    let Wanted { rounds, sizes, ref changes } = *wanted;
    let meaning = Meaning::new();
    let explained = meaning.explain(profile, None);
    let facts = Facts { profile, account: &explained.account, model: None };
    let findings: Vec<&Finding> = explained.findings.iter().filter(|f| f.id.is_repairable()).collect();
    let mut proof = Proof { seed, ..Proof::default() };
    let tried = &findings[..findings.len().min(MOST_FINDINGS)];
    let mut bases = Bases::of(&facts, tried);
    let repairs: Vec<(&Finding, Result<Vec<Repaired>, String>)> =
        tried.iter().map(|f| (*f, repaired(profile, f.id, &bases, sizes))).collect();
    let repairable: Vec<FindingId> = repairs.iter().filter(|(_, r)| r.is_ok()).map(|(f, _)| f.id).collect();
    let mut arms = bases.arms(&repairable);
    let main = match bases.main() {
        Ok(main) => main,
        Err(reason) => {
            let why = |f: &Finding| bases.of_finding(f.id).err().unwrap_or(reason);
            let failed = bases.without_room;
            proof.findings = findings.iter().map(|f| Proved { failed, ..unproved(f, why(f)) }).collect();
            proof.reason = Some(reason.clone());
            return proof;
        }
    };
    let mut held = Vec::new();
    for (finding, repaired) in repairs {
        let base = bases.of_finding(finding.id).map_err(Clone::clone);
        held.push((finding, repaired.and_then(|r| Ok(Held::new(finding.id, r, base?, &mut arms)))));
    }
    let together =
        repair::together(&repairable, &main.as_was.plan, &Beside::of(profile, &main.as_was.plan, sizes));
    if let Some((_, repaired)) = &together {
        arms.push(main.arm_of("all together", repaired.plan.clone()));
    }
    let together_arm = arms.len() - 1;
    let changes: Vec<(Change, Changed)> = changes
        .iter()
        .map(|change| {
            let changed = what_if::changed(*change, &main.as_was.plan, &sizes);
            let with_arm = changed.map(|changed| {
                arms.push(main.arm_of(change.id(), changed.plan.clone()));
                (changed, arms.len() - 1)
            });
            (*change, with_arm)
        })
        .collect();
    let pace = Pace::of(profile);
    let times = arms::measure(arms, &carrier::command, pace.as_ref(), rounds, seed, quiet);
    let likeness = main.likeness(&times, seed);
    let noisy = explained.findings.iter().any(|f| f.id == FindingId::NoisyNeighbour);
    let unlike = |base: &Base, likeness: &Likeness| {
        let changed = pace.as_ref().and_then(|pace| pace.otherwise(&times[base.arm].device));
        unfaithful(&likeness.fidelity, noisy, changed)
    };
    let problem = times[main.arm].problem.as_ref();
    match problem {
        Some(problem) => {
            proof.reason = Some(problem.message.clone());
            proof.hint.clone_from(&problem.hint);
        }
        None if interrupt::requested() => {
            let made = times[main.arm].io_ns.len();
            proof.reason = Some(format!("interrupted after {made} of {rounds} rounds"));
        }
        None if !likeness.faithful => proof.reason = Some(unlike(main, &likeness)),
        None => {}
    }
    for (finding, held) in held {
        let proved = match (held, problem) {
            (Ok(held), _) => {
                let likeness = held.base.likeness(&times, seed);
                let mut proved = held.proved(&facts, finding, &times, likeness.faithful, seed);
                if held.base.arm != main.arm && times[held.base.arm].problem.is_none() {
                    proved.replay = Some(held.base.replayed(&times[held.base.arm], likeness));
                    if !likeness.faithful && proved.measured.is_some() {
                        proved.reason = Some(unlike(held.base, &likeness));
                    }
                }
                proved
            }
            (Err(_), Some(problem)) => without(finding, problem),
            (Err(why), None) => unproved(finding, &why),
        };
        proof.findings.push(proved);
    }
    if problem.is_none() {
        let was_ns = &times[main.arm].io_ns;
        let faithful = likeness.faithful;
        let against = Against { facts: &facts, as_was: &main.as_was, was_ns, faithful, seed };
        proof.together = together.map(|(ids, repaired)| {
            let spares = !ids.iter().all(|id| *id == FindingId::QueueDepthOne);
            let t = against.tried(spares, &repaired, &times[together_arm]);
            Together {
                ids,
                how: repaired.how,
                measured: t.measured,
                verdict: t.verdict,
                reason: t.reason,
                io_ns: t.io_ns,
            }
        });
        proof.together = together::with_files(proof.together.take(), &proof.findings, &main.as_was.plan);
        proof.what_if = changes.into_iter().map(|c| what_became(&against, c, &times)).collect();
    }
    for finding in findings.iter().skip(MOST_FINDINGS) {
        proof.findings.push(unproved(finding, "only the most valuable findings are tried"));
    }
    // A contradicted advice loses its place; the others keep theirs.
    proof.findings.sort_by_key(|f| f.verdict == Word::Contradicted);
    if problem.is_none() {
        proof.replay = Some(main.replayed(&times[main.arm], likeness));
    }
    proof
}

/// A change that was made, with its arm, or why it cannot be made.
type Changed = Result<(Repaired, usize), String>;

/// What became of a change that was asked for.
fn what_became(against: &Against<'_>, (change, changed): (Change, Changed), times: &[Times]) -> WhatIf {
    let tried = match changed {
        Ok((changed, arm)) => {
            let t = against.tried(change.spares_calls(), &changed, &times[arm]);
            Other { how: changed.how, measured: t.measured, verdict: t.verdict, reason: t.reason }
        }
        Err(why) => Other {
            how: String::new(),
            measured: None,
            verdict: Word::CannotTell,
            reason: Some(format!("it cannot be made: {why}")),
        },
    };
    WhatIf { id: change.id().to_owned(), tried }
}

/// The plan of what a finding is held against with its cause repaired, the repair that is advised first.
fn repaired(profile: &Profile, id: FindingId, bases: &Bases, sizes: Sizes) -> Result<Vec<Repaired>, String> {
    let as_was = &bases.of_finding(id).map_err(Clone::clone)?.as_was;
    let beside = Beside::of(profile, &as_was.plan, sizes);
    let first =
        repair::repaired(id, &as_was.plan, &beside).map_err(|why| format!("no mechanical repair: {why}"))?;
    Ok(std::iter::once(first).chain(repair::others(id, &as_was.plan, &beside)).collect())
}

fn unproved(finding: &Finding, reason: &str) -> Proved {
    Proved {
        id: finding.id,
        predicted: finding.gain,
        measured: None,
        verdict: Word::CannotTell,
        how: None,
        reason: Some(reason.to_owned()),
        failed: false,
        io_ns: Vec::new(),
        others: Vec::new(),
        replay: None,
    }
}

/// A problem in one line, with what to do about it.
fn with_hint(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.message),
        None => problem.message.clone(),
    }
}

/// Why a replay is not believed; `changed`: what is known of the machine being another now.
fn unfaithful(fidelity: &Option<Estimate>, noisy: bool, changed: Option<String>) -> String {
    match fidelity {
        Some(f) => {
            let others = if noisy { "; others used the machine while the program ran" } else { "" };
            let changed = changed.map_or(String::new(), |changed| format!("; {changed}"));
            format!(
                "the replay of the run as it was takes {:.2} times the program's time in these calls: it is another \
                 run{others}{changed}",
                f.value
            )
        }
        None => "the program's time in these calls is not known, or too few rounds were made".to_owned(),
    }
}
