//! The rule `many-small-files`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{NAME_CALLS, OPEN_CALLS, PAGE_BYTES, Side};
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, loops, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule { id: FindingId::ManySmallFiles, manual: include_str!("page.md"), judge };

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
const MOST_FAILING: f64 = 0.5;
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
    let names = |e: &Entry| {
        e.wall_ns > 0.0
            && matches!(
                e.class.operation,
                Operation::Open | Operation::Close | Operation::Stat | Operation::Names
            )
    };
    // One file that is opened again and again, and a search along a path, are other things.
    if !facts.handles_many_files() || facts.failed_part(&OPEN_OR_NAME).is_some_and(|part| part > MOST_FAILING)
    {
        return None;
    }
    let opens = facts.scaled_calls(&OPEN_CALLS);
    let processes = facts.profile.processes.iter().map(|p| p.count.max(1)).sum::<u64>().max(1) as f64;
    if opens.is_some_and(|o| o.likely < 2.0 * OPENS_OF_A_START * processes)
        && facts.scaled_calls(&NAME_CALLS).is_none_or(|n| n.likely < 10.0 * OPENS_OF_A_START * processes)
    {
        return None;
    }
    // A script that starts many programs opens their libraries; without a count that is not told apart.
    if opens.is_none() && processes > PROCESSES_OF_A_SCRIPT {
        return None;
    }
    // A start opens as many; a sample or two in opening are no habit.
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
    // Beside another cause that moves many bytes, names may weigh less and still be worth a change.
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
    let mut savings = facts
        .saved_without(|e| f64::from(work(e)))
        .part(Range::new(0.3, 0.97, PACKED))
        .and(facts.saved_without(|e| f64::from(waits(e))).part(Range::new(0.3, 0.9, PACKED)))
        .and(
            facts
                .saved_without(|e| f64::from(copying(e) || loops::entering(e)))
                .part(Range::new(0.0, 0.8, PACKED)),
        );
    if known {
        savings = savings.and(loops::around(facts, calls, working.time_ns, Range::new(0.3, 0.97, PACKED)));
    }

    let cost_ns = of_names.wall_ns + of_bytes.wall_ns;
    let share = |ns: f64| say::percent(facts.wall_share(ns));
    let mut evidence = vec![format!(
        "opening {}, closing {}, examining {}, changing and listing names {} of the wall time; reading and writing {}",
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
    let mut advice =
        "Pack small files into few large ones (an archive, SQLite, a key-value store), keep files open, and \
                      leave out what is not needed (stat before open, access, realpath)"
            .to_owned();
    advice.push_str(if waiting.wall_ns > working.wall_ns {
        "; where they must stay apart, handle 8 to 32 at once (threads, xargs -P) and in the order of their inode \
         numbers (sort the directory listing by d_ino)."
    } else {
        "; where they must stay apart, spread them over several threads and directories."
    });
    let what = match opens {
        Some(opens) if opens.likely >= OPENS_OF_A_START => {
            format!("{} opens, and what goes with them,", say::count(opens.likely))
        }
        _ => "Opening, examining and closing files".to_owned(),
    };
    Draft {
        id: FindingId::ManySmallFiles,
        cost_ns,
        savings: Some(savings),
        sentence: format!(
            "{what} take {} of the time: the cost is the files, not their bytes",
            share(cost_ns)
        ),
        evidence,
        advice,
    }
    .finding(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Wait;
    use crate::findings::synthetic::{Run, slow_and_repaired};

    /// 400 MB in so many files.
    fn tree(files: u64) -> Run {
        let part = files as f64 / 100_000.0;
        Run::new(10.0)
            .wait(Operation::Open, Wait::DeviceRead, 0.3 * part)
            .busy(Operation::Open, Layer::Filesystem, 0.2 * part)
            .busy(Operation::Stat, Layer::Filesystem, 0.05 * part)
            .busy(Operation::Close, Layer::Filesystem, 0.05 * part)
            .wait(Operation::Read, Wait::DeviceRead, 0.2 * part)
            .busy(Operation::User, Layer::Program, 1.0 - 0.8 * part)
            .io((2 * files, 400_000_000), (0, 0))
            .met(9)
            .calls(&[("openat", files), ("close", files), ("newfstatat", files)])
    }

    #[test]
    fn a_hundred_thousand_small_files_are_named_and_ten_large_ones_not() {
        let found = slow_and_repaired(FindingId::ManySmallFiles, &tree(100_000), &tree(10));
        // By hand: 97 % of 0.3 CPU and 90 % of 0.5 waiting; the loop's own 2 s are 6.67 us for each of 300,000 calls, of
        // which little goes.
        let own = 0.2 * 0.97 / (1.0 + (20.0_f64 / 3.0 / 0.4).powi(2));
        let left = 1.0 - 0.291 - 0.45 - own;
        assert!((found.gain.unwrap().predicted - 1.0 / left).abs() < 1e-6, "{:?}", found.gain);
        assert!(found.advice.contains("d_ino"));
    }

    #[test]
    fn one_sample_in_an_open_is_no_habit() {
        let run =
            |samples| Run::new(0.1).met(9).busy_sampled(Operation::Open, Layer::Filesystem, 0.9, samples);
        assert!(!run(3).ids().contains(&FindingId::ManySmallFiles));
        assert!(run(90).ids().contains(&FindingId::ManySmallFiles));
    }

    #[test]
    fn one_file_again_and_again_and_calls_that_fail_are_not_many_files() {
        let without = |change: fn(&mut iowhy_core::profile::Profile)| {
            !tree(100_000).with(change).ids().contains(&FindingId::ManySmallFiles)
        };
        assert!(without(|p| p.files.truncate(1)), "one that was met once");
        assert!(without(|p| p.files.iter_mut().for_each(|f| f.inherited = true)));
        assert!(without(|p| {
            p.files.truncate(1);
            p.files[0].appearances = 40;
        }));
        assert!(without(|p| p.files.clear()), "cannot be told");
        // A search along a path, or a table of descriptors that is full.
        let failing = |part: u64| {
            let run = tree(100_000).with(|p| {
                let calls = &mut p.calls.as_mut().unwrap().calls;
                calls.iter_mut().for_each(|c| c.failed = c.calls * part / 100);
            });
            run.ids().contains(&FindingId::ManySmallFiles)
        };
        assert!(failing(10) && !failing(90) && !failing(100));
    }

    #[test]
    fn what_the_start_of_many_processes_opens_is_not_counted() {
        let mut run = tree(100_000);
        run.profile.processes = vec![iowhy_core::profile::Process { count: 5000, ..Default::default() }];
        run.profile.calls.as_mut().unwrap().calls.truncate(1);
        assert!(!run.ids().contains(&FindingId::ManySmallFiles));
    }
}
