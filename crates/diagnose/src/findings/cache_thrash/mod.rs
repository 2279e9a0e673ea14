//! The rule `cache-thrash`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};

use super::facts::{PAGE_BYTES, Side, share_of};
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule { id: FindingId::CacheThrash, manual: include_str!("page.md"), judge };

/// The device must have read at least so many times the bytes that there are.
const AGAIN: f64 = 1.2;
/// O_DIRECT is the habit of the program from this share of its reads on.
const MOSTLY: f64 = 0.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let fetched = facts.profile.io.device_read_bytes.filter(|b| *b > 0)? as f64;
    let evicted = facts.recently_evicted_pages();
    let distinct = facts.file_bytes_read().filter(|_| facts.files_are_complete());
    let again = match distinct {
        // More than all the files hold: the rest certainly came again. What came again of files that were read in part
        // is beyond that, and not known.
        Some(there) if fetched >= AGAIN * there => {
            let part = 1.0 - there / fetched;
            Range::new(part, part, 1.0)
        }
        // Repeated reads, and pages that were evicted not long ago.
        _ if evicted as f64 * PAGE_BYTES >= 0.1 * fetched => share_of(facts.tally(Side::Read).repeated)?,
        _ => return None,
    };
    let waiting = |e: &Entry| {
        e.class.wait == Some(Wait::DeviceRead)
            && matches!(e.class.operation, Operation::Read | Operation::Fault)
    };
    let sum = facts.account.sum(waiting);
    let savings = facts.saved_without(|e| f64::from(waiting(e))).part(again).part(Range::new(0.5, 0.85, 1.0));
    let memory = facts.profile.pressure.memory_bytes.map(|b| b as f64);
    let direct = facts.direct_share(Side::Read) >= MOSTLY;
    let mut evidence = vec![match distinct {
        Some(there) => {
            format!("the device read {} of files that hold {} in all", say::bytes(fetched), say::bytes(there))
        }
        None => format!("the device read {}", say::bytes(fetched)),
    }];
    if evicted > 0 {
        evidence.push(format!(
            "{} of these files were evicted from the cache not long ago",
            say::bytes(evicted as f64 * PAGE_BYTES)
        ));
    }
    evidence.extend(memory.map(|m| format!("memory is {}", say::bytes(m))));
    evidence.push(format!(
        "waiting for reads takes {} of the wall time",
        say::percent(facts.wall_share(sum.wall_ns))
    ));
    let larger = distinct.zip(memory).is_some_and(|(there, memory)| there > 0.8 * memory);
    let advice = if direct {
        "O_DIRECT bypasses the cache: keep what is read again in memory of your own, or read it through the cache."
    } else if larger {
        "Make the working set smaller than memory: go through the data in blocks and finish each before the next one \
         (loop tiling, partitioned join), compress it, or give the program (its control group: memory.max) more memory. \
         Mark what is read once with POSIX_FADV_DONTNEED so that it does not push out the rest."
    } else {
        "The files would fit in memory but were pushed out: raise the memory limit of the control group (memory.max), \
         keep others from filling the cache (POSIX_FADV_DONTNEED after large copies), or lock what matters (mlock, \
         vmtouch -l)."
    };
    Draft {
        id: FindingId::CacheThrash,
        cost_ns: sum.wall_ns * again.likely,
        savings: Some(savings),
        sentence: format!(
            "The same bytes come from the device again and again: {} of what it read had been read before",
            say::percent(again.likely)
        ),
        evidence,
        advice: advice.into(),
    }
    .finding(facts)
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::findings::synthetic::{Run, access, looked, slow_and_repaired};

    /// Five passes over a file of 6 GiB; so much comes from the device.
    fn passes(fetched: u64, wait: f64) -> Run {
        Run::new(100.0)
            .wait(Operation::Read, Wait::DeviceRead, wait)
            .busy(Operation::User, Layer::Program, 1.0 - wait)
            .io(((30 << 30) >> 17, 30 << 30), (0, 0))
            .device_read(fetched)
            .file(6 << 30, |f| f.reads = access(1000, 1000 << 17, 1000))
            .device(0.95, 2.0, |d| (d.reads, d.read_bytes) = (fetched >> 17, fetched))
    }

    #[test]
    fn five_passes_from_the_device_are_named_and_one_not() {
        let slow = passes(30 << 30, 0.8);
        let found = slow_and_repaired(FindingId::CacheThrash, &slow, &passes(6 << 30, 0.2));
        // By hand: four fifths came again; 85 % of four fifths of 80 s.
        let saved = 0.85 * 0.8 * 0.8;
        assert!((found.gain.unwrap().predicted - 1.0 / (1.0 - saved)).abs() < 1e-6);
        assert!(found.advice.contains("smaller than memory"));
    }

    #[test]
    fn a_tree_of_files_that_were_not_all_seen_is_not_read_again() {
        let run = passes(30 << 30, 0.8).calls(&[("openat", 100_000)]);
        assert!(!run.ids().contains(&FindingId::CacheThrash));
    }

    #[test]
    fn evicted_pages_and_repeated_reads_tell_it_too() {
        let mut run = passes(3 << 30, 0.8);
        run.profile.files[0].recently_evicted_pages = Some(500_000);
        run.profile.files[0].reads.repeated = looked(700, 1000);
        assert!(run.ids().contains(&FindingId::CacheThrash));
        run.profile.files[0].reads.repeated = looked(0, 1000);
        assert!(!run.ids().contains(&FindingId::CacheThrash));
    }
}
