//! The rule `process-starts`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::profile::{Profile, StackTime, State, Thread};

use super::removable::Removable;
use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::ProcessStarts,
    claim: "the same program is started again and again",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("what a program does when it starts and ends is not replayed"),
};

/// Functions of the kernel in which a process makes another one.
const FORK: [&str; 2] = ["kernel_clone", "_do_fork"];

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let starts = Starts::new(facts);
    let (name, most) = starts.named.iter().max_by(|a, b| a.1.again.total_cmp(&b.1.again))?;
    if most.again <= 0.0 {
        return None;
    }
    let kernel = facts.process_starts();
    let part = |e: &Entry| {
        if kernel(e) {
            starts.again(e)
        } else if e.busy && e.class.operation == Operation::User {
            starts.again(e) * starts.of_thread(&starts.linked, e.thread)
        } else {
            0.0
        }
    };
    let share = |pick: &dyn Fn(&Entry) -> bool| -> f64 {
        let picked = facts.account.entries.iter().filter(|e| pick(e));
        facts.wall_share(picked.map(|e| part(e) * e.wall_ns).sum())
    };
    let is = |operation: Operation| move |e: &Entry| e.class.operation == operation;
    let cost_ns: f64 = facts.wall_ns_of(part);
    let all: f64 = starts.named.values().map(|named| named.again).sum();
    let programs = starts.named.values().filter(|named| named.again > 0.0).count();
    // What such a process does for itself before its work is not told from it: with it up to all of its time goes.
    let whole = |e: &Entry| part(e).max(starts.after_the_first(e));
    let whole_ns: f64 = facts.wall_ns_of(whole);
    let samples: f64 = facts.account.entries.iter().map(|e| part(e) * e.events as f64).sum();
    let removable = facts.removable(part);
    let most_ns = facts.removable(whole).most_ns.max(removable.most_ns);
    let evidence = vec![
        format!(
            "fork, exec and exit: {} of wall time; maps and page faults of processes that take none but those of a start: {}; the dynamic \
             linker: {} ({} samples)",
            say::percent(share(&is(Operation::Process))),
            say::percent(share(&|e| matches!(e.class.operation, Operation::Map | Operation::Fault))),
            say::percent(share(&is(Operation::User))),
            say::count(samples.round()),
        ),
        format!(
            "{} for each start after the first {}",
            say::time(cost_ns / all),
            if programs > 1 { format!("of each of {programs} programs") } else { "one".to_owned() }
        ),
        format!(
            "all that these processes do takes {}; what of their own code is done before their work at each start is not told from it",
            say::percent(facts.wall_share(whole_ns))
        ),
    ];
    Draft {
        id: FindingId::ProcessStarts,
        cost_ns,
        removable: Some(Removable { most_ns, ..removable }),
        sentence: format!(
            "Starting and ending processes takes {} of wall time: {} were `{name}`",
            say::percent(facts.wall_share(cost_ns)),
            say::count(most.count as f64)
        ),
        evidence,
        advice: "Start fewer processes: hand one process many files (xargs, `find -exec ... +`), use its batch mode or a server, or do its \
                 work within the program that starts it."
            .to_owned(),
    }
    .finding(facts)
}

/// Processes of one name.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    count: u64,
    lifetime_ns: u64,
    /// How many of them came after another one, on average: as many as existed at a time were the first.
    again: f64,
}

/// The processes of a run by their names.
struct Starts<'a> {
    profile: &'a Profile,
    named: BTreeMap<&'a str, Named>,
    /// Names of processes that have a row of their own.
    by_pid: BTreeMap<u32, &'a str>,
    /// By thread: samples in the program's own code, and those of them in the dynamic linker.
    linked: BTreeMap<u32, (u64, u64)>,
    /// By thread: samples of fork, exec and exit, and those in a fork.
    forked: BTreeMap<u32, (u64, u64)>,
}

