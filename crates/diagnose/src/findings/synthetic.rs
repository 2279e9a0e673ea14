//! Runs with known contents, for the tests of the rules. Not compiled into the product.
//!
//! Invariant: the account closes; shares that are given do not add up to the whole leave idle time. Threads after the
//! first were active at the same time, so that each instant is shared evenly.

use std::collections::BTreeMap;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::model::{Cost, LayerCost, MODEL_SCHEMA, StackModel};
use iowhy_core::profile::{
    Access, BlockSample, CallCount, CallCounts, Course, CourseStep, DeviceStep, DeviceUse, FileUse, Profile,
    SIZE_CLASSES, SampledShare, StackTime, State, Symbol, Thread, size_class,
};

use super::{Facts, judge};
use crate::account::{Account, Delay, Entry};
use crate::classify::{Class, Operation, Wait};

/// Builds a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was seen so far.
    pub profile: Profile,
    /// Costs of the machine, where they matter.
    pub model: Option<StackModel>,
    entries: Vec<Entry>,
    thread: u32,
    wall_s: f64,
}

impl Run {
    /// One thread on a machine with two CPUs and 4 GiB, for so many seconds.
    pub fn new(wall_s: f64) -> Run {
        let mut profile = Profile { wall_ns: (wall_s * 1e9) as u64, ..Profile::default() };
        profile.pressure.cpus = 2;
        profile.pressure.memory_bytes = Some(4 << 30);
        profile.pressure.others_cpu_share = Some(0.0);
        Run { profile, model: None, entries: Vec::new(), thread: 0, wall_s }
    }

    fn entry(mut self, class: Class, busy: bool, share: f64, events: u64) -> Run {
        let time_ns = share * self.wall_s * 1e9;
        let off_path = class.wait.is_some_and(|w| !w.on_path());
        let wall_ns = if off_path { 0.0 } else { time_ns };
        let (thread, delay) = (self.thread, Delay::default());
        self.entries.push(Entry { thread, class, busy, time_ns, wall_ns, events, delay });
        self
    }

    /// CPU time, as a share of the wall time, with the samples that a clock of 997 Hz would take.
    pub fn busy(self, operation: Operation, layer: Layer, share: f64) -> Run {
        let samples = (share * self.wall_s * 997.0) as u64;
        self.busy_sampled(operation, layer, share, samples)
    }

    /// A share of the run on the CPU in one operation and layer, seen by this number of samples.
    pub fn busy_sampled(self, operation: Operation, layer: Layer, share: f64, samples: u64) -> Run {
        self.entry(Class { operation, layer, wait: None }, true, share, samples)
    }

    /// A wait, as a share of the wall time, with 1000 sleeps.
    pub fn wait(self, operation: Operation, wait: Wait, share: f64) -> Run {
        self.sleeps(operation, wait, share, 1000)
    }

    /// The same with this number of sleeps.
    pub fn sleeps(self, operation: Operation, wait: Wait, share: f64, sleeps: u64) -> Run {
        let layer = wait.layer().unwrap_or(Layer::Elsewhere);
        self.entry(Class { operation, layer, wait: Some(wait) }, false, share, sleeps)
    }

    /// A kernel stack, the innermost function first, as a share of the wall time. It is beside the account: rules that look
    /// at functions see it.
    pub fn stack(self, names: &[&str], state: State, share: f64, events: u64) -> Run {
        let time_ns = share * self.wall_s * 1e9;
        self.with(|p| {
            let first = p.symbols.len() as u32;
            let symbol = |name: &&str| Symbol { name: (*name).into(), ..Symbol::default() };
            p.symbols.extend(names.iter().map(symbol));
            p.stacks.push(StackTime {
                thread: 0,
                state,
                kernel: (first..p.symbols.len() as u32).collect(),
                user: Vec::new(),
                known: true,
                time_ns,
                wall_ns: time_ns,
                events,
                seen_ns: time_ns,
                requests: None,
            });
        })
    }

    /// Of the wait that was added last, these parts behind and beside requests of others.
    pub fn delayed(mut self, behind: f64, beside: f64) -> Run {
        let last = self.entries.last_mut().expect("a wait comes first");
        last.delay = Delay { behind_ns: behind * last.time_ns, beside_ns: beside * last.time_ns };
        self
    }

    /// Runnable without a CPU, in its own code.
    pub fn queued(self, share: f64) -> Run {
        self.queued_in(Operation::User, share)
    }

