//! Facts about the machine and the target, as plain data. Probe fills them in; nothing here looks anything up.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// The machine and the path under the target. A fact that could not be read is `None`
/// (empty or 0 where the type has no `None`), never a guess.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Kernel release, e.g. `6.18.44`.
    pub kernel: String,
    /// CPU model name.
    pub cpu: String,
    /// CPUs this process may run on.
    pub cpus: usize,
    /// Physical memory.
    pub memory_bytes: u64,
    /// The memory limit of the control group, when one is set below `memory_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// File-system type, e.g. `ext4`.
    pub file_system: Option<String>,
    /// Mount options as the kernel gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_options: Option<String>,
    /// Name of the block device under the target, e.g. `nvme0n1` (a partition's whole disk is in `devices`).
    pub device: Option<String>,
    /// The device's own description (model or driver).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_model: Option<String>,
    /// Every block device the target's bytes come from, by kernel name.
    pub devices: Vec<String>,
    /// The active I/O scheduler.
    pub scheduler: Option<String>,
    /// Read-ahead window of the device.
    pub read_ahead_bytes: Option<u64>,
    /// Requests the queue admits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_requests: Option<u64>,
    /// Whether the kernel believes the device rotates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// The smallest direct request: logical block size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_block_bytes: Option<u64>,
    /// A throttle that applies to this process on the device (control group limits), in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<String>,
    /// Whether this is a virtual machine, and which kind where it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<String>,
    /// Whether the process runs as root.
    pub privileged: bool,
}

/// Kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A regular file of the user's: read only, never changed.
    File,
    /// A file iowhy made and removes.
    Scratch,
    /// A block device.
    BlockDevice,
    /// A character device such as `/dev/zero`.
    CharDevice,
    /// Anonymous memory file (memfd).
    Memory,
    /// The test target that returns at once: measures iowhy's overhead.
    Null,
    /// The false target with given latencies in virtual time.
    Scripted,
    /// Several targets that take turns, joined by iowhy itself.
    Stripe,
}

/// A stripe that iowhy makes of other targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StripeFacts {
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// Bytes that are used of each member: whole turns of the smallest.
    pub member_bytes: u64,
    /// The members, in the order of their turns.
    pub members: Vec<MemberFacts>,
}

/// A member of a stripe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberFacts {
    /// How the user named it.
    pub name: String,
    /// Its kind.
    pub kind: TargetKind,
    /// Its size.
    pub size_bytes: u64,
    /// The devices under it, by kernel name.
    pub devices: Vec<String>,
}

/// Findings on a target before timing. Bytes that are not known are `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// Its kind.
    pub kind: TargetKind,
    /// How the user, or we, named it.
    pub name: String,
    /// Size that can be read.
    pub size_bytes: u64,
    /// Bytes with nothing behind them (holes): reads are filled from nowhere.
    pub hole_bytes: Option<u64>,
    /// Bytes allocated but never written: a direct read is answered with zeros without the device.
    pub unwritten_bytes: Option<u64>,
    /// Bytes in extents shared with other files (reflinks, snapshots).
    pub shared_bytes: Option<u64>,
    /// Bytes in encoded (compressed or encrypted) extents.
    pub encoded_bytes: Option<u64>,
    /// Number of extents.
    pub extents: Option<u64>,
    /// Whether the bytes live in memory only (tmpfs, ramfs, memfd).
    pub memory_backed: bool,
    /// Who serves the bytes where no block device of this machine does: a program (FUSE), another machine (NFS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by: Option<String>,
    /// Its former content, in words, when this run overwrites data (`--destroy-data`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwritten: Option<String>,
    /// Whether O_DIRECT can be opened on it.
    pub direct_supported: Option<bool>,
    /// Alignment that direct requests need.
    pub direct_alignment_bytes: Option<u64>,
    /// Whether cache state can be verified (cachestat or an honest mincore).
    pub cache_visible: bool,
    /// Members of a stripe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe: Option<StripeFacts>,
}
