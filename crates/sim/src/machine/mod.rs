//! A machine as data: costs and policies of each layer. Read from TOML, changed by `layer.key`, checked before use.
//!
//! How a layer works is in the layer's own file.

mod bounds;
mod choice;
mod keys;
mod members;
mod model;
mod read;
mod shipped;

use crate::policy::PolicyId;
pub use choice::{Choice, DeviceKind, JoinKind, LayoutKind, Order, ReadAheadKind, Spread, WriteMode};
use iowhy_core::model::Cost;
use iowhy_core::problem::Problem;
use iowhy_core::saved_model::SizedCost;
use iowhy_core::units::Bytes;
pub use keys::{KEYS, Key, Value};
pub use shipped::{Shipped, device_models, shipped};

/// A cache of unlimited size.
pub const UNLIMITED: u64 = u64::MAX;

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Description, with the source of its figures.
    pub about: String,
    /// CPUs; 0: as many as there are requests.
    pub cpus: u64,
    /// Bytes of a page, which costs are counted in.
    pub page_bytes: u64,
    /// Entering and leaving the kernel.
    pub call: Cost,
    /// The file system's own code.
    pub filesystem: Cost,
    /// Looking up and handling cached pages: a request, its pages, its bytes.
    pub lookup: Cost,
    /// Putting fetched blocks into the cache: a block, its pages, its bytes.
    pub insert: Cost,
    /// Between kernel and program.
    pub copy: Cost,
    /// The same by size, where it was measured and `copy` was not set.
    pub copy_by_size: Vec<SizedCost>,
    /// Mapping a buffer of the pool, or the pages of a fault.
    pub mapping: Cost,
    /// Building and handing down one block request.
    pub block: Cost,
    /// The same for writes, where they were measured and `block` was not set.
    pub write_block: Option<Cost>,
    /// The cache.
    pub cache: CacheConfig,
    /// The pool of mapped buffers over the cache.
    pub pool: PoolConfig,
    /// Bytes that one fault on a mapping reads.
    pub fault_bytes: u64,
    /// Read-ahead.
    pub read_ahead: ReadAheadConfig,
    /// The file system.
    pub layout: LayoutConfig,
    /// The joined devices.
    pub volume: VolumeConfig,
    /// The queue before each device.
    pub scheduler: SchedulerConfig,
    /// The bus that all devices share.
    pub bus: BusConfig,
    /// The devices.
    pub device: DeviceConfig,
    /// Each device with the queue before it, where they are not all `device` behind `scheduler`; else empty.
    pub members: Vec<MemberConfig>,
    /// Caveats about the figures.
    pub notes: Vec<String>,
}

/// The cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheConfig {
    /// Its size; 0: none, [`UNLIMITED`]: all fits.
    pub bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Which block leaves.
    pub policy: PolicyId,
    /// Largest read from the volume.
    pub io_bytes: u64,
    /// When written blocks go out.
    pub write: WriteMode,
    /// Dirty bytes at which write-back starts.
    pub background_bytes: u64,
    /// Dirty bytes at which writers wait.
    pub dirty_bytes: u64,
}

/// A small pool of mapped buffers over the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolConfig {
    /// Buffers; 0: no pool.
    pub buffers: u64,
    /// Which buffer leaves.
    pub policy: PolicyId,
}

/// Read-ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadAheadConfig {
    /// The state machine.
    pub kind: ReadAheadKind,
    /// Its largest window, or its fixed size.
    pub bytes: u64,
}

/// Where files lie.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutConfig {
    /// The rules.
    pub kind: LayoutKind,
    /// FFS: sectors of a cylinder group.
    pub group_sectors: u64,
    /// FFS: bytes of a block.
    pub block_bytes: u64,
    /// FFS: bytes of a fragment.
    pub fragment_bytes: u64,
    /// FFS: bytes per inode.
    pub bytes_per_inode: u64,
    /// FFS: bytes of a directory entry.
    pub entry_bytes: u64,
    /// FFS: a file that was read leaves its time of access, so that its inode's block is written later.
    pub access_times: bool,
}

/// How devices are joined.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeConfig {
    /// The kind.
    pub kind: JoinKind,
    /// Stripe: sectors of one turn.
    pub interleave: u64,
    /// Pieces of one request that follow one another on a device become one.
    pub merge: bool,
}

