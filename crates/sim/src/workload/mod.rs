//! Workloads: closed clients or open arrivals, over a tree of small files, a few large files, or a trace. Plain data;
//! the requests come from [`Source`]s.

mod room;
mod source;
pub mod spec;

use iowhy_core::pattern::Pattern;
use iowhy_core::request::Request;

pub use source::{Replay, Source};

use crate::files::Shape;

/// Access method of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `read` and `write` through the cache.
    Read,
    /// A mapping: faults that read a cluster each and wait for it, without read-ahead beside.
    Mapped,
    /// A mapping and `mlock`, which is serialised within the process.
    Mlock,
    /// Past the cache.
    Direct,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 4] = [Method::Read, Method::Mapped, Method::Mlock, Method::Direct];

    /// The name in specifications.
    pub fn id(self) -> &'static str {
        match self {
            Method::Read => "read",
            Method::Mapped => "mapped",
            Method::Mlock => "mlock",
            Method::Direct => "direct",
        }
    }
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Clients with one request each at a time.
    Closed {
        /// How many.
        clients: u32,
        /// Pause of a client between its requests.
        think_ns: u64,
        /// Whether all wait for all before the next one.
        lock_step: bool,
    },
    /// At the times that the requests carry, whatever is still under way.
    Open,
}

/// The files that are accessed.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Small files, each read whole by one client.
    Tree {
        /// Files that each reader reads.
        files: u64,
        /// Sizes, mixed evenly.
        sizes: Vec<u64>,
        /// Directories.
        directories: u64,
        /// Files in all.
        population: u64,
        /// In the order of creation instead of random.
        in_order: bool,
    },
    /// Large files.
    Region {
        /// Bytes of each file.
        size: u64,
        /// Bytes of a request.
        bytes: u64,
        /// Requests of each client.
        requests: u64,
        /// Where they go.
        pattern: Pattern,
        /// Each client has a file of its own.
        own: bool,
        /// Writes among a hundred requests.
        write_percent: u64,
    },
}

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Clients.
    pub clients: u32,
    /// Pause of a client between its requests.
    pub think_ns: u64,
    /// Whether clients wait for each other.
    pub lock_step: bool,
    /// Poisson arrivals per second; 0: closed clients.
    pub rate: f64,
    /// How.
    pub method: Method,
    /// Whether the cache holds the files already.
    pub warm: bool,
    /// The files and requests.
    pub what: What,
}

/// Everything that the engine must know of the load.
pub struct Load<'a> {
    /// The files.
    pub shape: Shape,
    /// When requests come.
    pub arrival: Arrival,
    /// How.
    pub method: Method,
    /// Whether the cache holds the files already.
    pub warm: bool,
    /// The requests.
    pub source: Box<dyn Source + 'a>,
}

impl Workload {
    /// Requests in all.
    pub fn requests(&self) -> u64 {
        let each = match &self.what {
            What::Tree { files, .. } => *files,
            What::Region { requests, .. } => *requests,
        };
        each.saturating_mul(u64::from(self.clients))
    }

    /// Bytes of its largest request.
    pub fn request_bytes(&self) -> u64 {
        match &self.what {
            What::Tree { sizes, .. } => sizes.iter().copied().max().unwrap_or(0),
            What::Region { bytes, .. } => *bytes,
        }
    }

    /// The load, with its requests from this seed.
    pub fn load(&self, seed: u64) -> Load<'static> {
        let shape = match &self.what {
            What::Tree { sizes, directories, population, .. } => {
                Shape::Tree { sizes: sizes.clone(), directories: *directories, files: *population }
            }
            What::Region { size, own, .. } => {
                Shape::Files { count: if *own { u64::from(self.clients) } else { 1 }, bytes: *size }
            }
        };
        let arrival = if self.rate > 0.0 {
            Arrival::Open
        } else {
            Arrival::Closed { clients: self.clients, think_ns: self.think_ns, lock_step: self.lock_step }
        };
        Load {
            shape,
            arrival,
            method: self.method,
            warm: self.warm,
            source: source::for_workload(self, seed),
        }
    }
}

impl<'a> Load<'a> {
    /// A trace, at its own times.
    pub fn replay(requests: impl Iterator<Item = Request> + 'a) -> Load<'a> {
        Load {
            shape: Shape::Unknown,
            arrival: Arrival::Open,
            method: Method::Read,
            warm: false,
            source: Box::new(Replay::new(requests)),
        }
    }

    /// Only the first requests, counted over all clients.
    #[must_use]
    pub fn first(mut self, most: u64) -> Load<'a> {
        self.source = Box::new(source::First { inner: self.source, left: most });
        self
    }

    /// A trace, by clients that take its next request as soon as they are done with theirs.
    #[must_use]
    pub fn closed(mut self, clients: u32) -> Load<'a> {
        self.arrival = Arrival::Closed { clients, think_ns: 0, lock_step: false };
        self
    }
}
