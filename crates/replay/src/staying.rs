//! How much faster calls become that a repair leaves as they are.
//!
//! Code that runs after a sleep finds other data in the caches of its CPU, and a CPU that slept, too. Where a repair takes the sleeps away,
//! calls that move bytes within the page cache take less time, and so does the program's own code beside them, which no replay has.

use iowhy_core::replay::{Op, Plan, PlanFile, Role, State};
use iowhy_core::stats;

use crate::parts::Parts;

/// Runs of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs<'a> {
    pub(crate) plan: &'a Plan,
    /// Time in calls by kind, run by run.
    pub(crate) parts: &'a [Parts],
    /// What one run is multiplied by, for as much work as the others do.
    pub(crate) work: f64,
}

/// By what factor these calls are faster, at least 1: the median of buffered writes, else of reads of cached files, where all calls of the
/// kind are such, and as many and as large before and after.
pub(crate) fn faster(before: Runs<'_>, after: Runs<'_>) -> f64 {
    let writes = Kind { is: is_write, time: |parts| parts.writes_ns };
    let reads = Kind { is: is_read, time: |parts| parts.reads_ns };
    let of_kind = |kind: Kind| {
        let same = before.moved(kind)? == after.moved(kind)?;
        let factor = before.median(kind)? / after.median(kind)?;
        (same && factor.is_finite()).then_some(factor)
    };
    of_kind(writes).or_else(|| of_kind(reads)).unwrap_or(1.0).max(1.0)
}

/// A kind of calls with its part of the time.
#[derive(Clone, Copy)]
struct Kind {
    is: fn(Op) -> bool,
    time: fn(&Parts) -> f64,
}

fn is_write(op: Op) -> bool {
    op == Op::Write
}

fn is_read(op: Op) -> bool {
    matches!(op, Op::Read { .. })
}

impl Runs<'_> {
    /// Calls and bytes of a kind; `None` where there are none, or one may wait for a device.
    fn moved(&self, kind: Kind) -> Option<(u64, u64)> {
        let of_kind = || self.plan.actions().filter(|a| (kind.is)(a.op));
        let cached = |file: &PlanFile| {
            !file.direct && !file.durable && (file.state == State::Warm || file.role == Role::ScratchEmpty)
        };
        let all_cached = of_kind().all(|a| self.plan.files.get(a.file as usize).is_some_and(cached));
        let runs = self.work * f64::from(self.plan.passes.max(1));
        let calls: u64 = of_kind().map(|a| u64::from(a.count)).sum();
        let scaled = |n: u64| (n as f64 * runs).round() as u64;
        (calls > 0 && all_cached).then(|| (scaled(calls), scaled(self.plan.bytes(kind.is))))
    }

    fn median(&self, kind: Kind) -> Option<f64> {
        let times: Vec<f64> = self.parts.iter().map(|parts| (kind.time)(parts) * self.work).collect();
        stats::median(&times).filter(|ns| *ns > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::replay::Action;

    use super::*;

    fn writer(calls: u32, syncs: u32) -> Plan {
        let write = Action { count: calls, stride: 100, ..Action::one(Op::Write, 0, 0, 100, 0.0) };
        let sync = Action { count: syncs, ..Action::one(Op::Fsync { metadata: true }, 0, 0, 0, 0.0) };
        Plan {
            files: vec![PlanFile::new("/log", Role::ScratchEmpty)],
            threads: vec![vec![write, sync]],
            passes: 1,
            ..Plan::default()
        }
    }

    fn times(writes_ns: f64) -> [Parts; 3] {
        [Parts { writes_ns, syncs_ns: 1e9, ..Parts::default() }; 3]
    }

    #[test]
    fn writes_that_stay_tell_how_much_faster_code_is_without_the_sleeps() {
        let found = |calls: u32, work: f64, before_ns: f64, after_ns: f64| {
            let (was, now) = (writer(100, 100), writer(calls, 1));
            let (before, after) = (times(before_ns), times(after_ns));
            faster(Runs { plan: &was, parts: &before, work: 1.0 }, Runs { plan: &now, parts: &after, work })
        };
        assert_eq!(found(100, 1.0, 500e3, 100e3), 5.0);
        assert_eq!(found(400, 0.25, 500e3, 400e3), 5.0, "four times the work in a run");
        assert_eq!(found(100, 1.0, 100e3, 200e3), 1.0, "slower calls say nothing");
        assert_eq!(found(10, 1.0, 500e3, 100e3), 1.0, "fewer calls are not the same");
    }

    #[test]
    fn calls_that_may_wait_for_a_device_say_nothing() {
        let mut plan = writer(100, 100);
        let found = |plan: &Plan| {
            faster(
                Runs { plan, parts: &times(500e3), work: 1.0 },
                Runs { plan, parts: &times(100e3), work: 1.0 },
            )
        };
        assert_eq!(found(&plan), 5.0);
        plan.files[0].durable = true;
        assert_eq!(found(&plan), 1.0);
    }
}
