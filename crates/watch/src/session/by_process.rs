//! What each process did itself, without its children: the observer in the kernel adds up the threads that ended, and those
//! that live at the end are read from `/proc`. Without the observer nothing is known: `/proc/PID/io` holds children that were
//! waited for.

use std::collections::HashMap;

use iowhy_core::profile::{IoCounters, OwnIo};
use iowhy_linux::process::counters::of_thread;
use iowhy_linux::process::task;
use iowhy_linux::reader::Reader;

/// Threads that are read at the start of attaching, and at the end. More than this would take long.
const MAX: usize = 4096;

/// Counters of threads that were there before.
#[derive(Debug, Default)]
pub(super) struct ByProcess {
    before: HashMap<u32, (u32, OwnIo)>,
    /// Some thread that was there before could not be read.
    incomplete: bool,
}

impl ByProcess {
    /// A thread that was there before: what it did until now does not count.
    pub(super) fn existing(&mut self, reader: &mut Reader, pid: u32, tid: u32) {
        let now = if self.before.len() < MAX { of_thread(reader, pid, tid) } else { None };
        match now.as_ref().and_then(own) {
            Some(own) => {
                self.before.insert(tid, (pid, own));
            }
            None => self.incomplete = true,
        }
    }

    /// Joins what the observer counted of ended threads to the threads that live. A process of which a thread cannot be read
    /// is left out.
    pub(super) fn finish(
        self,
        reader: &mut Reader,
        ended: HashMap<u32, OwnIo>,
        living: impl Iterator<Item = (u32, u32)>,
    ) -> HashMap<u32, OwnIo> {
        if self.incomplete || io_of_self(reader).is_none() {
            return HashMap::new();
        }
        let mut processes: HashMap<u32, Option<OwnIo>> =
            ended.into_iter().map(|(pid, own)| (pid, Some(own))).collect();
        for (n, (pid, tid)) in living.enumerate() {
            // The observer has counted a thread that is dead and not yet waited for.
            let dead = task::stat(reader, pid, tid).is_none_or(|stat| matches!(stat.state, 'Z' | 'X'));
            if dead {
                continue;
            }
            let now = if n < MAX { of_thread(reader, pid, tid).as_ref().and_then(own) } else { None };
            let sum = processes.entry(pid).or_insert(Some(OwnIo::default()));
            *sum = sum.zip(now).map(|(sum, now)| sum.plus(now));
        }
        for (pid, base) in self.before.into_values() {
            if let Some(Some(sum)) = processes.get_mut(&pid) {
                *sum = sum.minus(base);
            }
        }
        processes.into_iter().filter_map(|(pid, own)| Some((pid, own?))).collect()
    }
}

/// Whether this kernel keeps such counters.
fn io_of_self(reader: &mut Reader) -> Option<OwnIo> {
    let pid = std::process::id();
    of_thread(reader, pid, pid).as_ref().and_then(own)
}

/// `None`: the kernel keeps some of these counters only.
fn own(io: &IoCounters) -> Option<OwnIo> {
    Some(OwnIo {
        read_calls: io.read_calls?,
        write_calls: io.write_calls?,
        read_bytes: io.read_bytes?,
        written_bytes: io.written_bytes?,
        device_read_bytes: io.device_read_bytes?,
        device_written_bytes: io.device_written_bytes?,
        syncs: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_did_before_does_not_count_whether_it_lives_or_not() {
        let reader = &mut Reader::new();
        let (pid, tid) = (std::process::id(), rustix::thread::gettid().as_raw_nonzero().get() as u32);
        let mut known = ByProcess::default();
        known.existing(reader, pid, tid);
        assert!(!known.incomplete);
        let before = known.before[&tid].1;
        let bytes = std::fs::read("/proc/self/stat").unwrap().len() as u64;
        let ended = OwnIo { read_bytes: before.read_bytes + 7, syncs: 3, ..OwnIo::default() };
        // A number that no process has: its thread has ended.
        known.before.insert(u32::MAX, (u32::MAX, before));
        let sums = known.finish(reader, HashMap::from([(u32::MAX, ended)]), [(pid, tid)].into_iter());
        assert_eq!((sums[&u32::MAX].read_bytes, sums[&u32::MAX].syncs), (7, 3));
        // Its own look at itself is among the reads.
        assert!(sums[&pid].read_bytes >= bytes && sums[&pid].syncs == 0, "{sums:?}");
    }

    #[test]
    fn a_thread_that_cannot_be_read_leaves_its_process_unknown() {
        let reader = &mut Reader::new();
        let mut known = ByProcess::default();
        known.existing(reader, u32::MAX, u32::MAX);
        assert!(known.incomplete);
        assert!(known.finish(reader, HashMap::new(), std::iter::empty()).is_empty());
    }
}
