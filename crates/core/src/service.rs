//! The service curve of a disk: how long requests of each size take. Measured by the probe, fitted by explanation, played by
//! the simulator; plain data here.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// How long a disk takes for a request of n bytes, and how many it serves side by side.
///
/// Alone: access + n * per byte. Together: `units` at a time, no more than the limits allow. A limit of 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceCurve {
    /// Time before the first byte of a random request, nanoseconds.
    pub access_ns: f64,
    /// Time for each byte, nanoseconds.
    pub per_byte_ns: f64,
    /// Requests that it serves side by side.
    pub units: u64,
    /// Requests a second at most; 0: no limit was met.
    pub most_requests_per_second: f64,
    /// Bytes a second at most; 0: no limit was met.
    pub most_bytes_per_second: f64,
    /// Positioning time of a random request over a sequential one; 0 for disks without an arm.
    pub positioning_ns: f64,
    /// Burst of the limits after a pause, in seconds of their rate; 0: they apply at every instant.
    pub burst_s: f64,
    /// Bytes that are used of it.
    pub size_bytes: u64,
    /// Root mean square of the relative errors of the fit at the sizes that were measured, per cent.
    pub residual_percent: f64,
}

impl ServiceCurve {
    /// Time of a request of this size at queue depth 1, nanoseconds.
    pub fn request_ns(&self, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        let alone = self.access_ns + bytes * self.per_byte_ns;
        let per = |most: f64, amount: f64| if most > 0.0 { amount * 1e9 / most } else { 0.0 };
        alone.max(per(self.most_requests_per_second, 1.0)).max(per(self.most_bytes_per_second, bytes))
    }

    /// Busy time for these requests and bytes at full parallelism, seconds.
    pub fn work_s(&self, requests: u64, bytes: u64) -> f64 {
        let (requests, bytes) = (requests as f64, bytes as f64);
        let served = (requests * self.access_ns + bytes * self.per_byte_ns) / 1e9 / self.units.max(1) as f64;
        let per = |most: f64, amount: f64| if most > 0.0 { amount / most } else { 0.0 };
        served.max(per(self.most_requests_per_second, requests)).max(per(self.most_bytes_per_second, bytes))
    }

    /// An equal part of a disk that several members of a stripe lie on. Where it serves fewer requests side by side than there
    /// are members, they take turns.
    #[must_use]
    pub fn part(self, members: u64) -> ServiceCurve {
        let (members, units) = (members.max(1), self.units.max(1));
        let turns = (members as f64 / units as f64).max(1.0);
        ServiceCurve {
            access_ns: self.access_ns * turns,
            per_byte_ns: self.per_byte_ns * turns,
            positioning_ns: self.positioning_ns * turns,
            units: (units / members).max(1),
            most_requests_per_second: self.most_requests_per_second / members as f64,
            most_bytes_per_second: self.most_bytes_per_second / members as f64,
            ..self
        }
    }

    /// The rate of the medium once it is positioned, bytes a second; infinite where bytes cost nothing.
    pub fn media_bytes_per_second(&self) -> f64 {
        let of_bytes = if self.per_byte_ns > 0.0 { 1e9 / self.per_byte_ns } else { f64::INFINITY };
        if self.most_bytes_per_second > 0.0 { of_bytes.min(self.most_bytes_per_second) } else { of_bytes }
    }
}

/// A disk by its curves, one for each direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskCurves {
    /// Of reads.
    pub read: ServiceCurve,
    /// Of writes; `None`: not measured, assumed to cost as much as reads.
    pub write: Option<ServiceCurve>,
}

impl DiskCurves {
    /// How long it is at work with reads and writes, requests and bytes of each, seconds.
    pub fn work_s(&self, reads: (u64, u64), writes: (u64, u64)) -> f64 {
        let write = self.write.as_ref().unwrap_or(&self.read);
        self.read.work_s(reads.0, reads.1) + write.work_s(writes.0, writes.1)
    }

    /// The same change to both curves.
    #[must_use]
    pub fn map(self, change: impl Fn(ServiceCurve) -> ServiceCurve) -> DiskCurves {
        DiskCurves { read: change(self.read), write: self.write.map(change) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_the_three_decides() {
        let curve = ServiceCurve {
            access_ns: 100_000.0,
            per_byte_ns: 1.0,
            units: 1,
            most_requests_per_second: 1000.0,
            most_bytes_per_second: 100e6,
            positioning_ns: 0.0,
            burst_s: 0.0,
            size_bytes: 1 << 30,
            residual_percent: 0.0,
        };
        assert_eq!(curve.request_ns(4096), 1e6);
        assert_eq!(curve.request_ns(1_000_000), 1e7);
        let free = ServiceCurve { most_requests_per_second: 0.0, most_bytes_per_second: 0.0, ..curve };
        assert_eq!(free.request_ns(4096), 104_096.0);
        assert_eq!(free.media_bytes_per_second(), 1e9);
        // A thousand of 4 KiB by the limit of requests, a gigabyte by that of bytes; four side by side in a quarter of the time.
        assert_eq!(curve.work_s(1000, 4_096_000), 1.0);
        assert_eq!(curve.work_s(1, 1_000_000_000), 10.0);
        assert!((ServiceCurve { units: 4, ..free }.work_s(1000, 4_096_000) - 0.026_024).abs() < 1e-9);
        let disk = DiskCurves { read: curve, write: None };
        assert_eq!(disk.work_s((1000, 0), (500, 0)), 1.5, "writes as reads");
        // Parts of a disk are together no faster than the disk, with an arm or with many units.
        for whole in [curve, free, ServiceCurve { units: 8, ..curve }, ServiceCurve { units: 9, ..free }] {
            let together = whole.part(3).work_s(1000, 4_096_000) / 3.0;
            assert!(together >= whole.work_s(1000, 4_096_000) * (1.0 - 1e-9), "{whole:?}");
            assert_eq!(whole.part(1), whole);
        }
        let slower = ServiceCurve { most_requests_per_second: 100.0, ..curve };
        assert_eq!(DiskCurves { write: Some(slower), ..disk }.work_s((1000, 0), (500, 0)), 6.0);
    }
}
