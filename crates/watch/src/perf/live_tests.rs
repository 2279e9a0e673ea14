//! The recorder against the running kernel: children and threads that do known things. Each test says why it skips
//! where rights are missing.

use std::collections::{BTreeMap, HashSet};
use std::ffi::CString;
use std::io::{PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iowhy_core::profile::Tier;

use super::*;
use crate::event::{Event, Kind};

/// A child that waits with its program until [`Waiting::go`].
struct Waiting {
    pid: u32,
    gate: PipeWriter,
}

/// Forks a child that will run `sh -c SCRIPT`.
fn child(script: &str) -> Waiting {
    let (gate_read, gate) = std::io::pipe().expect("a pipe");
    let arguments = ["/bin/sh", "-c", script].map(|a| CString::new(a).expect("no NUL"));
    let pointers: Vec<*const libc::c_char> =
        arguments.iter().map(|a| a.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: the child calls only close, read, execv and _exit, which are safe after a fork of many threads.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let mut byte = 0u8;
        // SAFETY: the descriptors are open, the byte and the strings live until the program is replaced.
        unsafe {
            libc::close(gate.as_raw_fd());
            libc::read(gate_read.as_raw_fd(), (&raw mut byte).cast(), 1);
            libc::execv(pointers[0], pointers.as_ptr());
            libc::_exit(127);
        }
    }
    assert!(pid > 0, "fork");
    Waiting { pid: pid as u32, gate }
}

impl Waiting {
    fn go(&mut self) {
        self.gate.write_all(b"x").expect("the child reads");
    }

    fn has_ended(&self) -> bool {
        let mut status = 0;
        // SAFETY: waits for a child; `status` lives through the call.
        unsafe { libc::waitpid(self.pid as i32, &mut status, libc::WNOHANG) != 0 }
    }
}

/// Lets the child run to its end and returns all events, owned as far as the tests need them.
fn record(script: &str, rights: &Rights) -> (u32, Vec<Seen>, Counts) {
    let mut child = child(script);
    let mut recorder = Recorder::open(Subject::Child(child.pid), rights).expect("rights allow it");
    let mut seen = Vec::new();
    child.go();
    while !child.has_ended() {
        recorder.drain(false, &mut |e| seen.push(Seen::new(e)));
        std::thread::sleep(Duration::from_millis(5));
    }
    recorder.drain(true, &mut |e| seen.push(Seen::new(e)));
    (child.pid, seen, recorder.counts())
}

#[derive(Clone, Debug)]
struct Seen {
    time_ns: u64,
    pid: u32,
    tid: u32,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Tick,
    Leaving { depth: usize, callers: usize },
    Out,
    In,
    Fork { parent: u32 },
    Exit,
    Name(String, bool),
    Map(String),
    Lost,
    Request,
}

impl Seen {
    fn new(event: &Event<'_>) -> Self {
        let what = match &event.kind {
            Kind::Tick(_) => What::Tick,
            Kind::LeavingStack(chain) => {
                What::Leaving { depth: chain.kernel.len(), callers: chain.user.len() }
            }
            Kind::Out { .. } => What::Out,
            Kind::In => What::In,
            Kind::Fork { parent_pid, .. } => What::Fork { parent: *parent_pid },
            Kind::Exit => What::Exit,
            Kind::Name { name, exec } => What::Name((*name).to_owned(), *exec),
            Kind::Map { path, .. } => What::Map((*path).to_owned()),
            Kind::Lost { .. } => What::Lost,
            Kind::Request(_) | Kind::RingFiles { .. } => What::Request,
        };
        Seen { time_ns: event.time_ns, pid: event.pid, tid: event.tid, what }
    }
}

/// The rights, if they reach this tier (and switches, always).
fn allowed(tier: Tier) -> Option<Rights> {
    let rights = rights();
    if rights.switches && rights.tier >= tier {
        return Some(rights);
    }
    eprintln!("skipped: {} is not allowed: {:?}", tier.id(), rights.limitations);
    None
}

/// Outs and ins of each thread.
fn switches_of(seen: &[Seen], tids: &HashSet<u32>) -> BTreeMap<u32, (u64, u64)> {
    let mut counts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for event in seen.iter().filter(|e| tids.contains(&e.tid)) {
        let count = counts.entry(event.tid).or_default();
        match event.what {
            What::Out => count.0 += 1,
            What::In => count.1 += 1,
            _ => {}
        }
    }
    counts
}

#[test]
fn a_family_of_processes_is_seen_from_exec_to_exit() {
    let Some(rights) = allowed(Tier::None) else { return };
    let (pid, seen, counts) = record("sleep 0.05; sleep 0.02 & sleep 0.03; wait; exit 3", &rights);
    assert_eq!((counts.lost, counts.malformed), (0, 0));
    assert!(seen.windows(2).all(|w| w[0].time_ns <= w[1].time_ns));
    let own = std::process::id();
    assert!(seen.iter().all(|e| e.pid != own), "we are no part of the subject");

    let execs = |name: &str| seen.iter().filter(|e| e.what == What::Name(name.into(), true)).count();
    assert_eq!(execs("sh"), 1);
    assert_eq!(execs("sleep"), 3);
    let children: HashSet<u32> =
        seen.iter().filter(|e| e.what == What::Fork { parent: pid }).map(|e| e.tid).collect();
    assert_eq!(children.len(), 3);
    let exits = |tid| seen.iter().filter(|e| e.tid == tid && e.what == What::Exit).count();
    assert!(children.iter().chain([&pid]).all(|tid| exits(*tid) == 1));
    assert!(seen.iter().any(|e| e.pid == pid && matches!(&e.what, What::Map(path) if path.starts_with('/'))));

    let family: HashSet<u32> = children.iter().copied().chain([pid]).collect();
    let switches = switches_of(&seen, &family);
    assert_eq!(switches.len(), 4);
    for (tid, (outs, ins)) in switches {
        assert!(outs.abs_diff(ins) <= 1, "thread {tid}: {outs} out, {ins} in");
        assert!(ins > 0);
    }
    // A sleep is never shorter than asked for: the first child is off its CPU that long.
    let first = seen.iter().find(|e| e.what == What::Fork { parent: pid }).map(|e| e.tid).expect("a child");
    let mut off = 0;
    let mut left = None;
    for event in seen.iter().filter(|e| e.tid == first) {
        match event.what {
            What::Out => left = Some(event.time_ns),
            What::In => off += left.take().map_or(0, |t| event.time_ns - t),
            _ => {}
        }
    }
    assert!(off >= 50_000_000, "{off}");
}

#[test]
fn every_sleep_has_its_stack() {
    let Some(rights) = allowed(Tier::Stacks) else { return };
    for rights in [rights.clone().at_most(Tier::Stacks), rights] {
        let (pid, seen, counts) = record("sleep 0.02; sleep 0.02", &rights);
        assert_eq!((counts.lost, counts.malformed), (0, 0));
        let (mut outs, mut before, mut called) = (0, false, false);
        for event in seen.iter().filter(|e| e.tid == pid) {
            match event.what {
                What::Leaving { depth, callers } => {
                    assert!(depth > 2, "a stack of {depth}");
                    called |= callers > 0;
                    before = true;
                }
                What::Out => {
                    assert!(before, "a switch without its stack before it");
                    outs += 1;
                    before = false;
                }
                _ => {}
            }
        }
        assert!(outs > 0);
        assert!(called, "no stack tells who waited");
    }
}

#[test]
fn the_clock_ticks_for_a_busy_child_and_not_for_us() {
    let Some(rights) = allowed(Tier::Clock) else { return };
    let (pid, seen, _) = record("i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done", &rights);
    assert!(seen.iter().any(|e| e.tid == pid && e.what == What::Tick));
    let own = std::process::id();
    assert!(!seen.iter().any(|e| e.what == What::Tick && (e.pid == own || e.tid == 0)));
}

/// Our own threads at ping-pong over pipes, until told to stop.
fn ping_pong(stop: &AtomicBool, tell: &std::sync::mpsc::Sender<u32>) {
    let (mut to_read, mut to_write) = std::io::pipe().expect("a pipe");
    let (mut back_read, mut back_write) = std::io::pipe().expect("a pipe");
    let tid = || rustix::thread::gettid().as_raw_nonzero().get() as u32;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0];
            while to_read.read_exact(&mut byte).is_ok() && back_write.write_all(&byte).is_ok() {}
        });
        tell.send(tid()).expect("the test listens");
        let mut byte = [0];
        while !stop.load(Ordering::Relaxed) {
            to_write.write_all(&byte).expect("the partner reads");
            back_read.read_exact(&mut byte).expect("the partner writes");
        }
        drop(to_write);
    });
}

