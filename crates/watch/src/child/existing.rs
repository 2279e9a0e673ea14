//! A process that runs already: whether it may be watched, said before anything is opened.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iowhy_core::problem::Problem;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Flag of a kernel thread in field 9 of `/proc/PID/stat` (PF_KTHREAD, include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process that was there when we looked.
#[derive(Debug)]
pub struct Existing {
    pid: u32,
    pidfd: Option<OwnedFd>,
}

impl Existing {
    /// Finds the process and makes sure that it may be watched.
    ///
    /// # Errors
    /// No such process; a thread of another; a kernel thread; a process that has ended; ourselves; another user's. Each
    /// says what would work.
    pub fn open(pid: u32) -> Result<Existing, Problem> {
        if pid == std::process::id() {
            return Err(Problem::refused(format!("process {pid} is iowhy itself")));
        }
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(number) = number else { return Err(nobody(pid)) };
        let status = match std::fs::read(format!("/proc/{pid}/status")) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            // hidepid=2 hides processes of other users, but kill(2) knows them.
            Err(_) if exists(pid) => return Err(not_ours(pid, None)),
            Err(_) => return Err(nobody(pid)),
        };
        let field = |name: &str| {
            status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).map(|v| v.trim().to_owned())
        };
        if let Some(process) = field("Tgid").filter(|t| *t != pid.to_string()) {
            return Err(Problem::refused(format!("{pid} is a thread of process {process}"))
                .hint(format!("watch the whole process: `iowhy attach {process}`")));
        }
        if flags(pid).is_some_and(|f| f & KERNEL_THREAD != 0) {
            let name = field("Name").unwrap_or_default();
            return Err(Problem::refused(format!("process {pid} (`{name}`) is a thread of the kernel"))
                .hint("watch the program that it works for, or the path: `iowhy PATH`"));
        }
        if field("State").is_some_and(|s| s.starts_with(['Z', 'X'])) {
            return Err(Problem::refused(format!(
                "process {pid} has ended and waits to be reaped by its parent"
            )));
        }
        // The counters of a process are open to those who may trace it: the same that perf events ask for.
        match std::fs::read(format!("/proc/{pid}/io")) {
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                let user = field("Uid").and_then(|u| u.split_whitespace().next().map(str::to_owned));
                return Err(not_ours(pid, user));
            }
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Err(nobody(pid)),
            // ENOENT with a live process: the kernel has no I/O accounting. The rest can be seen.
            Ok(_) | Err(_) => {}
        }
        let pidfd = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(fd) => Some(fd),
            Err(rustix::io::Errno::SRCH) => return Err(nobody(pid)),
            // Old kernel, or no descriptor left: its end is polled for.
            Err(_) => None,
        };
        Ok(Existing { pid, pidfd })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Readable when the process has ended.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether it has ended.
    pub fn ended(&self) -> bool {
        match &self.pidfd {
            Some(fd) => {
                let mut fds = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
                matches!(rustix::event::poll(&mut fds, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(n) if n > 0)
            }
            None => !exists(self.pid),
        }
    }
}

/// Whether a process of this number is there, ours or not.
fn exists(pid: u32) -> bool {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    !matches!(rustix::process::test_kill_process(number), Err(rustix::io::Errno::SRCH))
}

/// Field 9 of `/proc/PID/stat`: the flags of the task. The name before it may hold anything, so the last `)` counts.
fn flags(pid: u32) -> Option<u64> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.rsplit_once(')')?.1.split_whitespace().nth(6)?.parse().ok()
}

fn nobody(pid: u32) -> Problem {
    Problem::refused(format!("there is no process {pid}")).hint("list them: `ps -e`")
}

fn not_ours(pid: u32, user: Option<String>) -> Problem {
    let whose = user.map_or_else(|| "another user's".to_owned(), |u| format!("of user {u}, or protected"));
    let problem = Problem::refused(format!("process {pid} may not be watched: it is {whose}"));
    if rustix::process::geteuid().is_root() {
        return problem.hint(
            "root has no CAP_SYS_PTRACE here, or a security module forbids it: run iowhy outside the container, or with \
             `--cap-add SYS_PTRACE`",
        );
    }
    problem.hint(format!("`sudo iowhy attach {pid}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(pid: u32) -> String {
        Existing::open(pid).unwrap_err().message
    }

    #[test]
    fn what_cannot_be_watched_is_named() {
        assert!(refusal(std::process::id()).contains("itself"));
        assert!(refusal(0).contains("no process"));
        assert!(refusal(u32::MAX).contains("no process"));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        while flags(pid).is_some() && !refusal_or_ok(pid).contains("has ended") {
            std::thread::yield_now();
        }
        assert!(refusal(pid).contains("has ended"));
        child.wait().unwrap();
        assert!(refusal(pid).contains("no process"));
    }

    fn refusal_or_ok(pid: u32) -> String {
        Existing::open(pid).map_or_else(|p| p.message, |_| String::new())
    }

    #[test]
    fn a_thread_is_led_back_to_its_process() {
        let (send, receive) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            let _ = stopped.recv();
        });
        let tid = receive.recv().unwrap();
        let problem = Existing::open(tid).unwrap_err();
        assert!(problem.hint.unwrap().contains(&format!("attach {}", std::process::id())));
        stop.send(()).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn a_kernel_thread_is_refused() {
        if flags(2).is_none_or(|f| f & KERNEL_THREAD == 0) {
            eprintln!("skipped: process 2 is not a kernel thread here");
            return;
        }
        assert!(refusal(2).contains("kernel"));
    }

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let seen = Existing::open(child.id()).unwrap();
        assert!(!seen.ended());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.ended());
    }
}
