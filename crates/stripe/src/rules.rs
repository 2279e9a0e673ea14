//! Rules of thumb for the interleave, as published. They are printed beside a simulation, never instead of it: each was
//! fitted to one kind of array and load.
//!
//! - P. Chen, D. Patterson: Maximizing Performance in a Striped Disk Array (ISCA 1990; UCB/CSD-90-559):
//!   unit = S * P * X * (L - 1) + 0.5 KB with S about 1/4, fitted for 16 disks; when the concurrency L is not known,
//!   Z * P * X with Z about 2/3.
//! - E. Lee, R. Katz: An Analytic Performance Model of Disk Arrays and its Applications (UCB/CSD-91-660; SIGMETRICS 1993):
//!   unit = sqrt(P * X * (L - 1) * request / N).
//!
//! P is the mean positioning time, X the rate of the medium, L the requests outstanding, N the disks. What both weigh is the
//! splitting of large requests against the spreading of concurrent ones: where no request is larger than the unit, neither
//! acts.

/// What the rules ask for.
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
pub const CHEN_PATTERSON_SLOPE: f64 = 0.25;
/// Their factor where the concurrency is not known.
pub const CHEN_PATTERSON_UNKNOWN: f64 = 2.0 / 3.0;

/// Chen and Patterson 1990, with the concurrency known; bytes. `None` when an input is no positive number.
pub fn chen_patterson(inputs: &Inputs) -> Option<f64> {
    let product = product(inputs)?;
    Some(CHEN_PATTERSON_SLOPE * product * (inputs.outstanding - 1.0).max(0.0) + 512.0)
}

/// Chen and Patterson 1990, with the concurrency unknown; bytes.
pub fn chen_patterson_unknown(inputs: &Inputs) -> Option<f64> {
    Some(CHEN_PATTERSON_UNKNOWN * product(inputs)?)
}

/// Lee and Katz 1991; bytes. `None` also for one request at a time, where the rule gives nothing.
pub fn lee_katz(inputs: &Inputs) -> Option<f64> {
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
