//! Causes: why a program is slow, with evidence, advice, and what following the advice would gain.

use serde::{Deserialize, Serialize};

macro_rules! finding_ids {
    ($($(#[doc = $doc:literal])+ $variant:ident = $id:literal,)+) => {
        /// The fixed vocabulary of causes. Identifiers are part of the output format and never change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum FindingId {
            $($(#[doc = $doc])+ #[serde(rename = $id)] $variant,)+
        }

        impl FindingId {
            /// All of them, in the order of the design.
            pub const ALL: &[FindingId] = &[$(FindingId::$variant),+];

            /// The stable identifier.
            pub fn id(self) -> &'static str {
                match self {
                    $(FindingId::$variant => $id,)+
                }
            }
        }
    };
}

finding_ids! {
    /// Many calls for few bytes: the cost of the call, not of the bytes.
    SmallRequests = "small-requests",
    /// Each record is made durable by itself.
    SyncPerWrite = "sync-per-write",
    /// One request at a time to a device that could serve several.
    QueueDepthOne = "queue-depth-one",
    /// Sequential reads that are not read ahead.
    NoReadahead = "no-readahead",
    /// Read-ahead fetches bytes that are never read.
    ReadaheadWaste = "readahead-waste",
    /// Time in page faults on mapped files.
    MmapFaults = "mmap-faults",
    /// Memory is mapped, zeroed and unmapped for each request.
    FreshBuffers = "fresh-buffers",
    /// Threads wait for each other's changes to the address space.
    MmapLock = "mmap-lock",
    /// Threads wait for the lock of one inode.
    InodeLock = "inode-lock",
    /// Opening, examining and closing files costs more than their bytes.
    ManySmallFiles = "many-small-files",
    /// The kernel makes the writer pause until dirty pages are written back.
    DirtyThrottle = "dirty-throttle",
    /// Moving bytes between kernel and program is the cost.
    CopyBound = "copy-bound",
    /// The same bytes come from the device again and again.
    CacheThrash = "cache-thrash",
    /// Writes of parts of blocks that must be read first.
    UnalignedWrite = "unaligned-write",
    /// The device does all it can.
    DeviceSaturated = "device-saturated",
    /// Others use the device or the CPU.
    NoisyNeighbour = "noisy-neighbour",
    /// A configured limit holds the program back.
    Throttled = "throttled",
    /// Seeking throws the buffer of the I/O library away.
    StdioSeek = "stdio-seek",
    /// The program's own computing.
    CpuBound = "cpu-bound",
    /// Waiting for something that is not storage.
    WaitingElsewhere = "waiting-elsewhere",
    /// Nothing in the I/O path would help.
    Healthy = "healthy",
}

impl FindingId {
    /// Whether it names something that can be repaired in the I/O path. The last three describe a program that has no
    /// such cause.
    pub fn is_repairable(self) -> bool {
        !matches!(self, FindingId::CpuBound | FindingId::WaitingElsewhere | FindingId::Healthy)
    }
}

/// Old wall time over new wall time, were the advice followed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The most likely value.
    pub predicted: f64,
    /// Lower end of the interval: the gain of a poor repair.
    pub low: f64,
    /// Upper end: the gain of removing the whole cost.
    pub high: f64,
    /// Whether the interval is open above: nearly all of the run may go away, and the remainder is unknown.
    #[serde(default)]
    pub open_above: bool,
}

impl Gain {
    /// The greatest gain that is foretold as a number. A gain of 125 leaves 0.8 % of a run: starting, ending, and the
    /// bytes themselves remain, and how long they take was hidden in what went away. Of the labelled programs, those with
    /// the purest causes keep 0.2 to 1 % when they are repaired.
    pub const GREATEST: f64 = 125.0;

    /// The gain from saving part of the wall time. At least 1, at most [`Gain::GREATEST`], and open above where the
    /// upper end would be greater.
    pub fn from_savings(wall: f64, low: f64, predicted: f64, high: f64) -> Gain {
        let least = 1.0 / Gain::GREATEST;
        let left = |saved: f64| (1.0 - saved / wall).clamp(least, 1.0);
        let gain = |saved: f64| 1.0 / left(saved);
        Gain { predicted: gain(predicted), low: gain(low), high: gain(high), open_above: left(high) <= least }
    }

    /// Whether a gain that was measured lies within the interval; `low` and `high` are the ends of its own.
    pub fn meets(&self, low: f64, high: f64) -> bool {
        low <= high && high >= self.low && (self.open_above || low <= self.high)
    }
}

/// One cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which.
    pub id: FindingId,
    /// Part of the wall time that the cause costs, 0 to 1.
    pub share: f64,
    /// The cause in one sentence, for people.
    pub sentence: String,
    /// Measured facts it rests on, one sentence each, with numbers.
    pub evidence: Vec<String>,
    /// The change to make; for a finding that is no fault, a fact to know.
    pub advice: String,
    /// Predicted gain; `None`: no prediction.
    pub gain: Option<Gain>,
    /// Whether it says only that no cause was found where there may well be one: of a run that waits for storage, of which
    /// much was not seen, or that was too short. `healthy` alone would claim more than is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

impl Finding {
    /// Its name for people: the identifier, unless that claims more than is known.
    pub fn title(&self) -> &'static str {
        if self.undecided { "no cause found" } else { self.id.id() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_what_json_says_and_unique() {
        let mut ids: Vec<&str> = FindingId::ALL.iter().map(|f| f.id()).collect();
        for f in FindingId::ALL {
            assert_eq!(serde_json::to_string(f).unwrap(), format!("\"{}\"", f.id()));
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 21);
    }

    #[test]
    fn saving_half_of_the_wall_time_doubles_the_speed() {
        let gain = Gain::from_savings(10.0, 0.0, 5.0, 8.0);
        assert_eq!((gain.low, gain.predicted), (1.0, 2.0));
        assert!((gain.high - 5.0).abs() < 1e-9 && !gain.open_above);
        assert!(gain.meets(4.0, 6.0) && !gain.meets(5.5, 6.0) && !gain.meets(0.5, 0.9));
    }

    #[test]
    fn who_may_save_nearly_all_is_told_no_upper_end() {
        let gain = Gain::from_savings(10.0, 5.0, 9.0, 10.0);
        assert_eq!((gain.high, gain.open_above), (Gain::GREATEST, true));
        assert!(gain.meets(300.0, 400.0) && !gain.meets(1.0, 1.9));
    }
}