    /// Runnable without a CPU, in this operation.
    pub fn queued_in(self, operation: Operation, share: f64) -> Run {
        self.entry(Class { operation, layer: Layer::CpuQueue, wait: None }, false, share, 0)
    }

    /// Another thread, active at the same time as those before it.
    pub fn second_thread(mut self, of: impl FnOnce(Run) -> Run) -> Run {
        let first = self.thread;
        self.thread = self.entries.iter().map(|e| e.thread + 1).max().unwrap_or(0).max(1);
        let mut run = of(self);
        run.thread = first;
        run
    }

    /// Changes the profile.
    pub fn with(mut self, change: impl FnOnce(&mut Profile)) -> Run {
        change(&mut self.profile);
        self
    }

    /// Exact counters: calls and bytes of reads and of writes.
    pub fn io(self, read: (u64, u64), write: (u64, u64)) -> Run {
        self.with(|p| {
            (p.io.read_calls, p.io.read_bytes) = (Some(read.0), Some(read.1));
            (p.io.write_calls, p.io.written_bytes) = (Some(write.0), Some(write.1));
        })
    }

    /// Bytes read from the device.
    pub fn device_read(self, bytes: u64) -> Run {
        self.with(|p| p.io.device_read_bytes = Some(bytes))
    }

    /// One regular file.
    pub fn file(self, size_bytes: u64, change: impl FnOnce(&mut FileUse)) -> Run {
        self.with(|p| {
            let mut file = FileUse {
                path: format!("/data/{}", p.files.len()),
                kind: "regular".into(),
                size_bytes: Some(size_bytes),
                device: Some("vda".into()),
                ..FileUse::default()
            };
            change(&mut file);
            p.files.push(file);
        })
    }

    /// This number of small files that were met open, one after the other.
    pub fn met(self, files: u64) -> Run {
        (0..files).fold(self, |run, _| run.file(200, |f| f.appearances = 1))
    }

    /// System calls, all of them counted.
    pub fn calls(self, calls: &[(&str, u64)]) -> Run {
        self.with(|p| {
            p.code_bytes = Some(0);
            let counts =
                p.calls.get_or_insert_with(|| CallCounts { complete: true, ..CallCounts::default() });
            for (name, calls) in calls {
                counts.calls.push(CallCount { name: (*name).into(), calls: *calls, ..CallCount::default() });
            }
        })
    }

    /// The device, busy for a share of the wall time with so many requests in flight meanwhile.
    pub fn device(self, busy: f64, in_flight: f64, change: impl FnOnce(&mut DeviceUse)) -> Run {
        self.with(|p| {
            let busy_ns = (busy * p.wall_ns as f64) as u64;
            let mut device = DeviceUse {
                name: "vda".into(),
                busy_ns,
                read_ns: (busy_ns as f64 * in_flight) as u64,
                read_ahead_bytes: Some(131_072),
                ..DeviceUse::default()
            };
            change(&mut device);
            p.devices.push(device);
        })
    }

    /// Traced requests: reads, their bytes, of these adjacent, and bytes by read-ahead.
    pub fn block(self, reads: u64, bytes: u64, adjacent: u64, ahead_bytes: u64) -> Run {
        self.with(|p| {
            p.block = Some(BlockSample {
                own_requests: reads,
                own_reads: reads,
                own_read_bytes: bytes,
                own_reads_adjacent: adjacent,
                own_read_ahead_bytes: ahead_bytes,
                ..BlockSample::default()
            });
        })
    }

