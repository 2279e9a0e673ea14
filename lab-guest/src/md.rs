//! A striped array without superblocks by the ioctl interface of md (`include/uapi/linux/raid/md_u.h`).

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{CWD, FileType, Mode, major, makedev, minor};

use crate::sys::{self, Plain, iow};

const MD_MAJOR: u32 = 9;
const KIND: u8 = 9;
/// Active and in sync.
const DISK_STATE: i32 = 1 << 1 | 1 << 2;

/// `mdu_array_info_t`.
#[repr(C)]
#[derive(Default)]
struct ArrayInfo {
    version: [i32; 3],
    made: u32,
    level: i32,
    size: i32,
    disks: i32,
    raid_disks: i32,
    minor: i32,
    not_persistent: i32,
    used: u32,
    state: i32,
    counts: [i32; 4],
    layout: i32,
    chunk_bytes: i32,
}

/// `mdu_disk_info_t`.
#[repr(C)]
struct DiskInfo {
    number: i32,
    major: i32,
    minor: i32,
    raid_disk: i32,
    state: i32,
}

/// `mdu_param_t`.
#[repr(C)]
#[derive(Default)]
struct Param {
    values: [i32; 3],
}

// SAFETY: all three are `repr(C)` structures of integers.
unsafe impl Plain for ArrayInfo {}
// SAFETY: as above.
unsafe impl Plain for DiskInfo {}
// SAFETY: as above.
unsafe impl Plain for Param {}

/// Makes `/dev/mdN`, striped over devices.
///
/// # Errors
/// The kernel's, with the request.
pub(crate) fn raid0(number: u32, chunk_bytes: i32, members: &[String]) -> Result<(), String> {
    let node = format!("/dev/md{number}");
    let made = rustix::fs::mknodat(
        CWD,
        &node,
        FileType::BlockDevice,
        Mode::RUSR | Mode::WUSR,
        makedev(MD_MAJOR, number),
    );
    // The kernel may have made it already.
    if let Err(error) = made
        && error != rustix::io::Errno::EXIST
    {
        return Err(format!("cannot make {node}: {error}"));
    }
    let array =
        File::options().read(true).write(true).open(&node).map_err(|e| format!("cannot open {node}: {e}"))?;
    let disks = members.len() as i32;
    let mut info = ArrayInfo {
        version: [0, 90, 0],
        disks,
        raid_disks: disks,
        minor: number as i32,
        not_persistent: 1,
        state: 1,
        counts: [disks, disks, 0, 0],
        chunk_bytes,
        ..ArrayInfo::default()
    };
    sys::ioctl(&array, iow(KIND, 0x23, size_of::<ArrayInfo>()), &mut info)
        .map_err(|e| format!("SET_ARRAY_INFO: {e}"))?;
    for (index, member) in members.iter().enumerate() {
        let device = std::fs::metadata(member).map_err(|e| format!("cannot find {member}: {e}"))?.rdev();
        let mut disk = DiskInfo {
            number: index as i32,
            major: major(device) as i32,
            minor: minor(device) as i32,
            raid_disk: index as i32,
            state: DISK_STATE,
        };
        sys::ioctl(&array, iow(KIND, 0x21, size_of::<DiskInfo>()), &mut disk)
            .map_err(|e| format!("ADD_NEW_DISK {member}: {e}"))?;
    }
    sys::ioctl(&array, iow(KIND, 0x30, size_of::<Param>()), &mut Param::default())
        .map_err(|e| format!("RUN_ARRAY: {e}"))
}
