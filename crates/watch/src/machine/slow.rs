//! The slow calls of a program, from sleeps and calls in the order of their ends: which sleeps belong to which call, which calls are kept.
//! Pure: no clock, no kernel.
//!
//! Invariant: of a call that is kept, running, queued and asleep sum to its time, and its waits to no more than the time asleep.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use iowhy_core::machine::Caused;
use iowhy_core::tails::{CallWait, HelperWait, Second, SlowCall};

use crate::calls::FileKey;
use crate::in_kernel::Called;

/// The slowest calls that are kept.
pub(super) const SLOWEST: usize = 20;
/// Kinds of waits told apart in one call.
const MAX_KINDS: usize = 256;
/// Threads inside of calls.
const MAX_THREADS: usize = 65_536;
/// Threads of the kernel whose waits are remembered, and waits of each.
const MAX_HELPERS: usize = 256;
const MAX_HELPER_WAITS: usize = 512;
/// Seconds that are kept: those before an event, its own, and the one after it.
const SECONDS: usize = 4;
const SECONDS_TO_COME: u32 = 2;

/// A sleep inside of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Sleep {
    pub(super) tid: u32,
    pub(super) since_ns: u64,
    pub(super) at_ns: u64,
    /// The first one of its call.
    pub(super) first: bool,
    /// Number of the stack, the kernel's.
    pub(super) stack: Option<u32>,
    pub(super) device: Option<u32>,
    pub(super) queue_ns: u64,
    /// Who ended it, and whether that is a thread of the kernel.
    pub(super) ended_by: Option<(u32, Option<u32>)>,
    pub(super) caused: Vec<(u32, f64)>,
}

/// What a thread slept for inside of its call so far.
#[derive(Debug, Default)]
struct Asleep {
    since_ns: u64,
    slept_ns: u64,
    waits: Vec<CallWait>,
}

/// A wait of a thread of the kernel.
#[derive(Clone, Debug)]
struct Helped {
    since_ns: u64,
    at_ns: u64,
    wait: HelperWait,
}

/// A call that is kept, its file not yet looked up.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) call: SlowCall,
    pub(super) file: Option<FileKey>,
}

/// See the header.
#[derive(Debug)]
pub(super) struct Slow {
    limit_ns: u64,
    /// Events to be kept.
    wanted: usize,
    threads: HashMap<u32, Asleep>,
    helpers: HashMap<u32, VecDeque<Helped>>,
    /// The slowest times that were told, settled or not: no call below all of them is asked for.
    floor: BinaryHeap<Reverse<u64>>,
    pub(super) over: u64,
    pub(super) events: Vec<Kept>,
    pub(super) slowest: Vec<Kept>,
    seconds: VecDeque<Second>,
    /// Events that wait for seconds to come: index, how many.
    waiting: Vec<(usize, u32)>,
    /// Sleeps in calls whose stack is not known.
    pub(super) without_stack: u64,
}

impl Slow {
    /// Calls above the limit are events, of which so many are kept.
    pub(super) fn new(limit_ns: u64, wanted: usize) -> Slow {
        Slow {
            limit_ns,
            wanted,
            threads: HashMap::new(),
            helpers: HashMap::new(),
            floor: BinaryHeap::new(),
            over: 0,
            events: Vec::new(),
            slowest: Vec::new(),
            seconds: VecDeque::new(),
            waiting: Vec::new(),
            without_stack: 0,
        }
    }

    /// A call of this time was told.
    pub(super) fn told(&mut self, time_ns: u64) {
        self.floor.push(Reverse(time_ns));
        if self.floor.len() > SLOWEST {
            self.floor.pop();
        }
    }

    /// From which time on a call may matter: it is an event, or slower than one of the slowest.
    pub(super) fn tell_from_ns(&self) -> u64 {
        let full = self.floor.len() == SLOWEST;
        let slowest_ns = self.floor.peek().filter(|_| full).map_or(0, |Reverse(ns)| *ns);
        slowest_ns.min(self.limit_ns).saturating_add(1)
    }

