//! A command that we start: held before its first instruction until the events are open, then waited for.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_core::profile::End;
use iowhy_linux::identity::{Identity, Step};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};

use super::exec::{Prepared, SignalsBlocked};
use super::find::{DENIED, Refusal, as_whom, find, not_executable};
use iowhy_linux::signals;

/// What the kernel counted for a process and the children it waited for (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Page faults that needed no device.
    pub minor_faults: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// Largest resident memory of any one process.
    pub peak_memory_bytes: u64,
}

/// A command between fork and the moment it is reaped.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    file: PathBuf,
    /// Who the program runs as, where it is another user.
    identity: Option<Identity>,
    /// Absent where the kernel has none (before 5.3) or no descriptor was left: then the end is polled for.
    pidfd: Option<OwnedFd>,
    /// Present until [`Child::release`].
    gate: Option<Gate>,
    reaped: bool,
}

#[derive(Debug)]
struct Gate {
    go: OwnedFd,
    errors: OwnedFd,
}

/// Whether a process descriptor says that its process has ended.
fn is_readable(pidfd: BorrowedFd<'_>) -> bool {
    let mut asked = [rustix::event::PollFd::from_borrowed_fd(pidfd, rustix::event::PollFlags::IN)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut asked, Some(&now)).is_ok_and(|ready| ready > 0)
}

impl Child {
    /// Forks. The child has its identity, but waits before exec. Its stdin, stdout, stderr, process group, terminal,
    /// environment, signal mask and ignored signals are those that we were started with; `identity`: it becomes that user
    /// right before exec, with the home, name and shell of that user in its environment.
    ///
    /// # Errors
    /// The command is not there or may not be executed (with the exit code of a shell), or no process could be made.
    pub fn hold(
        program: &OsStr,
        arguments: &[OsString],
        identity: Option<&Identity>,
    ) -> Result<Child, Refusal> {
        let file = find(program, identity)?;
        let prepared = {
            // The program's first line is read as that user.
            let _files = identity.map(Identity::for_files).transpose()?;
            Prepared::new(&file, program, arguments, identity)
        };
        let Some(prepared) = prepared else {
            let problem = Problem::refused("an argument of the command holds a zero byte");
            return Err(Refusal { code: 126, problem });
        };
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| cannot_start(&file, &e.into()));
        let (go_read, go) = pipe()?;
        let (errors, errors_write) = pipe()?;
        let open_files = signals::open_files_at_start();
        let blocked = SignalsBlocked::new();
        // SAFETY: the child calls nothing but `become_program`, which makes only async-signal-safe calls.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: this is the child, all signals are blocked, `before` is a mask that the kernel filled.
            unsafe {
                prepared.become_program(
                    go_read.as_raw_fd(),
                    go.as_raw_fd(),
                    errors_write.as_raw_fd(),
                    blocked.before(),
                    open_files,
                )
            }
        }
        let failed = std::io::Error::last_os_error();
        // After the fork: the program gets SIGCHLD as it was found.
        signals::keep_ended_children();
        drop(blocked);
        if pid < 0 {
            return Err(cannot_start(&file, &failed));
        }
        let pidfd = rustix::process::Pid::from_raw(pid).and_then(|p| pidfd_open(p, PidfdFlags::empty()).ok());
        let identity = identity.filter(|identity| identity.switches()).cloned();
        let gate = Some(Gate { go, errors });
        Ok(Child { pid: pid as u32, file, identity, pidfd, gate, reaped: false })
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file that is executed.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Readable when the process has ended.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Lets the program run. Returns when it does: exec has succeeded.
    ///
    /// # Errors
    /// Exec failed: 127 where the file or its interpreter is not there, else 126.
    pub fn release(&mut self) -> Result<(), Refusal> {
        let Some(Gate { go, errors }) = self.gate.take() else { return Ok(()) };
        // A broken pipe means that the child was killed meanwhile: then waiting tells the signal.
        let _ = std::fs::File::from(go).write_all(&[1]);
        let mut failed = [0u8; 8];
        match std::fs::File::from(errors).read_exact(&mut failed) {
            Ok(()) => {
                let [a, b, c, d, errno @ ..] = failed;
                let error = std::io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
                self.reap();
                Err(match (Step::from_number(i32::from_ne_bytes([a, b, c, d])), &self.identity) {
                    (Some(step), Some(identity)) => {
                        let problem = identity.refusal(&self.file.display().to_string(), step, &error);
                        Refusal { code: 126, problem }
                    }
                    (_, identity) => exec_failed(&self.file, identity.as_ref(), &error),
                })
            }
            // The pipe was closed by exec.
            Err(_) => Ok(()),
        }
    }

    /// How it ended, without reaping it: its `/proc` entries can still be read. `None` while it lives.
    pub fn ended(&self) -> Option<End> {
        if self.reaped {
            return Some(End::Gone);
        }
        let pid = rustix::process::Pid::from_raw(self.pid as i32)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(status)) => Some(end_of(&status)),
            // ECHILD: somebody else reaped it, or SIGCHLD is ignored and the kernel did.
            Err(rustix::io::Errno::CHILD) => Some(End::Gone),
            Ok(None) => None,
            // A filter may forbid waitid(2). Then the process descriptor, which is readable when it has ended, tells
            // at least that.
            Err(_) => self.pidfd().is_some_and(is_readable).then_some(End::Gone),
        }
    }

    /// The signal that stopped it since the last call, if one did.
    pub fn stopped(&self) -> Option<i32> {
        let pid = rustix::process::Pid::from_raw(self.pid as i32)?;
        let status = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG).ok()??;
        status.stopping_signal()
    }

    /// Waits for its end and reaps it. `None`: it was reaped before, or by somebody else.
    pub fn reap(&mut self) -> Option<Usage> {
        if std::mem::replace(&mut self.reaped, true) {
            return None;
        }
        reap(self.pid, true)
    }

    /// Sends it a signal. Harmless when it has ended.
    pub fn signal(&self, signal: i32) {
        if !self.reaped {
            // SAFETY: kill(2) takes any numbers. The process is not reaped, so the number is still its own.
            unsafe { libc::kill(self.pid as libc::pid_t, signal) };
        }
    }

    /// Whether it is in our process group, and so gets from the terminal what we get.
    pub fn in_our_group(&self) -> bool {
        // SAFETY: both calls take and return plain numbers.
        unsafe { libc::getpgid(self.pid as libc::pid_t) == libc::getpgrp() }
    }

    /// Forgets the process: it runs on, and becomes init's when we end.
    pub fn leave(mut self) {
        self.reaped = true;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        if self.gate.take().is_some() {
            // Never released: its end of the gate is closed now, and it exits without having run.
            self.reap();
        } else {
            reap(self.pid, false);
        }
    }
}

