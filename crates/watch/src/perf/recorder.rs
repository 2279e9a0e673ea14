//! Records a program: opens events for it on every CPU, one ring for each CPU, and hands the records on in order.
//!
//! A task's events are inherited by its threads and children. The kernel allows inherited events to have a ring only
//! if they are bound to a CPU, so each task gets each event once for each CPU. Where that would take too many
//! descriptors, the events are opened for everything on each CPU instead, and the consumer picks its threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iowhy_core::problem::Problem;
use iowhy_core::profile::{Limitation, Tier};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::attr::{self, Role, Start, TASK_PERIOD_NS};
use super::merge::Merger;
use super::record::{Decoded, Ids, decode};
use super::rights::Rights;
use super::ring::{Ring, map_all};
use iowhy_linux::cpus;

use iowhy_linux::clock::monotonic_ns;

use super::explain;
use crate::event::{Event, Kind};
use crate::records::{Feed, Source};

/// The greatest ring of one CPU, in bytes: a drain each 50 ms then keeps up with 80 MB of records a second.
const RING_BYTES: usize = 4 << 20;
/// The same where only side records and the clock go into it, most of it copies of user stacks: 40 MB a second.
const SIDE_RING_BYTES: usize = 2 << 20;
/// Descriptors that are left for everything else.
const SPARE_FDS: u64 = 128;

/// Who is recorded.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A child of iowhy that has not executed its program yet. It, its threads and its children are recorded from the
    /// moment it does so, which is seen as a name with `exec`.
    Child(u32),
    /// Threads that run already, with the threads and children that they start from now on.
    Threads(&'a [u32]),
    /// All that runs on the machine, without its switches: those come from elsewhere (`Recorder::feed`). An event that belongs to a CPU
    /// costs nothing where tasks switch; one that belongs to a task does, also while it is off.
    Machine,
}

/// What the recorder saw so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that were read, of any kind and of any task.
    pub records: u64,
    /// Records that the kernel could not store.
    pub lost: u64,
    /// Times the kernel took fewer samples because they cost too much.
    pub throttled: u64,
    /// Records that could not be understood.
    pub malformed: u64,
    /// Records that came so late that later ones had been handed on. They got the time of the last of those.
    pub late: u64,
}

/// An open recording. Closing is dropping.
#[derive(Debug)]
pub struct Recorder {
    cpus: Vec<u32>,
    rings: Vec<Ring>,
    /// Records of requests, put in order with the others.
    feed: Option<Feed>,
    /// Events that lead no ring, by what can be done with them.
    always_on: Vec<OwnedFd>,
    clocks: Vec<OwnedFd>,
    switches: Vec<OwnedFd>,
    leaving: Vec<OwnedFd>,
    ids: Ids,
    merger: Merger,
    last_ns: u64,
    counts: Counts,
    limitations: Vec<Limitation>,
    /// Our own process, whose events are dropped; `None` when we record ourselves on purpose.
    own: Option<u32>,
    /// What a task is given.
    roles: Vec<Role>,
    switches_on: bool,
    leaving_on: bool,
    system_wide: bool,
    clock_period_ns: Option<u64>,
}

impl Recorder {
    /// Opens everything that `rights` allow for the subject: side records always, switches of tasks, leaving stacks and a
    /// slow clock of the task at tier 1, a clock of every CPU at tier 2.
    ///
    /// The clock of a CPU tells of every task; events of our own process are dropped. A program that raises its privileges by exec (set-user-id), or may not be read, is lost:
    /// the kernel closes its events and records an exit.
    ///
    /// # Errors
    /// Not even the switches of the subject may be recorded, or it is gone.
    pub fn open(subject: Subject<'_>, rights: &Rights) -> Result<Self, Problem> {
        let recorder = Self::open_with(subject, rights, Some(std::process::id()))?;
        recorder.clocks(true);
        Ok(recorder)
    }

