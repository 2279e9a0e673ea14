//! File systems that another machine or a user-space program serves, as far as the program could reach them.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// A mount of such a file system, whether the program used it or not: [`FileUse::mount_point`](super::FileUse::mount_point)
/// tells which files are on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServedMount {
    /// Where it is mounted.
    pub point: String,
    /// Its type in the mount table: `nfs4`, `cifs`, `fuse.sshfs`.
    pub file_system: String,
    /// What is mounted, in the words of the mount table: `host:/export`, a name.
    pub source: String,
    /// The process that answers, of a FUSE file system where one process alone can be it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerProcess>,
    /// Requests to the server while the program ran, of an NFS file system, whoever caused them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpc: Option<RpcUse>,
}

/// A process that serves a file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerProcess {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// Requests of an NFS client (`/proc/self/mountstats`), all operations together. Times are sums over requests, in the
/// kernel's milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RpcUse {
    /// Requests that were completed.
    pub requests: u64,
    /// Times one was sent; more than `requests` where answers were lost.
    pub transmissions: u64,
    /// Times one was not answered within the limit (`timeo`).
    pub timeouts: u64,
    /// Bytes sent, headers included.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Time between the start of a request and its transmission: in the client's queue.
    pub queue_ns: u64,
    /// Time between transmission and answer: wire and server together.
    pub rtt_ns: u64,
    /// Time between start and end of a request. What the two above leave is the client's own.
    pub execute_ns: u64,
}
