//! Makes the account: gives each stack its meaning and adds up.

use std::cell::RefCell;
use std::collections::HashMap;

use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::profile::{FileUse, Profile, StackTime, State, SymbolId};

use super::site::{Sites, sorted};
use super::{Account, Delay, Entry, Sum};
use crate::classify::{Class, Classifier, Operation, Wait};

/// A gap between stacks and threads below this part of the whole is rounding.
const ROUNDING: f64 = 1e-9;

/// Accounts for all time of a profile.
///
/// - Queued time has the layer [`Layer::CpuQueue`], whatever its stack.
/// - Time whose stack was not seen, and time whose stack holds no function of the table, is [`Layer::Unexplained`];
///   [`Account::unseen_share`] and [`Account::unknown_symbols_share`] keep the two apart.
/// - Waits that requests end are split by what requests did in those very sleeps ([`StackTime::requests`]): at the device
///   ([`Layer::Device`]), in a queue ([`Layer::Block`]), and the rest, which keeps the layer of the wait; where data lie on a
///   volume (dm, md), or a control group's use of a disk is limited, the rest of a wait for data is theirs ([`Layer::Block`]): it
///   becomes a request to a disk only when they let it. Sleeps with the same stack that were not recorded are split in the same proportions. All other waits are never split: a busy disk
///   beside them proves nothing.
/// - Of waits for pages, which a program that reads a served file system shares with those for a disk, the rest is divided between the
///   server and the disk, and counts as inferred ([`Account::inferred_share`]).
/// - Where the stacks of a profile do not sum to its threads, the difference is [`Layer::Unexplained`] in
///   [`Account::layers`], with its sign.
pub fn account(profile: &Profile, classifier: &Classifier) -> Account {
    let mut meanings = Meanings { profile, classifier, seen: HashMap::new() };
    let off_disk = OffDisk::new(profile, &mut meanings);
    let used = |file: &FileUse| file.mapped || file.reads.calls + file.writes.calls > 0;
    let on_a_volume = profile.files.iter().any(|file| file.volume.is_some() && used(file));
    // What a control group's limit holds back is no request yet.
    let limited = profile.devices.iter().any(|device| device.throttle.is_some());
    let mut sums: HashMap<(u32, Class, bool), Sum> = HashMap::new();
    let (mut sites, mut script_sites) = (Sites::new(profile, false), Sites::new(profile, true));
    let has_scripts = profile.symbols.iter().any(|symbol| symbol.made_at_run_time);
    let (mut unseen_ns, mut unknown_ns, mut seen_ns) = (0.0, 0.0, 0.0);
    for stack in &profile.stacks {
        let told = meanings.of(stack);
        let class = off_disk.corrected(told);
        let parts = Parts::of(stack, class);
        let served = off_disk.served_part(class) * parts.as_ref().map_or(1.0, Parts::rest);
        seen_ns += if class == told { stack.seen_ns * (1.0 - served) } else { 0.0 };
        let busy = stack.state == State::Running;
        if class.layer == Layer::Unexplained {
            *(if stack.known { &mut unknown_ns } else { &mut unseen_ns }) += stack.time_ns;
        }
        sites.add(stack, mostly(class, served));
        if has_scripts {
            script_sites.add(stack, mostly(class, served));
        }
        let mut book = |class, share: f64, events, delay| {
            if share <= 0.0 && events == 0 {
                return;
            }
            let sum = sums.entry((stack.thread, class, busy)).or_default();
            sum.add(stack.time_ns * share, stack.wall_ns * share, events);
            sum.add_delay(delay);
        };
        // Waits have no halves: they count where most of their time is.
        let events_of = |part: f64| if part > 0.5 { stack.events } else { 0 };
        if served > 0.0 {
            book(waiting_for(Wait::Server, class), served, events_of(served), Delay::default());
        }
        match parts {
            Some(parts) => {
                let Parts { device, queued, event, is_ring, delay } = parts;
                let at = |layer| Class { layer, ..class };
                book(at(Layer::Device), device, 0, Delay { behind_ns: 0.0, ..delay });
                book(at(Layer::Block), queued, 0, Delay { beside_ns: 0.0, ..delay });
                if event > 0.0 {
                    book(waiting_for(Wait::Poll, class), event, events_of(event), Delay::default());
                }
                // Requests on files that never came to a block device: a copy by a worker, a server.
                let no_device = is_ring && device + queued <= 0.0;
                let rest_at = match class.wait {
                    _ if no_device => at(Layer::Filesystem),
                    // Neither in a queue nor at a disk: the volume holds it back, before or after, or the limit does.
                    Some(Wait::DeviceRead | Wait::DeviceWrite) if on_a_volume || limited => at(Layer::Block),
                    _ => class,
                };
                let others = stack.events - events_of(event) - events_of(served);
                book(rest_at, parts.rest() - served, others, Delay::default());
            }
            None => book(class, 1.0 - served, stack.events - events_of(served), Delay::default()),
        }
    }
    let locks_beside_requests_ns = locks_beside_requests(profile, &mut meanings);
    let thread_ns = profile.thread_ns() as f64;
    let share = |part: f64| if thread_ns > 0.0 { part / thread_ns } else { 0.0 };
    let entries = sorted(sums);
    Account {
        thread_ns,
        wall_ns: profile.wall_ns as f64,
        idle_wall_ns: profile.idle_wall_ns,
        layers: closed_ledger(profile, &entries),
        entries,
        unknown_symbols_share: share(unknown_ns),
        unseen_share: share(unseen_ns),
        seen_share: share(seen_ns).min(1.0),
        locks_beside_requests_ns,
        most_unnamed: sites.most_unnamed(),
        sites: sites.sorted(),
        script_sites: script_sites.sorted(),
    }
}

