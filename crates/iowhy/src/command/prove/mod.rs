//! `iowhy prove RECORD`: replays a watched run as it was and repaired, in interleaved rounds, and says of each advice
//! whether it is right. Reads the user's own files and never changes them; what is written goes to nameless scratch files.

mod arms;
mod carrier;
mod load;
mod sizes;

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::problem::{Problem, Severity};
use iowhy_core::profile::Profile;
use iowhy_core::replay::Plan;
use iowhy_explain::finding::Facts;
use iowhy_explain::replay::repair::{self, Beside, Repaired, Sizes};
use iowhy_explain::replay::{self, AsWas, verdict};
use iowhy_probe::{interrupt, replay as carried};

use self::arms::{Arm, Times};
use crate::cli::{OutputArgs, ProveArgs};
use crate::command::Ending;
use crate::command::observation::command_line;
use crate::meaning::Meaning;
use crate::output::{self, Outputs};
use crate::record::SCHEMA;
use crate::record::prove::{Other, Proof, ProveRecord, Proved, Replayed, Together};
use crate::render;

use iowhy_explain::replay::verdict::Word;

pub use carrier::serve;

/// Findings that are tried: the most valuable.
const MOST_FINDINGS: usize = 4;
/// Rounds where nobody says otherwise.
pub(super) const ROUNDS: usize = 9;
/// Runs the command.
///
/// # Errors
/// Refusals: a bad option; a file that is no record of a watched program, is cut off, of a later version or of another
/// machine; a record without calls in their order.
pub fn run(args: &ProveArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let rounds = rounds(&args.rounds)?;
    let sizes = sizes::asked(args)?;
    let outputs = Outputs::open_apart(options, &[&args.record])?;
    let (record, warnings) = load::record(&args.record, args.force)?;
    interrupt::install();
    let proof = prove(&record.profile, rounds, sizes, args.seed, outputs.quiet());
    if proof.replay.is_none()
        && let Some(reason) = &proof.reason
        && proof.findings.iter().all(|f| !f.failed)
    {
        const ANEW: &str =
            "watch the program anew as root, for a second or more: `sudo iowhy --prove -- CMD`";
        return Err(Problem::refused(format!("`{}` cannot be replayed: {reason}", args.record.display()))
            .hint(proof.hint.as_deref().unwrap_or(ANEW)));
    }
    let failed = interrupt::requested() || proof.findings.iter().any(|f| f.failed);
    let record = ProveRecord {
        schema: SCHEMA,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line(std::env::args_os()),
        subject: record.subject,
        warnings,
        proof,
    };
    outputs.warn(&record.warnings);
    let screen = render::prove::screen(&record.subject, &record.proof, output::width());
    outputs.finish(&screen, &record)?;
    Ok(if failed { Ending::SomethingFailed } else { Ending::Done })
}

fn rounds(text: &str) -> Result<usize, Problem> {
    text.parse().ok().filter(|n| (5..=99).contains(n)).ok_or_else(|| {
        Problem::refused(format!("`--rounds {text}` is no number from 5 to 99"))
            .hint("fewer than 5 rounds have no 95 % interval; `--rounds 9` is usual")
    })
}

