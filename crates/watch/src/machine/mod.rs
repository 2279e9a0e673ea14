//! A watch of the whole machine: every wait for a device, for memory or for the server of a file system, of every task. The observer in
//! the kernel is the one of a single program, with a filter that admits all; system calls are neither counted nor timed.
//! Memory is bounded whatever the number of processes: what does not fit is counted.

mod calls;
mod devices;
mod ledger;
mod period;
mod slow;
mod subjects;
mod turn;

use std::time::Duration;

use iowhy_core::machine::{MachineProfile, Stalls};
use iowhy_core::problem::Problem;
use iowhy_linux::clock::{monotonic_ns, thread_cpu_ns};
use iowhy_linux::process::usable;
use iowhy_linux::psi::Totals;
use iowhy_linux::signals::Signals;

use crate::in_kernel::{MachineObserver, may_load};
use period::Collector;
use turn::{PERIOD_NS, TURN_NS, names_of, turn};

pub use calls::{Condition, watch_calls};

/// Watches the machine for so long, or until somebody interrupts.
///
/// # Errors
/// The observer may not be loaded, or the kernel refuses it; with the fix.
pub fn watch_machine(limit: Duration) -> Result<MachineProfile, Problem> {
    usable()?;
    let refused = |why: String| {
        Problem::refused(format!("cannot observe the whole machine: {why}"))
            .hint("as root: `sudo iowhy --all`; or `iowhy attach PID` for one process of your own")
    };
    may_load().map_err(|why| refused(why.to_string()))?;
    let signals = Signals::listen();
    let own_before_ns = thread_cpu_ns();
    let mut observer = MachineObserver::open().map_err(refused)?;
    let failed = |why| Problem::failed(format!("the observer cannot be read: {why}"));
    let psi_before = Totals::of_machine();
    let begin_ns = monotonic_ns();
    let mut collector = Collector::new(begin_ns, &mut observer).map_err(failed)?;
    let end_ns = begin_ns.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    let (mut interrupted, mut period_ends_ns) = (false, begin_ns + PERIOD_NS);
    let mut psi = psi_before;
    loop {
        let now_ns = monotonic_ns();
        let over = interrupted || now_ns >= end_ns;
        if over || now_ns >= period_ends_ns || collector.is_full() {
            psi = Totals::of_machine();
            collector.close_period(&mut observer).map_err(failed)?;
            period_ends_ns = monotonic_ns() + PERIOD_NS;
        }
        if over {
            break;
        }
        interrupted =
            turn(&mut observer, signals.as_ref(), None, end_ns.min(period_ends_ns).min(now_ns + TURN_NS));
        collector.take(&mut observer);
    }
    let mut profile = collector.finish(&mut observer);
    profile.interrupted = interrupted;
    profile.counted = psi.zip(psi_before).map(|(now, before)| stalls(&now.since(&before)));
    name_stacks(&mut profile, &mut observer);
    profile.cost.own_cpu_ns = thread_cpu_ns() - own_before_ns;
    Ok(profile)
}

fn stalls(of: &Totals) -> Stalls {
    Stalls {
        cpu_some_ns: of.cpu_some_ns as f64,
        io_some_ns: of.io_some_ns as f64,
        io_full_ns: of.io_full_ns as f64,
        memory_some_ns: of.memory_some_ns as f64,
        memory_full_ns: of.memory_full_ns as f64,
    }
}

/// Replaces the kernel's numbers of stacks by functions.
fn name_stacks(profile: &mut MachineProfile, observer: &mut MachineObserver) {
    let (stacks, place) = names_of(profile.waits.iter().filter_map(|wait| wait.stack).collect(), observer);
    profile.stacks = stacks;
    profile.waits.iter_mut().for_each(|wait| wait.stack = wait.stack.and_then(&place));
}