/// The queue before each device.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// Its order.
    pub order: Order,
    /// Commands that a device holds at once (tagged queueing above 1).
    pub depth: u64,
}

/// A device that is not like the others, and its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberConfig {
    /// The device; its `count` means nothing.
    pub device: DeviceConfig,
    /// The queue before it.
    pub scheduler: SchedulerConfig,
}

/// The shared bus.
#[derive(Clone, Debug, PartialEq)]
pub struct BusConfig {
    /// Its speed; 0: no time.
    pub bytes_per_second: u64,
    /// Arbitration and messages of one command.
    pub command_ns: u64,
}

/// The devices: all of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// The shipped model that it began as.
    pub model: String,
    /// How many.
    pub count: u64,
    /// Kind of the devices.
    pub kind: DeviceKind,
    /// Size of one; 0: from the geometry.
    pub bytes: u64,
    /// Arm and platters.
    pub rotating: RotatingConfig,
    /// Flash.
    pub ssd: SsdConfig,
    /// A limited volume.
    pub cloud: CloudConfig,
    /// Device model of writes, where it differs from reads.
    pub write: Option<Box<DeviceConfig>>,
}

/// A zone of a rotating disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Its last cylinder.
    pub last_cylinder: u64,
    /// Sectors of a track.
    pub sectors: u64,
    /// Sectors that the next track of the cylinder is turned by.
    pub track_skew: u64,
    /// Sectors that the next cylinder is turned by.
    pub cylinder_skew: u64,
}

/// Arm and platters.
#[derive(Clone, Debug, PartialEq)]
pub struct RotatingConfig {
    /// Turns a minute.
    pub rpm: f64,
    /// Surfaces.
    pub heads: u64,
    /// Zones from the outside in.
    pub zones: Vec<Zone>,
    /// Seek over d cylinders: a + b * sqrt(d) + c * d, milliseconds.
    pub seek_a_ms: f64,
    /// See `seek_a_ms`.
    pub seek_b_ms: f64,
    /// See `seek_a_ms`.
    pub seek_c_ms: f64,
    /// Seek over one cylinder, when known apart; 0: by the formula.
    pub seek_track_ms: f64,
    /// Switching heads.
    pub head_switch_ms: f64,
    /// Distance between consecutive logical sectors on the track (1: adjacent).
    pub sector_interleave: u64,
    /// Command overhead of a request that goes to the platter.
    pub command_ms: f64,
    /// Command overhead of a read that the buffer holds.
    pub hit_command_ms: f64,
    /// Segments of the buffer; 0: no buffer.
    pub buffer_segments: u64,
    /// Sectors of a segment.
    pub buffer_sectors: u64,
    /// Whether the drive reads on after a read.
    pub buffer_read_ahead: bool,
}

/// Flash.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdConfig {
    /// Access time of a read.
    pub read_ns: u64,
    /// Access time of a write.
    pub write_ns: u64,
    /// How access times are spread.
    pub spread: Spread,
    /// Speed of one unit; 0: no time.
    pub unit_bytes_per_second: u64,
    /// Units that work side by side.
    pub units: u64,
    /// Requests a second at most; 0: no limit.
    pub iops: f64,
    /// What requests in flight share once: with n of them, each begins this over n after the one before, beyond `iops`.
    pub batch_ns: u64,
    /// Bytes a second at most; 0: no limit.
    pub bytes_per_second: u64,
}

/// A volume with limits.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudConfig {
    /// Time of a request that no limit holds back.
    pub base_ns: u64,
    /// Requests a second.
    pub iops: f64,
    /// Tokens of the requests' bucket.
    pub iops_burst: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Tokens of the bytes' bucket.
    pub bytes_burst: f64,
    /// Bytes that count as one request; 0: each request counts once.
    pub request_bytes: u64,
    /// Requests served at once.
    pub units: u64,
}

const NOTHING: Cost = Cost { per_call_ns: 0.0, per_page_ns: 0.0, per_byte_ns: 0.0 };

