//! The only way to a permission to write over something that was there before us.
//!
//! Invariants: no [`Permit`] without the name given twice; a block device must be free (O_EXCL) and carry no known
//! signature; the permit holds the claim as long as it lives, and writes go to what was examined, not to whatever
//! the path names later.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use iowhy_core::environment::TargetKind;
use iowhy_core::problem::Problem;
use iowhy_linux::names;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use iowhy_linux::block::sysfs;

use super::{refusal, signatures};

/// Permission to destroy the contents of one block device or existing file.
#[derive(Debug)]
pub struct Permit {
    claim: OwnedFd,
    content: &'static str,
}

impl Permit {
    /// Examines the target and claims it.
    ///
    /// `typed` is the target as the user typed it, `destroy_data` the value of `--destroy-data`.
    ///
    /// # Errors
    /// A refusal when the two names differ, the target is in use or mounted, cannot be opened for writing, or
    /// carries a known signature.
    pub(super) fn obtain(
        typed: &Path,
        kind: TargetKind,
        destroy_data: Option<&str>,
    ) -> Result<Permit, Problem> {
        let name = typed.display();
        let what = if kind == TargetKind::BlockDevice { "block device" } else { "file of yours" };
        match destroy_data {
            Some(given) if Path::new(given).as_os_str() == typed.as_os_str() => {}
            Some(given) => {
                return Err(Problem::refused(format!(
                    "`--destroy-data {given}` does not name the target `{name}` exactly as typed"
                ))
                .hint(format!(
                    "to destroy all data on it give the same name twice: `--destroy-data {name} {name}`"
                )));
            }
            None => {
                return Err(Problem::refused(format!("`{name}` is a {what} and is never written to unasked")).hint(
                    format!(
                        "name a directory, and a scratch file in it is written instead; to destroy all data on it: \
                         `--destroy-data {name} {name}`"
                    ),
                ));
            }
        }
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        if kind == TargetKind::BlockDevice {
            flags |= OFlags::EXCL; // without O_CREAT: the kernel's claim against mounts and other holders
        }
        let claim = rustix::fs::open(typed, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::BUSY => {
                Problem::refused(format!("`{name}` is mounted or in use, so it is not written to"))
                    .hint(format!("see `lsblk {name}` for what uses it, and name a device that is free"))
            }
            other => refusal::cannot_open(typed, "for writing", other),
        })?;
        refuse_untrusted_way(typed, claim.as_fd())?;
        if kind == TargetKind::BlockDevice && sysfs::is_read_only(claim.as_fd()) {
            return Err(Problem::refused(format!("`{name}` is set read-only, so it cannot be written to")).hint(
                format!("if its data may go, allow writes first: `blockdev --setrw {name}`; or measure reads: `--rw read`"),
            ));
        }
        let content = refuse_signature(typed, claim.as_fd())?;
        refuse_loop_backing(typed)?;
        Ok(Permit { claim, content })
    }

    /// Content found on it, in words; a target that is mounted or has a signature is refused before.
    pub(super) fn content(&self) -> &'static str {
        self.content
    }

    /// The claimed descriptor.
    pub(super) fn claim(&self) -> BorrowedFd<'_> {
        self.claim.as_fd()
    }
}

/// What was opened must be what the name leads to by links that nobody else can change.
fn refuse_untrusted_way(typed: &Path, claim: BorrowedFd<'_>) -> Result<(), Problem> {
    let refused = |why: &dyn std::fmt::Display| {
        Problem::refused(format!("`{}` is not written to: {why}", typed.display()))
            .hint("name the file or device itself, by a path without links of other users")
    };
    let named = names::identify(typed).map_err(|error| refused(&error))?;
    let opened = rustix::fs::fstat(claim).map_err(|errno| refused(&io::Error::from(errno)))?;
    if named == (opened.st_dev, opened.st_ino) {
        return Ok(());
    }
    Err(refused(&"another file was put under that name in this moment"))
}