    pub(crate) fn open_with(
        subject: Subject<'_>,
        rights: &Rights,
        own: Option<u32>,
    ) -> Result<Self, Problem> {
        if !rights.switches {
            return Err(explain::nothing_allowed(&rights.limitations));
        }
        let cpus = cpus::online();
        let machine = matches!(subject, Subject::Machine);
        let mut roles = vec![Role::Side];
        if !machine {
            roles.push(Role::Switch);
            roles.extend(rights.kernel_stacks.then_some(Role::Leaving));
        }
        let per_cpu = rights.per_cpu_clock && rights.tier >= Tier::Clock;
        let mut clock_period_ns = None;
        if rights.kernel_stacks && !per_cpu && !machine {
            roles.push(Role::Clock { period_ns: TASK_PERIOD_NS, stack_bytes: 0 });
            clock_period_ns = Some(TASK_PERIOD_NS);
        }
        let mut recorder = Recorder {
            cpus,
            rings: Vec::new(),
            feed: None,
            always_on: Vec::new(),
            clocks: Vec::new(),
            switches: Vec::new(),
            leaving: Vec::new(),
            ids: Ids::default(),
            merger: Merger::default(),
            last_ns: 0,
            counts: Counts::default(),
            limitations: Vec::new(),
            own,
            roles,
            switches_on: true,
            leaving_on: rights.kernel_stacks,
            system_wide: machine,
            clock_period_ns,
        };
        let tids: &[u32] = match &subject {
            Subject::Child(pid) => std::slice::from_ref(pid),
            Subject::Threads(tids) => tids,
            Subject::Machine => &[],
        };
        let start = if matches!(subject, Subject::Child(_)) { Start::Exec } else { Start::Now };
        recorder.choose_width(tids.len(), per_cpu)?;
        recorder
            .open_rings(tids, start)
            .map_err(|error| explain::cannot_record(tids, &error, rights.tier))?;
        if per_cpu {
            recorder.open_clocks(rights.clock_period_ns);
        }
        Ok(recorder)
    }

    /// Records more threads. Those whose [`Kind::Fork`] was seen are recorded already, and would be recorded twice.
    /// Threads that are gone are passed over.
    ///
    /// # Errors
    /// The system call's, for a thread that is there: descriptors used up, no right.
    pub fn follow(&mut self, tids: &[u32]) -> io::Result<()> {
        if self.system_wide {
            return Ok(());
        }
        tids.iter().try_for_each(|tid| self.open_task(*tid, Start::Now))
    }

    /// Hands on requests from this source as well, in the order of all times.
    pub(crate) fn feed(&mut self, feed: Feed) {
        self.feed = Some(feed);
    }

