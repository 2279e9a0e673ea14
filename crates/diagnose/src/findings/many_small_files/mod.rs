//! The rule `many-small-files`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{NAME_CALLS, OPEN_CALLS, PAGE_BYTES, Side};
use super::range::Range;
use super::report::Draft;
use super::{Facts, Repairs, Rule, loops, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::ManySmallFiles,
    claim: "opening, examining and closing files costs more than their bytes",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repair::repaired),
};

/// Opens that the start of a process needs.
const OPENS_OF_A_START: f64 = 30.0;
/// Samples and sleeps in opening and examining files that make a habit where the calls were not counted.
const ENOUGH_SEEN: u64 = 20;
/// With more processes than this, their start may be what opens files.
const PROCESSES_OF_A_SCRIPT: f64 = 20.0;
/// Files with fewer bytes than this are small: finding one costs more than reading it.
const SMALL_BYTES: f64 = 65_536.0;
/// What goes at the most when all files become one: all but a few calls.
const PACKED: f64 = 0.999;
/// Where more of the calls fail, it is not files that they cost.
const MAX_FAILING: f64 = 0.5;
/// Part of the wall time of names that are counted, from which on they are a cause whatever else goes on.
const BESIDE_OTHERS: f64 = 0.15;
/// Part of the I/O time that names must take where nothing is known of the size of files.
const MUCH: f64 = 0.4;

/// Calls that open or name.
const OPEN_OR_NAME: [&str; 16] = {
    let mut all = [""; 16];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < OPEN_CALLS.len() { OPEN_CALLS[at] } else { NAME_CALLS[at - OPEN_CALLS.len()] };
        at += 1;
    }
    all
};

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    if is_something_else(facts) {
        return None;
    }
    let opens = facts.scaled_calls(&OPEN_CALLS);
    // The start of a process opens as many; a sample or two in opening show no habit.
    let known = opens.is_some_and(|o| o.likely >= 2.0 * OPENS_OF_A_START)
        || facts.scaled_calls(&NAME_CALLS).is_some_and(|n| n.likely >= 10.0 * OPENS_OF_A_START);
    if !known && facts.account.sum(names).events < ENOUGH_SEEN {
        return None;
    }
    let moved: f64 = Side::BOTH.iter().filter_map(|s| facts.bytes(*s)).sum();
    let each = opens.filter(|o| o.likely >= 1.0).map(|o| moved / o.likely);
    let small = each.is_some_and(|b| b <= SMALL_BYTES);
    // Bytes of small files are found and fetched file by file as well; their copying is not part of it.
    let bytes = |e: &Entry| {
        small
            && e.wall_ns > 0.0
            && matches!(e.class.operation, Operation::Read | Operation::Write)
            && e.class.layer != Layer::Copy
    };
    let (of_names, of_bytes) = (facts.account.sum(names), facts.account.sum(bytes));
    let transfer = facts.account.sum(|e| {
        e.wall_ns > 0.0 && matches!(e.class.operation, Operation::Read | Operation::Write | Operation::Sync)
    });
    let enough = if small { 0.2 } else { MUCH };
    // RunFacts another cause that moves many bytes, names may weigh less and still be worth a change.
    let much_of_all = known && facts.wall_share(of_names.wall_ns) >= BESIDE_OTHERS;
    if of_names.wall_ns < enough * (of_names.wall_ns + transfer.wall_ns) && !much_of_all {
        return None;
    }
    let waits = |e: &Entry| !e.busy && (names(e) || bytes(e));
    let work = |e: &Entry| e.busy && (names(e) || bytes(e));
    let (waiting, working) = (facts.account.sum(waits), facts.account.sum(work));
    // Copying a piece of less than a page costs about the same whatever its size.
    let copying = |e: &Entry| {
        e.busy
            && e.class.layer == Layer::Copy
            && matches!(e.class.operation, Operation::Read | Operation::Write)
            && each.is_some_and(|b| b <= PAGE_BYTES)
    };
    let calls = facts.all_calls().map_or(0.0, |c| c.likely);
    let mut saved_time = facts
        .saved_without(|e| f64::from(work(e)))
        .part(Range::new(0.3, 0.97, PACKED))
        .and(facts.saved_without(|e| f64::from(waits(e))).part(Range::new(0.3, 0.9, PACKED)))
        .and(
            facts
                .saved_without(|e| f64::from(copying(e) || loops::entering(e)))
                .part(Range::new(0.0, 0.8, PACKED)),
        );
    if known {
        saved_time =
            saved_time.and(loops::around(facts, calls, working.time_ns, Range::new(0.3, 0.97, PACKED)));
    }

    let cost_ns = of_names.wall_ns + of_bytes.wall_ns;
    let share = |ns: f64| say::percent(facts.wall_share(ns));
    let mut evidence = vec![format!(
        "open {}, close {}, stat {}, changing and listing names {} of wall time; read and write {}",
        share(facts.account.sum(|e| names(e) && e.class.operation == Operation::Open).wall_ns),
        share(facts.account.sum(|e| names(e) && e.class.operation == Operation::Close).wall_ns),
        share(facts.account.sum(|e| names(e) && e.class.operation == Operation::Stat).wall_ns),
        share(facts.account.sum(|e| names(e) && e.class.operation == Operation::Names).wall_ns),
        share(transfer.wall_ns)
    )];
    if let (Some(opens), Some(each)) = (opens, each) {
        evidence.push(format!("{} opens; {} moved for each", say::counted(opens), say::bytes(each)));
    }
    evidence.push(format!("{} is CPU time, {} waiting", share(working.wall_ns), share(waiting.wall_ns)));
    let what = subject(opens);
    Draft {
        id: FindingId::ManySmallFiles,
        cost_ns,
        saved_time: Some(saved_time),
        sentence: format!(
            "{what} take {} of wall time: the number of files is the cost, not their bytes",
            share(cost_ns)
        ),
        evidence,
        advice: advice(waiting.wall_ns > working.wall_ns),
    }
    .finding(facts)
}

