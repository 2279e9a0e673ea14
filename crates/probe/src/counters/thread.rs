//! Usage of the calling thread: CPU, faults, switches, waiting for a CPU.

use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::Add;
use std::os::unix::fs::FileExt;

use iowhy_linux::process::schedstat;

use crate::clock::Clock;

/// Usage of the calling thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time, exact.
    pub cpu_ns: u64,
    /// Of which user mode: the kernel's own split, which on most kernels is sampled at the timer tick (1 to 10 ms),
    /// applied to the exact time. Over less than some hundred ticks it is a rough share.
    pub cpu_user_ns: u64,
    /// Time runnable without a CPU; 0 where schedstats cannot be read.
    pub run_delay_ns: u64,
    /// Minor faults.
    pub minor_faults: u64,
    /// Major faults.
    pub major_faults: u64,
    /// Context switches that waited.
    pub voluntary_switches: u64,
    /// Context switches that were forced.
    pub involuntary_switches: u64,
}

impl Add for ThreadUsage {
    type Output = ThreadUsage;
    fn add(self, other: ThreadUsage) -> ThreadUsage {
        ThreadUsage {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            cpu_user_ns: self.cpu_user_ns.saturating_add(other.cpu_user_ns),
            run_delay_ns: self.run_delay_ns.saturating_add(other.run_delay_ns),
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
            major_faults: self.major_faults.saturating_add(other.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_add(other.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_add(other.involuntary_switches),
        }
    }
}

impl ThreadUsage {
    /// Usage since an earlier reading; never negative.
    #[must_use]
    pub fn since(&self, earlier: &ThreadUsage) -> ThreadUsage {
        let cpu_ns = self.cpu_ns.saturating_sub(earlier.cpu_ns);
        ThreadUsage {
            cpu_ns,
            // The user part is a share of all time so far, taken anew at each reading: over a short time its difference
            // can exceed the whole.
            cpu_user_ns: self.cpu_user_ns.saturating_sub(earlier.cpu_user_ns).min(cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(earlier.run_delay_ns),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
        }
    }

    /// How often the thread left its CPU.
    fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }
}

/// Readings that a span tries at its beginning for two between which the thread kept its CPU.
const TRIES: u32 = 8;

/// Usage of the calling thread between two points, without that of the readings themselves: they are system calls of
/// many times the cost of a cached read, and a slice of 2 ms would show them.
///
/// A thread that has used up its turn may lose its CPU when its CPU clock is read, because the kernel only then sees that it has.
/// To wait for a CPU there is no part of what was between.
#[derive(Debug)]
pub(crate) struct UsageSpan {
    before: ThreadUsage,
    /// CPU time of one reading of the CPU clock.
    reading_ns: u64,
    queue: Queue,
}

impl UsageSpan {
    /// Begins here.
    pub(crate) fn begin(clock: &Clock) -> UsageSpan {
        let queue = Queue::of_this_thread(clock);
        let read = || usage(clock, &queue);
        let mut last = [read(), read()];
        for _ in 1..TRIES {
            if last[0].switches() == last[1].switches() {
                break;
            }
            last = [last[1], read()];
        }
        // The last thing that is read is the CPU clock, three times in a row: the shorter of two readings, because one that an
        // interrupt hits would be taken from the span.
        let [_, usage] = last;
        let (between_ns, cpu_ns) = (clock.thread_cpu_ns(), clock.thread_cpu_ns());
        let reading_ns = between_ns.saturating_sub(usage.cpu_ns).min(cpu_ns.saturating_sub(between_ns));
        UsageSpan { before: ThreadUsage { cpu_ns, ..usage }, reading_ns, queue }
    }

    /// Ends here: the first thing that is read is the CPU clock.
    pub(crate) fn end(&self, clock: &Clock) -> ThreadUsage {
        let read = || (clock.now_ns(), clock.thread_cpu_ns());
        let (begun_ns, cpu_ns) = read();
        let run_delay_ns = self.queue.waited_ns();
        let (ended_ns, later_cpu_ns) = read();
        let on_cpu_ns = later_cpu_ns.saturating_sub(cpu_ns);
        let off_cpu_ns = ended_ns.saturating_sub(begun_ns).saturating_sub(on_cpu_ns);
        let total = ThreadUsage {
            cpu_ns: cpu_ns.saturating_sub(self.reading_ns),
            run_delay_ns: run_delay_ns.saturating_sub(off_cpu_ns),
            ..usage(clock, &self.queue)
        };
        total.since(&self.before)
    }
}

/// Where the kernel tells how long a thread was runnable without a CPU. It stays open: to open it takes longer than to read it.
#[derive(Debug)]
struct Queue(Option<File>);

impl Queue {
    fn of_this_thread(clock: &Clock) -> Queue {
        let real = clock.virtual_time_of().is_none();
        Queue(real.then(|| File::open("/proc/thread-self/schedstat").ok()).flatten())
    }

    /// Nanoseconds so far; 0 where it cannot be read.
    fn waited_ns(&self) -> u64 {
        // Three numbers of 20 digits at most.
        let mut text = [0; 64];
        let Some(length) = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()) else { return 0 };
        let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
        schedstat::parse(text).map_or(0, |told| told.queued_ns)
    }
}

/// Reads the calling thread's usage; on a virtual clock its busy time and nothing else. The reading itself costs the
/// thread a few microseconds of CPU time (two in a row differ by 4.6 us on the machine this was written on).
pub fn thread_usage(clock: &Clock) -> ThreadUsage {
    usage(clock, &Queue::of_this_thread(clock))
}

fn usage(clock: &Clock, queue: &Queue) -> ThreadUsage {
    if clock.virtual_time_of().is_some() {
        return ThreadUsage { cpu_ns: clock.thread_cpu_ns(), ..ThreadUsage::default() };
    }
    let run_delay_ns = queue.waited_ns();
    let usage = rusage_of_thread();
    let cpu_ns = clock.thread_cpu_ns();
    let (user, system) = (timeval_us(usage.ru_utime), timeval_us(usage.ru_stime));
    ThreadUsage {
        cpu_ns,
        cpu_user_ns: share(cpu_ns, user, user.saturating_add(system)),
        run_delay_ns,
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
    }
}

fn count(value: libc::c_long) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// `whole * part / total`, in the wide; 0 when the total is.
fn share(whole: u64, part: u64, total: u64) -> u64 {
    (u128::from(whole) * u128::from(part)).checked_div(u128::from(total)).unwrap_or(0) as u64
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn timeval_us(time: libc::timeval) -> u64 {
    // The widths of both fields differ between machines.
    u64::try_from(time.tv_sec as i64 * 1_000_000 + time.tv_usec as i64).unwrap_or(0)
}

fn rusage_of_thread() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage to the pointer; it can only fail for a bad pointer or selector, and then
    // the zeroes stay, which are a valid rusage.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_time_never_exceeds_cpu_time() {
        let earlier = ThreadUsage { cpu_ns: 1000, cpu_user_ns: 100, ..ThreadUsage::default() };
        let later = ThreadUsage { cpu_ns: 1100, cpu_user_ns: 550, ..ThreadUsage::default() };
        assert_eq!(later.since(&earlier).cpu_user_ns, 100);
    }

