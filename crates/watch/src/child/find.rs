//! Looks a command up as a shell of its user does, so that a wrong name is refused before anything is watched.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_linux::identity::Identity;
use rustix::fs::{Access, AtFlags, CWD, accessat};

/// Where shells look when PATH is not set (the path of confstr(_CS_PATH), with the local folder before it).
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why a command cannot be started, or nothing be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What a shell would exit with: 127 not found, 126 found but not executable; else our own code.
    pub code: u8,
    /// In words.
    pub problem: Problem,
}

impl From<Problem> for Refusal {
    /// A problem of iowhy itself, with its exit code.
    fn from(problem: Problem) -> Refusal {
        Refusal { code: problem.exit_code(), problem }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        refusal.problem
    }
}

/// The file that a command name stands for: the name itself where it has a slash, else the first executable file of
/// that name in PATH. Permissions are judged as those of `identity`.
///
/// # Errors
/// Not found (127); found only as something that may not be executed, or the user may not be where we are (126).
pub fn find(program: &OsStr, identity: Option<&Identity>) -> Result<PathBuf, Refusal> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(USUAL_PATH));
    find_in(program, &path, identity.filter(|identity| identity.switches()))
}

/// [`find`] with the search path given. `identity`: another user than we are.
fn find_in(program: &OsStr, path: &OsStr, identity: Option<&Identity>) -> Result<PathBuf, Refusal> {
    let _files = identity.map(Identity::for_files).transpose()?;
    if let Some(identity) = identity {
        may_be_here(program, identity)?;
    }
    let shown = program.to_string_lossy();
    if program.is_empty() {
        return Err(not_found("the name of the command is empty".to_owned(), None));
    }
    if program.as_bytes().contains(&0) {
        return Err(not_found("the name of the command holds a zero byte".to_owned(), None));
    }
    if program.as_bytes().contains(&b'/') {
        let file = PathBuf::from(program);
        return match look(&file) {
            Look::Executable => Ok(file),
            Look::Not(why) => Err(not_executable(&file, why, identity)),
            Look::Nothing(why) => Err(not_found(format!("cannot run `{shown}`: {why}"), None)),
        };
    }
    let mut refused = None;
    for folder in path.as_bytes().split(|b| *b == b':') {
        // An empty entry of PATH is the current folder.
        let folder = if folder.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(folder) };
        let file = Path::new(folder).join(program);
        match look(&file) {
            Look::Executable => return Ok(file),
            // A folder of PATH that may not be looked into tells nothing of the command; bash goes on as well.
            Look::Not(ON_THE_WAY) => {}
            Look::Not(why) if refused.is_none() => refused = Some(not_executable(&file, why, identity)),
            Look::Not(_) | Look::Nothing(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        let here = Path::new(".").join(program);
        let hint = matches!(look(&here), Look::Executable)
            .then(|| format!("there is one in the current folder: `iowhy -- ./{shown}`"));
        not_found(format!("cannot run `{shown}`{}: no such command in PATH", as_whom(identity)), hint)
    }))
}

const ON_THE_WAY: &str = "permission denied on the way to it";
pub(super) const DENIED: &str = "permission denied";

/// ` as user alice (uid 1000)`, where the program runs as another user than we are.
pub(super) fn as_whom(identity: Option<&Identity>) -> String {
    identity.map_or(String::new(), |identity| format!(" as {}", identity.words()))
}

/// A current directory that the user may not enter is refused, as a shell's `cd` does: relative names lead nowhere there.
fn may_be_here(program: &OsStr, identity: &Identity) -> Result<(), Refusal> {
    // Looking up a name in a directory takes the right to enter it.
    if !matches!(rustix::fs::stat("./."), Err(rustix::io::Errno::ACCESS)) {
        return Ok(());
    }
    let here = std::env::current_dir().map_or_else(|_| ".".to_owned(), |here| here.display().to_string());
    let shown = program.to_string_lossy();
    let problem = Problem::refused(format!(
        "cannot run `{shown}`{} in `{here}`: that user may not enter this directory: permission denied",
        as_whom(Some(identity))
    ))
    .hint("go where that user may be, as in `cd /`, or run it as root: `sudo iowhy --as-root -- CMD`");
    Err(Refusal { code: 126, problem })
}

