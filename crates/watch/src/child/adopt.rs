//! Orphans of the program: processes it left behind become our children while we watch, so that they are reaped and
//! their counters are not lost.
//!
//! Invariant: only processes that are known to descend from the program are reaped. Other children of this process
//! belong to whoever started them.

use std::collections::HashSet;

use super::start::{Usage, reap};

/// Descendants that are remembered. More than this many at once: the later ones stay with us unreaped until we end.
const MAX_KNOWN: usize = 65_536;

/// While it lives, orphaned descendants become our children (PR_SET_CHILD_SUBREAPER).
#[derive(Debug)]
pub struct Adoption {
    active: bool,
    before: bool,
    known: HashSet<u32>,
}

/// An orphan that was reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaped {
    /// Its number.
    pub pid: u32,
    /// What the kernel counted for it and the children it waited for.
    pub usage: Usage,
}

impl Adoption {
    /// Begins.
    pub fn begin() -> Adoption {
        let before = subreaper();
        set_subreaper(true);
        Adoption { active: true, before, known: HashSet::new() }
    }

    /// Adopts nobody: the subject is not below us.
    pub fn none() -> Adoption {
        Adoption { active: false, before: true, known: HashSet::new() }
    }

    /// Whether orphans come to us.
    pub fn active(&self) -> bool {
        self.active
    }

    /// A process that descends from the program.
    pub fn descendant(&mut self, pid: u32) {
        if self.active && self.known.len() < MAX_KNOWN {
            self.known.insert(pid);
        }
    }

    /// Whether it is one.
    pub fn knows(&self, pid: u32) -> bool {
        self.known.contains(&pid)
    }

    /// A descendant that was seen to end and whose own parent is alive: that parent reaps it.
    pub fn forget(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// Reaps the descendants among our children that have ended. `read` is called for each before that, while its
    /// `/proc` entries are still there.
    pub fn reap(&mut self, our_children: &[u32], mut read: impl FnMut(u32)) -> Vec<Reaped> {
        let mut reaped = Vec::new();
        for &pid in our_children {
            if !self.known.contains(&pid) || !has_ended(pid) {
                continue;
            }
            read(pid);
            if let Some(usage) = reap(pid, false) {
                self.known.remove(&pid);
                reaped.push(Reaped { pid, usage });
            }
        }
        reaped
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        if !self.before {
            set_subreaper(false);
        }
    }
}

/// Whether a child of iowhy waits to be reaped.
fn has_ended(pid: u32) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_)))
}

fn subreaper() -> bool {
    let mut on: libc::c_int = 0;
    // SAFETY: the kernel writes one int to the address.
    let rc = unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut on, 0, 0, 0) };
    rc == 0 && on != 0
}

fn set_subreaper(on: bool) {
    // SAFETY: takes plain numbers. Where the kernel refuses, orphans go to init as ever.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(on), 0, 0, 0) };
}
