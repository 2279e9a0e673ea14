//! The observer of the whole machine: the same object with the programs of `bpf/machine.h`. Every wait of every task is told once,
//! when it ends, beside the requests of the block layer; sums per CPU are read. All tables are bounded, and what does not fit is counted.
//! With timed calls (`tails`) it tells all sleeps inside of those as well.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{self, Array, MapData, RingBuf, StackTraceMap};
use aya::util::nr_cpus;

use super::called::Called;
use super::facts::words;
use super::{InKernel, OBJECT, Object, attach, chain, map, requests, typed_task};
use crate::event::{BlockRequest, Kind};
use crate::records::{bytes, text};
use iowhy_linux::clock::monotonic_ns;

/// Entries of `waits`, `asked`, `writers` and `stacks` of `bpf/machine.h`.
pub(super) const MAX_WAITS: u32 = 32_768;
const MAX_CPUS: u32 = 1024;
const MAX_ASKED: u32 = 8192;
const MAX_WRITERS: u32 = 16_384;
const MAX_STACKS: u32 = 8192;
/// Reports that are taken in one go: a full buffer holds fewer.
const MAX_TAKEN: usize = 1 << 18;
/// The buffer of recorded calls, of which there are none: a multiple of any page size, as the kernel wants it.
const NO_RECORDS: u32 = 64 << 10;

/// Words (of 8 bytes) of `struct wait_event`, of its head, of `struct wait` and of `struct cpu_times`.
const EVENT: usize = 14;
const HEAD: usize = 5;
const WAIT: usize = 5;
const TIMES: usize = 16;
const IDLE_SINCE: usize = 4;
const IDENTITY: u64 = 0xffff_ffff << 32 | 8;

/// Where a task waits for I/O, as PSI counts it; for memory; in reclaim; asleep inside of that, which is told as well.
pub(crate) const IO: u32 = 1;
pub(crate) const MEMORY: u32 = 2;
/// It sleeps uninterruptibly, as whoever waits for a request of a device does.
pub(crate) const BLOCKED: u32 = 4;
/// It has just asked the server of a file system.
pub(crate) const SERVER: u32 = 8;
pub(crate) const RECLAIMS: u32 = 16;
pub(crate) const IN_RECLAIM: u32 = 128;
/// Asleep inside of a call that is timed; the first sleep of it.
pub(crate) const IN_CALL: u32 = 256;
pub(crate) const FIRST_IN_CALL: u32 = 512;
const KERNEL_THREAD: u32 = 32;
const WOKEN_BY_KERNEL: u32 = 64;
/// It had been woken before it slept.
pub(crate) const WOKEN_BEFORE: u32 = 1024;

/// Tracepoints that a kernel may lack, their programs, and what is not seen without them.
const OPTIONAL: [(&str, &[&str], &str); 4] = [
    (
        "mm_vmscan_direct_reclaim_begin",
        &["on_reclaim"],
        "stalls in direct reclaim are seen only where they sleep",
    ),
    (
        "mm_vmscan_memcg_reclaim_begin",
        &["on_group_reclaim"],
        "stalls in the reclaim of a control group are seen only where they sleep",
    ),
    ("fuse_request_send", &["on_asked"], "waits for user-space file systems (FUSE) are not seen"),
    (
        "writeback_dirty_folio",
        &["on_dirtied"],
        "write-back is not charged to the process that wrote, but named as the kernel's",
    ),
];
const ENDS: [(&str, &str); 2] =
    [("mm_vmscan_direct_reclaim_end", "on_reclaimed"), ("mm_vmscan_memcg_reclaim_end", "on_group_reclaimed")];

/// A wait, as the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) since_ns: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Where the task last ran: PSI counts its wait there.
    pub(crate) cpu: u32,
    pub(crate) flags: u32,
    /// Below 0: not known.
    pub(crate) stack: i32,
    pub(crate) task: String,
}

