//! Counters of NFS mounts, `/proc/PID/mountstats` (net/sunrpc/stats.c, fs/nfs/iostat.h): which requests a client sent, and
//! how long they took where. Other file systems write one line there and no counters.

use std::time::Duration;

/// One NFS mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NfsMount {
    /// What is mounted: `host:/export`.
    pub device: String,
    /// Where.
    pub point: String,
    /// `nfs` or `nfs4`.
    pub file_system: String,
    /// Kinds of requests that were made, in the order of the text.
    pub operations: Vec<NfsOperation>,
}

/// Requests of one kind since the mount was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NfsOperation {
    /// Its name: `READ`, `GETATTR`.
    pub name: String,
    /// Requests that were completed.
    pub requests: u64,
    /// Times one was sent.
    pub transmissions: u64,
    /// Times one was not answered in time.
    pub timeouts: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// From start to transmission.
    pub queue: Duration,
    /// From transmission to answer.
    pub rtt: Duration,
    /// From start to end.
    pub execute: Duration,
}

/// The NFS mounts that this process sees; none without /proc, or where none is mounted.
pub fn read() -> Vec<NfsMount> {
    std::fs::read("/proc/self/mountstats")
        .map_or_else(|_| Vec::new(), |t| parse(&String::from_utf8_lossy(&t)))
}

/// Reads the text; lines of an unknown shape are left out.
pub fn parse(text: &str) -> Vec<NfsMount> {
    let mut mounts: Vec<NfsMount> = Vec::new();
    let (mut is_nfs, mut in_operations) = (false, false);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("device ") {
            (is_nfs, in_operations) = (false, false);
            if let Some(mount) = heading(rest) {
                is_nfs = true;
                mounts.push(mount);
            }
        } else if line.trim() == "per-op statistics" {
            in_operations = is_nfs;
        } else if in_operations && let (Some(mount), Some(operation)) = (mounts.last_mut(), operation(line)) {
            mount.operations.push(operation);
        }
    }
    mounts
}

/// `host:/export mounted on /mnt with fstype nfs4 statvers=1.1`
fn heading(rest: &str) -> Option<NfsMount> {
    let (device, rest) = rest.split_once(" mounted on ")?;
    let (point, rest) = rest.rsplit_once(" with fstype ")?;
    let file_system = rest.split(' ').next()?;
    // Only NFS counts, and says so with a version.
    let counts = matches!(file_system, "nfs" | "nfs4") && rest.contains("statvers=");
    counts.then(|| NfsMount {
        device: device.to_owned(),
        point: point.to_owned(),
        file_system: file_system.to_owned(),
        operations: Vec::new(),
    })
}

/// `READ: ops trans timeouts sent received queue rtt execute [errors]`, times in milliseconds.
fn operation(line: &str) -> Option<NfsOperation> {
    let (name, numbers) = line.trim().split_once(": ")?;
    let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|n| n.parse().ok()).collect();
    let [requests, transmissions, timeouts, sent_bytes, received_bytes, queue, rtt, execute, ..] =
        numbers[..]
    else {
        return None;
    };
    let ms = Duration::from_millis;
    Some(NfsOperation {
        name: name.to_owned(),
        requests,
        transmissions,
        timeouts,
        sent_bytes,
        received_bytes,
        queue: ms(queue),
        rtt: ms(rtt),
        execute: ms(execute),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// In the shape of Linux 6.x with NFS 4.2, shortened.
    const NFS4: &str = "\
device rootfs mounted on / with fstype rootfs
device proc mounted on /proc with fstype proc
device 192.0.2.7:/srv/data mounted on /mnt/my data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys
\tage:\t421
\timpl_id:\tname='',domain='',date='0,0'
\tcaps:\tcaps=0x3ffbffff,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t3 20 0 0 2 3 27 0 0 2 0 0 0 3 0 0 2 0 0 0 0 0 0 0 0 0 0
\tbytes:\t41943040 0 0 0 41943040 0 10240 0
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 1 0 3 60 60 0 62 0 2 4 2
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 1 1 0
\t        READ: 40 41 1 8480 41948480 120 400 530 0
\t       WRITE: 0 0 0 0 0 0 0 0 0
\t     GETATTR: 7 7 0 1500 1700 1 9 12 0
device tmpfs mounted on /tmp with fstype tmpfs
";

    /// Of Linux 3.x with NFS 3: no errors at the end of a line, and statistics of version 1.0.
    const NFS3: &str = "\
device nas:/vol0 mounted on /home with fstype nfs statvers=1.0
\topts:\trw,vers=3,rsize=65536
\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t     GETATTR: 100 102 2 10400 11200 5 2000 2010
";

    #[test]
    fn counters_of_nfs_mounts_are_read_and_others_are_left_out() {
        let mounts = parse(NFS4);
        assert_eq!(mounts.len(), 1);
        assert_eq!(
            (mounts[0].device.as_str(), mounts[0].point.as_str(), mounts[0].file_system.as_str()),
            ("192.0.2.7:/srv/data", "/mnt/my data", "nfs4")
        );
        assert_eq!(mounts[0].operations.len(), 4);
        let read = &mounts[0].operations[1];
        assert_eq!(
            (read.name.as_str(), read.requests, read.transmissions, read.timeouts),
            ("READ", 40, 41, 1)
        );
        assert_eq!((read.sent_bytes, read.received_bytes), (8480, 41_948_480));
        assert_eq!([read.queue, read.rtt, read.execute].map(|t| t.as_millis()), [120, 400, 530]);
    }

    #[test]
    fn the_older_text_without_errors_is_read_too() {
        let mounts = parse(&[NFS3, NFS4].concat());
        assert_eq!(mounts.len(), 2);
        let getattr = &mounts[0].operations[1];
        assert_eq!((getattr.requests, getattr.timeouts, getattr.rtt.as_millis()), (100, 2, 2000));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(device |mounted on|with fstype nfs4 statvers=1|per-op statistics|READ: |[0-9 \t\n:]|.){0,80}") {
            let _ = parse(&text);
        }
    }
}
