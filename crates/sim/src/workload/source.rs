//! Requests one after the other, for each client. The same seed gives the same requests, whatever the machine does.

use iowhy_core::pattern::{Offsets, Pattern};
use iowhy_core::request::{Op, Request};
use iowhy_core::rng::Rng;
use iowhy_core::units::counted;

use super::{What, Workload};
use crate::files::size_of;

/// Requests for clients; open arrivals all belong to client 0.
pub trait Source {
    /// The next request of a client.
    fn next(&mut self, client: u32) -> Option<Request>;

    /// Adaptations of the load, in words.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The requests of a workload.
pub(super) fn for_workload(workload: &Workload, seed: u64) -> Box<dyn Source> {
    let closed: Box<dyn Source> = match &workload.what {
        What::Tree { files, sizes, population, in_order, .. } => {
            Box::new(Tree::new(workload.clients, *files, sizes.clone(), *population, *in_order, seed))
        }
        What::Region { size, bytes, requests, pattern, own, write_percent } => {
            let region =
                Region { size: *size, bytes: *bytes, requests: *requests, pattern: *pattern, own: *own };
            Box::new(Regions::new(workload.clients, region, *write_percent, seed))
        }
    };
    if workload.rate > 0.0 {
        // Independent of the sequence of the offsets.
        let rng = Rng::new(seed ^ 0x5bd1_e995_9d1b_54a5);
        return Box::new(Poisson {
            inner: closed,
            clients: workload.clients,
            turn: 0,
            gap_ns: 1e9 / workload.rate,
            at_ns: 0.0,
            rng,
        });
    }
    closed
}

/// Whole small files.
struct Tree {
    files: Vec<u32>,
    each: usize,
    done: Vec<usize>,
    sizes: Vec<u64>,
}

impl Tree {
    fn new(clients: u32, each: u64, sizes: Vec<u64>, population: u64, in_order: bool, seed: u64) -> Self {
        // Bounds were checked when the workload was read.
        let mut files: Vec<u32> = (0..population.min(u64::from(u32::MAX)) as u32).collect();
        if !in_order {
            Rng::new(seed).shuffle(&mut files);
        }
        files.truncate((each as usize).saturating_mul(clients as usize));
        Tree { files, each: each as usize, done: vec![0; clients as usize], sizes }
    }
}

impl Source for Tree {
    fn next(&mut self, client: u32) -> Option<Request> {
        let done = self.done.get_mut(client as usize)?;
        if *done >= self.each {
            return None;
        }
        let file = *self.files.get(client as usize * self.each + *done)?;
        *done += 1;
        let bytes = size_of(u64::from(file), &self.sizes);
        Some(Request { object: u64::from(file), bytes, stream: client, ..Request::default() })
    }
}

/// A file and how it is walked.
#[derive(Clone, Copy)]
struct Region {
    size: u64,
    bytes: u64,
    requests: u64,
    pattern: Pattern,
    own: bool,
}

/// Requests into large files.
struct Regions {
    region: Region,
    walks: Vec<Offsets>,
    done: Vec<u64>,
    write_percent: u64,
    rng: Rng,
}

impl Regions {
    fn new(clients: u32, region: Region, write_percent: u64, seed: u64) -> Self {
        let blocks = (region.size / region.bytes.max(1)).max(1);
        let walks = (0..clients as usize)
            .map(|client| match region.own {
                true => Offsets::new(region.pattern, blocks, seed.wrapping_add(client as u64)),
                false => Offsets::new(region.pattern, blocks, seed).for_thread(client, clients as usize),
            })
            .collect();
        Regions { region, walks, done: vec![0; clients as usize], write_percent, rng: Rng::new(!seed) }
    }
}

impl Source for Regions {
    #[inline]
    fn next(&mut self, client: u32) -> Option<Request> {
        let done = self.done.get_mut(client as usize)?;
        if *done >= self.region.requests {
            return None;
        }
        *done += 1;
        let block = self.walks[client as usize].next();
        let write = self.write_percent > 0 && self.rng.below(100) < self.write_percent;
        Some(Request {
            object: if self.region.own { u64::from(client) } else { 0 },
            offset: block * self.region.bytes,
            bytes: self.region.bytes,
            stream: client,
            op: if write { Op::Write } else { Op::Read },
            ..Request::default()
        })
    }
}

/// The requests of all clients in turn, at times of a Poisson process.
struct Poisson {
    inner: Box<dyn Source>,
    clients: u32,
    turn: u32,
    gap_ns: f64,
    at_ns: f64,
    rng: Rng,
}

impl Source for Poisson {
    fn next(&mut self, _: u32) -> Option<Request> {
        let client = self.turn % self.clients.max(1);
        self.turn = self.turn.wrapping_add(1);
        let mut request = self.inner.next(client)?;
        // `unit` is below 1, so the logarithm is finite.
        self.at_ns += -(1.0 - self.rng.unit()).ln() * self.gap_ns;
        request.time_ns = self.at_ns as u64;
        Some(request)
    }
}

/// The first requests of another source.
pub(super) struct First<'a> {
    pub(super) inner: Box<dyn Source + 'a>,
    pub(super) left: u64,
}

impl Source for First<'_> {
    fn next(&mut self, client: u32) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        self.inner.next(client)
    }

    fn remarks(&self) -> Vec<String> {
        self.inner.remarks()
    }
}

/// A trace, from time 0 on. Times that run backwards are taken as "at once".
pub struct Replay<I> {
    requests: I,
    first_ns: Option<u64>,
    last_ns: u64,
    backwards: u64,
    far: u64,
}

/// Times farther than this from the first (30 years) are no times of requests.
const FARTHEST_NS: u64 = 946_080_000_000_000_000;

impl<I> Replay<I> {
    /// Replays these requests.
    pub fn new(requests: I) -> Self {
        Replay { requests, first_ns: None, last_ns: 0, backwards: 0, far: 0 }
    }
}

impl<I: Iterator<Item = Request>> Source for Replay<I> {
    fn next(&mut self, _: u32) -> Option<Request> {
        let mut request = self.requests.next()?;
        let first = *self.first_ns.get_or_insert(request.time_ns);
        let since = request.time_ns.saturating_sub(first);
        if since > FARTHEST_NS {
            self.far += 1;
        }
        if request.time_ns < first || since < self.last_ns {
            self.backwards += 1;
        }
        self.last_ns = since.min(FARTHEST_NS).max(self.last_ns);
        request.time_ns = self.last_ns;
        Some(request)
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.backwards > 0 {
            let many = counted(self.backwards, "request of the trace goes", "requests of the trace go");
            remarks.push(format!("{many} back in time: taken as of the one before"));
        }
        if self.far > 0 {
            let many = counted(self.far, "request of the trace is", "requests of the trace are");
            remarks.push(format!("{many} more than 30 years behind the first: taken as of that day"));
        }
        remarks
    }
}
