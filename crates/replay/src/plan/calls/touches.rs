//! Touches of mapped files among the calls of a plan: a page fault each. The thread maps a file once, with the advice that most of the recorded
//! touches had. Deliberately absent: pages that were touched without a fault, and faults on anonymous memory, which are the program's own time.

use std::collections::{HashMap, HashSet};

use iowhy_core::profile::{CompleteRecord, Step, StepKind};
use iowhy_core::replay::Advice;
use iowhy_diagnose::classify::Operation;

use super::super::duration::wall_ns;
use super::super::source::Source;
use super::Builder;

/// A file that is mapped so many times is looked at through windows.
pub(in super::super) const MANY_WINDOWS: f64 = 8.0;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;
/// Files with less of the time in touches are beside the matter: libraries that are loaded, for instance.
const LITTLE: f64 = 0.05;
/// MADV_RANDOM, MADV_SEQUENTIAL.
const MADV: [u32; 2] = [1, 2];

/// The touches of a plan.
#[derive(Debug, Default)]
pub(super) struct Touches {
    /// How many.
    pub(super) count: f64,
    /// By how much recording lengthens one, and the time before it.
    in_fault_ns: f64,
    pub(super) before_ns: f64,
    /// By file of the plan: touches by their advice.
    by_advice: HashMap<u32, HashMap<u32, u64>>,
}

impl Touches {
    pub(super) fn new(record: Option<&CompleteRecord>) -> Touches {
        let cost_ns = record.and_then(|r| r.fault_cost_ns).unwrap_or(0.0);
        let in_fault_ns = record.and_then(|r| r.fault_excess_ns).unwrap_or(0.0);
        Touches { in_fault_ns, before_ns: (cost_ns - in_fault_ns).max(0.0), ..Touches::default() }
    }

    /// Takes the touches of a step on a file of the plan.
    pub(super) fn take(&mut self, file: u32, step: &Step) {
        let count = step.count.max(1);
        self.count += f64::from(count);
        *self.by_advice.entry(file).or_default().entry(step.argument).or_default() += u64::from(count);
    }

    /// Whether pages of a file of the plan are touched.
    pub(super) fn on(&self, file: u32) -> bool {
        self.by_advice.contains_key(&file)
    }

    /// By how much recording lengthened all of them.
    pub(super) fn recording_ns(&self) -> f64 {
        self.count * self.in_fault_ns
    }

    pub(super) fn note(&self) -> Option<String> {
        let words = "of mappings those pages are touched whose touch took a page fault: which of the pages that the kernel mapped along with \
                     them the program used is not recorded";
        (self.count > 0.0).then(|| words.to_owned())
    }
}

impl Builder<'_> {
    /// Whether touches of a file of the pattern are in the plan.
    pub(super) fn is_touched(&self, file: Option<u32>) -> bool {
        let known = file.and_then(|file| self.taken.get(file as usize).copied().flatten().flatten());
        known.is_some_and(|file| self.touches.on(file))
    }

    /// Mappings get the advice that most of the touches had.
    pub(super) fn advise_mappings(&mut self) {
        for (file, by_advice) in &self.touches.by_advice {
            let most = by_advice.iter().max_by_key(|(advice, count)| (**count, **advice));
            let advice = match most {
                Some((advice, _)) if *advice == MADV[0] => Advice::Random,
                Some((advice, _)) if *advice == MADV[1] => Advice::Sequential,
                _ => continue,
            };
            self.plan.files[*file as usize].advice = advice;
        }
    }

    /// Bytes of the touched pages of the whole run, of files with this path.
    pub(super) fn touched_bytes(&self, path: &str) -> u64 {
        let of = |file: u32| self.files.get(file as usize).is_some_and(|file| file.path == path);
        let totals = self.facts.profile.pattern.record.iter().flat_map(|record| &record.totals);
        let touches = totals.filter(|t| t.kind == StepKind::Touch && t.file.is_some_and(of));
        touches.map(|total| total.bytes).fold(0, u64::saturating_add)
    }

    /// Wall time of page faults, as far as they are touches in the plan: by their part of the recorded time in page faults.
    pub(super) fn touches_wall_ns(&self) -> f64 {
        if self.touches.count == 0.0 {
            return 0.0;
        }
        let Some(record) = &self.facts.profile.pattern.record else { return 0.0 };
        let totals = record.totals.iter().filter(|t| t.kind == StepKind::Touch && self.is_touched(t.file));
        let touched_ns: u64 = totals.map(|total| total.time_ns).fold(0, u64::saturating_add);
        let share = touched_ns as f64 / (record.fault_time_ns as f64).max(1.0);
        wall_ns(self.facts, &[Operation::Fault]) * share.min(1.0)
    }
}

/// Files of the pattern whose touches a plan is made of, where the time of the run is in those. `None`: it is not, or they are not recorded;
/// or most of it is in windows that come and go.
pub(in super::super) fn files(source: &Source<'_>) -> Option<HashSet<u32>> {
    let record = source.record?;
    let of =
        |kind: StepKind, file: Option<u32>| record.totals.iter().find(|t| (t.kind, t.file) == (kind, file));
    let windows = |file| of(StepKind::Map, file).is_some_and(|maps| maps.calls as f64 >= MANY_WINDOWS);
    let touches = || record.totals.iter().filter(|total| total.kind == StepKind::Touch);
    let all_ns: f64 = touches().map(|total| total.time_ns as f64).sum();
    let stays_ns: f64 = touches().filter(|t| !windows(t.file)).map(|t| t.time_ns as f64).sum();
    // With faults on other memory, and with what populates a mapping: recorded as well, so that one ruler measures both.
    let maps = |kind| matches!(kind, StepKind::Map | StepKind::MmapAnon | StepKind::Munmap);
    let mapping_ns: f64 = record.totals.iter().filter(|t| maps(t.kind)).map(|t| t.time_ns as f64).sum();
    if stays_ns < MOSTLY * all_ns.max(record.fault_time_ns as f64 + mapping_ns) || all_ns == 0.0 {
        return None;
    }
    Some(touches().filter(|t| t.time_ns as f64 >= LITTLE * all_ns).filter_map(|total| total.file).collect())
}
