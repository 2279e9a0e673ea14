//! A cold run: bytes came from devices because they were not in the page cache yet, each of them once. What a run takes that finds
//! them there follows from the account: waits for these reads go; of the kernel's CPU time for finding files and data, beginning reads and
//! filling pages and inodes, all or nothing goes. Of several threads one may wait for another that reads, so that nobody knows how short the
//! run can become. Nothing is repeated, and no cause is named: a second run may well be what the
//! program is for, or never come.

use super::{Facts, WORTH_SAVING};
use crate::account::Entry;
use crate::classify::{Operation, Wait};
use iowhy_core::layer::Layer;

/// What came from devices, and what a run takes in which none of it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cold {
    /// Bytes that came from devices, without those from swap.
    pub device_bytes: u64,
    /// Of them inodes, directories and what else file systems keep beside files; 0 where requests were not seen.
    pub metadata_bytes: u64,
    /// Memory of the machine or of the control group: where it is smaller than these bytes, each run is cold.
    pub memory_bytes: Option<u64>,
    /// Wall time of a run that finds them in the page cache, in nanoseconds: no less than this, where one thread does nearly all.
    pub least_ns: Option<f64>,
    /// And no more than this.
    pub most_ns: f64,
}

/// Bytes that come from devices through O_DIRECT are never in the page cache: above this part of the reads nothing is told.
const HARDLY_ANY: f64 = 0.01;

/// `None`: the run was not cold, its bytes came more than once, or it is not known.
pub fn cold(facts: &Facts<'_>) -> Option<Cold> {
    let fetched = facts.fetched_bytes().filter(|_| !facts.came_again())?;
    facts.file_bytes_at_most()?;
    let short = facts.account.wall_ns < super::SHORT_NS;
    if short || facts.direct_share(super::Side::Read) > HARDLY_ANY {
        return None;
    }
    let waiting = |e: &Entry| e.class.wait == Some(Wait::DeviceRead);
    let filling = |e: &Entry| {
        let finds_or_fills =
            !matches!(e.class.operation, Operation::User | Operation::Write | Operation::Sync);
        let such = [Layer::Filesystem, Layer::Cache, Layer::Memory, Layer::Block, Layer::Device];
        e.busy && finds_or_fills && such.contains(&e.class.layer)
    };
    let waits = facts.removable(|e| f64::from(waiting(e)));
    let all = facts.removable(|e| f64::from(waiting(e) || filling(e)));
    let metadata_bytes = facts.profile.block.as_ref().map_or(0, |block| block.own_metadata_bytes);
    let wall_ns = facts.program_wall_ns();
    let shortest = (wall_ns - all.most_ns.max(waits.most_ns)).max(0.0);
    (waits.booked_ns >= WORTH_SAVING * facts.account.wall_ns).then(|| Cold {
        device_bytes: (fetched as u64).saturating_add(metadata_bytes),
        metadata_bytes,
        memory_bytes: facts.profile.pressure.memory_bytes,
        least_ns: of_one_thread(facts).then_some(shortest),
        most_ns: (wall_ns - waits.certain_ns).max(shortest),
    })
}

/// Whether the threads beside the one that takes most of the wall time take hardly any.
fn of_one_thread(facts: &Facts<'_>) -> bool {
    let mut of = std::collections::HashMap::<u32, f64>::new();
    for entry in &facts.account.entries {
        *of.entry(entry.thread).or_default() += entry.wall_ns;
    }
    let (longest, all) = of.values().fold((0.0_f64, 0.0), |(most, sum), ns| (most.max(*ns), sum + ns));
    all - longest < WORTH_SAVING * facts.account.wall_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::synthetic::{Run, access};

    /// Reads a file of 1 GiB once; `waits` of the ten seconds are waits for the device.
    fn run(waits: f64) -> Run {
        Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, waits)
            .busy(Operation::Read, Layer::Cache, 0.1)
            .busy(Operation::User, Layer::Program, 0.9 - waits)
            .io((8192, 1 << 30), (0, 0))
            .device_read(1 << 30)
            .file(1 << 30, |f| f.reads = access(8192, 1 << 30, 1000))
    }

    #[test]
    fn a_second_run_waits_for_nothing_and_fills_no_pages_at_best() {
        let found = run(0.6).facts(cold).unwrap();
        assert_eq!(found.device_bytes, 1 << 30);
        let (least, most) = (found.least_ns.unwrap(), found.most_ns);
        // By hand: 6 of 10 s are waits, and 1 s fills pages, as samples show within their error.
        assert!((most - 4e9).abs() < 1e3, "{found:?}");
        assert!((2.5e9..=3.0e9).contains(&least), "{found:?}");
        let two = run(0.6).second_thread(|t| t.busy(Operation::User, Layer::Program, 0.5));
        assert_eq!(two.facts(cold).map(|cold| cold.least_ns), Some(None));
    }

    #[test]
    fn nothing_is_told_of_runs_that_hardly_wait_or_read_again_or_past_the_cache() {
        assert_eq!(run(0.02).facts(cold), None);
        assert_eq!(run(0.6).device_read(4 << 30).facts(cold), None);
        let mut direct = run(0.6);
        direct.profile.files[0].reads.direct.hits = direct.profile.files[0].reads.direct.n;
        assert!(direct.profile.files[0].reads.direct.n > 0);
        assert_eq!(direct.facts(cold), None);
    }
}
