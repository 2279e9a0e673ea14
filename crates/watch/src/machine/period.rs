//! Puts what the kernel tells into the order of its times, period by period, and adds it up.

use std::collections::{HashMap, HashSet};

use iowhy_core::machine::{Caused, Cost, Device, Lost, MachineProfile, Stalls, Subject, Wait};
use iowhy_core::tails::{HelperWait, Second, SlowCall};
use iowhy_linux::clock::{monotonic_ns, unix_ns};
use iowhy_linux::syscalls;

use super::devices::{Devices, Maker, Served};
use super::ledger::{Closed, Key, Ledger};
use super::slow::{Sleep, Slow};
use super::subjects::Subjects;
use crate::calls::errno_name;
use crate::event::{BlockRequest, Operation, Step};
use crate::in_kernel::{
    BLOCKED, Called, CpuTimes, Ended, FIRST_IN_CALL, IN_CALL, IN_RECLAIM, IO, MachineObserver, RECLAIMS,
    Report, SERVER, WOKEN_BEFORE, Waiting,
};

/// Events that are kept until a period ends.
const MAX_PENDING: usize = 1 << 18;
/// A request that is done wakes whoever waits for it in the same interrupt: the bound of the program in the kernel (`bpf/machine.h`).
const WAKES_WITHIN_NS: u64 = 50_000;
/// Rows of waits.
const MAX_ROWS: usize = 16_384;
/// Threads whose last device is remembered.
const MAX_THREADS: usize = 65_536;

/// A step of a request, without what is borrowed.
#[derive(Clone, Copy, Debug)]
struct RequestStep {
    cpu: u32,
    step: Step,
    address: u64,
    device: (u32, u32),
    sector: u64,
    bytes: u64,
    operation: Operation,
    lost: u32,
    by: Maker,
}

/// What happened at a time.
#[derive(Clone, Debug)]
enum Event {
    Begin(Waiting),
    End(Ended),
    Request(RequestStep),
    Called(Called),
}

/// Events with their times.
type Events = Vec<(u64, Event)>;

/// A row of waits: subject, stack, device, who ended it, reclaim.
type Row = (u32, Option<u32>, Option<u32>, Option<u32>, bool);

/// What is collected.
pub(super) struct Collector {
    begin_ns: u64,
    /// What lies before is settled.
    settled_ns: u64,
    times: Vec<CpuTimes>,
    ledger: Ledger,
    pub(super) subjects: Subjects,
    devices: Devices,
    pending: Vec<(u64, Event)>,
    /// When the kernel's pressure figures were read in this period, with the sums of each CPU.
    marks: Vec<(u64, Vec<CpuTimes>)>,
    rows: Vec<Wait>,
    by_row: HashMap<Row, usize>,
    causes: HashMap<usize, HashMap<u32, f64>>,
    /// The device that a thread waited for last, and when that wait ended.
    last_device: HashMap<u32, (u32, u64)>,
    /// Waits that the kernel did not name any more when the last period ended, and when that was.
    missing: HashMap<Key, u64>,
    computed: Stalls,
    lost: Lost,
    /// What had been lost, and what watching had cost, when the interval began.
    told: (Lost, u64),
    /// The slow calls of a program; rows of the machine's waits are not kept then.
    pub(super) slow: Option<Slow>,
}

impl Collector {
    pub(super) fn new(begin_ns: u64, observer: &mut MachineObserver) -> Result<Collector, String> {
        Ok(Collector::with(begin_ns, observer.times(begin_ns)?, Subjects::new()))
    }

    fn with(begin_ns: u64, times: Vec<CpuTimes>, subjects: Subjects) -> Collector {
        Collector {
            begin_ns,
            settled_ns: begin_ns,
            ledger: Ledger::new(begin_ns, times.len()),
            times,
            subjects,
            devices: Devices::default(),
            pending: Vec::new(),
            marks: Vec::new(),
            rows: Vec::new(),
            by_row: HashMap::new(),
            causes: HashMap::new(),
            last_device: HashMap::new(),
            missing: HashMap::new(),
            computed: Stalls::default(),
            lost: Lost::default(),
            told: (Lost::default(), 0),
            slow: None,
        }
    }

    /// Whether so much waits that the period should end now.
    pub(super) fn is_full(&self) -> bool {
        self.pending.len() >= MAX_PENDING
    }

