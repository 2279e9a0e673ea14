//! Time, passed in: real time from the TSC (or CLOCK_MONOTONIC), or virtual time that a scripted target advances.
//! Goal: the cheapest honest clock. Non-goal: calendar time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::OnceLock;

use iowhy_linux::clock::monotonic_ns;

/// A thread's clock. Cheap to clone; clones of a virtual clock share its time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The time-stamp counter, scaled to CLOCK_MONOTONIC. Used only where the kernel itself trusts the counter.
    Tsc(TscScale),
    /// CLOCK_MONOTONIC through the vDSO.
    Monotonic,
    /// Virtual time of one thread.
    Virtual(Rc<VirtualTime>),
}

/// Scale from counter ticks to nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct TscScale {
    base_ticks: u64,
    base_ns: u64,
    /// ns = ticks * mult >> 32.
    mult: u64,
}

/// Time that passes only when somebody says so.
#[derive(Debug, Default)]
pub struct VirtualTime {
    /// Nanoseconds since the start of the thread.
    pub now_ns: Cell<u64>,
    /// Of which on the CPU.
    pub busy_ns: Cell<u64>,
}

impl VirtualTime {
    /// Lets time pass on the CPU.
    pub fn run(&self, ns: u64) {
        self.now_ns.set(self.now_ns.get() + ns);
        self.busy_ns.set(self.busy_ns.get() + ns);
    }

    /// Lets time pass off the CPU.
    pub fn sleep_until(&self, ns: u64) {
        self.now_ns.set(self.now_ns.get().max(ns));
    }
}

impl Clock {
    /// The best real clock of this machine. The scale is measured once per process (about 20 ms).
    pub fn real() -> Clock {
        static SCALE: OnceLock<Option<TscScale>> = OnceLock::new();
        match SCALE.get_or_init(calibrate) {
            Some(scale) => Clock::Tsc(*scale),
            None => Clock::Monotonic,
        }
    }

    /// A virtual clock at zero.
    pub fn virtual_time() -> Clock {
        Clock::Virtual(Rc::default())
    }

    /// Now, in nanoseconds. The origin is arbitrary; it is common to all real clocks of the process.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Tsc(scale) => scale.ns(ticks()),
            Clock::Monotonic => monotonic_ns(),
            Clock::Virtual(time) => time.now_ns.get(),
        }
    }

    /// CPU time of the calling thread so far, in nanoseconds (virtual: its busy time).
    pub fn thread_cpu_ns(&self) -> u64 {
        match self {
            Clock::Virtual(time) => time.busy_ns.get(),
            _ => iowhy_linux::clock::thread_cpu_ns(),
        }
    }

    /// The name of the source, for the record.
    pub fn source(&self) -> &'static str {
        match self {
            Clock::Tsc(_) => "tsc",
            Clock::Monotonic => "clock_gettime",
            Clock::Virtual(_) => "virtual",
        }
    }

    /// The virtual time, when it is one.
    pub fn virtual_time_of(&self) -> Option<&VirtualTime> {
        match self {
            Clock::Virtual(time) => Some(time),
            _ => None,
        }
    }
}

impl TscScale {
    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        let delta = u128::from(ticks.wrapping_sub(self.base_ticks));
        self.base_ns + ((delta * u128::from(self.mult)) >> 32) as u64
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: RDTSC only reads a counter; a kernel that forbids it to user mode (PR_SET_TSC) is not used, because
    // `calibrate` asks the kernel's own clock source first.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ticks() -> u64 {
    monotonic_ns()
}

/// Measures the counter against CLOCK_MONOTONIC; `None` where the kernel does not itself keep time by the TSC.
fn calibrate() -> Option<TscScale> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource").ok()?;
    if source.trim() != "tsc" {
        return None;
    }
    // The reading with the shortest bracket is the least disturbed one.
    let pair = || {
        (0..32)
            .map(|_| {
                let before = ticks();
                let ns = monotonic_ns();
                let after = ticks();
                (after - before, before + (after - before) / 2, ns)
            })
            .min()
            .map(|(_, ticks, ns)| (ticks, ns))
    };
    let (t0, n0) = pair()?;
    std::thread::sleep(std::time::Duration::from_millis(20));
    let (t1, n1) = pair()?;
    let mult = ((u128::from(n1 - n0) << 32) / u128::from((t1 - t0).max(1))) as u64;
    Some(TscScale { base_ticks: t0, base_ns: n0, mult })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_never_runs_backwards_and_agrees_with_the_kernel_on_order() {
        let clock = Clock::real();
        let mut last = clock.now_ns();
        for _ in 0..10_000 {
            let now = clock.now_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn virtual_time_passes_only_when_told_and_keeps_busy_apart() {
        let clock = Clock::virtual_time();
        let time = clock.virtual_time_of().unwrap();
        time.run(70);
        time.sleep_until(100);
        time.sleep_until(50);
        assert_eq!((clock.now_ns(), clock.thread_cpu_ns()), (100, 70));
    }
}
