//! Requests of rings (io_uring): how many of each operation, and whether one on a file is under way.

use aya::maps::{Array, PerCpuArray};
use iowhy_core::profile::RingRequests;

use crate::course::Own;

use super::object::Object;
use super::{InKernel, attach, chain, map};

/// Ring operations that are told apart (RING_OPERATIONS of the object).
const OPERATIONS: u32 = 64;

/// Words of `struct ring_count`: requests, done, their time, their bytes, and those of them that failed.
const COUNT: usize = 5;
/// Where syncs stand in [`Own`].
const SYNCS: usize = 4;

/// What a request waits for: an event (a socket, a timer, another process), a file, or what its descriptor is.
const EVENT: u32 = 0;
const FILE: u32 = 1;
const BY_DESCRIPTOR: u32 = 2;

/// The operations by number (`enum io_uring_op` of include/uapi/linux/io_uring.h), and what their requests wait for.
#[rustfmt::skip]
const NAMES: [(&str, u32); 63] = [
    ("nop", EVENT), ("readv", BY_DESCRIPTOR), ("writev", BY_DESCRIPTOR), ("fsync", FILE),
    ("read_fixed", BY_DESCRIPTOR), ("write_fixed", BY_DESCRIPTOR), ("poll_add", EVENT), ("poll_remove", EVENT),
    ("sync_file_range", FILE), ("sendmsg", EVENT), ("recvmsg", EVENT), ("timeout", EVENT),
    ("timeout_remove", EVENT), ("accept", EVENT), ("async_cancel", EVENT), ("link_timeout", EVENT),
    ("connect", EVENT), ("fallocate", FILE), ("openat", FILE), ("close", FILE),
    ("files_update", EVENT), ("statx", FILE), ("read", BY_DESCRIPTOR), ("write", BY_DESCRIPTOR),
    ("fadvise", FILE), ("madvise", FILE), ("send", EVENT), ("recv", EVENT),
    ("openat2", FILE), ("epoll_ctl", EVENT), ("splice", BY_DESCRIPTOR), ("provide_buffers", EVENT),
    ("remove_buffers", EVENT), ("tee", EVENT), ("shutdown", EVENT), ("renameat", FILE),
    ("unlinkat", FILE), ("mkdirat", FILE), ("symlinkat", FILE), ("linkat", FILE),
    ("msg_ring", EVENT), ("fsetxattr", FILE), ("setxattr", FILE), ("fgetxattr", FILE),
    ("getxattr", FILE), ("socket", EVENT), ("uring_cmd", FILE), ("send_zc", EVENT),
    ("sendmsg_zc", EVENT), ("read_multishot", EVENT), ("waitid", EVENT), ("futex_wait", EVENT),
    ("futex_wake", EVENT), ("futex_waitv", EVENT), ("fixed_fd_install", EVENT), ("ftruncate", FILE),
    ("bind", EVENT), ("listen", EVENT), ("recv_zc", EVENT), ("epoll_wait", EVENT),
    ("readv_fixed", BY_DESCRIPTOR), ("writev_fixed", BY_DESCRIPTOR), ("pipe", EVENT),
];

impl InKernel {
    /// Follows requests of rings from now on, of threads that are counted.
    ///
    /// # Errors
    /// Why the kernel refuses that, in words: it is older than Linux 6.0, or was built without io_uring.
    pub(crate) fn rings(&mut self) -> Result<(), String> {
        let mut kinds: Array<_, u32> = map(&mut self.object, "ring_kinds")?;
        for (operation, (_, kind)) in (0..OPERATIONS).zip(NAMES) {
            kinds.set(operation, kind, 0).map_err(|e| chain(&e))?;
        }
        if attach(&mut self.object, "io_uring_submit_req", &["on_ring_submit"]).is_err() {
            // Before 6.3 the tracepoint had another name, and before 6.0 other arguments, one of which the old program reads.
            if attach(&mut self.object, "io_uring_submit_sqe", &["on_ring_submit_old"]).is_ok() {
                self.object.detach("on_ring_submit_old");
                return Err("this kernel is older than Linux 6.0".to_owned());
            }
            attach(&mut self.object, "io_uring_submit_sqe", &["on_ring_submit"])?;
        }
        attach(&mut self.object, "io_uring_complete", &["on_ring_done"])
    }
}

/// Where an operation that moves bytes stands in [`Own`]: its calls, and behind them its bytes.
fn moved(operation: &str) -> Option<usize> {
    let is = |begin: &str| operation.starts_with(begin);
    [(is("read"), 0), (is("write"), 2)].into_iter().find_map(|(is, place)| is.then_some(place))
}

/// Adds what requests on files have done so far.
pub(super) fn add_moved(object: &mut Object, own: &mut Own) -> Result<(), String> {
    let counts: PerCpuArray<_, [u64; COUNT]> = map(object, "ring_counts")?;
    for (operation, (name, kind)) in (0..OPERATIONS).zip(NAMES) {
        let place = moved(name).or_else(|| (name == "fsync").then_some(SYNCS));
        let Some(place) = place.filter(|_| kind != EVENT) else { continue };
        let by_cpu = counts.get(&operation, 0).map_err(|e| chain(&e))?;
        for [_, done, _, bytes, failed] in by_cpu.iter() {
            own[place] = own[place].saturating_add(done.saturating_sub(*failed));
            if place != SYNCS {
                own[place + 1] = own[place + 1].saturating_add(*bytes);
            }
        }
    }
    Ok(())
}

/// Requests by operation, most first.
pub(super) fn counts(object: &mut Object) -> Result<Vec<RingRequests>, String> {
    let counts: PerCpuArray<_, [u64; COUNT]> = map(object, "ring_counts")?;
    let mut requests = Vec::new();
    for operation in 0..OPERATIONS {
        let by_cpu = counts.get(&operation, 0).map_err(|e| chain(&e))?;
        let sum = |word: usize| by_cpu.iter().map(|words| words[word]).sum::<u64>();
        let (number, done, time_ns) = (sum(0), sum(1), sum(2));
        if number > 0 {
            let name =
                NAMES.get(operation as usize).map_or_else(|| operation.to_string(), |n| n.0.to_owned());
            let bytes = if moved(&name).is_some() { sum(3) } else { 0 };
            requests.push(RingRequests { operation: name, requests: number, done, time_ns, bytes });
        }
    }
    requests.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.operation.cmp(&b.operation)));
    Ok(requests)
}
