//! Page faults of the program's own code among the recorded calls, each with its address: the two programs of `bpf/faults.h`, run by
//! software events of perf on every CPU. No tracepoint tells addresses on all kernels, and these events need no tracefs.

use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use iowhy_linux::cpus;
use perf_event_open_sys as sys;
use sys::bindings as b;

use super::InKernel;

/// A fault begins, and it has succeeded: without waiting for a device, or after waiting.
const PROGRAMS: [(&str, u32); 3] = [
    ("on_fault", b::PERF_COUNT_SW_PAGE_FAULTS),
    ("on_fault_end", b::PERF_COUNT_SW_PAGE_FAULTS_MIN),
    ("on_fault_end", b::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
];

impl InKernel {
    /// Records page faults of threads that are followed, in a window of all calls.
    ///
    /// # Errors
    /// Why the kernel refuses it, in words. Calls are recorded without them then.
    pub(crate) fn record_faults(&mut self) -> Result<(), String> {
        let mut events = Vec::new();
        for cpu in cpus::online() {
            for (program, event) in PROGRAMS {
                let program = self.object.program(program)?.as_raw_fd();
                let opened = open(event, cpu).and_then(|event| run(&event, program).map(|()| event));
                events.push(opened.map_err(|e| format!("page faults: {e}"))?);
            }
        }
        self.faults = events;
        Ok(())
    }
}

/// Of all tasks on a CPU, for each one that happens in the program's own code.
fn open(event: u32, cpu: u32) -> Result<OwnedFd, Error> {
    let mut attr = b::perf_event_attr {
        size: size_of::<b::perf_event_attr>() as u32,
        type_: b::PERF_TYPE_SOFTWARE,
        config: u64::from(event),
        ..Default::default()
    };
    attr.sample_period = 1;
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let cpu = i32::try_from(cpu).map_err(Error::other)?;
    // SAFETY: `attr` is a whole, initialised structure of the stated size and lives through the call.
    let fd = unsafe { sys::perf_event_open(&mut attr, -1, cpu, -1, b::PERF_FLAG_FD_CLOEXEC.into()) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Runs a program at each of these events, as long as the event is open.
fn run(event: &OwnedFd, program: i32) -> Result<(), Error> {
    // SAFETY: takes two descriptors and no memory.
    let done = unsafe { sys::ioctls::SET_BPF(event.as_raw_fd(), program as u32) };
    if done < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
