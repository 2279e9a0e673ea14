//! A workload: direction, method, pattern, sizes, queue depth, arrival, cache state.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;

/// Whether requests read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// A seeded mix; the value is the share of reads in per cent.
    Mixed(u8),
}

impl Direction {
    /// Whether any request writes.
    pub fn writes(self) -> bool {
        !matches!(self, Direction::Read)
    }
}

/// The state of the page cache that a cell claims, and that is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// No page of the region is in the page cache.
    Cold,
    /// Everything that is read is in the page cache.
    Warm,
    /// The page cache is bypassed (O_DIRECT).
    Direct,
    /// The target has no page cache, or the method does not use it, or nothing is claimed (writes).
    None,
}

impl CacheState {
    /// The stable identifier, as on the command line.
    pub fn id(self) -> &'static str {
        match self {
            CacheState::Cold => "cold",
            CacheState::Warm => "warm",
            CacheState::Direct => "direct",
            CacheState::None => "none",
        }
    }
}

/// Use of the bytes after a read; the same in every arm of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Nothing. A mapped read still loads one byte of each page: without that it would read nothing.
    #[default]
    None,
    /// One byte of each 64-byte cache line is loaded.
    Line,
    /// Every byte is loaded and summed.
    All,
}

impl Touch {
    /// The stable identifier, as on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Touch::None => "none",
            Touch::Line => "line",
            Touch::All => "all",
        }
    }
}

