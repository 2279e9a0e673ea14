//! Waits until a file is written to (inotify).
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::os::raw::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

extern "C" {
    fn inotify_init1(flags: c_int) -> c_int;
    fn inotify_add_watch(fd: c_int, path: *const c_char, mask: u32) -> c_int;
}

const IN_CLOEXEC: c_int = 0o2000000;
const IN_MODIFY: u32 = 2;

pub struct Watch {
    events: File,
}

impl Watch {
    pub fn new(path: &Path) -> io::Result<Watch> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let fd = unsafe { inotify_init1(IN_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let events = unsafe { File::from_raw_fd(fd) };
        if unsafe { inotify_add_watch(fd, name.as_ptr(), IN_MODIFY) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Watch { events })
    }

    pub fn wait(&mut self) -> io::Result<()> {
        let mut block = [0u8; 4096];
        self.events.read(&mut block).map(|_| ())
    }
}
