//! As which user a program is run, and to which user the files of a run belong.
//!
//! Non-goal: rights of iowhy itself, which stay what they are. Invariant: a number from the environment (`SUDO_UID`) is
//! believed only where the effective user is root; `-1`, which setresuid(2) takes for "no change", is no user.

mod database;
mod files;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use iowhy_core::problem::Problem;

pub use database::{Entry, SystemUsers, Users};
pub use files::{FileOwner, FilesAs, as_self};

/// Environment variables that say who called a program that runs as root.
pub const CALLER_VARIABLES: [&str; 4] = ["SUDO_UID", "SUDO_GID", "PKEXEC_UID", "DOAS_USER"];

/// The fix where this process may not become another user.
const KEEP_ROOT: &str = "run where CAP_SETUID and CAP_SETGID are granted, or keep root with `--as-root`";

/// A user with the groups that a login would give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Real, effective and saved user.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// `None`: the user database has no entry for the number.
    pub name: Option<String>,
    /// Home directory.
    pub home: Option<PathBuf>,
    /// Login shell.
    pub shell: Option<PathBuf>,
    /// Whether this is another user than the one this process runs as.
    switches: bool,
}

/// Which user was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Nobody in particular: under sudo, the user who called it.
    Caller,
    /// `--as-root`
    Root,
    /// `--user NAME|UID`
    User(&'a str),
}

/// What failed between fork and exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Step {
    /// setgroups(2)
    Groups = 1,
    /// setresgid(2)
    Group = 2,
    /// setresuid(2)
    User = 3,
    /// capset(2)
    Capabilities = 4,
}

impl Step {
    /// The step with this number.
    pub fn from_number(number: i32) -> Option<Step> {
        [Step::Groups, Step::Group, Step::User, Step::Capabilities].into_iter().find(|s| *s as i32 == number)
    }

    /// The call that failed.
    pub fn call(self) -> &'static str {
        match self {
            Step::Groups => "setgroups",
            Step::Group => "setresgid",
            Step::User => "setresuid",
            Step::Capabilities => "capset",
        }
    }
}

impl Identity {
    /// The user that was asked for; `None` where nobody asked and the program runs as the user of this process.
    ///
    /// # Errors
    /// Refusals: an unknown user; another user without being root; a damaged `SUDO_UID`.
    pub fn find(
        request: Request<'_>,
        effective_uid: u32,
        variable: &dyn Fn(&str) -> Option<OsString>,
        users: &dyn Users,
    ) -> Result<Option<Identity>, Problem> {
        match request {
            Request::Root if effective_uid == 0 => of_uid(0, None, effective_uid, users).map(Some),
            Request::Root => Err(Problem::refused("`--as-root`: iowhy does not run as root").hint(
                "run it as root: `sudo iowhy --as-root ...`; without the option the user stays as it is",
            )),
            Request::User(text) => {
                let asked = of_text(text, effective_uid, variable, users)?;
                if asked.switches && effective_uid != 0 {
                    return Err(Problem::refused(format!(
                        "`--user {text}`: only root can run a program as another user"
                    ))
                    .hint(format!("run it as root: `sudo iowhy --user {text} ...`")));
                }
                Ok(Some(asked))
            }
            Request::Caller if effective_uid == 0 => caller(variable, users),
            Request::Caller => Ok(None),
        }
    }

    /// Whether this is another user than the one this process runs as.
    pub fn switches(&self) -> bool {
        self.switches
    }

    /// `user alice (uid 1000)`, or `uid 4242`.
    pub fn words(&self) -> String {
        words(self.uid, self.name.as_deref())
    }

