//! The baseline of mapped files, from recorded mmap calls or from the faults of one older mapping.
//!
//! The touched pages are not visible: short mappings are read page by page; of a long one, the order of device requests gives
//! the order and the faults give the number of pages.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use iowhy_core::profile::{FileUse, StepKind};
use iowhy_core::replay::{Action, Advice, Op, Plan, PlanFile, Role, State};
use iowhy_core::rng::Rng;

use super::baseline::Baseline;
use super::calls::POPULATE;
use super::duration::{MAX_ARM_NS, passes, wall_ns};
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::{Facts, interpreted, own_ns, start_ns};

const PAGE: u64 = 4096;
/// So many windows are a habit.
const MANY_WINDOWS: usize = 8;
/// An interpreter takes no less for a page of which it only sums up one byte (CPython 3.11 on an AMD EPYC: 11 ns).
const INTERPRETED_PAGE_NS: f64 = 11.0;
/// Places that are drawn at random.
const MAX_TOUCHES: u64 = 20_000;
/// Seed of the places.
const SEED: u64 = 1999;
/// Faults without a device at the start of a process, before it does anything.
const FAULTS_OF_A_START: u64 = 120;
/// Those of an interpreter with its libraries: CPython 3.11 of Debian 12 takes 820, one that was built otherwise 1,950. With
/// the lower figure too many touches are replayed rather than too few, and the gain is too small rather than too large.
const FAULTS_OF_AN_INTERPRETER: u64 = 900;
/// What one fault maps at the most.
const FAULT_AROUND_BYTES: u64 = 131_072;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;
/// A file of which more was in the cache when it was first seen was warm.
const WARM: f64 = 0.9;

/// The plan, where there are windows or one mapping; `None`: calls tell more.
pub(super) fn baseline(facts: &Facts<'_>) -> Result<Option<Baseline>, String> {
    if let Some(found) = windows(facts).or_else(|| memory(facts)) {
        return Ok(Some(found));
    }
    one_mapping(facts)
}

/// A file that is read through a mapping.
fn mapped_file(path: &str, identity: Option<iowhy_core::profile::FileIdentity>) -> Option<PlanFile> {
    let identity = identity?;
    Some(PlanFile {
        identity: Some(identity),
        size_bytes: identity.size_bytes,
        ..PlanFile::new(path, Role::User)
    })
}

fn windows(facts: &Facts<'_>) -> Option<Baseline> {
    let pattern = &facts.profile.pattern;
    let mut plan = Plan { passes: 1, depth: 1, ..Plan::default() };
    let mut indices: Vec<(u32, u32)> = Vec::new();
    let mut threads: Vec<u32> = Vec::new();
    let mut seen = 0usize;
    for step in pattern.stretches.iter().flat_map(|s| &s.steps).filter(|s| s.kind == StepKind::Map) {
        let (Some(of), Some(place)) = (step.file, step.place) else { continue };
        let index = match indices.iter().find(|(pattern, _)| *pattern == of) {
            Some((_, index)) => *index,
            None => {
                let file = pattern.files.get(of as usize)?;
                let Some(planned) = mapped_file(&file.path, file.identity).filter(|_| file.kind == "regular")
                else {
                    continue;
                };
                plan.files.push(planned);
                let index = plan.files.len() as u32 - 1;
                indices.push((of, index));
                index
            }
        };
        let at = threads.iter().position(|t| *t == step.thread).unwrap_or_else(|| {
            threads.push(step.thread);
            plan.threads.push(Vec::new());
            threads.len() - 1
        });
        let size = plan.files[index as usize].size_bytes;
        let bytes = step.bytes.min(size.saturating_sub(place));
        if bytes == 0 {
            continue;
        }
        let what = Op::MapReadUnmap { populate: step.argument & POPULATE != 0 };
        plan.threads[at].push(Action::one(what, index, place, bytes, 0.0));
        seen += 1;
    }
    if seen < MANY_WINDOWS {
        return None;
    }
    let maps = match mappings(facts, &plan.files) {
        0 => facts.counted_calls(&["mmap"])?,
        counted => counted as f64,
    };
    // Touching the pages is the program's own time, and it is in the replay of a window.
    let program_io_ns = wall_ns(facts, &[Operation::Fault, Operation::Map, Operation::User]);
    let scale = (maps / seen as f64).max(1.0);
    // But the start of an interpreter, and what it does with each page, is not.
    let pages = plan.bytes(|_| true) as f64 / PAGE as f64 * scale;
    let turns = if interpreted(facts) {
        (start_ns(facts) + pages * INTERPRETED_PAGE_NS).min(wall_ns(facts, &[Operation::User]))
    } else {
        0.0
    };
    let program_io_ns = program_io_ns - turns;
    plan.passes = passes(program_io_ns / scale, scale);
    let scale = scale / f64::from(plan.passes);
    let notes = vec!["each mapping is taken to be read one byte per page, and nothing else".to_owned()];
    Some(Baseline { plan, scale, program_io_ns, overhead: 0.0, notes })
}

/// How often these files were mapped in the whole run, each mapping counted; 0 where they were not counted.
fn mappings(facts: &Facts<'_>, files: &[PlanFile]) -> u64 {
    let counted = |path: &str| facts.profile.files.iter().find(|f| f.path == path).map_or(0, |f| f.mappings);
    // One that was opened in two ways is there twice.
    let paths: BTreeSet<&str> = files.iter().map(|f| f.path.as_str()).collect();
    let all = paths.iter().all(|path| counted(path) > 0);
    if all { paths.iter().fold(0, |sum, path| sum.saturating_add(counted(path))) } else { 0 }
}

