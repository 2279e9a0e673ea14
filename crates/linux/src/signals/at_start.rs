//! How signals, streams and limits were when this process was started, before any code of ours or of Rust's runtime
//! changed them. Commands that iowhy starts get the same.

use std::sync::atomic::{AtomicU64, Ordering};

use libc::c_int;

use super::{MAX_SIGNAL, is_ignored};

/// Bit N-1 for signal N.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// The limit on open files: soft and hard, with 1 added so that 0 means "not known".
static OPEN_FILES: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Which of stdin, stdout and stderr were closed, one bit each.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// Whether a signal was ignored when this process was started. False also where that could not be seen.
pub fn ignored_at_start(signal: c_int) -> bool {
    (1..=MAX_SIGNAL).contains(&signal) && IGNORED.load(Ordering::Relaxed) >> (signal - 1) & 1 != 0
}

/// Which of stdin, stdout and stderr were closed when this process was started.
pub fn streams_closed_at_start() -> [bool; 3] {
    let closed = CLOSED.load(Ordering::Relaxed);
    [0, 1, 2].map(|stream| closed >> stream & 1 != 0)
}

/// The limit on open files that this process was started with, which it may have raised since for itself.
pub fn open_files_at_start() -> Option<libc::rlimit> {
    let [soft, hard] = [0, 1].map(|i| OPEN_FILES[i].load(Ordering::Relaxed).checked_sub(1));
    Some(libc::rlimit { rlim_cur: soft? as libc::rlim_t, rlim_max: hard? as libc::rlim_t })
}

/// Runs before `main` and before the runtime of Rust, which ignores SIGPIPE and opens /dev/null for closed streams.
extern "C" fn look_at_start() {
    for signal in 1..=MAX_SIGNAL {
        if is_ignored(signal) {
            IGNORED.fetch_or(1 << (signal - 1), Ordering::Relaxed);
        }
    }
    // SAFETY: all calls only query; they write to zeroed plain data or nowhere.
    unsafe {
        for stream in 0..3 {
            if libc::fcntl(stream, libc::F_GETFD) == -1 {
                CLOSED.fetch_or(1 << stream, Ordering::Relaxed);
            }
        }
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            #[allow(clippy::unnecessary_cast)] // u64 on every target of ours but not on all of libc's
            for (slot, value) in OPEN_FILES.iter().zip([limit.rlim_cur as u64, limit.rlim_max as u64]) {
                // RLIM_INFINITY is the greatest number and must not wrap to "not known".
                slot.store(value.saturating_add(1), Ordering::Relaxed);
            }
        }
    }
}

/// Has the dynamic loader, or the C library of a static program, call [`look_at_start`].
#[used]
// SAFETY: the section holds pointers to functions without results, called once before main (System V ABI, "Initialization
// and Termination Functions"); arguments that some loaders pass are ignored.
#[unsafe(link_section = ".init_array")]
static LOOK_AT_START: extern "C" fn() = look_at_start;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_was_seen_before_main() {
        let limit = open_files_at_start().expect("the function before main ran");
        assert!(limit.rlim_cur <= limit.rlim_max);
    }
}