/// The meaning of a stack with which a thread of this profile ran or waited, as [`account`] books it.
pub fn meanings<'a>(profile: &'a Profile, classifier: &'a Classifier) -> impl Fn(&StackTime) -> Class + 'a {
    let mut meanings = Meanings { profile, classifier, seen: HashMap::new() };
    let off_disk = OffDisk::new(profile, &mut meanings);
    let meanings = RefCell::new(meanings);
    move |stack| {
        let class = off_disk.corrected(meanings.borrow_mut().of(stack));
        mostly(class, off_disk.served_part(class) * Parts::of(stack, class).map_or(1.0, |parts| parts.rest()))
    }
}

/// See [`Account::locks_beside_requests_ns`].
fn locks_beside_requests(profile: &Profile, meanings: &mut Meanings<'_>) -> Vec<f64> {
    let mut beside = vec![0.0; profile.threads.len()];
    let mut known = false;
    for stack in profile.stacks.iter().filter(|s| s.state == State::Blocked && s.seen_ns > 0.0) {
        let Some(requests) = stack.requests else { continue };
        known = true;
        if meanings.of(stack).wait == Some(Wait::Futex)
            && let Some(sum) = beside.get_mut(stack.thread as usize)
        {
            let share = (requests.device_ns + requests.queued_ns) / stack.seen_ns;
            *sum += share.clamp(0.0, 1.0) * stack.time_ns;
        }
    }
    if known { beside } else { Vec::new() }
}

/// Meanings of stacks, each found once.
struct Meanings<'a> {
    profile: &'a Profile,
    classifier: &'a Classifier,
    /// By state and innermost frame of the program, then by the functions of the kernel.
    seen: HashMap<(State, Option<SymbolId>), HashMap<Vec<SymbolId>, Class>>,
}

impl Meanings<'_> {
    fn of(&mut self, stack: &StackTime) -> Class {
        if !stack.known {
            return unseen(stack.state);
        }
        let seen = self.seen.entry((stack.state, stack.user.first().copied())).or_default();
        if let Some(class) = seen.get(stack.kernel.as_slice()) {
            return *class;
        }
        let class = self.classifier.classify_stack(self.profile, stack);
        seen.insert(stack.kernel.clone(), class);
        class
    }
}

/// Waits that look like those for a disk, and are for something else.
#[derive(Clone, Copy, Debug, Default)]
struct OffDisk {
    /// Of sleeps for pages beside which no request of the program was under way, the part that waited for a served file system: in calls
    /// that read, and in all others.
    reads: f64,
    others: f64,
    /// Rings whose requests were not followed wait for something else than a disk: a socket, a timer, a file in the cache.
    rings: bool,
}

impl OffDisk {
    /// With fewer of its own requests than one for this number of sleeps, the program did not sleep for requests.
    const SLEEPS: u64 = 20;

    fn new<'a>(profile: &'a Profile, meanings: &mut Meanings<'a>) -> OffDisk {
        // Requests are told by their insertion, which is always seen, not by their completion.
        let Some(block) = profile.block.as_ref() else { return OffDisk::default() };
        let (mut reading, mut other, mut completions) = (0_u64, 0_u64, 0_u64);
        for stack in profile.stacks.iter().filter(|stack| stack.state == State::Blocked) {
            let class = meanings.of(stack);
            let followed = of_ring(stack, class).is_some();
            let count = match class.wait {
                Some(Wait::DeviceRead) if class.operation == Operation::Read => &mut reading,
                Some(Wait::DeviceRead) => &mut other,
                Some(Wait::Completion) if !followed => &mut completions,
                _ => continue,
            };
            *count = count.saturating_add(stack.events);
        }
        let requests = block.own_requests.max(block.kernel_requests);
        let rings = requests.saturating_mul(OffDisk::SLEEPS) < completions;
        let on_served = |file: &&FileUse| {
            let point = file.mount_point.as_deref();
            point.is_some_and(|point| profile.served.iter().any(|mount| mount.point == point))
        };
        let used = |file: &&FileUse| file.reads.calls > 0 || file.mapped;
        if !profile.files.iter().filter(used).any(|file| on_served(&file)) {
            return OffDisk { rings, ..OffDisk::default() };
        }
        // A pipe or socket has no pages.
        let files = || profile.files.iter().filter(|file| file.kind == "regular");
        let all_ns: u64 = files().map(|file| file.reads.time_ns).sum();
        let served_ns: u64 = files().filter(on_served).map(|file| file.reads.time_ns).sum();
        let reads = if all_ns > 0 { served_ns as f64 / all_ns as f64 } else { 0.0 };
        // Each sleep for a disk takes a request; those that reads slept for are not there for others.
        let left = (block.own_reads as f64 - (1.0 - reads) * reading as f64).max(0.0);
        let others = if other > 0 { (1.0 - left / other as f64).max(0.0) } else { 0.0 };
        OffDisk { reads, others, rings }
    }

    fn served_part(self, class: Class) -> f64 {
        match (class.wait, class.operation) {
            (Some(Wait::DeviceRead), Operation::Read) => self.reads,
            (Some(Wait::DeviceRead), _) => self.others,
            _ => 0.0,
        }
    }

    fn corrected(self, class: Class) -> Class {
        match class.wait {
            Some(Wait::Completion) if self.rings => waiting_for(Wait::Poll, class),
            _ => class,
        }
    }
}

