//! A number that may be printed: value, interval, unit and n.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// The unit of an [`Estimate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Bytes per second.
    #[serde(rename = "bytes/s")]
    BytesPerSecond,
    /// Requests per second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Nanoseconds per byte.
    #[serde(rename = "ns/byte")]
    NanosecondsPerByte,
    /// A plain ratio.
    #[serde(rename = "ratio")]
    Ratio,
}

/// A measured or derived value with its 95 % interval. (Of 3 or 4 rounds the interval is their full range, which
/// holds the true median less often: see [`bootstrap_median`](crate::stats::bootstrap_median).)
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The point estimate (a median unless said otherwise).
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// The unit of all three.
    pub unit: Unit,
    /// How many independent rounds (not requests) it rests on.
    pub n: u64,
}

impl Estimate {
    /// The longer arm of the interval relative to the value, as it is printed behind `±`; infinite when the value is
    /// zero.
    pub fn relative_arm(&self) -> f64 {
        let longer = (self.value - self.low).max(self.high - self.value);
        if self.value == 0.0 { f64::INFINITY } else { longer / self.value.abs() }
    }

    /// The same estimate seen through `numerator / value`, as a time per request becomes a rate.
    /// The interval's ends swap, which is right for intervals above 0; from a lower end of 0 comes an upper
    /// end of infinity, which JSON cannot hold.
    pub fn reciprocal(&self, numerator: f64, unit: Unit) -> Estimate {
        Estimate {
            value: numerator / self.value,
            low: numerator / self.high,
            high: numerator / self.low,
            unit,
            n: self.n,
        }
    }
}
