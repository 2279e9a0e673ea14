//! Published rules of thumb for the interleave. They are printed beside a simulation, never instead of it: each was fitted to
//! one kind of array and load. P: mean positioning time; X: rate of the medium; L: requests outstanding; N: disks.
//!
//! Both weigh splitting of large requests against spreading of concurrent ones; with requests below the unit neither matters.

use iowhy_core::service::ServiceCurve;
use iowhy_sim::workload::Workload;

/// A published rule and what it gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Stable identifier.
    pub id: &'static str,
    /// Authors and formula.
    pub name: &'static str,
    /// In whole sectors; `None` where an input is not known.
    pub interleave_bytes: Option<f64>,
}

/// The rules for stripes of `disks` disks with this curve. A trace has no queue depth and no request size to enter.
pub fn published(curve: &ServiceCurve, workload: Option<&Workload>, disks: usize) -> [Rule; 3] {
    let (outstanding, request_bytes) = match workload {
        Some(workload) => (f64::from(workload.clients), workload.request_bytes() as f64),
        None => (f64::NAN, f64::NAN),
    };
    let positioning_ns = match curve.access_ns {
        // The rate limit of a throttled disk stands for its access time.
        ns if ns > 0.0 && curve.burst_s == 0.0 => ns,
        _ if curve.most_requests_per_second > 0.0 => 1e9 / curve.most_requests_per_second,
        _ => 0.0,
    };
    let inputs = Inputs {
        positioning_s: positioning_ns / 1e9,
        bytes_per_second: curve.media_bytes_per_second(),
        outstanding,
        request_bytes,
        disks: disks as f64,
    };
    let unknown = Inputs { outstanding: 1.0, ..inputs };
    let rule = |id, name, bytes: Option<f64>| Rule {
        id,
        name,
        interleave_bytes: bytes.map(|bytes| (bytes / SECTOR).round().max(1.0) * SECTOR),
    };
    [
        rule(
            "chen-patterson",
            "Chen, Patterson 1990: S P X (L - 1) + 0.5 KB, S = 1/4",
            chen_patterson(&inputs),
        ),
        rule(
            "chen-patterson-unknown",
            "the same, concurrency unknown: 2/3 P X",
            chen_patterson_unknown(&unknown),
        ),
        rule("lee-katz", "Lee, Katz 1991: sqrt(P X (L - 1) request / N)", lee_katz(&inputs)),
    ]
}

const SECTOR: f64 = crate::lint::SECTOR_BYTES as f64;

/// Inputs of the rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inputs {
    /// Mean time to position (seek and turn), seconds.
    pub positioning_s: f64,
    /// Bytes a second of one disk once it is positioned.
    pub bytes_per_second: f64,
    /// Requests outstanding at the array.
    pub outstanding: f64,
    /// Bytes of a request.
    pub request_bytes: f64,
    /// Disks.
    pub disks: f64,
}

/// Chen and Patterson's slope, fitted for 16 disks.
const CHEN_PATTERSON_SLOPE: f64 = 0.25;
/// Their factor where the concurrency is not known.
const CHEN_PATTERSON_UNKNOWN: f64 = 2.0 / 3.0;

/// P. Chen, D. Patterson: Maximizing Performance in a Striped Disk Array (ISCA 1990; UCB/CSD-90-559):
/// unit = S * P * X * (L - 1) + 0.5 KB, S about 1/4, fitted for 16 disks; bytes. `None` when an input is not positive.
pub(crate) fn chen_patterson(inputs: &Inputs) -> Option<f64> {
    let product = product(inputs)?;
    Some(CHEN_PATTERSON_SLOPE * product * (inputs.outstanding - 1.0).max(0.0) + 512.0)
}

/// Chen and Patterson 1990 with unknown concurrency: Z * P * X, Z about 2/3; bytes.
pub(crate) fn chen_patterson_unknown(inputs: &Inputs) -> Option<f64> {
    Some(CHEN_PATTERSON_UNKNOWN * product(inputs)?)
}

/// E. Lee, R. Katz: An Analytic Performance Model of Disk Arrays and its Applications (UCB/CSD-91-660; SIGMETRICS 1993):
/// unit = sqrt(P * X * (L - 1) * request / N); bytes. `None` also for one request at a time, where the rule gives nothing.
pub(crate) fn lee_katz(inputs: &Inputs) -> Option<f64> {
    let product = product(inputs)?;
    let unit = (product * (inputs.outstanding - 1.0) * inputs.request_bytes / inputs.disks).sqrt();
    (unit.is_finite() && unit > 0.0).then_some(unit)
}

/// P * X: bytes that pass in the time of a positioning.
fn product(inputs: &Inputs) -> Option<f64> {
    let known = [inputs.positioning_s, inputs.bytes_per_second, inputs.outstanding, inputs.disks];
    known
        .iter()
        .all(|value| value.is_finite() && *value > 0.0)
        .then_some(inputs.positioning_s * inputs.bytes_per_second)
}
