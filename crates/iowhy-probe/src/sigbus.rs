//! A file truncated under a mapping must fail the cell, not kill the process.
//!
//! One handler for the whole process looks the fault address up in a fixed table of guarded ranges. Inside one, it
//! puts a page of zeros where the file's page was, notes that, and lets the access go on; the method then reports
//! [`crate::access::Failure::Vanished`]. Outside, the handler that stood before gets the signal.
//!
//! Invariant: the handler uses atomics and raw system calls only, so that it is safe wherever a fault may happen.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use iowhy_core::problem::Problem;
use rustix::mm::{MapFlags, ProtFlags};

/// Ranges that can be guarded at once: one for each measuring thread, with room to spare.
const SLOTS: usize = 1024;

/// A guarded range of addresses.
#[derive(Debug)]
struct Slot {
    taken: AtomicBool,
    /// First address; zero when nothing is covered.
    start: AtomicUsize,
    /// First address behind it.
    end: AtomicUsize,
    /// Whether a page of it vanished.
    hit: AtomicBool,
}

impl Slot {
    const fn free() -> Slot {
        Slot {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            hit: AtomicBool::new(false),
        }
    }
}

static TABLE: [Slot; SLOTS] = [const { Slot::free() }; SLOTS];

/// What handled SIGBUS before us, and the page size, both known before the handler is installed.
struct Before {
    action: libc::sigaction,
    page_bytes: usize,
}

static BEFORE: OnceLock<Result<Before, i32>> = OnceLock::new();

/// Protection of one range at a time against vanishing pages.
#[derive(Debug)]
pub struct Guard {
    slot: &'static Slot,
}

impl Guard {
    /// A guard that covers nothing yet. The handler is installed by the first one.
    ///
    /// # Errors
    /// Fails when the handler cannot be installed, or more guards are alive than there is room for.
    pub fn new() -> Result<Guard, Problem> {
        if let Err(code) = BEFORE.get_or_init(install) {
            let cause = std::io::Error::from_raw_os_error(*code);
            return Err(Problem::failed(format!("cannot handle SIGBUS for mapped files: {cause}")));
        }
        Guard::claim(&TABLE)
    }

    /// Takes the first free slot.
    fn claim(table: &'static [Slot]) -> Result<Guard, Problem> {
        match table.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel)) {
            Some(slot) => Ok(Guard { slot }),
            None => Err(Problem::failed(format!("more than {} mappings at once", table.len()))
                .hint("use fewer `--threads` with the mmap methods")),
        }
    }

    /// Covers this range, and no longer the one before.
    pub fn cover(&self, start: *const u8, bytes: usize) {
        self.uncover();
        self.slot.end.store(start.addr() + bytes, Ordering::Release);
        self.slot.start.store(start.addr(), Ordering::Release);
    }

    /// Covers nothing. To be called before the range is unmapped.
    pub fn uncover(&self) {
        self.slot.start.store(0, Ordering::Release);
        self.slot.hit.store(false, Ordering::Release);
    }

    /// Whether a page of the covered range vanished since it was covered or since this was last asked.
    #[inline]
    pub fn vanished(&self) -> bool {
        // The accesses that may have faulted are ordered before this look by the compiler; the signal arrives on
        // this very thread.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.slot.hit.load(Ordering::Relaxed) && self.slot.hit.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.uncover();
        self.slot.taken.store(false, Ordering::Release);
    }
}

/// Remembers what handles SIGBUS and puts `handle` in its place.
fn install() -> Result<Before, i32> {
    let last_error = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    // SAFETY: an all-zero sigaction is a valid value of this plain C structure.
    let (mut before, mut ours): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = handle as *const () as usize;
    // SA_ONSTACK, because a thread may have an alternate stack and too little room on its own.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both structures live across the call, and `handle` keeps to what a signal handler may do.
    if unsafe { libc::sigaction(libc::SIGBUS, &ours, &mut before) } != 0 {
        return Err(last_error());
    }
    Ok(Before { action: before, page_bytes: rustix::param::page_size() })
}

/// The handler.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // No guard exists, hence no range of ours, until BEFORE is set.
    let Some(Ok(before)) = BEFORE.get() else {
        return fall_back_to_default();
    };
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler; si_addr is meaningful for a positive
    // si_code, which only the kernel can send.
    let address = unsafe { if (*info).si_code > 0 { (*info).si_addr().addr() } else { 0 } };
    let ours = TABLE.iter().find(|slot| {
        let start = slot.start.load(Ordering::Acquire);
        start != 0 && start <= address && address < slot.end.load(Ordering::Acquire)
    });
    match ours {
        Some(slot) if put_zeros(address, before.page_bytes) => slot.hit.store(true, Ordering::Release),
        _ => pass_on(&before.action, signal, info, context),
    }
}

/// Puts a private page of zeros where a guarded mapping lost its page.
fn put_zeros(address: usize, page_bytes: usize) -> bool {
    let page = std::ptr::without_provenance_mut(address & !(page_bytes - 1));
    // SAFETY: the page lies inside a range that its owner guards, mapped and page-aligned, and has no content left
    // that could be lost. The owner's accesses stay valid, and its munmap covers the new page too.
    unsafe {
        rustix::mm::mmap_anonymous(
            page,
            page_bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::FIXED,
        )
    }
    .is_ok()
}

/// Gives a signal that is not ours to whoever handled it before.
fn pass_on(action: &libc::sigaction, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = action.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        fall_back_to_default();
    } else if action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: SA_SIGINFO says that this is the type of the handler.
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: without SA_SIGINFO this is the type of the handler.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

/// Lets the fault happen again, this time to the default action: the process ends and says why.
fn fall_back_to_default() {
    // SAFETY: sigaction is async-signal-safe; all zero means SIG_DFL without flags.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, &default, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_given_back_and_the_table_says_when_it_is_full() {
        static TWO: [Slot; 2] = [const { Slot::free() }; 2];
        let first = Guard::claim(&TWO).unwrap();
        let _second = Guard::claim(&TWO).unwrap();
        assert!(Guard::claim(&TWO).is_err_and(|problem| problem.hint.unwrap().contains("--threads")));
        drop(first);
        assert!(Guard::claim(&TWO).is_ok());
    }

    #[test]
    fn a_fault_outside_every_guarded_range_still_ends_the_process() {
        // In a child, because that is what must die.
        const CHILD: &str = "IOWHY_TEST_SIGBUS_CHILD";
        if std::env::var_os(CHILD).is_some() {
            let no_core = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
            rustix::process::setrlimit(rustix::process::Resource::Core, no_core).unwrap();
            let _guard = Guard::new().unwrap();
            let file = tempfile::tempfile().unwrap();
            // SAFETY: a fresh mapping of an empty file; loading from it raises SIGBUS, which is what is tested.
            unsafe {
                let page =
                    rustix::mm::mmap(std::ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::SHARED, &file, 0)
                        .unwrap();
                std::ptr::read_volatile(page.cast::<u8>());
            }
            std::process::exit(0);
        }
        use std::os::unix::process::ExitStatusExt;
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sigbus::tests::a_fault_outside_every_guarded_range_still_ends_the_process"])
            .env(CHILD, "1")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(libc::SIGBUS));
    }
}