impl Waiting {
    pub(crate) fn kernel(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }

    fn from_words(tid: u32, of: &[u64]) -> Option<Waiting> {
        let [since_ns, pid_and_cpu, flags_and_stack, name @ ..] = of else { return None };
        let ([pid, cpu], [flags, stack]) = (words(*pid_and_cpu), words(*flags_and_stack));
        let task = text(bytes(name)).to_owned();
        Some(Waiting { since_ns: *since_ns, pid, tid, cpu, flags, stack: stack.cast_signed(), task })
    }
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) wait: Waiting,
    pub(crate) at_ns: u64,
    /// The CPU that ended it.
    pub(crate) on_cpu: u32,
    /// The task on the CPU that ended it; thread 0: an idle CPU, or not known.
    pub(crate) waker: (u32, u32),
    pub(crate) waker_name: String,
    pub(crate) waker_is_kernel: bool,
    /// A request of this device was done on that CPU just before.
    pub(crate) device: Option<(u32, u32)>,
}

/// What the kernel tells.
pub(crate) enum Report<'a> {
    /// A wait is over.
    Ended(Ended),
    /// A step of a request, by or (`charged`) for a process.
    Request { at_ns: u64, cpu: u32, pid: u32, tid: u32, charged: bool, request: BlockRequest<'a> },
    /// A call took longer than its limit.
    Called(Called),
}

/// Sums of a CPU since loading, and what the kernel makes them of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    pub(crate) unused_ns: u64,
    pub(crate) idle_io_ns: u64,
    pub(crate) idle_memory_ns: u64,
    pub(crate) queued_ns: u64,
}

/// What did not fit in the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelLost {
    pub(crate) waits: u64,
    pub(crate) events: u64,
    pub(crate) requests: u64,
}

/// The observer of the whole machine. Dropped, it is gone from the kernel.
pub(crate) struct MachineObserver {
    pub(super) kernel: InKernel,
    ring: RingBuf<MapData>,
    /// What is not seen on this kernel.
    pub(crate) gaps: Vec<String>,
    words: Vec<u64>,
    /// Numbers of stacks that were given back, and when: the kernel gives them anew.
    given_back: HashMap<u32, u64>,
}

impl MachineObserver {
    /// Loads the programs and attaches them: from then on everything is told.
    ///
    /// # Errors
    /// Why the kernel refuses it, in words.
    pub(crate) fn open() -> Result<MachineObserver, String> {
        MachineObserver::with(&[], "any")
    }

    /// With room in these further maps, and the programs of this name that tell of sleeps: `any` or `timed`.
    pub(super) fn with(more: &[(&str, u32)], name: &str) -> Result<MachineObserver, String> {
        let cpus = nr_cpus().map_or(MAX_CPUS, |cpus| cpus as u32);
        let sizes = [
            ("cpu_times", cpus),
            ("waits", MAX_WAITS),
            ("asked", MAX_ASKED),
            ("writers", MAX_WRITERS),
            ("stacks", MAX_STACKS),
            ("records", NO_RECORDS),
        ];
        let sizes = [&sizes, more].concat();
        let object = Object::open(OBJECT, &[("typed_task", typed_task()), ("whole_machine", 1)], &sizes)?;
        let mut kernel = InKernel { object, window: None, faults: Vec::new() };
        let events = kernel.object.take_map("requests").ok_or("the object has no map requests")?;
        let ring = RingBuf::try_from(events).map_err(|e| chain(&e))?;
        assume_idle(&mut kernel.object, monotonic_ns())?;
        for (tracepoint, what) in
            [("sched_waking", "waking"), ("sched_wakeup", "woken"), ("sched_switch", "switch")]
        {
            attach(&mut kernel.object, tracepoint, &[&format!("on_{name}_{what}")])?;
        }
        // Ends before beginnings: no stall is begun that nobody would end.
        for (tracepoint, program) in ENDS {
            let _ = attach(&mut kernel.object, tracepoint, &[program]);
        }
        let mut gaps = Vec::new();
        for (tracepoint, programs, without) in OPTIONAL {
            let old = ("writeback_dirty_page", &["on_dirtied_page"]);
            let attached = attach(&mut kernel.object, tracepoint, programs).or_else(|why| match tracepoint {
                "writeback_dirty_folio" => attach(&mut kernel.object, old.0, old.1),
                _ => Err(why),
            });
            if let Err(why) = attached {
                gaps.push(format!("{without} ({why})"));
            }
        }
        kernel.requests()?;
        Ok(MachineObserver { kernel, ring, gaps, words: Vec::new(), given_back: HashMap::new() })
    }

