//! Which process serves a FUSE file system: the one that holds the connection, `/dev/fuse`, open.
//!
//! What may not enter: a guess. Where two processes could be it, none is named.

use std::fs;

/// A process with an open connection.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    name: String,
    /// The minor number of the file system's device, where the kernel tells it (`fuse_connection` in fdinfo).
    connection: Option<u32>,
}

/// Processes that hold a connection open, as far as this process may see.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    holders: Vec<Holder>,
}

impl Connections {
    /// Looks through all processes. It costs a read of each descriptor of the machine: not while a program is watched.
    pub fn find() -> Connections {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        Connections { holders: pids.flat_map(of_process).collect() }
    }

    /// Number and name of the process that serves the file system whose device has this minor number. `alone`: no other
    /// FUSE file system is mounted, so that whoever holds a connection serves this one.
    pub fn server(&self, minor: u32, alone: bool) -> Option<(u32, String)> {
        let exact: Vec<&Holder> = self.holders.iter().filter(|h| h.connection == Some(minor)).collect();
        let candidates = if exact.is_empty() && alone {
            self.holders.iter().filter(|h| h.connection.is_none()).collect()
        } else {
            exact
        };
        let first = candidates.first()?;
        // A server with workers has forked: the first of them is as good as any, if they are one program.
        let one = candidates.iter().all(|h| h.name == first.name);
        one.then(|| (first.pid, first.name.clone()))
    }
}

fn of_process(pid: u32) -> Vec<Holder> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let open = entries.filter(|e| fs::read_link(e.path()).is_ok_and(|to| to.as_os_str() == "/dev/fuse"));
    let numbers = open.filter_map(|e| e.file_name().into_string().ok());
    numbers
        .filter_map(|number| {
            let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned();
            Some(Holder { pid, name, connection: connection(&info) })
        })
        .collect()
}

/// The line `fuse_connection: 57`, which older kernels do not write.
fn connection(info: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix("fuse_connection:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(pid: u32, name: &str, connection: Option<u32>) -> Holder {
        Holder { pid, name: name.to_owned(), connection }
    }

    #[test]
    fn the_kernel_says_which_connection_is_open_or_says_nothing() {
        assert_eq!(connection("pos:\t0\nflags:\t02\nmnt_id:\t7\nfuse_connection:\t57\n"), Some(57));
        assert_eq!(connection("pos:\t0\nflags:\t02\n"), None);
    }

    #[test]
    fn a_server_is_named_only_where_no_other_process_could_be_it() {
        let both = [holder(7, "sshfs", Some(57)), holder(8, "rclone", Some(58))];
        let of = |holders: &[Holder]| Connections { holders: holders.to_vec() };
        assert_eq!(of(&both).server(58, false), Some((8, "rclone".to_owned())));
        assert_eq!(of(&both).server(59, true), None, "the connection of another mount");
        let old = [holder(7, "sshfs", None)];
        assert_eq!(of(&old).server(57, true), Some((7, "sshfs".to_owned())));
        assert_eq!(of(&old).server(57, false), None, "another mount may be its");
        let two = [holder(7, "sshfs", None), holder(8, "rclone", None)];
        assert_eq!(of(&two).server(57, true), None);
        let workers = [holder(7, "glusterfs", Some(57)), holder(9, "glusterfs", Some(57))];
        assert_eq!(of(&workers).server(57, false), Some((7, "glusterfs".to_owned())));
    }
}