/// One file that is opened repeatedly, a search along a path, or the start of processes.
fn is_something_else(facts: &Facts<'_>) -> bool {
    if !facts.handles_many_files() || facts.failed_part(&OPEN_OR_NAME).is_some_and(|part| part > MAX_FAILING)
    {
        return true;
    }
    let opens = facts.scaled_calls(&OPEN_CALLS);
    let processes = facts.profile.processes.iter().map(|p| p.count.max(1)).sum::<u64>().max(1) as f64;
    let at_start = opens.is_some_and(|o| o.likely < 2.0 * OPENS_OF_A_START * processes)
        && facts.scaled_calls(&NAME_CALLS).is_none_or(|n| n.likely < 10.0 * OPENS_OF_A_START * processes);
    // A script that starts many programs opens their libraries; without a count the two look the same.
    at_start || (opens.is_none() && processes > PROCESSES_OF_A_SCRIPT)
}

fn advice(mostly_waits: bool) -> String {
    let pack = "Pack small files into few large ones (an archive, SQLite, a key-value store), keep files open, and omit \
                unneeded calls (stat before open, access, realpath)";
    let apart = if mostly_waits {
        "process 8 to 32 at once (threads, xargs -P) in the order of their inode numbers (sort the directory listing by d_ino)."
    } else {
        "spread them over several threads and directories."
    };
    format!("{pack}; if they must stay separate, {apart}")
}

/// Work on names and descriptors, without the bytes.
fn names(e: &Entry) -> bool {
    let of_names = [Operation::Open, Operation::Close, Operation::Stat, Operation::Names];
    e.wall_ns > 0.0 && of_names.contains(&e.class.operation)
}

fn subject(opens: Option<Range>) -> String {
    match opens {
        Some(opens) if opens.likely >= OPENS_OF_A_START => {
            format!("{} opens with their closes and look-ups", say::count(opens.likely))
        }
        _ => "Opening, examining and closing files".to_owned(),
    }
}