    /// Readable when the buffer is half full.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    /// Hands on what was told since the last time, in the order in which it was told: at most a part of it, since more may be told than
    /// can be taken.
    pub(crate) fn take(&mut self, take: &mut dyn FnMut(Report<'_>)) {
        for _ in 0..MAX_TAKEN {
            let Some(item) = self.ring.next() else { return };
            self.words.clear();
            let words = item.chunks_exact(8).filter_map(|b| Some(u64::from_ne_bytes(b.try_into().ok()?)));
            self.words.extend(words);
            drop(item);
            if let Some(mut told) = read(&self.words) {
                if let Report::Ended(ended) = &mut told {
                    forget_old_stack(&self.given_back, &mut ended.wait);
                }
                take(told);
            }
        }
    }

    /// The waits under way.
    ///
    /// # Errors
    /// A map of the observer cannot be read.
    pub(crate) fn under_way(&mut self) -> Result<Vec<Waiting>, String> {
        let waits: maps::HashMap<_, u64, [u64; WAIT]> = map(&mut self.kernel.object, "waits")?;
        // An entry that goes while the table is read may be missed or met twice; its end is told anyhow.
        let read = waits.iter().filter_map(Result::ok);
        let mut under_way: Vec<Waiting> = read
            .filter_map(|(key, of)| Waiting::from_words(key as u32, &of))
            .filter(|wait| wait.since_ns > 0)
            .collect();
        under_way.iter_mut().for_each(|wait| forget_old_stack(&self.given_back, wait));
        Ok(under_way)
    }

    /// Sums of each CPU up to this time.
    ///
    /// # Errors
    /// A map of the observer cannot be read.
    pub(crate) fn times(&mut self, now_ns: u64) -> Result<Vec<CpuTimes>, String> {
        let times: Array<_, [u64; TIMES]> = map(&mut self.kernel.object, "cpu_times")?;
        (0..times.len())
            .map(|cpu| times.get(&cpu, 0).map(|words| up_to(&words, now_ns)).map_err(|e| chain(&e)))
            .collect()
    }

    /// Waits that were begun.
    pub(crate) fn begun(&mut self) -> u64 {
        let Ok(times) = map::<Array<_, [u64; TIMES]>>(&mut self.kernel.object, "cpu_times") else { return 0 };
        (0..times.len()).map(|cpu| times.get(&cpu, 0).map_or(0, |words| words[14])).sum()
    }

    /// Time that the observer's programs have run on all CPUs while the kernel kept [`Statistics`](super::Statistics), in nanoseconds.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn run_ns(&self) -> Result<u64, String> {
        self.kernel.object.run_ns().map_err(|e| chain(&e))
    }

    /// Kernel addresses of a stack, innermost first; empty: it is not there any more.
    pub(crate) fn stack(&mut self, id: u32) -> Vec<u64> {
        let Some(map) = self.kernel.object.map_mut("stacks") else { return Vec::new() };
        let Ok(stacks) = StackTraceMap::try_from(map) else { return Vec::new() };
        stacks.get(&id, 0).map_or_else(|_| Vec::new(), |trace| trace.frames().iter().map(|f| f.ip).collect())
    }

