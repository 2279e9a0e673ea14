//! Queueing for a CPU, shared out over what it goes with. On a crowded machine a thread queues each time it wakes and
//! each time its turn on a CPU ends: a program that sleeps half as often, or computes half as much, queues half as
//! long. Who repairs a cause therefore spares its part of the queueing too, whoever crowds the CPUs.
//!
//! Queueing inside an operation is shared out over that operation, else over the thread. Of it, the sleeps carry the
//! part `sleeps / (sleeps + preemptions)`, in proportion to their number, and CPU time the rest, in proportion to its
//! length. The estimate supposes that a turn in the queue takes equally long after a sleep and after a preemption.
//!
//! Invariant: thread time and wall time of each thread stay what they were. What may not enter: who crowds the CPUs.

use std::collections::HashMap;

use iowhy_core::layer::Layer;
use iowhy_core::profile::Profile;

use crate::account::{Account, Delay, Entry, Sum};
use crate::classify::Operation;

/// The entries with all queueing in its place. What belongs to nothing (a thread of which nothing else was seen) stays
/// an entry of its own.
pub(super) fn shared_out(profile: &Profile, account: &Account) -> Vec<Entry> {
    let mut queues: HashMap<(u32, Operation), Sum> = HashMap::new();
    let mut entries: Vec<Entry> = Vec::with_capacity(account.entries.len());
    for e in &account.entries {
        if e.class.layer == Layer::CpuQueue {
            let sum = queues.entry((e.thread, e.class.operation)).or_default();
            sum.time_ns += e.time_ns;
            sum.wall_ns += e.wall_ns;
        } else {
            entries.push(*e);
        }
    }
    let mut members: HashMap<u32, Vec<usize>> = HashMap::new();
    for (index, e) in entries.iter().enumerate() {
        members.entry(e.thread).or_default().push(index);
    }
    let raw = entries.clone();
    for e in account.entries.iter().filter(|e| e.class.layer == Layer::CpuQueue) {
        // Each pair of thread and operation once, in the order of the account, so that sums are the same in every run.
        let Some(queue) = queues.remove(&(e.thread, e.class.operation)) else { continue };
        let of_thread = members.get(&e.thread).map_or(&[][..], Vec::as_slice);
        let inside: Vec<usize> =
            of_thread.iter().copied().filter(|i| raw[*i].class.operation == e.class.operation).collect();
        let foreign = [Operation::Unknown, Operation::Interrupt, Operation::Observer];
        let known = !foreign.contains(&e.class.operation);
        let after_sleep = after_sleep(profile, e.thread);
        let mut parts = if known { parts(&raw, &inside, after_sleep) } else { Vec::new() };
        if parts.is_empty() {
            parts = self::parts(&raw, of_thread, after_sleep);
        }
        if parts.is_empty() {
            entries.push(Entry { time_ns: queue.time_ns, wall_ns: queue.wall_ns, ..*e });
        }
        for (index, part) in parts {
            // An entry of its own: a sleep off the path takes no wall time, the queueing after it does.
            let (time_ns, wall_ns) = (part * queue.time_ns, part * queue.wall_ns);
            entries.push(Entry { time_ns, wall_ns, events: 0, delay: Delay::default(), ..raw[index] });
        }
    }
    entries
}

/// The part of a thread's turns in the queue that come after a sleep.
fn after_sleep(profile: &Profile, thread: u32) -> f64 {
    let Some(thread) = profile.threads.get(thread as usize) else { return 0.5 };
    let turns = thread.sleeps.saturating_add(thread.preemptions);
    if turns == 0 { 0.5 } else { thread.sleeps as f64 / turns as f64 }
}

/// What each of these entries takes of the queueing among them; the parts sum to 1. Empty where there is nothing that
/// queueing goes with. Interrupts are others' work: how long they take decides nothing.
fn parts(entries: &[Entry], among: &[usize], after_sleep: f64) -> Vec<(usize, f64)> {
    let sleeps = |e: &Entry| if e.busy { 0.0 } else { e.events as f64 };
    let runs = |e: &Entry| {
        if e.busy && e.class.operation != Operation::Interrupt { e.time_ns.max(0.0) } else { 0.0 }
    };
    let slept: f64 = among.iter().map(|i| sleeps(&entries[*i])).sum();
    let ran: f64 = among.iter().map(|i| runs(&entries[*i])).sum();
    let after_sleep = match (slept > 0.0, ran > 0.0) {
        (true, true) => after_sleep,
        (true, false) => 1.0,
        (false, true) => 0.0,
        (false, false) => return Vec::new(),
    };
    let part = |e: &Entry| {
        after_sleep * sleeps(e) / slept.max(f64::MIN_POSITIVE)
            + (1.0 - after_sleep) * runs(e) / ran.max(f64::MIN_POSITIVE)
    };
    among.iter().map(|i| (*i, part(&entries[*i]))).filter(|(_, part)| *part > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Wait;
    use crate::findings::synthetic::Run;

    #[test]
    fn queueing_goes_with_sleeps_and_cpu_time_and_no_time_is_lost() {
        let run = Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, 0.1)
            .busy(Operation::User, Layer::Program, 0.1)
            .queued(0.8);
        run.facts(|f| {
            let shared = shared_out(f.profile, f.account);
            let all = |of: &[Entry]| of.iter().map(|e| e.wall_ns).sum::<f64>();
            assert!((all(&shared) - all(&f.account.entries)).abs() < 1.0);
            assert!(shared.iter().all(|e| e.class.layer != Layer::CpuQueue));
        });
        // Queued in the program's own code: nothing of it goes with the reads.
        let of_reads = |run: &Run| run.facts(|f| f.removable(|e| f64::from(!e.busy))).booked_ns;
        assert!((of_reads(&run) - 1e9).abs() < 1.0);
        // Nobody knows in what: with as many turns after a sleep as after a preemption, half of it.
        let unknown = Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, 0.1)
            .busy(Operation::User, Layer::Program, 0.1)
            .queued_in(Operation::Unknown, 0.8);
        assert!((of_reads(&unknown) - 5e9).abs() < 1.0);
    }
}
