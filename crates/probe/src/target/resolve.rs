//! Resolves the user's word to a target: decides its kind, refuses what cannot be measured, makes what is missing.
//!
//! The words `null`, `memory`, `scripted`, `scripted:...` and `scripted?...` name false targets, `stripe:...` joins others. A file of such a name is reached
//! as `./null`: a path that contains a `/` and exists is always a path.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use iowhy_core::environment::TargetKind;
use iowhy_core::problem::Problem;
use rustix::fs::{FileType, OFlags, SeekFrom, major, minor};

use super::write_guard::Permit;
use super::{Place, Status, Target, inspect, open_quietly, refusal, scratch, stripe};
use crate::script::Script;

/// Requirements of the measurement on its target.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Size of the file to make when the target is a directory or `memory`, and the size that endless targets
    /// (`null`, character devices) stand for.
    pub scratch_bytes: u64,
    /// Whether anything will be written.
    pub write: bool,
    /// The value of `--destroy-data`: must equal the target as typed before anything of the user's is written over.
    pub destroy_data: Option<String>,
}

/// Finds, or makes, the target that `spec` names, and looks at it. `progress` is told bytes done and bytes in all
/// while a file is filled.
///
/// # Errors
/// A refusal in one line that names the target, with the fix: no such path, no permission, empty, of a kind that
/// cannot be measured, no space for a scratch file, or not to be written to.
pub fn resolve(
    spec: &(impl AsRef<OsStr> + ?Sized),
    needs: &Needs,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Target, Problem> {
    let spec = spec.as_ref();
    let path = Path::new(spec);
    if let Some(word) = spec.to_str().filter(|word| !(word.contains('/') && path.exists())) {
        match word {
            "" => {
                return Err(
                    Problem::refused("the target's name is empty").hint("the current directory is `.`")
                );
            }
            "null" => return Ok(null(needs)),
            "memory" => return memory(needs, progress),
            _ if word.split([':', '?']).next() == Some("scripted") => return scripted(word),
            _ if word.split(':').next() == Some(stripe::WORD) && word != stripe::WORD => {
                return open_stripe(word, needs, progress);
            }
            _ => {}
        }
    }
    let stat = rustix::fs::stat(path).map_err(|errno| refusal::cannot_open(path, "", errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => directory(path, needs, progress),
        FileType::RegularFile => existing(path, TargetKind::File, needs),
        FileType::BlockDevice => existing(path, TargetKind::BlockDevice, needs),
        FileType::CharacterDevice => char_device(path, stat.st_rdev, needs),
        FileType::Fifo => Err(unmeasurable(path, "a pipe (FIFO)")),
        FileType::Socket => Err(unmeasurable(path, "a socket")),
        FileType::Symlink | FileType::Unknown => Err(unmeasurable(path, "of an unknown kind")),
    }
}

fn unmeasurable(path: &Path, what: &str) -> Problem {
    Problem::refused(format!("`{}` is {what}, which has no offsets to read at", path.display()))
        .hint("name a file, a directory, a block device, `/dev/null`, `/dev/zero` or `/dev/sg*`")
}

fn null(needs: &Needs) -> Target {
    let facts = inspect::made_up(TargetKind::Null, "null", needs.scratch_bytes);
    Target { facts, place: Place::Null, status: None, under: OnceLock::new() }
}

fn scripted(word: &str) -> Result<Target, Problem> {
    let script = Script::from_spec(word)?;
    let facts = inspect::made_up(TargetKind::Scripted, word, script.size_bytes);
    Ok(Target { facts, place: Place::Scripted(Arc::new(script)), status: None, under: OnceLock::new() })
}

fn memory(needs: &Needs, progress: &mut dyn FnMut(u64, u64)) -> Result<Target, Problem> {
    let file = scratch::memory(needs.scratch_bytes, progress)?;
    nameless(file, TargetKind::Memory, None)
}

fn directory(path: &Path, needs: &Needs, progress: &mut dyn FnMut(u64, u64)) -> Result<Target, Problem> {
    let file = scratch::make(path, needs.scratch_bytes, progress)?;
    nameless(file, TargetKind::Scratch, Some(path))
}

fn nameless(file: OwnedFd, kind: TargetKind, directory: Option<&Path>) -> Result<Target, Problem> {
    let name = directory.map_or_else(|| "memory".to_owned(), |dir| dir.display().to_string());
    let status =
        Status::from_fd(file.as_fd()).map_err(|errno| refusal::cannot_open(Path::new(&name), "", errno))?;
    let facts = inspect::facts(kind, name, file.as_fd(), &status, status.size_bytes);
    let place = Place::Descriptor { file, directory: directory.map(Path::to_owned) };
    Ok(Target { facts, place, status: Some(status), under: OnceLock::new() })
}

/// Finds or makes the members and joins them.
///
/// # Errors
/// What a member refuses; members that share bytes, are too small, are false, or whose sector is larger than a turn.
fn open_stripe(spec: &str, needs: &Needs, progress: &mut dyn FnMut(u64, u64)) -> Result<Target, Problem> {
    let (interleave, names) = stripe::parse(spec)?;
    check_permission(spec, &names, needs)?;
    let count = names.len() as u64;
    let each = needs.scratch_bytes.div_ceil(count).checked_next_multiple_of(interleave).unwrap_or(u64::MAX);
    let mut members: Vec<Target> = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let index = index as u64;
        let own = Needs {
            scratch_bytes: each,
            write: needs.write,
            destroy_data: needs.destroy_data.as_ref().map(|_| (*name).to_owned()),
        };
        // Only members that are made report; the others take no time.
        let mut progress_of_all = |done: u64, total: u64| {
            progress(index.saturating_mul(total).saturating_add(done), total.saturating_mul(count));
        };
        let member = resolve(*name, &own, &mut progress_of_all)?;
        stripe::check_member(spec, &member, &members, interleave)?;
        members.push(member);
    }
    stripe::join(spec, interleave, members.into_iter().map(Arc::new).collect())
}

/// Writing needs the name of the whole stripe twice, as it needs that of any other target.
fn check_permission(spec: &str, names: &[&str], needs: &Needs) -> Result<(), Problem> {
    let given = needs.destroy_data.as_deref();
    if given.is_some_and(|given| given != spec) {
        return Err(Problem::refused(format!(
            "`--destroy-data {}` does not name the target `{spec}` exactly as typed",
            given.unwrap_or_default()
        ))
        .hint(format!(
            "to destroy all data on its members give the same name twice: `--destroy-data {spec} {spec}`"
        )));
    }
    // Scratch files in directories are made by iowhy; a missing name is refused when it is resolved.
    let of_the_users = |name: &&&str| Path::new(name).exists() && !Path::new(name).is_dir();
    match names.iter().find(of_the_users) {
        Some(name) if needs.write && given.is_none() => Err(Problem::refused(format!(
            "the member `{name}` is a file or device of yours and is never written to unasked"
        ))
        .hint(format!(
            "name directories, and scratch files in them are written instead; to destroy all data on the members: \
             `--destroy-data {spec} {spec}`"
        ))),
        _ => Ok(()),
    }
}

/// A regular file or block device of the user's.
fn existing(path: &Path, kind: TargetKind, needs: &Needs) -> Result<Target, Problem> {
    let (file, status) =
        open_to_look(path, if kind == TargetKind::BlockDevice { "block device" } else { "" })?;
    let size_bytes = match kind {
        TargetKind::BlockDevice => rustix::fs::seek(&file, SeekFrom::End(0)).unwrap_or(0),
        _ => status.size_bytes,
    };
    if size_bytes == 0 {
        let hint = match kind {
            TargetKind::BlockDevice => {
                "it has no medium or nothing attached; `lsblk` shows devices with a size"
            }
            _ => "name a file with data in it, or a directory to measure with a file of our own",
        };
        return Err(Problem::refused(format!(
            "`{}` is empty, or reports no size as files under /proc do: there is nothing to read",
            path.display()
        ))
        .hint(hint));
    }
    let permit = match needs.write || needs.destroy_data.is_some() {
        true => Some(Permit::obtain(path, kind, needs.destroy_data.as_deref())?),
        false => None,
    };
    let mut facts = inspect::facts(kind, path.display().to_string(), file.as_fd(), &status, size_bytes);
    // A permission alone changes nothing: a run that only reads destroys nothing.
    facts.overwritten = permit.as_ref().filter(|_| needs.write).map(|permit| permit.content().to_owned());
    let held = (kind == TargetKind::BlockDevice).then_some(file);
    Ok(Target {
        facts,
        place: Place::Path { path: path.to_owned(), permit, _held: held },
        status: Some(status),
        under: OnceLock::new(),
    })
}

fn char_device(path: &Path, number: u64, needs: &Needs) -> Result<Target, Problem> {
    const NULL: (u32, u32) = (1, 3);
    const ZERO: (u32, u32) = (1, 5);
    const SCSI_GENERIC_MAJOR: u32 = 21;
    let number = (major(number), minor(number));
    if number != NULL && number != ZERO && number.0 != SCSI_GENERIC_MAJOR {
        return Err(unmeasurable(path, "a character device (a terminal or the like)"));
    }
    let (file, status) = open_to_look(path, "")?;
    let name = path.display().to_string();
    let facts = inspect::facts(TargetKind::CharDevice, name, file.as_fd(), &status, needs.scratch_bytes);
    Ok(Target {
        facts,
        place: Place::Path { path: path.to_owned(), permit: None, _held: None },
        status: Some(status),
        under: OnceLock::new(),
    })
}

fn open_to_look(path: &Path, what: &str) -> Result<(OwnedFd, Status), Problem> {
    let refused = |errno| refusal::cannot_open(path, what, errno);
    let file = open_quietly(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY).map_err(refused)?;
    let status = Status::from_fd(file.as_fd()).map_err(refused)?;
    Ok((file, status))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use rustix::io::Errno;

    use super::*;
    use crate::target::OpenMode;

    const MIB: u64 = 1 << 20;

    fn needs() -> Needs {
        Needs { scratch_bytes: MIB, ..Needs::default() }
    }

    fn look(spec: &(impl AsRef<OsStr> + ?Sized)) -> Result<Target, Problem> {
        resolve(spec, &needs(), &mut |_, _| {})
    }

    #[test]
    fn the_false_names_are_false_unless_a_path_is_meant() {
        assert!(look("null").unwrap().is_null());
        assert!(look("null").unwrap().open(OpenMode::default()).is_err());
        let no_script = look("scripted?no-such-option").unwrap_err();
        assert!(!no_script.message.contains("cannot open"), "taken for a path: {no_script}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("null");
        std::fs::write(&path, b"data").unwrap();
        assert_eq!(look(&path).unwrap().facts.kind, TargetKind::File);
    }

    #[test]
    fn each_opening_of_a_scratch_file_has_its_own_position_and_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        for (spec, kind) in
            [(dir.path().as_os_str(), TargetKind::Scratch), (OsStr::new("memory"), TargetKind::Memory)]
        {
            let target = look(spec).unwrap();
            assert_eq!((target.facts.kind, target.facts.size_bytes), (kind, MIB));
            assert_eq!((target.facts.hole_bytes, target.writable()), (Some(0), true));
            let (a, b) =
                (target.open(OpenMode::default()).unwrap(), target.open(OpenMode::default()).unwrap());
            let (mut first, mut again) = ([0; 4096], [0; 4096]);
            assert_eq!(rustix::io::read(&a, &mut first), Ok(4096));
            assert_eq!(rustix::io::read(&b, &mut again), Ok(4096));
            assert_eq!(first, again);
            let writer = target.open(OpenMode { write: true, ..OpenMode::default() }).unwrap();
            assert_eq!(rustix::io::pwrite(&writer, &[1], 0), Ok(1));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_of_the_users_is_never_opened_for_writing_and_never_changed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"precious").unwrap();
        let before = std::fs::metadata(file.path()).unwrap().modified().unwrap();
        let target = look(file.path()).unwrap();
        assert!(!target.writable());
        assert!(
            target
                .open(OpenMode { write: true, ..OpenMode::default() })
                .unwrap_err()
                .message
                .contains("reading only")
        );
        let fd = target.open(OpenMode::default()).unwrap();
        assert_eq!(rustix::io::pwrite(&fd, b"x", 0), Err(Errno::BADF));
        let wish = Needs { write: true, ..needs() };
        let refused = resolve(file.path(), &wish, &mut |_, _| {}).unwrap_err();
        assert!(refused.message.contains("never written to unasked"), "{refused}");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"precious");
        assert_eq!(std::fs::metadata(file.path()).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn a_file_named_twice_may_be_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"gone").unwrap();
        let name = file.path().to_str().unwrap().to_owned();
        let wish = Needs { write: true, destroy_data: Some(name.clone()), ..needs() };
        let target = resolve(&name, &wish, &mut |_, _| {}).unwrap();
        let fd = target.open(OpenMode { write: true, ..OpenMode::default() }).unwrap();
        assert_eq!(rustix::io::pwrite(&fd, b"new", 0), Ok(3));
    }

    #[test]
    fn a_file_that_is_replaced_is_not_taken_for_the_one_that_was_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&path, b"first").unwrap();
        std::fs::write(&other, b"second").unwrap();
        let target = look(&path).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(target.open(OpenMode::default()).unwrap_err().message.contains("replaced"));
    }

    #[test]
    fn what_cannot_be_measured_is_refused_by_name_with_a_fix() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("empty"), b"").unwrap();
        std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
        for (path, word) in [
            (at("empty"), "is empty"),
            (at("loop"), "symbolic link"),
            (at("socket"), "socket"),
            (at("pipe"), "pipe"),
            (at("missing"), "no such file"),
            (at("empty").join("below"), "not a directory"),
            (at(&"x".repeat(300)), "too long"),
            ("/dev/full".into(), "character device"),
        ] {
            let problem = look(&path).unwrap_err();
            assert!(problem.message.contains(word), "{problem}");
            assert!(problem.message.contains(&*path.to_string_lossy()), "{problem}");
            assert!(problem.hint.is_some() && problem.exit_code() == 2);
        }
        assert!(look("").is_err());
    }

    #[test]
    fn names_that_are_not_utf8_work() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OsStr::from_bytes(b"\xff\xfe"));
        if let Err(error) = std::fs::write(&path, b"data") {
            eprintln!("skipped: the file system refuses such names: {error}");
            return;
        }
        assert_eq!(look(&path).unwrap().facts.size_bytes, 4);
    }

    #[test]
    fn null_and_zero_are_the_only_plain_character_devices() {
        for name in ["/dev/null", "/dev/zero"] {
            let target = look(name).unwrap();
            assert_eq!((target.facts.kind, target.facts.size_bytes), (TargetKind::CharDevice, MIB));
            assert!(target.open(OpenMode { write: true, ..OpenMode::default() }).is_ok());
        }
    }
}
