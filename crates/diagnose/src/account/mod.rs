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

pub use build::account;
pub use clock::WallClock;
pub use commands::{Command, commands};
pub use peer::{Peer, Sleep};
pub use site::Site;
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
    /// Samples or sleeps it rests on; 0 for the part of a wait that was booked to another layer (see
    /// [`Account::queue_share`]).
    pub events: u64,
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
    /// Part of the waits for the device that was booked to [`Layer::Block`] instead, because requests were seen to
    /// queue for that part of their time before the device got them. `None`: the two could not be told apart, and all
    /// of it is booked to [`Layer::Device`].
    pub queue_share: Option<f64>,
    /// Where in the program its operations were called, greatest thread time first; only stacks whose user frames
    /// could be followed out of the system's libraries.
    pub sites: Vec<Site>,
}

impl Sum {
    /// Adds an entry's time.
    fn add(&mut self, time_ns: f64, wall_ns: f64, events: u64) {
        self.time_ns += time_ns;
        self.wall_ns += wall_ns;
        self.events = self.events.saturating_add(events);
    }
}

impl Account {
    /// The sum of the entries that are picked.
    pub fn sum(&self, pick: impl Fn(&Entry) -> bool) -> Sum {
        let mut sum = Sum::default();
        for e in self.entries.iter().filter(|e| pick(e)) {
            sum.add(e.time_ns, e.wall_ns, e.events);
        }
        sum
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
