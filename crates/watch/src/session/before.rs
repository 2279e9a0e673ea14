//! The state of the machine at the start of a watch.

use iowhy_linux::block::uses::Snapshot;
use iowhy_linux::mountstats::{self, NfsMount};
use iowhy_linux::pressure;
use iowhy_linux::reader::Reader;

/// The state of the machine at the start.
pub(super) struct Before {
    pub(super) devices: Snapshot,
    pub(super) pressure: pressure::Before,
    /// Counters of the NFS mounts.
    pub(super) nfs: Vec<NfsMount>,
}

impl Before {
    /// Reads it. `pid`: the process whose limits count; `None`: our own, which a command inherits.
    pub(super) fn read(reader: &mut Reader, pid: Option<u32>) -> Before {
        Before {
            nfs: mountstats::read(),
            devices: Snapshot::with_limits(reader),
            pressure: pressure::Before::take(reader, pid),
        }
    }
}
