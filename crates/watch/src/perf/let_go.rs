//! Closing descriptors of tracepoints without waiting for the kernel.
//!
//! What may not enter: what the descriptors recorded.
//!
//! The last close of a tracepoint waits for grace periods of the kernel, 50 to 90 ms for each, and a process has not
//! ended before all its descriptors are closed: the user would wait a quarter of a second for a prompt. An io_uring that is
//! closed is taken down by a worker of the kernel, and the files that are registered with it are closed there. So
//! the descriptors are handed to one. They stay open a moment longer than we live.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use io_uring::IoUring;

/// Closes the descriptors, by the kernel's own workers where it lets us. Where io_uring is not allowed they are
/// closed here, which may take long.
pub(super) fn let_go(events: Vec<OwnedFd>) {
    if events.is_empty() {
        return;
    }
    let keeper = keeper(&events);
    // Ours first: as long as the ring keeps the files open, none of these is the last close.
    drop(events);
    drop(keeper);
}

/// A ring that holds the files as well; `None`: the kernel gives none.
fn keeper(events: &[OwnedFd]) -> Option<IoUring> {
    let ring = IoUring::new(1).ok()?;
    let files: Vec<RawFd> = events.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&files).ok()?;
    Some(ring)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reading end of a pipe sees the end of file only when the last writing end is closed, wherever that was.
    #[test]
    fn what_is_let_go_is_closed_in_the_end() {
        let (reading, writing) = rustix::pipe::pipe().expect("a pipe");
        if keeper(std::slice::from_ref(&writing)).is_none() {
            println!("skipped: io_uring is not allowed here");
        }
        let_go(vec![writing]);
        let mut byte = [0_u8];
        assert_eq!(rustix::io::read(&reading, &mut byte), Ok(0));
    }

    #[test]
    fn nothing_to_let_go_is_no_matter() {
        let_go(Vec::new());
    }
}