    #[test]
    fn a_span_does_not_hold_the_cost_of_its_own_readings() {
        let clock = Clock::real();
        // Readings are disturbed now and then; the least of many is not.
        let least = |one: &dyn Fn() -> u64| (0..200).map(|_| one()).min().unwrap();
        let span = least(&|| UsageSpan::begin(&clock).end(&clock).cpu_ns);
        let readings = least(&|| {
            let before = thread_usage(&clock);
            thread_usage(&clock).since(&before).cpu_ns
        });
        assert!(span < readings, "{span} ns, readings {readings} ns");
    }

    #[test]
    fn a_virtual_clock_gives_its_busy_time_and_nothing_else() {
        let clock = Clock::virtual_time();
        let time = clock.virtual_time_of().unwrap();
        time.run(70);
        time.sleep_until(1_000);
        assert_eq!(thread_usage(&clock), ThreadUsage { cpu_ns: 70, ..ThreadUsage::default() });
    }

    #[test]
    fn the_user_share_is_exact_in_the_wide() {
        assert_eq!(share(1_000, 3, 4), 750);
        assert_eq!(share(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(share(5, 0, 0), 0);
    }

    #[test]
    fn faults_and_switches_of_this_thread_are_counted() {
        // Longer than any allocator keeps in its heap: a fresh mapping, in which every touched page faults.
        const BYTES: usize = 64 << 20;
        let clock = Clock::real();
        let before = thread_usage(&clock);
        let mut memory = vec![0u8; BYTES];
        memory[BYTES / 2] = 1;
        std::hint::black_box(&memory);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let used = thread_usage(&clock).since(&before);
        assert!(used.minor_faults >= 1, "{used:?}");
        assert!(used.voluntary_switches >= 1, "{used:?}");
        assert!(used.cpu_ns > 0, "{used:?}");
    }

    #[test]
    fn another_threads_work_is_not_ours() {
        let clock = Clock::real();
        let before = thread_usage(&clock);
        let theirs = std::thread::spawn(|| {
            let clock = Clock::real();
            while thread_usage(&clock).cpu_ns < 30_000_000 {
                std::hint::spin_loop();
            }
            thread_usage(&clock).cpu_ns
        })
        .join()
        .unwrap();
        let ours = thread_usage(&clock).since(&before).cpu_ns;
        assert!(ours < theirs, "ours {ours} ns, theirs {theirs} ns");
    }
}