/// The meaning of most of a wait of which this part is a server's.
fn mostly(class: Class, served: f64) -> Class {
    if served > 0.5 { waiting_for(Wait::Server, class) } else { class }
}

/// The same, but it waits for this.
fn waiting_for(wait: Wait, class: Class) -> Class {
    Class { wait: Some(wait), layer: wait.layer().unwrap_or(class.layer), ..class }
}

/// The meaning of time whose stack was not taken.
fn unseen(state: State) -> Class {
    let (layer, wait) = match state {
        State::Running => (Layer::Unexplained, None),
        // That it was queued is known without a stack.
        State::Queued => (Layer::CpuQueue, None),
        State::Blocked => (Layer::Unexplained, Some(Wait::Unknown)),
    };
    Class { operation: Operation::Unknown, layer, wait }
}

/// What requests did in a wait, as shares of it.
struct Parts {
    device: f64,
    queued: f64,
    /// No request on a file was under way on any ring of the program: the thread waited for an event.
    event: f64,
    /// It is a wait for a ring, and its requests were followed.
    is_ring: bool,
    /// Thread time.
    delay: Delay,
}

impl Parts {
    /// No request was under way.
    fn rest(&self) -> f64 {
        (1.0 - self.device - self.queued - self.event).max(0.0)
    }

    /// `None`: it is not known, or the wait does not end with a request.
    fn of(stack: &StackTime, class: Class) -> Option<Parts> {
        let requests = stack.requests.filter(|_| class.wait.is_some_and(ends_with_a_request))?;
        let share = |part_ns: f64| (part_ns / stack.seen_ns).clamp(0.0, 1.0);
        if stack.seen_ns.is_nan() || stack.seen_ns <= 0.0 {
            return None;
        }
        // A ring waits for what its requests wait for; what others write to a disk meanwhile is not its concern.
        let ring = of_ring(stack, class).map(share);
        let (is_ring, ring) = (ring.is_some(), ring.unwrap_or(1.0));
        let device = share(requests.device_ns).min(ring);
        let queued = share(requests.queued_ns).min(ring - device);
        let delay = Delay {
            behind_ns: share(requests.behind_others_ns).min(queued) * stack.time_ns,
            beside_ns: share(requests.beside_others_ns).min(device) * stack.time_ns,
        };
        Some(Parts { device, queued, event: 1.0 - ring, is_ring, delay })
    }
}

/// How long a request on a file was under way on a ring in a wait for one; `None`: it is no such wait (requests of io_submit(2) are on
/// no ring), or its requests were not followed.
fn of_ring(stack: &StackTime, class: Class) -> Option<f64> {
    let waits = class.wait == Some(Wait::Completion) && class.operation == Operation::Ring;
    stack.requests?.ring_ns.filter(|_| waits)
}

/// Whether a request to a device ends this wait, whoever submitted it.
fn ends_with_a_request(wait: Wait) -> bool {
    matches!(
        wait,
        Wait::DeviceRead
            | Wait::DeviceWrite
            | Wait::DataWriteback
            | Wait::CacheFlush
            | Wait::Journal
            | Wait::JournalSpace
            | Wait::Completion
    )
}

/// Books entries by layer and closes against the threads' own times.
fn closed_ledger(profile: &Profile, entries: &[Entry]) -> Ledger {
    let mut ledger = Ledger::default();
    let (mut busy, mut wait) = (0.0, 0.0);
    for e in entries {
        let (b, w) = if e.busy { (e.time_ns, 0.0) } else { (0.0, e.time_ns) };
        ledger.add(e.class.layer, b, w);
        busy += b;
        wait += w;
    }
    let whole = profile.thread_ns() as f64;
    let running: f64 = profile.threads.iter().map(|t| t.running_ns as f64).sum();
    let missing_busy = running - busy;
    let missing_wait = whole - running - wait;
    if missing_busy.abs() > ROUNDING * whole || missing_wait.abs() > ROUNDING * whole {
        ledger.add(Layer::Unexplained, missing_busy, missing_wait);
    }
    ledger
}
