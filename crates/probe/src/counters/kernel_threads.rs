//! CPU time of kernel threads (kworker, kswapd, jbd2, nvme poll, ...): work caused by requests and charged to no
//! thread of iowhy.
//!
//! io_uring's workers (`iou-wrk`) are threads of the process that made the ring and do not carry PF_KTHREAD: they are
//! not in this sum.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use iowhy_linux::process::schedstat;

/// Descriptors kept open; the threads of a larger machine are opened for each reading. A process may have 1024.
const KEPT_OPEN: usize = 256;

/// CPU time of all kernel threads, kept open for cheap repeated readings.
///
/// Threads come and go (kworkers). Each reading looks at the list of processes again: a new thread counts from its
/// birth, which lies after the reading before; of one that is gone the last seen time stays in the sum, which
/// therefore never goes down. What is missed: the time between the last reading and a thread's end, and threads that
/// were born and ended between two readings. A reading, the list included, takes about 1 us a thread (84 us for 89
/// threads).
#[derive(Debug)]
pub struct KernelThreads {
    threads: HashMap<u32, Thread>,
    /// Processes seen not to be kernel threads, so that each is looked at once.
    others: HashSet<u32>,
    ended_ns: u64,
}

#[derive(Debug)]
struct Thread {
    schedstat: Option<File>,
    cpu_ns: u64,
}

impl KernelThreads {
    /// Finds the kernel threads that can be seen; `None` when none can (`/proc` mounted with hidepid, a PID namespace
    /// of its own, a kernel without schedstats).
    pub fn open() -> Option<Self> {
        let mut found = KernelThreads { threads: HashMap::new(), others: HashSet::new(), ended_ns: 0 };
        found.scan();
        (!found.threads.is_empty()).then_some(found)
    }

    /// Sum of their CPU time so far, in nanoseconds. Never goes down.
    pub fn cpu_ns(&mut self) -> u64 {
        self.scan();
        self.ended_ns + self.threads.values().map(|thread| thread.cpu_ns).sum::<u64>()
    }

    /// How many can be seen, as of the last reading.
    pub fn visible(&self) -> usize {
        self.threads.len()
    }

    fn scan(&mut self) {
        // Those we know first: a number that was given to another process in the meantime is then free again.
        let mut ended_ns = 0;
        self.threads.retain(|&pid, thread| {
            let now = thread.read(pid);
            match now {
                Some(cpu_ns) => thread.cpu_ns = cpu_ns,
                None => ended_ns += thread.cpu_ns,
            }
            now.is_some()
        });
        self.ended_ns += ended_ns;
        let Ok(listing) = fs::read_dir("/proc") else { return };
        let pids: HashSet<u32> =
            listing.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        self.others.retain(|pid| pids.contains(pid));
        for pid in pids {
            if self.threads.contains_key(&pid) || self.others.contains(&pid) {
                continue;
            }
            // Gone already, or hidden: looked at again next time.
            let Some(kernel) =
                fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|s| is_kernel_thread(&s))
            else {
                continue;
            };
            if !kernel {
                self.others.insert(pid);
            } else if let Some(thread) = Thread::open(pid, self.threads.len() < KEPT_OPEN) {
                self.threads.insert(pid, thread);
            }
        }
    }
}

impl Thread {
    fn open(pid: u32, keep: bool) -> Option<Thread> {
        let file = File::open(schedstat_path(pid)).ok()?;
        let cpu_ns = cpu_ns(&file)?;
        Some(Thread { schedstat: keep.then_some(file), cpu_ns })
    }

    /// Its CPU time; `None` once it has ended.
    fn read(&self, pid: u32) -> Option<u64> {
        match &self.schedstat {
            Some(file) => cpu_ns(file),
            None => cpu_ns(&File::open(schedstat_path(pid)).ok()?),
        }
        // A number that was reused by another thread shows as time that went back.
        .filter(|&now| now >= self.cpu_ns)
    }
}

fn schedstat_path(pid: u32) -> String {
    format!("/proc/{pid}/schedstat")
}

fn cpu_ns(schedstat: &File) -> Option<u64> {
    let mut text = [0u8; 80];
    let n = schedstat.read_at(&mut text, 0).ok()?;
    Some(schedstat::parse(std::str::from_utf8(&text[..n]).ok()?)?.running_ns)
}

/// Whether a `/proc/PID/stat` line carries PF_KTHREAD (include/linux/sched.h) in its ninth field. The second field is
/// a name in parentheses and may hold anything, parentheses and spaces included.
fn is_kernel_thread(stat: &str) -> Option<bool> {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let (_, after_name) = stat.rsplit_once(')')?;
    let flags: u64 = after_name.split_ascii_whitespace().nth(6)?.parse().ok()?;
    Some(flags & PF_KTHREAD != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_are_told_by_their_flag_whatever_their_name() {
        let kthreadd = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 4 0 0 20 0 1 0 0 0 0";
        let shell = "812 (bash) S 1 812 812 34816 812 4194304 5331 0 0 0 3 1 0 0 20 0 1 0 29 0 0";
        let liar = "813 (x) S 0 0 0 0 -1 2129984) S 1 812 812 34816 812 4194304 5331 0 0 0 3 1 0 0 20 0 1 0";
        assert_eq!(is_kernel_thread(kthreadd), Some(true));
        assert_eq!(is_kernel_thread(shell), Some(false));
        assert_eq!(is_kernel_thread(liar), Some(false));
        assert_eq!(is_kernel_thread("813 (cut"), None);
    }

    #[test]
    fn the_sum_never_goes_down_and_holds_no_thread_of_ours() {
        let Some(mut kernel) = KernelThreads::open() else {
            eprintln!("skipped: no kernel thread can be seen here");
            return;
        };
        assert!(!kernel.threads.contains_key(&std::process::id()));
        assert!(kernel.others.contains(&std::process::id()));
        let mut last = kernel.cpu_ns();
        for _ in 0..20 {
            let now = kernel.cpu_ns();
            assert!(now >= last);
            last = now;
        }
        assert!(last > 0);
    }

    #[test]
    fn a_thread_that_ends_keeps_its_share_of_the_sum() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let opened = File::open(schedstat_path(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        let Ok(schedstat) = opened else {
            eprintln!("skipped: no schedstat here");
            return;
        };
        let threads = HashMap::from([(pid, Thread { schedstat: Some(schedstat), cpu_ns: 5 })]);
        let mut watched = KernelThreads { threads, others: HashSet::new(), ended_ns: 2 };
        watched.scan();
        assert!(!watched.threads.contains_key(&pid));
        assert_eq!(watched.ended_ns, 7);
    }

    #[test]
    fn threads_beyond_the_kept_ones_are_read_all_the_same() {
        let own = std::process::id();
        let (Some(kept), Some(reopened)) = (Thread::open(own, true), Thread::open(own, false)) else {
            eprintln!("skipped: no schedstat here");
            return;
        };
        assert!(kept.schedstat.is_some() && reopened.schedstat.is_none());
        assert!(kept.read(own) <= reopened.read(own));
        assert!(reopened.read(own).is_some());
    }
}
