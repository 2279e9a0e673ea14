//! The record of a watch of the whole machine: verdict, account, how it closes against the kernel's figures, the raw profile last.

use std::path::Path;

use iowhy_core::environment::Environment;
use iowhy_core::machine::{MachineProfile, OverheadExceeded, Subject};
use iowhy_core::profile::{Course, GroupLimit};
use iowhy_core::units::{counted, per_cent};
use iowhy_core::warning::Warning;
use iowhy_diagnose::machine::{Closure, MachineAccount, Verdict, closure};
use iowhy_diagnose::phases::Whose;
use iowhy_linux::control_group::GroupSeen;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phases::OverTime;
use super::watch::Invocation;
use super::{Kind, SCHEMA};

/// Who waited for what, and who caused it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WholeMachineRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// Machine.
    pub environment: Environment,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// The control group that was asked about; absent: the whole machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupRecord>,
    /// Limits of the control groups of the process that waits most, where it still runs.
    pub limits: Vec<GroupLimit>,
    /// With `--live`, how long it was watched in all, in nanoseconds: the account is of the interval that was shown last. Absent: of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_ns: Option<u64>,
    /// What is said first.
    pub verdict: Verdict,
    /// What PSI counted, and how much of it the waits of the tasks explain.
    pub closure: Vec<Closure>,
    /// Who waited, and who caused it.
    pub account: MachineAccount,
    /// What happened over time; phases and pauses are those of requests of all devices, or of a control group's where they are counted.
    #[serde(flatten)]
    pub over_time: OverTime,
    /// What was seen.
    pub profile: MachineProfile,
}

/// A control group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupRecord {
    /// Its path below the root of its hierarchy.
    pub path: String,
    /// Its limits, and those of the groups above it.
    pub limits: Vec<GroupLimit>,
    /// Time for which its CPU limit held tasks back, in seconds.
    pub cpu_throttled_s: Option<f64>,
    /// Times that `memory.high` made it free memory.
    pub memory_high_events: Option<u64>,
    /// Times that it reached its memory limit.
    pub memory_limit_events: Option<u64>,
    /// Its own pressure: I/O stalls (some), in seconds; `null`: its hierarchy counts none.
    pub io_some_s: Option<f64>,
    /// Memory stalls (some), in seconds.
    pub memory_some_s: Option<f64>,
    /// It was removed before the end of the watch: its counters are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
}

impl GroupRecord {
    /// Whether a subject is in the group, or in one below it.
    pub fn holds(&self, subject: &Subject) -> bool {
        subject.groups.iter().any(|path| Path::new(path).starts_with(&self.path))
    }

    /// What its counters say.
    pub fn new(seen: GroupSeen) -> GroupRecord {
        let seconds = |ns: u64| ns as f64 / 1e9;
        GroupRecord {
            path: seen.path,
            limits: seen.limits,
            cpu_throttled_s: seen.cpu_throttled_ns.map(seconds),
            memory_high_events: seen.memory_high_events,
            memory_limit_events: seen.memory_limit_events,
            io_some_s: seen.counted.map(|counted| seconds(counted.io_some_ns)),
            memory_some_s: seen.counted.map(|counted| seconds(counted.memory_some_ns)),
            is_gone: seen.is_gone,
        }
    }
}

impl WholeMachineRecord {
    /// Puts it together.
    pub fn new(
        profile: MachineProfile,
        account: MachineAccount,
        verdict: Verdict,
        group: Option<GroupRecord>,
        limits: Vec<GroupLimit>,
        invocation: Invocation,
    ) -> WholeMachineRecord {
        let over_time = OverTime::new(profile.course.as_ref(), whose(profile.course.as_ref()));
        WholeMachineRecord {
            schema: SCHEMA,
            kind: Kind::WholeMachine,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: invocation.command,
            environment: invocation.environment,
            warnings: warnings(&profile),
            group,
            limits,
            watched_ns: None,
            verdict,
            closure: closure(&profile),
            account,
            over_time,
            profile,
        }
    }

    /// The same with steps of time that are told apart from the account.
    #[must_use]
    pub fn with_course(mut self, course: Option<Course>) -> WholeMachineRecord {
        self.over_time = OverTime::new(course.as_ref(), whose(course.as_ref()));
        self.profile.course = course;
        self
    }

    /// The same of a watch that ended itself; it is warned of.
    #[must_use]
    pub fn overhead_exceeded(mut self, over: Option<OverheadExceeded>) -> WholeMachineRecord {
        if self.profile.overhead_exceeded.is_none() {
            self.profile.overhead_exceeded = over;
            self.warnings.extend(over.map(ended_itself));
        }
        self
    }

    /// Whose reads and writes its phases are.
    pub fn whose(&self) -> Whose {
        whose(self.profile.course.as_ref())
    }
}

fn whose(course: Option<&Course>) -> Whose {
    let group = course.and_then(|course| course.group.as_ref());
    if group.is_some_and(|group| group.devices.is_some()) { Whose::Group } else { Whose::Devices }
}

fn warnings(profile: &MachineProfile) -> Vec<Warning> {
    let lost = &profile.lost;
    let mut messages: Vec<String> = profile.gaps.clone();
    let mut said = |n: u64, words: &str| {
        if n > 0 {
            messages.push(format!("{n} {words}"));
        }
    };
    said(lost.waits, "waits were not followed: the tables for them were full");
    said(lost.events, "waits were lost: the buffer was full");
    said(lost.requests, "events of block requests were lost: the buffer was full");
    said(lost.stacks, "waits have no stack: another stack had its place in the table");
    said(lost.pooled, "events are of processes that share an entry of their name: there were too many");
    said(lost.owners, "requests were not told apart at their device: causes beyond the first 31 are one");
    said(lost.rows, "waits were put together without stack and device: there were too many kinds");
    let not_seen = |message| Warning { code: "not-seen".to_owned(), message, next: None };
    messages.into_iter().map(not_seen).chain(profile.overhead_exceeded.map(ended_itself)).collect()
}

fn ended_itself(exceeded: OverheadExceeded) -> Warning {
    let hundredths = |share: f64| per_cent(share * 100.0, 2);
    let programs = match exceeded.observer_share {
        Some(share) => {
            let samples = counted(exceeded.samples, "sample", "samples");
            format!("{} in its programs in the kernel ({samples})", hundredths(share))
        }
        None => "an unknown part in its programs in the kernel".to_owned(),
    };
    // Per cent in steps that a person would write, without what binary fractions add.
    let limit = (exceeded.limit * 1e8).round() / 1e6;
    Warning {
        code: "overhead-exceeded".to_owned(),
        message: format!(
            "the watch ended itself: of all CPU time of its last three seconds {} were in iowhy and {programs}, more than \
             the {limit} % of `--max-overhead`; a greater one lets it go on",
            hundredths(exceeded.own_share)
        ),
        next: None,
    }
}
