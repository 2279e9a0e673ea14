//! The baseline of programs whose time is in mappings: the recorded touches of mapped files; else each recorded mmap of a file or of memory, in
//! order.
//!
//! Touches are recorded with every call only. Without them a program with long mappings is refused.

use std::collections::BTreeMap;

use iowhy_core::profile::{Step, StepKind};
use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role};

use super::baseline::Baseline;
use super::calls::touches::{self, MANY_WINDOWS};
use super::calls::{self, POPULATE};
use super::duration::{Bounds, passes, wall_ns};
use super::source::Source;
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;

/// A share that counts as most.
const MOSTLY: f64 = 0.5;

/// The plan.
///
/// # Errors
/// The program made few mappings, and what it touches in them is not recorded.
pub(super) fn baseline(facts: &Facts<'_>, source: &Source<'_>, bounds: &Bounds) -> Result<Baseline, String> {
    if let Some(files) = touches::files(source) {
        return calls::with_touches(facts, source, bounds, &files);
    }
    windows(facts, source, bounds).or_else(|| memory(facts, source)).ok_or_else(|| {
        if source.is_window() {
            "its time is in page faults of mappings, and the pages that it touches are repeated by a proof only (`--prove`)"
        } else {
            "its time is in page faults of mappings, and the pages that it touches are in no record: they are memory without a file, \
             or were mapped before it began"
        }
        .to_owned()
    })
}

fn steps<'a>(source: &'a Source<'_>, kind: StepKind) -> impl Iterator<Item = &'a Step> {
    source.part.steps.iter().filter(move |step| step.kind == kind)
}

fn windows(facts: &Facts<'_>, source: &Source<'_>, bounds: &Bounds) -> Option<Baseline> {
    let files = &facts.profile.pattern.files;
    let mut plan = Plan { passes: 1, depth: 1, ..Plan::default() };
    let mut indices: Vec<(u32, u32)> = Vec::new();
    let mut threads: BTreeMap<u32, Vec<Action>> = BTreeMap::new();
    for step in steps(source, StepKind::Map) {
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
        return None;
    }
    let all_passes = (source.in_run(facts, StepKind::Map) / plan.calls() as f64).max(1.0);
    let program_io_ns = wall_ns(facts, &[Operation::Fault, Operation::Map]);
    plan.passes = passes(program_io_ns / all_passes, all_passes * seen_part(&plan), bounds);
    let scale = all_passes / f64::from(plan.passes);
    let notes = vec!["each mapping is taken to be read one byte per page, and nothing else".to_owned()];
    Some(Baseline {
        plan,
        scale,
        program_io_ns,
        recorded: None,
        recording: None,
        touching_ns: wall_ns(facts, &[Operation::User]),
        goes_along_ns: 0.0,
        notes,
    })
}

/// The part of its files that a plan maps. A mapping that stays takes the faults of each page once in the run; in a pass of the plan that
/// is as often too many as the run maps the same pages again.
fn seen_part(plan: &Plan) -> f64 {
    let mut windows: Vec<(u32, u64, u64)> = plan.actions().map(|a| (a.file, a.offset, a.bytes)).collect();
    windows.sort_unstable();
    windows.dedup();
    let seen: u64 = windows.iter().map(|(.., bytes)| bytes).sum();
    let all: u64 = plan.files.iter().map(|file| file.size_bytes).sum();
    (seen as f64 / all.max(1) as f64).min(1.0)
}

/// Memory that threads take and give back over and over.
fn memory(facts: &Facts<'_>, source: &Source<'_>) -> Option<Baseline> {
    let mut threads: BTreeMap<u32, Vec<Action>> = BTreeMap::new();
    for step in steps(source, StepKind::MmapAnon) {
        let what = Op::MmapAnon { populate: step.argument & POPULATE != 0 };
        let action = Action { count: step.count.max(1), ..Action::one(what, 0, 0, step.bytes, 0.0) };
        threads.entry(step.thread).or_default().push(action);
    }
    let plan = Plan { threads: threads.into_values().collect(), passes: 1, depth: 1, ..Plan::default() };
    let program_io_ns = wall_ns(facts, &[Operation::Fault, Operation::Map]);
    // A buffer for each file is beside the matter.
    let beside = program_io_ns < MOSTLY * (facts.account.wall_ns - facts.account.idle_wall_ns);
    if (plan.calls() as f64) < MANY_WINDOWS || beside {
        return None;
    }
    let scale = (source.in_run(facts, StepKind::MmapAnon) / plan.calls() as f64).max(1.0);
    let notes = vec!["memory is mapped and unmapped as in the program, and not used otherwise".to_owned()];
    Some(Baseline {
        plan,
        scale,
        program_io_ns,
        recorded: None,
        recording: None,
        touching_ns: wall_ns(facts, &[Operation::User]),
        goes_along_ns: 0.0,
        notes,
    })
}
