//! Small plans for the tests of repairs.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role};

use super::RunFacts;
use crate::findings::repaired;

pub(crate) const READ: Op = Op::Read { fresh: false };
pub(crate) const SYNC: Op = Op::Fsync { metadata: false };

pub(crate) fn file(role: Role) -> PlanFile {
    PlanFile { size_bytes: 1 << 30, ..PlanFile::new("/data", role) }
}

pub(crate) fn action(op: Op, place: u64, bytes: u64, count: u32, stride: i64) -> Action {
    Action { op, file: 0, offset: place, bytes, count, stride, think_ns: 10.0 }
}

pub(crate) fn plan(role: Role, actions: Vec<Action>) -> Plan {
    Plan { files: vec![file(role)], threads: vec![actions], passes: 1, depth: 1, ..Plan::default() }
}

pub(crate) fn repair(id: FindingId, plan: &Plan) -> Plan {
    repaired(id, plan, &RunFacts::default()).unwrap().plan
}

pub(crate) fn count(plan: &Plan, what: Op) -> u64 {
    plan.actions().filter(|a| a.op == what).map(|a| u64::from(a.count)).sum()
}

/// Every byte that calls of a kind move, as often as they move it.
pub(crate) fn moved(plan: &Plan, what: Op) -> Vec<u64> {
    let mut bytes: Vec<u64> = plan
        .actions()
        .filter(|a| a.op == what)
        .flat_map(|a| (0..a.count).flat_map(|i| a.at(i)..a.at(i) + a.bytes))
        .collect();
    bytes.sort_unstable();
    bytes
}
