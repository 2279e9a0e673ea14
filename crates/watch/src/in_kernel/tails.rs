//! Times of calls: fills the tables of `bpf/tails.h`, attaches its programs, and reads its histograms. Which call belongs to which
//! operation is given.

use aya::maps::{Array, HashMap, PerCpuArray};
use iowhy_core::histogram::Histogram;

use super::facts::{PATH, path_text};
use super::machine::{MAX_WAITS, MachineObserver};
use super::shapes::{ARGUMENTS, MACHINE_WORDS, NO_ARGUMENT, NUMBERS, machine_words};
use super::{attach, chain, map};
use crate::calls::{FileKey, Shape, file_argument};

/// Buckets of a power of two and powers of two: `SUB_BUCKETS` and `ROWS` of `bpf/tails.h`.
const SUB_BUCKETS: usize = 128;
const ROWS: u32 = 35;
/// `RETURNED` of `bpf/tails.h`.
const RETURNED: u16 = 0xfffe;
/// Words of `struct call_sums`.
const SUMS: usize = 5;
/// So often the threads of a program are looked for before its calls are timed.
const MAX_LOOKS: usize = 16;
/// Ends before beginnings: no call is begun that nobody would end.
const PROGRAMS: [(&str, &str); 3] =
    [("on_caller_end", "sched_process_exit"), ("on_call_end", "sys_exit"), ("on_call", "sys_enter")];

/// All calls of an operation so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OperationSums {
    pub(crate) failed: u64,
    pub(crate) times: Histogram,
}

/// What did not fit in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallsLost {
    pub(crate) calls: u64,
    pub(crate) told: u64,
    pub(crate) compat: u64,
}

impl MachineObserver {
    /// As [`MachineObserver::open`], with the sleeps of timed calls. `operation` gives the place of the operation of a call by its number,
    /// below `operations`. No call is timed yet.
    ///
    /// # Errors
    /// Why the kernel refuses it, in words.
    pub(crate) fn open_timed(
        operation: &dyn Fn(u32) -> Option<u16>,
        operations: u32,
    ) -> Result<MachineObserver, String> {
        let sizes = [
            ("timed_calls", NUMBERS),
            ("timings", MAX_WAITS),
            ("latencies", operations * ROWS),
            ("call_sums", operations),
            ("tail_limits", operations),
        ];
        let mut observer = MachineObserver::with(&sizes, "timed")?;
        let object = &mut observer.kernel.object;
        let mut machine: Array<_, [u32; MACHINE_WORDS]> = map(object, "machine")?;
        machine.set(0, machine_words(0), 0).map_err(|e| chain(&e))?;
        let mut calls: Array<_, [u16; 2]> = map(object, "timed_calls")?;
        // The last number stands for those of other programs.
        for number in 0..NUMBERS - 1 {
            if let Some(operation) = operation(number) {
                let words = [operation + 1, descriptor(i64::from(number))];
                calls.set(number, words, 0).map_err(|e| chain(&e))?;
            }
        }
        for operation in 0..operations {
            observer.tell_from(operation, u64::MAX)?;
        }
        Ok(observer)
    }

    /// Times the calls of these threads from now on, and of all that they start. They are asked for until there is no new one: some may be
    /// born meanwhile. A program that starts some all the time is not waited for: those are children of threads that are known.
    ///
    /// # Errors
    /// Why the kernel refuses that.
    pub(crate) fn time_calls(&mut self, threads: &mut dyn FnMut() -> Vec<u32>) -> Result<(), String> {
        self.kernel.follow()?;
        let mut known = std::collections::HashSet::new();
        for _ in 0..MAX_LOOKS {
            let new: Vec<u32> = threads().into_iter().filter(|tid| known.insert(*tid)).collect();
            if new.is_empty() {
                break;
            }
            self.kernel.add(new)?;
        }
        PROGRAMS
            .iter()
            .try_for_each(|(name, tracepoint)| attach(&mut self.kernel.object, tracepoint, &[name]))
    }

