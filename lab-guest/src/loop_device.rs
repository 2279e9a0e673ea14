//! A loop device over a file by its ioctl interface (`include/uapi/linux/loop.h`), with direct I/O, so that no second page
//! cache stands below it.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::sys;

const LOOP_CONFIGURE: u64 = 0x4c0a;
/// `struct loop_config`: descriptor, block size, `struct loop_info64`, eight words that are reserved.
const CONFIG_BYTES: usize = 4 + 4 + 232 + 64;
const BLOCK_BYTES_AT: usize = 4;
/// `lo_flags` of the `loop_info64` inside.
const FLAGS_AT: usize = 8 + 52;
const READ_ONLY: u32 = 1;
const DIRECT_IO: u32 = 16;

/// Makes `/dev/loopN` over a file.
///
/// # Errors
/// The kernel's, in words; also when the kernel made it without direct I/O.
pub(crate) fn make(number: &str, file: &str) -> Result<(), String> {
    let node = format!("/dev/loop{number}");
    let open = |path: &str| File::open(path).map_err(|e| format!("cannot open {path}: {e}"));
    let (device, backing) = (open(&node)?, open(file)?);
    sys::ioctl(&device, LOOP_CONFIGURE, config(backing.as_raw_fd()).as_mut_slice())
        .map_err(|e| format!("LOOP_CONFIGURE {node}: {e}"))?;
    let direct = format!("/sys/block/loop{number}/loop/dio");
    let text = std::fs::read_to_string(&direct).map_err(|e| format!("cannot read {direct}: {e}"))?;
    if text.trim() == "1" { Ok(()) } else { Err(format!("{node} has no direct I/O over {file}")) }
}

fn config(backing: i32) -> Vec<u8> {
    let mut config = vec![0; CONFIG_BYTES];
    config[..4].copy_from_slice(&backing.to_le_bytes());
    config[BLOCK_BYTES_AT..BLOCK_BYTES_AT + 4].copy_from_slice(&512u32.to_le_bytes());
    config[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&(READ_ONLY | DIRECT_IO).to_le_bytes());
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_its_fields_where_the_kernel_looks() {
        let config = config(7);
        assert_eq!((config.len(), config[0], config[5], config[60]), (304, 7, 2, 17));
        assert_eq!(config.iter().filter(|byte| **byte != 0).count(), 3);
        assert!(make("no-such", "/no/such/file").unwrap_err().contains("/dev/loopno-such"));
    }
}