    /// Takes what the kernel has told. Who it was about is asked at once: it may be gone soon.
    pub(super) fn take(&mut self, observer: &mut MachineObserver) {
        let Collector { pending, subjects, slow, .. } = self;
        observer.take(&mut |told| match told {
            Report::Ended(ended) => {
                subject_of(subjects, &ended.wait);
                pending.push((ended.at_ns, Event::End(ended)));
            }
            Report::Request { at_ns, cpu, pid, tid, charged, request } => {
                let by = maker(subjects, pid, tid, charged, &request);
                pending.push((at_ns, Event::Request(step(&request, cpu, by))));
            }
            Report::Called(called) => {
                subjects.process(called.pid, &called.task);
                slow.iter_mut().for_each(|slow| slow.told(called.time_ns()));
                pending.push((called.at_ns, Event::Called(called)));
            }
        });
    }

    /// Settles everything up to now.
    pub(super) fn close_period(&mut self, observer: &mut MachineObserver) -> Result<(), String> {
        let now_ns = monotonic_ns();
        let times = observer.times(now_ns)?;
        let under_way = self.still_waiting(observer.under_way()?);
        self.take(observer);
        let named: HashSet<Key> = under_way.iter().map(key).collect();
        let (events, later) = self.sorted_until(now_ns, under_way);
        self.pending = later;
        self.settle_events(events, now_ns, times, &named);
        Ok(())
    }

    /// Somebody reads the kernel's pressure figures now: from here on it weighs CPUs anew.
    pub(super) fn mark(&mut self, observer: &mut MachineObserver) -> Result<(), String> {
        let now_ns = monotonic_ns();
        self.marks.push((now_ns, observer.times(now_ns)?));
        Ok(())
    }

    /// Settles these events up to the end of a period, each stretch between two marks with its own weights.
    fn settle_events(&mut self, events: Events, now_ns: u64, times: Vec<CpuTimes>, named: &HashSet<Key>) {
        let mut events = events.into_iter().peekable();
        let mut take_until = |collector: &mut Collector, end_ns: u64| {
            while let Some((at_ns, event)) = events.next_if(|(at_ns, _)| *at_ns <= end_ns) {
                collector.event(at_ns, event);
            }
        };
        for (mark_ns, times) in std::mem::take(&mut self.marks) {
            take_until(self, mark_ns);
            self.settle_until(mark_ns, times);
        }
        take_until(self, now_ns);
        self.end_missing(now_ns, named);
        self.settle_until(now_ns, times);
    }

    fn settle_until(&mut self, now_ns: u64, times: Vec<CpuTimes>) {
        let weights = weights(&self.times, &times, now_ns.saturating_sub(self.settled_ns));
        self.settle(now_ns, &weights);
        self.add_idle(&times, &weights);
        self.times = times;
        self.settled_ns = now_ns;
    }

    /// As [`Collector::close_period`], and hands the second to the slow calls. `calls`: of the operation, since the last time.
    pub(super) fn close_second(&mut self, observer: &mut MachineObserver, calls: u64) -> Result<(), String> {
        let began_ns = self.settled_ns;
        self.close_period(observer)?;
        let stacks = self.stacks_in_use(&observer.under_way()?);
        observer.give_back_stacks(&stacks);
        let length_ns = self.settled_ns.saturating_sub(began_ns);
        let devices = self.devices.second();
        if let Some(slow) = &mut self.slow {
            slow.second(Second { began_unix_ns: unix_ns(began_ns), length_ns, calls, devices });
        }
        Ok(())
    }

    /// The subjects and the devices, and what did not fit: waits, requests, pooled events of subjects.
    pub(super) fn finish_calls(mut self) -> (Vec<Subject>, Vec<Device>, [u64; 3]) {
        let lost = [self.ledger.lost, self.devices.forgotten, self.subjects.pooled];
        let devices = self.devices.take_interval(self.settled_ns);
        (self.subjects.all, devices, lost)
    }

    /// Events up to this time in order, with beginnings of waits that end, or are under way; and the later ones.
    fn sorted_until(&mut self, now_ns: u64, under_way: Vec<Waiting>) -> (Events, Events) {
        let (mut events, mut later, mut begun) = (Vec::new(), Vec::new(), HashSet::new());
        let mut begin = |events: &mut Vec<(u64, Event)>, ledger: &Ledger, wait: &Waiting| {
            if wait.since_ns < now_ns && !ledger.is_open(&key(wait)) && begun.insert(key(wait)) {
                events.push((wait.since_ns, Event::Begin(wait.clone())));
            }
        };
        for wait in &under_way {
            begin(&mut events, &self.ledger, wait);
        }
        for (at_ns, event) in std::mem::take(&mut self.pending) {
            if let Event::End(ended) = &event {
                begin(&mut events, &self.ledger, &ended.wait);
            }
            if at_ns <= now_ns { events.push((at_ns, event)) } else { later.push((at_ns, event)) }
        }
        // The order in which they were told stays among those of one time.
        events.sort_by_key(|(at_ns, _)| *at_ns);
        (events, later)
    }

