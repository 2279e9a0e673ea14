//! What counting and recording cost the program, measured on a thread of our own after the program has ended.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::{ALL, InKernel};

/// Calls of a piece, and pieces of each kind at most: the fastest of each are compared, since disturbance only adds.
const CALLS: u32 = 500;
const PIECES: usize = 5;
/// The same of page faults, each of which takes longer: short pieces, so that some are not disturbed on a busy machine.
const FAULTS: u32 = 100;
const FAULT_PIECES: usize = 50;
/// The part of a run of this length that may be spent on each of four kinds, but at least one piece is: who waited for a short run does not
/// wait for figures that hardly matter to it.
const PART_OF_RUN: u32 = 80;

/// What counting costs, in nanoseconds of the program's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// A call that is counted by number only.
    pub(crate) call_ns: f64,
    /// A call that moves bytes of a file.
    pub(crate) transfer_ns: f64,
    /// By how much a recorded duration is longer than the call takes without the observer (below 0: shorter, for the way into the
    /// kernel and out of it is not in it); where calls are recorded.
    pub(crate) excess_ns: Option<f64>,
    /// The same of a page fault, where faults are recorded.
    pub(crate) fault: Option<FaultCost>,
}

/// What recording a page fault costs, in nanoseconds of the program's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FaultCost {
    pub(crate) cost_ns: f64,
    /// See [`Cost::excess_ns`].
    pub(crate) excess_ns: f64,
}

impl InKernel {
    /// Measures the cost of a call, and takes the observer out of the kernel to see what calls cost without it. `None`:
    /// no memory file or thread could be had, or the machine is too busy to tell. `run`: how long the run took. `recorded`: calls are
    /// recorded, too, and their durations need the cost as exactly as it can be had.
    pub(crate) fn measure(mut self, run: Duration, recorded: bool) -> Option<Cost> {
        let budget = if recorded { Duration::MAX } else { run / PART_OF_RUN };
        let fastest = move |work: &dyn Fn()| fastest(work, budget);
        let file = memfd_create("iowhy-cost", MemfdFlags::CLOEXEC).ok()?;
        rustix::io::write(&file, &[0; 4096]).ok()?;
        std::thread::scope(|scope| {
            let measured = std::thread::Builder::new().spawn_scoped(scope, move || {
                let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
                // Nothing is counted any more where the counts were read.
                self.count().ok()?;
                self.add([tid]).ok()?;
                if recorded {
                    self.allow_records(ALL).ok()?;
                }
                let watched = (fastest(&call), fastest(&|| transfer(&file)));
                let faults = recorded && !self.faults.is_empty();
                let faulted = if faults { fastest_faults() } else { None };
                let [duration, fault] = if recorded { self.usual_ns(tid) } else { [None; 2] };
                drop(self);
                let bare = (fastest(&call), fastest(&|| transfer(&file)));
                let fault = faulted.zip(fault).and_then(|(watched, recorded)| {
                    let bare = fastest_faults()?;
                    let cost_ns = (watched - bare).max(0.0);
                    Some(FaultCost { cost_ns, excess_ns: recorded - bare })
                });
                let cost = Cost {
                    call_ns: watched.0 - bare.0,
                    transfer_ns: watched.1 - bare.1,
                    excess_ns: duration.map(|ns| ns - bare.1),
                    fault,
                };
                (cost.call_ns > 0.0 && cost.transfer_ns > 0.0).then_some(cost)
            });
            measured.ok()?.join().ok()?
        })
    }

    /// The smallest means of the durations of a piece of transfers, and of faults, that this thread just made.
    fn usual_ns(&mut self, tid: u32) -> [Option<f64>; 2] {
        let (mut transfers, mut faults) = (Vec::new(), Vec::new());
        let taken = self.take_records(&mut |record| {
            let took_ns = record.returned_ns.saturating_sub(record.entered_ns) as f64;
            if record.tid == tid && record.is_fault() {
                faults.push(took_ns);
            } else if record.tid == tid && i64::from(record.number) == libc::SYS_pread64 {
                transfers.push(took_ns);
            }
        });
        if taken.is_err() {
            return [None; 2];
        }
        let mean = |piece: &[f64]| piece.iter().sum::<f64>() / piece.len() as f64;
        let smallest =
            |all: &[f64], piece: u32| all.chunks_exact(piece as usize).map(mean).min_by(f64::total_cmp);
        [smallest(&transfers, CALLS), smallest(&faults, FAULTS)]
    }
}

fn fastest(work: &dyn Fn(), budget: Duration) -> f64 {
    let piece = || {
        let start = Instant::now();
        (0..CALLS).for_each(|_| work());
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let begin = Instant::now();
    let more = (1..PIECES).take_while(|_| begin.elapsed() < budget);
    let first = piece();
    more.map(|_| piece()).fold(first, f64::min)
}

/// The cheapest call that the kernel answers itself.
fn call() {
    // What is returned is of no interest, and the C library keeps no copy of it.
    std::hint::black_box(rustix::process::getppid());
}

fn transfer(file: &impl AsFd) {
    let mut byte = [0u8];
    // It cannot fail on a memory file of one page; if it did, it would only be faster.
    let _ = std::hint::black_box(rustix::io::pread(file, &mut byte, 0));
}

/// The time of a fault on anonymous memory: the fastest of some pieces. `None`: there is no memory.
fn fastest_faults() -> Option<f64> {
    (0..FAULT_PIECES).map(|_| faults().ok()).collect::<Option<Vec<f64>>>()?.into_iter().min_by(f64::total_cmp)
}

/// Touches each page of new memory once.
fn faults() -> rustix::io::Result<f64> {
    let page = rustix::param::page_size();
    let bytes = FAULTS as usize * page;
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory that exists.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags) }?;
    // SAFETY: the advice is on the mapping that was just made. A kernel without huge pages refuses it and has none.
    let _ = unsafe { madvise(start, bytes, Advice::LinuxNoHugepage) };
    let begin = Instant::now();
    for at in (0..bytes).step_by(page) {
        // SAFETY: inside of the mapping, which is writable and nobody else's.
        unsafe { start.cast::<u8>().add(at).write_volatile(1) };
    }
    let took_ns = begin.elapsed().as_nanos() as f64;
    // SAFETY: the mapping was made above and is used no more.
    unsafe { munmap(start, bytes) }?;
    Ok(took_ns / f64::from(FAULTS))
}
