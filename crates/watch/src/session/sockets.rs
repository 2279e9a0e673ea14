//! Sockets of the program, by the kernel's tables: which processes listen, and which side the program has in each connection.
//!
//! Connections of before the watch are known by the tables alone, those that are accepted while it lasts also by the observer. One that
//! the program opens itself and closes between two looks is not known.

use std::collections::{HashMap, HashSet};

use iowhy_core::profile::Connections;
use iowhy_linux::process::connections::{Side, sides};

use crate::in_kernel::SocketCalls;

/// Sockets that are remembered: for so many files has the observer room.
const MAX_KNOWN: usize = 65_536;

/// What looks told so far.
#[derive(Default)]
pub(super) struct Sockets {
    /// Processes that were found to listen.
    listening: HashSet<u32>,
    /// Whether the program accepted it, by inode.
    accepted: HashMap<u64, bool>,
}

/// The tables at one round of looks, read when the first socket is met.
#[derive(Default)]
pub(super) struct Tables(Option<HashMap<u64, Side>>);

impl Tables {
    /// The tables may be long: they are read at the first rounds, and ever more seldom.
    pub(super) fn are_due(turn: usize) -> bool {
        turn.count_ones() <= 1
    }
}

impl Sockets {
    /// A look found this socket open in a process.
    pub(super) fn met(&mut self, pid: u32, inode: u64, tables: &mut Tables) {
        let sides = match &mut tables.0 {
            Some(sides) => sides,
            none => {
                let read = sides(pid);
                self.learn(&read);
                none.insert(read)
            }
        };
        if sides.get(&inode) == Some(&Side::Listens) {
            self.listening.insert(pid);
        }
    }

    /// Reads the tables at the end of the watch, where a look met a socket at all.
    pub(super) fn last_look(&mut self, processes: &[u32]) {
        if let Some(pid) = processes.first().filter(|_| !self.accepted.is_empty()) {
            self.learn(&sides(*pid));
        }
    }

    /// A connection stays accepted when nobody listens any more.
    fn learn(&mut self, sides: &HashMap<u64, Side>) {
        for (inode, side) in sides {
            let accepted = *side == Side::Accepted;
            if let Some(known) = self.accepted.get_mut(inode) {
                *known |= accepted;
            } else if self.accepted.len() < MAX_KNOWN {
                self.accepted.insert(*inode, accepted);
            }
        }
    }

    /// Whether a process was found to listen for connections.
    pub(super) fn listens(&self, pid: u32) -> bool {
        self.listening.contains(&pid)
    }

    /// Sums of calls on sockets, by side.
    pub(super) fn connections(&self, calls: &[SocketCalls]) -> Connections {
        let mut all = Connections::default();
        for socket in calls {
            let sum = match self.accepted.get(&socket.inode) {
                _ if socket.accepted => &mut all.accepted,
                Some(true) => &mut all.accepted,
                Some(false) => &mut all.other,
                None => &mut all.unknown,
            };
            sum.sockets += u64::from(socket.reads > 0 && socket.writes > 0);
            sum.read_calls += socket.reads;
            sum.write_calls += socket.writes;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    use iowhy_core::profile::SocketUse;

    use super::*;

    fn inode(fd: &impl std::os::fd::AsRawFd) -> u64 {
        std::fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().ino()
    }

    #[test]
    fn each_end_of_a_connection_is_on_its_own_side() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let mut sockets = Sockets::default();
        sockets.met(7, inode(&client), &mut Tables(Some(sides(std::process::id()))));
        assert!(!sockets.listens(7));
        sockets.met(8, inode(&listener), &mut Tables(Some(sides(std::process::id()))));
        assert!(sockets.listens(8));
        sockets.met(std::process::id(), inode(&client), &mut Tables::default());
        let calls = |inode, accepted| SocketCalls { inode, accepted, reads: 3, writes: 5 };
        let seen = [
            calls(inode(&server), false),
            calls(inode(&client), false),
            calls(u64::MAX, true),
            calls(u64::MAX - 1, false),
        ];
        let of = |sockets, calls: u64| SocketUse { sockets, read_calls: 3 * calls, write_calls: 5 * calls };
        assert_eq!(
            sockets.connections(&seen),
            Connections { accepted: of(2, 2), other: of(1, 1), unknown: of(1, 1) }
        );
        // Nobody listens any more: what was accepted was.
        drop(listener);
        sockets.last_look(&[std::process::id()]);
        assert_eq!(sockets.connections(&seen[..1]).accepted, of(1, 1));
        assert!(Tables::are_due(0) && Tables::are_due(1) && Tables::are_due(4) && !Tables::are_due(6));
    }

    #[test]
    fn what_was_opened_and_closed_between_looks_has_no_side() {
        let calls = SocketCalls { inode: 0, accepted: false, reads: 1, writes: 0 };
        let unknown = SocketUse { sockets: 0, read_calls: 1, write_calls: 0 };
        assert_eq!(
            Sockets::default().connections(&[calls]),
            Connections { unknown, ..Connections::default() }
        );
    }
}
