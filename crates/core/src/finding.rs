//! Findings: why a program is slow, with evidence, advice and predicted gain. The list of all causes is here; the rules are
//! in `iowhy-diagnose`.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// Calls the macro `$then` with the list of findings: variant, folder in `iowhy-diagnose`, identifier, and whether it can be
/// repaired in the I/O path. The last three describe a program without such a cause.
#[macro_export]
macro_rules! with_findings {
    ($then:ident) => {
        $then! {
            /// Many calls for few bytes: the calls cost more than the bytes.
            SmallRequests, small_requests, "small-requests", true;
            /// Each record is made durable by itself.
            SyncPerWrite, sync_per_write, "sync-per-write", true;
            /// One request at a time to a device.
            QueueDepthOne, queue_depth_one, "queue-depth-one", true;
            /// Sequential reads without read-ahead.
            NoReadahead, no_readahead, "no-readahead", true;
            /// Read-ahead fetches bytes that are never used.
            ReadaheadWaste, readahead_waste, "readahead-waste", true;
            /// Time in page faults on mapped files.
            MmapFaults, mmap_faults, "mmap-faults", true;
            /// Memory is allocated, zeroed and freed for each request.
            FreshBuffers, fresh_buffers, "fresh-buffers", true;
            /// Threads wait for the lock of the address space.
            MmapLock, mmap_lock, "mmap-lock", true;
            /// Threads wait for the lock of one inode.
            InodeLock, inode_lock, "inode-lock", true;
            /// Processes or threads wait for a lock on a file.
            FileLock, file_lock, "file-lock", true;
            /// Removing, truncating or replacing files waits for the device.
            ReplacedFiles, replaced_files, "replaced-files", true;
            /// The same file is written whole again and again.
            RewrittenFiles, rewritten_files, "rewritten-files", true;
            /// Opening, examining and closing files costs more than their bytes.
            ManySmallFiles, many_small_files, "many-small-files", true;
            /// Files are copied into the writable layer of an overlay before they change.
            CopyUp, copy_up, "copy-up", true;
            /// Most look-ups are of names that do not exist.
            FailedLookups, failed_lookups, "failed-lookups", true;
            /// The same program is started again and again.
            ProcessStarts, process_starts, "process-starts", true;
            /// The kernel pauses the writer until dirty pages are written back.
            DirtyThrottle, dirty_throttle, "dirty-throttle", true;
            /// Copying between kernel and program dominates.
            CopyBound, copy_bound, "copy-bound", true;
            /// The device serves the same bytes repeatedly.
            CacheThrash, cache_thrash, "cache-thrash", true;
            /// The same bytes are read from the cache again and again.
            RepeatedReads, repeated_reads, "repeated-reads", true;
            /// Most of what is read are holes of sparse files.
            ReadsOfHoles, reads_of_holes, "reads-of-holes", true;
            /// Writes of parts of blocks, which must be read first.
            UnalignedWrite, unaligned_write, "unaligned-write", true;
            /// The device is at its limit.
            DeviceSaturated, device_saturated, "device-saturated", true;
            /// Other processes use the device or the CPU.
            NoisyNeighbour, noisy_neighbour, "noisy-neighbour", true;
            /// A configured limit holds the program back.
            Throttled, throttled, "throttled", true;
            /// Each seek discards the buffer of the I/O library.
            StdioSeek, stdio_seek, "stdio-seek", true;
            /// Waiting for a file system that another machine or a user-space program serves.
            ServerBound, server_bound, "server-bound", true;
            /// Look-ups of names that each wait for the server of a file system.
            RemoteMetadata, remote_metadata, "remote-metadata", true;
            /// Page faults of a mapping that each wait for the server of a file system.
            MappedOverNetwork, mapped_over_network, "mapped-over-network", true;
            /// Memory is short: pages are freed, swapped in, or read again while the program waits.
            MemoryPressure, memory_pressure, "memory-pressure", true;
            /// The program's own computing.
            CpuBound, cpu_bound, "cpu-bound", false;
            /// Waiting for something other than storage.
            WaitingElsewhere, waiting_elsewhere, "waiting-elsewhere", false;
            /// No change to the I/O path would help.
            Healthy, healthy, "healthy", false;
        }
    };
}

