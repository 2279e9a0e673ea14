//! The baseline of programs whose time is in mappings: each recorded mmap of a file or of memory, in order.
//!
//! Which pages of a long mapping the program touches is in no call, so such a program is refused.

use std::collections::BTreeMap;

use iowhy_core::profile::{Step, StepKind};
use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role};

use super::baseline::Baseline;
use super::calls::{POPULATE, recorded};
use super::duration::wall_ns;
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::{Facts, interpreted, start_ns};

const PAGE: u64 = 4096;
/// So many windows are a habit.
const MANY_WINDOWS: f64 = 8.0;
/// An interpreter takes no less for a page of which it only sums up one byte (CPython 3.11 on an AMD EPYC: 11 ns).
const INTERPRETED_PAGE_NS: f64 = 11.0;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;

/// The plan.
///
/// # Errors
/// The program made few mappings, and what it touches in them is not recorded.
pub(super) fn baseline(facts: &Facts<'_>) -> Result<Baseline, String> {
    windows(facts)?.or(memory(facts)?).ok_or_else(|| {
        "its time is in page faults of mappings, and the pages that it touches are in no record of calls"
            .to_owned()
    })
}

/// Calls of a kind in the whole record.
fn in_all(facts: &Facts<'_>, kind: StepKind) -> Result<f64, String> {
    let totals = &recorded(facts)?.0.totals;
    Ok(totals.iter().filter(|total| total.kind == kind).map(|total| total.calls as f64).sum())
}

fn steps<'a>(facts: &Facts<'a>, kind: StepKind) -> Result<impl Iterator<Item = &'a Step>, String> {
    Ok(recorded(facts)?.1.steps.iter().filter(move |step| step.kind == kind))
}

fn windows(facts: &Facts<'_>) -> Result<Option<Baseline>, String> {
    let files = &facts.profile.pattern.files;
    let mut plan = Plan { passes: 1, depth: 1, ..Plan::default() };
    let mut indices: Vec<(u32, u32)> = Vec::new();
    let mut threads: BTreeMap<u32, Vec<Action>> = BTreeMap::new();
    for step in steps(facts, StepKind::Map)? {
        let (Some(of), Some(place)) = (step.file, step.place) else { continue };
        let index = match indices.iter().find(|(pattern, _)| *pattern == of) {
            Some((_, index)) => *index,
            None => {
                let Some(file) = files.get(of as usize).filter(|file| file.kind == "regular") else {
                    continue;
                };
                let Some(identity) = file.identity else { continue };
                plan.files.push(PlanFile {
                    identity: Some(identity),
                    size_bytes: identity.size_bytes,
                    ..PlanFile::new(file.path.clone(), Role::User)
                });
                let index = plan.files.len() as u32 - 1;
                indices.push((of, index));
                index
            }
        };
        let bytes = step.bytes.min(plan.files[index as usize].size_bytes.saturating_sub(place));
        if bytes > 0 {
            let what = Op::MapReadUnmap { populate: step.argument & POPULATE != 0 };
            threads.entry(step.thread).or_default().push(Action::one(what, index, place, bytes, 0.0));
        }
    }
    plan.threads = threads.into_values().collect();
    if (plan.calls() as f64) < MANY_WINDOWS {
        return Ok(None);
    }
    let scale = (in_all(facts, StepKind::Map)? / plan.calls() as f64).max(1.0);
    // Touching the pages is the program's own time, and it is in the replay of a window.
    let program_io_ns = wall_ns(facts, &[Operation::Fault, Operation::Map, Operation::User]);
    // But the start of an interpreter, and what it does with each page, is not.
    let pages = plan.bytes(|_| true) as f64 / PAGE as f64 * scale;
    let turns = if interpreted(facts) {
        (start_ns(facts) + pages * INTERPRETED_PAGE_NS).min(wall_ns(facts, &[Operation::User]))
    } else {
        0.0
    };
    let notes = vec!["each mapping is taken to be read one byte per page, and nothing else".to_owned()];
    let program_io_ns = program_io_ns - turns;
    Ok(Some(Baseline { plan, scale, program_io_ns, recorded: None, overhead: 0.0, notes }))
}

/// Memory that threads take and give back over and over.
fn memory(facts: &Facts<'_>) -> Result<Option<Baseline>, String> {
    let mut threads: BTreeMap<u32, Vec<Action>> = BTreeMap::new();
    for step in steps(facts, StepKind::MmapAnon)? {
        let what = Op::MmapAnon { populate: step.argument & POPULATE != 0 };
        let action = Action { count: step.count.max(1), ..Action::one(what, 0, 0, step.bytes, 0.0) };
        threads.entry(step.thread).or_default().push(action);
    }
    let plan = Plan { threads: threads.into_values().collect(), passes: 1, depth: 1, ..Plan::default() };
    let program_io_ns = wall_ns(facts, &[Operation::Fault, Operation::Map]);
    // A buffer for each file is beside the matter.
    let beside = program_io_ns < MOSTLY * (facts.account.wall_ns - facts.account.idle_wall_ns);
    if (plan.calls() as f64) < MANY_WINDOWS || beside {
        return Ok(None);
    }
    let scale = (in_all(facts, StepKind::MmapAnon)? / plan.calls() as f64).max(1.0);
    let notes = vec!["memory is mapped and unmapped as in the program, and not used otherwise".to_owned()];
    Ok(Some(Baseline { plan, scale, program_io_ns, recorded: None, overhead: 0.0, notes }))
}