#[test]
fn switches_can_be_turned_off_and_on_for_inherited_threads_too() {
    let Some(rights) = allowed(Tier::None) else { return };
    let stop = AtomicBool::new(false);
    let (tell, told) = std::sync::mpsc::channel();
    let (gate_open, gate) = std::sync::mpsc::channel::<()>();
    let stop_ref = &stop;
    std::thread::scope(|scope| {
        let (first_tell, first) = std::sync::mpsc::channel();
        scope.spawn(move || {
            first_tell
                .send(rustix::thread::gettid().as_raw_nonzero().get() as u32)
                .expect("the test listens");
            if gate.recv().is_ok() {
                ping_pong(stop_ref, &tell);
            }
        });
        // Only this thread is opened; its partner is born afterwards.
        let parent = first.recv().expect("it says its number");
        let mut recorder =
            Recorder::open_with(Subject::Threads(&[parent]), &rights, None).expect("rights allow it");
        gate_open.send(()).expect("it waits");
        assert_eq!(told.recv(), Ok(parent));
        let mut seen = Vec::new();
        let mut wait = |recorder: &mut Recorder| {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(20) {
                recorder.drain(false, &mut |e| seen.push(Seen::new(e)));
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        wait(&mut recorder);
        let off = recorder.switches(false);
        let off_done = iowhy_linux::clock::monotonic_ns();
        wait(&mut recorder);
        let on_begun = iowhy_linux::clock::monotonic_ns();
        let on = recorder.switches(true);
        wait(&mut recorder);
        let no_stacks = recorder.leaving_stacks(false);
        let no_stacks_done = iowhy_linux::clock::monotonic_ns();
        wait(&mut recorder);
        stop.store(true, Ordering::Relaxed);
        recorder.drain(true, &mut |e| seen.push(Seen::new(e)));

        assert!(off <= off_done && off_done < on_begun && on_begun <= on && on <= no_stacks);
        let tids: HashSet<u32> = seen.iter().filter(|e| e.what == What::Out).map(|e| e.tid).collect();
        assert!(tids.contains(&parent) && tids.len() >= 2, "{tids:?}");
        let outs =
            |from, to| seen.iter().filter(|e| e.what == What::Out && (from..to).contains(&e.time_ns)).count();
        assert!(outs(0, off) > 0);
        assert_eq!(outs(off_done, on_begun), 0);
        assert!(outs(on, no_stacks) > 0);
        assert!(outs(no_stacks_done, u64::MAX) > 0, "times go on without stacks");
        let stacks = |from, to| {
            let range = from..to;
            seen.iter()
                .filter(|e| matches!(e.what, What::Leaving { .. }) && range.contains(&e.time_ns))
                .count()
        };
        assert_eq!(stacks(no_stacks_done, u64::MAX) + stacks(off_done, on_begun), 0);
        assert_eq!(stacks(on, no_stacks) > 0, rights.kernel_stacks);
    });
}

#[test]
fn a_ring_that_fills_wakes_its_reader_and_then_tells_what_it_lost() {
    let Some(rights) = allowed(Tier::None) else { return };
    let rights = rights.at_most(Tier::Stacks);
    let stop = AtomicBool::new(false);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || ping_pong(stop, &tell));
        let tid = told.recv().expect("it says its number");
        let mut recorder =
            Recorder::open_with(Subject::Threads(&[tid]), &rights, None).expect("rights allow it");
        let mut fds: Vec<_> = recorder
            .fds()
            .map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: the array lives through the call and has the stated length.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, 20_000) };
        assert!(ready > 0, "no ring was half full in 20 s");
        // Nobody reads: the rings run over. The end of it is told although no record follows.
        let start = Instant::now();
        let mut full = false;
        while !full && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
            full = recorder.lost_so_far() > 100;
        }
        stop.store(true, Ordering::Relaxed);
        if !full {
            eprintln!("skipped: the kernel does not count losses, or the machine is too slow");
            return;
        }
        recorder.switches(false);
        let mut told = 0;
        let start = Instant::now();
        recorder.drain(true, &mut |e| {
            if let Kind::Lost { records } = e.kind {
                told += records;
            }
        });
        let (took, counts) = (start.elapsed(), recorder.counts());
        eprintln!("drain: {} records, {} bytes of rings in {took:?}", counts.records, recorder.ring_bytes());
        assert!(told > 100);
        assert_eq!(told, recorder.counts().lost);
    });
}

