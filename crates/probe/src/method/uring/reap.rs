//! Reaping a ring, for one file and for a stripe of several.

use super::ring::Ring;
use crate::access::{Completion, Failure};

/// Pushes entries into a ring and takes their completions.
pub(in crate::method) trait Reaps {
    /// The ring.
    fn ring(&mut self) -> &mut Ring;

    /// Entries that the kernel or the queue holds.
    fn held(&self) -> usize;

    /// Where a request in flight begins: for the message when the kernel cannot be entered.
    fn first_offset(&self) -> u64;

    /// Takes everything out of the completion queue and hands each request that has ended to `ended`. What failed counts as
    /// ended; the first failure is returned.
    fn drain(&mut self, ended: impl FnMut(Completion)) -> Result<(), Failure>;

    /// Enters the kernel until `wanted` requests have ended, handing each to `ended`. The first entry also submits.
    #[inline]
    fn collect(&mut self, wanted: usize, mut ended: impl FnMut(Completion)) -> Result<(), Failure> {
        let mut missing = wanted;
        loop {
            // A caller that wants nothing yet still asks what has ended: with DEFER_TASKRUN nothing ends unless the
            // kernel is entered.
            let polls = wanted == 0 && self.held() > 0;
            if polls || self.ring().has_queued() || self.ring().completions().len() < missing {
                // A request has an entry at least: as many as are missing must still end, and perhaps more.
                if let Err(errno) = self.ring().enter(missing) {
                    return Err(Failure::Io { call: "io_uring_enter", offset: self.first_offset(), errno });
                }
            }
            self.drain(|completion| {
                missing = missing.saturating_sub(1);
                ended(completion);
            })?;
            if missing == 0 && !self.ring().has_queued() {
                return Ok(());
            }
        }
    }

    /// Waits until the kernel holds nothing any more, however that ended; false when it cannot be entered.
    fn see_out(&mut self) -> bool {
        while self.held() > 0 {
            if self.ring().enter(1).is_err() {
                return false;
            }
            // How the requests ended no longer matters to anybody.
            let _ = self.drain(|_| ());
        }
        true
    }
}
