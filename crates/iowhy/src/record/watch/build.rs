//! From a profile and its explanation to the record.
//!
//! Invariant: the layers sum to the thread time, those of an operation to the operation.

use std::collections::{BTreeMap, HashMap};

use iowhy_core::environment::Environment;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{CallCount, Profile};
use iowhy_core::units;
use iowhy_core::warning::Warning;
use iowhy_diagnose::account::{Account, Entry, OperationTime, Site, Sleep, Sum, WallClock};
use iowhy_diagnose::advice;
use iowhy_diagnose::classify::{Operation, Wait};
use iowhy_diagnose::findings::{Facts, cold};
use iowhy_diagnose::phases::Whose;

use super::commands;
use super::interval::{Basis, Measured};
use super::io::io;
use super::{
    CallSite, Caller, ColdRecord, Exit, LayerShare, ObserverRecord, OperationRecord, RanAs, ThreadRecord,
    WaitRecord, WatchRecord,
};
use crate::analyzer::{Analyzer, Explained};
use crate::record::phases::OverTime;
use crate::record::rank::RankRecord;
use crate::record::{Kind, SCHEMA};

/// What the command knows beside the profile.
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// The command line.
    pub command: String,
    /// See [`WatchRecord::subject`].
    pub subject: String,
    /// See [`WatchRecord::ran_as`].
    pub ran_as: Option<RanAs>,
    /// See [`WatchRecord::rank`].
    pub rank: Option<RankRecord>,
    /// The machine.
    pub environment: Environment,
    /// What came up on the way.
    pub warnings: Vec<Warning>,
}

/// Call sites that are kept; the stacks in the profile hold all of them.
const MAX_CALL_SITES: usize = 50;
/// Threads whose time is split over layers; programs with thousands of them are read by the sums.
const MAX_THREADS: usize = 100;

const SECOND: f64 = 1e9;

/// The record of a run.
pub fn record(
    profile: Profile,
    explained: Explained,
    meaning: &Analyzer,
    invocation: Invocation,
) -> WatchRecord {
    let account = &explained.account;
    let clock = WallClock::new(&profile, account);
    let basis = Basis::new(&profile, account.entries.iter(), account.thread_ns);
    let running = units::total(profile.threads.iter().map(|t| t.running_ns));
    let unexplained = account.layers.get(Layer::Unexplained).total_ns();
    let mut environment = invocation.environment;
    add_device(&mut environment, &profile);
    let over_time = OverTime::new(profile.course.as_ref(), Whose::Program);
    WatchRecord {
        schema: SCHEMA,
        kind: Kind::WatchedProgram,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: invocation.command,
        subject: invocation.subject,
        ran_as: invocation.ran_as,
        rank: invocation.rank,
        environment,
        warnings: invocation.warnings,
        wall_s: profile.wall_ns as f64 / SECOND,
        thread_s: profile.thread_ns() as f64 / SECOND,
        cpu_s: running as f64 / SECOND,
        idle_s: profile.idle_wall_ns / SECOND,
        exit: Exit::from_end(profile.end),
        processes: commands::records(&profile, account, &clock),
        idle_threads: clock.idle_threads(&profile),
        stolen_s: profile.pressure.stolen_ns.map(|ns| ns as f64 / SECOND),
        tier: profile.sight.tier,
        limitations: profile.sight.limitations.clone(),
        observer: observer(&profile, account, &basis),
        io: io(&profile),
        layers: layers(account, &clock, &basis),
        operations: operations(&profile, account, &clock, meaning, &basis),
        waits: waits(&profile, account, &clock, |_| true),
        unexplained_share: if account.thread_ns > 0.0 { unexplained / account.thread_ns } else { 0.0 },
        seen_share: account.seen_share,
        inferred_share: account.inferred_share(),
        findings: explained.findings,
        cold: cold(&Facts::new(&profile, account, None)).map(|cold| ColdRecord {
            device_bytes: cold.device_bytes,
            metadata_bytes: cold.metadata_bytes,
            memory_bytes: cold.memory_bytes,
            warm_low_s: cold.least_ns.map(|ns| ns / SECOND),
            warm_high_s: cold.most_ns / SECOND,
        }),
        devices: profile.devices.clone(),
        threads: threads(&profile, account, &clock),
        call_sites: call_sites(account, &clock, &basis),
        file_without_names: file_without_names(account),
        names_of_scripts: advice::names_of_scripts(&profile, account).map(str::to_owned),
        over_time,
        proof: None,
        profile,
    }
}

