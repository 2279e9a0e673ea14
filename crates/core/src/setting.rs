//! Settings of a machine that I/O depends on, as plain data. Probe reads them, explain judges them.
//!
//! Plain data: reading and meaning are elsewhere.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// Where a setting belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Processors and their page tables.
    Cpu,
    /// Dirty pages and swapping.
    Memory,
    /// The queue of a block device.
    Queue,
    /// dm-crypt on a device under the path.
    Encryption,
    /// The mount that the path lies on.
    FileSystem,
    /// Limits of the control groups that this process is in.
    ControlGroup,
}

macro_rules! keys {
    ($( #[doc = $about:literal] $variant:ident = $id:literal in $group:ident; )*) => {
        /// A setting. The identifier is the kernel's own name where there is one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Key {
            $( #[doc = $about] #[serde(rename = $id)] $variant, )*
        }

        impl Key {
            /// Every setting, in the order in which they are shown.
            pub const ALL: &'static [Key] = &[ $(Key::$variant),* ];

            /// The stable identifier, as on the command line and in the JSON output.
            pub fn id(self) -> &'static str {
                match self { $(Key::$variant => $id),* }
            }

            /// One sentence for people.
            pub fn about(self) -> &'static str {
                match self { $(Key::$variant => $about.trim_ascii()),* }
            }

            /// Where it belongs.
            pub fn group(self) -> Group {
                match self { $(Key::$variant => Group::$group),* }
            }
        }
    };
}

keys! {
    /// How the CPU clock rate is chosen.
    Governor = "governor" in Cpu;
    /// Workarounds for CPU vulnerabilities, as `ACTIVE of ALL`.
    Mitigations = "mitigations" in Cpu;
    /// Transparent huge pages for anonymous memory.
    Thp = "thp" in Cpu;
    /// Share of memory, in per cent, at which a writer must write dirty pages itself.
    DirtyRatio = "dirty_ratio" in Memory;
    /// The same in bytes; one of both is 0.
    DirtyBytes = "dirty_bytes" in Memory;
    /// Share of memory, in per cent, at which background writeback begins.
    DirtyBackgroundRatio = "dirty_background_ratio" in Memory;
    /// The same in bytes; one of both is 0.
    DirtyBackgroundBytes = "dirty_background_bytes" in Memory;
    /// Age at which a dirty page is written, in hundredths of a second.
    DirtyExpire = "dirty_expire_centisecs" in Memory;
    /// Interval of periodic writeback, in hundredths of a second.
    DirtyWriteback = "dirty_writeback_centisecs" in Memory;
    /// Preference for reclaiming anonymous pages over file pages.
    Swappiness = "swappiness" in Memory;
    /// I/O scheduler: the order of requests.
    Scheduler = "scheduler" in Queue;
    /// Maximum read-ahead window, in KiB.
    ReadAhead = "read_ahead_kb" in Queue;
    /// Maximum number of queued requests.
    Requests = "nr_requests" in Queue;
    /// Read latency, in microseconds, above which background writes are throttled; 0: never.
    WritebackThrottle = "wbt_lat_usec" in Queue;
    /// Whether the kernel counts requests of the device.
    Iostats = "iostats" in Queue;
    /// Merging of adjacent requests: 0 full, 1 only with the previous request, 2 none.
    Nomerges = "nomerges" in Queue;
    /// Whether the kernel treats it as a rotational disk.
    Rotational = "rotational" in Queue;
    /// Whether the kernel assumes a volatile write cache.
    WriteCache = "write_cache" in Queue;
    /// Whether dm-crypt decrypts reads at once, and not in a work queue.
    NoReadWorkqueue = "no_read_workqueue" in Encryption;
    /// Whether dm-crypt encrypts writes at once, and not in a work queue.
    NoWriteWorkqueue = "no_write_workqueue" in Encryption;
    /// Whether dm-crypt works on the CPU that a request comes from, and not on any.
    SameCpuCrypt = "same_cpu_crypt" in Encryption;
    /// Whether the threads that encrypt submit the writes, and not one thread for all.
    SubmitFromCryptCpus = "submit_from_crypt_cpus" in Encryption;
    /// When a read updates the access time.
    AccessTime = "atime" in FileSystem;
    /// Whether time stamps stay in memory until the inode is written for another reason.
    LazyTime = "lazytime" in FileSystem;
    /// An option of the mount that costs or hides something.
    MountOption = "mount-option" in FileSystem;
    /// Limits on requests per second or throughput of the device.
    IoLimit = "io-limit" in ControlGroup;
    /// Maximum memory, page cache included.
    MemoryLimit = "memory-limit" in ControlGroup;
    /// Memory above which the group is throttled.
    MemoryHigh = "memory-high" in ControlGroup;
    /// CPU time, in CPUs.
    CpuLimit = "cpu-limit" in ControlGroup;
}

impl Key {
    /// The setting with this identifier.
    pub fn from_id(id: &str) -> Option<Key> {
        Key::ALL.iter().copied().find(|key| key.id() == id)
    }
}

/// A setting as read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// Which.
    pub key: Key,
    /// Subject: devices by kernel name, a mount point; `None` for the whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The file it was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The value in the kernel's own words; `None`: unreadable.
    pub value: Option<String>,
    /// Available values, where the kernel lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    /// More than the value says: names, a sentence for each limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limitation: Option<String>,
}

impl Reading {
    /// A value that was read.
    pub fn new(key: Key, value: impl Into<String>) -> Reading {
        Reading {
            key,
            subject: None,
            file: None,
            value: Some(value.into()),
            offered: Vec::new(),
            details: Vec::new(),
            limitation: None,
        }
    }

    /// A value that could not be read, and why.
    pub fn unreadable(key: Key, why: impl Into<String>) -> Reading {
        Reading { value: None, limitation: Some(why.into()), ..Reading::new(key, "") }
    }

    /// The value as a number.
    pub fn number(&self) -> Option<i64> {
        self.value.as_deref()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_and_name_their_key() {
        for &key in Key::ALL {
            assert_eq!(Key::from_id(key.id()), Some(key));
            assert_eq!(serde_json::to_string(&key).unwrap(), format!("\"{}\"", key.id()));
        }
        assert_eq!(Key::from_id("no-such"), None);
    }
}
