//! What happened over time in a run, or in a machine: phases and pauses, and devices that became slower.

use iowhy_core::profile::Course;
use iowhy_diagnose::paces::{self, Pace, Slower};
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

/// What happened over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverTime {
    /// Stretches in which a program, a control group or all devices read and wrote at other rates than before, in their order; absent where
    /// rates never changed, or were not counted. With `--live` of all of the watch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<StretchRecord>,
    /// Stretches in which nothing of theirs went on (no call returned, no request ended) while tasks waited for I/O or memory, longest
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<StretchRecord>,
    /// Block devices that served requests of the same kind, with as many in flight, more slowly from some moment on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slower_devices: Vec<SlowerDevice>,
}

/// A block device that became slower: by half again at least, for a second at least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowerDevice {
    /// Its name.
    pub device: String,
    /// When, from the beginning of the watch.
    pub at_s: f64,
    /// Until then.
    pub before: PaceRecord,
    /// From then on.
    pub after: PaceRecord,
}

/// How a device served requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaceRecord {
    /// Requests that ended in a second in which it was busy: the median over steps of time.
    pub requests_per_second: f64,
    /// The middle half of the steps: its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// How many steps.
    pub steps: u64,
    /// Mean size of a request.
    pub request_bytes: f64,
    /// Requests in flight while it was busy.
    pub in_flight: f64,
}

impl From<Pace> for PaceRecord {
    fn from(of: Pace) -> PaceRecord {
        let Pace { per_second, middle_half: [low, high], steps, bytes, in_flight, .. } = of;
        let steps = steps as u64;
        PaceRecord { requests_per_second: per_second, low, high, steps, request_bytes: bytes, in_flight }
    }
}

impl From<Slower> for SlowerDevice {
    fn from(of: Slower) -> SlowerDevice {
        let Slower { device, at_ns, before, after } = of;
        SlowerDevice { device, at_s: at_ns as f64 / 1e9, before: before.into(), after: after.into() }
    }
}

impl OverTime {
    /// That of these steps. Phases are told where there is more than one.
    pub(crate) fn new(course: Option<&Course>, whose: Whose) -> OverTime {
        let Some(course) = course else { return OverTime::default() };
        let found = phases(course, whose);
        let records = |of: Vec<Stretch>| of.into_iter().map(StretchRecord::new).collect();
        let several = found.phases.len() > 1;
        OverTime {
            phases: if several { records(found.phases) } else { Vec::new() },
            pauses: records(found.pauses),
            slower_devices: paces::slower(course).into_iter().map(SlowerDevice::from).collect(),
        }
    }
}
