//! What the kernel tells without any events: `/proc`, `/sys`, control groups, cachestat.
//!
//! Goal: readings that cost little and that hold whatever happens to the process that is read: it may vanish at any
//! instant, hide, or bear an odd name. A reading that fails is `None` or is left out; it is never a guess and never an
//! error, for there is nothing that the user could do about it. Non-goal: what the readings mean.

pub mod counters;
pub mod kernel_stack;
pub mod open_files;
pub mod schedstat;
pub mod task;
pub mod tree;

use iowhy_core::problem::Problem;

/// Makes sure that `/proc` is there and shows the processes that we see: in a new PID name space an old `/proc` gives the
/// numbers to other processes, and every reading would be of a stranger.
///
/// # Errors
/// It is not, with the command that mounts it.
pub fn usable() -> Result<(), Problem> {
    let fix =
        "`sudo mount -t proc proc /proc` (in a new PID name space: `unshare --fork --pid --mount-proc ...`)";
    let refused = |why: String| Err(Problem::refused(format!("nothing can be watched: {why}")).hint(fix));
    let ours = std::process::id();
    match std::fs::read_link("/proc/self") {
        Err(error) => refused(format!("/proc cannot be read: {error}")),
        Ok(number) if number.to_str() != Some(&ours.to_string()) => refused(format!(
            "/proc belongs to another PID name space (there we are process {}, here {ours})",
            number.display()
        )),
        Ok(_) => Ok(()),
    }
}