macro_rules! finding_ids {
    ($($(#[$doc:meta])+ $variant:ident, $folder:ident, $id:literal, $repairable:literal;)+) => {
        /// The fixed vocabulary of causes. Identifiers are part of the output format and never change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum FindingId {
            $($(#[$doc])+ #[serde(rename = $id)] $variant,)+
        }

        impl FindingId {
            /// All of them, in the order of the list.
            pub const ALL: &[FindingId] = &[$(FindingId::$variant),+];

            /// The stable identifier.
            pub fn id(self) -> &'static str {
                match self {
                    $(FindingId::$variant => $id,)+
                }
            }

            /// Whether it names something that can be repaired in the I/O path.
            pub fn is_repairable(self) -> bool {
                match self {
                    $(FindingId::$variant => $repairable,)+
                }
            }
        }
    };
}

with_findings!(finding_ids);

/// Old wall time over new wall time with a change: what a [`Prediction`] leaves, as a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// The most likely value.
    pub predicted: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the interval is open above: nearly all of the run may go away, and the remainder is unknown.
    #[serde(default)]
    pub open_above: bool,
}

impl Gain {
    /// The greatest gain that is told as a number. It leaves 0.8 % of a run for start, end and the bytes themselves,
    /// whose time was not visible. Repaired cases of the purest causes keep 0.2 to 1 %.
    pub const MAX: f64 = 125.0;

    /// The gain that leaves these shares of the wall time, 0 to 1: the likely one, the least and the most. At most
    /// [`Gain::MAX`], and open above where the upper end would be greater.
    pub fn from_remaining(likely: f64, least: f64, most: f64) -> Gain {
        let gain = |left: f64| 1.0 / left.max(1.0 / Gain::MAX);
        let open_above = least <= 1.0 / Gain::MAX;
        Gain { predicted: gain(likely), low: gain(most), high: gain(least), open_above }
    }

    /// The bound of a gain: all that could be taken away of this wall time is gone. `None`: nearly all of it could.
    pub fn at_most(wall_ns: f64, removable_ns: f64) -> Option<f64> {
        let left = if wall_ns > 0.0 { (1.0 - removable_ns / wall_ns).min(1.0) } else { 1.0 };
        (left > 1.0 / Gain::MAX).then(|| 1.0 / left)
    }

    /// Whether a measured gain, with the interval `low` to `high`, agrees with the prediction.
    pub fn meets(&self, low: f64, high: f64) -> bool {
        low <= high && high >= self.low && (self.open_above || low <= self.high)
    }
}

/// What a change leaves of the wall time. Where calls become others, a part of the run's own calls was repeated on this machine, without
/// and with the change, in turn; where calls need not be made at all, the account of the run tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// The change, in a few words.
    pub how: String,
    /// Wall time that remains of the run. Its short end is the time without any of the program's own code around calls that go
    /// away; how much of that code goes with them is in no call. Where nothing was repeated, no value between the ends is likelier than another:
    /// the one given is their geometric mean, and screens leave it out.
    pub remaining: Estimate,
    /// Wall time of the run without the observer, in nanoseconds.
    pub wall_ns: f64,
    /// What was repeated for it; absent where the calls need not be made, so that the account of the run tells what goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<RepeatedCalls>,
    /// The same change in other sizes, where its user chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<PredictedChoice>,
    /// What was assumed of the repeated calls, and what they leave out, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Calls of a run that were repeated for a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedCalls {
    /// Calls of one repetition.
    pub calls: u64,
    /// Time of the repeated calls over the time that they took in the program; 1 is the same.
    pub fidelity: Estimate,
}

/// One size of a change, or one way to make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedChoice {
    /// Which, in a few words: `10 records`, `from start to end`.
    pub size: String,
    /// As [`Prediction::remaining`].
    pub remaining: Estimate,
}

impl Prediction {
    /// The gain of a run of this wall time.
    pub fn gain(&self, wall_ns: f64) -> Gain {
        let Estimate { value, low, high, .. } = self.remaining;
        Gain::from_remaining(value / wall_ns, low / wall_ns, high / wall_ns)
    }
}

/// What a server sends to its clients, and how often it could without the cause of a finding: of the threads that a cause delays, those
/// that also read from, write to or wait for sockets answer, and each of their turns is shorter without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replies {
    /// Calls that wrote to a connection which the program had accepted, and succeeded, counted; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The same in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// Accepted connections that were read from and written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Part of the time of the answering threads in which they wait for a socket, 0 to 1.
    pub idle_share: f64,
    /// The rate if none of this time is spent any more by the answering threads, nor waited for by them, and each peer sends as soon as
    /// it is answered. Its interval holds the error of samples, what cannot be known of waits for each other, whether the CPU time of
    /// other processes grows with the replies, and, where its
    /// eighths were seen, how much the pace varied over the watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_cause: Option<ReplyRate>,
    /// The same with the change of the calibrated prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_change: Option<ReplyRate>,
    /// Why there is no rate, as the end of a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_known: Option<String>,
}

/// A predicted rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyRate {
    /// In a second; `n` is the number of sleeps and samples that it rests on.
    pub per_second: Estimate,
    /// What it cannot exceed.
    pub limit: ReplyLimit,
}