#[test]
fn too_many_threads_are_watched_through_whole_cpus() {
    let Some(rights) = allowed(Tier::Clock) else { return };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    if limit.is_none_or(|n| n > 4_000_000) {
        eprintln!("skipped: the limit for open files is {limit:?}");
        return;
    }
    let crowd: Vec<u32> = (1..2_000_000).collect();
    let mut child = child("sleep 0.02");
    let mut recorder = Recorder::open(Subject::Threads(&crowd), &rights).expect("rights allow it");
    assert!(recorder.is_system_wide());
    assert!(recorder.limitations().iter().any(|l| l.id == "own-switches"));
    child.go();
    while !child.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut outs = 0;
    recorder.drain(true, &mut |e| {
        outs += u64::from(e.tid == child.pid && matches!(e.kind, Kind::Out { .. }));
        assert!(e.pid != std::process::id() || matches!(e.kind, Kind::Lost { .. }));
    });
    assert!(outs > 0);
}

#[test]
fn what_is_gone_is_a_problem_in_words() {
    let Some(rights) = allowed(Tier::None) else { return };
    let problem = Recorder::open(Subject::Threads(&[u32::MAX >> 2]), &rights).expect_err("no such thread");
    assert!(problem.message.contains("no such thread"), "{}", problem.message);
    assert!(Recorder::open(Subject::Threads(&[]), &rights).is_err());
    let none = Recorder::open(Subject::Threads(&[1]), &Rights::default()).expect_err("no rights at all");
    assert!(!none.message.is_empty());
}

#[test]
fn the_self_test_says_what_it_could_measure() {
    let rights = rights();
    let start = Instant::now();
    let test = self_test(&rights, None, true, true);
    eprintln!("{test:?} in {:?}", start.elapsed());
    assert!(test.switch_cost_ns.is_none_or(|c| c > 0.0) && test.tick_cost_ns.is_none_or(|c| c > 0.0));
    assert!(rights.kernel_stacks || test.tick_cost_ns.is_none());
    assert_eq!(self_test(&Rights::default(), None, true, true), SelfTest::default());
}
