//! From a profile to an account that closes: thread time and wall time by operation, layer and kind of wait.
//!
//! Invariant: [`Account::layers`] sums to the thread time of the profile; wall times of all entries and the idle time
//! sum to the wall time.
//!
//! What may not enter: judgement. Whether a share is too large is for the findings.

mod build;
mod clock;
mod commands;
mod peer;
mod site;
mod views;

pub use build::{account, meanings};
pub use clock::WallClock;
pub use commands::{Command, commands};
pub use peer::{Peer, Sleep};
pub use site::{Caller, Site};
pub use views::{OperationTime, ThreadTime};

use iowhy_core::layer::{Layer, Ledger};

use crate::classify::{Class, Operation, Wait};

/// Time of one thread with one meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Index into the profile's threads.
    pub thread: u32,
    /// Operation and layer. Queued time has the layer [`Layer::CpuQueue`] and the operation it was interrupted in, where known.
    pub class: Class,
    /// Whether it was spent on a CPU.
    pub busy: bool,
    /// Thread time.
    pub time_ns: f64,
    /// Its part of the wall clock (0 for waits off the path).
    pub wall_ns: f64,
    /// Samples or sleeps it rests on; 0 for the part of a wait that is booked to another layer than the rest of it (see
    /// [`account`](account())).
    pub events: u64,
    /// Part of `time_ns` that other programs may have caused.
    pub delay: Delay,
}

/// Thread time of waits in which requests of other programs were in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// The request was queued while one of another program was at the same device: others caused it.
    pub behind_ns: f64,
    /// The request was at the device together with one of another program: others caused at most this.
    pub beside_ns: f64,
}

/// A sum of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Thread time.
    pub time_ns: f64,
    /// Part of the wall clock.
    pub wall_ns: f64,
    /// Samples or sleeps.
    pub events: u64,
    /// What other programs may have caused of it.
    pub delay: Delay,
}

/// The account of a whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Thread time of all threads.
    pub thread_ns: f64,
    /// Wall time.
    pub wall_ns: f64,
    /// Wall time in which nobody was active.
    pub idle_wall_ns: f64,
    /// Every combination that occurs.
    pub entries: Vec<Entry>,
    /// Thread time by layer; sums to `thread_ns`.
    pub layers: Ledger,
    /// Thread time whose stack was seen but holds no function of the table, as a share of `thread_ns`.
    pub unknown_symbols_share: f64,
    /// Thread time of which no stack was seen, as a share of `thread_ns`.
    pub unseen_share: f64,
    /// Thread time that rests on recorded intervals, as a share of `thread_ns`. The rest was inferred
    /// ([`Account::inferred_share`]).
    pub seen_share: f64,
    /// Thread time of waits for another thread or process (futex, semaphore) beside which a request of the program was queued or at a
    /// device, by thread of the profile. Empty: requests were not seen.
    pub locks_beside_requests_ns: Vec<f64>,
    /// Where in the program its operations were called, greatest thread time first; only stacks whose user frames
    /// could be followed out of the system's libraries.
    pub sites: Vec<Site>,
    /// The same where a script's own function stands for what interprets it; empty where no stack leads to one that has a name.
    pub script_sites: Vec<Site>,
    /// The file of the program whose functions without names, next to the calls, have most thread time, with that time in nanoseconds.
    pub most_unnamed: Option<(String, f64)>,
}

impl Sum {
    /// Adds an entry's time.
    fn add(&mut self, time_ns: f64, wall_ns: f64, events: u64) {
        self.time_ns += time_ns;
        self.wall_ns += wall_ns;
        self.events = self.events.saturating_add(events);
    }

    /// Adds delay within that time.
    fn add_delay(&mut self, delay: Delay) {
        self.delay.behind_ns += delay.behind_ns;
        self.delay.beside_ns += delay.beside_ns;
    }
}

impl Account {
    /// The sum of the entries that are picked.
    pub fn sum(&self, pick: impl Fn(&Entry) -> bool) -> Sum {
        let mut sum = Sum::default();
        for e in self.entries.iter().filter(|e| pick(e)) {
            sum.add(e.time_ns, e.wall_ns, e.events);
            sum.add_delay(e.delay);
        }
        sum
    }

    /// Thread time that was inferred from readings, looks, similar sleeps or the time beside it, as a share of `thread_ns`.
    pub fn inferred_share(&self) -> f64 {
        if self.thread_ns > 0.0 { (1.0 - self.seen_share).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// All time of an operation.
    pub fn operation(&self, operation: Operation) -> Sum {
        self.sum(|e| e.class.operation == operation)
    }

    /// All time of a layer.
    pub fn layer(&self, layer: Layer) -> Sum {
        self.sum(|e| e.class.layer == layer)
    }

    /// All time of a kind of wait.
    pub fn wait(&self, wait: Wait) -> Sum {
        self.sum(|e| e.class.wait == Some(wait))
    }

    /// CPU time of an operation in one layer.
    pub fn busy(&self, operation: Operation, layer: Layer) -> Sum {
        self.sum(|e| e.busy && e.class.operation == operation && e.class.layer == layer)
    }

    /// A sum as a share of the wall time.
    pub fn wall_share(&self, sum: Sum) -> f64 {
        if self.wall_ns > 0.0 { sum.wall_ns / self.wall_ns } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
