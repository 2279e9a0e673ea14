//! The service curve of a disk: how long requests of each size take. Measured by the probe, fitted by explanation, played by
//! the simulator; plain data here.

use serde::{Deserialize, Serialize};

/// How long a disk takes for a request of n bytes, and how many it serves side by side.
///
/// Alone: access + n * per byte. Together: `units` at a time, no more than the limits allow. A limit of 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceCurve {
    /// Time before the first byte of a request by chance, nanoseconds.
    pub access_ns: f64,
    /// Time for each byte, nanoseconds.
    pub per_byte_ns: f64,
    /// Requests that it serves side by side.
    pub units: u64,
    /// Requests a second at most; 0: no limit was met.
    pub most_requests_per_second: f64,
    /// Bytes a second at most; 0: no limit was met.
    pub most_bytes_per_second: f64,
    /// Time to position before a request by chance that a request in order does not need; 0 for disks without an arm.
    pub positioning_ns: f64,
    /// Limits let so many seconds' worth through at once after a pause; 0: they hold at every instant.
    pub burst_s: f64,
    /// Bytes that are used of it.
    pub size_bytes: u64,
    /// Root mean square of the relative errors of the fit at the sizes that were measured, per cent.
    pub residual_percent: f64,
}

impl ServiceCurve {
    /// What a request of this size takes on an idle disk, request after request, nanoseconds.
    pub fn request_ns(&self, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        let alone = self.access_ns + bytes * self.per_byte_ns;
        let per = |most: f64, amount: f64| if most > 0.0 { amount * 1e9 / most } else { 0.0 };
        alone.max(per(self.most_requests_per_second, 1.0)).max(per(self.most_bytes_per_second, bytes))
    }

    /// The rate of the medium once it is positioned, bytes a second; infinite where bytes cost nothing.
    pub fn media_bytes_per_second(&self) -> f64 {
        let of_bytes = if self.per_byte_ns > 0.0 { 1e9 / self.per_byte_ns } else { f64::INFINITY };
        if self.most_bytes_per_second > 0.0 { of_bytes.min(self.most_bytes_per_second) } else { of_bytes }
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
    }
}
