//! Keeps the intervals and samples of the time line for an [`EventLog`], where that was asked for.
//! Invariant: the intervals of a thread follow each other without a gap; readings of counters, which cut an interval into pieces, do
//! not show.

use iowhy_core::profile::State;

use super::hash::FastMap;
use super::live::Doing;
use super::stacks::{StackId, Stacks};
use crate::block::Split;
use crate::event_log::{
    EventLog, Interval, LoggedStack, LoggedThread, MAX_INTERVALS, MAX_SAMPLES, MAX_THREADS, Sample,
};

/// The thread of a log that is full.
const NOBODY: u32 = u32::MAX;

/// The log in the making. Times are those of CLOCK_MONOTONIC until the end, stacks are numbers of [`Stacks`].
#[derive(Debug, Default)]
pub(super) struct Log {
    log: EventLog,
    /// The last interval of each thread.
    last: Vec<Option<u32>>,
}

impl Log {
    /// A thread appears. Returns its index.
    pub(super) fn begin(&mut self, pid: u32, tid: u32, name: &str, now_ns: u64) -> u32 {
        if self.log.threads.len() >= MAX_THREADS {
            self.full(now_ns);
        }
        if self.log.full_ns.is_some() {
            return NOBODY;
        }
        let name = name.to_owned();
        self.log.threads.push(LoggedThread { pid, tid, name, begin_ns: now_ns, end_ns: now_ns });
        self.last.push(None);
        (self.log.threads.len() - 1) as u32
    }

    pub(super) fn rename(&mut self, thread: u32, name: &str) {
        if let Some(thread) = self.log.threads.get_mut(thread as usize) {
            name.clone_into(&mut thread.name);
        }
    }

    /// An interval, or a piece of one, is over. `begins`: it continues none.
    pub(super) fn interval(
        &mut self,
        thread: u32,
        doing: Doing,
        stack: StackId,
        (begin_ns, end_ns): (u64, u64),
        begins: bool,
    ) {
        let Some(known) = self.log.threads.get_mut(thread as usize) else { return };
        known.end_ns = end_ns;
        if begin_ns == end_ns || self.log.full_ns.is_some() {
            return;
        }
        let state = match doing {
            Doing::Running => Some(State::Running),
            Doing::Queued => Some(State::Queued),
            Doing::Blocked => Some(State::Blocked),
            Doing::Unseen => None,
        };
        let last = self.last[thread as usize].and_then(|at| self.log.intervals.get_mut(at as usize));
        if let Some(last) = last
            && !begins
            && (last.state, last.stack, last.end_ns) == (state, stack, begin_ns)
        {
            last.end_ns = end_ns;
            return;
        }
        if self.log.intervals.len() >= MAX_INTERVALS {
            return self.full(begin_ns);
        }
        self.last[thread as usize] = Some(self.log.intervals.len() as u32);
        self.log.intervals.push(Interval {
            thread,
            state,
            stack,
            begin_ns,
            end_ns,
            device_ns: 0,
            queued_ns: 0,
            behind_others_ns: 0,
        });
    }

    /// What requests did in the sleep of a thread that ends now.
    pub(super) fn split(&mut self, thread: u32, now_ns: u64, split: Split) {
        let last = self.last.get(thread as usize).copied().flatten();
        let Some(last) = last.and_then(|at| self.log.intervals.get_mut(at as usize)) else { return };
        if last.end_ns == now_ns && last.state == Some(State::Blocked) {
            let split = split.at_most(last.end_ns - last.begin_ns);
            last.device_ns = split.device_ns;
            last.queued_ns = split.queued_ns;
            last.behind_others_ns = split.behind_ns;
        }
    }

    pub(super) fn sample(&mut self, thread: u32, now_ns: u64, stack: StackId) {
        if self.log.full_ns.is_some() || thread == NOBODY {
            return;
        }
        if self.log.samples.len() >= MAX_SAMPLES {
            return self.full(now_ns);
        }
        self.log.samples.push(Sample { thread, time_ns: now_ns, stack });
    }

    fn full(&mut self, now_ns: u64) {
        self.log.full_ns.get_or_insert(now_ns);
    }

    /// The log, with times since the start and the stacks that it uses. `requests_followed`: sleeps were divided reliably.
    pub(super) fn finish(self, start_ns: u64, stacks: &Stacks<'_>, requests_followed: bool) -> EventLog {
        let mut log = EventLog { start_ns, requests_followed, ..self.log };
        let mut numbers: FastMap<StackId, u32> = FastMap::default();
        let mut used = Vec::new();
        let intervals = log.intervals.iter_mut().map(|interval| &mut interval.stack);
        for stack in intervals.chain(log.samples.iter_mut().map(|sample| &mut sample.stack)) {
            let next = used.len() as u32;
            *stack = *numbers.entry(*stack).or_insert_with_key(|id| {
                let (kernel, user, known) = stacks.frames(*id);
                used.push(LoggedStack { kernel: kernel.to_vec(), user: user.to_vec(), known });
                next
            });
        }
        log.stacks = used;
        let since = |time: &mut u64| *time = time.saturating_sub(start_ns);
        log.threads.iter_mut().flat_map(|t| [&mut t.begin_ns, &mut t.end_ns]).for_each(since);
        log.samples.iter_mut().map(|s| &mut s.time_ns).for_each(since);
        log.full_ns.iter_mut().for_each(since);
        for interval in &mut log.intervals {
            since(&mut interval.begin_ns);
            since(&mut interval.end_ns);
            if !requests_followed {
                (interval.device_ns, interval.queued_ns, interval.behind_others_ns) = (0, 0, 0);
            }
        }
        log
    }
}