/// Memory that threads take and give back over and over.
fn memory(facts: &Facts<'_>) -> Option<Baseline> {
    let pattern = &facts.profile.pattern;
    let taken = |s: &&iowhy_core::profile::Step| s.kind == StepKind::MmapAnon;
    let mut threads: BTreeMap<u32, Vec<Action>> = BTreeMap::new();
    let mut seen = 0.0;
    for step in pattern.stretches.iter().flat_map(|s| &s.steps).filter(taken) {
        let what = Op::MmapAnon { populate: step.argument & POPULATE != 0 };
        let count = step.count.max(1);
        seen += f64::from(count);
        let action = Action { count, ..Action::one(what, 0, 0, step.bytes, 0.0) };
        threads.entry(step.thread).or_default().push(action);
    }
    if seen < MANY_WINDOWS as f64 {
        return None;
    }
    let maps = facts.counted_calls(&["mmap"])?;
    let program_io_ns = wall_ns(facts, &[Operation::Fault, Operation::Map]);
    // A buffer for each file is beside the matter.
    if program_io_ns < MOSTLY * (facts.account.wall_ns - facts.account.idle_wall_ns) {
        return None;
    }
    let scale = (maps / seen).max(1.0);
    let mut plan = Plan { threads: threads.into_values().collect(), passes: 1, depth: 1, ..Plan::default() };
    plan.passes = passes(program_io_ns / scale, scale);
    let scale = scale / f64::from(plan.passes);
    let notes = vec!["memory is mapped and unmapped as in the program, and not used otherwise".to_owned()];
    Some(Baseline { plan, scale, program_io_ns, overhead: 0.0, notes })
}

fn one_mapping(facts: &Facts<'_>) -> Result<Option<Baseline>, String> {
    let profile = facts.profile;
    let mapped = |f: &&FileUse| f.mapped && f.kind == "regular";
    let Some(file) = profile.files.iter().filter(mapped).max_by_key(|f| f.size_bytes) else {
        return Ok(None);
    };
    let identity = profile.pattern.files.iter().find(|p| p.path == file.path).and_then(|p| p.identity);
    let Some(mut planned) = mapped_file(&file.path, identity) else {
        return Err(format!("`{}` was gone at the end of the run", file.path));
    };
    let io = &profile.io;
    let fetched = io.device_read_bytes.unwrap_or(0);
    let cold = fetched > 0 && file.cached_before.unwrap_or(0.0) < WARM;
    if !cold {
        return Err("the touched pages of a cached mapping are not visible".to_owned());
    }
    // A fault for each page, at the start of a process beside.
    let major = io.major_faults.unwrap_or(0).max(1);
    let start = if interpreted(facts) { FAULTS_OF_AN_INTERPRETER } else { FAULTS_OF_A_START };
    let minor = io.minor_faults.unwrap_or(0).saturating_sub(start);
    let faults = major + minor;
    let program_io_ns = wall_ns(facts, &[Operation::Fault]);
    let own = own_ns(facts);
    planned.state = State::Cold;
    let page_by_page = facts.device_read_bytes_mean().is_some_and(|mean| mean <= 8.0 * PAGE as f64);
    if page_by_page {
        planned.advice = Advice::Random;
    }
    // The requests of one read-around follow each other whatever the order; but a pass in order takes a fault for each
    // piece that a fault maps.
    let adjacent = facts.adjacent_reads().is_some_and(|s| s.likely >= MOSTLY);
    let in_order = adjacent && (page_by_page || faults * FAULT_AROUND_BYTES >= fetched);
    let size = planned.size_bytes;
    // A fault maps its neighbours too: where most neighbourhoods had one, a page that was touched most often had none.
    let neighbourhoods = (size / FAULT_AROUND_BYTES).max(1);
    if !in_order && !page_by_page && faults as f64 > MOSTLY * neighbourhoods as f64 {
        return Err(format!(
            "a fault maps its neighbourhood, and most of the mapping of `{}` had one: the touched pages are not visible",
            file.path
        ));
    }
    let (all, actions, note) = if in_order {
        let all = (fetched.min(size) / PAGE).max(1);
        let part = (MAX_ARM_NS / (program_io_ns + own).max(1.0)).min(1.0);
        let count = ((all as f64 * part).ceil() as u64).min(u64::from(u32::MAX)) as u32;
        let action = Action {
            op: Op::TouchPages,
            file: 0,
            offset: 0,
            bytes: 1,
            count,
            stride: PAGE as i64,
            think_ns: own / all as f64,
        };
        (all, vec![action], "the mapping is taken to be read page by page, in order")
    } else {
        let part = (MAX_ARM_NS / (program_io_ns + own).max(1.0)).min(1.0);
        let wanted = ((faults as f64 * part).ceil() as u64).clamp(1, MAX_TOUCHES);
        let mut rng = Rng::new(SEED);
        let mut drawn = HashSet::new();
        // A page that was drawn before is in the cache: what waits are new ones.
        let pages = (size / PAGE).max(1);
        let mut actions = Vec::new();
        for _ in 0..4 * wanted {
            if actions.len() as u64 >= wanted {
                break;
            }
            let page = rng.below(pages);
            if drawn.insert(page) {
                actions.push(Action::one(Op::TouchPages, 0, page * PAGE, 1, own / faults as f64));
            }
        }
        (faults, actions, "pages are taken to be read in random order, one per fault")
    };
    let plan = Plan { files: vec![planned], threads: vec![actions], passes: 1, depth: 1, ..Plan::default() };
    let scale = (all as f64 / plan.calls().max(1) as f64).max(1.0);
    Ok(Some(Baseline { plan, scale, program_io_ns, overhead: 0.0, notes: vec![note.to_owned()] }))
}
