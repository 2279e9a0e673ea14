//! As whom this run acts: who runs CMD, and to whom the files belong that are made for the user. Decided once, before a
//! command begins; iowhy itself keeps its rights.
//!
//! Invariant: an output is opened, written and removed only while [`files`] is held, so that under sudo no link of the user's
//! leads root to a file that the user may not write.

use std::ffi::OsString;
use std::sync::OnceLock;

use iowhy_core::problem::Problem;
use iowhy_linux::identity::{FilesAs, Identity, Request, SystemUsers};

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
