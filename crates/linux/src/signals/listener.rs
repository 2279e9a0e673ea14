//! Requests to stop, as messages to read in order. Handlers write to a pipe: unlike signalfd this needs no signal to be
//! blocked, so it works whatever other threads do, and a program that we start inherits nothing.
//!
//! Invariant: a signal that was ignored when we were started (`nohup`) stays ignored; former handlers return at the end.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::c_int;
use rustix::pipe::{PipeFlags, pipe_with};

use super::{Meaning, all, is_ignored, note_hang_up};
use crate::clock::monotonic_ns;

/// The signals that we hear: all that would end us, but for faults.
fn heard() -> impl Iterator<Item = c_int> {
    all(|m| matches!(m, Meaning::Stop | Meaning::Message | Meaning::Limit))
}

/// Where the handler writes; -1: nobody listens.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);

/// Whether somebody listens. Handlers belong to the whole process, so there is one listener at a time.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number.
    pub signal: i32,
    /// The kernel sent it, for a key of the terminal or its end: the whole foreground process group got it. Otherwise
    /// a process sent it, perhaps to us alone.
    pub from_kernel: bool,
    /// The process that sent it; 0: none, or one that cannot be seen from here.
    pub sender: u32,
    /// When it arrived, by CLOCK_MONOTONIC in nanoseconds: we may come to it much later.
    pub at_ns: u64,
}

/// The pipe between handlers and listeners, made once. It stays open: a handler on another thread may have read the number
/// of its writing end, and would write into whatever gets that number next.
static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();

/// [`PIPE`]; `None` where there is no descriptor left. Only for who holds [`TAKEN`].
fn pipe() -> Option<&'static (OwnedFd, OwnedFd)> {
    if PIPE.get().is_none() {
        let made = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        PIPE.get_or_init(|| made);
    }
    PIPE.get()
}

/// Hears signals while it lives.
#[derive(Debug)]
pub struct Signals {
    read_end: BorrowedFd<'static>,
    before: Vec<(c_int, libc::sigaction)>,
}

impl Signals {
    /// Starts to listen. `None`: somebody in this process listens already, or there is no descriptor left; signals then
    /// do what they did before.
    pub fn listen() -> Option<Signals> {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return None;
        }
        let Some((read_end, write_end)) = pipe() else {
            TAKEN.store(false, Ordering::Release);
            return None;
        };
        // A handler that was late for the listener before.
        while rustix::io::read(read_end, &mut [0u8; MESSAGE]).is_ok() {}
        WRITE_END.store(write_end.as_raw_fd(), Ordering::Release);
        let mut before = Vec::new();
        for signal in heard().filter(|signal| !is_ignored(*signal)) {
            // SAFETY: zeroed structures are valid values. `on_signal` has the signature that SA_SIGINFO asks for and
            // makes only async-signal-safe calls.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = on_signal as *const () as libc::sighandler_t;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                if libc::sigaction(signal, &new, &mut old) == 0 {
                    before.push((signal, old));
                }
            }
        }
        Some(Signals { read_end: read_end.as_fd(), before })
    }

    /// Readable when a signal has arrived.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.read_end
    }

    /// The next signal that arrived, if any. Does not wait.
    pub fn next(&self) -> Option<Arrival> {
        let mut message = [0u8; MESSAGE];
        match rustix::io::retry_on_intr(|| rustix::io::read(self.read_end, &mut message)) {
            Ok(MESSAGE) => {
                let [signal, from_kernel, a, b, c, d, at @ ..] = message;
                Some(Arrival {
                    signal: i32::from(signal),
                    from_kernel: from_kernel != 0,
                    sender: u32::from_ne_bytes([a, b, c, d]),
                    at_ns: u64::from_ne_bytes(at),
                })
            }
            Ok(_) | Err(_) => None,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: `old` was filled by sigaction for this very signal.
            unsafe { libc::sigaction(*signal, old, ptr::null_mut()) };
        }
        WRITE_END.store(-1, Ordering::Release);
        TAKEN.store(false, Ordering::Release);
    }
}

/// Bytes of a message from the handler; below PIPE_BUF, so that each is written and read whole.
const MESSAGE: usize = 14;

/// The handler: a message (the signal, whether the kernel sent it, who did, when) into the pipe. A pipe that is full holds requests enough.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let fd = WRITE_END.load(Ordering::Acquire);
    if fd < 0 {
        return;
    }
    // SAFETY: the kernel hands over a valid siginfo with SA_SIGINFO. write(2) and clock_gettime(2) are async-signal-safe,
    // and the errno that they may change is put back.
    unsafe {
        let from_kernel = !info.is_null() && (*info).si_code == libc::SI_KERNEL;
        if from_kernel && signal == libc::SIGHUP {
            note_hang_up();
        }
        let sent =
            !info.is_null() && matches!((*info).si_code, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL);
        let sender = if sent { (*info).si_pid() as u32 } else { 0 };
        let errno = *libc::__errno_location();
        let at_ns = monotonic_ns();
        let mut message = [0u8; MESSAGE];
        message[0] = signal as u8;
        message[1] = u8::from(from_kernel);
        message[2..6].copy_from_slice(&sender.to_ne_bytes());
        message[6..].copy_from_slice(&at_ns.to_ne_bytes());
        libc::write(fd, message.as_ptr().cast(), message.len());
        *libc::__errno_location() = errno;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one test of the handlers: they belong to the whole process.
    #[test]
    fn signals_are_read_in_order_and_handlers_put_back() {
        let handler = |signal| super::super::action(signal).unwrap().sa_sigaction;
        let all_now = || heard().map(handler).collect::<Vec<_>>();
        let before = all_now();
        let Some(signals) = Signals::listen() else {
            eprintln!("skipped: another test listens");
            return;
        };
        assert!(Signals::listen().is_none(), "one listener at a time");
        assert_eq!(signals.next(), None);
        if handler(libc::SIGTERM) != libc::SIG_IGN {
            // SAFETY: raising a signal whose handler was just installed.
            unsafe { libc::raise(libc::SIGTERM) };
            let sender = std::process::id();
            let arrival = signals.next().expect("it was raised");
            assert!(arrival.at_ns > 0);
            let at_ns = arrival.at_ns;
            assert_eq!(arrival, Arrival { signal: libc::SIGTERM, from_kernel: false, sender, at_ns });
            assert_eq!(signals.next(), None);
        }
        let number = WRITE_END.load(Ordering::Acquire);
        let leads_to = || std::fs::read_link(format!("/proc/self/fd/{number}"));
        let pipe = leads_to().unwrap();
        drop(signals);
        assert_eq!(all_now(), before);
        assert_eq!(leads_to().unwrap(), pipe, "a handler that is late may write there still");
        // SAFETY: as a late handler does; the descriptor was just seen to be the pipe.
        let late = unsafe { libc::write(number, [0u8; MESSAGE].as_ptr().cast(), MESSAGE) };
        assert_eq!(late, MESSAGE as isize);
        let again = Signals::listen().expect("nobody listens");
        assert_eq!((again.next(), WRITE_END.load(Ordering::Acquire)), (None, number));
    }
}
