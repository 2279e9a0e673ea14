//! Sockets by the side that their owner has in a connection: TCP and local stream sockets. UDP knows no such state.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// `TCP_LISTEN` in `/proc/net/tcp` (include/net/tcp_states.h).
const LISTEN: &str = "0A";
/// `__SO_ACCEPTCON` in `/proc/net/unix` (include/uapi/linux/net.h).
const ACCEPTS: u32 = 1 << 16;

/// The side of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It waits for connections.
    Listens,
    /// Its own address is that of a socket that listens: a client connected to it.
    Accepted,
    /// It connected itself, is one of a pair, has no connection, or nobody listens any more at its address.
    Other,
}

/// A line of a table.
struct Row {
    inode: u64,
    listens: bool,
    /// Port or name; empty: it has none.
    address: String,
}

/// All sockets in the network name space of a process, by inode. Empty where the tables cannot be read.
pub fn sides(pid: u32) -> HashMap<u64, Side> {
    let mut sides = HashMap::new();
    for (table, parse) in [("tcp", tcp as fn(&str) -> Option<Row>), ("tcp6", tcp), ("unix", unix)] {
        let Ok(file) = File::open(format!("/proc/{pid}/net/{table}")) else { continue };
        // A local socket may have any bytes as its name.
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        let rows: Vec<Row> = lines.filter_map(|line| parse(&String::from_utf8_lossy(&line))).collect();
        let listening: HashSet<&str> = rows.iter().filter(|r| r.listens).map(|r| &*r.address).collect();
        sides.extend(rows.iter().map(|row| {
            let accepted = !row.address.is_empty() && listening.contains(&*row.address);
            let side = match (row.listens, accepted) {
                (true, _) => Side::Listens,
                (false, true) => Side::Accepted,
                (false, false) => Side::Other,
            };
            (row.inode, side)
        }));
    }
    sides
}

/// From a line of `/proc/net/tcp`. A connection that nobody has open any more has no inode.
fn tcp(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, port) = fields.get(1)?.rsplit_once(':')?;
    let inode = fields.get(9)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(Row { inode, listens: *fields.get(3)? == LISTEN, address: port.to_owned() })
}

/// From a line of `/proc/net/unix`. A connection that waits to be accepted has no inode.
fn unix(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
    let inode = fields.get(6)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(Row { inode, listens: flags & ACCEPTS != 0, address: fields.get(7..)?.join(" ") })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn inode(fd: &impl std::os::fd::AsRawFd) -> u64 {
        std::fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().ino()
    }

    fn side(fd: &impl std::os::fd::AsRawFd) -> Option<Side> {
        sides(std::process::id()).get(&inode(fd)).copied()
    }

    #[test]
    fn the_two_ends_of_a_tcp_connection_have_two_sides() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, _) = listener.accept().unwrap();
            let found = [side(&listener), side(&server), side(&client)];
            assert_eq!(found, [Side::Listens, Side::Accepted, Side::Other].map(Some), "{address}");
        }
    }

    #[test]
    fn the_two_ends_of_a_local_connection_have_two_sides() {
        let folder = tempfile::tempdir().unwrap();
        // Names with blanks, and with bytes that are no text.
        for name in [&b"a socket"[..], b"\xff"] {
            let path = folder.path().join(std::ffi::OsStr::from_bytes(name));
            let listener = UnixListener::bind(&path).unwrap();
            let client = UnixStream::connect(&path).unwrap();
            let (server, _) = listener.accept().unwrap();
            let found = [side(&listener), side(&server), side(&client)];
            assert_eq!(found, [Side::Listens, Side::Accepted, Side::Other].map(Some));
        }
        let (one, other) = UnixStream::pair().unwrap();
        assert_eq!([side(&one), side(&other)], [Some(Side::Other); 2]);
    }

    #[test]
    fn a_process_that_is_gone_has_no_sockets() {
        assert!(sides(u32::MAX).is_empty());
    }
}