    /// Times no more calls: sums do not change any more.
    pub(crate) fn stop_timing(&mut self) {
        PROGRAMS.iter().rev().for_each(|(name, _)| self.kernel.object.detach(name));
    }

    /// Calls of this operation that take so long are told from now on.
    ///
    /// # Errors
    /// A map of the observer cannot be written.
    pub(crate) fn tell_from(&mut self, operation: u32, ns: u64) -> Result<(), String> {
        let mut limits: Array<_, u64> = map(&mut self.kernel.object, "tail_limits")?;
        limits.set(operation, ns, 0).map_err(|e| chain(&e))
    }

    /// Calls of an operation so far.
    ///
    /// # Errors
    /// A map of the observer cannot be read.
    pub(crate) fn calls(&mut self, operation: u32) -> Result<u64, String> {
        Ok(self.sums(operation)?.0)
    }

    /// All calls of an operation so far by their times.
    ///
    /// # Errors
    /// A map of the observer cannot be read.
    pub(crate) fn operation(&mut self, operation: u32) -> Result<OperationSums, String> {
        let (calls, [_, failed, sum_ns, least, most_ns]) = self.sums(operation)?;
        if calls == 0 {
            return Ok(OperationSums::default());
        }
        let latencies: PerCpuArray<_, [u64; SUB_BUCKETS]> = map(&mut self.kernel.object, "latencies")?;
        let mut counts = Vec::with_capacity(ROWS as usize * SUB_BUCKETS);
        for row in 0..ROWS {
            let by_cpu = latencies.get(&(operation * ROWS + row), 0).map_err(|e| chain(&e))?;
            let mut sum = [0_u64; SUB_BUCKETS];
            for cpu in by_cpu.iter() {
                sum.iter_mut().zip(cpu).for_each(|(sum, more)| *sum += more);
            }
            counts.extend(sum);
        }
        Ok(OperationSums { failed, times: Histogram::from_counts(&counts, sum_ns, !least, most_ns) })
    }

    /// Calls, and the sums of all CPUs: calls, failed, time; of the least time its distance from the largest number, and the most, the largest.
    fn sums(&mut self, operation: u32) -> Result<(u64, [u64; SUMS]), String> {
        let sums: PerCpuArray<_, [u64; SUMS]> = map(&mut self.kernel.object, "call_sums")?;
        let mut all = [0; SUMS];
        for cpu in sums.get(&operation, 0).map_err(|e| chain(&e))?.iter() {
            let [calls, failed, sum_ns, least, most_ns] = *cpu;
            all[0] += calls;
            all[1] += failed;
            all[2] += sum_ns;
            all[3] = all[3].max(least);
            all[4] = all[4].max(most_ns);
        }
        Ok((all[0], all))
    }

    /// Where a file was when it was first met; of what has no path, what it is.
    pub(crate) fn file(&mut self, key: FileKey) -> String {
        let kind = key.kind();
        if matches!(kind, "pipe" | "socket") {
            return format!("{kind}:[{}]", key.0[0]);
        }
        let paths = map::<HashMap<_, [u64; 2], [u8; PATH]>>(&mut self.kernel.object, "paths");
        let path = paths.ok().and_then(|paths| paths.get(&key.0, 0).ok());
        path.map_or_else(
            || format!("inode {} on device {}", key.0[0], key.device()),
            |bytes| path_text(&bytes),
        )
    }

    /// What did not fit so far.
    pub(crate) fn calls_lost(&mut self) -> CallsLost {
        let lost = map::<Array<_, [u64; 3]>>(&mut self.kernel.object, "tails_losses");
        let [calls, told, compat] = lost.ok().and_then(|lost| lost.get(&0, 0).ok()).unwrap_or_default();
        CallsLost { calls, told, compat }
    }
}

/// Where `struct pt_regs` holds the descriptor of a call's file.
fn descriptor(number: i64) -> u16 {
    match Shape::from_number(number) {
        Shape::Open { .. } => RETURNED,
        _ => file_argument(number).map_or(NO_ARGUMENT, |argument| ARGUMENTS[argument]),
    }
}

#[cfg(test)]
#[path = "tails_tests.rs"]
mod tests;