impl<'a> Starts<'a> {
    fn new(facts: &Facts<'a>) -> Starts<'a> {
        let profile = facts.profile;
        let (mut named, mut by_pid) = (BTreeMap::<&str, Named>::new(), BTreeMap::new());
        for process in &profile.processes {
            named.entry(process.name.as_str()).or_default().count += process.count.max(1);
            by_pid.insert(process.pid, process.name.as_str());
        }
        for thread in profile.threads.iter().filter(|t| t.tid == t.pid || t.count > 1) {
            if let Some(named) = named.get_mut(name_of(&by_pid, thread)) {
                named.lifetime_ns = named.lifetime_ns.saturating_add(thread.lifetime_ns);
            }
        }
        let wall_ns = (profile.wall_ns as f64).max(1.0);
        for of in named.values_mut() {
            let count = of.count.max(1) as f64;
            of.again = count - (of.lifetime_ns as f64 / wall_ns).clamp(1.0, count);
        }
        let mut linked = BTreeMap::<u32, (u64, u64)>::new();
        let mut forked = BTreeMap::<u32, (u64, u64)>::new();
        for entry in
            facts.account.entries.iter().filter(|e| e.busy && e.class.operation == Operation::Process)
        {
            forked.entry(entry.thread).or_default().0 += entry.events;
        }
        for stack in profile.stacks.iter().filter(|s| s.known && s.state == State::Running) {
            if stack.kernel.is_empty() {
                let (all, hits) = linked.entry(stack.thread).or_default();
                *all += stack.events;
                *hits += if is_linking(profile, stack) { stack.events } else { 0 };
            } else if profile.kernel_names(stack).any(|name| FORK.contains(&name)) {
                forked.entry(stack.thread).or_default().1 += stack.events;
            }
        }
        Starts { profile, named, by_pid, linked, forked }
    }

    /// The part of a thread's samples, 0 to 1.
    fn of_thread(&self, samples: &BTreeMap<u32, (u64, u64)>, thread: u32) -> f64 {
        let (all, hits) = samples.get(&thread).copied().unwrap_or_default();
        if all == 0 { 0.0 } else { (hits as f64 / all as f64).min(1.0) }
    }

    /// The part of a thread's time that belongs to processes that came after another of their name.
    fn after_the_first(&self, entry: &Entry) -> f64 {
        let thread = self.profile.threads.get(entry.thread as usize);
        let named = thread.and_then(|thread| self.named.get(name_of(&self.by_pid, thread)));
        named.map_or(0.0, |named| named.again / named.count.max(1) as f64)
    }

    /// The same of an entry of a start: to fork belongs to the process that is made.
    fn again(&self, entry: &Entry) -> f64 {
        let own = self.after_the_first(entry);
        if entry.class.operation != Operation::Process {
            return own;
        }
        let (again, all) = self
            .named
            .values()
            .fold((0.0, 0), |(again, all), named| (again + named.again, all + named.count));
        own.max(self.of_thread(&self.forked, entry.thread) * again / all.max(1) as f64)
    }
}

/// The name of a thread's process; of a pool, its own.
fn name_of<'a>(by_pid: &BTreeMap<u32, &'a str>, thread: &'a Thread) -> &'a str {
    by_pid.get(&thread.pid).copied().unwrap_or(&thread.name)
}

/// Whether a sample lies in the dynamic linker, by the names that the ABIs of Linux give it: `ld-linux-x86-64.so.2`, `ld64.so.2`,
/// `ld-musl-aarch64.so.1`, `ld.so.1`. What the linker calls (constructors of libraries) is not its work.
fn is_linking(profile: &Profile, stack: &StackTime) -> bool {
    stack.user.first().and_then(|id| profile.symbols.get(*id as usize)).is_some_and(|symbol| {
        let object = symbol.object.as_deref().unwrap_or(&symbol.name).trim_start_matches('[');
        let name = object.strip_prefix("ld64").or_else(|| object.strip_prefix("ld"));
        name.is_some_and(|rest| rest.starts_with(".so") || (rest.starts_with('-') && rest.contains(".so")))
    })
}

impl Facts<'_> {
    /// Whether this is the start or the end of a process: what fork, exec and exit do, and maps and page faults of processes that take
    /// none but those of a start.
    pub(super) fn process_starts(&self) -> impl Fn(&Entry) -> bool + use<'_> {
        let at_work = self.processes_that_fault();
        move |e| {
            let of_start = match e.class.operation {
                Operation::Process => true,
                Operation::Map | Operation::Fault => !at_work(e),
                _ => false,
            };
            e.busy && of_start && !matches!(e.class.layer, Layer::Program | Layer::Copy | Layer::Unexplained)
        }
    }
}
