//! Swap on a block device: its first page by `union swap_header` of the kernel (`include/linux/swap.h`), and swapon(2).

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;
/// Where the header's words are: version, number of the last page.
const WORDS_AT: usize = 1024;
const MAGIC: &[u8; 10] = b"SWAPSPACE2";

/// Makes a device swap and lets the kernel use it.
///
/// # Errors
/// In words.
pub(crate) fn on(device: &str) -> Result<(), String> {
    let wrong = |e: io::Error| format!("cannot make {device} swap: {e}");
    let mut disk = File::options().write(true).open(device).map_err(wrong)?;
    let bytes = disk.seek(SeekFrom::End(0)).map_err(wrong)?;
    disk.write_all_at(&header(bytes), 0).and_then(|()| disk.sync_all()).map_err(wrong)?;
    let path = CString::new(device).map_err(|_| "a path holds a zero byte".to_owned())?;
    // SAFETY: the kernel reads the path, which lives for the call.
    let refused = unsafe { libc::swapon(path.as_ptr(), 0) } != 0;
    if refused { Err(wrong(io::Error::last_os_error())) } else { Ok(()) }
}

fn header(bytes: u64) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let last = (bytes / PAGE as u64).saturating_sub(1) as u32;
    for (n, word) in [1_u32, last].into_iter().enumerate() {
        page[WORDS_AT + 4 * n..][..4].copy_from_slice(&word.to_le_bytes());
    }
    page[PAGE - MAGIC.len()..].copy_from_slice(MAGIC);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_its_fields_where_the_kernel_looks() {
        let page = header(16 << 20);
        assert_eq!((page.len(), page[1024], &page[1028..1032]), (PAGE, 1, &[0xff, 0x0f, 0, 0][..]));
        assert_eq!(&page[PAGE - 10..], MAGIC);
        assert!(on("/no/such/device").unwrap_err().contains("/no/such/device"));
    }
}
