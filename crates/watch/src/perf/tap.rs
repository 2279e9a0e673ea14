//! A short burst of system-call tracing.
//!
//! While `raw_syscalls` is open, every system call of every program takes the kernel's slow way in and out, recorded
//! or not. So it is opened for a burst and closed by dropping.

use std::ffi::CString;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::attr::{self, Role, Start};
use super::let_go::let_go;
use super::merge::Merger;
use super::record::{Decoded, Ids, decode};
use super::ring::{Ring, map_all};
use super::tracepoints::{Point, Reader};
use iowhy_linux::cpus;

use crate::event::{Event, Kind};
use crate::tracefs::Tracefs;
use iowhy_linux::clock::monotonic_ns;

/// Greatest ring of one CPU, in bytes: a call takes 184, so that it holds 45,000 calls. A busy machine may keep us from
/// a CPU for tens of milliseconds, in which a program makes so many; with 2 MiB calls were lost there.
const RING_BYTES: usize = 8 << 20;
/// More threads than this are not asked for in the kernel: a longer filter costs more than it saves.
const MOST_FILTERED: usize = 32;

/// System calls being traced on every CPU.
#[derive(Debug)]
pub struct SyscallTap {
    rings: Vec<Ring>,
    events: Vec<OwnedFd>,
    ids: Ids,
    merger: Merger,
    last_ns: u64,
    lost: u64,
    filtered: bool,
    since_ns: u64,
}

impl SyscallTap {
    /// Begins to trace the system calls of these threads. Of more than 32, or where the kernel refuses a filter, those
    /// of all programs are recorded ([`SyscallTap::is_filtered`] says so) and the consumer picks; calls of our own
    /// process are dropped.
    ///
    /// # Errors
    /// tracefs cannot be read, or the events may not be opened.
    pub fn open(tids: &[u32]) -> io::Result<Self> {
        let tracefs = Tracefs::open()?;
        let mut tap = SyscallTap {
            rings: Vec::new(),
            events: Vec::new(),
            ids: Ids::default(),
            merger: Merger::default(),
            last_ns: 0,
            lost: 0,
            filtered: !tids.is_empty() && tids.len() <= MOST_FILTERED,
            since_ns: 0,
        };
        let cpus = cpus::online();
        let filter = if tap.filtered { filter(tids) } else { None };
        for point in Point::CALLS {
            let reader = Reader::new(&tracefs, point)?;
            let role = Role::Trace { point, id: reader.id };
            tap.ids.add_reader(reader);
            let events = cpus
                .iter()
                .map(|cpu| attr::open(role, None, Some(*cpu), false, Start::Later))
                .collect::<io::Result<Vec<_>>>()?;
            for event in &events {
                tap.ids.add(attr::id(event)?, role);
                tap.filtered &= filter.as_ref().is_some_and(|f| attr::filter(event, f).is_ok());
            }
            if tap.rings.is_empty() {
                tap.rings = map_all(events, RING_BYTES)?;
            } else {
                for (event, ring) in events.iter().zip(&tap.rings) {
                    attr::redirect(event, ring.leader())?;
                }
                tap.events = events;
            }
        }
        // Returns first: a call that is seen to begin is then seen to end.
        for event in &tap.events {
            attr::switch(event.as_fd(), true)?;
        }
        for ring in &tap.rings {
            attr::switch(ring.leader(), true)?;
        }
        tap.since_ns = monotonic_ns();
        Ok(tap)
    }

    /// Time from which every call is recorded (CLOCK_MONOTONIC).
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Ends the burst. Returns the time up to which every call is recorded (CLOCK_MONOTONIC). What was recorded can
    /// still be drained; the machine's calls are fast again only after the tap is dropped.
    pub fn stop(&mut self) -> u64 {
        let until = monotonic_ns();
        for event in self.events.iter().map(AsFd::as_fd).chain(self.rings.iter().map(Ring::leader)) {
            // It cannot fail on a descriptor of ours; if it did, there would only be more records.
            let _ = attr::switch(event, false);
        }
        until
    }

    /// Closes the tap at the end of a watch, without waiting for the kernel. Unlike after dropping, nobody can tell when
    /// the machine's calls are fast again.
    pub(crate) fn let_go(self) {
        let SyscallTap { rings, mut events, .. } = self;
        // The leader of a ring is the other tracepoint. A second descriptor keeps it open while its ring is unmapped.
        events.extend(rings.into_iter().filter_map(|ring| ring.unmap().ok()));
        let_go(events);
    }

    /// Whether the kernel records only the threads that were asked for.
    pub fn is_filtered(&self) -> bool {
        self.filtered
    }

    /// Records that the kernel could not store so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Descriptors to wait on with poll(2): readable when a ring is half full.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(Ring::leader)
    }

    /// Hands on the calls in order of time; what is younger than the drain before is kept back unless `all`.
    pub fn drain(&mut self, all: bool, sink: &mut dyn FnMut(&Event<'_>)) {
        let own = std::process::id();
        let SyscallTap { rings, merger, ids, last_ns, lost, .. } = self;
        merger.drain(rings, monotonic_ns(), all, |time_ns, record| {
            *last_ns = time_ns.max(*last_ns);
            if let Decoded::Event(event) = decode(record, *last_ns, ids) {
                if let Kind::Lost { records } = event.kind {
                    *lost = lost.saturating_add(records);
                    sink(&event);
                } else if event.pid != own {
                    sink(&event);
                }
            }
        });
        if all {
            let others = self.events.iter().map(AsFd::as_fd);
            let lost: u64 = self.rings.iter().map(Ring::leader).chain(others).map(attr::lost).sum();
            let records = lost.saturating_sub(self.lost);
            if records > 0 {
                self.lost = lost;
                self.last_ns = self.last_ns.max(monotonic_ns());
                sink(&Event { time_ns: self.last_ns, cpu: 0, pid: 0, tid: 0, kind: Kind::Lost { records } });
            }
        }
    }
}

/// `common_pid==1||common_pid==2`: the field holds the number of the thread.
fn filter(tids: &[u32]) -> Option<CString> {
    let mut text = String::new();
    for (n, tid) in tids.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{}common_pid=={tid}", if n > 0 { "||" } else { "" });
    }
    CString::new(text).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_filter_names_every_thread() {
        let filter = super::filter(&[1, 22]).expect("no NUL in it");
        assert_eq!(filter.to_str(), Ok("common_pid==1||common_pid==22"));
    }
}