    /// Without waits of threads that are gone: their end was missed in the kernel. Those that began in this period are not asked about.
    fn still_waiting(&mut self, mut under_way: Vec<Waiting>) -> Vec<Waiting> {
        let Collector { subjects, settled_ns, .. } = self;
        under_way.retain(|wait| wait.since_ns >= *settled_ns || subjects.lives(wait.pid, wait.tid));
        under_way
    }

    /// Ends waits whose end was lost: the kernel has not named them twice in a row, and an end that was told has been taken by then. They
    /// have lasted until the first time at most, on no known device.
    fn end_missing(&mut self, now_ns: u64, named: &HashSet<Key>) {
        let gone: Vec<Key> = self.ledger.keys().filter(|key| !named.contains(key)).collect();
        let before = std::mem::take(&mut self.missing);
        for key in gone {
            let Some(since_ns) = before.get(&key) else {
                self.missing.insert(key, now_ns);
                continue;
            };
            if let Some(mut closed) = self.ledger.end(now_ns, &key) {
                let unknown_ns = now_ns.saturating_sub(*since_ns);
                closed.time_ns = closed.time_ns.saturating_sub(unknown_ns);
                closed.whole_ns = closed.whole_ns.saturating_sub(unknown_ns);
                self.add((closed.subject, None, None, None, key.1), &closed);
            }
        }
    }

    fn event(&mut self, at_ns: u64, event: Event) {
        match event {
            Event::Begin(wait) => {
                let subject = subject_of(&mut self.subjects, &wait);
                self.ledger.begin(at_ns, key(&wait), subject, wait.cpu, wait.flags);
            }
            Event::Request(step) => {
                let request = BlockRequest {
                    step: step.step,
                    address: step.address,
                    device: step.device,
                    sector: step.sector,
                    bytes: step.bytes,
                    operation: step.operation,
                    by_kernel: false,
                    metadata: false,
                    task: "",
                    lost: step.lost,
                };
                self.devices.request((at_ns, step.cpu), &request, step.by, &mut self.ledger);
            }
            Event::End(ended) => {
                if let Some(closed) = self.ledger.end(at_ns, &key(&ended.wait)) {
                    self.ended(&ended, &closed);
                }
            }
            Event::Called(called) => self.returned(&called),
        }
    }

    /// A call of the program has returned.
    fn returned(&mut self, called: &Called) {
        let subject = self.subjects.process(called.pid, &called.task);
        if let Some(slow) = &mut self.slow {
            slow.returned(called, call(called, subject));
        }
    }

    /// A wait is over. Its device is that of the thread's own request, else that of the request whose end woke it, else the one that
    /// whoever woke it had waited for meanwhile. The own request of a task that was woken while it went to sleep was done before: its last
    /// one, if no wait was for that.
    fn ended(&mut self, ended: &Ended, closed: &Closed) {
        let wait = &ended.wait;
        let of_device = is_of_device(wait);
        let before_ns = match wait.flags {
            flags if flags & IO == 0 => 0,
            flags if flags & WOKEN_BEFORE == 0 => WAKES_WITHIN_NS,
            _ => u64::MAX,
        };
        let waited_ns = self.last_device.get(&wait.tid).map_or(0, |(_, ended_ns)| *ended_ns);
        let from_ns = wait.since_ns.saturating_sub(before_ns).max(waited_ns);
        let own = self.devices.served(wait.tid, from_ns).filter(|_| of_device).copied();
        let done = ended.device.filter(|_| of_device).and_then(|number| self.devices.index(number));
        let by_device = own.map(|own| own.device).or(done).and_then(|device| u32::try_from(device).ok());
        let (waker_pid, waker_tid) = ended.waker;
        let has_waker = waker_tid != 0 && waker_tid != wait.tid && by_device.is_none();
        let device = by_device
            .or_else(|| {
                let (device, at_ns) = self.last_device.get(&waker_tid).filter(|_| has_waker)?;
                (*at_ns >= wait.since_ns).then_some(*device)
            })
            .filter(|_| of_device && wait.flags & RECLAIMS == 0);
        if let Some(device) = device {
            if self.last_device.len() >= MAX_THREADS && !self.last_device.contains_key(&wait.tid) {
                // Most are of threads that have ended long ago.
                self.last_device.clear();
            }
            self.last_device.insert(wait.tid, (device, ended.at_ns));
        }
        if self.slow.is_some() {
            self.ended_for_calls(ended, closed, own, device, has_waker);
            return;
        }
        let ended_by = (has_waker && !ended.waker_is_kernel)
            .then(|| self.subjects.process(waker_pid, &ended.waker_name));
        let stack = u32::try_from(wait.stack).ok();
        self.lost.stacks += u64::from(stack.is_none() && wait.flags & RECLAIMS == 0);
        let row = (closed.subject, stack, device, ended_by, wait.flags & RECLAIMS != 0);
        self.add(row, closed);
    }

