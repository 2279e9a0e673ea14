//! The observer in the kernel: a small BPF object that counts every system call of the program, by number, by file and by
//! offset, while it happens; in windows it also records each call with its time. Facts only: what a count means is decided by the reader of the profile.
//! Apart from that it tells of the program's switches, in windows, and of every request of the block layer. It attaches to raw tracepoints, and for page
//! faults to software events of perf, which need neither kprobes nor tracefs. What it holds in the kernel is freed when its
//! descriptors are closed, also when iowhy is killed.
//! Invariant: a figure that it gives is complete for all threads from [`InKernel::add`] on, or [`Facts::lost`] says by how much not.

mod called;
mod cost;
mod facts;
mod faults;
mod file_bytes;
mod machine;
mod namer;
mod object;
mod records;
mod requests;
mod rights;
mod rings;
mod shapes;
mod switches;
mod tails;
mod types;

use std::os::fd::OwnedFd;

use aya::maps::{Array, HashMap};
use aya::programs::ProgramType;
use aya::sys::{BpfHelper, is_helper_supported};

use crate::calls::Shape;
use object::Object;
use records::Window;
use shapes::{MACHINE_WORDS, NUMBERS, machine_words, shape_words};

pub(crate) use called::Called;
pub(crate) use cost::Cost;
#[cfg(test)]
use facts::Lost;
pub(crate) use facts::{Facts, SocketCalls};
pub(crate) use machine::{
    BLOCKED, CpuTimes, Ended, FIRST_IN_CALL, IN_CALL, IN_RECLAIM, IO, MEMORY, MachineObserver, RECLAIMS,
    Report, SERVER, WOKEN_BEFORE, Waiting,
};
pub(crate) use namer::Namer;
pub(crate) use object::Statistics;
pub(crate) use records::{ALL, FULL};
pub(crate) use rights::{Refused, may_load};

/// The object, built from `bpf/observer.bpf.c` by `cargo xtask observer`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/observer.bpf.o");

/// The programs that follow births and deaths, and the tracepoint of each.
const FOLLOWERS: [(&str, &str); 3] =
    [("on_fork", "sched_process_fork"), ("on_exec", "sched_process_exec"), ("on_end", "sched_process_exit")];
/// The program that counts.
const COUNTER: (&str, &str) = ("on_exit", "sys_exit");
/// The observer, loaded. Dropped, it is gone from the kernel.
pub(crate) struct InKernel {
    object: Object,
    window: Option<Window>,
    /// Events of perf that run programs of the object.
    faults: Vec<OwnedFd>,
}

/// Room for the records of a window, and for a record of all calls: 300,000 of them.
pub(crate) const WINDOW_BYTES: u32 = 1 << 20;
pub(crate) const ALL_BYTES: u32 = 32 << 20;

/// `mode` of one thread.
const COUNTED: u16 = 0;
const HELD: u16 = 2;
const ENDED: u16 = 3;

impl InKernel {
    /// Loads the observer. It does nothing yet. `record_bytes`: room for recorded calls, a power of two. `counts`: it is to count calls.
    ///
    /// # Errors
    /// Why the kernel refuses it, in words.
    pub(crate) fn open(record_bytes: u32, counts: bool) -> Result<InKernel, String> {
        let mut object = Object::open(OBJECT, &constants(), &[("records", record_bytes)])?;
        let mut machine: Array<_, [u32; MACHINE_WORDS]> = map(&mut object, "machine")?;
        machine.set(0, machine_words(0), 0).map_err(|e| chain(&e))?;
        let mut shapes: Array<_, [u16; 10]> = map(&mut object, "shapes")?;
        for number in 0..NUMBERS {
            let words = shape_words(Shape::from_number(i64::from(number)));
            if words != [0; 10] {
                shapes.set(number, words, 0).map_err(|e| chain(&e))?;
            }
        }
        facts::prepare(&mut object)?;
        if counts {
            object.load_beside(COUNTER.0);
        }
        Ok(InKernel { object, window: None, faults: Vec::new() })
    }

    /// Follows the births and deaths of threads that are added from now on. Comes first, so that no thread is counted that nobody would
    /// take out again.
    ///
    /// # Errors
    /// Why the kernel refuses that; there is no part of it that works alone.
    pub(crate) fn follow(&mut self) -> Result<(), String> {
        FOLLOWERS.iter().try_for_each(|(name, tracepoint)| attach(&mut self.object, tracepoint, &[name]))
    }

    /// Counts the calls of threads that are followed.
    ///
    /// # Errors
    /// Why the kernel refuses that.
    pub(crate) fn count(&mut self) -> Result<(), String> {
        attach(&mut self.object, COUNTER.1, &[COUNTER.0])
    }