/// What limits a rate of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyLimit {
    /// What the answering threads still do, and wait for, between two replies.
    Threads,
    /// CPU time of the program and, as far as it grows with the replies, of other processes.
    Cpus,
}

/// Advice in the terms of a well-known program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramAdvice {
    /// The program, library or run-time system: `PostgreSQL`.
    pub program: String,
    /// The fact by which it was recognised: "executable `postgres`".
    pub recognised_by: String,
    /// Changes that act on this cause, the first one first to try.
    pub changes: Vec<ProgramChange>,
}

/// One change to a program, with its cost and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramChange {
    /// What has to be changed.
    pub kind: ChangeKind,
    /// What to type, and where.
    pub change: String,
    /// What it costs, in half a sentence.
    pub cost: String,
    /// What a power failure loses that it did not lose before, and for how long; absent where durability is not affected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_failure: Option<String>,
    /// Defaults, versions and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Title of the documentation.
    pub source_title: String,
    /// Its address.
    pub source_url: String,
}

impl ProgramChange {
    /// What to do and what it costs: one line of a screen, never shortened.
    pub fn line(&self) -> String {
        format!("{}. Cost: {}.", self.change, self.cost)
    }
}

/// What has to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A setting of the program, its service or its data.
    Setting,
    /// An option on its command line, or a variable of its environment.
    Option,
    /// What its clients send.
    Statement,
    /// Code that uses it.
    Code,
}

impl ChangeKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            ChangeKind::Setting => "setting only",
            ChangeKind::Option => "option only",
            ChangeKind::Statement => "change of what clients send",
            ChangeKind::Code => "change of code",
        }
    }
}

/// One cause of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The cause.
    pub id: FindingId,
    /// Part of the wall time that the cause takes, 0 to 1.
    pub share: f64,
    /// The cause in one sentence.
    pub sentence: String,
    /// Measured facts, one sentence each, with numbers.
    pub evidence: Vec<String>,
    /// The change to make; for a finding that is no fault, what to know.
    pub advice: String,
    /// The same in the terms of the well-known program that has this cause; absent where none was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_program: Option<ProgramAdvice>,
    /// The gain of the change by its prediction; absent where there is none.
    pub gain: Option<Gain>,
    /// Old wall time over new without all the time in calls, faults and waits that the account gives to what the change could take
    /// away, by the upper end of samples, and with the rest unchanged (Amdahl's law). No prediction: a change that also spares
    /// the program's own code can gain more. Absent where nearly all of the run could go, or the account does not tell.
    #[serde(default)]
    pub gain_rest_unchanged: Option<f64>,
    /// The prediction behind the gain; absent where nothing was repeated, and the account does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
    /// Why nothing was repeated for this finding, as the end of a sentence; absent where that was not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_calibrated: Option<String>,
    /// The rate of replies of a server, now and without the cause; absent where no thread that the cause delays uses sockets, and where
    /// the program has no clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<Replies>,
    /// No cause was found, but there may be one: the run waits for storage, was partly unseen, or was too short. `healthy`
    /// would claim more than is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

impl Finding {
    /// Its heading: the identifier, unless that claims more than is known.
    pub fn title(&self) -> &'static str {
        if self.undecided { "no cause found" } else { self.id.id() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_equal_to_their_json() {
        let mut ids: Vec<&str> = FindingId::ALL.iter().map(|f| f.id()).collect();
        for f in FindingId::ALL {
            assert_eq!(serde_json::to_string(f).unwrap(), format!("\"{}\"", f.id()));
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), FindingId::ALL.len());
    }

    #[test]
    fn half_of_the_wall_time_is_twice_the_speed() {
        let gain = Gain::from_remaining(0.5, 0.2, 1.0);
        assert_eq!((gain.low, gain.predicted), (1.0, 2.0));
        assert!((gain.high - 5.0).abs() < 1e-9 && !gain.open_above);
        assert!(gain.meets(4.0, 6.0) && !gain.meets(5.5, 6.0) && !gain.meets(0.5, 0.9));
    }

    #[test]
    fn a_bound_is_what_is_left_without_all_that_could_go() {
        assert_eq!(Gain::at_most(10.0, 5.0), Some(2.0));
        assert_eq!([Gain::at_most(10.0, 9.95), Gain::at_most(10.0, 12.0)], [None, None]);
        assert_eq!([Gain::at_most(10.0, 0.0), Gain::at_most(0.0, 0.0)], [Some(1.0), Some(1.0)]);
    }

    #[test]
    fn the_interval_is_open_above_where_nearly_all_may_go() {
        let gain = Gain::from_remaining(0.1, 0.0, 0.5);
        assert_eq!((gain.high, gain.open_above), (Gain::MAX, true));
        assert!(gain.meets(300.0, 400.0) && !gain.meets(1.0, 1.9));
    }
}