    /// Descriptors to wait on with poll(2): readable when a ring is half full. One that says POLLHUP belongs to a
    /// thread that ended; leave it out from then on, its ring is still drained.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(Ring::leader).chain(self.feed.iter().filter_map(|feed| feed.source.fd()))
    }

    /// Switches the records of switches and their stacks on or off, for all tasks of the subject. Returns the time
    /// (CLOCK_MONOTONIC) from which they are all there, or up to which they were.
    ///
    /// A child that has not executed its program yet switches them on by doing so.
    pub fn switches(&mut self, on: bool) -> u64 {
        let before = monotonic_ns();
        self.switches_on = on;
        let groups = self.switches.iter().chain(self.leaving.iter().filter(|_| self.leaving_on || !on));
        // It cannot fail on an open descriptor; if it did, the consumer would see it by the records.
        groups.for_each(|event| drop(attr::switch(event.as_fd(), on)));
        if on { monotonic_ns() } else { before }
    }

    /// Switches only the stacks on or off; times of switches stay exact. Returns as [`Recorder::switches`] does. While
    /// switches are off, it says what happens when they come back.
    #[cfg(test)]
    pub(crate) fn leaving_stacks(&mut self, on: bool) -> u64 {
        let before = monotonic_ns();
        self.leaving_on = on;
        if self.switches_on || !on {
            self.leaving.iter().for_each(|event| drop(attr::switch(event.as_fd(), on)));
        }
        if on { monotonic_ns() } else { before }
    }

    /// Switches the clocks of the CPUs on or off. They are off at first: ticks of our own preparations, each with a copy of a stack, would fill
    /// the rings before anybody reads them.
    pub(crate) fn clocks(&self, on: bool) {
        // It cannot fail on an open descriptor.
        self.clocks.iter().for_each(|clock| drop(attr::switch(clock.as_fd(), on)));
    }

    /// Hands on, in order of time, what was recorded up to the start of the drain before this one; with `all`, at the
    /// end, all that there is. Idle CPUs and our own process are left out.
    pub fn drain(&mut self, all: bool, sink: &mut dyn FnMut(&Event<'_>)) {
        let now = monotonic_ns();
        let Recorder { rings, feed, merger, ids, counts, last_ns, own, .. } = self;
        let read = feed.as_ref().map(|feed| feed.read);
        let others = feed.as_mut().map(|feed| feed.source.as_mut() as &mut dyn Source);
        let sources = rings.iter_mut().map(|ring| ring as &mut dyn Source).chain(others);
        merger.drain(sources, now, all, |time_ns, record| {
            counts.records += 1;
            counts.late += u64::from(time_ns < *last_ns);
            *last_ns = time_ns.max(*last_ns);
            let mut tell = |event: &Event<'_>| {
                if let Kind::Lost { records } = event.kind {
                    counts.lost = counts.lost.saturating_add(records);
                }
                if is_wanted(event, *own) {
                    sink(event);
                }
            };
            if read.is_some_and(|read| read(record, *last_ns, &mut tell)) {
                return;
            }
            match decode(record, *last_ns, ids) {
                Decoded::Event(event) => tell(&event),
                Decoded::Throttled => counts.throttled += 1,
                Decoded::Malformed => counts.malformed += 1,
                Decoded::Other => {}
            }
        });
        counts.malformed += std::mem::take(&mut merger.malformed);
        if all {
            self.tell_last_losses(sink);
        }
    }

    /// Losses that no ring has told of, as one event that belongs to no CPU in particular.
    fn tell_last_losses(&mut self, sink: &mut dyn FnMut(&Event<'_>)) {
        let lost = self.lost_so_far();
        let records = lost.saturating_sub(self.counts.lost);
        if records > 0 {
            self.counts.lost = lost;
            self.last_ns = self.last_ns.max(monotonic_ns());
            sink(&Event { time_ns: self.last_ns, cpu: 0, pid: 0, tid: 0, kind: Kind::Lost { records } });
        }
    }

    /// What was seen so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether switches of every task are recorded, because the subject has too many threads. The consumer then picks
    /// its own.
    #[cfg(test)]
    pub(crate) fn is_system_wide(&self) -> bool {
        self.system_wide
    }

    /// What could not be had although the rights promised it, and what was done instead.
    pub fn limitations(&self) -> &[Limitation] {
        &self.limitations
    }

    /// Bytes of all rings together.
    #[cfg(test)]
    pub(crate) fn ring_bytes(&self) -> usize {
        self.rings.iter().map(Ring::size).sum()
    }

    /// Losses by the kernel's own count; asks every event.
    pub(crate) fn lost_so_far(&self) -> u64 {
        let others = self.always_on.iter().chain(&self.clocks).chain(&self.switches).chain(&self.leaving);
        let others = others.map(AsFd::as_fd);
        self.rings.iter().map(Ring::leader).chain(others).map(attr::lost).sum()
    }

    /// Closes the clocks and keeps the rest.
    pub(crate) fn close_clocks(&mut self) {
        self.always_on.clear();
        self.clocks.clear();
        self.clock_period_ns = None;
    }

    /// Raises the limit for descriptors as far as it goes, and goes over to whole CPUs if it is still too low.
    fn choose_width(&mut self, threads: usize, may_go_wide: bool) -> Result<(), Problem> {
        let needed = (threads * self.cpus.len() * self.roles.len() + self.cpus.len() * 8) as u64 + SPARE_FDS;
        let limit = getrlimit(Resource::Nofile);
        let allowed = |limit: Option<u64>| limit.is_none_or(|n| n >= needed);
        if !allowed(limit.current) {
            // Refused only if the hard limit fell meanwhile; then the old limit stands.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        }
        let now = getrlimit(Resource::Nofile).current;
        if self.system_wide || allowed(now) {
            return Ok(());
        }
        let limit = now.unwrap_or(u64::MAX);
        if !may_go_wide {
            return Err(Problem::failed(format!(
                "cannot record {threads} threads: that takes {needed} open files, and the limit is {limit}"
            ))
            .hint(explain::more_files(needed)));
        }
        self.system_wide = true;
        self.limitations.push(Limitation {
            id: "own-switches".into(),
            sentence: format!(
                "switches of all programs are recorded, not only of this one: {} would take {needed} open files, \
                 and the limit is {limit}",
                if threads == 1 { "its thread".to_owned() } else { format!("its {threads} threads") }
            ),
            fix: Some(explain::more_files(needed)),
        });
        Ok(())
    }

    /// One ring for each CPU, led by the side event of the first task that is still there.
    fn open_rings(&mut self, tids: &[u32], start: Start) -> io::Result<()> {
        let mut gone = io::Error::from_raw_os_error(libc::ESRCH);
        let targets: Vec<Option<u32>> =
            if self.system_wide { vec![None] } else { tids.iter().copied().map(Some).collect() };
        for (at, task) in targets.iter().enumerate() {
            let (inherit, start) = if task.is_some() { (true, start) } else { (false, Start::Now) };
            let leaders: io::Result<Vec<OwnedFd>> = self
                .cpus
                .iter()
                .map(|cpu| attr::open(Role::Side, *task, Some(*cpu), inherit, start))
                .collect();
            let leaders = match leaders {
                Ok(leaders) => leaders,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    gone = error;
                    continue;
                }
                Err(error) => return Err(error),
            };
            for leader in &leaders {
                self.ids.add(attr::id(leader)?, Role::Side);
            }
            let bytes = if self.roles.contains(&Role::Switch) { RING_BYTES } else { SIDE_RING_BYTES };
            self.rings = map_all(leaders, bytes)?;
            self.open_roles(*task, start, 1)?;
            return targets[at + 1..].iter().flatten().try_for_each(|tid| self.open_task(*tid, start));
        }
        Err(gone)
    }

    fn open_task(&mut self, tid: u32, start: Start) -> io::Result<()> {
        match self.open_roles(Some(tid), start, 0) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            other => other,
        }
    }

    /// Opens the roles of a task, from the one numbered `from` on, on every CPU. Side records come first, so that a
    /// thread born meanwhile is seen.
    fn open_roles(&mut self, task: Option<u32>, start: Start, from: usize) -> io::Result<()> {
        for at in from..self.roles.len() {
            let role = self.roles[at];
            let start = match role {
                Role::Switch if !self.switches_on => Start::Later,
                Role::Leaving if !(self.switches_on && self.leaving_on) => Start::Later,
                _ => start,
            };
            for ring in 0..self.rings.len() {
                let event = self.open_on(ring, role, task, start)?;
                match role {
                    Role::Switch => self.switches.push(event),
                    Role::Leaving => self.leaving.push(event),
                    _ => self.always_on.push(event),
                }
            }
        }
        Ok(())
    }

    /// Opens an event that writes into a ring we have.
    fn open_on(&mut self, ring: usize, role: Role, task: Option<u32>, start: Start) -> io::Result<OwnedFd> {
        let role = self.with_stack(role, &self.rings[ring]);
        let event = attr::open(role, task, Some(self.cpus[ring]), task.is_some(), start)?;
        attr::redirect(&event, self.rings[ring].leader())?;
        self.ids.add(attr::id(&event)?, role);
        Ok(event)
    }

    /// The same role with as much of a user stack as its ring takes.
    fn with_stack(&self, role: Role, ring: &Ring) -> Role {
        match role {
            Role::Clock { period_ns, .. } => {
                let stack_bytes = attr::stack_bytes(period_ns, ring.size(), self.cpus.len());
                Role::Clock { period_ns, stack_bytes }
            }
            other => other,
        }
    }

    fn open_clocks(&mut self, period_ns: u64) {
        let role = Role::Clock { period_ns, stack_bytes: 0 };
        let clocks: io::Result<Vec<OwnedFd>> =
            (0..self.rings.len()).map(|ring| self.open_on(ring, role, None, Start::Later)).collect();
        match clocks.map(|clocks| self.clocks = clocks) {
            Ok(()) => self.clock_period_ns = Some(period_ns),
            Err(error) => {
                self.clock_period_ns = None;
                self.limitation("cpu-clock", format!("no clock on every CPU: {error}"));
            }
        }
    }

    fn limitation(&mut self, id: &str, sentence: String) {
        self.limitations.push(Limitation { id: id.into(), sentence, fix: None });
    }
}

/// Losses and block requests concern everybody; idle CPUs and our own process are no part of any subject.
fn is_wanted(event: &Event<'_>, own: Option<u32>) -> bool {
    match event.kind {
        Kind::Lost { .. } | Kind::Request(_) | Kind::RingFiles { .. } => true,
        Kind::Fork { .. } => own != Some(event.pid),
        _ => event.tid != 0 && own != Some(event.pid),
    }
}
