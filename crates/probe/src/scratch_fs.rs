//! Scratch file systems: in an unnamed file, on a loop device, mounted where no other process sees them. Root only.
//!
//! Invariants: nothing is left behind, not even by SIGKILL: the file has no name, the loop device clears itself with
//! its last user, and the mount is attached nowhere. No device or mount of the user is touched.

use std::fs;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iowhy_core::problem::Problem;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

/// Kinds that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ext4.
    Ext4,
    /// XFS; blocks larger than a page from Linux 6.12 on.
    Xfs,
}

impl Kind {
    /// The kernel's name.
    pub fn id(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
        }
    }

    fn tool(self) -> &'static str {
        match self {
            Kind::Ext4 => "mkfs.ext4",
            Kind::Xfs => "mkfs.xfs",
        }
    }

    fn arguments(self, block_bytes: u64) -> Vec<String> {
        let words = match self {
            // All tables are written now: nothing may go on in the background while it is measured.
            Kind::Ext4 => {
                format!("-q -F -b {block_bytes} -E lazy_itable_init=0,lazy_journal_init=0,nodiscard")
            }
            Kind::Xfs => format!("-q -f -K -b size={block_bytes}"),
        };
        words.split(' ').map(str::to_owned).collect()
    }
}

/// Where tools of the administrator are, when the path does not say.
const PLACES: [&str; 2] = ["/usr/sbin", "/sbin"];
/// Retries when another process takes the free loop device first.
const TRIES: u32 = 8;

/// A file system in a file.
#[derive(Debug)]
pub struct Image {
    file: OwnedFd,
    kind: Kind,
}

impl Image {
    /// Makes it in a sparse unnamed file of `bytes` bytes.
    ///
    /// # Errors
    /// No root, no tool, no unnamed files in `dir`, or the tool's error.
    pub fn make(dir: &Path, bytes: u64, kind: Kind, block_bytes: u64) -> Result<Image, Problem> {
        if !rustix::process::geteuid().is_root() {
            return Err(Problem::refused("making and mounting a file system needs root")
                .hint("run it as root; it touches no device or mount that is there"));
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let cannot = |what: &str, errno: Errno| {
            let error = std::io::Error::from(errno);
            Problem::refused(format!("cannot {what} in `{}`: {error}", dir.display()))
        };
        let file = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| cannot("make a file without a name", errno))?;
        rustix::fs::ftruncate(&file, bytes).map_err(|errno| cannot("make room", errno))?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let ran = tool(kind.tool())?
            .args(kind.arguments(block_bytes))
            .arg(path)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Problem::refused(format!("cannot run `{}`: {error}", kind.tool())))?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no words").trim();
            return Err(Problem::refused(format!("`{}` refuses: {said}", kind.tool())));
        }
        Ok(Image { file, kind })
    }

    /// Mounts it, with cold caches except for what mounting reads.
    ///
    /// # Errors
    /// No free loop device, or the kernel's error.
    pub fn mount(&self, read_only: bool) -> Result<Mounted, Problem> {
        let (name, device) = attach(&self.file, read_only)?;
        let kind = self.kind.id();
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(|errno| match errno {
            Errno::NODEV => Problem::refused(format!("this kernel has no {kind}")),
            errno => Problem::refused(format!("cannot mount out of sight: {}", std::io::Error::from(errno))),
        })?;
        let configured = fsconfig_set_string(&context, "source", format!("/dev/{name}"))
            .and_then(|()| if read_only { fsconfig_set_flag(&context, "ro") } else { Ok(()) })
            .and_then(|()| fsconfig_create(&context));
        if let Err(errno) = configured {
            let said = messages(&context);
            let error = std::io::Error::from(errno);
            return Err(Problem::refused(format!("the kernel does not mount this {kind}: {error}{said}")));
        }
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(|errno| {
            Problem::refused(format!("cannot mount out of sight: {}", std::io::Error::from(errno)))
        })?;
        // From here on the mount alone holds the device.
        drop(device);
        Ok(Mounted { root, device: name })
    }
}

/// A detached mount: it ends with its last descriptor.
#[derive(Debug)]
pub struct Mounted {
    root: OwnedFd,
    device: String,
}

impl Mounted {
    /// The kernel's name of the loop device, for its counters.
    pub fn device(&self) -> &str {
        &self.device
    }
}

/// A directory to which mounts are attached one after the other; its path stays the same.
#[derive(Debug)]
pub struct MountPoint {
    slot: OwnedFd,
}

impl MountPoint {
    /// An empty one.
    ///
    /// # Errors
    /// The system's error.
    pub fn new() -> Result<MountPoint, Problem> {
        Ok(MountPoint { slot: nothing()? })
    }

    /// Its path, of this process alone.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.slot.as_raw_fd()))
    }

    /// Attaches a mount, in place of the one before.
    ///
    /// # Errors
    /// The system's error.
    pub fn attach(&mut self, mounted: Mounted) -> Result<(), Problem> {
        self.take(&mounted.root)
    }

    /// Detaches the mount, which ends if it has no other user.
    ///
    /// # Errors
    /// The system's error.
    pub fn detach(&mut self) -> Result<(), Problem> {
        self.take(&nothing()?)
    }

    fn take(&mut self, from: &OwnedFd) -> Result<(), Problem> {
        rustix::io::dup3(from, &mut self.slot, rustix::io::DupFlags::CLOEXEC).map_err(|errno| {
            Problem::failed(format!("cannot change a descriptor: {}", std::io::Error::from(errno)))
        })
    }
}

fn nothing() -> Result<OwnedFd, Problem> {
    rustix::fs::open("/proc/self", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Problem::failed(format!("cannot open /proc: {}", std::io::Error::from(errno))))
}

