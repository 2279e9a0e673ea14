//! Slices of cold sequential reads, which are parts of a longer stream: they begin in its middle and end between two windows of read-ahead.
//!
//! The kernel reads ahead of a stream by whole windows. A slice from the first byte waits for a window that nothing asked for before it, and
//! what is read ahead beyond its last byte is work for a longer read: with windows of 8 MiB, slices of 25 ms claimed 24 MiB for which the device moved 40,
//! and 645 to 932 MiB/s where a read of 1 GiB reached 1.1 GiB/s (Linux 6.18, 2026-11-26).

use std::time::Duration;

use iowhy_core::pattern::Pattern;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};

use crate::access::Access;
use crate::arm::Arm;
use crate::environment;
use crate::hot_loop::HotLoop;

/// Windows before the slice: the kernel fills one while the program reads the one before.
const WINDOWS: u64 = 2;
/// The lead takes this part of the requests of a thread at most; of a smaller region a slice is no part of a stream.
const MAX_PART: u64 = 4;
/// The lead takes so many times the slice at most.
const MAX_SLICES: u32 = 4;

/// Leads in the slice of a thread, where it is a part of a stream; `wall` is how long the slice lasts. The bytes of the lead.
pub(crate) fn lead_in(arm: &Arm<'_>, wall: Duration, work: &mut HotLoop<'_>, access: &mut dyn Access) -> u64 {
    let real = arm.target.script().is_none() && arm.listed.is_none();
    if !real || wall == Duration::MAX || !is_stream(arm.workload) {
        return 0;
    }
    let Some(bytes) = environment::read_ahead_bytes(arm.target) else { return 0 };
    let Some(requests) = window(arm.workload, bytes) else { return 0 };
    let most = wall.saturating_mul(MAX_SLICES).as_nanos().min(u128::from(u64::MAX)) as u64;
    work.lead_in(access, WINDOWS, requests, most).saturating_mul(arm.workload.block_bytes)
}

/// Whether the kernel reads ahead for these requests: through the cache, in order, and not before the first of them.
fn is_stream(w: &Workload) -> bool {
    w.state == CacheState::Cold
        && w.direction == Direction::Read
        && w.pattern == Pattern::Sequential
        && w.depth <= 1
        && !matches!(w.method, Method::MmapRandom | Method::MmapPopulate | Method::MmapLock)
}

/// Requests of one window; `None` where the region of a thread is too small for a lead.
fn window(w: &Workload, read_ahead_bytes: u64) -> Option<u64> {
    let requests = read_ahead_bytes.div_ceil(w.block_bytes.max(1)).max(1);
    let room = w.blocks() / w.threads.max(1) as u64;
    (requests.saturating_mul(WINDOWS * MAX_PART) <= room).then_some(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cold(block_bytes: u64, region_bytes: u64) -> Workload {
        Workload::reads(Method::Pread, CacheState::Cold, block_bytes, region_bytes)
    }

    #[test]
    fn a_window_is_whole_requests_and_a_small_region_has_no_lead() {
        assert_eq!(window(&cold(128 << 10, 128 << 20), 8 << 20), Some(64));
        assert_eq!(window(&cold(96 << 10, 128 << 20), 8 << 20), Some(86), "rounded up");
        assert_eq!(window(&cold(1 << 20, 128 << 20), 128 << 10), Some(1));
        assert_eq!(window(&cold(128 << 10, 32 << 20), 8 << 20), None);
        let mut two = cold(128 << 10, 64 << 20);
        assert_eq!(window(&two, 8 << 20), Some(64));
        two.threads = 2;
        assert_eq!(window(&two, 8 << 20), None);
    }

    #[test]
    fn only_reads_in_order_through_the_cache_are_streams() {
        let mut w = cold(128 << 10, 128 << 20);
        w.pattern = Pattern::Sequential;
        assert!(is_stream(&w));
        for change in [
            |w: &mut Workload| w.state = CacheState::Direct,
            |w: &mut Workload| w.state = CacheState::Warm,
            |w: &mut Workload| w.pattern = Pattern::Random,
            |w: &mut Workload| w.direction = Direction::Write,
            |w: &mut Workload| w.depth = 4,
            |w: &mut Workload| w.method = Method::MmapPopulate,
        ] {
            let mut other = w.clone();
            change(&mut other);
            assert!(!is_stream(&other), "{other:?}");
        }
    }
}