/// Proves the findings of a profile.
pub(crate) fn prove(profile: &Profile, rounds: usize, sizes: Sizes, seed: u64, quiet: bool) -> Proof {
    let meaning = Meaning::new();
    let explained = meaning.explain(profile, None);
    let facts = Facts { profile, account: &explained.account, model: None };
    let findings: Vec<&Finding> = explained.findings.iter().filter(|f| f.id.is_repairable()).collect();
    let mut proof = Proof { seed, ..Proof::default() };
    let as_was = match replay::as_was(&facts) {
        Ok(as_was) => as_was,
        Err(reason) => {
            proof.findings = findings.iter().map(|f| unproved(f, &reason)).collect();
            proof.reason = Some(reason);
            return proof;
        }
    };
    // What is written must not fill the disk of the user.
    let as_was = match replay::room::within(as_was, carried::room) {
        Ok(as_was) => as_was,
        Err(reason) => {
            proof.findings =
                findings.iter().map(|f| Proved { failed: true, ..unproved(f, &reason) }).collect();
            proof.reason = Some(reason);
            return proof;
        }
    };
    let beside = Beside {
        fetched_bytes: profile.io.device_read_bytes.unwrap_or(0) as f64,
        distinct_bytes: distinct_bytes(profile, &as_was),
        sizes,
    };
    // Each finding with its repairs, the one that is advised first.
    let repairs: Vec<(&Finding, Result<Vec<Repaired>, String>)> = findings
        .iter()
        .take(MOST_FINDINGS)
        .map(|f| {
            let first = repair::repaired(f.id, &as_was.plan, &beside);
            let all = first.map(|first| {
                let others = repair::others(f.id, &as_was.plan, &beside);
                std::iter::once(first).chain(others).collect()
            });
            (*f, all)
        })
        .collect();
    let ids: Vec<FindingId> = repairs.iter().map(|(f, _)| f.id).collect();
    let together = repair::together(&ids, &as_was.plan, &beside);
    let mut arms = vec![Arm::new("as it was", as_was.plan.clone())];
    for (finding, repaired) in &repairs {
        for one in repaired.iter().flatten() {
            arms.push(Arm::new(finding.id.id(), one.plan.clone()));
        }
    }
    if let Some((_, repaired)) = &together {
        arms.push(Arm::new("all together", repaired.plan.clone()));
    }
    // What comes for the first time in a repaired run is measured apart, behind all others.
    let first_times: Vec<Option<Plan>> = repairs
        .iter()
        .map(|(f, repaired)| repaired.as_ref().ok().and(repair::first_time(f.id, &as_was.plan)))
        .collect();
    arms.extend(first_times.iter().flatten().map(|plan| Arm::new("first time", plan.clone())));
    let mut times = arms::measure(arms, &carrier::command, rounds, seed, quiet);
    let mut apart = times.split_off(times.len() - first_times.iter().flatten().count()).into_iter();
    let Some((unrepaired, mut times)) = times.split_first() else { return proof };
    if let Some(problem) = &unrepaired.problem {
        let failed = problem.severity == Severity::Failed;
        let reason = with_hint(problem);
        proof.findings = findings.iter().map(|f| Proved { failed, ..unproved(f, &reason) }).collect();
        proof.reason = Some(problem.message.clone());
        proof.hint.clone_from(&problem.hint);
        return proof;
    }
    let was_ns = unrepaired.io_ns.clone();
    let fidelity = verdict::fidelity(&as_was, &was_ns, seed);
    let faithful = fidelity.as_ref().is_some_and(verdict::is_faithful);
    if !faithful {
        let noisy = explained.findings.iter().any(|f| f.id == FindingId::NoisyNeighbour);
        proof.reason = Some(unfaithful(&fidelity, noisy));
    }
    let against = Against { facts: &facts, as_was: &as_was, was_ns: &was_ns, faithful, seed };
    let mut next = |n: usize| {
        let (mine, rest) = times.split_at(n.min(times.len()));
        times = rest;
        mine
    };
    for ((finding, repaired), first_time) in repairs.into_iter().zip(first_times) {
        let proved = match repaired {
            Err(why) => unproved(finding, &format!("no mechanical repair: {why}")),
            Ok(mut repaired) => {
                let mut times = next(repaired.len()).to_vec();
                if let (Some(first), Some(mine), Some(repaired)) =
                    (first_time.and_then(|_| apart.next()), times.first_mut(), repaired.first_mut())
                {
                    *mine = mine.clone().with_first_time(first, std::mem::take(&mut repaired.kept));
                }
                best(&against, finding, &repaired, &times)
            }
        };
        proof.findings.push(proved);
    }
    if let Some((ids, repaired)) = together {
        let spares = !ids.iter().all(|id| *id == FindingId::QueueDepthOne);
        let tried = next(1).first().map(|times| tried(&against, spares, &repaired, times));
        proof.together = tried.map(|t| Together {
            ids,
            how: repaired.how,
            measured: t.measured,
            verdict: t.verdict,
            reason: t.reason,
            io_ns: t.io_ns,
        });
    }
    for finding in findings.iter().skip(MOST_FINDINGS) {
        proof.findings.push(unproved(finding, "only the most valuable findings are tried"));
    }
    // A contradicted advice loses its place; the others keep theirs.
    proof.findings.sort_by_key(|f| f.verdict == Word::Contradicted);
    let Times { io_ns, calls, .. } = unrepaired;
    proof.replay = Some(Replayed {
        fidelity,
        faithful,
        program_io_s: as_was.program_io_ns / 1e9,
        scale: as_was.scale,
        calls: *calls,
        io_ns: io_ns.clone(),
        notes: as_was.notes.clone(),
        plan: as_was.plan,
    });
    proof
}

