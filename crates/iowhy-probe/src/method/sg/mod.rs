//! SCSI READ BUFFER through /dev/sg*: the 1999 test.
use iowhy_core::problem::Problem;
use iowhy_core::workload::Workload;

use crate::access::Access;
use crate::target::Target;

/// Opens the target for the workload's method.
pub fn open(_workload: &Workload, _target: &Target) -> Result<Box<dyn Access>, Problem> {
    unimplemented!("helper")
}
