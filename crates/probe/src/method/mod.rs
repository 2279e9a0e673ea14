//! One file per family of system calls; [`open`] picks the family. Each family is an [`Access`](crate::access::Access).
//!
//! Timing belongs to the runner, offsets to core's patterns.

pub mod blocking;
pub mod direction;
pub mod mapped;
pub mod no_copy;
pub mod null;
pub mod scripted;
pub mod sg;
pub mod striped;
pub mod uring;

use iowhy_core::problem::Problem;
use iowhy_core::workload::Workload;

use crate::clock::Clock;
use crate::hot_loop::HotAccess;
use crate::target::Target;

/// Opens the target the way the workload's method needs it. Everything slow (mapping, registering, filling write
/// buffers) happens here, outside the timed part.
///
/// # Errors
/// A refusal that names the method and the target when the kernel, the file system or the rights do not allow it.
pub fn open(workload: &Workload, target: &Target, clock: &Clock) -> Result<Box<dyn HotAccess>, Problem> {
    use iowhy_core::workload::Method::*;
    if let Some(stripe) = target.stripe() {
        return striped::open(workload, target, stripe, clock);
    }
    if let Some(script) = target.script() {
        return Ok(Box::new(scripted::Scripted::new(script, workload, clock)));
    }
    direction::check(workload.direction, workload.method)?;
    match workload.method {
        Null => Ok(Box::new(null::Null::new(workload.depth))),
        Mmap | MmapRandom | MmapSequential | MmapPopulate | MmapLock | MmapStore => {
            mapped::open(workload, target)
        }
        Uring | UringSqpoll | UringIopoll => uring::open(workload, target),
        Splice | Sendfile => no_copy::open(workload, target),
        Sg | SgDirect | SgMmap | SgNoCopy => sg::open(workload, target),
        _ => blocking::open(workload, target),
    }
}
