//! Makes the account: gives each stack its meaning and adds up.

use std::collections::HashMap;

use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::profile::{BlockSample, Profile, StackTime, State, SymbolId};

use super::site::{Sites, sorted};
use super::{Account, Entry, Sum};
use crate::classify::{Class, Classifier, Operation, Wait};

/// A gap between stacks and threads below this part of the whole is rounding.
const ROUNDING: f64 = 1e-9;

/// Accounts for all time of a profile.
///
/// - Queued time has the layer [`Layer::CpuQueue`], whatever its stack.
/// - Time whose stack was not seen, and time whose stack holds no function of the table, is [`Layer::Unexplained`];
///   [`Account::unseen_share`] and [`Account::unknown_symbols_share`] keep the two apart.
/// - Waits for data from or to the device are split between [`Layer::Block`] and [`Layer::Device`] in the ratio of the
///   mean times that requests queued and were served, where both were seen.
/// - Where the stacks of a profile do not sum to its threads, the difference is [`Layer::Unexplained`] in
///   [`Account::layers`], with its sign.
pub fn account(profile: &Profile, classifier: &Classifier) -> Account {
    let mut meanings = Meanings { profile, classifier, seen: HashMap::new() };
    let queue_share = profile.block.as_ref().and_then(queue_share);
    let mut sums: HashMap<(u32, Class, bool), Sum> = HashMap::new();
    let mut sites = Sites::default();
    let (mut unseen_ns, mut unknown_ns) = (0.0, 0.0);
    for stack in &profile.stacks {
        let class = meanings.of(stack);
        let busy = stack.state == State::Running;
        if class.layer == Layer::Unexplained {
            *(if stack.known { &mut unknown_ns } else { &mut unseen_ns }) += stack.time_ns;
        }
        sites.add(profile, stack, class);
        let mut book = |class, share: f64, events| {
            sums.entry((stack.thread, class, busy)).or_default().add(
                stack.time_ns * share,
                stack.wall_ns * share,
                events,
            );
        };
        match queue_share {
            Some(share) if matches!(class.wait, Some(Wait::DeviceRead | Wait::DeviceWrite)) => {
                book(class, 1.0 - share, stack.events);
                book(Class { layer: Layer::Block, ..class }, share, 0);
            }
            _ => book(class, 1.0, stack.events),
        }
    }
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
        queue_share,
        sites: sites.sorted(),
    }
}

/// Meanings of stacks, each found once.
struct Meanings<'a> {
    profile: &'a Profile,
    classifier: &'a Classifier,
    seen: HashMap<(&'a [SymbolId], Option<SymbolId>, State), Class>,
}

impl<'a> Meanings<'a> {
    fn of(&mut self, stack: &'a StackTime) -> Class {
        if !stack.known {
            return unseen(stack.state);
        }
        let key = (stack.kernel.as_slice(), stack.user.first().copied(), stack.state);
        *self.seen.entry(key).or_insert_with(|| self.classifier.classify_stack(self.profile, stack))
    }
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

/// Part of the time between the block layer and completion that requests spent in its queue.
fn queue_share(block: &BlockSample) -> Option<f64> {
    let (queue, device) = (block.queue_ns?, block.device_ns?);
    let fits = queue >= 0.0 && device >= 0.0 && queue + device > 0.0 && (queue + device).is_finite();
    fits.then(|| queue / (queue + device))
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
