//! Mounts of served file systems, with their server and what an NFS client counted meanwhile. Facts only: whether the
//! program waited for one is told by its stacks.

use std::path::Path;
use std::time::Duration;

use iowhy_core::profile::{FileUse, RpcUse, ServedMount, ServerProcess};
use iowhy_linux::fuse::Connections;
use iowhy_linux::mounts::{Mount, above};
use iowhy_linux::mountstats::{NfsMount, NfsOperation};
use iowhy_linux::served;

/// Most mounts that are told: those that the program used come first.
const MAX_MOUNTS: usize = 32;

/// The mounts among these that somebody serves. `directory`: where the program began. `nfs`: the counters of NFS mounts at
/// start and end.
pub(super) fn mounts(
    table: &[Mount],
    files: &[FileUse],
    directory: Option<&str>,
    (before, now): (&[NfsMount], &[NfsMount]),
) -> Vec<ServedMount> {
    let of_directory = directory.and_then(|dir| above(table, Path::new(dir)));
    let is_used = |mount: &Mount| {
        let point = mount.point.to_str();
        files.iter().any(|f| f.mount_point.as_deref() == point) || of_directory == Some(mount)
    };
    let mut served: Vec<&Mount> = table.iter().filter(|m| serves_files(m)).collect();
    served.sort_by_key(|mount| !is_used(mount));
    served.truncate(MAX_MOUNTS);
    let is_fuse = |mount: &Mount| mount.file_system == "fuseblk" || mount.file_system.starts_with("fuse");
    let fuse: Vec<&Mount> = table.iter().filter(|m| serves_files(m) && is_fuse(m)).collect();
    let alone = fuse.iter().all(|m| m.device == fuse[0].device);
    // Looking through all processes takes time: only where the answer matters.
    let connections = fuse.iter().any(|m| is_used(m)).then(Connections::find);
    let server = |mount: &Mount| {
        let connections = connections.as_ref().filter(|_| is_fuse(mount) && is_used(mount))?;
        let (pid, name) = connections.server(mount.device.1, alone)?;
        Some(ServerProcess { pid, name })
    };
    let one = |mount: &&Mount| ServedMount {
        point: mount.point.display().to_string(),
        file_system: mount.file_system.clone(),
        source: mount.source.clone(),
        server: server(mount),
        rpc: rpc(mount, before, now),
    };
    served.iter().map(one).collect()
}

/// Whether files are behind it: neither the control files of FUSE nor the trigger of an automounter.
fn serves_files(mount: &Mount) -> bool {
    served::by_type(&mount.file_system).is_some()
        && !matches!(mount.file_system.as_str(), "fusectl" | "autofs")
}

/// The requests of an NFS mount between two looks.
fn rpc(mount: &Mount, before: &[NfsMount], now: &[NfsMount]) -> Option<RpcUse> {
    let of = |all: &[NfsMount]| {
        let found = all.iter().find(|m| Path::new(&m.point) == mount.point && m.device == mount.source);
        found.map(|m| m.operations.iter().fold(RpcUse::default(), sum))
    };
    // One that was mounted meanwhile began at nothing.
    let (now, before) = (of(now)?, of(before).unwrap_or_default());
    Some(RpcUse {
        requests: now.requests.saturating_sub(before.requests),
        transmissions: now.transmissions.saturating_sub(before.transmissions),
        timeouts: now.timeouts.saturating_sub(before.timeouts),
        sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
        received_bytes: now.received_bytes.saturating_sub(before.received_bytes),
        queue_ns: now.queue_ns.saturating_sub(before.queue_ns),
        rtt_ns: now.rtt_ns.saturating_sub(before.rtt_ns),
        execute_ns: now.execute_ns.saturating_sub(before.execute_ns),
    })
}

fn sum(all: RpcUse, one: &NfsOperation) -> RpcUse {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    RpcUse {
        requests: all.requests.saturating_add(one.requests),
        transmissions: all.transmissions.saturating_add(one.transmissions),
        timeouts: all.timeouts.saturating_add(one.timeouts),
        sent_bytes: all.sent_bytes.saturating_add(one.sent_bytes),
        received_bytes: all.received_bytes.saturating_add(one.received_bytes),
        queue_ns: all.queue_ns.saturating_add(ns(one.queue)),
        rtt_ns: all.rtt_ns.saturating_add(ns(one.rtt)),
        execute_ns: all.execute_ns.saturating_add(ns(one.execute)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iowhy_linux::mounts::parse;
    use iowhy_linux::mountstats;

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw - ext4 /dev/vda rw
40 27 0:50 / /mnt rw - nfs4 nas:/data rw
41 27 0:51 / /sys/fs/fuse/connections rw - fusectl fusectl rw
42 27 0:52 / /auto rw - autofs systemd-1 rw
";

    fn nfs(requests: u64, rtt_ms: u64) -> Vec<NfsMount> {
        mountstats::parse(&format!(
            "device nas:/data mounted on /mnt with fstype nfs4 statvers=1.1\n\tper-op statistics\n\
             \tREAD: {requests} {requests} 0 100 200 1 {rtt_ms} {} 0\n\tGETATTR: 1 1 0 1 1 0 1 1 0\n",
            rtt_ms + 2
        ))
    }

    #[test]
    fn an_nfs_mount_has_the_requests_of_the_run() {
        let told = mounts(&parse(TABLE), &[], None, (&nfs(10, 100), &nfs(15, 160)));
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((told[0].point.as_str(), told[0].file_system.as_str()), ("/mnt", "nfs4"));
        let rpc = told[0].rpc.unwrap();
        assert_eq!((rpc.requests, rpc.rtt_ns, rpc.execute_ns), (5, 60_000_000, 60_000_000));
        // One that was not mounted at the start began at nothing.
        let fresh = mounts(&parse(TABLE), &[], None, (&[], &nfs(15, 160)))[0].rpc.unwrap();
        assert_eq!(fresh.requests, 16);
    }

    #[test]
    fn mounts_of_the_program_come_first() {
        let many: String = (0..40).map(|n| format!("{n} 27 0:{n} / /m{n} rw - nfs4 nas:/{n} rw\n")).collect();
        let file = FileUse { mount_point: Some("/m39".to_owned()), ..FileUse::default() };
        let told = mounts(&parse(&many), &[file], Some("/m38/dir"), (&[], &[]));
        assert_eq!(told.len(), MAX_MOUNTS);
        assert_eq!([told[0].point.as_str(), told[1].point.as_str()], ["/m38", "/m39"]);
        assert!(told.iter().all(|m| m.server.is_none() && m.rpc.is_none()));
    }
}