macro_rules! methods {
    ($( $(#[$doc:meta])* $variant:ident = $id:literal, $about:literal; )*) => {
        /// How bytes are moved. One variant per distinct path through the kernel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Method {
            $( $(#[$doc])* #[doc = $about] #[serde(rename = $id)] $variant, )*
        }

        impl Method {
            /// Every method, in the order of the help text.
            pub const ALL: &'static [Method] = &[ $(Method::$variant),* ];

            /// The stable identifier, as on the command line and in the JSON output.
            pub fn id(self) -> &'static str {
                match self { $(Method::$variant => $id),* }
            }

            /// One line for people.
            pub fn about(self) -> &'static str {
                match self { $(Method::$variant => $about),* }
            }
        }
    };
}

methods! {
    Null = "null", "nothing at all: measures the harness";
    Syscall = "syscall", "the cheapest system call on the descriptor (fcntl F_GETFD): entry, descriptor look-up, exit";
    PreadEnd = "pread-end", "pread(2) at the end of the file: entry, VFS and file system, but no page and no byte";
    Read = "read", "read(2) at the file position (lseek before it unless sequential)";
    Pread = "pread", "pread(2)";
    PreadRandom = "pread-random", "pread(2) after posix_fadvise(POSIX_FADV_RANDOM): no read-ahead";
    PreadSequential = "pread-sequential", "pread(2) after posix_fadvise(POSIX_FADV_SEQUENTIAL): a larger read-ahead window";
    Readv = "readv", "preadv(2) into four equal buffers";
    Preadv2 = "preadv2", "preadv2(2) without flags";
    Preadv2Nowait = "preadv2-nowait", "preadv2(2) RWF_NOWAIT: what is not in the cache counts as refused and is read again blocking";
    Preadv2Dontcache = "preadv2-dontcache", "preadv2(2) RWF_DONTCACHE (Linux 6.14): read through the cache and drop behind";
    Mmap = "mmap", "one mapping, one byte of each page loaded";
    MmapRandom = "mmap-random", "as mmap, after madvise(MADV_RANDOM): no fault-around read";
    MmapSequential = "mmap-sequential", "as mmap, after madvise(MADV_SEQUENTIAL)";
    MmapPopulate = "mmap-populate", "map with MAP_POPULATE, load, unmap: one window a request";
    MmapLock = "mmap-lock", "map, mlock, load, munlock, munmap: one window a request (the 1999 arm)";
    Direct = "direct", "pread(2) or pwrite(2) with O_DIRECT";
    Uring = "uring", "io_uring with registered ring, file and buffers; with state direct also O_DIRECT";
    UringSqpoll = "uring-sqpoll", "io_uring with a kernel submission thread (SQPOLL)";
    UringIopoll = "uring-iopoll", "io_uring that polls the device (IOPOLL), O_DIRECT";
    Splice = "splice", "splice(2) through a pipe to /dev/null: no copy to user memory";
    Sendfile = "sendfile", "sendfile(2) to /dev/null: no copy to user memory";
    Write = "write", "write(2) at the file position (lseek before it unless sequential)";
    Pwrite = "pwrite", "pwrite(2)";
    PwriteDsync = "pwrite-dsync", "pwrite(2) on a descriptor opened with O_DSYNC";
    PwriteFsync = "pwrite-fsync", "pwrite(2) and fsync(2)";
    PwriteFdatasync = "pwrite-fdatasync", "pwrite(2) and fdatasync(2)";
    PwriteEndFdatasync = "pwrite-end-fdatasync", "pwrite(2), and one fdatasync(2) at the end of each slice, within its time";
    MmapStore = "mmap-store", "store into a shared mapping and msync(MS_SYNC) the range";
    Fallocate = "fallocate", "fallocate(2) of the range: allocation without data";
    Sg = "sg", "SCSI READ BUFFER through /dev/sg*, indirect: kernel buffer, then copy to user memory";
    SgDirect = "sg-direct", "SCSI READ BUFFER through /dev/sg* asking for direct transfer to user memory";
    SgMmap = "sg-mmap", "SCSI READ BUFFER into sg's memory-mapped reserve buffer: no copy";
    SgNoCopy = "sg-no-copy", "SCSI READ BUFFER whose data stays in the kernel buffer (SG_FLAG_NO_DXFER)";
}

impl Method {
    /// The method with this identifier.
    pub fn from_id(id: &str) -> Option<Method> {
        Method::ALL.iter().copied().find(|m| m.id() == id)
    }

    /// Whether the method can only write.
    pub fn write_only(self) -> bool {
        use Method::*;
        matches!(
            self,
            Write
                | Pwrite
                | PwriteDsync
                | PwriteFsync
                | PwriteFdatasync
                | PwriteEndFdatasync
                | MmapStore
                | Fallocate
        )
    }

    /// Whether the method can carry out writes at all.
    pub fn can_write(self) -> bool {
        use Method::*;
        self.write_only() || matches!(self, Null | Direct | Uring | UringSqpoll | UringIopoll)
    }

    /// Whether the method can carry out reads at all.
    pub fn can_read(self) -> bool {
        !self.write_only()
    }

    /// Whether a thread can keep more than one request in flight with it.
    pub fn asynchronous(self) -> bool {
        matches!(self, Method::Uring | Method::UringSqpoll | Method::UringIopoll | Method::Null)
    }

    /// Whether it reads through a memory mapping.
    pub fn mapped(self) -> bool {
        use Method::*;
        matches!(self, Mmap | MmapRandom | MmapSequential | MmapPopulate | MmapLock | MmapStore)
    }

    /// Whether it is one of the SCSI generic methods.
    pub fn scsi(self) -> bool {
        matches!(self, Method::Sg | Method::SgDirect | Method::SgMmap | Method::SgNoCopy)
    }

    /// Whether the method copies bytes between kernel and user memory when the cache is used.
    pub fn copies(self) -> bool {
        use Method::*;
        matches!(
            self,
            Read | Pread
                | Readv
                | Preadv2
                | Preadv2Nowait
                | Preadv2Dontcache
                | Uring
                | UringSqpoll
                | Write
                | Pwrite
                | PwriteDsync
                | PwriteFsync
                | PwriteFdatasync
                | PwriteEndFdatasync
                | Sg
        )
    }
}

/// One cell of a plan, without its duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Reads, writes or a mix.
    pub direction: Direction,
    /// How bytes are moved.
    pub method: Method,
    /// Where requests go.
    pub pattern: Pattern,
    /// Claimed (and verified) state of the page cache.
    pub state: CacheState,
    /// Size of one request.
    pub block_bytes: u64,
    /// Length of the region that requests fall into.
    pub region_bytes: u64,
    /// Start of that region.
    pub region_offset: u64,
    /// Threads, each with its own descriptor and generator.
    pub threads: usize,
    /// Requests that each thread keeps in flight.
    pub depth: usize,
    /// Use of the bytes after a read.
    pub touch: Touch,
    /// Open loop: planned requests per second over all threads; `None` is a closed loop.
    pub rate_per_second: Option<f64>,
    /// Seed of pattern and mix.
    pub seed: u64,
}

impl Workload {
    /// A closed loop of sequential reads, one thread, depth 1, data not touched.
    pub fn reads(method: Method, state: CacheState, block_bytes: u64, region_bytes: u64) -> Self {
        Workload {
            direction: Direction::Read,
            method,
            pattern: Pattern::Sequential,
            state,
            block_bytes,
            region_bytes,
            region_offset: 0,
            threads: 1,
            depth: 1,
            touch: Touch::None,
            rate_per_second: None,
            seed: 1,
        }
    }

    /// Whole blocks that fit in the region.
    pub fn blocks(&self) -> u64 {
        self.region_bytes / self.block_bytes.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_round_trip_through_json_and_from_id() {
        for &m in Method::ALL {
            assert_eq!(Method::from_id(m.id()), Some(m));
            assert_eq!(serde_json::to_string(&m).unwrap(), format!("\"{}\"", m.id()));
            assert!(m.can_read() || m.can_write(), "{m:?} does something");
        }
    }
}
