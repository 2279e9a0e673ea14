//! The bytes of a file that does not change: mapped where that is allowed, else read. The kernel's types (5 MB) can be mapped from
//! Linux 6.16 on; they are read page by page, which takes 4 ms.

use std::fs::File;
use std::io::{Error, Read};
use std::ops::Deref;
use std::os::fd::AsFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The bytes.
pub(super) enum FileBytes {
    Mapped(*mut std::ffi::c_void, usize),
    Read(Vec<u8>),
}

impl FileBytes {
    pub(super) fn open(path: &str) -> Result<FileBytes, Error> {
        let mut file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(Error::other)?;
        if let Some(mapped) = map(&file, length) {
            return Ok(FileBytes::Mapped(mapped, length));
        }
        let mut bytes = Vec::with_capacity(length + 1);
        file.read_to_end(&mut bytes)?;
        Ok(FileBytes::Read(bytes))
    }
}

fn map(file: &impl AsFd, length: usize) -> Option<*mut std::ffi::c_void> {
    // SAFETY: a new mapping at an address that the kernel chooses; it touches no memory that is in use.
    let mapped = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, file, 0) };
    mapped.ok()
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // SAFETY: the mapping is readable, of this length, and lives as long as `self`; the kernel's types never change.
            FileBytes::Mapped(at, length) => unsafe { std::slice::from_raw_parts(at.cast::<u8>(), *length) },
            FileBytes::Read(bytes) => bytes,
        }
    }
}

impl Drop for FileBytes {
    fn drop(&mut self) {
        if let FileBytes::Mapped(at, length) = self {
            // SAFETY: this is the whole mapping that `open` made, and no reference into it is left.
            let _ = unsafe { munmap(*at, *length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_or_read_the_bytes_are_those_of_the_file() {
        for path in ["/proc/self/exe", "/proc/self/cmdline", "/sys/kernel/btf/vmlinux"] {
            let Ok(read) = std::fs::read(path) else {
                println!("skipped: this machine: no {path}");
                continue;
            };
            assert!(*FileBytes::open(path).unwrap() == read, "{path}");
        }
        assert!(FileBytes::open("/no/such/file").is_err());
    }
}
