//! The scripted device: parallel servers in virtual time, and counters like a real device's.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::DeviceCounters;

/// More servers than any queue feeds, so that a mistyped model does not cost memory.
const MAX_SERVERS: f64 = 4096.0;

/// One thread's share of the device.
///
/// Each thread has a virtual time of its own, so that threads cannot queue behind one another; instead each has
/// `parallelism / threads` of the servers. That is `servers` whole ones, each held for `hold` times the service time:
/// less than once where the share has a fraction left over, more than once where it is below one server. A
/// request alone in the device always takes its service time, and the device's capacity over all threads is
/// `parallelism / service time` exactly.
#[derive(Debug)]
pub struct Servers {
    /// When each server can begin the next request.
    free_ns: Vec<f64>,
    hold: f64,
    /// End of the time in which something was in service.
    busy_until_ns: f64,
    threads: f64,
}

/// When a request is done, and how much longer the device was busy for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// When it is done.
    pub end_ns: f64,
    /// Time in which nothing else was in service, as this thread's share of the device's time.
    pub newly_busy_ns: f64,
}

impl Servers {
    /// One of `threads` equal shares of a device that serves `parallelism` requests at once.
    pub fn new(parallelism: f64, threads: usize) -> Self {
        let threads = threads.max(1) as f64;
        let parallelism = if parallelism > 0.0 { parallelism.min(MAX_SERVERS) } else { 1.0 };
        let share = parallelism / threads;
        let servers = share.floor().max(1.0);
        Servers { free_ns: vec![0.0; servers as usize], hold: servers / share, busy_until_ns: 0.0, threads }
    }

    /// Serves a request that arrives at `now_ns` (no earlier than the one before) on the server that is free first.
    pub fn serve(&mut self, now_ns: f64, service_ns: f64) -> Served {
        let mut start_ns = now_ns;
        if let Some(free_ns) = self.free_ns.iter_mut().min_by(|a, b| a.total_cmp(b)) {
            start_ns = start_ns.max(*free_ns);
            *free_ns = start_ns + service_ns * self.hold;
        }
        let end_ns = start_ns + service_ns;
        let newly_busy_ns = (end_ns - start_ns.max(self.busy_until_ns)).max(0.0) / self.threads;
        self.busy_until_ns = self.busy_until_ns.max(end_ns);
        Served { end_ns, newly_busy_ns }
    }
}

/// What a scripted device has done, over all threads.
#[derive(Debug, Default)]
pub struct Totals {
    read: Direction,
    write: Direction,
    flush: Direction,
    busy_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct Direction {
    bytes: AtomicU64,
    requests: AtomicU64,
    ns: AtomicU64,
}

impl Direction {
    fn add(&self, bytes: u64, requests: u64, ns: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.ns.fetch_add(ns, Ordering::Relaxed);
    }

    fn read(&self) -> [u64; 3] {
        [&self.bytes, &self.requests, &self.ns].map(|total| total.load(Ordering::Relaxed))
    }
}

impl Totals {
    /// Notes bytes moved by `requests` device requests within `ns`.
    pub fn moved(&self, write: bool, bytes: usize, requests: u64, ns: u64, newly_busy_ns: f64) {
        let direction = if write { &self.write } else { &self.read };
        direction.add(bytes as u64, requests, ns);
        self.busy_ns.fetch_add(newly_busy_ns.round() as u64, Ordering::Relaxed);
    }

    /// Notes a flush.
    pub fn flushed(&self, ns: u64) {
        self.flush.add(0, 1, ns);
    }

    /// The counters so far.
    pub fn read(&self) -> DeviceCounters {
        let [read_bytes, read_requests, read_ns] = self.read.read();
        let [write_bytes, write_requests, write_ns] = self.write.read();
        let [_, flush_requests, flush_ns] = self.flush.read();
        let busy_ns = self.busy_ns.load(Ordering::Relaxed);
        DeviceCounters {
            read_bytes,
            read_requests,
            read_ns,
            write_bytes,
            write_requests,
            write_ns,
            flush_requests,
            flush_ns,
            busy_ns,
            ..DeviceCounters::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the last of `requests` ends that all arrive at once.
    fn makespan(mut servers: Servers, requests: usize, service_ns: f64) -> f64 {
        (0..requests).map(|_| servers.serve(0.0, service_ns).end_ns).fold(0.0, f64::max)
    }

    #[test]
    fn a_batch_ends_after_as_many_rounds_as_it_fills() {
        for (parallelism, requests, rounds) in [(1.0, 7, 7.0), (4.0, 8, 2.0), (4.0, 9, 3.0), (16.0, 3, 1.0)] {
            assert_eq!(makespan(Servers::new(parallelism, 1), requests, 500.0), rounds * 500.0);
        }
    }

    #[test]
    fn threads_share_the_capacity_whatever_their_number_and_alone_no_request_is_slower() {
        for threads in [1, 2, 3, 4, 5, 8, 16] {
            let mut servers = Servers::new(4.0, threads);
            assert_eq!(servers.serve(0.0, 1000.0).end_ns, 1000.0, "{threads} threads");
            // One request ends every 250 ns over all threads; the end of the last service is the only edge.
            let requests = 12_000 / threads;
            let end_ns = makespan(Servers::new(4.0, threads), requests, 1000.0);
            let ideal_ns = requests as f64 * 250.0 * threads as f64;
            assert!((end_ns - ideal_ns).abs() <= 4000.0, "{threads} threads: {end_ns} against {ideal_ns}");
        }
    }

    #[test]
    fn busy_time_is_the_union_of_services() {
        let mut servers = Servers::new(2.0, 1);
        let newly_busy: Vec<f64> =
            [0.0, 50.0, 120.0, 500.0].map(|now| servers.serve(now, 100.0).newly_busy_ns).to_vec();
        assert_eq!(newly_busy, [100.0, 50.0, 70.0, 100.0]);
    }

    #[test]
    fn a_senseless_parallelism_is_one_server() {
        for parallelism in [0.0, -3.0, f64::NAN] {
            assert_eq!(makespan(Servers::new(parallelism, 1), 3, 10.0), 30.0);
        }
    }
}