/// No device yet.
const NO_DEVICE: DeviceConfig = DeviceConfig {
    model: String::new(),
    count: 1,
    kind: DeviceKind::Missing,
    bytes: 0,
    rotating: RotatingConfig {
        rpm: 7200.0,
        heads: 1,
        zones: Vec::new(),
        seek_a_ms: 0.0,
        seek_b_ms: 0.0,
        seek_c_ms: 0.0,
        seek_track_ms: 0.0,
        head_switch_ms: 0.0,
        sector_interleave: 1,
        command_ms: 0.0,
        hit_command_ms: 0.0,
        buffer_segments: 0,
        buffer_sectors: 0,
        buffer_read_ahead: false,
    },
    ssd: SsdConfig {
        read_ns: 0,
        write_ns: 0,
        spread: Spread::Fixed,
        unit_bytes_per_second: 0,
        units: 1,
        iops: 0.0,
        batch_ns: 0,
        bytes_per_second: 0,
    },
    cloud: CloudConfig {
        base_ns: 0,
        iops: 0.0,
        iops_burst: 0.0,
        bytes_per_second: 0.0,
        bytes_burst: 0.0,
        request_bytes: 0,
        units: 1,
    },
    write: None,
};

impl Default for Machine {
    /// No cost anywhere, no cache, no device yet.
    fn default() -> Self {
        Machine {
            name: String::new(),
            about: String::new(),
            cpus: 0,
            page_bytes: 4096,
            call: NOTHING,
            filesystem: NOTHING,
            lookup: NOTHING,
            insert: NOTHING,
            copy: NOTHING,
            copy_by_size: Vec::new(),
            write_block: None,
            mapping: NOTHING,
            block: NOTHING,
            cache: CacheConfig {
                bytes: 0,
                block_bytes: 4096,
                policy: PolicyId::Lru,
                io_bytes: 128 << 10,
                write: WriteMode::Back,
                background_bytes: 0,
                dirty_bytes: UNLIMITED,
            },
            pool: PoolConfig { buffers: 0, policy: PolicyId::Lru },
            fault_bytes: 16 << 10,
            read_ahead: ReadAheadConfig { kind: ReadAheadKind::None, bytes: 128 << 10 },
            layout: LayoutConfig {
                kind: LayoutKind::Raw,
                group_sectors: 32_768,
                block_bytes: 8192,
                fragment_bytes: 1024,
                bytes_per_inode: 4096,
                entry_bytes: 16,
                access_times: false,
            },
            volume: VolumeConfig { kind: JoinKind::Single, interleave: 128, merge: false },
            scheduler: SchedulerConfig { order: Order::Fcfs, depth: 1 },
            bus: BusConfig { bytes_per_second: 0, command_ns: 0 },
            device: NO_DEVICE,
            members: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Machine {
    /// The shipped machine of this name.
    pub fn shipped(name: &str) -> Option<Machine> {
        let found = shipped().iter().find(|shipped| shipped.name == name)?;
        // Shipped texts are read in a test; an unreadable one is as good as absent.
        Machine::from_toml(found.text, name).ok()
    }

    /// One of its devices and the queue before it.
    pub fn member(&self, index: usize) -> (&DeviceConfig, &SchedulerConfig) {
        match self.members.get(index) {
            Some(member) => (&member.device, &member.scheduler),
            None => (&self.device, &self.scheduler),
        }
    }

    /// Refuses machines that cannot be built or would never end, naming the wrong key.
    ///
    /// # Errors
    /// The first such key, with the fix.
    pub fn check(&self) -> Result<(), Problem> {
        let refuse = |key: &str, why: String, fix: &str| {
            Err(Problem::refused(format!("machine `{}`: `{key}` {why}", self.name)).hint(fix.to_owned()))
        };
        let cache = &self.cache;
        if !(512..=1 << 30).contains(&cache.block_bytes) || !cache.block_bytes.is_power_of_two() {
            let why = format!("is {}: a block is a power of two from 512 to 1 GiB", cache.block_bytes);
            return refuse("cache.block_bytes", why, "for example `--set cache.block_bytes=4k`");
        }
        if cache.bytes > 0 && cache.bytes < cache.block_bytes {
            let why =
                format!("is {}, smaller than one block of {}", Bytes(cache.bytes), Bytes(cache.block_bytes));
            return refuse("cache.bytes", why, "give room for one block at least, or 0 for no cache");
        }
        if self.pool.buffers > 0 && cache.bytes == 0 {
            let why = "asks for a pool over a cache, and there is no cache".to_owned();
            return refuse("pool.buffers", why, "give `cache.bytes`, or 0 buffers");
        }
        if cache.io_bytes == 0 || self.fault_bytes == 0 {
            let key = if cache.io_bytes == 0 { "cache.io_bytes" } else { "mapping.fault_bytes" };
            return refuse(key, "is 0: nothing would ever be read".to_owned(), "give a block or more");
        }
        if !(512..=1 << 30).contains(&self.page_bytes) {
            let why = format!("is {}: a page has 512 bytes to 1 GiB", self.page_bytes);
            return refuse("cpu.page_bytes", why, "4096 is usual");
        }
        if self.cpus > MAX_CPUS {
            let why = format!("is {}: more than {MAX_CPUS}", self.cpus);
            return refuse("cpu.count", why, "0 stands for as many as there are requests");
        }
        if self.device.kind == DeviceKind::Missing {
            return Err(Problem::refused(format!("machine `{}` has no device", self.name))
                .hint("give `device.model` (as `st32171w`) or `device.kind` (rotating, ssd, cloud, null)"));
        }
        if self.device.count > MAX_DEVICES {
            let why = format!("is {}: more than {MAX_DEVICES}", self.device.count);
            return refuse("device.count", why, "a sweep of fewer tells the same");
        }
        if self.volume.kind == JoinKind::Single && self.device.count > 1 {
            let why = format!("is `single`, and there are {} devices", self.device.count);
            return refuse("volume.kind", why, "choose `stripe`, `mirror` or `concat`, or `device.count=1`");
        }
        let known = self.members.len() as u64;
        if known > 0 && known != self.device.count {
            let why =
                format!("is {}, and the machine lists {known} devices, each for itself", self.device.count);
            return refuse("device.count", why, "leave it out");
        }
        let depths = std::iter::once(&self.scheduler).chain(self.members.iter().map(|m| &m.scheduler));
        for depth in depths.map(|scheduler| scheduler.depth) {
            if !(1..=MAX_DEPTH).contains(&depth) {
                let why = format!("is {depth}: a device holds 1 to {MAX_DEPTH} commands");
                return refuse("scheduler.depth", why, "1 is a device without tagged queueing");
            }
        }
        bounds::check(self)?;
        self.check_layout()
    }

    fn check_layout(&self) -> Result<(), Problem> {
        let layout = &self.layout;
        let refuse = |key: &str, why: String| {
            Err(Problem::refused(format!("machine `{}`: `{key}` {why}", self.name)).hint(
                "the defaults are 8 KiB blocks, 1 KiB fragments, an inode for 4 KiB, groups of 32768 sectors",
            ))
        };
        if layout.kind != LayoutKind::Ffs {
            return Ok(());
        }
        let (block, fragment) = (layout.block_bytes, layout.fragment_bytes);
        if !block.is_power_of_two() || !(4096..=65_536).contains(&block) {
            return refuse(
                "layout.block_bytes",
                format!("is {block}: FFS has powers of two from 4096 to 65536"),
            );
        }
        if !fragment.is_power_of_two() || fragment < 512 || fragment > block || block / fragment > 8 {
            return refuse(
                "layout.fragment_bytes",
                format!("is {fragment}: a block has 1, 2, 4 or 8 fragments"),
            );
        }
        if layout.bytes_per_inode < 512 || layout.entry_bytes == 0 || layout.entry_bytes > block {
            return refuse("layout.bytes_per_inode", "or `layout.entry_bytes` is out of range".to_owned());
        }
        if !layout.group_sectors.is_multiple_of(block / 512)
            || !(1024..=1 << 26).contains(&layout.group_sectors)
        {
            let why = format!("is {}: groups are whole blocks, 1024 sectors to 32 GiB", layout.group_sectors);
            return refuse("layout.group_sectors", why);
        }
        Ok(())
    }
}

/// More are taken for a slip of the finger.
const MAX_CPUS: u64 = 65_536;
/// As above.
const MAX_DEVICES: u64 = 4096;
/// NVMe's largest queue.
const MAX_DEPTH: u64 = 65_536;
