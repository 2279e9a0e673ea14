//! Where pages come from: the volume is read past the page cache, so that scrubbing does not push out what the server needs.

use crate::page::PAGE;
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

#[cfg(target_arch = "aarch64")]
const O_DIRECT: i32 = 0o200000;
#[cfg(not(target_arch = "aarch64"))]
const O_DIRECT: i32 = 0o40000;

/// Memory at an address that direct reads accept.
struct Aligned {
    at: *mut u8,
    layout: Layout,
}

impl Aligned {
    fn new(bytes: usize) -> Aligned {
        let layout = Layout::from_size_align(bytes, PAGE).expect("layout");
        let at = unsafe { alloc_zeroed(layout) };
        assert!(!at.is_null(), "no memory");
        Aligned { at, layout }
    }
    fn bytes(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.at, self.layout.size()) }
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        unsafe { std::slice::from_raw_parts_mut(self.at, self.layout.size()) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        unsafe { dealloc(self.at, self.layout) }
    }
}

pub struct Volume {
    file: File,
    pub pages: u64,
    extent: Aligned,
    first: u64,
    held: u64,
}

impl Volume {
    /// `extent` is how many pages one request asks for.
    pub fn open(path: &Path, extent: usize) -> io::Result<Volume> {
        let file = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(path)?;
        let pages = file.metadata()?.len() / PAGE as u64;
        Ok(Volume { file, pages, extent: Aligned::new(extent * PAGE), first: 0, held: 0 })
    }

    pub fn page(&mut self, number: u64) -> io::Result<&[u8]> {
        if number < self.first || number >= self.first + self.held {
            let got = self.file.read_at(self.extent.bytes_mut(), number * PAGE as u64)?;
            if got < PAGE {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.first = number;
            self.held = (got / PAGE) as u64;
        }
        let at = (number - self.first) as usize * PAGE;
        Ok(&self.extent.bytes()[at..at + PAGE])
    }
}
