//! Who the limit is: the fixed vocabulary of verdicts on a path.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// The limit of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitId {
    /// All CPUs this process may use are busy.
    Cpu,
    /// One thread's CPU time: a second thread would add throughput.
    OneThread,
    /// Too few requests in flight: the device waits for us.
    Depth,
    /// Moving bytes between kernel and user memory.
    CopyBandwidth,
    /// The device (or its substitute) is saturated.
    Device,
    /// A configured or metered limit cuts off the rate.
    Throttle,
    /// The evidence does not decide.
    Unknown,
}

impl LimitId {
    /// All limits.
    pub const ALL: [LimitId; 7] = [
        LimitId::Cpu,
        LimitId::OneThread,
        LimitId::Depth,
        LimitId::CopyBandwidth,
        LimitId::Device,
        LimitId::Throttle,
        LimitId::Unknown,
    ];

    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            LimitId::Cpu => "cpu",
            LimitId::OneThread => "one-thread",
            LimitId::Depth => "depth",
            LimitId::CopyBandwidth => "copy-bandwidth",
            LimitId::Device => "device",
            LimitId::Throttle => "throttle",
            LimitId::Unknown => "unknown",
        }
    }
}

/// A verdict with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Which limit.
    pub id: LimitId,
    /// The verdict in one sentence for people.
    pub sentence: String,
    /// Measured facts it rests on, one sentence each, with numbers.
    pub evidence: Vec<String>,
}