    /// The same of a watch of slow calls: sleeps inside of calls, and waits of threads of the kernel, for which somebody may wait.
    fn ended_for_calls(
        &mut self,
        ended: &Ended,
        closed: &Closed,
        own: Option<Served>,
        device: Option<u32>,
        has_waker: bool,
    ) {
        let wait = &ended.wait;
        let stack = u32::try_from(wait.stack).ok();
        let done = ended.device.and_then(|number| self.devices.index(number));
        let is_it = |request: &&Served| {
            Some(request.device) == done && ended.at_ns.saturating_sub(request.at_ns) <= WAKES_WITHIN_NS
        };
        let woken_by = device.and_then(|_| self.devices.done_on(ended.on_cpu)).filter(is_it).copied();
        if wait.flags & RECLAIMS != 0 {
            return;
        }
        if wait.kernel() {
            let is_process = |subject: &u32| !self.subjects.all[*subject as usize].kernel;
            let data_of = woken_by.map(|request| request.subject).filter(is_process);
            if let Some(slow) = &mut self.slow {
                let helper = HelperWait { stack, device, data_of, time_ns: 0 };
                slow.helper_waited(wait.tid, wait.since_ns, ended.at_ns, helper);
            }
            return;
        }
        if wait.flags & IN_CALL == 0 {
            return;
        }
        let (waker_pid, waker_tid) = ended.waker;
        let ended_by = has_waker.then(|| match ended.waker_is_kernel {
            true => (self.subjects.kernel_thread(waker_tid, &ended.waker_name), Some(waker_tid)),
            false => (self.subjects.process(waker_pid, &ended.waker_name), None),
        });
        let parts = device.map(|device| self.ledger.causes(closed, device as usize)).unwrap_or_default();
        let caused: Vec<(u32, f64)> = parts
            .into_iter()
            .map(|(who, part)| (who.unwrap_or_else(|| self.subjects.others()), part))
            .collect();
        let request = own.or(woken_by);
        let sleep = Sleep {
            tid: wait.tid,
            since_ns: wait.since_ns,
            at_ns: ended.at_ns,
            first: wait.flags & FIRST_IN_CALL != 0,
            stack,
            device,
            queue_ns: request.map_or(0, |request| request.queue_ns(wait.since_ns, ended.at_ns)),
            ended_by,
            caused,
        };
        if let Some(slow) = &mut self.slow {
            slow.slept(sleep);
        }
    }

    fn add(&mut self, row: Row, closed: &Closed) {
        if self.slow.is_some() || closed.flags & IN_RECLAIM != 0 {
            return;
        }
        let index = self.row(row);
        let wait = &mut self.rows[index];
        wait.count += 1;
        wait.time_ns += closed.time_ns;
        wait.longest_ns = wait.longest_ns.max(closed.whole_ns);
        let Some(device) = row.2 else { return };
        wait.without_requests_ns += self.ledger.without_requests(closed, device as usize);
        let parts = self.ledger.causes(closed, device as usize);
        for (who, part) in parts {
            let who = who.unwrap_or_else(|| self.subjects.others());
            *self.causes.entry(index).or_default().entry(who).or_default() += part;
        }
    }

