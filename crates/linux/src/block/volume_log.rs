//! How long a volume of Amazon's was over its limits, by its own count: a log page of its NVMe controller (vendor's log D0h). Counters run
//! since the volume was attached.
//!
//! Format: `amzn-nvme.c` of nvme-cli, and "Amazon EBS detailed performance statistics" of the provider's user guide; the command: Get Log
//! Page, NVM Express Base Specification 2.0, 5.16; the call: `include/uapi/linux/nvme_ioctl.h`. Other makers give that log another
//! meaning, so only controllers of this vendor and model are asked. Asking reads, needs CAP_SYS_ADMIN, and changes nothing.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use iowhy_core::profile::OverLimit;

use super::sysfs::{self, Sysfs};

/// PCI number of the vendor, and the model that has the log.
const VENDOR: &str = "0x1d0f";
const MODEL: &str = "Amazon Elastic Block Store";
/// First word of the log.
const MAGIC: u32 = 0x3C23_B510;
const LOG_BYTES: usize = 4096;
const GET_LOG_PAGE: u8 = 0x02;
const LOG: u32 = 0xD0;
/// Such a controller has one.
const NAMESPACE: u32 = 1;
/// `NVME_IOCTL_ADMIN_CMD`: `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const ADMIN: libc::c_ulong = 0xC048_4E41;
/// Where the four counters lie, in microseconds each.
const OVER: [usize; 4] = [56, 64, 72, 80];

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_and_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    bytes: u32,
    words_10_to_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// A log that does not come within this time is given up by the kernel.
const TIMEOUT_MS: u32 = 1000;

/// The counters of a device of this kernel name. `None`: it is no such volume, or it cannot be asked.
pub fn read(name: &str) -> Option<OverLimit> {
    // Names of other kinds of devices may hold a slash.
    if name.contains('/') || !has_log(&Sysfs::new(), name) {
        return None;
    }
    let node = Path::new("/dev").join(name);
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(node)
        .ok()?;
    file.metadata().ok().filter(|facts| facts.file_type().is_block_device())?;
    let mut log = [0u8; LOG_BYTES];
    let dwords = (LOG_BYTES / 4 - 1) as u32;
    let mut command = Command {
        opcode: GET_LOG_PAGE,
        namespace: NAMESPACE,
        address: log.as_mut_ptr().expose_provenance() as u64,
        bytes: LOG_BYTES as u32,
        words_10_to_15: [LOG | dwords << 16, 0, 0, 0, 0, 0],
        timeout_ms: TIMEOUT_MS,
        ..Command::default()
    };
    // SAFETY: the kernel reads and writes `command`, and writes at most `bytes` bytes at `address`; both live through the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), ADMIN as _, &raw mut command) };
    (done == 0).then(|| parse(&log)).flatten()
}

/// Whether the device's controller is of a model that has the log.
fn has_log(sysfs: &Sysfs, name: &str) -> bool {
    let controller = sysfs.class_directory(name).join("device");
    let is = |file: &str, known: &str| {
        sysfs::text(&controller.join(file)).is_some_and(|text| text.trim() == known)
    };
    name.starts_with("nvme") && is("model", MODEL) && is("device/vendor", VENDOR)
}

/// The counters in the bytes of a log; `None` without its magic number.
fn parse(log: &[u8; LOG_BYTES]) -> Option<OverLimit> {
    let magic = u32::from_le_bytes([log[0], log[1], log[2], log[3]]);
    if magic != MAGIC {
        return None;
    }
    let [volume_requests_ns, volume_bytes_ns, machine_requests_ns, machine_bytes_ns] = OVER.map(|at| {
        let us = u64::from_le_bytes(std::array::from_fn(|i| log[at + i]));
        us.saturating_mul(1000)
    });
    Some(OverLimit { volume_requests_ns, volume_bytes_ns, machine_requests_ns, machine_bytes_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_a_volume_are_read_where_the_format_has_them() {
        let mut log = [0; LOG_BYTES];
        log[..4].copy_from_slice(&[0x10, 0xB5, 0x23, 0x3C]);
        // Operations, bytes and times of reads and writes come first; then what is over the limits, in microseconds.
        for (number, at) in (0u64..).zip((8..=88).step_by(8)) {
            log[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let over = OverLimit {
            volume_requests_ns: 6000,
            volume_bytes_ns: 7000,
            machine_requests_ns: 8000,
            machine_bytes_ns: 9000,
        };
        assert_eq!(parse(&log), Some(over));
        log[0] = 0;
        assert_eq!(parse(&log), None);
    }

    #[test]
    fn only_that_model_of_that_vendor_is_asked() {
        let sys = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = sys.path().join("class/block/nvme1n1/device").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let sysfs = Sysfs::at(sys.path().to_owned());
        let asked = || has_log(&sysfs, "nvme1n1");
        assert!(!asked());
        write("model", "Amazon Elastic Block Store              \n");
        assert!(!asked());
        write("device/vendor", "0x144d\n");
        assert!(!asked());
        write("device/vendor", "0x1d0f\n");
        assert!(asked());
        write("model", "Some other disk\n");
        assert!(!asked());
        assert_eq!(read("no-such-disk"), None);
    }

    #[test]
    fn the_command_has_the_layout_of_the_kernel() {
        assert_eq!(size_of::<Command>(), 72);
        assert_eq!(std::mem::offset_of!(Command, address), 24);
        assert_eq!(std::mem::offset_of!(Command, words_10_to_15), 40);
    }
}
