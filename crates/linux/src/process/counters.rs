//! Exact counters of processes: `/proc/PID/io` and the resource usage that wait4(2) returns.

use std::os::fd::OwnedFd;

use iowhy_core::profile::IoCounters;

use crate::reader::Reader;

/// The I/O counters of a process; the other fields stay `None`.
///
/// They hold the process's threads, those that have ended included, *and every child that it has waited for*, with
/// what that child had waited for in turn (`wait_task_zombie` in kernel/exit.c; a child that is reaped because SIGCHLD
/// is ignored is lost). So the sum over a tree is that of the processes which are there now, zombies included; what
/// was read from a process that its parent has since waited for is in the parent already.
///
/// A zombie can still be read until it is waited for, which is how the last word of a command is had; but its file
/// belongs to root, so that nobody else can open it any more: see [`HeldIo`]. `None`: gone, or not for us to see (it
/// takes the right to trace the process), or the kernel keeps no such counts.
pub fn io(reader: &mut Reader, pid: u32) -> Option<IoCounters> {
    parse_io(reader.text(format_args!("/proc/{pid}/io"))?)
}

/// The I/O counters of a process, its file held open: to be opened while the process lives, and read to its end and
/// beyond, until it is waited for. It outlives an exec of another program.
#[derive(Debug)]
pub struct HeldIo {
    file: OwnedFd,
}

impl HeldIo {
    /// Opens the file; `None` as for [`io`].
    pub fn open(reader: &mut Reader, pid: u32) -> Option<HeldIo> {
        Some(HeldIo { file: reader.open(format_args!("/proc/{pid}/io"))? })
    }

    /// As [`io`].
    pub fn read(&self, reader: &mut Reader) -> Option<IoCounters> {
        parse_io(std::str::from_utf8(reader.read_held(&self.file)?).ok()?)
    }
}

/// Reads the text of `/proc/PID/io` (proc_pid_io(5)); `None` when no known counter is in it.
fn parse_io(text: &str) -> Option<IoCounters> {
    let mut counters = IoCounters::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let field = match key {
            "rchar" => &mut counters.read_bytes,
            "wchar" => &mut counters.written_bytes,
            "syscr" => &mut counters.read_calls,
            "syscw" => &mut counters.write_calls,
            "read_bytes" => &mut counters.device_read_bytes,
            "write_bytes" => &mut counters.device_written_bytes,
            _ => continue,
        };
        *field = value.trim().parse().ok();
    }
    (counters != IoCounters::default()).then_some(counters)
}

/// The counters in a resource usage; the I/O counters stay `None`. That of wait4(2) holds the child and all that it has
/// waited for; its peak is that of the greatest single process.
#[cfg(test)]
pub(crate) fn from_usage(usage: &libc::rusage) -> IoCounters {
    IoCounters {
        minor_faults: u64::try_from(usage.ru_minflt).ok(),
        major_faults: u64::try_from(usage.ru_majflt).ok(),
        user_ns: timeval_ns(usage.ru_utime),
        system_ns: timeval_ns(usage.ru_stime),
        // In KiB (getrusage(2)).
        peak_memory_bytes: u64::try_from(usage.ru_maxrss).ok().and_then(|kib| kib.checked_mul(1024)),
        ..IoCounters::default()
    }
}

/// The counters of a process that is not our child, from its `stat` and `status` files: faults, CPU time by ticks, and
/// the peak of its memory; the I/O counters stay `None`. As in [`io`], children that it has waited for are in them, but for
/// the peak.
pub fn usage(reader: &mut Reader, pid: u32) -> Option<IoCounters> {
    let stat = crate::process::task::process_stat(reader, pid)?;
    let tick_ns = crate::process::task::tick_ns();
    let status = reader.read(format_args!("/proc/{pid}/status")).unwrap_or_default();
    Some(IoCounters {
        minor_faults: stat.minor_faults.checked_add(stat.waited_minor_faults),
        major_faults: stat.major_faults.checked_add(stat.waited_major_faults),
        user_ns: stat.user_ticks.checked_add(stat.waited_user_ticks).and_then(|t| t.checked_mul(tick_ns)),
        system_ns: stat
            .system_ticks
            .checked_add(stat.waited_system_ticks)
            .and_then(|t| t.checked_mul(tick_ns)),
        peak_memory_bytes: peak_of(status),
        ..IoCounters::default()
    })
}

/// All counters of one thread that lives, but for the peak. CPU time is the exact sum, split by ticks as the kernel does it.
pub fn of_thread(reader: &mut Reader, pid: u32, tid: u32) -> Option<IoCounters> {
    let io = parse_io(reader.text(format_args!("/proc/{pid}/task/{tid}/io"))?)?;
    let Some(stat) = crate::process::task::stat(reader, pid, tid) else { return Some(io) };
    let exact = crate::process::task::schedstat(reader, pid, tid).map(|times| times.running_ns);
    let ticks = stat.user_ticks.saturating_add(stat.system_ticks);
    let user_ns = exact.map(|all| match ticks {
        0 => all,
        // Below 2^53 ns, a hundred days, this is exact enough.
        _ => (all as f64 * (stat.user_ticks as f64 / ticks as f64)) as u64,
    });
    let used = IoCounters {
        minor_faults: Some(stat.minor_faults),
        major_faults: Some(stat.major_faults),
        user_ns,
        system_ns: exact.zip(user_ns).map(|(all, user)| all.saturating_sub(user)),
        ..IoCounters::default()
    };
    Some(merged(&io, &used))
}

/// `VmHWM:    5328 kB`. The name in the first line may hold any bytes, but no newline: those are escaped.
fn peak_of(status: &[u8]) -> Option<u64> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"VmHWM:"))?;
    let kib = std::str::from_utf8(line).ok()?.trim().strip_suffix("kB")?.trim();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
