//! What each process did itself, without its children: the observer in the kernel counts what is moved from and to files, and adds
//! up what threads that ended moved from and to devices; of those that live at the end that is read from `/proc`. Without the observer nothing is known: `/proc/PID/io` holds children that were
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

    /// Joins what the observer counted, by process and what is still with its `threads`, to the threads that live. A process of which a thread cannot be read
    /// is left out.
    pub(super) fn finish(
        self,
        reader: &mut Reader,
        counted: HashMap<u32, OwnIo>,
        threads: &HashMap<u32, OwnIo>,
        living: impl Iterator<Item = (u32, u32)>,
    ) -> HashMap<u32, OwnIo> {
        if self.incomplete || io_of_self(reader).is_none() {
            return HashMap::new();
        }
        let mut processes: HashMap<u32, Option<OwnIo>> =
            counted.into_iter().map(|(pid, own)| (pid, Some(own))).collect();
        for (n, (pid, tid)) in living.enumerate() {
            // The observer has counted a thread that is dead and not yet waited for.
            let dead = task::stat(reader, pid, tid).is_none_or(|stat| matches!(stat.state, 'Z' | 'X'));
            if dead {
                continue;
            }
            let now = if n < MAX { of_thread(reader, pid, tid).as_ref().and_then(own) } else { None };
            let sum = processes.entry(pid).or_insert(Some(OwnIo::default()));
            let files = threads.get(&tid).copied().unwrap_or_default();
            *sum = sum.zip(now).map(|(sum, now)| sum.plus(now).plus(files));
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

/// What went from and to devices; `None`: the kernel keeps no such counters.
fn own(io: &IoCounters) -> Option<OwnIo> {
    let (device_read_bytes, device_written_bytes) = (io.device_read_bytes?, io.device_written_bytes?);
    Some(OwnIo { device_read_bytes, device_written_bytes, ..OwnIo::default() })
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
        let device_read_bytes = before.device_read_bytes + 7;
        let ended = OwnIo { device_read_bytes, read_bytes: 5, syncs: 3, ..OwnIo::default() };
        // A number that no process has: its thread has ended.
        known.before.insert(u32::MAX, (u32::MAX, before));
        let threads = HashMap::from([(tid, OwnIo { written_bytes: 11, ..OwnIo::default() })]);
        let counted = HashMap::from([(u32::MAX, ended)]);
        let sums = known.finish(reader, counted, &threads, [(pid, tid)].into_iter());
        let of = |own: OwnIo| (own.device_read_bytes, own.read_bytes, own.written_bytes, own.syncs);
        assert_eq!((of(sums[&u32::MAX]), sums[&pid].written_bytes), ((7, 5, 0, 3), 11));
        assert_eq!((sums[&pid].read_bytes, sums[&pid].syncs), (0, 0), "{sums:?}");
    }

    #[test]
    fn a_thread_that_cannot_be_read_leaves_its_process_unknown() {
        let reader = &mut Reader::new();
        let mut known = ByProcess::default();
        known.existing(reader, u32::MAX, u32::MAX);
        assert!(known.incomplete);
        assert!(known.finish(reader, HashMap::new(), &HashMap::new(), std::iter::empty()).is_empty());
    }
}