/// The device of the file that moved most bytes is what the environment is about.
fn add_device(environment: &mut Environment, profile: &Profile) {
    let Some(file) = profile.files.iter().find(|file| file.device.is_some()) else { return };
    environment.file_system.clone_from(&file.file_system);
    environment.device.clone_from(&file.device);
    environment.devices = profile.devices.iter().map(|d| d.name.clone()).collect();
    if let Some(device) = profile.devices.iter().find(|d| Some(&d.name) == file.device.as_ref()) {
        environment.scheduler.clone_from(&device.scheduler);
        environment.read_ahead_bytes = device.read_ahead_bytes;
        environment.queue_requests = device.queue_requests;
        environment.rotational = device.rotational;
        environment.throttle.clone_from(&device.throttle);
    }
}

fn observer(profile: &Profile, account: &Account, basis: &Basis) -> ObserverRecord {
    let seen = &profile.observer;
    // A file that is met for the first time costs more than the self-test knows of.
    let sampled =
        Measured::of(account.entries.iter().filter(|e| e.busy && e.class.operation == Operation::Observer));
    let (share, low, _) = basis.share(&sampled);
    let more_is_seen = low * account.thread_ns > seen.in_program_ns;
    let in_program_ns = if more_is_seen { share * account.thread_ns } else { seen.in_program_ns };
    let cost_ns = seen.own_cpu_ns as f64 + in_program_ns;
    ObserverRecord {
        cost_share: if profile.wall_ns > 0 { cost_ns / profile.wall_ns as f64 } else { 0.0 },
        own_cpu_s: seen.own_cpu_ns as f64 / SECOND,
        in_program_s: in_program_ns / SECOND,
        events: seen.events,
        lost: seen.lost,
        switch_duty: seen.switch_duty,
        recorded_calls: seen.recorded_calls,
        peak_memory_bytes: seen.peak_memory_bytes,
    }
}

/// One layer's entry.
fn layer_share(id: Layer, part: &Measured, wall_ns: f64, basis: &Basis) -> LayerShare {
    let (share, share_low, share_high) = basis.share(part);
    LayerShare {
        id,
        busy_s: part.busy_ns / SECOND,
        wait_s: part.wait_ns / SECOND,
        wall_s: wall_ns / SECOND,
        share,
        share_low,
        share_high,
    }
}

/// The layers of some entries, as shares of these entries.
fn split(profile: &Profile, clock: &WallClock, entries: &[&Entry]) -> Vec<LayerShare> {
    let mut sums: BTreeMap<Layer, (Measured, f64)> = BTreeMap::new();
    for entry in entries {
        let (part, wall_ns) = sums.entry(entry.class.layer).or_default();
        part.add(entry);
        *wall_ns += clock.wall_ns(entry);
    }
    let whole_ns = entries.iter().map(|entry| entry.time_ns).sum();
    let basis = Basis::new(profile, entries.iter().copied(), whole_ns);
    let alone = sums.len() == 1;
    let mut layers: Vec<LayerShare> =
        sums.into_iter().map(|(id, (part, wall_ns))| layer_share(id, &part, wall_ns, &basis)).collect();
    if alone && let Some(only) = layers.first_mut() {
        // All of it is all of it, however few samples there are.
        (only.share_low, only.share_high) = (only.share, only.share);
    }
    layers
}

/// The layers of the whole. The account's own ledger decides: it also holds what no entry does.
fn layers(account: &Account, clock: &WallClock, basis: &Basis) -> Vec<LayerShare> {
    let on_the_clock = clock.layers(account);
    let entry = |id: &Layer| {
        let (time, wall_ns) = (account.layers.get(*id), on_the_clock.get(*id).total_ns());
        if time.total_ns() == 0.0 && wall_ns == 0.0 {
            return None;
        }
        let mut part = Measured::of(account.entries.iter().filter(|e| e.class.layer == *id));
        part.busy_ns = time.busy_ns;
        part.wait_ns = time.wait_ns;
        Some(layer_share(*id, &part, wall_ns, basis))
    };
    Layer::ALL.iter().filter_map(entry).collect()
}

fn waits(
    profile: &Profile,
    account: &Account,
    clock: &WallClock,
    pick: impl Fn(&Entry) -> bool,
) -> Vec<WaitRecord> {
    let record = |(sleep, sum): (Sleep, Sum)| {
        let of = |layer| {
            let picked = |e: &Entry| e.class.wait == Some(sleep.wait) && e.class.layer == layer && pick(e);
            account.sum(picked).time_ns / SECOND
        };
        WaitRecord {
            id: sleep.id().to_owned(),
            words: sleep.words().to_owned(),
            on_path: sleep.wait.on_path(),
            time_s: sum.time_ns / SECOND,
            wall_s: sum.wall_ns / SECOND,
            share: if account.thread_ns > 0.0 { sum.time_ns / account.thread_ns } else { 0.0 },
            events: sum.events,
            device_s: of(Layer::Device),
            // What a limit of the block layer holds back was seen in no queue.
            queued_s: if sleep.wait == Wait::BlockThrottle { 0.0 } else { of(Layer::Block) },
            behind_others_s: sum.delay.behind_ns / SECOND,
            beside_others_s: sum.delay.beside_ns / SECOND,
        }
    };
    clock.waits(profile, account, &pick).into_iter().map(record).collect()
}