    /// Gives the kernel back the stacks whose numbers are not in use: their places are free for others. A wait that had begun by then with such a
    /// number has no stack: the number may mean another one soon.
    pub(crate) fn give_back_stacks(&mut self, in_use: &HashSet<u32>) {
        let Some(map) = self.kernel.object.map_mut("stacks") else { return };
        let Ok(mut stacks) = StackTraceMap::try_from(map) else { return };
        // All numbers first: to ask for the one behind a number that is gone begins again.
        let unused: Vec<u32> =
            stacks.stack_ids().map_while(Result::ok).filter(|id| !in_use.contains(id)).collect();
        for id in unused {
            if stacks.remove(&id).is_ok() {
                self.given_back.insert(id, monotonic_ns());
            }
        }
    }

    /// What did not fit so far.
    pub(crate) fn lost(&mut self) -> KernelLost {
        let of_machine = map::<Array<_, [u64; 3]>>(&mut self.kernel.object, "machine_losses");
        let [waits, events, _] = of_machine.ok().and_then(|lost| lost.get(&0, 0).ok()).unwrap_or_default();
        let all = map::<Array<_, [u64; 7]>>(&mut self.kernel.object, "losses");
        let requests = all.ok().and_then(|lost| lost.get(&0, 0).ok()).map_or(0, |lost| lost[3]);
        KernelLost { waits, events, requests }
    }
}

/// A number of a stack is that of another stack once it was given back.
fn forget_old_stack(given_back: &HashMap<u32, u64>, wait: &mut Waiting) {
    let id = u32::try_from(wait.stack).ok();
    if id.and_then(|id| given_back.get(&id)).is_some_and(|at_ns| wait.since_ns <= *at_ns) {
        wait.stack = -1;
    }
}

/// A CPU of which nothing is heard is idle, or off.
fn assume_idle(object: &mut Object, now_ns: u64) -> Result<(), String> {
    let mut times: Array<_, [u64; TIMES]> = map(object, "cpu_times")?;
    let mut idle = [0; TIMES];
    idle[IDLE_SINCE] = now_ns;
    (0..times.len()).try_for_each(|cpu| times.set(cpu, idle, 0).map_err(|e| chain(&e)))
}

fn read(record: &[u64]) -> Option<Report<'_>> {
    let [_, identity, task, at_ns, cpu, ..] = record else { return None };
    let [cpu, _] = words(*cpu);
    if *identity != IDENTITY {
        if let Some(called) = Called::read(record) {
            return Some(Report::Called(called));
        }
        let Some(Kind::Request(request)) = requests::request(record) else { return None };
        let charged = record[8].to_ne_bytes()[7] != 0;
        let [pid, tid] = words(*task);
        return Some(Report::Request { at_ns: *at_ns, cpu, pid, tid, charged, request });
    }
    if record.len() != EVENT {
        return None;
    }
    let wait = Waiting::from_words(words(*task)[1], record.get(HEAD..HEAD + WAIT)?)?;
    let [waker, device, name @ ..] = record.get(HEAD + WAIT..)? else { return None };
    let ([waker_pid, waker_tid], [major, minor]) = (words(*waker), words(*device));
    Some(Report::Ended(Ended {
        at_ns: *at_ns,
        on_cpu: cpu,
        waker: (waker_pid, waker_tid),
        waker_name: text(bytes(name)).to_owned(),
        waker_is_kernel: waker_tid == 0 || wait.flags & WOKEN_BY_KERNEL != 0,
        device: (major != 0 || minor != 0).then_some((major, minor)),
        wait,
    }))
}

