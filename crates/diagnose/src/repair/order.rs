//! In which order a file is gone through, and where the next pass over it goes on.

use iowhy_core::replay::{Action, Op};

/// From this share of calls on an order is the order.
const MOSTLY: f64 = 0.8;
/// The golden section: passes of a random order fall on places that are far from all before.
const GOLDEN: f64 = 0.381_966;
/// Calls that follow each other, but span so many times what they move, are records at random places.
const SCATTERED: u64 = 4;
const PAGE: u64 = 4096;

/// The order of the calls on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each begins where the one before ended.
    Sequential,
    /// Onwards, with gaps or overlaps.
    Forward,
    /// From the end to the front.
    Backward,
    /// None of these.
    Random,
}

/// Whether an action has a place that tells of an order.
pub fn has_place(what: Op) -> bool {
    matches!(what, Op::Read { .. } | Op::Write | Op::MapReadUnmap { .. } | Op::TouchPages)
}

/// Counts of steps from call to call: sequential, onwards, backwards, all.
fn steps(actions: &[&Action]) -> (u64, u64, u64, u64) {
    let (mut sequential, mut forward, mut backward, mut all) = (0, 0, 0, 0);
    let mut note = |from: u64, bytes: u64, to: u64, times: u64| {
        all += times;
        sequential += if to == from + bytes { times } else { 0 };
        forward += if to >= from { times } else { 0 };
        backward += if to < from { times } else { 0 };
    };
    let mut before: Option<(u64, u64)> = None;
    for action in actions {
        if let Some((place, bytes)) = before {
            note(place, bytes, action.offset, 1);
        }
        if action.count > 1 {
            note(action.offset, action.bytes, action.at(1), u64::from(action.count - 1));
        }
        before = Some((action.at(action.count.max(1) - 1), action.bytes));
    }
    (sequential, forward, backward, all)
}

/// The order of these calls.
pub fn order(actions: &[&Action]) -> Order {
    let (sequential, forward, backward, all) = steps(actions);
    let most = |n: u64| n as f64 >= MOSTLY * all as f64;
    if all == 0 || most(sequential) {
        Order::Sequential
    } else if forward as f64 >= 0.97 * all as f64 {
        Order::Forward
    } else if backward as f64 >= 0.97 * all as f64 {
        Order::Backward
    } else {
        Order::Random
    }
}

/// The bytes from the first to the last.
pub fn extent(actions: &[&Action]) -> Option<(u64, u64)> {
    let ends = |a: &&Action| {
        let (first, last) = (a.offset, a.at(a.count.max(1) - 1));
        (first.min(last), first.max(last).saturating_add(a.bytes))
    };
    let all: Vec<(u64, u64)> = actions.iter().map(ends).collect();
    Some((all.iter().map(|e| e.0).min()?, all.iter().map(|e| e.1).max()?))
}

/// How far the next pass lies from this one in a file of `size` bytes, and how many passes see places that are new.
pub fn shift(actions: &[&Action], size: u64) -> (u64, f64) {
    let Some((low, high)) = extent(actions) else { return (0, f64::INFINITY) };
    let span = high.saturating_sub(low).max(1);
    let fit = size as f64 / span as f64;
    let bytes: u64 = actions.iter().map(|a| a.bytes.saturating_mul(u64::from(a.count))).sum();
    let order = match order(actions) {
        // Records in order, one here and one there.
        Order::Sequential if span > SCATTERED * bytes => Order::Random,
        order => order,
    };
    match order {
        Order::Sequential => (span, fit),
        // The last call's own bytes are gone through again by the first of the next pass, as by the calls before.
        Order::Forward => {
            let last = actions.last().map_or(0, |a| a.at(a.count.max(1) - 1));
            let calls: u64 = actions.iter().map(|a| u64::from(a.count)).sum();
            let stride = last.saturating_sub(low) / calls.saturating_sub(1).max(1);
            (last.saturating_sub(low) + stride.max(1), fit)
        }
        Order::Backward => (size.saturating_sub(span) / PAGE * PAGE, fit),
        Order::Random => {
            let calls: u64 = actions.iter().map(|a| u64::from(a.count)).sum();
            let bytes = actions.first().map_or(PAGE, |a| a.bytes.max(PAGE));
            let jump = (size as f64 * GOLDEN) as u64 / PAGE * PAGE;
            // Of a file that is gone through at random, a quarter: what comes twice is in the cache.
            (jump, 0.25 * size as f64 / (calls.max(1) as f64 * bytes as f64))
        }
    }
}