#[cfg(test)]
fn timeval_ns(time: libc::timeval) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let micros = u64::try_from(time.tv_usec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(micros.checked_mul(1000)?)
}

/// Takes each counter from `first`, or from `second` where the first has none: joins [`io`] and [`usage`].
pub fn merged(first: &IoCounters, second: &IoCounters) -> IoCounters {
    combined(first, second, |a, b| a.or(b), |a, b| a.or(b))
}

/// Counters of two processes together; the peak is the greater. What is not known of one is not known of both.
pub fn sum(first: &IoCounters, second: &IoCounters) -> IoCounters {
    combined(first, second, |a, b| Some(a?.saturating_add(b?)), |a, b| Some(a?.max(b?)))
}

/// What passed between an earlier reading and a later one. The peak is the later one's: it is no sum.
pub fn since(later: &IoCounters, earlier: &IoCounters) -> IoCounters {
    combined(later, earlier, |a, b| Some(a?.saturating_sub(b?)), |a, _| a)
}

type Counter = Option<u64>;

fn combined(
    a: &IoCounters,
    b: &IoCounters,
    count: impl Fn(Counter, Counter) -> Counter,
    peak: impl Fn(Counter, Counter) -> Counter,
) -> IoCounters {
    IoCounters {
        read_calls: count(a.read_calls, b.read_calls),
        write_calls: count(a.write_calls, b.write_calls),
        read_bytes: count(a.read_bytes, b.read_bytes),
        written_bytes: count(a.written_bytes, b.written_bytes),
        device_read_bytes: count(a.device_read_bytes, b.device_read_bytes),
        device_written_bytes: count(a.device_written_bytes, b.device_written_bytes),
        minor_faults: count(a.minor_faults, b.minor_faults),
        major_faults: count(a.major_faults, b.major_faults),
        user_ns: count(a.user_ns, b.user_ns),
        system_ns: count(a.system_ns, b.system_ns),
        peak_memory_bytes: peak(a.peak_memory_bytes, b.peak_memory_bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, WaitId, WaitIdOptions};

    use super::*;

    const TEXT: &str = "rchar: 6976\nwchar: 12\nsyscr: 10\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\n\
        cancelled_write_bytes: 7\n";

    #[test]
    fn every_counter_lands_in_its_place() {
        let told = IoCounters {
            read_calls: Some(10),
            write_calls: Some(1),
            read_bytes: Some(6976),
            written_bytes: Some(12),
            device_read_bytes: Some(4096),
            device_written_bytes: Some(8192),
            ..IoCounters::default()
        };
        assert_eq!(parse_io(TEXT), Some(told));
        assert_eq!(parse_io("rchar: 5\nsyscr: x\n").unwrap().read_bytes, Some(5));
        for broken in ["", "nonsense", "rchar 5", "rchar: -1\n"] {
            assert_eq!(parse_io(broken), None, "{broken:?}");
        }
        assert_eq!(peak_of(b"Name:\tVmHWM\nVmHWM:\t    5328 kB\n"), Some(5328 << 10));
        assert_eq!(peak_of(b"Name:\t\xff\nVmRSS:\t 1 kB\n"), None);
    }

    #[test]
    fn merging_summing_and_subtracting_keep_what_is_not_known_unknown() {
        let io = parse_io(TEXT).unwrap();
        // SAFETY: a resource usage is integers only, for which zeros are a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        (usage.ru_maxrss, usage.ru_majflt, usage.ru_utime.tv_sec, usage.ru_utime.tv_usec) = (3, 4, 1, 5);
        let whole = merged(&io, &from_usage(&usage));
        assert_eq!((whole.read_bytes, whole.peak_memory_bytes), (Some(6976), Some(3072)));
        assert_eq!((whole.major_faults, whole.user_ns), (Some(4), Some(1_000_005_000)));
        let twice = sum(&whole, &whole);
        assert_eq!((twice.read_calls, twice.peak_memory_bytes), (Some(20), Some(3072)));
        assert_eq!(since(&twice, &whole), whole);
        assert_eq!(sum(&whole, &io).user_ns, None);
    }

    /// The claim in the description of [`io`], checked with the kernel: a shell that reads nothing much itself, and
    /// a child of it that reads a million bytes and is waited for.
    #[test]
    fn counters_of_a_zombie_hold_the_children_it_waited_for() {
        const BYTES: u64 = 1_000_000;
        let mut reader = Reader::new();
        let mut shell = Command::new("sh")
            .args(["-c", "read go; head -c 1000000 /dev/zero; true"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let held = HeldIo::open(&mut reader, shell.id());
        // Its standard input ends: it goes on.
        drop(shell.stdin.take());
        let pid = Pid::from_raw(shell.id() as i32).unwrap();
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let state = crate::process::task::process_stat(&mut reader, shell.id()).unwrap().state;
        let seen = held.as_ref().and_then(|held| held.read(&mut reader));
        let opened_late = io(&mut reader, shell.id());
        let used = usage(&mut reader, shell.id());
        shell.wait().unwrap();
        assert_eq!(state, 'Z');
        assert!(used.unwrap().minor_faults.is_some());
        let (Some(seen), Some(held)) = (seen, held) else {
            eprintln!("skipped: the kernel keeps no /proc/PID/io, or does not show it");
            return;
        };
        assert!(seen.read_bytes.unwrap() >= BYTES && seen.read_calls.unwrap() > 0, "{seen:?}");
        assert!(opened_late.is_none_or(|late| late == seen), "{opened_late:?} {seen:?}");
        assert_eq!(
            (io(&mut reader, shell.id()), held.read(&mut reader)),
            (None, None),
            "waited for and gone"
        );
    }
}
