//! A cold run: bytes came from devices because they were not in the page cache yet, hardly any of them twice. What a run takes that finds
//! them there follows from the account: waits for these reads go; of the kernel's CPU time for finding files and data, beginning reads and
//! filling pages and inodes, all or nothing goes. Of several threads one may wait for another that reads, so that nobody knows how short the
//! run can become. Nothing is repeated, and no cause is named: a second run may well be what the
//! program is for, or never come.

use super::{Facts, WORTH_SAVING};
use crate::account::Entry;
use crate::classify::{Operation, Wait};
use iowhy_core::layer::Layer;
use iowhy_core::profile::End;

/// What came from devices, and what a run takes in which none of it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cold {
    /// Bytes that came from devices, without those from swap.
    pub device_bytes: u64,
    /// Of them inodes, directories and what else file systems keep beside files.
    pub metadata_bytes: u64,
    /// Memory of the machine or of the control group, without what a process of the program took at most: where it is smaller than these bytes,
    /// each run is cold.
    pub memory_bytes: Option<u64>,
    /// Wall time of a run that finds them in the page cache, in nanoseconds: no less than this, where one thread does nearly all.
    pub least_ns: Option<f64>,
    /// And no more than this.
    pub most_ns: f64,
}

/// Above this part of the bytes, or of the wall time, something else decides how long a second run takes.
const NOT_ALONE: f64 = 0.1;

/// `None`: the run was not cold, its bytes came more than once, or it is not known. Nor is it of a run that did not end by itself, was short, waited for
/// swap, read past the page cache, wrote so much that its data may be waited for instead, or idled, maybe to keep a pace.
pub fn cold(facts: &Facts<'_>) -> Option<Cold> {
    let profile = facts.profile;
    let ended = matches!(profile.end, End::Code(_) | End::Signal(_));
    let swaps = profile.pressure.memory.as_ref().is_some_and(|m| m.swapped_in_pages.unwrap_or(0) > 0);
    let direct = facts.tally(super::Side::Read).direct.hits > 0;
    let account = facts.account;
    if !ended || swaps || direct || account.wall_ns < super::SHORT_NS || facts.came_again() {
        return None;
    }
    let (device_bytes, metadata_bytes) = facts.device_bytes()?;
    // Of inodes alone no file has to be known.
    if device_bytes > metadata_bytes {
        facts.file_bytes_at_most()?;
    }
    // What an overlay copied up is written as well, and not again by another run.
    if facts.wall_share(account.operation(Operation::CopyUp).wall_ns) > NOT_ALONE {
        return None;
    }
    let written = facts.bytes(super::Side::Write).unwrap_or(0.0).min(written_to_files(facts));
    if written > NOT_ALONE * device_bytes || profile.idle_wall_ns > NOT_ALONE * account.wall_ns {
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
    let wall_ns = facts.program_wall_ns();
    let shortest = (wall_ns - all.most_ns.max(waits.most_ns)).max(0.0);
    let room = profile.pressure.memory_bytes;
    (waits.booked_ns >= WORTH_SAVING * account.wall_ns).then(|| Cold {
        device_bytes: device_bytes as u64,
        metadata_bytes: metadata_bytes as u64,
        memory_bytes: room.map(|all| all.saturating_sub(profile.io.peak_memory_bytes.unwrap_or(0))),
        least_ns: of_one_thread(facts).then_some(shortest),
        most_ns: (wall_ns - waits.certain_ns).max(shortest),
    })
}

/// Bytes that were written to files and block devices, by file.
fn written_to_files(facts: &Facts<'_>) -> f64 {
    facts.storage_files().map(|file| file.writes.bytes as f64).sum()
}

/// Whether the threads beside the one that takes most of the wall time take hardly any.
fn of_one_thread(facts: &Facts<'_>) -> bool {
    let mut of = std::collections::HashMap::<u32, f64>::new();
    for entry in &facts.account.entries {
        // A pool stands for several.
        if facts.profile.threads.get(entry.thread as usize).is_none_or(|thread| thread.count > 1) {
            return false;
        }
        *of.entry(entry.thread).or_default() += entry.wall_ns;
    }
    let (longest, all) = of.values().fold((0.0_f64, 0.0), |(most, sum), ns| (most.max(*ns), sum + ns));
    all - longest < WORTH_SAVING * facts.account.wall_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::synthetic::{Run, access, looked};

    /// Reads a file of 1 GiB once; `waits` of the ten seconds are waits for the device.
    fn run(waits: f64) -> Run {
        with_idle(waits, 0.0)
    }

    fn with_idle(waits: f64, idle: f64) -> Run {
        Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, waits)
            .busy(Operation::Read, Layer::Cache, 0.1)
            .busy(Operation::User, Layer::Program, 0.9 - waits - idle)
            .io((8192, 1 << 30), (0, 0))
            .device_read(1 << 30)
            .block(8192, 1 << 30, 8192, 1 << 30)
            .calls(&[("read", 8192)])
            .file(1 << 30, |f| {
                f.reads = access(8192, 1 << 30, 1000);
                f.most_bytes = f.size_bytes;
            })
            .with(|p| {
                p.end = End::Code(0);
                p.threads.iter_mut().for_each(|thread| thread.count = 1);
            })
    }

    #[test]
    fn a_second_run_waits_for_nothing_and_fills_no_pages_at_best() {
        let found = run(0.6).facts(cold).unwrap();
        assert_eq!((found.device_bytes, found.metadata_bytes), (1 << 30, 0));
        let (least, most) = (found.least_ns.unwrap(), found.most_ns);
        // By hand: 6 of 10 s are waits, and 1 s fills pages, as samples show within their error.
        assert!((most - 4e9).abs() < 1e3, "{found:?}");
        assert!((2.5e9..=3.0e9).contains(&least), "{found:?}");
        let two = run(0.6).second_thread(|t| t.busy(Operation::User, Layer::Program, 0.5));
        assert_eq!(two.facts(cold).map(|cold| cold.least_ns), Some(None));
    }

    #[test]
    fn nothing_is_told_where_something_else_decides_how_long_a_second_run_takes() {
        let with = |change: &dyn Fn(&mut iowhy_core::profile::Profile)| run(0.6).with(change).facts(cold);
        assert!(with(&|_| {}).is_some());
        assert_eq!(run(0.02).facts(cold), None);
        assert_eq!(with(&|p| p.end = End::Running), None);
        assert_eq!(with_idle(0.6, 0.2).facts(cold), None);
        assert_eq!(with(&|p| p.files[0].reads.direct = looked(1, 1000)), None);
        assert_eq!(with(&|p| (p.files[0].writes.bytes, p.io.written_bytes) = (1 << 30, Some(1 << 30))), None);
        // It came again, or not all requests were seen, or a file's size is not known.
        assert_eq!(with(&|p| p.files[0].most_bytes = Some(1 << 29)), None);
        assert_eq!(with(&|p| p.block.as_mut().unwrap().own_read_bytes = 1 << 29), None);
        assert_eq!(with(&|p| p.files[0].most_bytes = None), None);
    }

    #[test]
    fn of_inodes_alone_no_file_has_to_be_known() {
        let all_metadata = run(0.6).with(|p| {
            p.files[0].most_bytes = None;
            p.block.as_mut().unwrap().own_metadata_bytes = 1 << 30;
        });
        assert_eq!(all_metadata.facts(cold).map(|cold| cold.metadata_bytes), Some(1 << 30));
    }
}
