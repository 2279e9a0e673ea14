//! Memory that a run will fill with cached data, made to be at hand before its time begins.
//!
//! The host of a virtual machine may take free memory away after a moment, and handing it out anew costs more than filling
//! it: 256 MiB read eight times took 0.4 s, and 0.6 to 0.8 s after a run that had used little memory (Firecracker with free page
//! reporting, Linux 6.18). In which order arms are carried out shall not decide. What may not enter: control groups, where
//! memory that is taken counts against a limit.

use iowhy_core::problem::Problem;
use iowhy_core::replay::{Action, Op, Plan, Role, State};
use iowhy_core::units;
use rustix::mm::{MapFlags, ProtFlags};

use iowhy_probe::environment::{memory_available_bytes, memory_is_limited};

/// More is not taken,
const MOST_BYTES: u64 = 320 << 20;
/// nor more than one part in so many of what is free.
const PART: u64 = 4;

/// Takes as much as one run brings into the page cache, and gives it back. Memory that cannot be had is not missed.
pub(super) fn take(plan: &Plan) {
    let bytes = filled(plan).min(MOST_BYTES).min(memory_available_bytes().unwrap_or(0) / PART);
    let Ok(bytes) = usize::try_from(bytes) else { return };
    if bytes == 0 || counts(plan) {
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
        // SAFETY: the mapping was made above, and nobody else knows it.
        let _ = unsafe { rustix::mm::munmap(start, bytes) };
    }
}

/// Requests may take so much of the memory that is free.
const MOST_OF_FREE: u64 = 2;

/// Makes sure that the memory of all requests in flight can be had.
///
/// # Errors
/// It is more than half of what is free.
pub(super) fn enough(plan: &Plan) -> Result<(), Problem> {
    let free = memory_available_bytes().unwrap_or(u64::MAX);
    let needed = of_requests(plan);
    if needed <= free / MOST_OF_FREE {
        return Ok(());
    }
    Err(Problem::failed(format!(
        "the requests of the replay take {} of memory, and {} are free",
        units::Bytes(needed),
        units::Bytes(free)
    ))
    .hint("ask for less: a smaller `--depth` or `--request`"))
}

/// Bytes of the largest request of each thread, so often as it is in flight.
fn of_requests(plan: &Plan) -> u64 {
    let moves = |a: &&Action| matches!(a.op, Op::Read { .. } | Op::Write);
    let largest = |thread: &Vec<Action>| thread.iter().filter(moves).map(|a| a.bytes).max().unwrap_or(0);
    let one = plan.threads.iter().map(largest).fold(0, u64::saturating_add);
    one.saturating_mul(u64::from(plan.depth.max(1)))
}

/// More than the caches of a CPU hold.
const ELSEWHERE_BYTES: usize = 64 << 20;

/// Memory that threads walk through where data is thrown away, so that its pages come back cold; empty where none is, and where
/// it would count against a limit.
pub(super) fn elsewhere(plan: &Plan) -> Vec<u8> {
    let wanted = plan.any(|a| a.op == Op::Truncate) && !counts(plan);
    vec![1; if wanted { ELSEWHERE_BYTES } else { 0 }]
}

/// Whether memory that is taken counts against a limit of a control group.
fn counts(plan: &Plan) -> bool {
    plan.placed.as_ref().is_some_and(|placed| !placed.inside.is_empty()) || memory_is_limited()
}

/// Bytes that one run brings into the page cache.
fn filled(plan: &Plan) -> u64 {
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
    fn requests_that_no_memory_can_hold_are_refused_before_it_is_taken() {
        let plan = |bytes, depth| {
            let read = Action::one(Op::Read { fresh: false }, 0, 0, bytes, 0.0);
            Plan { threads: vec![vec![read]; 2], depth, ..Plan::default() }
        };
        assert_eq!(of_requests(&plan(1 << 20, 4)), 8 << 20);
        assert_eq!(enough(&plan(4096, 1)), Ok(()));
        let problem = enough(&plan(u64::MAX / 8, 64)).unwrap_err();
        assert!(problem.message.contains("are free") && problem.hint.is_some(), "{problem}");
    }

    #[test]
    fn what_comes_into_the_cache_is_counted_and_nothing_else() {
        let of = |role, state, direct, size_bytes, what| {
            let file = PlanFile { state, direct, size_bytes, ..PlanFile::new("/data", role) };
            let action = Action { count: 10, ..Action::one(what, 0, 0, 4096, 0.0) };
            filled(&Plan { files: vec![file], threads: vec![vec![action]], passes: 3, ..Plan::default() })
        };
        let read = Op::Read { fresh: false };
        assert_eq!(of(Role::User, State::Cold, false, 1 << 30, read), 30 * 4096);
        assert_eq!(of(Role::User, State::Cold, false, 8192, read), 8192, "no more than there is");
        assert_eq!(of(Role::User, State::Warm, false, 1 << 30, read), 0, "it is there");
        assert_eq!(of(Role::User, State::Cold, true, 1 << 30, read), 0, "past the cache");
        assert_eq!(of(Role::ScratchEmpty, State::Warm, false, 0, Op::Write), 30 * 4096);
        assert_eq!(of(Role::Sink, State::Warm, false, 0, Op::Write), 0);
        take(&Plan::default());
    }
}
