//! What the kernel tells of processes and threads without any events (`/proc`).
//!
//! Readings cost little, and hold whatever happens to the process: it may end at any instant, hide, or have an odd name.
//! Invariant: a reading that fails is `None` or left out; it is never a guess, and never an error.

pub mod connections;
pub mod counters;
pub mod kernel_stack;
pub mod open_files;
pub mod schedstat;
pub mod task;
pub mod tree;

use iowhy_core::problem::Problem;

/// Makes sure that `/proc` is there and shows the processes that we see: in a new PID name space an old `/proc` gives the
/// numbers to other processes, and every reading would be of another process.
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
