//! Phases and pauses of a run, or of a machine.

use iowhy_core::profile::Course;
use iowhy_diagnose::phases::{Stretch, Whose, phases};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of time. Reads and writes are calls of the program; of a whole machine requests of all devices, of a control group what it asked of
/// them, each byte once. Waits and the device are the machine's, waits of a control group its own where the kernel counts them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StretchRecord {
    /// Its beginning, from that of the watch.
    pub begin_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Reads, of a program from any kind of file.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Calls of the program that made data durable.
    pub syncs: u64,
    /// Part of it in which at least one task waited for I/O; `null`: this kernel does not count that.
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
pub(crate) fn records(course: Option<&Course>, whose: Whose) -> (Vec<StretchRecord>, Vec<StretchRecord>) {
    let found = course.map(|course| phases(course, whose)).unwrap_or_default();
    let records = |of: Vec<Stretch>| of.into_iter().map(StretchRecord::new).collect();
    let several = found.phases.len() > 1;
    (if several { records(found.phases) } else { Vec::new() }, records(found.pauses))
}
