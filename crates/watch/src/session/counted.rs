//! Exact counters of all processes of the program together, each counted once.
//!
//! The kernel adds a process to its parent when the parent waits for it. So the whole is: what is there at the end
//! (zombies included), with the orphans that we reaped, less what was there at the start.

use std::collections::HashMap;

use iowhy_core::profile::IoCounters;

use crate::child::Usage;
use iowhy_linux::process::counters::{io, merged, since, sum, usage};
use iowhy_linux::reader::Reader;

/// Processes whose counters are read at the start of attaching and at the end. More than this would take seconds.
const MOST: usize = 10_000;

/// The sum so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    whole: Option<IoCounters>,
    /// Counters of the processes that were there when watching began.
    base: HashMap<u32, IoCounters>,
    /// The last reading of the process that was attached to, for when it vanishes.
    last: Option<(u32, IoCounters)>,
}

impl Counted {
    /// A process that was there before: what it did until now does not count.
    pub(super) fn existing(&mut self, reader: &mut Reader, pid: u32) {
        if self.base.len() < MOST
            && let Some(now) = read(reader, pid)
        {
            self.base.insert(pid, now);
        }
    }

    /// Remembers the present counters of a process that we shall not be able to read once it has ended.
    pub(super) fn remember(&mut self, reader: &mut Reader, pid: u32) {
        if let Some(now) = read(reader, pid) {
            self.last = Some((pid, now));
        }
    }

    /// A process that is ours to reap and about to be: what it counted, with all it waited for.
    pub(super) fn reaped(&mut self, io: Option<IoCounters>, usage: Usage) {
        let used = IoCounters {
            minor_faults: Some(usage.minor_faults),
            major_faults: Some(usage.major_faults),
            user_ns: Some(usage.user_ns),
            system_ns: Some(usage.system_ns),
            peak_memory_bytes: Some(usage.peak_memory_bytes),
            ..IoCounters::default()
        };
        self.add(merged(&io.unwrap_or_default(), &used));
    }

    /// Processes that live on at the end.
    pub(super) fn living(&mut self, reader: &mut Reader, pids: &[u32]) {
        let mut last = self.last.take();
        let mut gone = std::mem::take(&mut self.base);
        for &pid in pids.iter().take(MOST) {
            let now = read(reader, pid);
            if last.is_some_and(|(p, _)| p == pid) && now.is_some() {
                last = None;
            }
            if let Some(now) = now {
                self.add(gone.remove(&pid).map_or(now, |base| since(&now, &base)));
            }
        }
        if let Some((pid, then)) = last {
            self.add(gone.remove(&pid).map_or(then, |base| since(&then, &base)));
        }
        // Whoever waited for these has taken over all that they counted, before the watch as well.
        for base in gone.values() {
            self.whole =
                self.whole.map(|whole| if holds(&whole, base) { since(&whole, base) } else { whole });
        }
    }

    /// Counters that are already differences.
    pub(super) fn add(&mut self, more: IoCounters) {
        self.whole = Some(self.whole.map_or(more, |whole| sum(&whole, &more)));
    }

    /// The whole.
    pub(super) fn total(&self) -> IoCounters {
        self.whole.unwrap_or_default()
    }
}

/// Whether a sum can hold these counters: nobody took over those of an orphan, or of a child whose end was ignored.
fn holds(whole: &IoCounters, part: &IoCounters) -> bool {
    let counters = |c: &IoCounters| [c.read_bytes, c.written_bytes, c.user_ns, c.system_ns, c.minor_faults];
    counters(whole).iter().zip(counters(part)).all(|(all, one)| all.is_none() || *all >= one)
}

/// Both kinds of counters of a process or zombie.
fn read(reader: &mut Reader, pid: u32) -> Option<IoCounters> {
    let (io, used) = (io(reader, pid), usage(reader, pid));
    if io.is_none() && used.is_none() {
        return None;
    }
    Some(merged(&io.unwrap_or_default(), &used.unwrap_or_default()))
}