fn operations(
    profile: &Profile,
    account: &Account,
    clock: &WallClock,
    meaning: &Analyzer,
    basis: &Basis,
) -> Vec<OperationRecord> {
    let record = |time: OperationTime| {
        let operation = time.operation;
        let entries: Vec<&Entry> =
            account.entries.iter().filter(|e| e.class.operation == operation).collect();
        let sum = Measured::of(entries.iter().copied());
        let (share, share_low, share_high) = basis.share(&sum);
        OperationRecord {
            id: operation.id().to_owned(),
            calls: calls(profile, meaning, operation),
            time_s: time.sum.time_ns / SECOND,
            wall_s: entries.iter().map(|e| clock.wall_ns(e)).sum::<f64>() / SECOND,
            share,
            share_low,
            share_high,
            events: sum.samples + sum.sleeps,
            layers: split(profile, clock, &entries),
            waits: waits(profile, account, clock, |e| e.class.operation == operation),
        }
    };
    account.operations().into_iter().map(record).collect()
}

/// How many calls an operation had: reads and writes are counted by the kernel, the others by the observer.
fn calls(profile: &Profile, meaning: &Analyzer, operation: Operation) -> Option<u64> {
    let by_kernel = match operation {
        Operation::Read => profile.io.read_calls,
        Operation::Write => profile.io.write_calls,
        Operation::User | Operation::Interrupt | Operation::Observer | Operation::Unknown => return None,
        _ => None,
    };
    let counts = profile.calls.as_ref().filter(|counts| counts.complete);
    by_kernel.or_else(|| {
        // The table of kernel functions knows which operation a call is: there is no second list of names.
        let of_operation = |call: &&CallCount| meaning.operation_of_call(&call.name) == operation;
        let mut counts = counts?.calls.iter().filter(of_operation).peekable();
        counts.peek()?;
        Some(counts.map(|call| call.calls).sum())
    })
}

fn threads(profile: &Profile, account: &Account, clock: &WallClock) -> Vec<ThreadRecord> {
    let mut order: Vec<usize> = (0..profile.threads.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(profile.threads[*i].lifetime_ns));
    order.truncate(MAX_THREADS);
    let mut entries: HashMap<u32, Vec<&Entry>> = HashMap::new();
    for entry in &account.entries {
        entries.entry(entry.thread).or_default().push(entry);
    }
    let thread = |index: usize| {
        let t = &profile.threads[index];
        let own = entries.get(&(index as u32)).map_or(&[] as &[&Entry], Vec::as_slice);
        ThreadRecord {
            name: t.name.clone(),
            pid: t.pid,
            tid: t.tid,
            count: t.count,
            lifetime_s: t.lifetime_ns as f64 / SECOND,
            running_s: t.running_ns as f64 / SECOND,
            queued_s: t.queued_ns as f64 / SECOND,
            blocked_s: t.blocked_ns as f64 / SECOND,
            layers: split(profile, clock, own),
        }
    };
    order.into_iter().map(thread).collect()
}

/// Names are missed where this part of the thread time is of functions without: [`WatchRecord::file_without_names`]. Chosen.
const NAMES_MATTER: f64 = 0.1;

fn file_without_names(account: &Account) -> Option<String> {
    let (file, time_ns) = account.most_unnamed.as_ref()?;
    (*time_ns >= NAMES_MATTER * account.thread_ns && *time_ns > 0.0).then(|| file.clone())
}

/// Who asked, most time first.
fn call_sites(account: &Account, clock: &WallClock, basis: &Basis) -> Vec<CallSite> {
    let caller = |c: &iowhy_diagnose::account::Caller| Caller {
        function: c.function.clone(),
        object: c.object.clone().filter(|object| !object.is_empty()),
    };
    let record = |site: &Site| {
        let sum = Measured::of(site.entries.iter());
        let (share, share_low, share_high) = basis.share(&sum);
        CallSite {
            thread: site.thread.clone(),
            function: site.function.clone(),
            object: Some(site.object.clone()).filter(|object| !object.is_empty()),
            callers: site.callers.iter().map(caller).collect(),
            callers_share: site.callers_share,
            operation: site.operation.id().to_owned(),
            time_s: site.sum.time_ns / SECOND,
            wall_s: site.entries.iter().map(|e| clock.wall_ns(e)).sum::<f64>() / SECOND,
            share,
            share_low,
            share_high,
            events: sum.samples + sum.sleeps,
        }
    };
    let of_scripts = Some(&account.script_sites).filter(|sites| !sites.is_empty());
    of_scripts.unwrap_or(&account.sites).iter().take(MAX_CALL_SITES).map(record).collect()
}
