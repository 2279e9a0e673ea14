//! Memory of a run: faulted in beforehand, and bounded.
//!
//! A host may reclaim free memory of a virtual machine, and returning it costs more than filling it: 256 MiB read eight times
//! took 0.4 s, and 0.6 to 0.8 s after a run with little memory (Firecracker with free page reporting, Linux 6.18). The order
//! of arms must not matter. Not in control groups, where memory counts against a limit.

use iowhy_core::problem::Problem;
use iowhy_core::replay::{Action, Op, Plan, Role, State};
use iowhy_core::units;
use rustix::mm::{MapFlags, ProtFlags};

use iowhy_probe::machine::{memory_available_bytes, memory_is_limited};

/// Bound of the memory that is faulted in,
const MAX_BYTES: u64 = 320 << 20;
/// and its share of free memory: 1/N.
const FREE_PART: u64 = 4;

/// Faults in and frees as much memory as one run brings into the page cache, as far as possible.
pub(super) fn fault_in(plan: &Plan) {
    let bytes = cached_bytes(plan).min(MAX_BYTES).min(memory_available_bytes().unwrap_or(0) / FREE_PART);
    let Ok(bytes) = usize::try_from(bytes) else { return };
    if bytes == 0 || is_charged(plan) {
        return;
    }
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory that exists.
    let taken = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::POPULATE,
        )
    };
    if let Ok(start) = taken {
        // SAFETY: the mapping was made above, and nothing else uses it.
        let _ = unsafe { rustix::mm::munmap(start, bytes) };
    }
}

/// Share of free memory for the requests: 1/N.
const REQUESTS_PART: u64 = 2;

/// Checks that the buffers of all requests in flight fit in half of the free memory.
pub(super) fn check_requests_fit(plan: &Plan) -> Result<(), Problem> {
    let free = memory_available_bytes().unwrap_or(u64::MAX);
    let needed = request_bytes(plan);
    if needed <= free / REQUESTS_PART {
        return Ok(());
    }
    Err(Problem::failed(format!(
        "the requests of the replay need {} of memory, and {} are free",
        units::Bytes(needed),
        units::Bytes(free)
    ))
    .hint("use a smaller `--depth` or `--request`"))
}

/// The largest request of each thread times the queue depth.
fn request_bytes(plan: &Plan) -> u64 {
    let moves = |a: &&Action| matches!(a.op, Op::Read { .. } | Op::Write);
    let largest = |thread: &Vec<Action>| thread.iter().filter(moves).map(|a| a.bytes).max().unwrap_or(0);
    let one = plan.threads.iter().map(largest).fold(0, u64::saturating_add);
    one.saturating_mul(u64::from(plan.depth.max(1)))
}

/// More than the caches of a CPU hold.
const COLD_BYTES: usize = 64 << 20;

/// Memory that threads read through after they drop dirty data; empty where none is dropped, and in control groups.
pub(super) fn cold_memory(plan: &Plan) -> Vec<u8> {
    let wanted = plan.any(|a| a.op == Op::Truncate) && !is_charged(plan);
    vec![1; if wanted { COLD_BYTES } else { 0 }]
}

/// Whether memory counts against a limit of a control group.
fn is_charged(plan: &Plan) -> bool {
    plan.placed.as_ref().is_some_and(|placed| !placed.inside.is_empty()) || memory_is_limited()
}

/// Bytes that one run brings into the page cache.
fn cached_bytes(plan: &Plan) -> u64 {
    let passes = u64::from(plan.passes.max(1));
    let of_file = |(at, file): (usize, &iowhy_core::replay::PlanFile)| {
        let moved = plan
            .actions()
            .filter(|a| a.file as usize == at && !matches!(a.op, Op::MmapAnon { .. } | Op::SmallFile))
            .fold(0u64, |sum, a| sum.saturating_add(a.bytes.saturating_mul(u64::from(a.count))))
            .saturating_mul(passes);
        match file.role {
            _ if file.direct => 0,
            Role::ScratchEmpty => moved,
            Role::User | Role::ScratchFull if file.state == State::Cold => moved.min(file.size_bytes),
            _ => 0,
        }
    };
    plan.files.iter().enumerate().map(of_file).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use iowhy_core::replay::PlanFile;

    use super::*;

    #[test]
    fn requests_beyond_free_memory_are_refused() {
        let plan = |bytes, depth| {
            let read = Action::one(Op::Read { fresh: false }, 0, 0, bytes, 0.0);
            Plan { threads: vec![vec![read]; 2], depth, ..Plan::default() }
        };
        assert_eq!(request_bytes(&plan(1 << 20, 4)), 8 << 20);
        assert_eq!(check_requests_fit(&plan(4096, 1)), Ok(()));
        let problem = check_requests_fit(&plan(u64::MAX / 8, 64)).unwrap_err();
        assert!(problem.message.contains("are free") && problem.hint.is_some(), "{problem}");
    }

    #[test]
    fn only_bytes_that_enter_the_cache_are_counted() {
        let of = |role, state, direct, size_bytes, what| {
            let file = PlanFile { state, direct, size_bytes, ..PlanFile::new("/data", role) };
            let action = Action { count: 10, ..Action::one(what, 0, 0, 4096, 0.0) };
            cached_bytes(&Plan {
                files: vec![file],
                threads: vec![vec![action]],
                passes: 3,
                ..Plan::default()
            })
        };
        let read = Op::Read { fresh: false };
        assert_eq!(of(Role::User, State::Cold, false, 1 << 30, read), 30 * 4096);
        assert_eq!(of(Role::User, State::Cold, false, 8192, read), 8192, "the whole file");
        assert_eq!(of(Role::User, State::Warm, false, 1 << 30, read), 0, "cached already");
        assert_eq!(of(Role::User, State::Cold, true, 1 << 30, read), 0, "direct");
        assert_eq!(of(Role::ScratchEmpty, State::Warm, false, 0, Op::Write), 30 * 4096);
        assert_eq!(of(Role::Sink, State::Warm, false, 0, Op::Write), 0);
        fault_in(&Plan::default());
    }
}
