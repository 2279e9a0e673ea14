//! What the process does before a signal ends it: restore changed settings, remove notes. Async-signal-safe.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One step before a signal ends the process.
#[derive(Clone, Debug)]
pub enum LastAct {
    /// Writes a file.
    Write {
        /// The file.
        file: CString,
        /// The new content.
        content: Vec<u8>,
    },
    /// Removes a name.
    Remove {
        /// Its directory, open as long as the act is armed.
        directory: RawFd,
        /// The name in it.
        name: CString,
    },
    /// Calls a function. It may make system calls only: a signal handler may neither allocate nor take a lock.
    Call {
        /// Returns whether it succeeded.
        act: fn(RawFd, u64) -> bool,
        /// First argument, open as long as the act is armed.
        descriptor: RawFd,
        /// Second argument.
        argument: u64,
    },
}

/// The armed list; null: none.
static LAST_ACTS: AtomicPtr<Vec<LastAct>> = AtomicPtr::new(std::ptr::null_mut());

/// Replaces the armed list. A signal runs it in order up to the first step that fails; an empty list disarms.
pub fn arm(acts: Vec<LastAct>) {
    let new = if acts.is_empty() { std::ptr::null_mut() } else { Box::into_raw(Box::new(acts)) };
    // The old list stays in memory: a handler on another thread may be reading it. It is a few paths, once a run.
    LAST_ACTS.store(new, Ordering::Release);
}

/// Runs the armed list. Async-signal-safe.
pub(crate) fn run() {
    let armed = LAST_ACTS.load(Ordering::Acquire);
    // SAFETY: null, or a list that is never changed or freed once it was stored.
    let Some(acts) = (unsafe { armed.as_ref() }) else { return };
    for act in acts {
        let done = match act {
            // SAFETY: `name` ends in a nul byte, and lives for ever.
            LastAct::Remove { directory, name } => unsafe {
                libc::unlinkat(*directory, name.as_ptr(), 0) == 0
            },
            // SAFETY: `file` ends in a nul byte, and the content is as long as is said; both live for ever.
            LastAct::Write { file, content } => unsafe {
                let fd = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                let written = fd >= 0
                    && libc::write(fd, content.as_ptr().cast(), content.len()) == content.len() as isize;
                if fd >= 0 {
                    libc::close(fd);
                }
                written
            },
            LastAct::Call { act, descriptor, argument } => act(*descriptor, *argument),
        };
        if !done {
            return;
        }
    }
}