    /// Closes the account and looks at the facts.
    pub fn facts<T>(&self, look: impl FnOnce(&Facts<'_>) -> T) -> T {
        let wall_ns = self.wall_s * 1e9;
        let threads = self.entries.iter().map(|e| e.thread as usize + 1).max().unwrap_or(1);
        let active = |t: usize| -> f64 {
            self.entries.iter().filter(|e| e.thread as usize == t).map(|e| e.wall_ns).sum::<f64>()
        };
        let each: Vec<f64> = (0..threads).map(active).collect();
        let whole: f64 = each.iter().sum();
        let span = each.iter().copied().fold(0.0, f64::max);
        let mut account = Account { wall_ns, thread_ns: wall_ns * threads as f64, ..Account::default() };
        account.idle_wall_ns = (wall_ns - span).max(0.0);
        let mut profile = self.profile.clone();
        profile.idle_wall_ns = account.idle_wall_ns;
        for e in &self.entries {
            let wall_ns = if whole > 0.0 { e.wall_ns * span / whole } else { 0.0 };
            account.entries.push(Entry { wall_ns, ..*e });
            let (busy, wait) = if e.busy { (e.time_ns, 0.0) } else { (0.0, e.time_ns) };
            account.layers.add(e.class.layer, busy, wait);
        }
        if profile.threads.is_empty() {
            profile.threads =
                vec![Thread { count: 1, lifetime_ns: profile.wall_ns, ..Thread::default() }; threads];
        }
        look(&Facts::new(&profile, &account, self.model.as_ref()))
    }

    /// Findings in the order of the report.
    pub fn findings(&self) -> Vec<Finding> {
        self.facts(judge)
    }

    /// Their identifiers.
    pub fn ids(&self) -> Vec<FindingId> {
        self.findings().iter().map(|f| f.id).collect()
    }
}

/// Steps of a tenth of a second in which `vda` reads: requests, bytes of each, in flight, part of the step that it is busy.
pub fn device_course(steps: impl IntoIterator<Item = (f64, f64, f64, f64)>) -> Course {
    const STEP_NS: u64 = 100_000_000;
    let mut course = Course::default();
    for (n, (requests, bytes, in_flight, busy)) in (1..).zip(steps) {
        let busy_ns = (busy * STEP_NS as f64) as u64;
        let (moved, waited) = ((requests * bytes) as u64, (in_flight * busy_ns as f64) as u64);
        let requests = requests as u64;
        let counts = [requests, moved, 0, 0, requests, waited, busy_ns];
        course.push(CourseStep {
            end_ns: n * STEP_NS,
            devices: vec![DeviceStep { name: "vda".to_owned(), stacked: false, counts }],
            ..CourseStep::default()
        });
    }
    course
}

/// Asserts that the slow run names a cause first and the repaired one does not name it, and that the manual shows the
/// very sentence of the slow run.
pub fn slow_and_repaired(id: FindingId, slow: &Run, repaired: &Run) -> Finding {
    let findings = slow.findings();
    let first = findings.first().expect("something is always found").clone();
    assert_eq!(first.id, id, "{findings:#?}");
    assert!(!repaired.ids().contains(&id), "{:#?}", repaired.findings());
    assert!(!first.evidence.is_empty() && !first.advice.is_empty());
    assert!((0.0..=1.0).contains(&first.share), "{}", first.share);
    let manual = super::manual(id).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        manual.contains(&first.sentence),
        "the manual of {} lacks its example: {}",
        id.id(),
        first.sentence
    );
    first
}

/// Asserts that the bound of a finding leaves this share of the run. Samples make it a little larger.
pub fn bound_leaves(found: &Finding, share: f64) {
    let left = found.gain_rest_unchanged.map_or(0.0, |most| 1.0 / most);
    assert!(left <= share + 1e-6 && left > share - 0.03, "{left} instead of {share}: {found:?}");
}

/// A sampled share.
pub fn looked(hits: u64, n: u64) -> SampledShare {
    SampledShare { hits, n }
}

/// Reads or writes: calls, bytes, and how many of them followed the one before.
pub fn access(calls: u64, bytes: u64, sequential: u64) -> Access {
    Access {
        calls,
        bytes,
        distinct_bytes: bytes,
        sizes: {
            let mut sizes = vec![0; SIZE_CLASSES];
            sizes[size_class(bytes / calls.max(1))] = calls;
            sizes
        },
        sequential: looked(sequential, calls),
        unaligned: looked(0, calls),
        repeated: looked(0, calls),
        after_seek: looked(0, calls),
        direct: looked(0, calls),
        synchronous: looked(0, calls),
        ..Access::default()
    }
}

/// A machine with round costs.
pub fn model() -> StackModel {
    let cost = |c, p, b| LayerCost::exact(Cost { per_call_ns: c, per_page_ns: p, per_byte_ns: b });
    StackModel {
        schema: MODEL_SCHEMA,
        name: "synthetic".into(),
        page_bytes: 4096,
        device_parallelism: 4.0,
        read_ahead_bytes: 131_072,
        layers: BTreeMap::from([
            (Layer::Call, cost(100.0, 0.0, 0.0)),
            (Layer::Filesystem, cost(80.0, 0.0, 0.0)),
            (Layer::Cache, cost(60.0, 20.0, 0.0)),
            (Layer::Copy, cost(0.0, 0.0, 0.05)),
            (Layer::Memory, cost(0.0, 250.0, 0.0)),
            (Layer::Block, cost(3000.0, 30.0, 0.0)),
            (Layer::Device, cost(60_000.0, 0.0, 0.5)),
        ]),
        parts: BTreeMap::new(),
    }
}
