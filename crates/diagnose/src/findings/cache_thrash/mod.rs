//! The rule `cache-thrash`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::facts::{PAGE_BYTES, Side, share_of};
use super::removable::Removable;
use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::CacheThrash,
    claim: "the device reads the same bytes repeatedly",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { first_time: repair::first_time, ..Repairs::one(repair::repaired) },
};

/// O_DIRECT is the habit of the program from this share of its reads on.
const MOSTLY: f64 = 0.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let fetched = facts.fetched_bytes()?;
    let evicted = facts.recently_evicted_pages();
    let distinct = facts.file_bytes_at_most();
    let (again, most, least) = match distinct {
        // More than all the files hold: the rest certainly came again. What came again of files that were read in part
        // is beyond that, and not known.
        Some(there) if facts.came_again() => (1.0 - there / fetched, 1.0, "at least "),
        // Repeated reads, and pages that were evicted not long ago.
        _ if evicted as f64 * PAGE_BYTES >= 0.1 * fetched => {
            let repeated = share_of(facts.tally(Side::Read).repeated)?;
            (repeated.value, repeated.high, "")
        }
        _ => return None,
    };
    let waiting = |e: &Entry| {
        e.class.wait == Some(Wait::DeviceRead)
            && matches!(e.class.operation, Operation::Read | Operation::Fault)
    };
    let sum = facts.account.sum(waiting);
    let going = |part: f64| facts.removable(|e| part * f64::from(waiting(e)));
    let removable = Removable { most_ns: going(most).most_ns, ..going(again) };
    let memory = facts.profile.pressure.memory_bytes.map(|b| b as f64);
    let direct = facts.direct_share(Side::Read) >= MOSTLY;
    let mut evidence = vec![match distinct {
        Some(there) => {
            format!(
                "the device read {} from files with a total size of {} at most",
                say::bytes(fetched),
                say::bytes(there)
            )
        }
        None => format!("the device read {}", say::bytes(fetched)),
    }];
    if evicted > 0 {
        evidence.push(format!(
            "{} of these files were recently evicted from the cache",
            say::bytes(evicted as f64 * PAGE_BYTES)
        ));
    }
    evidence.extend(memory.map(|m| format!("memory size: {}", say::bytes(m))));
    evidence.push(format!(
        "reads wait for the device {} of wall time",
        say::percent(facts.wall_share(sum.wall_ns))
    ));
    let larger = distinct.zip(memory).is_some_and(|(there, memory)| there > 0.8 * memory);
    let advice = if direct {
        "O_DIRECT bypasses the cache: keep data that is read again in your own buffers, or read it through the cache."
    } else if larger {
        "Make the working set smaller than memory: process the data in blocks and finish each before the next one \
         (loop tiling, partitioned join), compress it, or give the program (its control group: memory.max) more memory. \
         Mark what is read once with POSIX_FADV_DONTNEED so that it does not push out the rest."
    } else {
        "The files fit in memory but were evicted: raise the memory limit of the control group (memory.max), keep \
         other processes from filling the cache (POSIX_FADV_DONTNEED after large copies), or lock the important \
         files (mlock, \
         vmtouch -l)."
    };
    Draft {
        id: FindingId::CacheThrash,
        cost_ns: sum.wall_ns * again,
        removable: Some(removable),
        sentence: format!(
            "The device reads the same bytes repeatedly: {least}{} of the bytes that it reads are repeats",
            say::percent(again)
        ),
        evidence,
        advice: advice.into(),
    }
    .finding(facts)
}