    fn row(&mut self, row: Row) -> usize {
        let row = if self.by_row.len() < MAX_ROWS || self.by_row.contains_key(&row) {
            row
        } else {
            self.lost.rows += 1;
            (row.0, None, None, None, false)
        };
        *self.by_row.entry(row).or_insert_with(|| {
            let (subject, stack, device, ended_by, reclaim) = row;
            self.rows.push(Wait { subject, stack, device, ended_by, reclaim, ..Wait::default() });
            self.rows.len() - 1
        })
    }

    /// Adds the stalls of a period as PSI does: a mean over the CPUs, weighted by their use.
    fn settle(&mut self, now_ns: u64, weights: &[f64]) {
        let period = self.ledger.close_period(now_ns);
        for (stall, weight) in period.stalls.iter().zip(weights) {
            self.computed.io_some_ns += stall[0] as f64 * weight;
            self.computed.memory_some_ns += stall[1] as f64 * weight;
        }
        for (subject, cpu, part) in period.parts {
            let weight = weights.get(cpu).copied().unwrap_or(0.0);
            let subject = &mut self.subjects.all[subject as usize];
            subject.io_some_ns += part[0] * weight;
            subject.memory_some_ns += part[1] * weight;
        }
    }

    fn add_idle(&mut self, times: &[CpuTimes], weights: &[f64]) {
        for ((now, before), weight) in times.iter().zip(&self.times).zip(weights) {
            let part = |now: u64, before: u64| now.saturating_sub(before) as f64 * weight;
            self.computed.cpu_some_ns += part(now.queued_ns, before.queued_ns);
            self.computed.io_full_ns += part(now.idle_io_ns, before.idle_io_ns);
            self.computed.memory_full_ns += part(now.idle_memory_ns, before.idle_memory_ns);
        }
    }

    /// The interval that ends with the last period, stacks still the kernel's numbers; the next one begins. A wait under way has its part in
    /// each, so that intervals sum to the whole. Stacks of other waits than those are given back: a watch may last for days.
    pub(super) fn take_interval(&mut self, observer: &mut MachineObserver) -> Result<MachineProfile, String> {
        let under_way = observer.under_way()?;
        let stacks = self.stacks_in_use(&under_way);
        self.add_under_way(under_way);
        observer.give_back_stacks(&stacks);
        self.subjects.add_times();
        self.subjects.look_again();
        let (kernel, waits) = (observer.lost(), observer.begun());
        let lost = Lost {
            waits: kernel.waits + self.ledger.lost,
            events: kernel.events,
            requests: kernel.requests + self.devices.forgotten,
            pooled: self.subjects.pooled,
            owners: self.ledger.pooled,
            ..self.lost
        };
        let (lost_before, waits_before) = std::mem::replace(&mut self.told, (lost, waits));
        let profile = MachineProfile {
            wall_ns: self.settled_ns.saturating_sub(self.begin_ns),
            cpus: iowhy_linux::cpus::online().len() as u64,
            computed: std::mem::take(&mut self.computed),
            gaps: observer.gaps.clone(),
            subjects: self.subjects.all.clone(),
            waits: self.take_rows(),
            devices: self.devices.take_interval(self.settled_ns),
            lost: lost.since(&lost_before),
            cost: Cost { waits: waits.saturating_sub(waits_before), ..Cost::default() },
            ..MachineProfile::default()
        };
        self.begin_interval();
        Ok(profile)
    }

    /// The kernel's numbers of stacks that are still referred to.
    pub(super) fn stacks_in_use(&self, under_way: &[Waiting]) -> HashSet<u32> {
        let number = |wait: &Waiting| u32::try_from(wait.stack).ok();
        let mut stacks: HashSet<u32> = self.rows.iter().filter_map(|row| row.stack).collect();
        stacks.extend(under_way.iter().filter_map(number));
        stacks.extend(self.pending.iter().filter_map(|(_, event)| match event {
            Event::Begin(wait) | Event::End(Ended { wait, .. }) => number(wait),
            Event::Request(_) | Event::Called(_) => None,
        }));
        stacks.extend(self.slow.iter().flat_map(Slow::stacks));
        stacks
    }

    /// Waits under way: what they have taken so far, on the device where the thread itself has a request.
    fn add_under_way(&mut self, under_way: Vec<Waiting>) {
        let waiting: HashMap<Key, Waiting> = under_way.into_iter().map(|wait| (key(&wait), wait)).collect();
        let requests = self.devices.own_requests();
        for (key, closed) in self.ledger.so_far() {
            let wait = waiting.get(&key);
            let stack = wait.and_then(|wait| u32::try_from(wait.stack).ok());
            let device = wait.filter(|wait| is_of_device(wait) && wait.flags & RECLAIMS == 0);
            let device = device.and_then(|wait| u32::try_from(*requests.get(&wait.tid)?).ok());
            self.add((closed.subject, stack, device, None, key.1), &closed);
        }
    }

