//! System calls that no library wraps: ioctl by number, loading a module, switching off.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A plain structure of integers that the kernel reads or writes.
///
/// # Safety
/// Implemented only by `repr(C)` structures of integers and arrays of them, for which every bit pattern is valid.
pub(crate) unsafe trait Plain {}

// SAFETY: bytes.
unsafe impl Plain for [u8] {}

/// ioctl with a structure or a buffer.
///
/// # Errors
/// The kernel's.
pub(crate) fn ioctl<T: Plain + ?Sized>(file: &File, number: u64, argument: &mut T) -> io::Result<()> {
    let pointer: *mut T = argument;
    // SAFETY: the argument lives for the call, may hold any bits, and is as large as `number` says; callers build
    // `number` from the size of what they pass.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number as _, pointer.cast::<libc::c_void>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Number of an ioctl that writes to the kernel: `_IOW`.
pub(crate) const fn iow(kind: u8, number: u8, bytes: usize) -> u64 {
    1 << 30 | (bytes as u64) << 16 | (kind as u64) << 8 | number as u64
}

/// Number of an ioctl that does both: `_IOWR`.
pub(crate) const fn iowr(kind: u8, number: u8, bytes: usize) -> u64 {
    3 << 30 | (bytes as u64) << 16 | (kind as u64) << 8 | number as u64
}

/// Reads at a place, without what a C library adds: musl's `pread` can be cancelled, which costs as much as a small call.
///
/// # Errors
/// The kernel's.
pub(crate) fn pread(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    let place = buffer.as_mut_ptr();
    // SAFETY: the kernel writes at most `buffer.len()` bytes to a buffer that lives for the call.
    let got = unsafe { bare(libc::SYS_pread64, file.as_raw_fd(), place as usize, buffer.len(), at as usize) };
    failure(got)
}

/// `fcntl(F_GETFD)`: the call on a descriptor that does least.
///
/// # Errors
/// The kernel's.
pub(crate) fn descriptor_flags(file: &File) -> io::Result<()> {
    // SAFETY: takes numbers and changes nothing.
    failure(unsafe { bare(libc::SYS_fcntl, file.as_raw_fd(), libc::F_GETFD as usize, 0, 0) })
}

fn failure(got: isize) -> io::Result<()> {
    if got < 0 { Err(io::Error::from_raw_os_error(-got as i32)) } else { Ok(()) }
}

/// A system call and nothing around it.
///
/// # Safety
/// What the call itself demands of its arguments.
#[cfg(target_arch = "x86_64")]
unsafe fn bare(number: libc::c_long, descriptor: i32, second: usize, third: usize, fourth: usize) -> isize {
    let result: isize;
    // SAFETY: the kernel changes the result, rcx and r11, and the memory that the caller answers for.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") descriptor as isize,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// A system call through the C library, where nobody boots guests.
///
/// # Safety
/// What the call itself demands of its arguments.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn bare(number: libc::c_long, descriptor: i32, second: usize, third: usize, fourth: usize) -> isize {
    // SAFETY: the caller's.
    let result = unsafe { libc::syscall(number, descriptor, second, third, fourth) } as isize;
    if result < 0 { -(io::Error::last_os_error().raw_os_error().unwrap_or(1) as isize) } else { result }
}

/// Loads a kernel module.
///
/// # Errors
/// The kernel's, in words.
pub(crate) fn insmod(path: &str, parameters: &str) -> Result<(), String> {
    let file = File::open(path).map_err(|e| format!("cannot open {path}: {e}"))?;
    let parameters = CString::new(parameters).map_err(|_| "a parameter holds a zero byte".to_owned())?;
    rustix::system::finit_module(&file, &parameters, 0)
        .map_err(|e| format!("the kernel refuses {path}: {}", io::Error::from(e)))
}

/// Switches the machine off. Nothing needs saving: its disks are memory.
pub(crate) fn power_off() {
    // A refusal shows in that the machine goes on; there is nobody to tell.
    let _ = std::fs::write("/proc/sysrq-trigger", "o");
    std::thread::sleep(std::time::Duration::from_secs(10));
}

/// Makes the calling thread's timers exact instead of late by up to 50 us.
pub(crate) fn exact_timers() {
    // SAFETY: a call with numbers only, about the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// A number in a step.
pub(crate) fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is not a number"))
}
