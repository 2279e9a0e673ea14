//! What is said first of a whole machine.

use iowhy_core::layer::Layer;
use iowhy_core::machine::{Lost, MachineProfile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MachineAccount, Meant, Waiter};

/// A stall or wait below this share of the time is not worth a word: PSI's averages, which people know from `/proc/pressure` and from
/// monitoring, are alarming from some per cent on. It is also the smallest gain that a finding is printed for.
const MATTERS: f64 = 0.01;
/// A part that makes a sentence true: most of it.
const MOST: f64 = 0.5;

/// The verdict, as facts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Verdict {
    /// No wait for I/O or memory was seen, and CPUs were free.
    Idle {
        /// The kernel's own figures say the same, and nothing was lost, put together or without a group: nobody waited.
        proven: bool,
    },
    /// No wait for I/O or memory was seen, but for CPUs.
    CpuBound {
        /// Share of the time in which a task was runnable without a CPU (PSI, or computed).
        share: f64,
    },
    /// One process causes most of the delay of others. Never a thread of the kernel: that works for others.
    Culprit {
        /// Index of the subject.
        subject: u32,
        /// Index of the device; `null`: not at one.
        device: Option<u32>,
        /// Its part of all waits of processes.
        share: f64,
        /// Index of whom it delays most.
        victim: u32,
    },
    /// One process waits most, and no process causes most of all waits.
    Alone {
        /// Index of the subject.
        subject: u32,
        /// Index of the device; `null`: it is not known, or there is none.
        device: Option<u32>,
        /// The layer that it waits for most.
        layer: Layer,
        /// Its part of all waits of processes.
        share: f64,
        /// The part of its own wait that others cause.
        caused: f64,
        /// Most of its wait for the device nobody had a request there or in its queue: something holds them back before (a limit of its
        /// control group). Inferred; never where events of requests were lost.
        held: bool,
    },
    /// Many wait, and no one stands out.
    Many {
        /// Index of the device that most wait for; `null`: none.
        device: Option<u32>,
        /// Processes that waited.
        waiters: u64,
    },
}

/// Whether a process waited for its device mostly while no request was there.
fn is_held(profile: &MachineProfile, waiter: &Waiter, device: u32) -> bool {
    let of = profile.waits.iter().filter(|w| w.subject == waiter.subject && w.device == Some(device));
    let (time_ns, empty_ns) =
        of.fold((0.0, 0.0), |sum, wait| (sum.0 + wait.time_ns as f64, sum.1 + wait.without_requests_ns));
    profile.lost.requests == 0 && time_ns > 0.0 && empty_ns >= MOST * time_ns
}

/// Whether the kernel's own figures confirm that nobody waited, and none of those who are meant may have been missed.
fn is_proven(profile: &MachineProfile, meant: Meant<'_>) -> bool {
    let below = MATTERS * profile.wall_ns as f64;
    let confirmed = profile.counted.is_some_and(|c| c.io_some_ns < below && c.memory_some_ns < below);
    let may_be_meant = |subject: u32| {
        let of = profile.subjects.get(subject as usize);
        !meant(subject) && of.is_some_and(|of| !of.kernel && of.groups.is_empty())
    };
    confirmed
        && profile.lost == Lost::default()
        && profile.gaps.is_empty()
        && !profile.waits.iter().any(|wait| may_be_meant(wait.subject))
}

/// The verdict over an account of the subjects that are meant.
pub fn verdict(profile: &MachineProfile, account: &MachineAccount, meant: Meant<'_>) -> Verdict {
    let wall_ns = (profile.wall_ns as f64).max(1.0);
    let all_ns = account.waited_ns;
    if all_ns < MATTERS * wall_ns {
        let queued_ns = profile.counted.unwrap_or(profile.computed).cpu_some_ns;
        let own_ns: u64 =
            (0u32..).zip(&profile.subjects).filter(|(at, _)| meant(*at)).map(|(_, s)| s.queued_ns).sum();
        let share = queued_ns / wall_ns;
        let queues = share >= MATTERS && own_ns as f64 >= MATTERS * wall_ns;
        let idle = || Verdict::Idle { proven: is_proven(profile, meant) };
        return if queues { Verdict::CpuBound { share } } else { idle() };
    }
    let device = account.devices.first().filter(|part| part.time_ns >= MOST * all_ns).map(|part| part.of);
    // A process that delays others for the larger part of what anybody waits. Kernel threads work for others, for whom is not known.
    let is_kernel = |subject: u32| profile.subjects.get(subject as usize).is_none_or(|s| s.kernel);
    let caused_ns: f64 = account.culprits.iter().map(|culprit| culprit.time_ns).sum();
    if let Some(first) = account.culprits.iter().find(|culprit| !is_kernel(culprit.subject))
        && caused_ns >= all_ns - caused_ns
        && first.time_ns >= MOST * caused_ns
        && let Some(victim) = first.victims.first()
    {
        let device = first.devices.first().map(|part| part.of);
        return Verdict::Culprit {
            subject: first.subject,
            device,
            share: first.time_ns / all_ns,
            victim: victim.of,
        };
    }
    match account.waiters.first() {
        Some(first) if first.time_ns >= MOST * all_ns => {
            let device = first.devices.first().filter(|part| part.time_ns >= MOST * first.time_ns);
            Verdict::Alone {
                subject: first.subject,
                device: device.map(|part| part.of),
                layer: first.layers.first().map_or(Layer::Unexplained, |part| part.layer),
                share: first.time_ns / all_ns,
                caused: first.caused_by.iter().map(|part| part.time_ns).sum::<f64>() / first.time_ns,
                held: device.is_some_and(|part| is_held(profile, first, part.of)),
            }
        }
        _ => Verdict::Many { device, waiters: account.waiters.len() as u64 },
    }
}