    fn take_rows(&mut self) -> Vec<Wait> {
        self.by_row.clear();
        for (row, causes) in self.causes.drain() {
            let caused = causes.into_iter().map(|(subject, time_ns)| Caused { subject, time_ns });
            self.rows[row].caused = caused.collect();
            self.rows[row]
                .caused
                .sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns).then(a.subject.cmp(&b.subject)));
        }
        std::mem::take(&mut self.rows)
    }

    /// Whoever has nothing under way, and was not met in the interval before, is forgotten: a watch may last for days.
    fn begin_interval(&mut self) {
        let begun_ns = std::mem::replace(&mut self.begin_ns, self.settled_ns);
        self.last_device.retain(|_, (_, at_ns)| *at_ns >= begun_ns);
        self.ledger.begin_interval();
        let mut held = HashSet::new();
        self.each_subject(&mut |subject| {
            held.insert(*subject);
        });
        let places = self.subjects.begin_interval(&held);
        self.each_subject(&mut |subject| *subject = places.get(subject).copied().unwrap_or_default());
    }

    fn each_subject(&mut self, see: &mut dyn FnMut(&mut u32)) {
        self.ledger.each_subject(see);
        self.devices.each_subject(see);
        for (_, event) in &mut self.pending {
            if let Event::Request(step) = event {
                see(&mut step.by.subject);
            }
        }
    }
}

/// Pipes, sockets and servers are waited for in other ways than devices, whatever is done on the CPU of whoever wakes it.
fn is_of_device(wait: &Waiting) -> bool {
    wait.flags & (IO | BLOCKED) != 0 && wait.flags & SERVER == 0
}

/// What is known of a call beside its times.
fn call(called: &Called, subject: u32) -> SlowCall {
    let name = syscalls::name(i64::from(called.number));
    SlowCall {
        call: name.map_or_else(|| format!("syscall_{}", called.number), str::to_owned),
        began_unix_ns: unix_ns(called.entered_ns),
        subject,
        tid: called.tid,
        thread: called.task.clone(),
        error: (-4095..0).contains(&called.value).then(|| errno_name(-called.value)),
        ..SlowCall::default()
    }
}

fn key(wait: &Waiting) -> Key {
    (wait.tid, wait.flags & RECLAIMS != 0, wait.since_ns)
}

fn subject_of(subjects: &mut Subjects, wait: &Waiting) -> u32 {
    if wait.kernel() {
        subjects.kernel_thread(wait.tid, &wait.task)
    } else {
        subjects.process(wait.pid, &wait.task)
    }
}

/// Who made a request, or is charged for it.
fn maker(subjects: &mut Subjects, pid: u32, tid: u32, charged: bool, request: &BlockRequest<'_>) -> Maker {
    let by_kernel = tid == 0 || (request.by_kernel && !charged);
    let subject = match by_kernel {
        true => subjects.kernel_thread(tid, request.task),
        false => subjects.process(pid, request.task),
    };
    Maker { subject, tid: (!charged && tid != 0).then_some(tid), charged }
}

fn step(request: &BlockRequest<'_>, cpu: u32, by: Maker) -> RequestStep {
    RequestStep {
        cpu,
        step: request.step,
        address: request.address,
        device: request.device,
        sector: request.sector,
        bytes: request.bytes,
        operation: request.operation,
        lost: request.lost,
        by,
    }
}

/// The weight of each CPU in a period: its part of the time in which a CPU was in use, by PSI's rule (a task ran there, or waits that
/// ran there last). All 0: none was.
fn weights(before: &[CpuTimes], now: &[CpuTimes], period_ns: u64) -> Vec<f64> {
    let used = |(now, before): (&CpuTimes, &CpuTimes)| {
        period_ns.saturating_sub(now.unused_ns.saturating_sub(before.unused_ns)) as f64
    };
    let used: Vec<f64> = now.iter().zip(before).map(used).collect();
    let all: f64 = used.iter().sum();
    used.iter().map(|used| if all > 0.0 { used / all } else { 0.0 }).collect()
}

#[cfg(test)]
#[path = "period_tests.rs"]
mod tests;
