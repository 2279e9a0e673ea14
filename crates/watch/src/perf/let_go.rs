//! Closes descriptors of tracepoints without waiting for the kernel. The last close of a tracepoint waits for grace periods,
//! 50 to 90 ms each, and a process ends only when all its descriptors are closed: a prompt came a quarter of a second late.
//! A worker of the kernel takes down a closed io_uring and closes the files that are registered with it. So the descriptors
//! are handed to one; they stay open a moment longer than this process lives.

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
