//! Reads and stores through memory mappings: of the whole region ([`whole`]) or of one window a request ([`window`]).
//!
//! A mapped read that loads nothing reads nothing: every method here loads one byte of each page of the request.
//! Goal: that a page which vanishes (SIGBUS) fails the request and not the process, see [`crate::sigbus`].
//!
//! Invariant: pages that a live mapping holds cannot be evicted, so that an access must be dropped before the cache
//! under it is emptied.

pub mod mapping;
pub mod whole;
pub mod window;

use iowhy_core::problem::Problem;
use iowhy_core::workload::{Method, Workload};
use rustix::io::Errno;
use rustix::mm::Advice;

use crate::access::{Blocking, Perform};
use crate::hot_loop::HotAccess;
use crate::target::{OpenMode, Target};

/// Opens the target for the workload's method.
///
/// # Errors
/// Names the target and why it cannot be mapped, or the limit that forbids locking; passes on what opening says.
pub fn open(workload: &Workload, target: &Target) -> Result<Box<dyn HotAccess>, Problem> {
    let store = workload.method == Method::MmapStore;
    let fd = target.open(OpenMode { write: store, ..OpenMode::default() })?;
    let cannot = |errno| cannot_map(&target.facts.name, errno);
    let (offset, bytes) = (workload.region_offset, workload.region_bytes);
    let whole = |fd, advice| whole::Whole::new(fd, offset, bytes, advice)?.map_err(cannot);
    Ok(match workload.method {
        Method::MmapRandom => boxed(whole(fd, Some(Advice::Random))?),
        Method::MmapSequential => boxed(whole(fd, Some(Advice::Sequential))?),
        Method::MmapPopulate => boxed(window::Populated::new(fd)?),
        Method::MmapLock => boxed(window::Locked::new(fd, workload.block_bytes)?),
        Method::MmapStore => {
            boxed(whole::Store::new(fd, offset, bytes, workload.block_bytes, workload.seed)?.map_err(cannot)?)
        }
        _ => boxed(whole(fd, None)?),
    })
}

fn boxed(perform: impl Perform + 'static) -> Box<dyn HotAccess> {
    Box::new(Blocking::new(perform))
}

fn cannot_map(name: &str, errno: Errno) -> Problem {
    let problem = Problem::refused(format!("cannot map `{name}`: {}", std::io::Error::from(errno)));
    match errno {
        Errno::NODEV => problem.hint("it has no pages to map; use `--method pread`"),
        Errno::NOMEM | Errno::OVERFLOW => problem.hint("use a smaller `--size`, or `--method mmap-populate`"),
        Errno::ACCESS => {
            problem.hint("a shared mapping needs a target that can be opened for that direction")
        }
        _ => problem,
    }
}