/// What a CPU's sums would be if it stopped being idle now: `leave_idle` of `bpf/machine.h`.
fn up_to(words: &[u64; TIMES], now_ns: u64) -> CpuTimes {
    let [unused, io, memory, queued, since, io_waits, memory_waits, waits, io_ended, memory_ended, ended, ..] =
        *words;
    let mut times = CpuTimes { unused_ns: unused, idle_io_ns: io, idle_memory_ns: memory, queued_ns: queued };
    if since > 0 && since < now_ns {
        let border = |waits: u64, ended: u64| if waits > 0 { now_ns } else { ended.clamp(since, now_ns) };
        times.unused_ns += now_ns - border(waits, ended);
        times.idle_io_ns += border(io_waits, io_ended) - since;
        times.idle_memory_ns += border(memory_waits, memory_ended) - since;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_stretch_is_unused_from_the_end_of_its_last_wait_on() {
        let words = |io_waits, io_ended| {
            [100, 10, 1, 7, 1000, io_waits, 0, io_waits, io_ended, 0, io_ended, 0, 0, 0, 0, 0]
        };
        let sums = |words: [u64; TIMES]| {
            let times = up_to(&words, 1500);
            (times.unused_ns - 100, times.idle_io_ns - 10, times.idle_memory_ns - 1)
        };
        assert_eq!(sums(words(0, 0)), (500, 0, 0), "nobody waited");
        assert_eq!(sums(words(1, 900)), (0, 500, 0), "somebody still waits");
        assert_eq!(sums(words(0, 1200)), (300, 200, 0));
        assert_eq!(sums(words(0, 2000)), (0, 500, 0), "it ended after the look");
    }

    /// Waits of this thread that are over.
    fn own_waits(observer: &mut MachineObserver) -> Vec<Waiting> {
        let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let mut waits = Vec::new();
        observer.take(&mut |report| {
            if let Report::Ended(ended) = report
                && ended.wait.tid == own
            {
                waits.push(ended.wait);
            }
        });
        waits
    }

    #[test]
    fn a_stack_that_was_given_back_is_none_of_older_waits_and_comes_anew() {
        let mut observer = match MachineObserver::open() {
            Ok(observer) => observer,
            Err(why) => {
                println!("skipped: the whole machine cannot be observed here: {why}");
                return;
            }
        };
        // Whoever starts a program sleeps until that has begun (vfork).
        let wait = || assert!(std::process::Command::new("true").status().unwrap().success());
        let is_known = |wait: &Waiting| wait.stack >= 0;
        let mut told_anew = false;
        for _ in 0..50 {
            wait();
            let before = own_waits(&mut observer).into_iter().find(is_known);
            wait();
            observer.give_back_stacks(&HashSet::new());
            assert!(!own_waits(&mut observer).iter().any(is_known), "it may be another one by now");
            wait();
            let after = own_waits(&mut observer).into_iter().find(is_known);
            // Another program's stack may have this place for a while.
            if let (Some(_), Some(after)) = (before, after) {
                told_anew |= !observer.stack(after.stack.cast_unsigned()).is_empty();
            }
        }
        assert!(told_anew);
    }

    #[test]
    fn a_wait_is_read_as_the_kernel_writes_it() {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let name = u64::from_ne_bytes(*b"fio\0\0\0\0\0");
        let mut record = vec![9, IDENTITY, pair(10, 11), 5000, pair(1, 0), 4000, pair(10, 1)];
        record.extend([pair(IO | WOKEN_BY_KERNEL, u32::MAX), name, 0, pair(0, 0), pair(254, 3), name, 0]);
        let Some(Report::Ended(ended)) = read(&record) else { panic!("it is a wait") };
        assert_eq!((ended.at_ns, ended.wait.since_ns, ended.wait.tid, ended.wait.pid), (5000, 4000, 11, 10));
        assert_eq!((ended.wait.cpu, ended.wait.stack, ended.wait.task.as_str()), (1, -1, "fio"));
        assert_eq!((ended.device, ended.waker_is_kernel), (Some((254, 3)), true));
        assert!(read(&record[..13]).is_none() && read(&[]).is_none());
    }
}
