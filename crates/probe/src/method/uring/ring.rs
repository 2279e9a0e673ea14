//! The ring itself: set-up with every useful flag the kernel has, and the one system call of the hot path.
//!
//! Goal: the cheapest way into the kernel that this kernel offers, and words for each step it refused. Non-goal: what
//! the requests mean (that is the parent's). Invariant: every entry that was pushed is either counted in `queued` (the
//! kernel has not seen it) or the kernel owns it.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use io_uring::{CompletionQueue, EnterFlags, IoUring, SubmissionQueue, squeue};
use iowhy_core::problem::Problem;
use libc::c_long;
use rustix::io::Errno;

/// The kernel's limit on submission entries (IORING_MAX_ENTRIES).
const MAX_ENTRIES: usize = 32768;

/// How long the submission thread of SQPOLL stays awake without work.
const SQ_THREAD_IDLE_MS: u32 = 1000;

/// Between two attempts to get memory for the rings.
const UNCHARGE_PAUSE: Duration = Duration::from_millis(5);

/// Looks at the completion queue before a SQPOLL wait goes to sleep in the kernel: about 20 us, longer than a cached
/// read takes and shorter than what a submission thread that shares our CPU would lose by our spinning.
const SPINS: u32 = 1000;

/// Who submits and who looks for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::method) enum Mode {
    /// We submit by system call, the device interrupts.
    Interrupt,
    /// A kernel thread submits.
    Sqpoll,
    /// We submit by system call and poll the device for completions.
    Iopoll,
}

impl Mode {
    /// Submission entries for each request in flight, so that the queue is never full.
    ///
    /// A submission thread gives the entries of a batch back when it has dealt with all of them, and cached reads
    /// complete before that: a whole batch that has ended and as many new requests may lie in the queue together.
    fn entries_per_request(self) -> usize {
        match self {
            Mode::Sqpoll => 2,
            Mode::Interrupt | Mode::Iopoll => 1,
        }
    }
}

/// An optional set-up flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    SubmitAll,
    CoopTaskrun,
    SingleIssuer,
    DeferTaskrun,
    NoSqarray,
}

impl Flag {
    /// Flags worth asking for, oldest first: each needs those before it at most. A submission thread has no use for
    /// the two that say when completions run in the submitting task (the kernel refuses the combination).
    fn wanted(mode: Mode) -> Vec<Flag> {
        use Flag::*;
        match mode {
            Mode::Sqpoll => vec![SubmitAll, SingleIssuer, NoSqarray],
            Mode::Interrupt | Mode::Iopoll => {
                vec![SubmitAll, CoopTaskrun, SingleIssuer, DeferTaskrun, NoSqarray]
            }
        }
    }

    /// The kernel's name without the prefix, and the first Linux that has it.
    fn name_and_origin(self) -> (&'static str, &'static str) {
        match self {
            Flag::SubmitAll => ("SUBMIT_ALL", "5.18"),
            Flag::CoopTaskrun => ("COOP_TASKRUN", "5.19"),
            Flag::SingleIssuer => ("SINGLE_ISSUER", "6.0"),
            Flag::DeferTaskrun => ("DEFER_TASKRUN", "6.1"),
            Flag::NoSqarray => ("NO_SQARRAY", "6.6"),
        }
    }
}