/// What a path is to somebody who wants to execute it.
enum Look {
    Executable,
    /// It is there and cannot be executed.
    Not(&'static str),
    /// It cannot be reached.
    Nothing(&'static str),
}

fn look(file: &Path) -> Look {
    let kind = match std::fs::metadata(file) {
        Ok(metadata) => metadata.file_type(),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            return Look::Not(ON_THE_WAY);
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
            return Look::Nothing("a part of the path is not a folder");
        }
        Err(_) => return Look::Nothing("no such file"),
    };
    if kind.is_dir() {
        return Look::Not("it is a folder");
    }
    if !kind.is_file() {
        return Look::Not("it is not a regular file");
    }
    match accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Look::Executable,
        Err(_) => Look::Not(DENIED),
    }
}

fn not_found(message: String, hint: Option<String>) -> Refusal {
    let mut problem = Problem::refused(message);
    problem.hint = hint;
    Refusal { code: 127, problem }
}

pub(super) fn not_executable(file: &Path, why: &str, identity: Option<&Identity>) -> Refusal {
    let shown = file.display();
    let problem = Problem::refused(format!("cannot run `{shown}`{}: {why}", as_whom(identity)));
    let problem = if identity.is_some() && [DENIED, ON_THE_WAY].contains(&why) {
        problem.hint(format!(
            "see which part of the path keeps that user out: `namei -l {shown}`; or run it as root: `sudo iowhy \
             --as-root -- {shown}`"
        ))
    } else if why == DENIED && executable_for_somebody(file) {
        problem.hint(format!(
            "it is executable, but not for this user; see its owner and mode: `namei -l {shown}`"
        ))
    } else if why == DENIED {
        problem.hint(format!(
            "make it executable: `chmod +x {shown}`, or name its interpreter: `iowhy -- sh {shown}`"
        ))
    } else {
        problem
    };
    Refusal { code: 126, problem }
}

/// Whether the mode lets anybody run it: then `chmod +x` is no cure.
fn executable_for_somebody(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(program: &str, path: &str) -> u8 {
        find_in(OsStr::new(program), OsStr::new(path), None).unwrap_err().code
    }

    #[test]
    fn names_are_looked_up_as_a_shell_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, mode: u32| {
            let file = folder.path().join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let good = at("good", 0o755);
        let plain = at("plain", 0o644);
        let path = format!("/nonexistent:{}", folder.path().display());
        assert_eq!(find_in(OsStr::new("good"), OsStr::new(&path), None).unwrap(), good);
        assert_eq!(find_in(good.as_os_str(), OsStr::new(""), None).unwrap(), good);
        assert_eq!(code("plain", &path), 126);
        assert_eq!(code(plain.to_str().unwrap(), ""), 126);
        assert_eq!(code("no-such-command", &path), 127);
        assert_eq!(code("./no-such-command", &path), 127);
        assert_eq!(code("", &path), 127);
        assert_eq!(code("a\0b", &path), 127);
        assert_eq!(code(folder.path().to_str().unwrap(), ""), 126, "a folder");
        assert_eq!(code("good", ""), 127, "an empty PATH is the current folder");
        let refusal = find_in(OsStr::new("plain"), OsStr::new(&path), None).unwrap_err();
        assert!(refusal.problem.hint.unwrap().contains("chmod +x"));
    }

    #[test]
    fn what_others_may_run_is_not_to_be_made_executable() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let hint = not_executable(file.path(), DENIED, None).problem.hint.unwrap();
        assert!(hint.contains("namei -l") && !hint.contains("chmod"), "{hint}");
    }
}