    /// What a login sets in the environment; `None` removes the variable.
    pub fn environment(&self) -> [(&'static str, Option<OsString>); 4] {
        let name = || self.name.as_ref().map(OsString::from);
        // As container engines do for a user without an entry.
        let home = self.home.clone().map_or_else(|| OsString::from("/"), PathBuf::into_os_string);
        let shell = self.shell.clone().map(PathBuf::into_os_string);
        [("HOME", Some(home)), ("USER", name()), ("LOGNAME", name()), ("SHELL", shell)]
    }

    /// Until the guard is dropped this thread, and every thread it starts, looks names up and makes files as this user,
    /// without root's right to pass over permissions.
    ///
    /// # Errors
    /// This process may not become that user.
    pub fn for_files(&self) -> Result<FilesAs, Problem> {
        if !self.switches {
            return Ok(FilesAs::unchanged());
        }
        let owner = FileOwner { uid: self.uid, gid: self.gid, groups: self.groups.clone() };
        owner.enter().map_err(|error| {
            Problem::refused(format!("iowhy may not act as {}: {error}", self.words())).hint(KEEP_ROOT)
        })
    }

    /// Why a program cannot be run as this user, after `step` failed.
    pub fn refusal(&self, program: &str, step: Step, error: &std::io::Error) -> Problem {
        Problem::refused(format!("cannot run `{program}` as {}: {}: {error}", self.words(), step.call()))
            .hint(KEEP_ROOT)
    }

    /// Gives up all rights of this process but those of the user, for good. Async-signal-safe; nothing is allocated.
    ///
    /// # Errors
    /// The call that failed, with its errno. The process is then in between and must end.
    ///
    /// # Safety
    /// Only in a process that fork(2) just made: of a process with several threads, one would change and the others not.
    pub unsafe fn become_it(&self) -> Result<(), (Step, i32)> {
        /// `struct __user_cap_header_struct` and `_LINUX_CAPABILITY_VERSION_3` (linux/capability.h).
        const VERSION_3: u32 = 0x2008_0522;
        if !self.switches {
            return Ok(());
        }
        let done = |step: Step, rc: libc::c_long| match rc {
            0 => Ok(()),
            // SAFETY: the address is that of this thread's errno.
            _ => Err((step, unsafe { *libc::__errno_location() })),
        };
        // SAFETY: system calls with numbers, and pointers to memory that is alive. The groups go first, while the right to
        // set them is there; the user goes last.
        unsafe {
            done(Step::Groups, files::set_groups(&self.groups))?;
            done(Step::Group, libc::syscall(files::SETRESGID, self.gid, self.gid, self.gid))?;
            done(Step::User, libc::syscall(files::SETRESUID, self.uid, self.uid, self.uid))?;
            // With SECBIT_NO_SETUID_FIXUP the capabilities would outlive the change of the user.
            let header = [VERSION_3, 0];
            let nothing = [0u32; 6];
            done(Step::Capabilities, libc::syscall(libc::SYS_capset, header.as_ptr(), nothing.as_ptr()))
        }
    }
}

/// `user alice (uid 1000)`, or `uid 4242`.
pub fn words(uid: u32, name: Option<&str>) -> String {
    match name {
        Some(name) => {
            let shown: String = name.chars().filter(|c| !c.is_control()).collect();
            format!("user {shown} (uid {uid})")
        }
        None => format!("uid {uid}"),
    }
}

/// Who called sudo, pkexec or doas; `None`: nobody, or root.
fn caller(
    variable: &dyn Fn(&str) -> Option<OsString>,
    users: &dyn Users,
) -> Result<Option<Identity>, Problem> {
    let number = |name: &'static str| variable(name).map(|text| id(name, &text)).transpose();
    let found = if let Some(uid) = number("SUDO_UID")? {
        of_uid(uid, number("SUDO_GID")?, 0, users)?
    } else if let Some(uid) = number("PKEXEC_UID")? {
        of_uid(uid, None, 0, users)?
    } else if let Some(name) = variable("DOAS_USER") {
        let entry = match name.to_str() {
            Some(name) => users.by_name(name)?,
            None => None,
        };
        let Some(entry) = entry else { return Err(not_believed("DOAS_USER", &name)) };
        of_entry(entry, None, 0, users)
    } else {
        return Ok(None);
    };
    Ok(Some(found).filter(|found| found.uid != 0))
}

/// By name; where there is no such name, by number.
fn of_text(
    text: &str,
    effective_uid: u32,
    variable: &dyn Fn(&str) -> Option<OsString>,
    users: &dyn Users,
) -> Result<Identity, Problem> {
    if let Some(entry) = users.by_name(text)? {
        return Ok(of_entry(entry, None, effective_uid, users));
    }
    let Some(uid) = parse_id(OsStr::new(text)) else {
        return Err(Problem::refused(format!("`--user {text}`: there is no user of that name"))
            .hint("`getent passwd` lists the users; a number works too: `--user 1000`"));
    };
    // The group of a user without an entry is known only where that user called sudo.
    let from_sudo = |name: &str| variable(name).and_then(|text| parse_id(&text));
    let called = effective_uid == 0 && from_sudo("SUDO_UID") == Some(uid);
    let sudo_gid = from_sudo("SUDO_GID").filter(|_| called);
    match users.by_uid(uid)? {
        Some(entry) => Ok(of_entry(entry, None, effective_uid, users)),
        None => Ok(without_entry(uid, sudo_gid, effective_uid)),
    }
}

fn of_uid(uid: u32, gid: Option<u32>, effective_uid: u32, users: &dyn Users) -> Result<Identity, Problem> {
    Ok(match users.by_uid(uid)? {
        Some(entry) => of_entry(entry, gid, effective_uid, users),
        None => without_entry(uid, gid, effective_uid),
    })
}

fn of_entry(entry: Entry, gid: Option<u32>, effective_uid: u32, users: &dyn Users) -> Identity {
    let gid = gid.unwrap_or(entry.gid);
    Identity {
        uid: entry.uid,
        gid,
        groups: users.groups(&entry.name, gid),
        home: Some(entry.home).filter(|home| home.is_absolute()),
        shell: Some(entry.shell).filter(|shell| shell.is_absolute()),
        name: Some(entry.name),
        switches: entry.uid != effective_uid,
    }
}

fn without_entry(uid: u32, gid: Option<u32>, effective_uid: u32) -> Identity {
    let gid = gid.unwrap_or(uid);
    let switches = uid != effective_uid;
    Identity { uid, gid, groups: vec![gid], name: None, home: None, shell: None, switches }
}

/// A number of the environment. One that is damaged is refused: to go on as root would be the greater harm.
fn id(name: &str, text: &OsStr) -> Result<u32, Problem> {
    parse_id(text).ok_or_else(|| not_believed(name, text))
}

fn not_believed(name: &str, text: &OsStr) -> Problem {
    Problem::refused(format!(
        "{name}=`{}` names no user: it is not known who called iowhy as root",
        text.to_string_lossy().chars().filter(|c| !c.is_control()).collect::<String>()
    ))
    .hint("say who it is with `--user NAME`, or keep root with `--as-root`")
}

fn parse_id(text: &OsStr) -> Option<u32> {
    let text = text.to_str().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    text.parse().ok().filter(|id| *id != u32::MAX)
}

#[cfg(test)]
mod tests;
