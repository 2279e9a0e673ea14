//! Layouts: addresses of requests on the volume. One layout per file, all behind [`Layout`], without caches or time.

mod extent;
mod ffs;
mod raw;

use iowhy_core::problem::Problem;
use iowhy_core::request::Request;

use crate::files::Shape;
use crate::machine::{LayoutKind, Machine};

/// Content that a step accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A block of a directory, to find a name.
    Directory,
    /// A block of inodes.
    Inode,
    /// The requested bytes.
    Data,
}

/// One access to the volume. The steps of a request are sequential: each address is only known from the step before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// One behind the last byte that follows it on the volume and belongs to the same file.
    pub limit: u64,
    /// Kind of content.
    pub kind: StepKind,
    /// Cached as one buffer by its own address (fragments of a file), not as the blocks of the volume that it touches.
    pub whole: bool,
}

/// A layout.
pub trait Layout: std::fmt::Debug + Send {
    /// Replaces `out` by the steps of a request.
    fn steps(&mut self, request: &Request, out: &mut Vec<Step>);

    /// Adaptations of the files, in words.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The layout of a machine for these files on a volume of this size.
///
/// # Errors
/// Files that do not fit, or whose sizes the layout must know before.
pub fn new(machine: &Machine, shape: &Shape, volume_bytes: u64) -> Result<Box<dyn Layout>, Problem> {
    Ok(match (machine.layout.kind, shape) {
        (LayoutKind::Ffs, Shape::Unknown) => {
            return Err(Problem::refused("a trace does not say how large its files are, which the layout `ffs` must know")
                .hint("`--set layout.kind=extent` places files as they come, `--set layout.kind=raw` takes offsets as addresses"));
        }
        (LayoutKind::Ffs, shape) => Box::new(ffs::Ffs::new(&machine.layout, shape, volume_bytes)?),
        (LayoutKind::Extent, shape) => Box::new(extent::Extent::new(machine, shape, volume_bytes)?),
        (LayoutKind::Raw, shape) => Box::new(raw::Raw::new(machine, shape, volume_bytes)?),
    })
}

/// Files that do not fit on the volume.
fn too_small(what: &str, needed: u64, volume_bytes: u64) -> Problem {
    use iowhy_core::units::Bytes;
    Problem::refused(format!("{what} need {}, and the volume holds {}", Bytes(needed), Bytes(volume_bytes)))
        .hint("make the workload smaller, or add devices: `--set device.count=...`")
}