/// Describes the content of the examined bytes.
fn refuse_signature(typed: &Path, device: BorrowedFd<'_>) -> Result<&'static str, Problem> {
    let unreadable = |error: io::Error| {
        Problem::refused(format!("cannot examine `{}` for data before writing: {error}", typed.display()))
            .hint("look at `dmesg` for the device's errors, or name another device")
    };
    let size = rustix::fs::seek(device, SeekFrom::End(0)).map_err(|errno| unreadable(errno.into()))?;
    let file = File::from(device.try_clone_to_owned().map_err(unreadable)?);
    let read = |bytes: u64, at: u64| {
        let mut part = vec![0; bytes as usize];
        file.read_exact_at(&mut part, at).map(|()| part).map_err(unreadable)
    };
    let head = read(size.min(signatures::HEAD_BYTES), 0)?;
    let tail_bytes = size.min(signatures::TAIL_BYTES);
    let tail = read(tail_bytes, size - tail_bytes)?;
    match signatures::find(size, &head, &tail) {
        None if head.iter().chain(&tail).all(|byte| *byte == 0) => {
            Ok("no known signature, only zeros at its start and end")
        }
        None => Ok("data of an unknown kind, no known signature"),
        Some(found) => Err(Problem::refused(format!(
            "`{}` carries the signature of {found}, so it is not written to",
            typed.display()
        ))
        .hint(format!("if its data may go, erase the signature first: `wipefs -a {}`", typed.display()))),
    }
}

fn refuse_loop_backing(typed: &Path) -> Result<(), Problem> {
    match sysfs::loop_device_backed_by(typed) {
        None => Ok(()),
        Some(device) => Err(Problem::refused(format!(
            "`{}` backs `/dev/{device}`, so it is not written to",
            typed.display()
        ))
        .hint(format!("detach it first with `losetup -d /dev/{device}`, or name another file"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with(bytes: &[u8], at: u64) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 21).unwrap();
        file.as_file().write_all_at(bytes, at).unwrap();
        file
    }

    fn obtain(path: &Path, destroy: Option<&str>) -> Result<Permit, Problem> {
        Permit::obtain(path, TargetKind::File, destroy)
    }

    #[test]
    fn root_destroys_nothing_that_a_link_of_another_user_leads_to() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root can make a link that belongs to another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        std::fs::write(&victim, [0; 8192]).unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(obtain(&link, link.to_str()).is_ok(), "a link of root's own");
        std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
        let refused = obtain(&link, link.to_str()).unwrap_err();
        assert!(refused.message.contains("another user may change") && refused.hint.is_some(), "{refused}");
    }

    #[test]
    fn the_name_must_be_given_twice_and_exactly() {
        let file = file_with(b"", 0);
        let path = file.path();
        let name = path.to_str().unwrap();
        let permit = obtain(path, Some(name)).unwrap();
        assert!(permit.content().contains("zeros"), "{}", permit.content());
        let full = file_with(b"precious", 0);
        let permit = obtain(full.path(), full.path().to_str()).unwrap();
        assert!(permit.content().contains("unknown kind"), "{}", permit.content());
        let missing = obtain(path, None).unwrap_err();
        assert!(missing.hint.unwrap().contains(&format!("--destroy-data {name} {name}")));
        let other = obtain(path, Some(&format!("{name}/"))).unwrap_err();
        assert!(other.message.contains("exactly as typed"), "{other}");
        assert!(obtain(path, Some("")).is_err());
    }

    #[test]
    fn a_known_signature_is_refused_with_the_command_that_erases_it() {
        let file = file_with(b"XFSB", 0);
        let name = file.path().to_str().unwrap();
        let problem = obtain(file.path(), Some(name)).unwrap_err();
        assert!(problem.message.contains("signature of xfs"), "{problem}");
        assert!(problem.hint.unwrap().contains(&format!("`wipefs -a {name}`")));
        let mut content = [0; 4];
        file.as_file().read_exact_at(&mut content, 0).unwrap();
        assert_eq!(&content, b"XFSB", "refusing changed nothing");
    }
}