/// A tool of the administrator.
fn tool(name: &str) -> Result<Command, Problem> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(PLACES.into_iter().map(PathBuf::from));
    let found = places.map(|place| place.join(name)).find(|path| path.is_file());
    found.map(Command::new).ok_or_else(|| {
        Problem::refused(format!("there is no `{name}` here")).hint(match name {
            "mkfs.xfs" => "install xfsprogs",
            _ => "install e2fsprogs",
        })
    })
}

/// The kernel's messages about a refused mount.
fn messages(context: &OwnedFd) -> String {
    let mut said = String::new();
    let mut line = [0u8; 1024];
    while let Ok(bytes) = rustix::io::read(context, &mut line[..]) {
        if bytes == 0 {
            break;
        }
        // A letter for how grave it is, and a blank.
        let text = String::from_utf8_lossy(line.get(2..bytes).unwrap_or_default());
        said.push_str("; ");
        said.push_str(text.trim_end());
    }
    said
}

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of linux/loop.h.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// A free loop device over the file, which clears itself with its last user: its name and a descriptor. With direct
/// I/O
fn attach(file: &OwnedFd, read_only: bool) -> Result<(String, OwnedFd), Problem> {
    let refused = |what: &str, error: std::io::Error| {
        Problem::refused(format!("cannot {what}: {error}")).hint("loop devices need root and the loop driver")
    };
    let control = rustix::fs::open("/dev/loop-control", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| refused("open `/dev/loop-control`", errno.into()))?;
    let mut last = std::io::Error::from(Errno::BUSY);
    for attempt in 0..TRIES {
        // SAFETY: the request takes no argument and returns a number.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(refused("find a free loop device", std::io::Error::last_os_error()));
        }
        let name = format!("loop{number}");
        let device = rustix::fs::open(format!("/dev/{name}"), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| refused(&format!("open `/dev/{name}`"), errno.into()))?;
        // Not every file system below can go past its cache.
        let direct = if attempt % 2 == 0 { LO_FLAGS_DIRECT_IO } else { 0 };
        let read_only = if read_only { LO_FLAGS_READ_ONLY } else { 0 };
        // SAFETY: plain numbers, for all of which zero is valid.
        let mut config: LoopConfig = unsafe { mem::zeroed() };
        config.fd = file.as_raw_fd() as u32;
        config.info.flags = LO_FLAGS_AUTOCLEAR | direct | read_only;
        // SAFETY: the request reads one `struct loop_config`, which `config` is, and keeps no pointer to it.
        if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) } == 0 {
            return Ok((name, device));
        }
        last = std::io::Error::last_os_error();
    }
    Err(refused("set up a loop device", last))
}

/// Whether the loop device reads its file with direct I/O.
pub fn has_direct_io(device: &str) -> bool {
    let path = format!("/sys/block/{device}/loop/dio");
    fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
}

impl Image {
    /// Drops the file's pages from the page cache, for loop devices without direct I/O.
    ///
    /// # Errors
    /// The system's error for dirty pages that cannot be written.
    pub fn drop_cache(&self) -> Result<(), Problem> {
        let bytes = rustix::fs::fstat(&self.file).map_or(0, |status| status.st_size as u64);
        crate::residency::evict(self.file.as_fd(), 0, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: u64 = 400 << 20;

    fn loops_in_use() -> Vec<String> {
        let backed = |name: &String| Path::new(&format!("/sys/block/{name}/loop/backing_file")).exists();
        let all = fs::read_dir("/sys/block").unwrap();
        all.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).filter(backed).collect()
    }

    #[test]
    fn the_structures_are_those_of_the_kernel() {
        assert_eq!((mem::size_of::<LoopInfo>(), mem::size_of::<LoopConfig>()), (232, 304));
    }

    #[test]
    fn what_was_written_is_there_after_it_is_mounted_again_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let image = match Image::make(dir.path(), IMAGE, Kind::Ext4, 1024) {
            Ok(image) => image,
            Err(problem) => {
                eprintln!("skipped: {problem}");
                return;
            }
        };
        let mut stand = MountPoint::new().unwrap();
        let path = stand.path().join("file");
        let mounted = match image.mount(false) {
            Ok(mounted) => mounted,
            Err(problem) => {
                eprintln!("skipped: {problem}");
                return;
            }
        };
        let device = mounted.device().to_owned();
        assert!(loops_in_use().contains(&device));
        stand.attach(mounted).unwrap();
        fs::write(&path, "there").unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&format!("/dev/{device} ")), "attached nowhere: {mounts}");
        stand.detach().unwrap();
        assert!(!path.exists());
        let mounted = image.mount(true).unwrap();
        let device = mounted.device().to_owned();
        stand.attach(mounted).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "there");
        assert!(fs::write(&path, "other").is_err(), "read-only");
        drop(stand);
        // Another test of this process may have taken it meanwhile; then it is not over our file.
        let backing = fs::read_to_string(format!("/sys/block/{device}/loop/backing_file"));
        assert!(backing.is_err() || !backing.unwrap().contains(dir.path().to_str().unwrap()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_tool_refuses_is_told_in_its_words() {
        let dir = tempfile::tempdir().unwrap();
        let problem = Image::make(dir.path(), IMAGE, Kind::Ext4, 1000).unwrap_err();
        assert!(!problem.message.is_empty());
        if rustix::process::geteuid().is_root() {
            assert!(problem.message.contains("mkfs.ext4"), "{problem}");
        } else {
            assert!(problem.message.contains("root"), "{problem}");
        }
    }
}