/// Asks for all flags and, as long as the answer is EINVAL, for one less, the newest first. Returns what `build` made,
/// and the flags that were given up.
fn settle<T>(
    mut flags: Vec<Flag>,
    mut build: impl FnMut(&[Flag]) -> io::Result<T>,
) -> io::Result<(T, Vec<Flag>)> {
    let mut given_up = Vec::new();
    loop {
        match build(&flags) {
            Ok(made) => return Ok((made, given_up)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => match flags.pop() {
                Some(flag) => given_up.push(flag),
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
}

fn build(entries: u32, mode: Mode, flags: &[Flag]) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    match mode {
        Mode::Interrupt => {}
        Mode::Sqpoll => {
            builder.setup_sqpoll(SQ_THREAD_IDLE_MS);
        }
        Mode::Iopoll => {
            builder.setup_iopoll();
        }
    }
    for flag in flags {
        match flag {
            Flag::SubmitAll => builder.setup_submit_all(),
            Flag::CoopTaskrun => builder.setup_coop_taskrun(),
            Flag::SingleIssuer => builder.setup_single_issuer(),
            Flag::DeferTaskrun => builder.setup_defer_taskrun(),
            Flag::NoSqarray => builder.setup_no_sqarray(),
        };
    }
    builder.build(entries)
}

/// Builds, and tries again for a short while when there is no locked memory left: the kernel takes a closed ring off
/// the user's account in the background, so the ring of the cell before may still be on it.
fn build_patiently(entries: u32, mode: Mode, flags: &[Flag]) -> io::Result<IoUring> {
    for _ in 0..20 {
        match build(entries, mode, flags) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => std::thread::sleep(UNCHARGE_PAUSE),
            result => return result,
        }
    }
    build(entries, mode, flags)
}

/// An io_uring instance of one thread.
pub(in crate::method) struct Ring {
    io: IoUring,
    mode: Mode,
    /// What `io_uring_enter` is called with: the index of the registered ring, or its descriptor.
    enter_fd: i32,
    enter_flags: u32,
    /// Entries pushed and not yet handed to the kernel. Always 0 with a submission thread, which takes them itself.
    queued: u32,
}

impl Ring {
    /// Sets up a ring of this queue depth. Refused options are added to `dropped` in words.
    ///
    /// # Errors
    /// io_uring is switched off, forbidden or unknown here, or out of memory.
    pub(in crate::method) fn new(
        depth: usize,
        mode: Mode,
        dropped: &mut Vec<String>,
    ) -> Result<Ring, Problem> {
        let most = MAX_ENTRIES / mode.entries_per_request();
        if !(1..=most).contains(&depth) {
            return Err(Problem::refused(format!(
                "--iodepth {depth}: io_uring keeps 1 to {most} requests in flight this way"
            ))
            .hint(format!("use an --iodepth from 1 to {most}")));
        }
        let entries = (depth * mode.entries_per_request()) as u32;
        let (io, given_up) = settle(Flag::wanted(mode), |flags| build_patiently(entries, mode, flags))
            .map_err(|error| refusal(&error, switch_setting().as_deref()))?;
        dropped.extend(given_up.into_iter().map(|flag| {
            let (name, origin) = flag.name_and_origin();
            format!("{name}: not supported (EINVAL); Linux {origin} has it")
        }));
        let mut ring = Ring { enter_fd: io.as_raw_fd(), enter_flags: 0, io, mode, queued: 0 };
        match register_ring(ring.enter_fd) {
            Ok(index) => {
                ring.enter_fd = index;
                ring.enter_flags = EnterFlags::REGISTERED_RING.bits();
            }
            Err(error) => dropped.push(format!("registered ring: refused ({error}); needs Linux 5.18")),
        }
        Ok(ring)
    }

    /// For registering files and buffers.
    pub(in crate::method) fn submitter(&self) -> io_uring::Submitter<'_> {
        self.io.submitter()
    }

    /// Whether the device is polled for completions.
    #[cfg(test)]
    pub(in crate::method) fn completions_are_polled(&self) -> bool {
        self.mode == Mode::Iopoll
    }

    /// Whether entries wait for [`Ring::enter`].
    pub(in crate::method) fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Puts one entry into the submission queue; the kernel sees it at the next [`Ring::enter`] (a submission thread
    /// at once).
    ///
    /// # Errors
    /// EBUSY when the queue is full, which is not so while no more than `depth` requests are in flight.
    ///
    /// # Safety
    /// The memory and the descriptor that the entry names stay valid until its completion was taken from
    /// [`Ring::completions`], or until [`Ring::forget_queued`] reported it as never seen by the kernel.
    pub(in crate::method) unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<(), Errno> {
        let mut queue: SubmissionQueue<'_> = self.io.submission();
        // SAFETY: passed on to the caller.
        unsafe { queue.push(entry) }.map_err(|_| Errno::BUSY)?;
        if self.mode != Mode::Sqpoll {
            self.queued += 1;
        }
        Ok(())
    }

    /// Takes back the entries that the kernel has not seen; returns their number. They will never complete, and
    /// [`Ring::enter`] no longer submits them: from here on the ring only drains.
    pub(in crate::method) fn forget_queued(&mut self) -> u32 {
        std::mem::take(&mut self.queued)
    }

    /// Hands queued entries to the kernel and waits until `wait` completions lie in the queue, in one system call.
    /// May return earlier (a signal, a partial submission): the caller counts and calls again.
    pub(in crate::method) fn enter(&mut self, wait: usize) -> Result<(), Errno> {
        let mut flags = self.enter_flags | EnterFlags::GETEVENTS.bits();
        if self.mode == Mode::Sqpoll {
            // Orders our write of the queue's tail before the read of the thread's "I sleep" flag.
            fence(Ordering::SeqCst);
            let asleep = self.io.submission().need_wakeup();
            if asleep {
                flags |= EnterFlags::SQ_WAKEUP.bits();
            } else if self.spin(wait) {
                return Ok(());
            }
        }
        // With GETEVENTS even a wait for nothing runs the completions that DEFER_TASKRUN has put off.
        match enter(self.enter_fd, self.queued, wait as u32, flags) {
            Ok(taken) => {
                self.queued = self.queued.saturating_sub(taken);
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Watches the completion queue for a short while; whether `wait` completions are there.
    fn spin(&mut self, wait: usize) -> bool {
        for _ in 0..SPINS {
            if self.io.completion().len() >= wait {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// The completions that have arrived.
    pub(in crate::method) fn completions(&mut self) -> CompletionQueue<'_> {
        self.io.completion()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // A registered index holds the ring open until the thread ends, and a thread has only 16 of them.
        if self.enter_flags & EnterFlags::REGISTERED_RING.bits() != 0 {
            unregister_ring(self.io.as_raw_fd(), self.enter_fd);
        }
    }
}

/// `kernel.io_uring_disabled`, where the kernel has it (Linux 6.6).
fn switch_setting() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok().map(|text| text.trim().to_owned())
}

/// The refusal of `io_uring_setup` in words.
fn refusal(error: &io::Error, switch: Option<&str>) -> Problem {
    match (error.raw_os_error(), switch) {
        (Some(libc::ENOSYS), _) => Problem::refused(
            "--method uring: this kernel, or its system-call filter, has no io_uring (ENOSYS)",
        )
        .hint(
            "use `--method pread`; in a container allow io_uring_setup, io_uring_enter and io_uring_register",
        ),
        (Some(libc::EPERM), Some(value @ ("1" | "2"))) => Problem::refused(format!(
            "--method uring: io_uring is switched off: kernel.io_uring_disabled = {value}{}",
            if value == "1" { " (root and the group of kernel.io_uring_group only)" } else { "" }
        ))
        .hint("`sudo sysctl kernel.io_uring_disabled=0`, or use `--method pread`"),
        (Some(libc::EPERM), value) => Problem::refused(format!(
            "--method uring: io_uring_setup is forbidden (EPERM) although kernel.io_uring_disabled {}",
            value.map_or_else(|| "does not exist".to_owned(), |v| format!("= {v}"))
        ))
        .hint(
            "a seccomp filter does this, as container run-times install: run outside it \
             (docker: `--security-opt seccomp=unconfined`), or use `--method pread`",
        ),
        (Some(libc::ENOMEM), _) => Problem::refused("--method uring: no memory for the rings (ENOMEM)")
            .hint("raise the locked-memory limit (`ulimit -l`), or use a smaller --iodepth"),
        _ => Problem::refused(format!("--method uring: io_uring_setup failed: {error}"))
            .hint("use `--method pread`"),
    }
}

/// `struct io_uring_rsrc_update`, as IORING_REGISTER_RING_FDS takes it.
#[repr(C)]
struct RingRegistration {
    offset: u32,
    resv: u32,
    data: u64,
}

// `syscall` takes full registers: every number is passed as one.
const REGISTER_RING_FDS: c_long = 20;
const UNREGISTER_RING_FDS: c_long = 21;
const ONE: c_long = 1;

/// Registers a ring's descriptor with its thread and returns the index. The `io-uring` crate can do this too, but only
/// for the life of a borrow of the ring.
fn register_ring(ring: RawFd) -> io::Result<i32> {
    let mut update = RingRegistration { offset: u32::MAX, resv: 0, data: ring as u64 };
    // SAFETY: `update` is one live `io_uring_rsrc_update`, and the count says one; the kernel writes only its offset.
    let taken = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            c_long::from(ring),
            REGISTER_RING_FDS,
            &raw mut update,
            ONE,
        )
    };
    if taken == 1 { Ok(update.offset as i32) } else { Err(io::Error::last_os_error()) }
}

/// Undoes [`register_ring`]. A refusal changes nothing: the thread's end does the same.
fn unregister_ring(ring: RawFd, index: i32) {
    let mut update = RingRegistration { offset: index as u32, resv: 0, data: 0 };
    // SAFETY: as in `register_ring`; the kernel only reads.
    unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            c_long::from(ring),
            UNREGISTER_RING_FDS,
            &raw mut update,
            ONE,
        )
    };
}

/// `io_uring_enter(2)`; returns the number of entries the kernel took.
fn enter(fd: i32, to_submit: u32, wait: u32, flags: u32) -> Result<u32, Errno> {
    // SAFETY: no memory is passed (the signal mask is null). That the entries submitted here name valid memory is the
    // promise of `Ring::push`.
    let taken = unsafe {
        libc::syscall(
            libc::SYS_io_uring_enter,
            c_long::from(fd),
            to_submit as c_long,
            wait as c_long,
            flags as c_long,
            std::ptr::null::<libc::sigset_t>(),
            0 as c_long,
        )
    };
    u32::try_from(taken).map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn einval() -> io::Error {
        io::Error::from_raw_os_error(libc::EINVAL)
    }

    #[test]
    fn flags_are_given_up_one_by_one_from_the_newest() {
        // A kernel of 6.0: neither DEFER_TASKRUN (6.1) nor NO_SQARRAY (6.6).
        let mut asked = Vec::new();
        let (_, given_up) = settle(Flag::wanted(Mode::Interrupt), |flags| {
            asked.push(flags.len());
            let unknown = [Flag::DeferTaskrun, Flag::NoSqarray];
            if flags.iter().any(|f| unknown.contains(f)) { Err(einval()) } else { Ok(()) }
        })
        .unwrap();
        assert_eq!(asked, [5, 4, 3]);
        assert_eq!(given_up, [Flag::NoSqarray, Flag::DeferTaskrun]);
    }

    #[test]
    fn other_errors_and_an_einval_without_flags_end_the_search() {
        let mut calls = 0;
        let forbidden: io::Result<((), _)> = settle(Flag::wanted(Mode::Sqpoll), |_| {
            calls += 1;
            Err(io::Error::from_raw_os_error(libc::EPERM))
        });
        assert_eq!(forbidden.err().and_then(|e| e.raw_os_error()), Some(libc::EPERM));
        assert_eq!(calls, 1);
        let never: io::Result<((), _)> = settle(Flag::wanted(Mode::Sqpoll), |_| Err(einval()));
        assert_eq!(never.err().and_then(|e| e.raw_os_error()), Some(libc::EINVAL));
    }

    #[test]
    fn a_refusal_names_the_switch_and_its_value() {
        let eperm = io::Error::from_raw_os_error(libc::EPERM);
        let off = refusal(&eperm, Some("2"));
        assert!(off.message.contains("kernel.io_uring_disabled = 2"), "{off}");
        assert!(off.hint.unwrap().contains("sysctl kernel.io_uring_disabled=0"));
        assert!(refusal(&eperm, Some("1")).message.contains("io_uring_group"));
        let filtered = refusal(&eperm, Some("0"));
        assert!(filtered.message.contains("kernel.io_uring_disabled = 0"), "{filtered}");
        assert!(filtered.hint.unwrap().contains("seccomp"));
        let absent = refusal(&io::Error::from_raw_os_error(libc::ENOSYS), None);
        assert!(absent.message.contains("ENOSYS"), "{absent}");
    }

    #[test]
    fn a_depth_that_no_ring_has_is_refused() {
        for (mode, depth) in
            [(Mode::Interrupt, 0), (Mode::Interrupt, MAX_ENTRIES + 1), (Mode::Sqpoll, MAX_ENTRIES / 2 + 1)]
        {
            let refused = Ring::new(depth, mode, &mut Vec::new()).err().unwrap();
            assert!(refused.message.contains(&depth.to_string()), "{refused}");
        }
    }
}
