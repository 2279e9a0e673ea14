//! Which layers each method passes: as in the calibration cells where they fit, as in the nearest ones with a note where
//! not, and nothing where none is near.

use iowhy_core::environment::TargetKind;
use iowhy_core::layer::Layer;
use iowhy_core::workload::{CacheState, Method, Workload};

/// Which fitted costs a method pays on the CPU.
pub(super) struct Path {
    /// System calls for one request.
    pub(super) calls: f64,
    /// Trips through the VFS beyond those that `filesystem` counts once.
    pub(super) extra_vfs: f64,
    /// Layers whose busy cost is paid once, `call` as often as `calls` says.
    pub(super) layers: &'static [Layer],
    /// What the booking rests on.
    pub(super) note: Option<&'static str>,
}

const WRITES: &str = "writes: costs were fitted on reads; allocation and journal work are not modelled";

/// The path of a method. `None` where no measured one is near: the time stays unexplained.
pub(super) fn path(w: &Workload, kind: Option<TargetKind>) -> Option<Path> {
    use Layer::{Block, Cache, Call, Copy, Filesystem, Memory};
    use Method as M;
    const CACHED: &[Layer] = &[Call, Filesystem, Cache, Copy];
    const DIRECT: &[Layer] = &[Call, Filesystem, Block];
    let plain = |layers| Path { calls: 1.0, extra_vfs: 0.0, layers, note: None };
    let noted = |calls, extra_vfs, layers, note| Path { calls, extra_vfs, layers, note: Some(note) };
    let character = kind == Some(TargetKind::CharDevice);
    Some(match w.method {
        M::Null => plain(&[]),
        M::Syscall => plain(&[Call]),
        M::PreadEnd => plain(&[Call, Filesystem]),
        // /dev/null and /dev/zero have no cache below them.
        m if character && m.copies() => Path { calls: 1.0, extra_vfs: 1.0, layers: &[Call], note: None },
        M::Direct if w.direction.writes() => noted(1.0, 0.0, DIRECT, WRITES),
        M::Direct => plain(DIRECT),
        M::Uring if w.state == CacheState::Direct => plain(DIRECT),
        M::UringIopoll => noted(
            1.0,
            0.0,
            DIRECT,
            "polling: the spin while the device works is busy time and stays unexplained",
        ),
        M::UringSqpoll => return None,
        M::Mmap | M::MmapRandom | M::MmapSequential => plain(&[Memory]),
        M::MmapPopulate => noted(
            2.0,
            0.0,
            &[Call, Memory],
            "memory: the cost was fitted on a standing mapping, not on mapping anew",
        ),
        M::MmapLock => noted(
            4.0,
            0.0,
            &[Call, Memory],
            "memory: the cost was fitted on a standing mapping, not on locking anew",
        ),
        M::Sendfile => noted(
            1.0,
            0.0,
            &[Call, Filesystem, Cache],
            "no copy to user memory; the pipe inside is not modelled",
        ),
        M::Splice => noted(
            2.0,
            1.0,
            &[Call, Filesystem, Cache],
            "no copy to user memory; the pipe itself is not modelled",
        ),
        M::Preadv2Nowait if w.state == CacheState::Cold => {
            noted(2.0, 1.0, CACHED, "the first, refused call is booked as an empty one")
        }
        M::PwriteFsync | M::PwriteFdatasync => noted(2.0, 1.0, CACHED, WRITES),
        M::Write | M::Pwrite | M::PwriteDsync | M::PwriteEndFdatasync => noted(1.0, 0.0, CACHED, WRITES),
        M::MmapStore => noted(
            1.0,
            1.0,
            &[Call, Memory],
            "mapped store: faults as for reads; write-protection is not modelled",
        ),
        M::Fallocate => noted(1.0, 1.0, &[Call], "allocation is not modelled"),
        M::Sg | M::SgDirect | M::SgMmap | M::SgNoCopy => return None,
        // Without read-ahead each page is asked for alone: the fitted cold path does not say what that costs.
        M::PreadRandom if w.state == CacheState::Cold => return None,
        M::Read
        | M::Pread
        | M::PreadRandom
        | M::PreadSequential
        | M::Readv
        | M::Preadv2
        | M::Preadv2Nowait
        | M::Preadv2Dontcache
        | M::Uring => plain(CACHED),
    })
}
