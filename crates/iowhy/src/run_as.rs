//! As whom this run acts: who runs CMD, and to whom the files belong that are made for the user. Decided once, before a
//! command begins; iowhy itself keeps its rights.
//!
//! Invariant: an output is opened, written and removed only while [`files`] is held, so that under sudo no link of the user's
//! leads root to a file that the user may not write.

use std::ffi::OsString;
use std::sync::OnceLock;

use iowhy_core::problem::Problem;
use iowhy_linux::identity::{FilesAs, Identity, Request, SystemUsers};
use iowhy_linux::terminal::{Terminal, input_can_be_pushed};

use crate::record::watch::RanAs;

pub use iowhy_linux::identity::CALLER_VARIABLES;

static DECIDED: OnceLock<Option<Identity>> = OnceLock::new();

/// Decides from the options, and under sudo from its environment.
///
/// # Errors
/// Refusals: an unknown user, rights that are missing, a damaged environment.
pub fn decide(user: Option<&str>, as_root: bool) -> Result<(), Problem> {
    let request = match (user, as_root) {
        (Some(user), true) => {
            return Err(Problem::refused(format!("`--user {user}` and `--as-root` contradict each other"))
                .hint("leave one of them out"));
        }
        (Some(user), false) => Request::User(user),
        (None, true) => Request::Root,
        (None, false) => Request::Caller,
    };
    let uid = rustix::process::geteuid().as_raw();
    let found = Identity::find(request, uid, &|name| std::env::var_os(name), &SystemUsers)?;
    // Refused now rather than after the run.
    drop(found.as_ref().map(Identity::for_files).transpose()?);
    // A command is run once in a process; a second decision would change nothing.
    let _ = DECIDED.set(found);
    Ok(())
}

/// Refuses to run a program of another user on a terminal that is not that user's: the program could type there (ioctl
/// TIOCSTI), and the shell behind us, perhaps root's, would carry it out. Who called sudo is not another user in this sense:
/// sudo may give the command a terminal of root's (`use_pty`), from which nobody reads afterwards.
///
/// # Errors
/// The refusal, with the session that avoids it and the switch of the kernel.
pub fn refuse_shared_terminal() -> Result<(), Problem> {
    let Some(other) = identity().filter(|identity| identity.switches()) else { return Ok(()) };
    let Some(terminal) = Terminal::controlling() else { return Ok(()) };
    let euid = rustix::process::geteuid().as_raw();
    let called = Identity::find(Request::Caller, euid, &|name| std::env::var_os(name), &SystemUsers);
    let is_caller = called.ok().flatten().is_some_and(|caller| caller.uid == other.uid);
    if is_caller || terminal.owner() == Some(other.uid) || !input_can_be_pushed() {
        return Ok(());
    }
    let user = other.name.clone().unwrap_or_else(|| other.uid.to_string());
    Err(Problem::refused(format!(
        "`--user {user}`: this terminal does not belong to {}; a program could type commands into the shell here (TIOCSTI)",
        other.words()
    ))
    .hint(format!(
        "run it in a session without a terminal: `setsid --wait iowhy --user {user} -- CMD`; or forbid such input: `sysctl \
         dev.tty.legacy_tiocsti=0` (Linux 6.2 or later)"
    )))
}

/// Who was decided for; `None`: we act as we are.
pub fn identity() -> Option<&'static Identity> {
    DECIDED.get().and_then(Option::as_ref)
}

/// While the guard lives, names are looked up and files made as that user, on this thread and those it starts.
///
/// # Errors
/// The rights for it were lost since [`decide`].
pub fn files() -> Result<FilesAs, Problem> {
    identity().map_or_else(|| Ok(FilesAs::unchanged()), Identity::for_files)
}

/// Home directory of whom we act as: sudo sets HOME to root's.
pub fn home() -> Option<OsString> {
    match identity().filter(|identity| identity.switches()) {
        Some(identity) => identity.home.clone().map(Into::into),
        None => std::env::var_os("HOME"),
    }
}

/// ` as user alice (uid 1000)` behind what cannot be done; empty where we act as we are.
pub fn suffix() -> String {
    let other = identity().filter(|identity| identity.switches());
    other.map_or(String::new(), |identity| format!(" as {}", identity.words()))
}

/// For the record: who ran the program, where that was decided.
pub fn ran_as() -> Option<RanAs> {
    identity().map(|who| RanAs { uid: who.uid, gid: who.gid, name: who.name.clone() })
}
