//! Time that the program's own threads spend because memory is short: freeing pages, and getting swapped pages back. By the
//! kernel functions of stacks, because a stack below reclaim may wait for write-back or a lock, and CPU time there is that of
//! the layer `memory` like any other. May not enter: causes, thresholds.

use iowhy_core::profile::{Profile, StackTime, State};

use super::Facts;
use crate::account::Sum;

/// Where a thread that wants memory begins to free it, Linux 5.10 to 6.18. The last ones are where it sleeps: where only that
/// function is known, it stands for the stack.
const FREES: [&str; 9] = [
    "try_to_free_pages",
    "try_to_free_mem_cgroup_pages",
    "node_reclaim",
    "mem_cgroup_oom_synchronize",
    "out_of_memory",
    "shrink_node",
    "shrink_inactive_list",
    "reclaim_throttle",
    "throttle_direct_reclaim",
];
/// Where a thread is held back on its way out of the kernel, because its group is above `memory.high`.
const HELD_BACK: [&str; 2] = ["mem_cgroup_handle_over_high", "__mem_cgroup_handle_over_high"];
/// These work for the limit of a control group alone.
const FOR_A_GROUP: [&str; 4] = [
    "try_to_free_mem_cgroup_pages",
    "mem_cgroup_oom_synchronize",
    "mem_cgroup_handle_over_high",
    "__mem_cgroup_handle_over_high",
];
/// Somebody asked for it: a limit is set, memory is given back, caches are dropped, the program pages itself out.
const ON_REQUEST: [&str; 10] = [
    "memory_reclaim",
    "user_proactive_reclaim",
    "memory_max_write",
    "memory_high_write",
    "mem_cgroup_resize_max",
    "mem_cgroup_force_empty",
    "mem_cgroup_force_empty_write",
    "reclaim_pages",
    "drop_slab",
    "drop_caches_sysctl_handler",
];
/// Where a page comes back from swap.
const SWAPS_IN: [&str; 8] = [
    "do_swap_page",
    "swapin_readahead",
    "swap_cluster_readahead",
    "read_swap_cache_async",
    "swap_read_folio",
    "swap_readpage",
    "shmem_swapin_folio",
    "shmem_swapin_page",
];
/// A page that is moved to another place in memory looks swapped out meanwhile.
const MOVED: [&str; 3] =
    ["migration_entry_wait", "migration_entry_wait_on_locked", "softleaf_entry_wait_on_locked"];

/// The times; they do not overlap, and queueing for a CPU is in none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ShortMemory {
    /// Freeing pages, on a CPU.
    pub(super) frees_busy: Sum,
    /// Freeing pages, asleep.
    pub(super) frees_waiting: Sum,
    /// Held back above `memory.high`; freeing pages there is in the two above.
    pub(super) held_back: Sum,
    /// Of the three above, because of the limit of a control group.
    pub(super) for_a_group: Sum,
    /// Getting pages back from swap, on a CPU.
    pub(super) swap_busy: Sum,
    /// Getting pages back from swap, asleep.
    pub(super) swap_waiting: Sum,
}

impl Facts<'_> {
    /// The times of the run.
    pub(super) fn short_memory(&self) -> ShortMemory {
        let mut short = ShortMemory::default();
        for stack in self.profile.stacks.iter().filter(|s| s.known && s.state != State::Queued) {
            let Some(what) = meaning(self.profile, stack) else { continue };
            let sum = match (what, stack.state == State::Running) {
                (What::Frees, true) => &mut short.frees_busy,
                (What::Frees, false) => &mut short.frees_waiting,
                (What::HeldBack, _) => &mut short.held_back,
                (What::SwapsIn, true) => &mut short.swap_busy,
                (What::SwapsIn, false) => &mut short.swap_waiting,
            };
            add(sum, stack);
            if !matches!(what, What::SwapsIn) && in_any(self.profile, stack, &FOR_A_GROUP) {
                add(&mut short.for_a_group, stack);
            }
        }
        short
    }
}

fn add(sum: &mut Sum, stack: &StackTime) {
    sum.time_ns += stack.time_ns;
    sum.wall_ns += stack.wall_ns;
    sum.events = sum.events.saturating_add(stack.events);
}

/// Compilers add suffixes.
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn in_any(profile: &Profile, stack: &StackTime, functions: &[&str]) -> bool {
    profile.kernel_names(stack).any(|name| functions.contains(&plain(name)))
}

#[derive(Clone, Copy)]
enum What {
    Frees,
    HeldBack,
    SwapsIn,
}

fn meaning(profile: &Profile, stack: &StackTime) -> Option<What> {
    let any = |functions: &[&str]| in_any(profile, stack, functions);
    if any(&ON_REQUEST) || any(&MOVED) {
        None
    } else if any(&FREES) {
        Some(What::Frees)
    } else if any(&HELD_BACK) {
        Some(What::HeldBack)
    } else {
        any(&SWAPS_IN).then_some(What::SwapsIn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::synthetic::Run;

    fn seen(names: &[&str], state: State) -> ShortMemory {
        Run::new(1.0).stack(names, state, 0.5, 10).facts(|f| f.short_memory())
    }

    #[test]
    fn reclaim_is_told_by_where_it_began_not_by_what_it_waits_for() {
        let writing = [
            "folio_wait_bit_common",
            "folio_wait_writeback",
            "shrink_folio_list",
            "try_to_free_mem_cgroup_pages",
        ];
        let waits = seen(&writing, State::Blocked);
        assert_eq!((waits.frees_waiting.wall_ns, waits.frees_waiting.events), (0.5e9, 10));
        assert_eq!(waits.for_a_group, waits.frees_waiting);
        assert_eq!(seen(&["shrink_lruvec", "try_to_free_pages"], State::Running).frees_busy.wall_ns, 0.5e9);
        assert_eq!(seen(&writing, State::Queued), ShortMemory::default());
        assert_eq!(
            seen(&["schedule_timeout", "__mem_cgroup_handle_over_high"], State::Blocked).held_back.events,
            10
        );
        assert_eq!(seen(&["reclaim_throttle.isra.0"], State::Blocked).frees_waiting.events, 10);
    }

    #[test]
    fn memory_that_is_freed_on_request_is_not_short() {
        for request in ON_REQUEST {
            let stack = ["shrink_lruvec", "try_to_free_mem_cgroup_pages", request];
            assert_eq!(seen(&stack, State::Running), ShortMemory::default(), "{request}");
        }
    }

    #[test]
    fn a_page_that_is_moved_is_not_swapped_in() {
        let swap = ["folio_wait_bit_common", "do_swap_page", "handle_mm_fault"];
        assert_eq!(seen(&swap, State::Blocked).swap_waiting.wall_ns, 0.5e9);
        let moved = ["migration_entry_wait_on_locked", "migration_entry_wait", "do_swap_page"];
        assert_eq!(seen(&moved, State::Blocked), ShortMemory::default());
        // What makes room for a page that comes back is reclaim.
        let both = ["shrink_node", "try_to_free_mem_cgroup_pages", "do_swap_page"];
        assert_eq!(seen(&both, State::Running).swap_busy.events, 0);
    }
}
