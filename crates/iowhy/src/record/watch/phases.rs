//! Phases and pauses of a run.

use iowhy_core::profile::Profile;
use iowhy_diagnose::phases::{Stretch, phases};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of a run. Calls and bytes are the program's, waits and the device are the machine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StretchRecord {
    /// Its beginning, from that of the run.
    pub begin_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Calls that read, from any kind of file.
    pub reads: u64,
    /// Bytes they returned.
    pub read_bytes: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes they took.
    pub written_bytes: u64,
    /// Calls that made data durable.
    pub syncs: u64,
    /// Part of it in which at least one task of the machine waited for I/O; `null`: this kernel does not count that.
    pub io_waited_share: Option<f64>,
    /// Part of it in which at least one task waited for memory.
    pub memory_waited_share: Option<f64>,
    /// Block device that was busy longest; `null`: none was.
    pub device: Option<String>,
    /// Part of the time for which it was busy.
    pub device_busy_share: Option<f64>,
    /// Bytes that it read, for whomever.
    pub device_read_bytes: u64,
    /// Bytes that it wrote.
    pub device_written_bytes: u64,
}

impl StretchRecord {
    fn new(of: Stretch) -> StretchRecord {
        let [device_read_bytes, device_written_bytes] = of.device_bytes;
        let (device, device_busy_share) = of.device.unzip();
        StretchRecord {
            begin_s: of.begin_ns as f64 / 1e9,
            end_s: of.end_ns as f64 / 1e9,
            reads: of.reads,
            read_bytes: of.read_bytes,
            writes: of.writes,
            written_bytes: of.written_bytes,
            syncs: of.syncs,
            io_waited_share: of.io_waited,
            memory_waited_share: of.memory_waited,
            device,
            device_busy_share,
            device_read_bytes,
            device_written_bytes,
        }
    }

    /// Its length.
    pub fn length_s(&self) -> f64 {
        self.end_s - self.begin_s
    }
}

/// Phases, where there is more than one, and pauses.
pub(super) fn records(profile: &Profile) -> (Vec<StretchRecord>, Vec<StretchRecord>) {
    let found = profile.course.as_ref().map(phases).unwrap_or_default();
    let records = |of: Vec<Stretch>| of.into_iter().map(StretchRecord::new).collect();
    let several = found.phases.len() > 1;
    (if several { records(found.phases) } else { Vec::new() }, records(found.pauses))
}