/// wait4(2) for one process. `None`: nothing to reap (yet).
pub(super) fn reap(pid: u32, wait: bool) -> Option<Usage> {
    // SAFETY: `rusage` is plain numbers, for which zero is a value; the kernel writes to both locals.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let mut status = 0;
        loop {
            let flags = if wait { 0 } else { libc::WNOHANG };
            match libc::wait4(pid as libc::pid_t, &mut status, flags, &mut usage) {
                -1 if std::io::Error::last_os_error().kind() == ErrorKind::Interrupted => {}
                n if n > 0 => return Some(Usage::from_kernel(&usage)),
                _ => return None,
            }
        }
    }
}

impl Usage {
    /// Without so much CPU time, which was not the program's: first from the kernel's part.
    pub(crate) fn without_cpu_ns(self, other_ns: u64) -> Usage {
        let from_user_ns = other_ns.saturating_sub(self.system_ns);
        Usage {
            user_ns: self.user_ns.saturating_sub(from_user_ns),
            system_ns: self.system_ns.saturating_sub(other_ns),
            ..self
        }
    }

    fn from_kernel(u: &libc::rusage) -> Usage {
        let ns =
            |t: libc::timeval| (t.tv_sec.max(0) as u64) * 1_000_000_000 + (t.tv_usec.max(0) as u64) * 1000;
        Usage {
            user_ns: ns(u.ru_utime),
            system_ns: ns(u.ru_stime),
            minor_faults: u.ru_minflt.max(0) as u64,
            major_faults: u.ru_majflt.max(0) as u64,
            peak_memory_bytes: u.ru_maxrss.max(0) as u64 * 1024,
        }
    }
}

fn end_of(status: &WaitIdStatus) -> End {
    if let Some(code) = status.exit_status() {
        End::Code(code)
    } else if let Some(signal) = status.terminating_signal() {
        End::Signal(signal)
    } else {
        End::Gone
    }
}

fn cannot_start(file: &Path, error: &std::io::Error) -> Refusal {
    let problem = Problem::refused(format!("cannot start `{}`: {error}", file.display()));
    let problem = match error.raw_os_error() {
        Some(libc::EMFILE) => {
            problem.hint("too few open files are allowed: `sudo prlimit --pid $$ --nofile=1024`")
        }
        Some(libc::EAGAIN) => problem
            .hint("a limit on processes is reached: see `ulimit -u`, and pids.max of the control group"),
        _ => problem,
    };
    Refusal { code: 126, problem }
}

fn exec_failed(file: &Path, identity: Option<&Identity>, error: &std::io::Error) -> Refusal {
    let shown = file.display();
    let (code, problem) = match error.raw_os_error() {
        Some(libc::ENOENT) => {
            let problem = Problem::refused(format!(
                "cannot run `{shown}`: it, or the interpreter it names, is not there"
            ));
            (
                127,
                problem
                    .hint(format!("see its first line: `head -c 80 {shown}`, or its loader: `file {shown}`")),
            )
        }
        Some(libc::ENOEXEC) => {
            let problem = Problem::refused(format!(
                "cannot run `{shown}`: it is no program that this machine can execute"
            ));
            (126, problem.hint(format!("see what it is: `file {shown}`")))
        }
        Some(libc::E2BIG) => {
            (126, Problem::refused(format!("cannot run `{shown}`: the argument list is too long")))
        }
        Some(libc::EACCES) if identity.is_some() => return not_executable(file, DENIED, identity),
        Some(libc::EAGAIN) => {
            let whom = as_whom(identity);
            let problem =
                Problem::refused(format!("cannot run `{shown}`{whom}: too many processes: {error}"));
            (126, problem.hint("see `ulimit -u`, which counts all processes of a user"))
        }
        _ => (126, Problem::refused(format!("cannot run `{shown}`{}: {error}", as_whom(identity)))),
    };
    Refusal { code, problem }
}
