//! The model that `--save-model` writes: costs of layers, and what was measured of requests and device that is not linear. The
//! simulator runs on it.

use serde::{Deserialize, Serialize};

use crate::model::{Cost, StackModel};

/// A stack model with what a simulator needs beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedModel {
    /// Costs of layers.
    #[serde(flatten)]
    pub stack: StackModel,
    /// What no cost of a layer says; absent in models that were written by hand.
    #[serde(default)]
    pub measured: Measured,
}

/// Measurements of requests in other sizes and depths than those that they predict. What is 0 or empty was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Time between two requests of a page that the device keeps up however many are in flight, in nanoseconds.
    pub request_gap_ns: f64,
    /// What requests in flight share once: with n of them, each takes this over n longer than the gap.
    pub batch_ns: f64,
    /// Bytes a second of sequential reads whose read-ahead keeps the device at work.
    pub sequential_bytes_per_second: f64,
    /// CPU time that a cached read takes beyond `call` and `filesystem`, by its size, smallest first.
    pub cached: Vec<SizedCost>,
    /// Direct writes.
    pub direct_write: Option<WriteCost>,
}

/// A cost at a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizedCost {
    /// Bytes of a request.
    pub bytes: u64,
    /// Nanoseconds.
    pub ns: f64,
}

/// What a direct write costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteCost {
    /// CPU time of the block layer.
    pub block: Cost,
    /// Waiting for the device.
    pub device: Cost,
}

/// The cost at a size on the line through the two points around it; beyond the first and the last, on that through the next two.
/// `None` below two points.
pub fn cost_at(points: &[SizedCost], bytes: u64) -> Option<f64> {
    let next = points.partition_point(|point| point.bytes < bytes).clamp(1, points.len().max(2) - 1);
    let (a, b) = (points.get(next - 1)?, points.get(next)?);
    let slope = (b.ns - a.ns) / (b.bytes as f64 - a.bytes as f64);
    Some(a.ns + slope * (bytes as f64 - a.bytes as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_lie_on_the_lines_between_points() {
        let points =
            [(1, 100.0), (4096, 300.0), (1 << 20, 40_000.0)].map(|(bytes, ns)| SizedCost { bytes, ns });
        let at = |bytes| cost_at(&points, bytes).unwrap();
        assert_eq!((at(1), at(4096), at(1 << 20)), (100.0, 300.0, 40_000.0));
        assert!((at(2048) - 200.0).abs() < 0.1);
        // Beyond the last point.
        let slope = 39_700.0 / f64::from((1 << 20) - 4096);
        assert!((at(2 << 20) - 40_000.0 - slope * f64::from(1 << 20)).abs() < 1e-6);
        assert!(at(0) < 100.0);
        assert_eq!((cost_at(&points[..1], 5), cost_at(&[], 5)), (None, None));
    }
}
