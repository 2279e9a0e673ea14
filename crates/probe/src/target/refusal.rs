//! Why a path cannot be opened, in words, with the fix for each cause.

use std::path::Path;

use iowhy_core::problem::Problem;
use rustix::io::Errno;

/// The error in the system's words, without the number: `permission denied`.
pub(super) fn words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// What a directory is called in [`cannot_open`]: its fix differs, because a file is made in it.
pub(super) const DIRECTORY: &str = "the directory";

/// A refusal to open or look at `path`; `what` is what it is or what was wanted (`the block device`), or empty.
pub(super) fn cannot_open(path: &Path, what: &str, errno: Errno) -> Problem {
    let name = path.display();
    let space = if what.is_empty() { "" } else { " " };
    let subject = format!("cannot open {what}{space}`{name}`");
    let plain = Problem::refused(format!("{subject}: {}", words(errno)));
    match errno {
        Errno::NOENT => plain.hint("name an existing file, directory or device; the current directory is `.`"),
        Errno::NOTDIR => plain.hint("a part of this path before its last `/` is a file, not a directory"),
        Errno::ACCESS if what == DIRECTORY => plain.hint(format!(
            "run `sudo iowhy {name}` (it writes a file of its own there and removes it), or name a directory of yours"
        )),
        Errno::ACCESS => plain.hint(format!(
            "ask for the right to read it, run `sudo iowhy {name}` (it is only read), or name a file that you may read"
        )),
        Errno::PERM => Problem::refused(format!(
            "{subject}: operation not permitted; a container's devices control group or a security module can forbid \
             this even to root"
        ))
        .hint("measure a file on it instead, as in `iowhy FILE`, or run outside the container"),
        Errno::LOOP => plain.hint(format!("a symbolic link in this path leads back to itself; see `namei {name}`")),
        Errno::NAMETOOLONG => plain.hint("a path holds at most 4095 bytes and each name in it 255; use a shorter one"),
        Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM => {
            plain.hint(format!("the device node has no device behind it; `lsblk` lists those that exist, `{name}` is not one"))
        }
        Errno::BUSY => plain.hint("it is mounted or in use by another program; `lsblk` and `fuser -v` show by whom"),
        Errno::ROFS => plain.hint("the file system is mounted read-only; measure reads, or name another directory"),
        Errno::MFILE | Errno::NFILE => plain.hint("raise the limit of open files with `ulimit -n 4096`, or use fewer `--threads`"),
        Errno::STALE => plain.hint("the network server no longer knows this file; mount it again"),
        _ => plain.hint("look at `dmesg` for the cause, or name another target"),
    }
}

/// O_DIRECT was refused with EINVAL. A target without a file system is a device.
pub(super) fn no_direct(name: &str, file_system: Option<&str>) -> Problem {
    let who = file_system.map_or_else(|| "the device".to_owned(), |fs| format!("its file system ({fs})"));
    Problem::refused(format!(
        "cannot open `{name}` for direct I/O: {who} does not support O_DIRECT (EINVAL)"
    ))
    .hint(
        "measure through the page cache with `--state cold`, or name a target on a file system with O_DIRECT",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_the_path_and_the_fix_in_one_line() {
        for errno in [
            Errno::NOENT,
            Errno::NOTDIR,
            Errno::ACCESS,
            Errno::PERM,
            Errno::LOOP,
            Errno::NAMETOOLONG,
            Errno::NXIO,
            Errno::BUSY,
            Errno::ROFS,
            Errno::MFILE,
            Errno::STALE,
            Errno::IO,
        ] {
            let problem = cannot_open(Path::new("/dev/x"), "", errno);
            assert!(problem.message.starts_with("cannot open `/dev/x`: "), "{problem}");
            assert!(!problem.message.contains('\n') && !problem.message.contains("os error"), "{problem}");
            assert!(problem.hint.is_some(), "{errno:?} has a fix");
        }
        assert_eq!(words(Errno::ACCESS), "permission denied");
    }
}
