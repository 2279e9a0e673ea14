//! Result of a run: time, throughput, latencies, the ledger, and how each device was used. Plain data.

use iowhy_core::histogram::Histogram;
use iowhy_core::request::Request;

use crate::ledger::{Parts, Service};

/// One finished request with its ledger.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// The request.
    pub request: Request,
    /// When.
    pub begun_ns: u64,
    /// When it was answered.
    pub ended_ns: u64,
    /// Where the time between went; sums to it.
    pub parts: Parts,
}

impl Finished {
    /// From issue to completion.
    pub fn latency_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }
}

/// How a device was used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceUse {
    /// Commands that arrived.
    pub arrived: u64,
    /// Commands that were done.
    pub done: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Of the commands that were done, those that wrote.
    pub writes: u64,
    /// Bytes of those.
    pub written_bytes: u64,
    /// Time of its units at work, summed over units.
    pub busy_ns: u64,
    /// That time by part, summed over commands.
    pub work: Service,
    /// How many work side by side.
    pub units: u64,
    /// Sum over commands of the time from arrival to end.
    pub resident_ns: u128,
    /// Number of commands present, integrated over time.
    pub present_area_ns: u128,
    /// The most that were present.
    pub most_present: u64,
}

impl DeviceUse {
    /// Share of the time that a unit is at work, the mean of its units.
    pub fn utilisation(&self, over_ns: u64) -> f64 {
        let all = over_ns as f64 * self.units.max(1) as f64;
        if all > 0.0 { self.busy_ns as f64 / all } else { 0.0 }
    }
}

/// How the cache was used, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Blocks that requests needed.
    pub lookups: u64,
    /// Of those, there.
    pub hits: u64,
    /// Of those, on their way.
    pub coming: u64,
    /// Blocks fetched on demand.
    pub fetched: u64,
    /// Blocks fetched ahead.
    pub ahead: u64,
    /// Looked up in the pool of mapped buffers.
    pub pool_lookups: u64,
    /// Of those, mapped already.
    pub pool_hits: u64,
    /// Bytes written back.
    pub written_back: u64,
    /// Bytes still dirty at the end.
    pub left_dirty: u64,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the start to the end of the last request.
    pub time_ns: u64,
    /// Until the last device was idle: read-ahead and write-back may outlast the last request.
    pub settled_ns: u64,
    /// Requests that were issued.
    pub issued: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Latencies.
    pub latency: Histogram,
    /// Sum over requests of latencies, exact.
    pub latency_sum_ns: u128,
    /// Where the time went, summed over requests, and over pauses of clients.
    pub ledger: Parts,
    /// Sum over clients of their time from start to end (open arrivals: sum of latencies); the ledger must sum to it.
    pub client_time_ns: u128,
    /// Requests whose parts did not sum to their latency: none, or the simulator is wrong.
    pub open_ledgers: u64,
    /// The slowest request.
    pub slowest: Option<Finished>,
    /// The devices.
    pub devices: Vec<DeviceUse>,
    /// Time that the bus was at work.
    pub bus_busy_ns: u64,
    /// Time that CPUs were at work, summed over them.
    pub cpu_busy_ns: u64,
    /// CPUs; `None`: as many as there are requests.
    pub cpus: Option<u64>,
    /// The cache; `None`: there is none, or nothing passed it.
    pub cache: Option<CacheUse>,
    /// Bytes of commands to the volume (a mirror's copies counted).
    pub volume_bytes: u64,
    /// Adaptations of the load, in words.
    pub remarks: Vec<String>,
}

impl Outcome {
    /// Requests a second; 0 when no time passed.
    pub fn requests_per_second(&self) -> f64 {
        per_second(self.requests, self.time_ns)
    }

    /// Bytes a second; 0 when no time passed.
    pub fn bytes_per_second(&self) -> f64 {
        per_second(self.bytes, self.time_ns)
    }

    /// Share of the needed blocks that were fetched, blocks in flight included. `None` without a cache.
    pub fn miss_ratio(&self) -> Option<f64> {
        let cache = self.cache.filter(|cache| cache.lookups > 0)?;
        Some(1.0 - cache.hits as f64 / cache.lookups as f64)
    }

    /// Share of look-ups that found their buffer mapped. `None` without a pool.
    pub fn pool_reuse(&self) -> Option<f64> {
        let cache = self.cache.filter(|cache| cache.pool_lookups > 0)?;
        Some(cache.pool_hits as f64 / cache.pool_lookups as f64)
    }
}

fn per_second(amount: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { amount as f64 * 1e9 / ns as f64 }
}
