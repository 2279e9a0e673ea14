//! Read-ahead where there is none: the hint against read-ahead is taken away; direct reads go through the page cache; what is gone through
//! from the end is gone through from the front, or in large pieces where the order has to stay. The same bytes come.

use iowhy_core::replay::{Action, Advice, Op, Plan, Role, State};
use iowhy_core::units::Bytes;

use super::order::{self, Order};
use super::{Repaired, RunFacts, Sizes, coalesce, done, each, with_threads};

pub(crate) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    let most = run_facts.sizes.request_bytes;
    if has_order(plan, Order::Backward) && most != Sizes::USUAL.request_bytes {
        let pieces = in_pieces(plan, most);
        let read = plan.bytes(|op| matches!(op, Op::Read { .. }));
        if read >= most && pieces.calls() as f64 <= 0.9 * plan.calls() as f64 {
            return done(pieces, format!("in pieces of {}, from the end to the start", Bytes(most)));
        }
    }
    let mut repaired = plan.clone();
    let mut how = Vec::new();
    for file in &mut repaired.files {
        if file.advice == Advice::Random {
            let mapped = plan.any(|a| a.op == Op::TouchPages);
            file.advice = if mapped { Advice::Sequential } else { Advice::Normal };
            how.push(if mapped { "MADV_SEQUENTIAL" } else { "without the hint against read-ahead" });
        }
        if file.direct {
            file.direct = false;
            file.state = State::Cold;
            how.push("through the page cache");
        }
    }
    if has_order(plan, Order::Backward) {
        repaired = with_threads(&repaired, turned);
        // The passes go backwards as well, and their places are taken from the front.
        for file in &mut repaired.files {
            let back = file.size_bytes.saturating_sub(file.shift_bytes);
            file.shift_bytes = if back < file.size_bytes { back } else { file.shift_bytes };
        }
        how.push("from start to end");
    }
    if how.is_empty() {
        return Err("no recorded call disables read-ahead".to_owned());
    }
    how.dedup();
    done(repaired, how.join(", "))
}

/// The calls from the last to the first.
fn turned(actions: &[Action]) -> Vec<Action> {
    let mut turned: Vec<_> = each(actions).collect();
    turned.reverse();
    turned
}

/// Reads from the end to the front, each of so many bytes, and none while the program works on a piece.
fn in_pieces(plan: &Plan, most: u64) -> Plan {
    with_threads(plan, |actions| turned(&coalesce::merge(&turned(actions), most.max(1))))
}

/// Reads in order past the cache, and reads from the end to the front, want read-ahead as much as anything else.
pub(crate) fn instead(plan: &Plan, run_facts: &RunFacts) -> Option<Repaired> {
    in_order(plan).then(|| repaired(plan, run_facts).ok())?
}

/// Whether read-ahead could serve a file that it does not serve now: one that is gone through backwards, or in order past
/// the page cache.
fn in_order(plan: &Plan) -> bool {
    let direct = plan.files.iter().any(|f| f.direct && f.role == Role::User);
    let writes = plan
        .any(|a| a.op == Op::Write && plan.files.get(a.file as usize).is_some_and(|f| f.role != Role::Sink));
    !writes && (has_order(plan, Order::Backward) || (direct && has_order(plan, Order::Sequential)))
}

/// Whether one of the user's files is gone through in this order.
fn has_order(plan: &Plan, wanted: Order) -> bool {
    (0..plan.files.len() as u32).filter(|file| plan.files[*file as usize].role == Role::User).any(|file| {
        let of: Vec<_> = plan.actions().filter(|a| a.file == file && order::has_place(a.op)).collect();
        of.iter().map(|a| a.count).sum::<u32>() > 2 && order::order(&of) == wanted
    })
}
