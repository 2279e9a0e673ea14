//! A false kernel: events by hand, and a profile to hold the laws against.

mod conserve;
mod known;
mod laws;
mod log;
mod requests;
mod unrecorded;
mod windows;

use iowhy_core::profile::{Profile, State};

use super::*;
use crate::event::Chain;
use crate::symbols::Kernel;

const KERNEL: &str = "1000 T io_wait\n2000 T futex_wait\n3000 T copy\n4000 T make_room\n5000 T lookup\n6000 T kthread\n\
     7000 T do_exit\n8000 T exit_mm\n9000 T io_cqring_wait\na000 T end\nb000 T bpf_prog_1_on_switch\n\
     c000 T bpf_trace_run4\nd000 T __schedule\n";
pub(super) const IO: &[u64] = &[0x1000];
pub(super) const FUTEX: &[u64] = &[0x2000];
pub(super) const COPY: &[u64] = &[0x3000];
pub(super) const ROOM: &[u64] = &[0x4000];
pub(super) const RING: &[u64] = &[0x9000];
pub(super) const LOOKUP: &[u64] = &[0x5000];

pub(super) fn on_path(names: &[&str]) -> bool {
    names.contains(&"io_wait") || names.contains(&"io_cqring_wait")
}

pub(super) fn begin(switches: bool) -> Timeline<'static> {
    Timeline::new(Begin {
        start_ns: 1000,
        on_path: &on_path,
        switches,
        kernel_stacks: true,
        requests: true,
        rings: true,
        log: true,
        symbols: Symbols::with_kernel(Kernel::parse(KERNEL)),
    })
}

/// A time line with one thread of process 1 that runs. Times in tests begin at 0; the clock begins at 1000.
pub(super) fn one(switches: bool) -> Timeline<'static> {
    let mut t = begin(switches);
    t.existing(1000, Existing { pid: 1, tid: 1, name: "main", found: Found::Running, names: &[] });
    t
}

pub(super) fn at(t: &mut Timeline<'_>, time: u64, pid: u32, tid: u32, kind: Kind<'_>) {
    t.event(&Event { time_ns: 1000 + time, cpu: 0, pid, tid, kind });
}

pub(super) fn tick(t: &mut Timeline<'_>, time: u64, tid: u32, kernel: &[u64]) {
    at(t, time, 1, tid, Kind::Tick(Chain { kernel, user: &[], ..Chain::default() }));
}

/// The thread of process 1 goes to sleep with this stack.
pub(super) fn sleep(t: &mut Timeline<'_>, time: u64, tid: u32, kernel: &[u64]) {
    at(t, time, 1, tid, Kind::LeavingStack(Chain { kernel, user: &[], ..Chain::default() }));
    at(t, time, 1, tid, Kind::Out { preempted: false });
}

pub(super) fn preempt(t: &mut Timeline<'_>, time: u64, tid: u32) {
    at(t, time, 1, tid, Kind::LeavingStack(Chain { kernel: ROOM, user: &[], ..Chain::default() }));
    at(t, time, 1, tid, Kind::Out { preempted: true });
}

pub(super) fn wake(t: &mut Timeline<'_>, time: u64, tid: u32) {
    at(t, time, 1, tid, Kind::In);
}

pub(super) fn thread(t: &mut Timeline<'_>, time: u64, tid: u32) {
    at(t, time, 1, tid, Kind::Fork { parent_pid: 1, parent_tid: 1 });
}

/// The profile, checked by its laws.
pub(super) fn profile(parts: Parts) -> Profile {
    let p = Profile {
        wall_ns: parts.wall_ns,
        idle_wall_ns: parts.idle_wall_ns,
        threads: parts.threads,
        stacks: parts.stacks,
        symbols: parts.symbols,
        processes: parts.processes,
        ..Profile::default()
    };
    if let Err(broken) = p.check(1e-9) {
        panic!("{broken}\n{p:#?}");
    }
    assert!(p.idle_wall_ns >= 0.0);
    for s in &p.stacks {
        assert!(
            s.time_ns >= 0.0 && s.wall_ns >= 0.0 && s.time_ns.is_finite() && s.wall_ns.is_finite(),
            "{s:?}"
        );
        assert!(s.kernel.iter().chain(&s.user).all(|id| (*id as usize) < p.symbols.len()));
    }
    p
}

pub(super) fn end(t: Timeline<'_>, time: u64) -> Profile {
    profile(t.finish(Totals { end_ns: 1000 + time, completions_seen: true, ..Totals::default() }))
}

/// Time, wall time and events of a thread's state with this innermost function; empty: user mode; `?`: not known.
pub(super) fn found(p: &Profile, tid: u32, state: State, function: &str) -> (f64, f64, u64) {
    let mut sum = (0.0, 0.0, 0);
    for s in p.stacks.iter().filter(|s| p.threads[s.thread as usize].tid == tid && s.state == state) {
        let name = if s.known { p.kernel_names(s).next().unwrap_or("") } else { "?" };
        if name == function {
            sum = (sum.0 + s.time_ns, sum.1 + s.wall_ns, sum.2 + s.events);
        }
    }
    sum
}

#[track_caller]
pub(super) fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} is not {b}");
}