    /// Follows these threads from now on, and all that they start. One that is followed already stays so.
    ///
    /// # Errors
    /// The kernel takes no more threads.
    pub(crate) fn add(&mut self, tids: impl IntoIterator<Item = u32>) -> Result<(), String> {
        self.insert(tids, COUNTED)
    }

    /// Follows this thread from the moment that it executes a program.
    ///
    /// # Errors
    /// The kernel takes no more threads.
    pub(crate) fn add_held(&mut self, tid: u32) -> Result<(), String> {
        self.insert([tid], HELD)
    }

    fn insert(&mut self, tids: impl IntoIterator<Item = u32>, mode: u16) -> Result<(), String> {
        for tid in tids {
            let place = tid % facts::NEAR_THREADS;
            let mut near: Array<_, [u64; facts::THREAD]> = map(&mut self.object, "near_threads")?;
            let (there, state) = facts::tid_and_mode(&near.get(&place, 0).map_err(|e| chain(&e))?);
            if there == 0 || state == ENDED {
                near.set(place, facts::new_thread(tid, mode), 0).map_err(|e| chain(&e))?;
            } else if there != tid {
                self.insert_far(tid, mode)?;
            }
        }
        Ok(())
    }

    /// For a thread whose place is taken.
    fn insert_far(&mut self, tid: u32, mode: u16) -> Result<(), String> {
        const NEW_ONLY: u64 = 1;
        // `has_far_threads`, and `has_asked`, which only saves look-ups while it is 0.
        let mut flags: Array<_, [u32; 2]> = map(&mut self.object, ".bss")?;
        flags.set(0, [1, 1], 0).map_err(|e| chain(&e))?;
        let mut far: HashMap<_, u32, [u64; facts::THREAD]> = map(&mut self.object, "far_threads")?;
        match far.insert(tid, facts::new_thread(tid, mode), NEW_ONLY) {
            Err(error) if errno(&error) != Some(libc::EEXIST) => Err(chain(&error)),
            _ => Ok(()),
        }
    }

    /// Calls and bytes that were moved so far: a small part of [`InKernel::facts`], which may be read often.
    pub(crate) fn moved(&mut self) -> Option<crate::course::Own> {
        facts::moved(&mut self.object).ok()
    }

    /// What was counted. Nothing is counted from then on.
    ///
    /// # Errors
    /// A map of the observer cannot be read.
    pub(crate) fn facts(&mut self) -> Result<Facts, String> {
        // A program that goes on would make calls between one table and the next, and what is read would not add up.
        self.object.detach(COUNTER.0);
        facts::read(&mut self.object)
    }
}

/// Kernels before 5.11 refuse a program that asks for the type of the current task: 0 then.
fn typed_task() -> u32 {
    let of_task = BpfHelper::BPF_FUNC_get_current_task_btf;
    u32::from(is_helper_supported(ProgramType::RawTracePoint, of_task).unwrap_or(false))
}

/// What the observer is told of this kernel and machine. `struct pt_regs` of x86-64 is that of its system calls
/// (`arch/x86/include/asm/ptrace.h`).
fn constants() -> Vec<(&'static str, u32)> {
    let mut constants = vec![("typed_task", typed_task())];
    let helper = BpfHelper::BPF_FUNC_task_pt_regs;
    if cfg!(target_arch = "x86_64")
        && is_helper_supported(ProgramType::RawTracePoint, helper).unwrap_or(false)
    {
        constants.extend([("instruction_at", 16 * 8), ("pointer_at", 19 * 8), ("frame_at", 4 * 8)]);
    }
    constants
}

/// Attaches the last of these programs that the kernel takes: it refuses one that reads an argument more than there is.
fn attach(object: &mut Object, tracepoint: &str, programs: &[&str]) -> Result<(), String> {
    let mut refused = String::new();
    for name in programs.iter().rev() {
        object.load(name)?;
        match object.attach(name, tracepoint) {
            Ok(()) => return Ok(()),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// The kernel's answer behind an error.
fn errno(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return error.raw_os_error();
        }
        cause = error.source();
    }
    None
}

/// Why the kernel does not take a part of the object. EPERM: the right is missing; the verifier refuses with other numbers.
fn refusal(error: &(dyn std::error::Error + 'static)) -> String {
    match errno(error) {
        Some(libc::EPERM) => {
            "bpf(2) is not permitted here: it takes root or CAP_BPF and CAP_PERFMON".to_owned()
        }
        _ => chain(error),
    }
}

/// A map of the object, as the type that its values have.
fn map<'a, T>(object: &'a mut Object, name: &str) -> Result<T, String>
where
    T: TryFrom<&'a mut aya::maps::Map, Error = aya::maps::MapError>,
{
    let map = object.map_mut(name).ok_or_else(|| format!("the object has no map {name}"))?;
    T::try_from(map).map_err(|e| chain(&e))
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