/// Bytes of the files that are read, each once.
fn distinct_bytes(profile: &Profile, as_was: &AsWas) -> f64 {
    let read = |path: &str| as_was.plan.files.iter().any(|f| f.path == path);
    let sizes = profile.files.iter().filter(|f| read(&f.path)).filter_map(|f| f.size_bytes);
    sizes.sum::<u64>() as f64
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
    }
}

/// A problem in one line, with what to do about it.
fn with_hint(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.message),
        None => problem.message.clone(),
    }
}

fn unfaithful(fidelity: &Option<Estimate>, noisy: bool) -> String {
    match fidelity {
        Some(f) => {
            let others = if noisy { "; others used the machine while the program ran" } else { "" };
            format!(
                "the replay of the run as it was takes {:.2} times the program's time in these calls: it is another \
                 run{others}",
                f.value
            )
        }
        None => "the program's time in these calls is not known, or too few rounds were made".to_owned(),
    }
}

/// What all repairs are held against.
struct Against<'a> {
    facts: &'a Facts<'a>,
    as_was: &'a AsWas,
    /// Times of the run as it was.
    was_ns: &'a [f64],
    faithful: bool,
    seed: u64,
}

/// What became of one repair.
struct Tried {
    measured: Option<Estimate>,
    verdict: Word,
    reason: Option<String>,
    failed: bool,
    io_ns: Vec<f64>,
}

/// `spares`: whether calls that are not made spare the program's own time around them.
fn tried(against: &Against<'_>, spares: bool, repaired: &Repaired, times: &Times) -> Tried {
    let Against { facts, as_was, was_ns, faithful, seed } = *against;
    let none = |reason: &str, failed| Tried {
        measured: None,
        verdict: Word::CannotTell,
        reason: Some(reason.to_owned()),
        failed,
        io_ns: Vec::new(),
    };
    if let Some(problem) = &times.problem {
        return none(&with_hint(problem), problem.severity == Severity::Failed);
    }
    let left = repaired.plan.calls() as f64 / (as_was.plan.calls() as f64).max(1.0);
    let spared = if spares { (1.0 - left).max(0.0) } else { 0.0 };
    let io_ns = (was_ns, times.io_ns.as_slice());
    let Some(measured) = verdict::measured(facts, as_was, io_ns, spared, repaired.kept, seed) else {
        return none("too few rounds were made", false);
    };
    Tried {
        measured: Some(measured.gain),
        verdict: if faithful { measured.word } else { Word::CannotTell },
        reason: (!faithful).then(|| "the replay of the run as it was is not like the program".to_owned()),
        failed: false,
        io_ns: times.io_ns.clone(),
    }
}

/// Of several repairs of one cause, that which did best; the others stand beside it.
fn best(against: &Against<'_>, finding: &Finding, repaired: &[Repaired], times: &[Times]) -> Proved {
    // More in flight spares no call.
    let spares = finding.id != FindingId::QueueDepthOne;
    let mut all: Vec<(&Repaired, Tried)> =
        repaired.iter().zip(times).map(|(r, t)| (r, tried(against, spares, r, t))).collect();
    let gain = |t: &Tried| t.measured.as_ref().map_or(0.0, |m| m.value);
    all.sort_by(|a, b| gain(&b.1).total_cmp(&gain(&a.1)));
    let mut all = all.into_iter();
    let Some((repaired, first)) = all.next() else { return unproved(finding, "it was not tried") };
    let other = |(repaired, t): (&Repaired, Tried)| Other {
        how: repaired.how.clone(),
        measured: t.measured,
        verdict: t.verdict,
        reason: t.reason,
    };
    Proved {
        id: finding.id,
        predicted: finding.gain,
        measured: first.measured,
        verdict: first.verdict,
        how: Some(repaired.how.clone()),
        reason: first.reason,
        failed: first.failed,
        io_ns: first.io_ns,
        others: all.map(other).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_at_least_five() {
        assert_eq!(rounds("9"), Ok(9));
        for text in ["4", "100", "", "x", "-9", "5.5"] {
            let problem = rounds(text).unwrap_err();
            assert!(
                problem.exit_code() == 2 && problem.message.contains("--rounds") && problem.hint.is_some()
            );
        }
    }
}
