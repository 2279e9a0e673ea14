//! What happens between fork and exec. Everything is prepared before; in the child only async-signal-safe calls are
//! made, no memory is taken, and nothing can panic.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use iowhy_linux::identity::Identity;
use iowhy_linux::signals::{MAX_SIGNAL, ignored_at_start, is_ignored, set_plain};
use libc::{c_char, c_int};

use iowhy_linux::signals;

/// Runs scripts that have no `#!` line, as shells do.
const SHELL: &CStr = c"/bin/sh";

unsafe extern "C" {
    /// The environment as the C library holds it: what exec passes on unchanged.
    static environ: *const *const c_char;
}

/// All that execve needs, as C wants it.
pub(super) struct Prepared {
    file: CString,
    /// Owns what `argv` and `shell_argv` point to.
    _words: Vec<CString>,
    argv: Vec<*const c_char>,
    /// `/bin/sh FILE ARGUMENTS`.
    shell_argv: Vec<*const c_char>,
    /// Who the program runs as, where it is another user.
    identity: Option<Identity>,
    /// Environment of that user; empty: ours, unchanged.
    envp: Vec<*const c_char>,
    /// Owns what `envp` points to.
    _environment: Vec<CString>,
    /// Whether a shell may read the file where the kernel cannot execute it.
    is_text: bool,
    /// Which of stdin, stdout and stderr were closed when we were started; the runtime of Rust opens /dev/null for them.
    closed: [bool; 3],
}

impl Prepared {
    /// `None` when a word holds a zero byte, which no program could be given.
    pub(super) fn new(
        file: &Path,
        program: &OsStr,
        arguments: &[OsString],
        identity: Option<&Identity>,
    ) -> Option<Self> {
        let is_text = is_text(file);
        let file = CString::new(file.as_os_str().as_bytes()).ok()?;
        let mut words = vec![CString::new(program.as_bytes()).ok()?];
        for argument in arguments {
            words.push(CString::new(argument.as_bytes()).ok()?);
        }
        // The heap blocks of the CStrings stay where they are when the vector that owns them moves.
        let pointers = || words.iter().map(|w| w.as_ptr());
        let argv = pointers().chain([ptr::null()]).collect();
        let shell_argv = [SHELL.as_ptr(), file.as_ptr()]
            .into_iter()
            .chain(pointers().skip(1))
            .chain([ptr::null()])
            .collect();
        let identity = identity.filter(|identity| identity.switches()).cloned();
        let environment = identity.as_ref().map(environment_of).unwrap_or_default();
        let mut envp: Vec<*const c_char> = environment.iter().map(|e| e.as_ptr()).collect();
        if !envp.is_empty() {
            envp.push(ptr::null());
        }
        Some(Prepared {
            file,
            _words: words,
            argv,
            shell_argv,
            identity,
            envp,
            _environment: environment,
            is_text,
            closed: signals::streams_closed_at_start(),
        })
    }

    /// The child's side: waits for a byte on `go`, becomes the user, then the program. What fails goes to `errors` as two
    /// numbers: the [`Step`](iowhy_linux::identity::Step), or 0 for exec, and the errno. Never returns.
    ///
    /// # Safety
    /// Only in a process that fork(2) just made, with all signals blocked. `mask` is the signal mask of the program.
    pub(super) unsafe fn become_program(
        &self,
        go: RawFd,
        parent_end: RawFd,
        errors: RawFd,
        mask: &libc::sigset_t,
        open_files: Option<libc::rlimit>,
    ) -> ! {
        // SAFETY: every call is async-signal-safe and gets valid pointers: to locals, or to memory that was prepared
        // before the fork and is never freed in this process. `sigaction` structures are zeroed, which is a valid value.
        unsafe {
            // Our copy of the writing end would keep `go` open if the watcher dies.
            libc::close(parent_end);
            // As we were started: the runtime of Rust ignores SIGPIPE since, and iowhy SIGXFSZ. Handlers are not inherited
            // over exec, but one could run until then.
            for signal in 1..=MAX_SIGNAL {
                if ignored_at_start(signal) != is_ignored(signal) || !ignored_at_start(signal) {
                    set_plain(signal, ignored_at_start(signal));
                }
            }
            if let Some(limit) = &open_files {
                libc::setrlimit(libc::RLIMIT_NOFILE, limit);
            }
            libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut());
            let mut byte = 0u8;
            loop {
                match libc::read(go, (&raw mut byte).cast(), 1) {
                    1 => break,
                    -1 if *libc::__errno_location() == libc::EINTR => {}
                    // The watcher is gone, or gave up before it began.
                    _ => libc::_exit(127),
                }
            }
            for (stream, closed) in self.closed.iter().enumerate() {
                if *closed {
                    libc::close(stream as c_int);
                }
            }
            // Nothing is opened or looked up between this and exec, which is judged by the rights of the user.
            let failed: [c_int; 2] = match self.identity.as_ref().map_or(Ok(()), |i| i.become_it()) {
                Err((step, errno)) => [step as c_int, errno],
                Ok(()) => {
                    let envp = if self.envp.is_empty() { environ } else { self.envp.as_ptr() };
                    libc::execve(self.file.as_ptr(), self.argv.as_ptr(), envp);
                    if self.is_text && *libc::__errno_location() == libc::ENOEXEC {
                        libc::execve(SHELL.as_ptr(), self.shell_argv.as_ptr(), envp);
                    }
                    [0, *libc::__errno_location()]
                }
            };
            libc::write(errors, (&raw const failed).cast(), size_of_val(&failed));
            libc::_exit(127)
        }
    }
}

/// Our environment with the home, name and shell of another user.
fn environment_of(identity: &Identity) -> Vec<CString> {
    let changed = identity.environment();
    let kept = std::env::vars_os().filter(|(name, _)| changed.iter().all(|(other, _)| name != other));
    let set = changed.iter().filter_map(|(name, value)| Some((OsString::from(name), value.clone()?)));
    kept.chain(set)
        .filter_map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            CString::new(entry.into_encoded_bytes()).ok()
        })
        .collect()
}

/// Whether a file could be a script without `#!`: as in shells, its first line must not hold a zero byte, and it is no
/// program of another machine or damaged.
fn is_text(file: &Path) -> bool {
    use std::io::Read;
    let mut start = [0u8; 128];
    let Ok(length) = std::fs::File::open(file).and_then(|mut f| f.read(&mut start)) else { return true };
    let start = &start[..length];
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    !start.starts_with(b"\x7fELF") && !line.contains(&0)
}

/// Blocks every signal of this thread while it lives.
pub(super) struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    pub(super) fn new() -> Self {
        // SAFETY: both sets are plain data of this frame; sigfillset and pthread_sigmask only write to them.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            SignalsBlocked { before }
        }
    }

    /// The mask that was in force.
    pub(super) fn before(&self) -> &libc::sigset_t {
        &self.before
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_given_scripts_and_no_programs() {
        let folder = tempfile::tempdir().unwrap();
        let of = |content: &[u8]| {
            let file = folder.path().join("file");
            std::fs::write(&file, content).unwrap();
            is_text(&file)
        };
        assert!(of(b"echo hello\n") && of(b"") && of(b"echo\n\0\0 data behind the script"));
        assert!(!of(b"\x7fELFgarbage") && !of(b"MZ\0\0\n"));
        assert!(is_text(Path::new("/no/such/file")), "exec tells");
    }
}
