//! Sockets that wait for connections, by inode: those of TCP and of local stream sockets. UDP knows no such state.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// `TCP_LISTEN` in `/proc/net/tcp` (include/net/tcp_states.h).
const LISTEN: &str = "0A";
/// `__SO_ACCEPTCON` in `/proc/net/unix` (include/uapi/linux/net.h).
const ACCEPTS: u32 = 1 << 16;

/// All sockets that listen in the network name space of a process. Empty where the tables cannot be read.
pub fn sockets(pid: u32) -> HashSet<u64> {
    let mut inodes = HashSet::new();
    for (table, parse) in [("tcp", tcp as fn(&str) -> Option<u64>), ("tcp6", tcp), ("unix", unix)] {
        let Ok(file) = File::open(format!("/proc/{pid}/net/{table}")) else { continue };
        inodes.extend(BufReader::new(file).lines().map_while(Result::ok).filter_map(|line| parse(&line)));
    }
    inodes
}

/// The inode of a socket that listens, from a line of `/proc/net/tcp`.
fn tcp(line: &str) -> Option<u64> {
    let mut fields = line.split_whitespace();
    (fields.nth(3)? == LISTEN).then_some(())?;
    fields.nth(5)?.parse().ok()
}

/// The same from a line of `/proc/net/unix`.
fn unix(line: &str) -> Option<u64> {
    let mut fields = line.split_whitespace();
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    (flags & ACCEPTS != 0).then_some(())?;
    fields.nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn inode(fd: &impl std::os::fd::AsRawFd) -> u64 {
        std::fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().ino()
    }

    #[test]
    fn sockets_that_listen_are_told_from_connected_ones() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let local = UnixListener::bind(folder.path().join("socket")).unwrap();
        let found = sockets(std::process::id());
        assert!(found.contains(&inode(&tcp)) && found.contains(&inode(&local)));
        assert!(!found.contains(&inode(&connected)));
    }

    #[test]
    fn a_process_that_is_gone_listens_to_nobody() {
        assert!(sockets(u32::MAX).is_empty());
    }
}