    /// A sleep inside of a call is over.
    pub(super) fn slept(&mut self, sleep: Sleep) {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&sleep.tid) {
            // Most are of threads that have ended long ago. What a call under way loses here is told as `unexplained`.
            self.threads.clear();
        }
        self.without_stack += u64::from(sleep.stack.is_none());
        let helper = sleep.ended_by.and_then(|(_, tid)| tid);
        let helped = helper.map(|tid| self.helped(tid, sleep.since_ns, sleep.at_ns)).unwrap_or_default();
        let asleep = self.threads.entry(sleep.tid).or_default();
        if sleep.first {
            *asleep = Asleep { since_ns: sleep.since_ns, ..Asleep::default() };
        }
        let time_ns = sleep.at_ns.saturating_sub(sleep.since_ns);
        let ended_by = sleep.ended_by.map(|(subject, _)| subject);
        let same = |wait: &CallWait| {
            (wait.stack, wait.device, wait.ended_by) == (sleep.stack, sleep.device, ended_by)
        };
        let at = asleep.waits.iter().position(same).or_else(|| {
            let room = asleep.waits.len() < MAX_KINDS;
            room.then(|| {
                let fresh =
                    CallWait { stack: sleep.stack, device: sleep.device, ended_by, ..CallWait::default() };
                asleep.waits.push(fresh);
                asleep.waits.len() - 1
            })
        });
        let Some(wait) = at.map(|at| &mut asleep.waits[at]) else { return };
        asleep.slept_ns += time_ns;
        wait.count += 1;
        wait.time_ns += time_ns;
        wait.queue_ns += sleep.queue_ns.min(time_ns);
        for (subject, time_ns) in sleep.caused {
            match wait.caused.iter_mut().find(|caused| caused.subject == subject) {
                Some(caused) => caused.time_ns += time_ns,
                None => wait.caused.push(Caused { subject, time_ns }),
            }
        }
        for more in helped {
            let key = |of: &HelperWait| (of.stack, of.device, of.data_of);
            match wait.helper.iter_mut().find(|known| key(known) == key(&more)) {
                Some(known) => known.time_ns += more.time_ns,
                None => wait.helper.push(more),
            }
        }
    }

    /// A thread of the kernel has waited: somebody may wait for it.
    pub(super) fn helper_waited(&mut self, tid: u32, since_ns: u64, at_ns: u64, wait: HelperWait) {
        if self.helpers.len() >= MAX_HELPERS && !self.helpers.contains_key(&tid) {
            self.helpers.clear();
        }
        let known = self.helpers.entry(tid).or_default();
        known.push_back(Helped { since_ns, at_ns, wait });
        if known.len() > MAX_HELPER_WAITS {
            known.pop_front();
        }
    }

    /// What this thread of the kernel waited for in a stretch.
    fn helped(&self, tid: u32, from_ns: u64, to_ns: u64) -> Vec<HelperWait> {
        let known = self.helpers.get(&tid).into_iter().flatten().rev();
        let inside = known.take_while(|helped| helped.at_ns > from_ns).map(|helped| HelperWait {
            time_ns: helped.at_ns.min(to_ns).saturating_sub(helped.since_ns.max(from_ns)),
            ..helped.wait.clone()
        });
        inside.collect()
    }

    /// A call has returned. Its sleeps have ended before. True: it is an event that is kept.
    pub(super) fn returned(&mut self, called: &Called, call: SlowCall) -> bool {
        let asleep = self.threads.remove(&called.tid).filter(|asleep| asleep.since_ns >= called.entered_ns);
        let time_ns = called.time_ns();
        let is_event = time_ns > self.limit_ns;
        self.over += u64::from(is_event);
        let is_kept = is_event && self.events.len() < self.wanted;
        let is_slow = self.slowest.len() < SLOWEST
            || self.slowest.last().is_some_and(|last| last.call.time_ns < time_ns);
        if !is_kept && !is_slow {
            return false;
        }
        // More than the kernel has added up is of another call, whose end was lost.
        let asleep = asleep.filter(|asleep| asleep.slept_ns <= called.slept_ns).unwrap_or_default();
        let seen: u64 = asleep.waits.iter().map(|wait| wait.count).sum();
        let asleep_ns = called.slept_ns.min(time_ns);
        let queued_ns = called.queued_ns.min(time_ns - asleep_ns);
        let call = SlowCall {
            time_ns,
            asleep_ns,
            queued_ns,
            running_ns: time_ns - asleep_ns - queued_ns,
            waits_lost: called.sleeps.saturating_sub(seen),
            waits: asleep.waits,
            ..call
        };
        let kept = Kept { call, file: called.file };
        if is_slow {
            let at = self.slowest.partition_point(|other| other.call.time_ns >= time_ns);
            self.slowest.insert(at, kept.clone());
            self.slowest.truncate(SLOWEST);
        }
        if is_kept {
            self.waiting.push((self.events.len(), SECONDS_TO_COME));
            self.events.push(kept);
        }
        is_kept
    }

    /// A second is over.
    pub(super) fn second(&mut self, second: Second) {
        self.seconds.push_back(second);
        if self.seconds.len() > SECONDS {
            self.seconds.pop_front();
        }
        let Slow { waiting, events, seconds, .. } = self;
        waiting.retain_mut(|(event, left)| {
            *left -= 1;
            events[*event].call.seconds = seconds.iter().cloned().collect();
            *left > 0
        });
    }

    /// The kernel's numbers of stacks that are kept: of calls, of sleeps of calls under way, of threads that calls may wait for.
    pub(super) fn stacks(&self) -> impl Iterator<Item = u32> + '_ {
        let calls = self.events.iter().chain(&self.slowest).flat_map(|kept| &kept.call.waits);
        let sleeps = calls.chain(self.threads.values().flat_map(|asleep| &asleep.waits));
        let of_sleeps = sleeps.flat_map(|wait| {
            wait.helper.iter().map(|helped| helped.stack).chain(std::iter::once(wait.stack))
        });
        let of_helpers = self.helpers.values().flatten().map(|helped| helped.wait.stack);
        of_sleeps.chain(of_helpers).flatten()
    }

    /// Whether all events that are wanted are there, with the seconds around them.
    pub(super) fn is_complete(&self) -> bool {
        self.events.len() >= self.wanted && self.waiting.is_empty()
    }
}

#[cfg(test)]
#[path = "slow_tests.rs"]
mod tests;
